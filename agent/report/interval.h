/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a struct profiles from the traces of one report interval: names, locations, resources, samples. */
#ifndef HEARTH_AGENT_REPORT_INTERVAL_H
#define HEARTH_AGENT_REPORT_INTERVAL_H

#include <stdint.h>

#include "agent/kind/kind.h"
#include "agent/report/module_status.h"
#include "agent/names/names.h"
#include "agent/runtime/runtimes.h"
#include "agent/samples/traces.h"
#include "agent/report/truth_counts.h"
#include "proto/profiles.h"

struct agent_config;
struct interval;

/* Profiles are of @kinds; @config gives the attributes of all resources, and whether error frames are wanted. @names,
 * @runtimes, @truths and @modules are borrowed. 0 or -ENOMEM. */
int interval_new(struct names *names, struct runtimes *runtimes, struct truth_counts *truths, struct module_status *modules,
		 const struct agent_config *config, const struct session_kinds *kinds, struct interval **ret);
void interval_free(struct interval *iv);

/* Bytes of memory held, the builder's included. */
size_t interval_memory_bytes(const struct interval *iv);

/* Builds the profiles of @t (not reset by this); window [@start_ns, @end_ns) of CLOCK_MONOTONIC. For a busy interval this
 * takes long: @hook (or NULL) runs now and then. 0 or -ENOMEM. */
int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns,
		   const struct wait_hook *hook, struct profiles **ret);

#endif
