/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a sample. Agent's thread. */
#ifndef HEARTH_AGENT_REPORT_EVENT_LABELS_H
#define HEARTH_AGENT_REPORT_EVENT_LABELS_H

#include "agent/report/probe_labels.h"
#include "agent/report/wait_labels.h"

enum { EVENT_LABELS = 6 + WAIT_LABELS + PROBE_LABELS };

/* Makes those of @e, of @t, whose walk ended with @end, at @attributes. @probes: of the session; NULL: there are none.
 * Returns their number, EVENT_LABELS at most. */
uint32_t event_labels_build(struct builder *b, const struct traces *t, const struct trace_event *e,
			    const struct probe_set *probes, enum walk_end end, int32_t *attributes);

/* Makes the location that --error-frames puts at the root of a truncated stack; it says why the walk ended. @type: the
 * attribute of its type. */
int32_t event_labels_marker(struct builder *b, enum walk_end end, int32_t type);

#endif
