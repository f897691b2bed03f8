/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pointer map: linear probing over a power-of-two array. Invariants: at most 3/4 of the slots are taken, and no free
 * slot lies between an entry and its home slot (deletion moves followers back instead of leaving tombstones).
 */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 16 };

void map_fini(struct map *m)
{
	free(m->slots);
	*m = MAP_EMPTY;
}

/* Keys are pids, addresses and inode numbers: close together or multiples of something, so their bits are mixed first. */
static size_t home_slot(const struct map *m, uint64_t key)
{
	key ^= key >> 32;
	key *= 0x9e3779b97f4a7c15ull;
	key ^= key >> 29;
	return key & (m->cap - 1);
}

/* The slot of @key, or the free one where it would go. The map has slots. */
static struct map_slot *find_slot(const struct map *m, uint64_t key)
{
	size_t at = home_slot(m, key);

	while (m->slots[at].value && m->slots[at].key != key)
		at = (at + 1) & (m->cap - 1);
	return &m->slots[at];
}

void *map_get(const struct map *m, uint64_t key)
{
	return m->count ? find_slot(m, key)->value : NULL;
}

static int grow(struct map *m)
{
	struct map bigger = { .cap = m->cap ? m->cap * 2 : FIRST_SLOTS, .count = m->count };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].value)
			*find_slot(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, void *value)
{
	struct map_slot *slot = m->cap ? find_slot(m, key) : NULL;

	if (!slot || (!slot->value && m->count >= m->cap / 4 * 3)) {
		int err = grow(m);

		if (err)
			return err;
		slot = find_slot(m, key);
	}
	if (!slot->value)
		m->count++;
	*slot = (struct map_slot){ .key = key, .value = value };
	return 0;
}

static void remove_slot(struct map *m, size_t hole)
{
	size_t mask = m->cap - 1;

	for (size_t at = (hole + 1) & mask; m->slots[at].value; at = (at + 1) & mask) {
		/* An entry may move into the hole unless its home lies behind the hole, up to where it is now. */
		if (((at - home_slot(m, m->slots[at].key)) & mask) >= ((at - hole) & mask)) {
			m->slots[hole] = m->slots[at];
			hole = at;
		}
	}
	m->slots[hole].value = NULL;
	m->count--;
}

void *map_del(struct map *m, uint64_t key)
{
	struct map_slot *slot = m->count ? find_slot(m, key) : NULL;
	void *value = slot ? slot->value : NULL;

	if (value)
		remove_slot(m, (size_t)(slot - m->slots));
	return value;
}

void map_sweep(struct map *m, void *(*keep)(void *arg, void *value), void *arg)
{
	size_t start = 0;

	/* The walk starts behind a free slot, so an entry that moves into a hole comes from ahead and is not met twice. */
	while (start < m->cap && m->slots[start].value)
		start++;
	for (size_t i = 1; i < m->cap;) {
		size_t at = (start + i) & (m->cap - 1);
		void *value = m->slots[at].value, *kept = value ? keep(arg, value) : NULL;

		m->slots[at].value = kept;
		if (value && !kept)
			remove_slot(m, at); /* and another may be here now */
		else
			i++;
	}
}

bool map_next(const struct map *m, size_t *pos, uint64_t *key_ret, void **value_ret)
{
	for (; *pos < m->cap; (*pos)++) {
		const struct map_slot *slot = &m->slots[*pos];

		if (!slot->value)
			continue;
		if (key_ret)
			*key_ret = slot->key;
		if (value_ret)
			*value_ret = slot->value;
		(*pos)++;
		return true;
	}
	return false;
}
