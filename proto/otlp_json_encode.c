/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP/JSON: protobuf's JSON mapping in lowerCamelCase, with ids in hex and every 64-bit integer in quotes. It walks the
 * decoder's tables, which know each field's name, kind and place in the model, so that both encodings have the same fields.
 * What protobuf would leave out (a zero outside a oneof, an empty list) is left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "proto/otlp_decode.h"

static void put_message(struct json *j, const struct otlp_message *m, const void *base);

size_t otlp_json_name(const char *name, char out[static OTLP_JSON_NAME_BYTES])
{
	size_t len = 0;

	for (; *name && len < OTLP_JSON_NAME_BYTES - 1; name++) {
		bool starts_word = *name == '_' && name[1];

		name += starts_word;
		out[len++] = starts_word ? (char)(*name - 'a' + 'A') : *name; /* all names are lower case */
	}
	out[len] = '\0';
	return len;
}

static void put_key(struct json *j, const char *name)
{
	char key[OTLP_JSON_NAME_BYTES];

	json_key_n(j, key, otlp_json_name(name, key));
}

static void put_int64(struct json *j, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	json_string(j, text);
}

static void put_uint64(struct json *j, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	json_string(j, text);
}

static void put_double(struct json *j, double v)
{
	if (isnan(v))
		json_string(j, "NaN");
	else if (isinf(v))
		json_string(j, v > 0 ? "Infinity" : "-Infinity");
	else
		json_double(j, v);
}

/* Hex or base64 are plain ASCII, so they are made in a buffer of their own and written as a string. */
static void put_bytes(struct json *j, struct str s, bool as_hex)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *data = (const uint8_t *)s.data;
	struct buf text = BUF_EMPTY;

	for (uint32_t i = 0; as_hex && i < s.len; i++) {
		buf_putc(&text, hex[data[i] >> 4]);
		buf_putc(&text, hex[data[i] & 15]);
	}
	for (uint32_t i = 0; !as_hex && i < s.len; i += 3) {
		uint32_t left = s.len - i;
		uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
				(left > 2 ? data[i + 2] : 0);

		buf_putc(&text, letters[bits >> 18]);
		buf_putc(&text, letters[bits >> 12 & 63]);
		buf_putc(&text, left > 1 ? letters[bits >> 6 & 63] : '=');
		buf_putc(&text, left > 2 ? letters[bits & 63] : '=');
	}
	if (text.failed)
		j->out->failed = true;
	json_string_n(j, buf_text(&text), text.len);
	buf_fini(&text);
}

/* --- one value --- */
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

static void put_value(struct json *j, const struct otlp_field *f, const void *at)
{
	const struct str *s = at;

	switch (f->kind) {
	case KIND_INDEX:
		json_i64(j, *(const int32_t *)at);
		break;
	case KIND_UINT32:
	case KIND_FIXED32:
		json_u64(j, *(const uint32_t *)at);
		break;
	case KIND_SINT32:
		json_i64(j, *(const int32_t *)at);
		break;
	case KIND_BOOL:
		json_bool(j, *(const bool *)at);
		break;
	case KIND_INT64:
		if (f->json == JSON_UNSIGNED)
			put_uint64(j, *(const uint64_t *)at);
		else
			put_int64(j, *(const int64_t *)at);
		break;
	case KIND_FIXED64:
		if (f->json == JSON_DOUBLE)
			put_double(j, *(const double *)at);
		else if (f->json == JSON_SIGNED)
			put_int64(j, *(const int64_t *)at);
		else
			put_uint64(j, *(const uint64_t *)at);
		break;
	case KIND_STRING:
		json_string_n(j, s->data, s->len);
		break;
	case KIND_BYTES:
		put_bytes(j, *s, f->json == JSON_HEX);
		break;
	case KIND_MESSAGE:
		put_message(j, f->sub, at);
		break;
	}
}

/* --- lists --- */
static void put_item(struct json *j, const struct otlp_field *f, const void *items, uint32_t i)
{
	switch (f->kind) {
	case KIND_INDICES:
		json_i64(j, ((const int32_t *)items)[i]);
		break;
	case KIND_INT64S:
		put_int64(j, ((const int64_t *)items)[i]);
		break;
	case KIND_FIXED64S:
		if (f->json == JSON_DOUBLE)
			put_double(j, ((const double *)items)[i]);
		else
			put_uint64(j, ((const uint64_t *)items)[i]);
		break;
	case KIND_STRINGS:
		json_string_n(j, ((const struct str *)items)[i].data, ((const struct str *)items)[i].len);
		break;
	case KIND_MESSAGES:
		put_message(j, f->sub, (const char *)items + (size_t)i * f->sub->size);
		break;
	}
}

static void put_list(struct json *j, const struct otlp_field *f, const void *base)
{
	const void *items = *(const void *const *)((const char *)base + f->offset);
	uint32_t count = *(const uint32_t *)((const char *)base + f->count);

	if (!count)
		return;
	put_key(j, f->name);
	json_array_begin(j);
	for (uint32_t i = 0; i < count; i++)
		put_item(j, f, items, i);
	json_array_end(j);
}

static bool is_list(const struct otlp_field *f)
{
	return f->kind >= KIND_INDICES;
}

bool otlp_field_is_present(const struct otlp_field *f, const void *base)
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

static void put_message(struct json *j, const struct otlp_message *m, const void *base)
{
	json_object_begin(j);
	for (uint16_t i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];

		if (f->kind == KIND_NONE)
			continue;
		if (is_list(f)) {
			put_list(j, f, base);
		} else if (otlp_field_is_present(f, base)) {
			put_key(j, f->name);
			put_value(j, f, (const char *)base + f->offset);
		}
	}
	json_object_end(j);
}

int otlp_json_encode_message(const struct otlp_message *m, const void *base, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	put_message(&j, m, base);
	return out->failed ? -ENOMEM : 0;
}

int otlp_json_encode(const struct profiles *p, struct buf *out)
{
	return otlp_json_encode_message(&otlp_profiles_data, p, out);
}
