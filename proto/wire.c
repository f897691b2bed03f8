/* SPDX-License-Identifier: Apache-2.0 */
/* Reading protobuf: the uncommon cases. Stateless. */
#include "proto/wire.h"

const uint8_t *wire_varint_slow(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (end - p >= 3 && p[0] & p[1] & 0x80 && p[2] < 0x80) {
		*ret = (p[0] & 0x7f) | (p[1] & 0x7fu) << 7 | (uint64_t)p[2] << 14;
		return p + 3;
	}
	for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
		uint8_t byte = *p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = v;
			return shift == 63 && byte > 1 ? NULL : p;
		}
	}
	return NULL;
}

const uint8_t *wire_skip(const uint8_t *p, const uint8_t *end, unsigned wire)
{
	uint64_t number;
	size_t len;

	switch (wire) {
	case WIRE_VARINT:
		return wire_varint(p, end, &number);
	case WIRE_FIXED64:
		return end - p >= 8 ? p + 8 : NULL;
	case WIRE_FIXED32:
		return end - p >= 4 ? p + 4 : NULL;
	case WIRE_BYTES:
		p = wire_length(p, end, &len);
		return p ? p + len : NULL;
	default:
		return NULL;
	}
}
