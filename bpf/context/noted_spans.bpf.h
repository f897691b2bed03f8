/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Spans that another program notes by thread: OpenTelemetry's eBPF instrumentation (OBI) keeps the span that each thread
 * works on in a map of its own, pinned as otel/traces_ctx_v1. User space puts that map into noted_spans when it is there
 * (agent/kernel/sampler_spans.c); until then a look-up costs some ns. The word of the process itself stands over this one:
 * bpf/context/context.bpf.c writes its link in the same place. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_CONTEXT_NOTED_SPANS_H
#define HEARTH_BPF_CONTEXT_NOTED_SPANS_H

#include "bpf/maps.bpf.h"

struct noted_spans {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);		 /* the kernel compares all but this */
	__uint(key_size, sizeof(__u64)); /* process, thread */
	__uint(value_size, sizeof(struct noted_span));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct noted_spans);
} noted_spans SEC(".maps");

/* Adds the span that is noted for the current thread, if any, before the frames. */
static __always_inline void add_noted_span(struct scratch *scratch)
{
	struct walk *walk = &scratch->walk;
	__u64 thread, at = walk->user_at;
	const struct noted_span *span;
	__u32 first = 0;
	void *spans = bpf_map_lookup_elem(&noted_spans, &first);

	if (!spans)
		return;
	thread = bpf_get_current_pid_tgid();
	span = bpf_map_lookup_elem(spans, &thread);
	if (!span)
		return;
	scratch->words[word_index(at - 1)] = SECTION(SECTION_LINK, sizeof(struct span_info));
	scratch->words[word_index(at)] = span->trace[0];
	scratch->words[word_index(at + 1)] = span->trace[1];
	scratch->words[word_index(at + 2)] = span->span;
	scratch->words[word_index(at + 3)] = 0; /* flags are not told */
	walk->context_cnt = 1 + sizeof(struct span_info) / sizeof(__u64);
	walk->user_at += walk->context_cnt;
}

#endif
