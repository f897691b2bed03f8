/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of samples of waits: the state of the thread, its system call, what it waited for, who ended it. Agent's
 * thread. */
#ifndef HEARTH_AGENT_REPORT_WAIT_LABELS_H
#define HEARTH_AGENT_REPORT_WAIT_LABELS_H

#include "agent/samples/traces.h"
#include "proto/profiles_builder.h"

enum { WAIT_LABELS = 5 };

/* Makes those of @e, of @t (none of a sample on a CPU) at @attributes. Returns their number, WAIT_LABELS at most. */
uint32_t wait_labels_build(struct builder *b, const struct traces *t, const struct trace_event *e, int32_t *attributes);

/* Makes the location of the frame between the stack of a wait and that of @waker, which ended it. @type: the attribute of
 * its type. */
int32_t wait_labels_separator(struct builder *b, const struct waker *waker, int32_t type);

#endif
