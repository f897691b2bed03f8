/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader. Strings without escapes, which are nearly all, are handed out where they lie; the others are written into
 * the reader's own buffer. Nothing is read at or behind @end.
 */
#include "base/text/json_read.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text/hex.h"

enum { MAX_SKIP_DEPTH = 128 };

void json_reader_init(struct json_reader *r, const void *data, size_t len)
{
	*r = (struct json_reader){ .p = data, .end = len ? (const uint8_t *)data + len : data };
}

void json_reader_fini(struct json_reader *r)
{
	buf_fini(&r->text);
}

static bool fail(struct json_reader *r, const char *what)
{
	if (!r->error)
		r->error = r->text.failed ? "memory is used up" : what;
	return false;
}

uint8_t json_peek(struct json_reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
	return r->p < r->end ? *r->p : 0;
}

/* --- arrays and objects --- */
bool json_open(struct json_reader *r, char bracket)
{
	if (json_peek(r) != (uint8_t)bracket)
		return fail(r, bracket == '{' ? "is not an object" : "is not an array");
	r->p++;
	return true;
}

bool json_next(struct json_reader *r, char bracket, bool *first)
{
	uint8_t c = json_peek(r);

	if (c == (uint8_t)bracket) {
		r->p++;
		return false;
	}
	if (*first) {
		*first = false;
		if (c)
			return true;
	} else if (c == ',') {
		r->p++;
		c = json_peek(r);
		if (c && c != (uint8_t)bracket)
			return true;
		if (c)
			return fail(r, "has a comma behind its last item");
	}
	if (!c)
		return fail(r, bracket == '}' ? "is an object that is not closed" : "is an array that is not closed");
	return fail(r, "lacks a comma between two items");
}

bool json_read_key(struct json_reader *r, struct json_text *ret)
{
	if (json_peek(r) != '"')
		return fail(r, "has a member without a name in quotes");
	if (!json_read_string(r, ret))
		return false;
	if (json_peek(r) != ':')
		return fail(r, "has a member without a colon behind its name");
	r->p++;
	return true;
}

/* --- strings --- */
static bool read_hex4(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
	uint32_t v = 0;

	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit((char)p[i]);

		if (digit < 0)
			return false;
		v = v << 4 | (uint32_t)digit;
	}
	*ret = v;
	return true;
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

const uint8_t *json_unescape(const uint8_t *p, const uint8_t *end, struct buf *out)
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

/* The first byte at or behind @p that ends a run of plain text: a quote, a backslash, or a control byte. */
static const uint8_t *plain_run(const uint8_t *p, const uint8_t *end)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;

	for (; end - p >= 8; p += 8) {
		uint64_t w, quote, slash;

		memcpy(&w, p, sizeof(w));
		quote = w ^ (ones * '"');
		slash = w ^ (ones * '\\');
		if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((w - ones * ' ') & ~w)) & tops)
			break;
	}
	while (p < end && *p != '"' && *p != '\\' && *p >= ' ')
		p++;
	return p;
}

bool json_read_string(struct json_reader *r, struct json_text *ret)
{
	const uint8_t *run;

	if (json_peek(r) != '"')
		return fail(r, "is not a string");
	run = ++r->p;
	r->p = plain_run(r->p, r->end);
	if (r->p < r->end && *r->p == '"') {
		*ret = (struct json_text){ (const char *)run, (size_t)(r->p++ - run) };
		return true;
	}
	buf_reset(&r->text);
	for (;;) {
		const uint8_t *next;

		buf_append(&r->text, run, (size_t)(r->p - run));
		if (r->p == r->end)
			return fail(r, "has a string that is not closed");
		if (*r->p == '"')
			break;
		if (*r->p != '\\')
			return fail(r, "has a control byte within a string");
		next = json_unescape(r->p + 1, r->end, &r->text);
		if (!next)
			return fail(r, "has an escape within a string that is none");
		run = next;
		r->p = plain_run(run, r->end);
	}
	r->p++;
	if (r->text.failed)
		return fail(r, "");
	*ret = (struct json_text){ r->text.len ? (const char *)r->text.data : "", r->text.len };
	return true;
}

/* --- the others --- */
static bool read_word(struct json_reader *r, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(r->end - r->p) < len || memcmp(r->p, word, len) != 0)
		return false;
	r->p += len;
	return true;
}

bool json_read_bool(struct json_reader *r, bool *ret)
{
	uint8_t c = json_peek(r);

	if ((c == 't' && read_word(r, "true")) || (c == 'f' && read_word(r, "false"))) {
		*ret = c == 't';
		return true;
	}
	return fail(r, "is neither true nor false");
}

bool json_read_null(struct json_reader *r)
{
	return json_peek(r) == 'n' && read_word(r, "null");
}

static const uint8_t *digits(const uint8_t *p, const uint8_t *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

bool json_read_number(struct json_reader *r, struct json_text *ret)
{
	const uint8_t *start, *p, *q;

	json_peek(r);
	start = r->p;
	p = start + (start < r->end && *start == '-');
	q = digits(p, r->end);
	if (q == p || (*p == '0' && q - p > 1))
		return fail(r, "is not a number");
	if (q < r->end && *q == '.') {
		p = q + 1;
		q = digits(p, r->end);
		if (q == p)
			return fail(r, "is not a number");
	}
	if (q < r->end && (*q == 'e' || *q == 'E')) {
		p = q + 1;
		p += p < r->end && (*p == '+' || *p == '-');
		q = digits(p, r->end);
		if (q == p)
			return fail(r, "is not a number");
	}
	*ret = (struct json_text){ (const char *)start, (size_t)(q - start) };
	r->p = q;
	return true;
}

static bool skip_scalar(struct json_reader *r)
{
	struct json_text text;
	bool value;

	switch (json_peek(r)) {
	case '"':
		return json_read_string(r, &text);
	case 't':
	case 'f':
		return json_read_bool(r, &value);
	case 'n':
		return json_read_null(r) || fail(r, "is no JSON value");
	case 0:
		return fail(r, "ends where a value should be");
	default:
		return json_read_number(r, &text);
	}
}

bool json_skip(struct json_reader *r)
{
	char closing[MAX_SKIP_DEPTH];
	bool first[MAX_SKIP_DEPTH];
	unsigned depth = 0;
	struct json_text key;

	for (;;) {
		uint8_t c = json_peek(r);

		if (c == '{' || c == '[') {
			if (depth == ARRAY_LEN(closing))
				return fail(r, "is nested too deep");
			closing[depth] = c == '{' ? '}' : ']';
			first[depth++] = true;
			r->p++;
		} else if (!skip_scalar(r)) {
			return false;
		}
		while (depth && !json_next(r, closing[depth - 1], &first[depth - 1])) {
			if (r->error)
				return false;
			depth--;
		}
		if (!depth)
			return true;
		if (closing[depth - 1] == '}' && !json_read_key(r, &key))
			return false;
	}
}

bool json_at_end(struct json_reader *r)
{
	return !json_peek(r) && r->p == r->end;
}
