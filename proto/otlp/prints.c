/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/otlp/prints.h"

/* The message inside a length-delimited field that is worth a look; NODE_TOP: none. */
static const uint8_t inner[NODES][PRINTS_FIELDS] = {
	[NODE_TOP] = { [1] = NODE_RESOURCE_PROFILES, [2] = NODE_DICTIONARY },
	[NODE_RESOURCE_PROFILES] = { [2] = NODE_SCOPE_PROFILES },
	[NODE_SCOPE_PROFILES] = { [2] = NODE_PROFILE },
	[NODE_PROFILE] = { [1] = NODE_VALUE_TYPE, [2] = NODE_SAMPLE, [5] = NODE_VALUE_TYPE, [6] = NODE_VALUE_TYPE },
	[NODE_DICTIONARY] = { [6] = NODE_ATTRIBUTE },
};

static void take(struct otlp_prints *s, enum prints_node node, const uint8_t *p, const uint8_t *end)
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
		if (field >= PRINTS_FIELDS)
			continue;
		s->wires[node][field] |= (uint8_t)(1u << wire);
		if (node == NODE_VALUE_TYPE && field == 3 && wire == WIRE_VARINT && (*value == 1 || *value == 2))
			s->aggregated = true;
		if (wire == WIRE_BYTES && inner[node][field]) {
			content = wire_length(value, end, &len);
			take(s, (enum prints_node)inner[node][field], content, content + len);
		}
	}
}

void otlp_prints_take(const uint8_t *data, size_t len, struct otlp_prints *ret)
{
	*ret = (struct otlp_prints){ 0 };
	if (len)
		take(ret, NODE_TOP, data, data + len);
}
