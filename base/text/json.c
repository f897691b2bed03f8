/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer. Every value passes through begin_value, which writes the comma and the line break before it and checks
 * that a value may stand there; a key is a string that is followed by a colon. Memory failures stick in the buffer.
 */
#include "base/text/json.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/digits.h"
#include "base/text/utf8.h"

#define EACH_BYTE 0x0101010101010101u
#define TOP_BITS  (0x80 * EACH_BYTE)

void json_init(struct json *j, struct buf *out, unsigned indent)
{
	*j = (struct json){ .out = out, .indent = indent };
}

static bool has_bit(const uint64_t *bits, unsigned depth)
{
	return bits[depth / 64] >> depth % 64 & 1;
}

static void set_bit(uint64_t *bits, unsigned depth, bool value)
{
	uint64_t bit = 1ull << depth % 64;

	bits[depth / 64] = value ? bits[depth / 64] | bit : bits[depth / 64] & ~bit;
}

static void break_line(struct json *j)
{
	if (!j->indent)
		return;
	buf_putc(j->out, '\n');
	for (unsigned i = 0; i < j->depth * j->indent; i++)
		buf_putc(j->out, ' ');
}

/* Writes the comma before a further item, and begins the item's own line. */
static void begin_item(struct json *j)
{
	if (has_bit(j->has_items, j->depth))
		buf_putc(j->out, ',');
	if (j->depth)
		break_line(j);
	set_bit(j->has_items, j->depth, true);
}

static void begin_value(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	assert(!has_bit(j->is_object, j->depth));      /* a key comes first there */
	assert(j->depth || !has_bit(j->has_items, 0)); /* one document a writer */
	begin_item(j);
}

static void begin_container(struct json *j, char open, bool is_object)
{
	begin_value(j);
	buf_putc(j->out, open);
	assert(j->depth < JSON_MAX_DEPTH);
	j->depth++;
	set_bit(j->has_items, j->depth, false);
	set_bit(j->is_object, j->depth, is_object);
}

static void end_container(struct json *j, char close, bool is_object)
{
	bool had_items = has_bit(j->has_items, j->depth);

	assert(j->depth && !j->after_key && has_bit(j->is_object, j->depth) == is_object);
	j->depth--;
	if (had_items)
		break_line(j);
	buf_putc(j->out, close);
}

void json_object_begin(struct json *j)
{
	begin_container(j, '{', true);
}

void json_object_end(struct json *j)
{
	end_container(j, '}', true);
}

void json_array_begin(struct json *j)
{
	begin_container(j, '[', false);
}

void json_array_end(struct json *j)
{
	end_container(j, ']', false);
}

/* --- strings --- */

/* The top bit of each byte of @word that is zero, and maybe of some bytes above the lowest zero byte. */
static uint64_t zeros(uint64_t word)
{
	return (word - EACH_BYTE) & ~word & TOP_BITS;
}

/* The same for each byte that a string must escape. */
static inline uint64_t marks(uint64_t word, bool html_safe)
{
	uint64_t found = word | (word - 0x20 * EACH_BYTE) | zeros(word ^ '"' * EACH_BYTE) | zeros(word ^ '\\' * EACH_BYTE);

	if (html_safe)
		found |= zeros(word ^ '<' * EACH_BYTE) | zeros(word ^ '>' * EACH_BYTE) | zeros(word ^ '&' * EACH_BYTE);
	return found & TOP_BITS;
}

/* How many bytes at the start of @s a string takes as they are. */
static inline size_t plain_prefix(const unsigned char *s, size_t len, bool html_safe)
{
	size_t at = 0;
	uint64_t word = 0, found;

	for (; len - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, s + at, sizeof(word));
		found = marks(le64toh(word), html_safe);
		if (found)
			return at + (size_t)__builtin_ctzll(found) / 8;
	}
	for (; at < len && !(marks(s[at], html_safe) & 0x80); at++)
		;
	return at;
}

static void append_escape(struct buf *out, unsigned char c)
{
	static const char letters[] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'
	};

	if (letters[c])
		buf_append(out, (const char[]){ '\\', letters[c] }, 2);
	else
		buf_printf(out, "\\u%04x", c);
}

static void append_quoted(struct buf *out, const char *text, size_t len, bool html_safe)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n, skip = 0;

	buf_putc(out, '"');
	for (size_t i = 0; i < len; i += n) {
		n = plain_prefix(s + i, len - i, html_safe);
		if (n) {
			buf_append(out, s + i, n);
		} else if (html_safe && len - i >= 3 && s[i] == 0xe2 && s[i + 1] == 0x80 && (s[i + 2] & 0xfe) == 0xa8) {
			buf_printf(out, "\\u%04x", 0x2000 | (s[i + 2] & 0x3f));
			n = 3;
		} else if (s[i] < 0x80) {
			append_escape(out, s[i]);
			n = 1;
		} else if ((n = utf8_sequence(s + i, len - i, &skip)) > 0) {
			buf_append(out, s + i, n);
		} else {
			buf_puts(out, "\xef\xbf\xbd");
			n = skip;
		}
	}
	buf_putc(out, '"');
}

void json_append_string(struct buf *out, const char *s, size_t len)
{
	append_quoted(out, s, len, false);
}

void json_key_n(struct json *j, const char *key, size_t len)
{
	assert(has_bit(j->is_object, j->depth) && !j->after_key);
	begin_item(j);
	append_quoted(j->out, key, len, j->html_safe);
	buf_puts(j->out, j->indent ? ": " : ":");
	j->after_key = true;
}

void json_key(struct json *j, const char *key)
{
	json_key_n(j, key, strlen(key));
}

void json_string_n(struct json *j, const char *s, size_t len)
{
	begin_value(j);
	append_quoted(j->out, s, len, j->html_safe);
}

void json_string(struct json *j, const char *s)
{
	json_string_n(j, s, strlen(s));
}

void json_u64(struct json *j, uint64_t v)
{
	char text[DIGITS_MAX];

	begin_value(j);
	buf_append(j->out, text, (size_t)(digits_u64(text, v) - text));
}

void json_i64(struct json *j, int64_t v)
{
	char text[DIGITS_MAX];

	begin_value(j);
	buf_append(j->out, text, (size_t)(digits_i64(text, v) - text));
}

void json_append_double(struct buf *out, double v)
{
	/* 15 digits survive in every normal number, so a shorter form shows up there; subnormals have fewer. */
	int digits = isnormal(v) ? 15 : 1;
	char text[32];

	do {
		snprintf(text, sizeof(text), "%.*g", digits, v);
	} while (digits++ < 17 && strtod(text, NULL) != v);
	buf_puts(out, text);
}

void json_double(struct json *j, double v)
{
	begin_value(j);
	if (isfinite(v))
		json_append_double(j->out, v);
	else
		buf_puts(j->out, "null");
}

void json_bool(struct json *j, bool v)
{
	begin_value(j);
	buf_puts(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	begin_value(j);
	buf_puts(j->out, "null");
}

void json_raw(struct json *j, const char *value)
{
	begin_value(j);
	buf_puts(j->out, value);
}
