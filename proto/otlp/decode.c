/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder: reads one contiguous message into the model by the tables of its form (proto/otlp/forms.h). Every length is
 * checked against what holds it; runs of a repeated field are counted before they are stored, so that arrays fit; the
 * largest index into each table is noted on the way, so that a valid message needs no second look at its indices. Arrays
 * carry their capacity in the 8 bytes before them, because a repeated field may come back later (concatenated messages do
 * that).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "proto/otlp/decode.h"
#include "proto/otlp/packed.h"
#include "proto/otlp/fields.h"

static const uint8_t wire_of[] = {
	[KIND_INDEX] = WIRE_VARINT,   [KIND_UINT32] = WIRE_VARINT,   [KIND_INT64] = WIRE_VARINT,
	[KIND_BOOL] = WIRE_VARINT,    [KIND_FIXED64] = WIRE_FIXED64, [KIND_STRING] = WIRE_BYTES,
	[KIND_BYTES] = WIRE_BYTES,    [KIND_MESSAGE] = WIRE_BYTES,   [KIND_INDICES] = WIRE_BYTES,
	[KIND_INT64S] = WIRE_BYTES,   [KIND_FIXED64S] = WIRE_BYTES,  [KIND_STRINGS] = WIRE_BYTES,
	[KIND_MESSAGES] = WIRE_BYTES, [KIND_FIXED32] = WIRE_FIXED32, [KIND_SINT32] = WIRE_VARINT,
};

static const char *const wire_names[] = {
	"varint", "fixed64", "length-delimited", "group", "end of group", "fixed32", "reserved (6)", "reserved (7)",
};

void *otlp_decode_fail(struct otlp_decoder *d, const uint8_t *at, const struct otlp_message *m, const struct otlp_field *f,
		       const char *fmt, ...)
{
	char *text = d->text->message;
	size_t size = sizeof(d->text->message), n = 0;
	va_list args;

	d->error = -EBADMSG;
	if (at)
		n += (size_t)snprintf(text, size, "byte %zu: ", (size_t)(at - d->start));
	n += (size_t)snprintf(text + n, size - n, f ? "%s.%s " : "%s ", m->name, f ? f->name : "");
	va_start(args, fmt);
	vsnprintf(text + n, size - n, fmt, args);
	va_end(args);
	return NULL;
}

void otlp_init_strings(const struct otlp_message *m, void *base)
{
	for (unsigned i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];

		if (f->kind == KIND_STRING || f->kind == KIND_BYTES)
			((struct str *)((char *)base + f->offset))->data = "";
		else if (f->kind == KIND_MESSAGE && f->sub->has_strings)
			otlp_init_strings(f->sub, (char *)base + f->offset);
	}
}

void *otlp_decode_new_list(struct otlp_decoder *d, size_t cap, size_t size)
{
	uint64_t *block = profiles_alloc(d->profiles, sizeof(*block) + cap * size);

	if (!block) {
		d->error = -ENOMEM;
		return NULL;
	}
	*block = cap;
	return block + 1;
}

void *otlp_decode_extend(struct otlp_decoder *d, void *base, const struct otlp_field *f, size_t size, uint32_t n)
{
	void **items = (void **)((char *)base + f->offset);
	uint32_t *count = (uint32_t *)((char *)base + f->count);
	size_t need = (size_t)*count + n, cap = *items ? ((const uint64_t *)*items)[-1] : 0;
	void *place;

	if (need > cap) {
		void *block = otlp_decode_new_list(d, need > 2 * cap ? need : 2 * cap, size);

		if (!block)
			return NULL;
		if (*count)
			memcpy(block, *items, *count * size);
		*items = block;
	}
	place = (char *)*items + *count * size;
	*count += n;
	return place;
}

static bool set_string(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f, struct str *s,
		       const uint8_t *p, size_t len)
{
	char *copy;

	if (f->kind != KIND_BYTES && !utf8_is_valid(p, len))
		return otlp_decode_fail(d, p, m, f, "is not UTF-8");
	if (f->id_bytes && len && len != f->id_bytes)
		return otlp_decode_fail(d, p, m, f, "has %zu bytes, not %u or none", len, f->id_bytes);
	s->len = (uint32_t)len;
	if (len == 0 || d->own_data) {
		s->data = len ? (const char *)p : "";
		return true;
	}
	copy = profiles_alloc(d->profiles, len);
	if (!copy) {
		d->error = -ENOMEM;
		return false;
	}
	s->data = memcpy(copy, p, len);
	return true;
}

