/* SPDX-License-Identifier: Apache-2.0 */
/* Both codecs, side by side. */
#include "proto/compat/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json_read.h"
#include "proto/wire.h"

struct reading {
	const struct connect_field *fields;
	size_t count;
	int (*fn)(void *arg, const struct connect_field *field, const struct connect_value *value);
	void *arg;
};

/* --- protobuf --- */

static const struct connect_field *by_number(const struct reading *r, uint32_t number)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->fields[i].number == number)
			return &r->fields[i];
	return NULL;
}

static int wire_of(enum connect_kind kind)
{
	switch (kind) {
	case CONNECT_INT64:
	case CONNECT_ENUM:
		return WIRE_VARINT;
	case CONNECT_DOUBLE:
		return WIRE_FIXED64;
	case CONNECT_TEXT:
	case CONNECT_MESSAGE:
		break;
	}
	return WIRE_BYTES;
}

/* Returns the position behind the value, or NULL. */
static const uint8_t *read_value(const uint8_t *p, const uint8_t *end, int wire, struct connect_value *ret)
{
	uint64_t number;

	*ret = (struct connect_value){ 0 };
	if (wire == WIRE_VARINT) {
		p = varint_read(p, end, &number);
		ret->integer = p ? (int64_t)number : 0;
		return p;
	}
	if (wire == WIRE_FIXED64) {
		if (end - p < (ptrdiff_t)sizeof(ret->real))
			return NULL;
		memcpy(&ret->real, p, sizeof(ret->real));
		return p + sizeof(ret->real);
	}
	p = wire_length(p, end, &ret->len);
	ret->text = (const char *)p;
	return p ? p + ret->len : NULL;
}

static int read_protobuf(const struct reading *r, const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		const struct connect_field *field;
		struct connect_value value;
		uint32_t number;
		unsigned wire;
		int err = 0;

		p = wire_tag(p, end, &number, &wire);
		field = p ? by_number(r, number) : NULL;
		if (field && (int)wire != wire_of(field->kind))
			return -EBADMSG;
		if (field)
			p = read_value(p, end, (int)wire, &value);
		else if (p)
			p = wire_skip(p, end, wire);
		if (p && field)
			err = r->fn(r->arg, field, &value);
		if (!p || err)
			return p ? err : -EBADMSG;
	}
	return 0;
}

/* --- JSON --- */

static const struct connect_field *by_name(const struct reading *r, const struct json_text *key)
{
	for (size_t i = 0; i < r->count; i++) {
		const char *const names[] = { r->fields[i].json, r->fields[i].name };

		for (size_t n = 0; n < ARRAY_LEN(names); n++)
			if (strlen(names[n]) == key->len && !memcmp(names[n], key->data, key->len))
				return &r->fields[i];
	}
	return NULL;
}

/* The whole of @text as a number of @kind. */
static bool to_number(const struct json_text *text, enum connect_kind kind, struct connect_value *ret)
{
	char copy[64], *end;

	if (!text->len || text->len >= sizeof(copy))
		return false;
	memcpy(copy, text->data, text->len);
	copy[text->len] = '\0';
	errno = 0;
	if (kind == CONNECT_DOUBLE)
		ret->real = strtod(copy, &end);
	else
		ret->integer = strtoll(copy, &end, 10);
	return !*end && !errno;
}

/* The value next in @j; false: it is none of @field's kind. Numbers may stand in quotes. */
static bool read_json_value(struct json_reader *j, const struct connect_field *field, struct connect_value *ret)
{
	const uint8_t *begin;
	struct json_text text;

	*ret = (struct connect_value){ 0 };
	if (field->kind == CONNECT_MESSAGE) {
		json_peek(j);
		begin = j->p;
		if (!json_skip(j))
			return false;
		*ret = (struct connect_value){ .text = (const char *)begin, .len = (size_t)(j->p - begin) };
		return true;
	}
	if (!(json_peek(j) == '"' ? json_read_string(j, &text) : json_read_number(j, &text)))
		return false;
	if (field->kind == CONNECT_TEXT || (field->kind == CONNECT_ENUM && !to_number(&text, field->kind, ret))) {
		ret->text = text.data;
		ret->len = text.len;
		return true;
	}
	return to_number(&text, field->kind, ret);
}

static int read_json_field(const struct reading *r, struct json_reader *j, const struct connect_field *field)
{
	bool is_list = json_peek(j) == '[' && field->kind != CONNECT_MESSAGE, first = true;
	struct connect_value value;
	int err = 0;

	if (json_read_null(j))
		return 0;
	if (is_list && !json_open(j, '['))
		return -EBADMSG;
	while (!err && (!is_list || json_next(j, ']', &first))) {
		if (!read_json_value(j, field, &value))
			return -EBADMSG;
		err = r->fn(r->arg, field, &value);
		if (!is_list)
			break;
	}
	return err ? err : j->error ? -EBADMSG : 0;
}

