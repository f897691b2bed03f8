/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work that threads said they did, as reports have it: labels of goroutines as process.context.label.KEY, attributes of
 * threads' contexts by the names that their process published, and the span as a link. Each kind of work is translated once
 * an interval. Agent's thread.
 */
#ifndef HEARTH_AGENT_REPORT_CONTEXT_LABELS_H
#define HEARTH_AGENT_REPORT_CONTEXT_LABELS_H

#include "agent/samples/traces.h"
#include "proto/profiles_builder.h"

enum { CONTEXT_LABELS = 64 }; /* of one sample at most */

struct context_labels; /* NULL: empty */

void context_labels_free(struct context_labels *c);

/* Translates those of @t. 0 or -ENOMEM. */
int context_labels_build(struct context_labels **c, struct builder *b, const struct traces *t);

/* Puts those of @e at @attributes, and its link, or 0, at *@link. Returns their number, CONTEXT_LABELS at most. */
uint32_t context_labels_of(const struct context_labels *c, const struct trace_event *e, int32_t *attributes, int32_t *link);

size_t context_labels_memory_bytes(const struct context_labels *c);

/* The link that a goroutine's label stands for: "span_id", "trace_id" in hexadecimal digits, as Grafana's otel-profiling-go
 * has them; "span id", "trace id" as dd-trace-go has them, the former in decimal ones. Returns whether it is such a label,
 * whose value then stands in @ret; one that makes no sense is none. */
bool context_label_link(struct str key, struct str value, struct span_info *ret);

#endif
