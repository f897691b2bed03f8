/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs at the functions of a process's allocator (bpf/allocs.bpf.c), for the sampler's own files and the kind that
 * turns them on. Their state is sampler.allocs. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_ALLOCS_H
#define HEARTH_AGENT_KERNEL_SAMPLER_ALLOCS_H

#include "agent/kernel/sampler_state.h"

/* Sets sizes, between open and load. */
void sampler_allocs_configure(struct sampler *s);

/* Loads the programs for the places of @what->allocs; samples are of the session's @kind. 0, or -errno with @err filled. */
int sampler_allocs_load(struct sampler *s, const struct sampled *what, uint32_t kind, struct agent_error *err);
void sampler_allocs_free(struct sampler *s);

/* Attaches them, or detaches them. 0 or -errno. */
int sampler_allocs_enable(struct sampler *s, bool on);

/* How many calls the kernel left out. */
uint64_t sampler_allocs_missed(const struct sampler *s);

#endif
