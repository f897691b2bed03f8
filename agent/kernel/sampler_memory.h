/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that sample memory where it is first touched (bpf/memory.bpf.c), for the sampler's own files and the kind
 * that turns them on. Their state is sampler.memory. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_MEMORY_H
#define HEARTH_AGENT_KERNEL_SAMPLER_MEMORY_H

#include "agent/kernel/sampler_state.h"

/* Makes room for them, between open and load. */
void sampler_memory_configure(struct sampler *s);

/* Loads them: a sample stands for @mean_bytes and is of the session's @kind. Where this kernel cannot, says so once; then
 * all functions below do nothing. */
void sampler_memory_load(struct sampler *s, uint64_t mean_bytes, uint32_t kind);
void sampler_memory_free(struct sampler *s);

/* Begins to sample, or ends. 0 or -errno. */
int sampler_memory_enable(struct sampler *s, bool on);

/* How many huge pages the programs left out, being run already on that CPU. */
uint64_t sampler_memory_missed(const struct sampler *s);

#endif
