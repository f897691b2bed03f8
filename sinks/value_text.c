/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute values as text. The rules are those of Go's encoding/json and strconv, because the printers that people know are
 * written in Go: numbers in the shortest form that reads back the same, exponents only below 1e-6 and from 1e21, a map's
 * later duplicate key wins. Writes only to the buffer it is given; any thread.
 */
#include "sinks/value_text.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/base64.h"
#include "base/text/utf8.h"

enum { DOUBLE_CHARS = 32 };

/* The fewest digits that read back as @v (not negative), as d.ddde+xx. */
static void shortest_digits(double v, char out[DOUBLE_CHARS])
{
	for (int precision = 0; precision < 17; precision++) {
		snprintf(out, DOUBLE_CHARS, "%.*e", precision, v);
		if (strtod(out, NULL) == v)
			return;
		/* Above a power of two the doubles lie twice as wide as below it: the next decimal upwards may do. */
		fesetround(FE_UPWARD);
		snprintf(out, DOUBLE_CHARS, "%.*e", precision, v);
		fesetround(FE_TONEAREST);
		if (strtod(out, NULL) == v)
			return;
	}
}

static void put_zeros(struct buf *out, int count)
{
	while (count-- > 0)
		buf_putc(out, '0');
}

static void put_finite(struct buf *out, double v)
{
	char text[DOUBLE_CHARS], digits[DOUBLE_CHARS];
	double magnitude = fabs(v);
	int count = 0, exponent;

	shortest_digits(magnitude, text);
	for (const char *c = text; *c != 'e'; c++)
		if (*c != '.')
			digits[count++] = *c;
	exponent = atoi(strchr(text, 'e') + 1);

	if (signbit(v))
		buf_putc(out, '-');
	if (magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21)) {
		buf_putc(out, digits[0]);
		if (count > 1)
			buf_putc(out, '.');
		buf_append(out, digits + 1, count - 1);
		buf_printf(out, "e%+d", exponent);
	} else if (exponent < 0) {
		buf_puts(out, "0.");
		put_zeros(out, -exponent - 1);
		buf_append(out, digits, count);
	} else if (count <= exponent + 1) {
		buf_append(out, digits, count);
		put_zeros(out, exponent + 1 - count);
	} else {
		buf_append(out, digits, exponent + 1);
		buf_putc(out, '.');
		buf_append(out, digits + exponent + 1, count - exponent - 1);
	}
}

static void put_double(struct buf *out, double v)
{
	if (isnan(v))
		buf_puts(out, "NaN");
	else if (isinf(v))
		buf_puts(out, v < 0 ? "-Infinity" : "Infinity");
	else
		put_finite(out, v);
}

static void put_json_escape(struct buf *out, uint32_t code)
{
	static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t i = 0; i < sizeof(letters) - 1; i += 2) {
		if ((uint32_t)letters[i] == code) {
			buf_putc(out, '\\');
			buf_putc(out, letters[i + 1]);
			return;
		}
	}
	buf_printf(out, "\\u%04x", code);
}

/* Each byte that is no UTF-8 becomes a U+FFFD of its own. */
static void put_json_string(struct buf *out, struct str s)
{
	const uint8_t *in = (const uint8_t *)s.data;

	buf_putc(out, '"');
	for (size_t i = 0, len, skip; i < s.len; i += len) {
		len = utf8_sequence(in + i, s.len - i, &skip);
		if (len == 0) {
			put_json_escape(out, 0xfffd);
			len = 1;
		} else if (in[i] < 0x20 || in[i] == '"' || in[i] == '\\') {
			put_json_escape(out, in[i]);
		} else if (len == 3 && in[i] == 0xe2 && in[i + 1] == 0x80 && (in[i + 2] & 0xfe) == 0xa8) {
			put_json_escape(out, 0x2000 | (in[i + 2] & 0x3f)); /* U+2028 and U+2029 end lines in JavaScript */
		} else {
			buf_append(out, in + i, len);
		}
	}
	buf_putc(out, '"');
}

