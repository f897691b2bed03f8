/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for map sizes, and the facts that it uses. No state. */
#include <ctype.h>
#include <dirent.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/kernel/map_sizes.h"
#include "agent/proc/proc_root.h"
#include "bpf/event.h"

enum {
	LEAST_PROCS = 1 << 12,
	MOST_PROCS = 1 << 17,
	LEAST_MAPPINGS = 1 << 14,
	MOST_MAPPINGS = 1 << 19,
	LEAST_BLOCKS = 1 << 14,
	MOST_BLOCKS = 1 << 17,

	PROCS_A_PROCESS = 4,	 /* processes that come and go have entries too */
	PROCS_A_CPU = 256,	 /* how many free elements may be in another CPU's own list (bpf_lru_list.c) */
	MAPPINGS_A_PROCESS = 20, /* a Python process has 14; processes that only forked share theirs */
	BLOCKS_A_PROCESS = 4,	 /* hot code grows more slowly than processes, which run the same programs */
	BLOCKS_A_CPU = 1024,	 /* but more CPUs run more different code */
	MEMORY_PART = 512,	 /* of the machine's memory at most one part for the caches ... */
	SMALLEST_PART = 8,	 /* ... but no less than one part of the least sizes above */
};

static uint32_t pow2_within(uint64_t n, uint32_t least, uint32_t most)
{
	uint32_t p = least;

	while (p < n && p < most)
		p *= 2;
	return p;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* struct htab_elem with its LRU node takes 48 bytes, key and value are rounded up to 8, and each entry has a bucket of 16.
 */
static uint64_t lru_bytes(uint64_t entries, uint64_t key_bytes, uint64_t value_bytes)
{
	return entries * (48 + ((key_bytes + 7) & ~7ull) + ((value_bytes + 7) & ~7ull) + 16);
}

uint64_t map_sizes_bytes(const struct map_sizes *sizes)
{
	return lru_bytes(sizes->procs, sizeof(uint32_t), sizeof(struct proc_value)) +
	       lru_bytes(sizes->mappings, sizeof(struct mapping_key), sizeof(struct mapping_value)) +
	       lru_bytes(sizes->blocks, sizeof(struct block_key), sizeof(struct unwind_block));
}

struct map_sizes map_sizes_choose(const struct map_host *host, unsigned scale)
{
	uint64_t cpus = host->cpus, processes = host->processes;
	struct map_sizes s = {
		.procs = pow2_within(larger(processes * PROCS_A_PROCESS, cpus * PROCS_A_CPU), LEAST_PROCS, MOST_PROCS),
		.mappings = pow2_within(processes * MAPPINGS_A_PROCESS, LEAST_MAPPINGS, MOST_MAPPINGS),
		.blocks = pow2_within(larger(processes * BLOCKS_A_PROCESS, cpus * BLOCKS_A_CPU), LEAST_BLOCKS, MOST_BLOCKS),
	};

	/* Halves all three together, so that they keep their proportion. */
	while (map_sizes_bytes(&s) > host->memory_bytes / MEMORY_PART && s.blocks > LEAST_BLOCKS / SMALLEST_PART &&
	       s.mappings > LEAST_MAPPINGS / SMALLEST_PART && s.procs > LEAST_PROCS / SMALLEST_PART) {
		s.procs /= 2;
		s.mappings /= 2;
		s.blocks /= 2;
	}
	s.procs <<= scale;
	s.mappings <<= scale;
	s.blocks <<= scale;
	return s;
}

void map_host_read(struct map_host *ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	DIR *dir = opendir(proc_root());
	struct dirent *entry;
	struct sysinfo info;

	*ret = (struct map_host){ .cpus = cpus > 0 ? (uint32_t)cpus : 1, .memory_bytes = UINT64_MAX };
	while (dir && (entry = readdir(dir)))
		ret->processes += isdigit((unsigned char)entry->d_name[0]) != 0;
	if (dir)
		closedir(dir);
	if (!sysinfo(&info))
		ret->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
}
