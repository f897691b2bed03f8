/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of samples of probes: which probe it was, and its arguments. Agent's thread. */
#ifndef HEARTH_AGENT_REPORT_PROBE_LABELS_H
#define HEARTH_AGENT_REPORT_PROBE_LABELS_H

#include "agent/samples/traces.h"
#include "proto/profiles_builder.h"

struct probe_set;

enum { PROBE_LABELS = 1 + PROBE_ARGS };

/* Makes those of @e (none where @probes is NULL), whose arguments are among @args, at @attributes. Returns their number,
 * PROBE_LABELS at most. */
uint32_t probe_labels_build(struct builder *b, const struct trace_event *e, const uint64_t *args,
			    const struct probe_set *probes, int32_t *attributes);

#endif