static int read_json(const struct reading *r, const void *data, size_t len)
{
	AUTO(json_reader_fini) struct json_reader j;
	struct json_text key;
	bool first = true;
	int err = 0;

	json_reader_init(&j, data, len);
	if (!json_open(&j, '{'))
		return -EBADMSG;
	while (!err && json_next(&j, '}', &first)) {
		const struct connect_field *field;

		if (!json_read_key(&j, &key))
			return -EBADMSG;
		field = by_name(r, &key);
		if (field)
			err = read_json_field(r, &j, field);
		else if (!json_skip(&j))
			err = -EBADMSG;
	}
	return err ? err : j.error || !json_at_end(&j) ? -EBADMSG : 0;
}

int connect_read(const struct connect_field *fields, size_t field_count, bool is_json, const void *data, size_t len,
		 int (*fn)(void *arg, const struct connect_field *field, const struct connect_value *value), void *arg)
{
	const struct reading r = { fields, field_count, fn, arg };

	if (is_json)
		return read_json(&r, data, len);
	return len ? read_protobuf(&r, data, (const uint8_t *)data + len) : 0;
}

/* --- writing --- */

static void put_tag(struct buf *out, uint32_t field, enum wire wire)
{
	varint_append(out, (uint64_t)field << 3 | wire);
}

static struct buf *part(struct connect_writer *w)
{
	return &w->parts[w->depth];
}

static void put_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	put_tag(out, field, WIRE_BYTES);
	varint_append(out, len);
	buf_append(out, data, len);
}

void connect_writer_begin(struct connect_writer *w, bool is_json, struct buf *out)
{
	*w = (struct connect_writer){ .is_json = is_json, .out = out };
	json_init(&w->json, out, 0);
	if (is_json)
		json_object_begin(&w->json);
}

void connect_writer_end(struct connect_writer *w)
{
	while (w->depth) /* given up in the middle */
		connect_message_end(w);
	if (w->is_json)
		json_object_end(&w->json);
	else
		buf_append(w->out, w->parts[0].data, w->parts[0].len);
	for (size_t i = 0; i < CONNECT_DEPTH; i++) {
		w->out->failed |= w->parts[i].failed;
		buf_fini(&w->parts[i]);
	}
}

static void put_key(struct connect_writer *w, const char *json)
{
	if (json)
		json_key(&w->json, json);
}

void connect_text(struct connect_writer *w, uint32_t field, const char *json, const char *text)
{
	if (!w->is_json) {
		put_bytes(part(w), field, text, strlen(text));
		return;
	}
	put_key(w, json);
	json_string(&w->json, text);
}

static void json_int64_text(struct connect_writer *w, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value); /* 64 bits: a string in protobuf's JSON */
	json_string(&w->json, text);
}

void connect_int64(struct connect_writer *w, uint32_t field, const char *json, int64_t value)
{
	if (w->is_json) {
		put_key(w, json);
		json_int64_text(w, value);
		return;
	}
	put_tag(part(w), field, WIRE_VARINT);
	varint_append(part(w), (uint64_t)value);
}

void connect_double(struct connect_writer *w, uint32_t field, const char *json, double value)
{
	if (w->is_json) {
		put_key(w, json);
		json_double(&w->json, value);
		return;
	}
	put_tag(part(w), field, WIRE_FIXED64);
	buf_append(part(w), &value, sizeof(value));
}

void connect_int64s(struct connect_writer *w, uint32_t field, const char *json, const int64_t *values, size_t count)
{
	AUTO(buf_fini) struct buf packed = BUF_EMPTY;

	if (w->is_json) {
		connect_list_begin(w, json);
		for (size_t i = 0; i < count; i++)
			json_int64_text(w, values[i]);
		connect_list_end(w);
		return;
	}
	for (size_t i = 0; i < count; i++)
		varint_append(&packed, (uint64_t)values[i]);
	part(w)->failed |= packed.failed;
	put_bytes(part(w), field, packed.data, packed.len);
}

void connect_message_begin(struct connect_writer *w, uint32_t field, const char *json)
{
	w->depth++;
	w->fields[w->depth] = field;
	if (!w->is_json)
		return;
	put_key(w, json);
	json_object_begin(&w->json);
}

void connect_message_end(struct connect_writer *w)
{
	struct buf *inner = part(w);

	w->depth--;
	if (w->is_json) {
		json_object_end(&w->json);
		return;
	}
	put_bytes(part(w), w->fields[w->depth + 1], inner->data, inner->len);
	part(w)->failed |= inner->failed;
	buf_reset(inner);
}

void connect_list_begin(struct connect_writer *w, const char *json)
{
	if (!w->is_json)
		return;
	put_key(w, json);
	json_array_begin(&w->json);
}

void connect_list_end(struct connect_writer *w)
{
	if (w->is_json)
		json_array_end(&w->json);
}
