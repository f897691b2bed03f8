/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP/JSON: protobuf's JSON mapping in lowerCamelCase, with ids in hex and every 64-bit integer in quotes. The encoder
 * walks the decoder's tables, which know each field's name, kind and place in the model, so that both encodings have the
 * same fields. Values that protobuf would leave out (a zero outside a oneof, an empty list) are left out.
 *
 * A file of such lines is mostly names of members and short numbers, millions of them, so both are put straight into the
 * buffer, in room that was made for the longest before. Each item has a comma before it; an object's or a list's first one
 * becomes the opening brace when it ends. Memory failures stick in the buffer.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text/base64.h"
#include "base/text/digits.h"
#include "base/text/hex.h"
#include "base/text/json.h"
#include "proto/otlp/decode.h"

enum {
	KEYS = 128,			      /* more than the names in a message of profiles; a power of two */
	KEY_BYTES = OTLP_JSON_NAME_BYTES + 4, /* ,"name": */
	INDEX_BYTES = 12,		      /* ,-2147483648 */
	NUMBER_BYTES = DIGITS_MAX + 3,	      /* ,"-9223372036854775808" */
};

/* A member's name as it stands before its value. */
struct key {
	const struct otlp_field *field; /* NULL: none yet */
	size_t len;
	char text[KEY_BYTES];
};

struct writer {
	struct buf *out;
	struct key keys[KEYS]; /* a field's is at its place in memory, as long as no other wants to be there */
};

static void put_message(struct writer *w, const struct otlp_message *m, const void *base);

static const struct key *key_of(struct writer *w, const struct otlp_field *f)
{
	struct key *key = &w->keys[(uintptr_t)f / sizeof(*f) % KEYS];
	size_t len;

	if (key->field == f)
		return key;
	len = otlp_json_name(f->name, key->text + 2);
	memcpy(key->text, ",\"", 2);
	memcpy(key->text + 2 + len, "\":", 2);
	key->len = len + 4;
	key->field = f;
	return key;
}

static void put_key(struct writer *w, const struct otlp_field *f)
{
	const struct key *key = key_of(w, f);

	if (buf_reserve(w->out, KEY_BYTES))
		return;
	memcpy(w->out->data + w->out->len, key->text, KEY_BYTES); /* a fixed length is quicker than the right one */
	w->out->len += key->len;
}

/* Ends the object or list whose items began at @start. */
static void close_items(struct buf *out, size_t start, char open, char close)
{
	if (buf_reserve(out, 2))
		return;
	if (out->len == start)
		out->len++;
	out->data[start] = (uint8_t)open;
	out->data[out->len++] = (uint8_t)close;
}

/* --- one value --- */

/* 64 bits are more than JavaScript's numbers hold. */
static char *quoted_i64(char *at, int64_t v)
{
	*at = '"';
	at = digits_i64(at + 1, v);
	*at++ = '"';
	return at;
}

static char *quoted_u64(char *at, uint64_t v)
{
	*at = '"';
	at = digits_u64(at + 1, v);
	*at++ = '"';
	return at;
}

static char *small_number(char *at, const struct otlp_field *f, const void *value)
{
	if (f->kind == KIND_UINT32 || f->kind == KIND_FIXED32)
		return digits_u64(at, *(const uint32_t *)value);
	return digits_i64(at, *(const int32_t *)value);
}

static char *large_number(char *at, const struct otlp_field *f, const void *value)
{
	bool is_signed = f->kind == KIND_INT64 ? f->json != JSON_UNSIGNED : f->json == JSON_SIGNED;

	return is_signed ? quoted_i64(at, *(const int64_t *)value) : quoted_u64(at, *(const uint64_t *)value);
}

static void put_number(struct buf *out, const struct otlp_field *f, const void *value,
		       char *(*number)(char *at, const struct otlp_field *f, const void *value))
{
	char *at;

	if (buf_reserve(out, NUMBER_BYTES))
		return;
	at = (char *)out->data + out->len;
	out->len += (size_t)(number(at, f, value) - at);
}

