/* SPDX-License-Identifier: Apache-2.0 */
/* From the traces of one report interval to a struct profiles: names, locations, resources, samples. */
#ifndef HEARTH_AGENT_INTERVAL_H
#define HEARTH_AGENT_INTERVAL_H

#include <stdint.h>

#include "agent/names.h"
#include "agent/traces.h"
#include "proto/profiles.h"

struct interval;

/* @freq_hz fixes the period. @names is borrowed. */
int interval_new(struct names *names, unsigned freq_hz, const char *event, struct interval **ret);
void interval_free(struct interval *iv);

/* The profiles of @t (not reset by this); window [@start_ns, @end_ns) of CLOCK_MONOTONIC. 0 or -ENOMEM. */
int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns, struct profiles **ret);

#endif
