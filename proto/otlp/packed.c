/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/otlp/packed.h"

#include <string.h>

/* A byte ends a varint when its top bit is clear: eight of them at a time, and the sums of up to 255 such at once. */
uint32_t otlp_packed_count(const uint8_t *p, const uint8_t *end)
{
	const uint64_t ones = 0x0101010101010101;
	uint32_t n = 0;

	while (end - p >= 8) {
		const uint8_t *stop = end - p >= 255 * 8 ? p + 255 * 8 : p + ((end - p) & ~7);
		uint64_t bytes, sums = 0;

		for (; p < stop; p += 8) {
			memcpy(&bytes, p, 8);
			sums += ~bytes >> 7 & ones;
		}
		sums = (sums & 0x00ff00ff00ff00ff) + (sums >> 8 & 0x00ff00ff00ff00ff);
		n += (uint32_t)(sums * 0x0001000100010001 >> 48);
	}
	for (; p < end; p++)
		n += *p < 0x80;
	return n;
}

/* The largest index tells whether any is too large. An index of 0 is in range, whatever the shift. */
bool otlp_packed_indices(struct otlp_decoder *d, unsigned table, const uint8_t *p, const uint8_t *end, int32_t *out)
{
	uint64_t shift = d->shift[table], max = 0, v;

	while (p < end) {
		p = packed_varint(p, end, &v);
		if (!p)
			return false;
		if (v <= shift && v)
			return false;
		v -= v ? shift : 0;
		max = v > max ? v : max;
		*out++ = (int32_t)v;
	}
	if (max > INT32_MAX - shift)
		return false;
	if (max > d->max_index[table])
		d->max_index[table] = (uint32_t)max;
	return true;
}