/* Complete length-delimited values from @p on that have the tag byte @tag between them; 0 when not even the first is whole.
 */
static uint32_t count_run(const uint8_t *p, const uint8_t *end, uint8_t tag)
{
	uint32_t n = 0;
	size_t len;

	do {
		p = wire_length(p, end, &len);
		if (!p)
			break;
		p += len;
		n++;
	} while (p < end && *p++ == tag);
	return n;
}

static const uint8_t *decode_strings(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				     void *base, const uint8_t *p, const uint8_t *end, uint32_t n)
{
	struct str *s = otlp_decode_extend(d, base, f, sizeof(*s), n);
	size_t len = 0;

	for (uint32_t i = 0; s && i < n; i++, p += len) {
		p = wire_length(p + (i > 0), end, &len);
		if (!set_string(d, m, f, &s[i], p, len))
			return NULL;
	}
	return s ? p : NULL;
}

static const uint8_t *decode_messages(struct otlp_decoder *d, const struct otlp_field *f, void *base, const uint8_t *p,
				      const uint8_t *end, uint32_t n)
{
	char *item = otlp_decode_extend(d, base, f, f->sub->size, n);
	size_t len = 0;

	for (uint32_t i = 0; item && i < n; i++, p += len, item += f->sub->size) {
		p = wire_length(p + (i > 0), end, &len);
		if (f->sub->has_strings)
			otlp_init_strings(f->sub, item);
		if (!otlp_decode_message(d, f->sub, item, p, p + len))
			return NULL;
	}
	return item ? p : NULL;
}

static bool decode_packed(struct otlp_decoder *d, const struct otlp_field *f, void *base, const uint8_t *p,
			  const uint8_t *end)
{
	uint32_t n = otlp_packed_count(p, end);
	int64_t *values;
	int32_t *indices;
	uint64_t v;

	if (f->kind == KIND_INDICES) {
		indices = otlp_decode_extend(d, base, f, sizeof(*indices), n);
		return indices && otlp_packed_indices(d, f->table, p, end, indices);
	}
	values = otlp_decode_extend(d, base, f, sizeof(*values), n);
	for (; values && p && p < end; *values++ = (int64_t)v)
		p = packed_varint(p, end, &v);
	return values && p;
}

/* A list of numbers: packed, or one of its elements alone. */
static const uint8_t *decode_numbers(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				     unsigned wire, void *base, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;
	size_t len = 8;
	void *place;

	if (wire == WIRE_BYTES) {
		p = wire_length(p, end, &len);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		if (len == 0)
			return p;
	} else {
		p = wire_skip(p, end, wire);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		len = (size_t)(p - at);
		p = at;
		d->odd = true;
	}
	if (f->kind == KIND_FIXED64S) {
		if (len % 8)
			return otlp_decode_fail(d, at, m, f, "has %zu bytes, not a multiple of 8", len);
		place = otlp_decode_extend(d, base, f, 8, (uint32_t)(len / 8));
		if (place)
			memcpy(place, p, len);
		return place ? p + len : NULL;
	}
	if (p[len - 1] >= 0x80)
		return otlp_decode_fail(d, at, m, f, "ends within a number");
	if (decode_packed(d, f, base, p, p + len))
		return p + len;
	if (!d->error)
		otlp_decode_fail(d, at, m, f, "holds a number out of range");
	return NULL;
}

/* Value of a varint field into @at. */
static bool set_number(struct otlp_decoder *d, const struct otlp_field *f, void *at, uint64_t v)
{
	switch (f->kind) {
	case KIND_INDEX:
		if (v > INT32_MAX || v - 1 < d->shift[f->table])
			return false;
		v -= v ? d->shift[f->table] : 0;
		*(int32_t *)at = (int32_t)v;
		if (v > d->max_index[f->table])
			d->max_index[f->table] = (uint32_t)v;
		return true;
	case KIND_UINT32:
		if (v > UINT32_MAX)
			return false;
		*(uint32_t *)at = (uint32_t)v;
		return true;
	case KIND_BOOL:
		*(bool *)at = v;
		return true;
	case KIND_SINT32:
		if (v > UINT32_MAX)
			return false;
		*(int32_t *)at = (int32_t)((uint32_t)v >> 1 ^ -((uint32_t)v & 1));
		return true;
	default:
		*(int64_t *)at = (int64_t)v;
		return true;
	}
}

