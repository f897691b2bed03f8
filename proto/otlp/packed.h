/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of indices as they lie packed in a message. */
#ifndef HEARTH_PROTO_OTLP_PACKED_H
#define HEARTH_PROTO_OTLP_PACKED_H

#include "proto/otlp/decode.h"
#include "proto/wire.h"

/* A varint of a packed list, whose last byte is known to end one. */
static inline const uint8_t *packed_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0; /* so that the caller's can be a register */

	if (p[0] < 0x80) {
		*ret = p[0];
		return p + 1;
	}
	if (p[1] < 0x80) {
		*ret = (p[0] & 0x7f) | (uint64_t)p[1] << 7;
		return p + 2;
	}
	if (p[2] < 0x80) {
		*ret = (p[0] & 0x7f) | (p[1] & 0x7fu) << 7 | (uint64_t)p[2] << 14;
		return p + 3;
	}
	if (p[3] < 0x80) {
		*ret = (p[0] & 0x7f) | (p[1] & 0x7fu) << 7 | (p[2] & 0x7fu) << 14 | (uint64_t)p[3] << 21;
		return p + 4;
	}
	p = varint_read_long(p, end, &v);
	*ret = v;
	return p;
}

/* How many varints end in [p, end). */
uint32_t otlp_packed_count(const uint8_t *p, const uint8_t *end);

/* Reads the indices in [p, end), whose last byte ends one, into @out, and notes the largest. False: one is out of range. */
bool otlp_packed_indices(struct otlp_decoder *d, unsigned table, const uint8_t *p, const uint8_t *end, int32_t *out);

#endif
