/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers of three bytes and more. Stateless. */
#include "base/varint.h"

const uint8_t *varint_read_long(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (end - p >= 3 && p[0] & p[1] & 0x80 && p[2] < 0x80) {
		*ret = (p[0] & 0x7f) | (p[1] & 0x7fu) << 7 | (uint64_t)p[2] << 14;
		return p + 3;
	}
	for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
		uint8_t byte = *p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte >= 0x80)
			continue;
		if (shift == 63 && byte > 1)
			return NULL;
		*ret = v;
		return p;
	}
	return NULL;
}
