/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of samples of probes: which probe it was. Agent's thread. */
#ifndef HEARTH_AGENT_REPORT_PROBE_LABELS_H
#define HEARTH_AGENT_REPORT_PROBE_LABELS_H

#include "agent/samples/traces.h"
#include "proto/profiles_builder.h"

struct probe_set;

enum { PROBE_LABELS = 1 };

/* Makes those of @e (none where @probes is NULL) at @attributes. Returns their number, PROBE_LABELS at most. */
uint32_t probe_labels_build(struct builder *b, const struct trace_event *e, const struct probe_set *probes,
			    int32_t *attributes);

#endif
