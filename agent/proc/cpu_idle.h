/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from /proc/stat how long each CPU was idle. Leaf module: returns errors, never logs. */
#ifndef HEARTH_AGENT_PROC_CPU_IDLE_H
#define HEARTH_AGENT_PROC_CPU_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* One line of /proc/stat: a CPU and how long it was idle since the start of the machine, also for a disk. False: the line is
 * about something else. */
bool cpu_idle_parse(const char *line, uint32_t *cpu, uint64_t *idle_ns);

/* Calls @fn with each CPU that is online. 0 or -errno. */
int cpu_idle_each(void (*fn)(void *arg, uint32_t cpu, uint64_t idle_ns), void *arg);

#endif
