/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/probe_labels.h"
#include "agent/probe/probe.h"

uint32_t probe_labels_build(struct builder *b, const struct trace_event *e, const struct probe_set *probes,
			    int32_t *attributes)
{
	if (!probes || !e->probe || e->probe > probes->count)
		return 0;
	attributes[0] = builder_attribute_string(b, "probe.name", str_z(probes->list[e->probe - 1].label));
	return 1;
}
