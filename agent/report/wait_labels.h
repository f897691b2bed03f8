/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of samples of waits: the state of the thread, its system call. Agent's thread. */
#ifndef HEARTH_AGENT_REPORT_WAIT_LABELS_H
#define HEARTH_AGENT_REPORT_WAIT_LABELS_H

#include "agent/samples/traces.h"
#include "proto/profiles_builder.h"

enum { WAIT_LABELS = 2 };

/* Makes those of @e (none of a sample on a CPU) at @attributes. Returns their number, WAIT_LABELS at most. */
uint32_t wait_labels_build(struct builder *b, const struct trace_event *e, int32_t *attributes);

#endif
