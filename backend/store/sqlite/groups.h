/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by the value of a label: which group each event of a block belongs to, and sums by (group, number). */
#ifndef HEARTH_BACKEND_STORE_SQLITE_GROUPS_H
#define HEARTH_BACKEND_STORE_SQLITE_GROUPS_H

#include "backend/store/sqlite/scan.h"
#include "base/intern.h"

enum { GROUP_CPUS = 1 << 16 };

/* Instead of a label (told by its address): groups are resources, their texts the numbers of their sets. */
extern const char groups_by_resource[];

struct groups {
	const char *by;	       /* NULL: one group, "" */
	struct intern *values; /* with their NUL */
	uint32_t *of_cpu;      /* group + 1 of each cpu + 1; allocated when needed */
	uint32_t known_cpus;   /* so many, from cpu 0 on, have one */
	uint32_t *of_cell;     /* of each cell of the block */
	size_t of_cell_cap;
	struct map of_link; /* link + 1 -> group + 1 */
	struct map of_set;  /* a set of labels -> group + 1, where it says the group by itself */
	/* of the series last asked about */
	enum { GROUP_SERIES, GROUP_CELLS, GROUP_CPU, GROUP_LINK } how;
	uint32_t of_series;
};

int groups_init(struct groups *g, const char *by);
void groups_fini(struct groups *g);
const char *groups_text(const struct groups *g, uint32_t group);

/* Finds out about the block's series @index: of_series, or of_cell of its cells, as @how says. By links: of the events in
 * @mask alone, as scan_mask() gives it. */
int groups_find(struct groups *g, struct scan *scan, uint32_t index, const uint8_t *mask);

/* Whether what the block's series @index adds up to is all that is asked of it: all its events are selected, and of one
 * group. 1, 0 or -errno. */
int groups_are_one(struct groups *g, struct scan *scan, uint32_t index);

/* Reads the parts needed to look at events one by one; groups_of() may be called then. */
int groups_events(struct groups *g, struct scan *scan);

/* The group of a value's text. 0 or -ENOMEM. */
int groups_add(struct groups *g, const char *value, uint32_t *ret);

static inline uint32_t groups_of(const struct groups *g, const struct block *b, uint32_t event)
{
	if (g->how == GROUP_SERIES)
		return g->of_series;
	if (g->how == GROUP_LINK)
		return (uint32_t)(uintptr_t)map_get(&g->of_link, (b->link ? b->link[event] : 0) + 1ull) - 1;
	return g->how == GROUP_CELLS ? g->of_cell[b->label[event]] : g->of_cpu[b->cpu[event] & (GROUP_CPUS - 1)] - 1;
}

/* Sums by (group, number): open addressing. */
struct sum {
	uint64_t key; /* group << 32 | number */
	int64_t weight;
	uint64_t events; /* 0: free */
};

struct sums {
	struct sum *slots;
	size_t cap, count; /* cap: a power of two, or 0 */
};

void sums_fini(struct sums *t);

/* The first place to look for @key; below bit 32 the group is not in the product. */
static inline size_t sums_place(const struct sums *t, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 32 & (t->cap - 1);
}

/* The sum under @key, a free one if there is none; NULL when out of memory. What is at the first place needs none of it. */
struct sum *sums_find(struct sums *t, uint64_t key);

/* 0 or -ENOMEM. @events is not 0. Called for each event. */
static inline int sums_add(struct sums *t, uint32_t group, uint32_t number, int64_t weight, uint64_t events)
{
	const uint64_t key = (uint64_t)group << 32 | number;
	struct sum *sum = t->cap ? &t->slots[sums_place(t, key)] : NULL;

	if (!sum || sum->key != key || !sum->events) {
		sum = sums_find(t, key);
		if (!sum)
			return -ENOMEM;
	}
	sum->weight = weights_add(sum->weight, weight);
	sum->events += events;
	return 0;
}

#endif