static void put_double(struct buf *out, double v)
{
	if (isnan(v))
		buf_puts(out, "\"NaN\"");
	else if (isinf(v))
		buf_puts(out, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
		json_append_double(out, v);
}

static void put_bytes(struct buf *out, struct str s, bool as_hex)
{
	buf_putc(out, '"');
	if (!as_hex) {
		base64_append(out, s.data, s.len);
	} else if (!buf_reserve(out, 2ul * s.len + 1)) { /* hex_encode() writes a NUL */
		hex_encode((char *)out->data + out->len, (const uint8_t *)s.data, s.len);
		out->len += 2ul * s.len;
	}
	buf_putc(out, '"');
}

static bool is_default(const struct otlp_field *f, const void *at)
{
	static const uint64_t zero;

	switch (f->kind) {
	case KIND_INDEX:
	case KIND_UINT32:
	case KIND_FIXED32:
	case KIND_SINT32:
		return memcmp(at, &zero, sizeof(uint32_t)) == 0;
	case KIND_BOOL:
		return !*(const bool *)at;
	case KIND_INT64:
	case KIND_FIXED64:
		return memcmp(at, &zero, sizeof(zero)) == 0;
	case KIND_STRING:
	case KIND_BYTES:
		return !((const struct str *)at)->len;
	default:
		return false;
	}
}

static void put_value(struct writer *w, const struct otlp_field *f, const void *at)
{
	const struct str *s = at;

	switch (f->kind) {
	case KIND_INDEX:
	case KIND_UINT32:
	case KIND_FIXED32:
	case KIND_SINT32:
		put_number(w->out, f, at, small_number);
		break;
	case KIND_BOOL:
		buf_puts(w->out, *(const bool *)at ? "true" : "false");
		break;
	case KIND_FIXED64:
		if (f->json == JSON_DOUBLE)
			put_double(w->out, *(const double *)at);
		else
			put_number(w->out, f, at, large_number);
		break;
	case KIND_INT64:
		put_number(w->out, f, at, large_number);
		break;
	case KIND_STRING:
		json_append_string(w->out, s->data, s->len);
		break;
	case KIND_BYTES:
		put_bytes(w->out, *s, f->json == JSON_HEX);
		break;
	case KIND_MESSAGE:
		put_message(w, f->sub, at);
		break;
	}
}

/* --- lists --- */
static void put_numbers(struct buf *out, const struct otlp_field *f, const void *items, uint32_t count)
{
	char *at;

	if (buf_reserve(out, (size_t)count * (f->kind == KIND_INDICES ? INDEX_BYTES : NUMBER_BYTES)))
		return;
	at = (char *)out->data + out->len;
	for (uint32_t i = 0; i < count; i++) {
		*at++ = ',';
		if (f->kind == KIND_INDICES)
			at = digits_i64(at, ((const int32_t *)items)[i]);
		else if (f->kind == KIND_INT64S)
			at = quoted_i64(at, ((const int64_t *)items)[i]);
		else
			at = quoted_u64(at, ((const uint64_t *)items)[i]);
	}
	out->len = (size_t)(at - (char *)out->data);
}

static void put_item(struct writer *w, const struct otlp_field *f, const void *items, uint32_t i)
{
	const struct str *s;

	buf_putc(w->out, ',');
	switch (f->kind) {
	case KIND_FIXED64S:
		put_double(w->out, ((const double *)items)[i]);
		break;
	case KIND_STRINGS:
		s = &((const struct str *)items)[i];
		json_append_string(w->out, s->data, s->len);
		break;
	case KIND_MESSAGES:
		put_message(w, f->sub, (const char *)items + (size_t)i * f->sub->size);
		break;
	}
}

static void put_list(struct writer *w, const struct otlp_field *f, const void *base)
{
	const void *items = *(const void *const *)((const char *)base + f->offset);
	uint32_t count = *(const uint32_t *)((const char *)base + f->count);
	size_t start;

	if (!count)
		return;
	put_key(w, f);
	start = w->out->len;
	if (f->kind == KIND_INDICES || f->kind == KIND_INT64S || (f->kind == KIND_FIXED64S && f->json != JSON_DOUBLE))
		put_numbers(w->out, f, items, count);
	else
		for (uint32_t i = 0; i < count; i++)
			put_item(w, f, items, i);
	close_items(w->out, start, '[', ']');
}

static bool is_list(const struct otlp_field *f)
{
	return f->kind >= KIND_INDICES;
}

static inline bool is_present(const struct otlp_field *f, const void *base)
{
	const char *at = (const char *)base + f->offset;

	if (f->variant)
		return ((const struct any_value *)base)->kind == (enum value_kind)f->variant;
	if (f->has)
		return *(const bool *)((const char *)base + f->count);
	if (f->kind == KIND_MESSAGE && f->sub->nests)
		return ((const struct any_value *)(const void *)at)->kind != VALUE_NONE;
	return !is_default(f, at);
}

bool otlp_field_is_present(const struct otlp_field *f, const void *base)
{
	return is_present(f, base);
}

static void put_message(struct writer *w, const struct otlp_message *m, const void *base)
{
	size_t start = w->out->len;

	for (uint16_t i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];

		if (f->kind == KIND_NONE)
			continue;
		if (is_list(f)) {
			put_list(w, f, base);
		} else if (is_present(f, base)) {
			put_key(w, f);
			put_value(w, f, (const char *)base + f->offset);
		}
	}
	close_items(w->out, start, '{', '}');
}

int otlp_json_encode_message(const struct otlp_message *m, const void *base, struct buf *out)
{
	struct writer w = { .out = out };

	put_message(&w, m, base);
	return out->failed ? -ENOMEM : 0;
}

int otlp_json_encode(const struct profiles *p, struct buf *out)
{
	return otlp_json_encode_message(&otlp_profiles_data, p, out);
}
