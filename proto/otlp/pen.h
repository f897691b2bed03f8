/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that the encoder's files write with: the parts of a protobuf message, appended to a buffer that the caller owns. */
#ifndef HEARTH_PROTO_OTLP_PEN_H
#define HEARTH_PROTO_OTLP_PEN_H

#include <endian.h>
#include <string.h>

#include "proto/otlp/encode.h"
#include "proto/wire.h"

enum { INDEX_BYTES = 5 }; /* at most */

struct encoder {
	const struct profiles *p;
	const struct otlp_part *part;
	struct buf *out;
	uint64_t unit; /* the next one */
};

/* Room for the next @bytes; NULL without memory, which the buffer remembers. */
static inline uint8_t *room(struct buf *out, size_t bytes)
{
	return buf_reserve(out, bytes) ? NULL : out->data + out->len;
}

static inline uint8_t *write_tag(uint8_t *at, enum wire wire, uint32_t field)
{
	return varint_write(at, field << 3 | wire);
}

/* Sets the end of the written bytes to @end. */
static inline void written(struct buf *out, const uint8_t *end)
{
	out->len = (size_t)(end - out->data);
}

static inline void put_varint(struct encoder *e, uint32_t field, uint64_t v)
{
	uint8_t *at = room(e->out, 2 * VARINT_BYTES);

	if (at)
		written(e->out, varint_write(write_tag(at, WIRE_VARINT, field), v));
}

static inline void put_number(struct encoder *e, uint32_t field, uint64_t v)
{
	if (v)
		put_varint(e, field, v);
}

static inline void put_bytes(struct encoder *e, uint32_t field, struct str s)
{
	uint8_t *at = room(e->out, 2 * VARINT_BYTES + s.len);

	if (!at)
		return;
	at = varint_write(write_tag(at, WIRE_BYTES, field), s.len);
	memcpy(at, s.data, s.len);
	written(e->out, at + s.len);
}

static inline void put_str(struct encoder *e, uint32_t field, struct str s)
{
	if (s.len)
		put_bytes(e, field, s);
}

/* @v: eight bytes in this machine's order, an integer or a double. */
static inline uint8_t *write_fixed64(uint8_t *at, const void *v)
{
	uint64_t bits;

	memcpy(&bits, v, sizeof(bits));
	bits = htole64(bits);
	memcpy(at, &bits, sizeof(bits));
	return at + sizeof(bits);
}

static inline void put_fixed64(struct encoder *e, uint32_t field, const void *v)
{
	uint8_t *at = room(e->out, VARINT_BYTES + sizeof(uint64_t));

	if (at)
		written(e->out, write_fixed64(write_tag(at, WIRE_FIXED64, field), v));
}

/* Begins a length-delimited value of @field; returns where, for end(). */
static inline size_t begin(struct encoder *e, uint32_t field)
{
	uint8_t *at = room(e->out, VARINT_BYTES + 1);

	if (at)
		written(e->out, write_tag(at, WIRE_BYTES, field) + 1);
	return e->out->len;
}

/* Ends the field of begin(): the bytes written since then are its value. */
static inline void end(struct encoder *e, size_t at)
{
	struct buf *out = e->out;
	size_t len = out->len - at, head_len;
	uint8_t head[VARINT_BYTES];

	if (out->failed)
		return;
	head_len = (size_t)(varint_write(head, len) - head);
	if (head_len > 1) {
		if (!room(out, head_len))
			return;
		memmove(out->data + at + head_len - 1, out->data + at, len);
	}
	memcpy(out->data + at - 1, head, head_len);
	out->len += head_len - 1;
}

#endif
