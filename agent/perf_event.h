/* SPDX-License-Identifier: Apache-2.0 */
/* perf_event_open for sampling: events by perf's names, and the list of online CPUs. */
#ifndef HEARTH_AGENT_PERF_EVENT_H
#define HEARTH_AGENT_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/* Fills type and config of @attr for @name (cpu-clock, task-clock, cycles, instructions, ...). 0 or -EINVAL. */
int perf_event_by_name(const char *name, struct perf_event_attr *attr);

/* The names perf_event_by_name knows, comma separated. */
const char *perf_event_names(void);

/* A disabled event that samples @cpu @freq_hz times a second. A descriptor or -errno. */
int perf_event_open_cpu(const struct perf_event_attr *kind, uint32_t cpu, unsigned freq_hz);

/* Reads a CPU list such as "0-3,8" (sysfs's form) from @text into @cpus. Their number, or -EBADMSG, -ENOSPC. */
int cpu_list_parse(const char *text, uint32_t *cpus, size_t max);

/* The online CPUs. Their number or -errno. */
int cpu_list_online(uint32_t *cpus, size_t max);

#endif
