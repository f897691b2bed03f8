/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of the kernel's caches: they follow the machine and are doubled --map-scale times. Caches are allocated whole
 * when they are made, so their memory is known before. docs/agent.md has the rule and its measurements.
 */
#ifndef HEARTH_AGENT_KERNEL_MAP_SIZES_H
#define HEARTH_AGENT_KERNEL_MAP_SIZES_H

#include <stdint.h>

enum { MAX_MAP_SCALE = 8 };

/* The facts that the sizes follow. */
struct map_host {
	uint32_t cpus;	    /* possible CPUs */
	uint32_t processes; /* processes running now */
	uint64_t memory_bytes;
};

/* Entries, powers of two. */
struct map_sizes {
	uint32_t procs, mappings, blocks;
};

/* The facts of this machine. If one cannot be read, it counts as 1 CPU, no process, or endless memory. */
void map_host_read(struct map_host *ret);

/* The sizes for @host; @scale is at most MAX_MAP_SCALE. */
struct map_sizes map_sizes_choose(const struct map_host *host, unsigned scale);

/* Kernel memory that the three caches take, within a few percent (element heads of kernel/bpf/hashtab.c). */
uint64_t map_sizes_bytes(const struct map_sizes *sizes);

#endif
