/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large the kernel's caches are made: by the machine, doubled --map-scale times. They are allocated whole when they are
 * made, so their memory is known before. docs/agent.md has the rule and what it was measured by.
 */
#ifndef HEARTH_AGENT_MAP_SIZES_H
#define HEARTH_AGENT_MAP_SIZES_H

#include <stdint.h>

enum { MAX_MAP_SCALE = 8 };

/* What the sizes follow. */
struct map_host {
	uint32_t cpus;	    /* possible ones */
	uint32_t processes; /* running now */
	uint64_t memory_bytes;
};

/* Entries, powers of two. */
struct map_sizes {
	uint32_t procs, mappings, blocks;
};

/* This machine. What cannot be read is taken for 1 CPU, no process, no end of memory. */
void map_host_read(struct map_host *ret);

/* The sizes for @host; @scale is at most MAX_MAP_SCALE. */
struct map_sizes map_sizes_choose(const struct map_host *host, unsigned scale);

/* Kernel memory that the three caches take, within a few percent (element heads of kernel/bpf/hashtab.c). */
uint64_t map_sizes_bytes(const struct map_sizes *sizes);

#endif
