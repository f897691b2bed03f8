/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first steps of reading protobuf. Readers take [p, end) and return where they stopped, or NULL when the bytes are not
 * what they should be; they never look at *end.
 */
#ifndef HEARTH_PROTO_WIRE_H
#define HEARTH_PROTO_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/varint.h"

enum wire {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_GROUP = 3,
	WIRE_GROUP_END = 4,
	WIRE_FIXED32 = 5,
};

/* A length that the bytes after it fulfil. */
static inline const uint8_t *wire_length(const uint8_t *p, const uint8_t *end, size_t *ret)
{
	uint64_t len;

	p = varint_read(p, end, &len);
	if (!p || len > (uint64_t)(end - p))
		return NULL;
	*ret = len;
	return p;
}

/* Field number (1 to 2^29 - 1) and wire type. */
static inline const uint8_t *wire_tag(const uint8_t *p, const uint8_t *end, uint32_t *field_ret, unsigned *wire_ret)
{
	uint64_t tag;

	p = varint_read(p, end, &tag);
	if (!p || tag > UINT32_MAX || tag < 8)
		return NULL;
	*field_ret = (uint32_t)tag >> 3;
	*wire_ret = tag & 7;
	return p;
}

/* Skips the value of a field; groups are not proto3 and refused. */
const uint8_t *wire_skip(const uint8_t *p, const uint8_t *end, unsigned wire);

#endif
