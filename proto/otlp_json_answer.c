/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few words that matter in a collector's JSON answer. It walks over the tokens and keeps the last key; nesting does not
 * matter, as no other field of these answers has such a name. Bytes that are no JSON end the walk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "proto/otlp.h"

enum { MAX_KEY_BYTES = 32 };

static bool read_hex4(const char *p, const char *end, uint32_t *ret)
{
	char digits[5] = "";
	char *stop;

	if (end - p < 4)
		return false;
	memcpy(digits, p, 4);
	*ret = (uint32_t)strtoul(digits, &stop, 16);
	return stop == digits + 4 && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ';
}

static void put_code_point(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		if (c >= 0x10000) {
			buf_putc(out, (char)(0xf0 | c >> 18));
			buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		} else {
			buf_putc(out, (char)(0xe0 | c >> 12));
		}
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* What follows a backslash; returns what is behind it, or NULL. */
static const char *read_escape(const char *p, const char *end, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *known = p < end && *p ? strchr(from, *p) : NULL;
	uint32_t c, low;

	if (known) {
		buf_putc(out, to[known - from]);
		return p + 1;
	}
	if (p == end || *p != 'u' || !read_hex4(p + 1, end, &c))
		return NULL;
	p += 5;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && read_hex4(p + 2, end, &low) &&
	    low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		p += 6;
	}
	put_code_point(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c); /* half a pair is no character */
	return p;
}

/* The string whose opening quote is before @p; returns what is behind the closing one, or NULL. */
static const char *read_string(const char *p, const char *end, struct buf *out)
{
	buf_reset(out);
	while (p && p < end && *p != '"') {
		if (*p == '\\')
			p = read_escape(p + 1, end, out);
		else
			buf_putc(out, *p++);
	}
	return p && p < end ? p + 1 : NULL;
}

static void take(const char *key, struct buf *value, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	AUTO(buf_fini) struct buf clean = BUF_EMPTY;

	if (strcmp(key, "rejectedProfiles") == 0) {
		*rejected_ret = strtoll(buf_text(value), NULL, 10);
	} else if (strcmp(key, "message") == 0 || strcmp(key, "errorMessage") == 0) {
		utf8_append_clean(&clean, value->data, value->len);
		snprintf(message_ret, message_size, "%.*s", (int)utf8_cut(clean.data, clean.len, message_size - 1),
			 buf_text(&clean));
	}
}

void otlp_json_decode_answer(const char *text, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	const char *p = text, *end = text + len;
	AUTO(buf_fini) struct buf value = BUF_EMPTY;
	char key[MAX_KEY_BYTES] = "";
	bool is_value = false; /* a colon came last */

	*rejected_ret = 0;
	message_ret[0] = '\0';
	while (p && p < end) {
		size_t number = 0;

		while (p + number < end && strchr("+-.0123456789eE", p[number]) && p[number])
			number++;
		if (number) {
			buf_reset(&value);
			buf_append(&value, p, number);
			p += number;
		} else if (*p == '"') {
			p = read_string(p + 1, end, &value);
			if (p && !is_value)
				snprintf(key, sizeof(key), "%s", buf_text(&value));
		} else {
			is_value = *p == ':' || (is_value && strchr(" \t\r\n", *p) && *p);
			p++;
			continue;
		}
		if (p && is_value)
			take(key, &value, rejected_ret, message_ret, message_size);
		is_value = false;
	}
}
