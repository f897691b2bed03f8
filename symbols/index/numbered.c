/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbering by use: an open-addressing hash table of numbers over an array of entries, which is small enough to stay in the
 * CPU's cache where base/intern.h would not. Invariant: at most half of the slots are taken, so that a search ends.
 */
#include "symbols/index/numbered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/code/names.h"

enum { FIRST_SLOTS = 1024 };

static uint32_t hash_of(const uint32_t key[3])
{
	uint64_t h = ((uint64_t)key[0] << 32 | key[1]) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 32 ^ key[2]) * 0xc2b2ae3d27d4eb4f;
	return (uint32_t)(h >> 32);
}

/* Doubles the slots and the room for entries. */
static bool grow(struct numbered *n)
{
	uint32_t count = n->slot_count ? n->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = count ? calloc(count, sizeof(*slots)) : NULL;
	struct numbered_entry *entries = slots ? realloc(n->entries, count / 2 * sizeof(*entries)) : NULL;

	if (!entries) {
		free(slots);
		n->failed = true;
		return false;
	}
	free(n->slots);
	n->slots = slots;
	n->slot_count = count;
	n->entries = entries;
	for (uint32_t i = 0; i < n->count; i++) {
		uint32_t at = hash_of(entries[i].key) & (count - 1);

		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = i + 1;
	}
	return true;
}

uint32_t numbered_add(struct numbered *n, uint32_t a, uint32_t b, uint32_t c)
{
	struct numbered_entry entry = { .key = { a, b, c } };
	uint32_t at;

	if (n->failed || (n->count == n->slot_count / 2 && !grow(n)))
		return CODE_NONE;
	for (at = hash_of(entry.key) & (n->slot_count - 1); n->slots[at]; at = (at + 1) & (n->slot_count - 1)) {
		if (memcmp(n->entries[n->slots[at] - 1].key, entry.key, sizeof(entry.key)) == 0)
			return n->slots[at] - 1;
	}
	n->entries[n->count] = entry;
	n->slots[at] = ++n->count;
	return n->count - 1;
}

uint32_t numbered_use(struct numbered *n, uint32_t number)
{
	if (n->failed)
		return 0;
	n->entries[number].uses++;
	return (n->final ? n->final[number] : number) + 1;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int numbered_finish(struct numbered *n)
{
	AUTO_FREE uint64_t *order = malloc((n->count + 1ull) * sizeof(*order));

	n->final = malloc((n->count + 1ull) * sizeof(*n->final));
	if (!order || !n->final || n->failed)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->count; i++)
		order[i] = (uint64_t)(UINT32_MAX - n->entries[i].uses) << 32 | i;
	qsort(order, n->count, sizeof(*order), compare_u64);
	for (uint32_t i = 0; i < n->count; i++)
		n->final[(uint32_t)order[i]] = i;
	return 0;
}

struct numbered_entry *numbered_in_order(const struct numbered *n)
{
	struct numbered_entry *sorted = malloc((n->count + 1ull) * sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < n->count; i++)
		sorted[n->final[i]] = n->entries[i];
	return sorted;
}

void numbered_fini(struct numbered *n)
{
	free(n->entries);
	free(n->slots);
	free(n->final);
}