struct entry {
	struct str key;
	const struct any_value *value;
};

static int key_compare(const struct entry *a, const struct entry *b)
{
	uint32_t common = a->key.len < b->key.len ? a->key.len : b->key.len;
	int order = memcmp(a->key.data, b->key.data, common);

	return order ? order : (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

/* Sorts by key; equal keys stay in message order. */
static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = key_compare(x, y);

	return order ? order : (x->value > y->value) - (x->value < y->value);
}

static bool put_json(const struct profiles *p, const struct any_value *v, struct buf *out);

static bool put_json_map(const struct profiles *p, const struct any_value *v, struct buf *out)
{
	uint32_t count = v->kvlist.count;
	AUTO_FREE struct entry *entries = calloc((size_t)count + 1, sizeof(*entries));
	bool first = true;

	if (!entries) {
		out->failed = true;
		return true;
	}
	for (uint32_t i = 0; i < count; i++)
		entries[i] = (struct entry){ profiles_key(p, &v->kvlist.items[i]), &v->kvlist.items[i].value };
	qsort(entries, count, sizeof(*entries), entry_compare);
	buf_putc(out, '{');
	for (uint32_t i = 0; i < count; i++) {
		if (i + 1 < count && key_compare(&entries[i], &entries[i + 1]) == 0)
			continue;
		if (!first)
			buf_putc(out, ',');
		first = false;
		put_json_string(out, entries[i].key);
		buf_putc(out, ':');
		if (!put_json(p, entries[i].value, out))
			return false;
	}
	buf_putc(out, '}');
	return true;
}

static bool put_json_list(const struct profiles *p, const struct any_value *v, struct buf *out)
{
	buf_putc(out, '[');
	for (uint32_t i = 0; i < v->array.count; i++) {
		if (i > 0)
			buf_putc(out, ',');
		if (!put_json(p, &v->array.items[i], out))
			return false;
	}
	buf_putc(out, ']');
	return true;
}

/* False when @v has no JSON form. */
static bool put_json(const struct profiles *p, const struct any_value *v, struct buf *out)
{
	struct str s;

	if (profiles_value_string(p, v, &s)) {
		put_json_string(out, s);
		return true;
	}
	switch (v->kind) {
	case VALUE_NONE:
		buf_puts(out, "null");
		return true;
	case VALUE_BYTES:
		buf_putc(out, '"');
		base64_append(out, v->string.data, v->string.len);
		buf_putc(out, '"');
		return true;
	case VALUE_DOUBLE:
		put_double(out, v->real);
		return isfinite(v->real);
	case VALUE_ARRAY:
		return put_json_list(p, v, out);
	case VALUE_KVLIST:
		return put_json_map(p, v, out);
	default:
		value_text(p, v, out);
		return true;
	}
}

void value_text(const struct profiles *p, const struct any_value *v, struct buf *out)
{
	size_t start = out->len;

	switch (v->kind) {
	case VALUE_DOUBLE:
		put_double(out, v->real);
		break;
	case VALUE_BYTES:
		base64_append(out, v->string.data, v->string.len);
		break;
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		if (!put_json(p, v, out) && out->len > start)
			out->len = start;
		break;
	default:
		profiles_value_append(p, v, out);
		break;
	}
}

const char *value_type_name(const struct any_value *v)
{
	static const char *const names[] = {
		[VALUE_NONE] = "Empty", [VALUE_STRING] = "Str",	   [VALUE_BOOL] = "Bool",
		[VALUE_INT] = "Int",	[VALUE_DOUBLE] = "Double", [VALUE_ARRAY] = "Slice",
		[VALUE_KVLIST] = "Map", [VALUE_BYTES] = "Bytes",   [VALUE_STRINDEX] = "Str",
	};

	return names[v->kind];
}
