/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that keep the time of threads off their CPUs (bpf/offcpu.bpf.c), for the sampler's own files and the kinds
 * that turn them on. Their state is sampler.waits. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_WAITS_H
#define HEARTH_AGENT_KERNEL_SAMPLER_WAITS_H

#include "agent/kernel/sampler_state.h"

/* The session's kinds that samples are of. */
struct wait_kinds {
	uint32_t blocked, runnable;
	uint32_t waker; /* with @has_wakers */
	bool has_wakers;
};

/*
 * Loads them, with @mean_ns of bpf/draw.h. Where this kernel cannot, says so once; then all functions below do nothing.
 */
void sampler_waits_load(struct sampler *s, uint64_t mean_ns, const struct wait_kinds *kinds);
void sampler_waits_free(struct sampler *s);

/* Opens the event by which the programs interrupt the CPU that they run on. A descriptor, which is the caller's; -1: none is
 * needed; or another -errno. */
int sampler_waits_add_cpu(struct sampler *s, uint32_t cpu);

/* Begins to keep the time of all threads, or ends it. 0 or -errno. */
int sampler_waits_enable(struct sampler *s, bool on);

/* How many switches the programs left out, being run already on that CPU. */
uint64_t sampler_waits_missed(const struct sampler *s);

/* How many threads got no struct wait. */
uint64_t sampler_waits_refused(const struct sampler *s);

/* Adds the samples of @kind that were told of threads asleep to @taken, if it is that kind. */
void sampler_waits_count(const struct sampler *s, uint32_t kind, struct sample_sum *taken);

#endif
