/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of each file's names, in the metrics: hearth_module_symbols_samples{module, build_id, source, quality}. The
 * labels are bounded: the MODULES_SHOWN files that most samples had a frame in are shown, the others are summed under
 * [other]. The metric is a gauge: a file gets another series once its names come from elsewhere. Agent's thread.
 */
#ifndef HEARTH_AGENT_REPORT_MODULE_STATUS_H
#define HEARTH_AGENT_REPORT_MODULE_STATUS_H

#include <stdint.h>

#include "proto/profiles.h"

enum { MODULES_SHOWN = 20 };

struct metrics;
struct module_status;

int module_status_new(struct metrics *metrics, struct module_status **ret);
void module_status_free(struct module_status *m);

/* Bytes of memory held, without the series. */
size_t module_status_memory_bytes(const struct module_status *m);

/* The number of the file called @name with @build_id ("": none), whose names come from @source (a literal); good until the
 * next module_status_publish. UINT32_MAX without memory. */
uint32_t module_status_find(struct module_status *m, struct str name, const char *build_id, const char *source);

/* Counts @samples more with a frame in the module. */
void module_status_add(struct module_status *m, uint32_t module, uint64_t samples);

/* Ends an interval: brings the metrics up to date. */
void module_status_publish(struct module_status *m);

#endif
