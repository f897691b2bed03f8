/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of probes (bpf/probe.bpf.c), for the sampler's own files and the kind that turns them on. Their state is
 * sampler.probes. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_PROBES_H
#define HEARTH_AGENT_KERNEL_SAMPLER_PROBES_H

#include "agent/kernel/sampler_state.h"

/* Sets sizes for the probes of @what, between open and load. */
void sampler_probes_configure(struct sampler *s, const struct sampled *what);

/* Loads the programs and attaches them to the probes of @what, whose samples are of the session's @kind; none is taken yet.
 * Of a pattern's functions some may be refused, which is told. 0, or -errno with @err filled. */
int sampler_probes_load(struct sampler *s, const struct sampled *what, uint32_t kind, struct agent_error *err);
void sampler_probes_free(struct sampler *s);

/* Attaches them again, or detaches them. 0 or -errno. */
int sampler_probes_enable(struct sampler *s, bool on);

/* How many events the kernel says that it left out. */
uint64_t sampler_probes_missed(const struct sampler *s);

#endif
