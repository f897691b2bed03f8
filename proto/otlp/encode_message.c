/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes any message as protobuf, by the decoder's tables. Simple rather than fast: a message is written behind room for its
 * length and moved back when that took less. Profiles have an encoder of their own (encode.c).
 */
#include <errno.h>
#include <string.h>

#include "proto/otlp/signal_tables.h"

enum { LENGTH_BYTES = 5 };

static void put_tag(struct buf *out, unsigned number, enum wire wire)
{
	varint_append(out, number << 3 | wire);
}

static void put_bytes(struct buf *out, unsigned number, const void *data, size_t len)
{
	put_tag(out, number, WIRE_BYTES);
	varint_append(out, len);
	buf_append(out, data, len);
}

static void put_message(struct buf *out, const struct otlp_message *m, const void *base);

static void put_nested(struct buf *out, unsigned number, const struct otlp_message *m, const void *base)
{
	uint8_t length[10];
	size_t start, n;

	put_tag(out, number, WIRE_BYTES);
	start = out->len;
	if (buf_reserve(out, LENGTH_BYTES))
		return;
	out->len += LENGTH_BYTES;
	put_message(out, m, base);
	if (out->failed)
		return;
	n = (size_t)(varint_write(length, out->len - start - LENGTH_BYTES) - length);
	memmove(out->data + start + n, out->data + start + LENGTH_BYTES, out->len - start - LENGTH_BYTES);
	memcpy(out->data + start, length, n);
	out->len -= LENGTH_BYTES - n;
}

static void put_one(struct buf *out, unsigned number, const struct otlp_field *f, const void *at)
{
	const struct str *s = at;
	uint32_t small;

	switch (f->kind) {
	case KIND_INDEX:
	case KIND_UINT32:
		put_tag(out, number, WIRE_VARINT);
		varint_append(out, *(const uint32_t *)at);
		break;
	case KIND_SINT32:
		small = *(const uint32_t *)at;
		put_tag(out, number, WIRE_VARINT);
		varint_append(out, small << 1 ^ -(small >> 31));
		break;
	case KIND_INT64:
		put_tag(out, number, WIRE_VARINT);
		varint_append(out, *(const uint64_t *)at);
		break;
	case KIND_BOOL:
		put_tag(out, number, WIRE_VARINT);
		varint_append(out, *(const bool *)at);
		break;
	case KIND_FIXED64:
		put_tag(out, number, WIRE_FIXED64);
		buf_append(out, at, 8);
		break;
	case KIND_FIXED32:
		put_tag(out, number, WIRE_FIXED32);
		buf_append(out, at, 4);
		break;
	case KIND_STRING:
	case KIND_BYTES:
		put_bytes(out, number, s->data, s->len);
		break;
	case KIND_MESSAGE:
		put_nested(out, number, f->sub, at);
		break;
	}
}

static void put_list(struct buf *out, unsigned number, const struct otlp_field *f, const void *base)
{
	const char *items = *(const char *const *)((const char *)base + f->offset);
	uint32_t count = *(const uint32_t *)((const char *)base + f->count);
	struct buf packed = BUF_EMPTY;

	if (!count)
		return;
	if (f->kind == KIND_FIXED64S)
		put_bytes(out, number, items, 8ul * count);
	for (uint32_t i = 0; i < count; i++) {
		if (f->kind == KIND_MESSAGES)
			put_nested(out, number, f->sub, items + (size_t)i * f->sub->size);
		else if (f->kind == KIND_STRINGS)
			put_bytes(out, number, ((const struct str *)(const void *)items)[i].data,
				  ((const struct str *)(const void *)items)[i].len);
		else if (f->kind == KIND_INDICES)
			varint_append(&packed, ((const uint32_t *)(const void *)items)[i]);
		else if (f->kind == KIND_INT64S)
			varint_append(&packed, ((const uint64_t *)(const void *)items)[i]);
	}
	if (packed.len)
		put_bytes(out, number, packed.data, packed.len);
	out->failed |= packed.failed;
	buf_fini(&packed);
}

static void put_message(struct buf *out, const struct otlp_message *m, const void *base)
{
	for (unsigned number = 1; number < m->field_count; number++) {
		const struct otlp_field *f = &m->fields[number];

		if (f->kind >= KIND_INDICES)
			put_list(out, number, f, base);
		else if (f->kind && otlp_field_is_present(f, base))
			put_one(out, number, f, (const char *)base + f->offset);
	}
}

int otlp_encode_message(const struct otlp_message *m, const void *base, struct buf *out)
{
	put_message(out, m, base);
	return out->failed ? -ENOMEM : 0;
}
