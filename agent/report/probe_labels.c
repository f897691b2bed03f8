/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "agent/probe/probe.h"
#include "agent/report/probe_labels.h"

uint32_t probe_labels_build(struct builder *b, const struct trace_event *e, const uint64_t *args,
			    const struct probe_set *probes, int32_t *attributes)
{
	const struct probe *probe;
	uint32_t count = 0;
	char key[24];

	if (!probes || !e->probe || e->probe > probes->count)
		return 0;
	probe = &probes->list[e->probe - 1];
	attributes[count++] = builder_attribute_string(b, "probe.name", str_z(probe->label));
	for (uint32_t i = 0; i < e->arg_cnt && i < probe->args.count; i++) {
		if (probe->arg_numbers[i] == PROBE_ARG_RETURN)
			snprintf(key, sizeof(key), "probe.ret");
		else
			snprintf(key, sizeof(key), "probe.arg%u", probe->arg_numbers[i]);
		attributes[count++] = builder_attribute_int(b, key, (int64_t)args[e->first_arg + i]);
	}
	return count;
}
