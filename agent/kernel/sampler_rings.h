/* SPDX-License-Identifier: Apache-2.0 */
/* The rings by which records come from the kernel, for the sampler's own files. Their state is sampler.rings. Agent's
 * thread. */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_RINGS_H
#define HEARTH_AGENT_KERNEL_SAMPLER_RINGS_H

#include <stdint.h>

struct sampler;

/* Chooses how many there are, and of what size: @wanted_bytes for good, or, when that is 0, a size for @freq_hz samples a
 * second and CPU, which follows what the rings have to hold. Between open and load. */
void sampler_rings_choose(struct sampler *s, uint64_t wanted_bytes, unsigned freq_hz);

/* Makes them, between open and load, and lets a thread put them where the programs will find them. 0 or -errno. */
int sampler_rings_make(struct sampler *s);

/* Waits until they are there, when the programs are loaded. 0 or -errno. */
int sampler_rings_wait(struct sampler *s);

/* Frees them, also those that are half made. */
void sampler_rings_free(struct sampler *s);

#endif
