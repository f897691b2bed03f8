/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the layouts of older OTLP releases from that of 1.10. Numbers moved with nearly every release up to 1.10, mostly to
 * fields of another wire type; so it is enough to note which wire types each field of five messages was seen with.
 */
#include "base/cleanup.h"
#include "proto/otlp_decode.h"
#include "proto/otlp_wire.h"

enum node { TOP, RESOURCE_PROFILES, SCOPE_PROFILES, PROFILE, SAMPLE, VALUE_TYPE, DICTIONARY, ATTRIBUTE, NODES };

enum { FIELDS = 16 };

/* Where a length-delimited field leads that is worth a look; TOP: nowhere. */
static const uint8_t inner[NODES][FIELDS] = {
	[TOP] = { [1] = RESOURCE_PROFILES, [2] = DICTIONARY },
	[RESOURCE_PROFILES] = { [2] = SCOPE_PROFILES },
	[SCOPE_PROFILES] = { [2] = PROFILE },
	[PROFILE] = { [1] = VALUE_TYPE, [2] = SAMPLE, [5] = VALUE_TYPE, [6] = VALUE_TYPE },
	[DICTIONARY] = { [6] = ATTRIBUTE },
};

struct prints {
	uint8_t wires[NODES][FIELDS]; /* bit w: the field was there with wire type w */
	bool aggregated;	      /* ValueType.3 held delta or cumulative */
};

static void take(struct prints *s, enum node node, const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		const uint8_t *value, *content;
		uint32_t field;
		unsigned wire;
		size_t len = 0;

		value = wire_tag(p, end, &field, &wire);
		p = value ? wire_skip(value, end, wire) : NULL;
		if (!p)
			return;
		if (field >= FIELDS)
			continue;
		s->wires[node][field] |= (uint8_t)(1u << wire);
		if (node == VALUE_TYPE && field == 3 && wire == WIRE_VARINT && (*value == 1 || *value == 2))
			s->aggregated = true;
		if (wire == WIRE_BYTES && inner[node][field]) {
			content = wire_length(value, end, &len);
			take(s, (enum node)inner[node][field], content, content + len);
		}
	}
}

static bool saw(const struct prints *s, enum node node, unsigned field, enum wire wire)
{
	return s->wires[node][field] & 1u << wire;
}

enum otlp_release otlp_older_release(const uint8_t *data, size_t len, bool doubtful)
{
	struct prints s = { 0 };

	if (len)
		take(&s, TOP, data, data + len);
	if (!saw(&s, TOP, 1, WIRE_BYTES))
		return RELEASE_CURRENT;
	if (saw(&s, DICTIONARY, 1, WIRE_VARINT) || saw(&s, DICTIONARY, 2, WIRE_VARINT)) /* field 2 was the mapping table */
		return RELEASE_1_6;
	if (saw(&s, PROFILE, 3, WIRE_BYTES)) /* mapping_table, then location_indices, then fixed64 */
		return saw(&s, TOP, 2, WIRE_BYTES) ? RELEASE_1_7 : RELEASE_1_4_TO_1_6;
	/* Attributes had their keys in them; Profile: 5 duration, then period_type. */
	if (saw(&s, ATTRIBUTE, 1, WIRE_BYTES) || saw(&s, PROFILE, 5, WIRE_VARINT))
		return RELEASE_1_7;
	if (saw(&s, PROFILE, 8, WIRE_BYTES) || saw(&s, PROFILE, 12, WIRE_BYTES)) /* profile_id, attributes */
		return RELEASE_1_8;
	/* Sample of 1.8 and 1.9: 2 values, 3 attribute_indices, 4 link_index. Who packs one list packs all. */
	if (saw(&s, SAMPLE, 3, WIRE_BYTES) ||
	    (s.wires[SAMPLE][2] == 1u << WIRE_BYTES && s.wires[SAMPLE][4] == 1u << WIRE_VARINT))
		return s.aggregated ? RELEASE_1_8 : RELEASE_1_9;
	if (s.aggregated)
		return RELEASE_1_8;
	if (doubtful && s.wires[SAMPLE][2]) /* values taken for attributes */
		return RELEASE_1_9;
	return RELEASE_CURRENT;
}
