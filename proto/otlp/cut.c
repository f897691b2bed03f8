/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over the top-level fields; nothing is copied or kept. */
#include "proto/otlp/cut.h"

#include "proto/otlp/fields.h"

size_t otlp_whole_bytes(const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end = data + len;
	uint32_t field;
	unsigned wire;
	size_t whole = 0;

	while (p < end) {
		p = wire_tag(p, end, &field, &wire);
		if (p)
			p = wire_skip(p, end, wire);
		if (!p)
			break;
		if (field == PROFILES_TAG(ProfilesData, dictionary) && wire == WIRE_BYTES)
			whole = (size_t)(p - data);
	}
	return whole;
}