static const uint8_t *decode_bytes(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				   void *base, const uint8_t *p, const uint8_t *end)
{
	uint8_t tag = (uint8_t)((unsigned)(f - m->fields) << 3 | WIRE_BYTES);
	void *at = (char *)base + f->offset;
	const uint8_t *value;
	uint32_t n;
	size_t len;

	if (f->kind == KIND_MESSAGES || f->kind == KIND_STRINGS) {
		n = count_run(p, end, tag);
		if (n == 0)
			return otlp_decode_fail(d, p, m, f, "is cut off");
		return f->kind == KIND_MESSAGES ? decode_messages(d, f, base, p, end, n)
						: decode_strings(d, m, f, base, p, end, n);
	}
	value = wire_length(p, end, &len);
	if (!value)
		return otlp_decode_fail(d, p, m, f, "is cut off");
	if (f->kind == KIND_STRING || f->kind == KIND_BYTES)
		return set_string(d, m, f, at, value, len) ? value + len : NULL;
	return otlp_decode_message(d, f->sub, at, value, value + len) ? value + len : NULL;
}

/* Records that a member of a oneof, or a value that counts also when it is 0, was present. */
static void note_presence(const struct otlp_field *f, void *base)
{
	if (f->variant && ((struct any_value *)base)->kind != f->variant)
		*(struct any_value *)base = (struct any_value){ .kind = f->variant };
	if (f->has)
		*(bool *)((char *)base + f->count) = true;
}

static const uint8_t *decode_field(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				   unsigned wire, void *base, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;
	uint64_t v;

	if (wire != wire_of[f->kind]) {
		if (f->kind == KIND_FIXED64S ? wire == WIRE_FIXED64
					     : wire == WIRE_VARINT && (f->kind == KIND_INDICES || f->kind == KIND_INT64S))
			return decode_numbers(d, m, f, wire, base, p, end);
		return otlp_decode_fail(d, p, m, f, "has wire type %s, not %s", wire_names[wire],
					wire_names[wire_of[f->kind]]);
	}
	if (f->variant | f->has)
		note_presence(f, base);
	switch (wire) {
	case WIRE_VARINT:
		p = varint_read(p, end, &v);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off or longer than 64 bits");
		if (!set_number(d, f, (char *)base + f->offset, v))
			return otlp_decode_fail(d, at, m, f, "is %lld, out of range", (long long)v);
		return p;
	case WIRE_FIXED64:
		if (end - p < 8)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		memcpy((char *)base + f->offset, p, 8);
		return p + 8;
	case WIRE_FIXED32:
		if (end - p < 4)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		memcpy((char *)base + f->offset, p, 4);
		return p + 4;
	default:
		if (f->kind >= KIND_INDICES && f->kind <= KIND_FIXED64S)
			return decode_numbers(d, m, f, wire, base, p, end);
		return decode_bytes(d, m, f, base, p, end);
	}
}

bool otlp_decode_message(struct otlp_decoder *d, const struct otlp_message *m, void *base, const uint8_t *p,
			 const uint8_t *end)
{
	if (m->nests && ++d->nesting > OTLP_MAX_NESTING)
		return otlp_decode_fail(d, p, m, NULL, "is nested more than %d deep", OTLP_MAX_NESTING);
	if (m->usual)
		p = m->usual(d, base, p, end);
	while (p < end) {
		const uint8_t *at = p;
		uint32_t number;
		unsigned wire;

		p = wire_tag(p, end, &number, &wire);
		if (!p)
			return otlp_decode_fail(d, at, m, NULL, "goes on with bytes that are no field");
		if (number < m->field_count && m->fields[number].kind) {
			p = decode_field(d, m, &m->fields[number], wire, base, p, end);
			if (!p)
				return false;
			continue;
		}
		d->odd = true;
		p = wire_skip(p, end, wire);
		if (!p)
			return otlp_decode_fail(d, at, m, NULL, "has field %u (%s) that is cut off or not proto3", number,
						wire_names[wire]);
	}
	d->nesting -= m->nests;
	return !m->done || m->done(d, base);
}
