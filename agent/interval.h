/* SPDX-License-Identifier: Apache-2.0 */
/* From the traces of one report interval to a struct profiles: names, locations, resources, samples. */
#ifndef HEARTH_AGENT_INTERVAL_H
#define HEARTH_AGENT_INTERVAL_H

#include <stdint.h>

#include "agent/jit_names.h"
#include "agent/module_status.h"
#include "agent/names.h"
#include "agent/traces.h"
#include "agent/truth_counts.h"
#include "proto/profiles.h"

struct agent_config;
struct interval;

/* Of @config the frequency and the event (the period), and whether error frames are wanted. @names, @jit_names and @truths
 * are borrowed.
 */
int interval_new(struct names *names, struct jit_names *jit_names, struct truth_counts *truths,
		 struct module_status *modules, const struct agent_config *config, struct interval **ret);
void interval_free(struct interval *iv);

/* Bytes of memory held, the builder's included. */
size_t interval_memory_bytes(const struct interval *iv);

/* The profiles of @t (not reset by this); window [@start_ns, @end_ns) of CLOCK_MONOTONIC. Of a busy interval this takes
 * long:
 * @on_wait (or NULL) is called now and then. 0 or -ENOMEM. */
int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns,
		   void (*on_wait)(void *arg), void *arg, struct profiles **ret);

#endif
