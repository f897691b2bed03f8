/* SPDX-License-Identifier: Apache-2.0 */
/* Reads protobuf: the uncommon cases. Stateless. */
#include "proto/wire.h"

const uint8_t *wire_skip(const uint8_t *p, const uint8_t *end, unsigned wire)
{
	uint64_t number;
	size_t len;

	switch (wire) {
	case WIRE_VARINT:
		return varint_read(p, end, &number);
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
