/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler as its own files know it: agent/sampler.c, agent/sampler_events.c. */
#ifndef HEARTH_AGENT_SAMPLER_STATE_H
#define HEARTH_AGENT_SAMPLER_STATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/perf_event.h"
#include "agent/sampler.h"
#include "bpf/sampler.skel.h"

enum { MAX_RINGS = 64 };

struct cpu_event {
	uint32_t cpu;
	int fd;			/* of a tracepoint: -1 */
	uint64_t since_ns;	/* enabled since then; 0: not */
	uint64_t idle_since_ns; /* how long the CPU had been idle then ... */
	uint64_t idle_ns;	/* ... and when that was read last */
};

struct passed {
	uint64_t ns, idle_ns; /* of CPUs, while their events were enabled */
};

struct sampler {
	struct sampler_bpf *skel;
	struct ring_buffer *rings;
	int ring_fds[MAX_RINGS];
	uint32_t ring_cnt;
	uint64_t ring_bytes;
	struct cpu_event *events;
	uint32_t event_cnt;
	uint32_t possible_cpus;
	struct perf_event_attr kind;
	int tracepoint_fd; /* -1: it is none, or not on */
	unsigned freq_hz;
	uint64_t period; /* instead of it, when not 0 */
	bool enabled, tail_form;
	struct passed passed; /* of events that are closed or disabled */
	uint64_t malformed;
	uint32_t seq;
	void (*fn)(void *arg, const struct record *record); /* during sampler_drain */
	void *arg;
};

/* Between open and load: the program's type. */
void sampler_events_configure(struct sampler *s);
void sampler_events_free(struct sampler *s);

#endif
