/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in as few bytes as they need, in protobuf's form: seven bits a byte, the low ones first; all bytes but the last
 * have their highest bit set.
 */
#ifndef HEARTH_BASE_VARINT_H
#define HEARTH_BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { VARINT_BYTES = 10 }; /* bytes of a number, at most */

const uint8_t *varint_read_long(const uint8_t *p, const uint8_t *end, uint64_t *ret);

/* Reads the number at @p and returns its end. NULL: the number does not end before @end, which is never looked at, or it has
 * more than 64 bits; then *@ret stays as it was. */
static inline const uint8_t *varint_read(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (p < end && p[0] < 0x80) {
		*ret = p[0];
		return p + 1;
	}
	if (end - p >= 2 && p[1] < 0x80) {
		*ret = (p[0] & 0x7f) | (uint64_t)p[1] << 7;
		return p + 2;
	}
	return varint_read_long(p, end, ret);
}

/* Writes @v at @at, which has room for VARINT_BYTES or for as many as @v needs; returns their end. */
static inline uint8_t *varint_write(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

static inline void varint_append(struct buf *out, uint64_t v)
{
	uint8_t bytes[VARINT_BYTES];

	buf_append(out, bytes, (size_t)(varint_write(bytes, v) - bytes));
}

#endif
