/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to attach a program to a probe, as far as this kernel has them. No state. */
#ifndef HEARTH_AGENT_KERNEL_PROBE_WAYS_H
#define HEARTH_AGENT_KERNEL_PROBE_WAYS_H

#include <stdbool.h>
#include <stdint.h>

enum probe_way { PROBE_WAY_UPROBE, PROBE_WAY_KPROBE, PROBE_WAY_TRAMPOLINE, PROBE_WAY_MULTI };

/* Does this kernel have @way? It is tried, as far as that changes nothing. */
bool probe_way_is_there(enum probe_way way);

/* The number of a unit of perf events ("uprobe"); 0: there is none. */
uint32_t probe_unit(const char *name);

enum { UPROBE_MULTI = 48 }; /* BPF_TRACE_UPROBE_MULTI, uapi/linux/bpf.h since 6.6 */

/* Makes one link of @program for @count places in the file @path, with a cookie and a counter (0: none) each. Its
 * descriptor, the caller's, or -errno. */
int probe_multi_link(int program, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
		     const uint64_t *cookies, uint32_t count, bool is_return);

#endif
