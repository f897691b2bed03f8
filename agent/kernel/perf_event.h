/* SPDX-License-Identifier: Apache-2.0 */
/* perf_event_open for sampling: events by perf's names, and the list of online CPUs. */
#ifndef HEARTH_AGENT_KERNEL_PERF_EVENT_H
#define HEARTH_AGENT_KERNEL_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_error;

/*
 * Fills @attr (type, config, what is excluded, how precise) for @text, in the form of perf's -e: a name (cpu-clock, cycles,
 * L1-dcache-load-misses, ...), rHEX (a raw event of the CPU) or SYSTEM:EVENT (a tracepoint), but for the last then perhaps
 * ':' and modifiers (u: only user space, k: only the kernel, p: precise). 0, or -EINVAL with @err filled.
 */
int perf_event_parse(const char *text, struct perf_event_attr *attr, struct agent_error *err);

/* Does the same, and fills in a tracepoint's number (see tracepoint_find()); perf_event_parse() fills in only its type. 0,
 * or -errno with @err filled. */
int perf_event_find(const char *text, struct perf_event_attr *attr, struct agent_error *err);

/* Does the event count nanoseconds? */
bool perf_event_is_time(const struct perf_event_attr *attr);

/* How many samples a second of each CPU the kernel allows (kernel.perf_event_max_sample_rate). */
unsigned perf_event_max_freq(void);

/* Opens a disabled event that samples @cpu each @period events, or, if that is 0, @freq_hz times a second. A descriptor or
 * -errno. */
int perf_event_open_cpu(const struct perf_event_attr *kind, uint32_t cpu, unsigned freq_hz, uint64_t period);

/* Reads a CPU list such as "0-3,8" (sysfs's form) from @text into @cpus. Returns their number, or -EBADMSG, -ENOSPC. */
int perf_event_cpus_parse(const char *text, uint32_t *cpus, size_t max);

/* The online CPUs. Their number or -errno. */
int perf_event_cpus_online(uint32_t *cpus, size_t max);

#endif
