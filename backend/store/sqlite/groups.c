/* SPDX-License-Identifier: Apache-2.0 */
/* Groups by the value of a label. */
#include "backend/store/sqlite/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

int groups_init(struct groups *g, const char *by)
{
	uint32_t none;

	*g = (struct groups){ .by = by, .values = intern_new() };
	return g->values ? groups_add(g, "", &none) : -ENOMEM; /* group 0 */
}

void groups_fini(struct groups *g)
{
	intern_free(g->values);
	free(g->of_cpu);
	free(g->of_cell);
	map_fini(&g->of_link);
	map_fini(&g->of_set);
}

const char *groups_text(const struct groups *g, uint32_t group)
{
	return intern_get(g->values, group, NULL);
}

int groups_add(struct groups *g, const char *value, uint32_t *ret)
{
	int err = intern_add(g->values, value, strlen(value) + 1, ret);

	return err < 0 ? err : 0;
}

/* Finds the group of every cpu of the series. */
static int find_cpus(struct groups *g, struct scan *scan, uint32_t index)
{
	struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_CPUS);
	uint32_t last = 0;

	if (!g->of_cpu)
		g->of_cpu = calloc(GROUP_CPUS, sizeof(*g->of_cpu));
	if (!g->of_cpu)
		return -ENOMEM;
	g->how = GROUP_CPU;
	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++)
		last = b->cpu[e] - 1 > last ? b->cpu[e] - 1 : last;
	if (last < g->known_cpus)
		return err;
	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++) {
		uint32_t cpu = b->cpu[e] & (GROUP_CPUS - 1), group;
		char text[16] = "";

		if (g->of_cpu[cpu])
			continue;
		if (cpu)
			snprintf(text, sizeof(text), "%u", cpu - 1);
		err = groups_add(g, text, &group);
		g->of_cpu[cpu] = group + 1;
	}
	while (!err && g->known_cpus + 1 < GROUP_CPUS && g->of_cpu[g->known_cpus + 1])
		g->known_cpus++;
	return err;
}

/* Finds the group of every link of the series' events in @mask. */
static int find_links(struct groups *g, struct scan *scan, uint32_t index, const uint8_t *mask)
{
	struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_LINKS);

	g->how = GROUP_LINK;
	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++) {
		uint32_t link = b->link ? b->link[e] : 0, group;
		char text[LINK_TEXT_BYTES];

		if ((mask && !mask[e]) || map_get(&g->of_link, link + 1ull))
			continue;
		err = scan_link_text(scan, g->by, link, text);
		err = err ? err : groups_add(g, text, &group);
		err = err ? err : map_put(&g->of_link, link + 1ull, (void *)(uintptr_t)(group + 1ull));
	}
	return err;
}

/* The key that the groups are first looked for by. */
static const char *key_of(const struct groups *g)
{
	return strcmp(g->by, STORE_COMM_LABEL) ? g->by : STORE_THREAD_LABEL;
}

/* The group of events with the labels @set_id. By comm the process's name stands for a thread's that is not known: that is
 * looked for in the series, too, and so not remembered by the set. */
static int find_cell(struct groups *g, struct scan *scan, uint32_t index, uint32_t set_id, uint32_t *ret)
{
	const uintptr_t known = (uintptr_t)map_get(&g->of_set, set_id);
	int err = 0;
	const struct name_set *set = known ? NULL : names_set(scan->s->names, set_id, &err);
	const char *value = set ? names_set_value(set, key_of(g)) : NULL;

	if (known) {
		*ret = (uint32_t)(known - 1);
		return 0;
	}
	if (!err && !strcmp(g->by, STORE_COMM_LABEL) && !(value && *value)) {
		value = scan_series_value(scan, scan->of[index]->series, STORE_EXE_LABEL, &err);
		if (!value && !err) {
			set = names_set(scan->s->names, set_id, &err);
			value = set ? names_set_value(set, STORE_EXE_LABEL) : NULL;
		}
		return err ? err : groups_add(g, value ? value : "", ret);
	}
	err = err ? err : groups_add(g, value ? value : "", ret);
	return err ? err : map_put(&g->of_set, set_id, (void *)(*ret + (uintptr_t)1));
}

static int find_cells(struct groups *g, struct scan *scan, uint32_t index)
{
	struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_CELLS);
	bool is_one = true;

	if (!err)
		err = vec_reserve(&g->of_cell, &g->of_cell_cap, b->cell_count);
	for (uint32_t c = b->cell_start[index]; !err && c < b->cell_start[index + 1]; c++) {
		err = find_cell(g, scan, index, b->cell_set[c], &g->of_cell[c]);
		is_one &= !err && g->of_cell[c] == g->of_cell[b->cell_start[index]];
	}
	if (err)
		return err;
	g->how = is_one ? GROUP_SERIES : GROUP_CELLS;
	g->of_series = g->of_cell[b->cell_start[index]];
	return 0;
}

const char groups_by_resource[] = "resource";

int groups_find(struct groups *g, struct scan *scan, uint32_t index, const uint8_t *mask)
{
	const char *value;
	char number[16];
	int err = 0;

	g->how = GROUP_SERIES;
	g->of_series = 0;
	if (!g->by)
		return 0;
	if (g->by == groups_by_resource) {
		snprintf(number, sizeof(number), "%" PRIu32, scan->of[index]->series->resource);
		return groups_add(g, number, &g->of_series);
	}
	value = scan_series_value(scan, scan->of[index]->series, key_of(g), &err);
	if (err)
		return err;
	if (value && (*value || strcmp(g->by, STORE_COMM_LABEL)))
		return groups_add(g, value, &g->of_series);
	if (scan_is_of_links(g->by))
		return find_links(g, scan, index, mask);
	return strcmp(g->by, STORE_CPU_LABEL) ? find_cells(g, scan, index) : find_cpus(g, scan, index);
}

int groups_are_one(struct groups *g, struct scan *scan, uint32_t index)
{
	int err;

	if (scan->of[index]->undecided)
		return 0;
	if (g->by && g->by != groups_by_resource && scan_is_of_events(g->by))
		return 0;
	err = groups_find(g, scan, index, NULL);
	return err ? err : g->how == GROUP_SERIES;
}

int groups_events(struct groups *g, struct scan *scan)
{
	int err = scan_part(scan, BLOCK_STACKS);

	err = err ? err : scan_part(scan, BLOCK_WEIGHTS);
	return err || g->how != GROUP_CELLS ? err : scan_part(scan, BLOCK_LABELS);
}

/* --- sums --- */

enum { FIRST_SUMS = 1024 };

void sums_fini(struct sums *t)
{
	free(t->slots);
	*t = (struct sums){ 0 };
}

/* Where @key is, or the free place for it. */
static size_t place_of(const struct sums *t, uint64_t key)
{
	size_t i = sums_place(t, key);

	while (t->slots[i].events && t->slots[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return i;
}

static int grow(struct sums *t)
{
	struct sums grown = { .cap = t->cap ? t->cap * 2 : FIRST_SUMS, .count = t->count };
	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++) {
		if (t->slots[i].events)
			grown.slots[place_of(&grown, t->slots[i].key)] = t->slots[i];
	}
	free(t->slots);
	*t = grown;
	return 0;
}

struct sum *sums_find(struct sums *t, uint64_t key)
{
	struct sum *sum;

	if (t->count * 3 >= t->cap * 2 && grow(t))
		return NULL;
	sum = &t->slots[place_of(t, key)];
	t->count += !sum->events;
	sum->key = key;
	return sum;
}
