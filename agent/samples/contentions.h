/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a lock was waited for, told by the samples of waits for it. A wait of length d is chosen with the chance
 * min(1, d / T) and counts max(d, T) of time (bpf/draw.h), so value / d is how many waits a chosen one stands for: in the
 * mean just as many as there were. No state.
 */
#ifndef HEARTH_AGENT_SAMPLES_CONTENTIONS_H
#define HEARTH_AGENT_SAMPLES_CONTENTIONS_H

#include <stdint.h>

#include "agent/samples/record.h"

/* The number of waits for a futex that @s, a sample of time until a thread was woken, stands for; 0 where it was none. A
 * wait that is told in parts, as it lasts, is counted with its first one. */
uint64_t contentions_of(const struct pending_sample *s);

#endif
