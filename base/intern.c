/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interning table: an open-addressing hash table of (hash, index) over keys that lie one behind the other in one block
 * of 8-byte words. A slot keeps 32 bits of its key's hash, so growing moves slots without touching key bytes and a probe
 * compares bytes only where the hashes agree. Invariant: at most 3/4 of the slots are taken; slot.index_plus_1 is 0 for a
 * free slot. Offsets are counted in words, which bounds one table to 32 GiB of keys.
 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vec.h"

enum {
	FIRST_SLOTS = 64, /* power of two */
	FIRST_ENTRIES = 48,
	FIRST_WORDS = 128,
};

struct slot {
	uint32_t index_plus_1;
	uint32_t hash;
};

struct entry {
	uint32_t first_word;
	uint32_t len_bytes;
};

struct intern {
	struct slot *slots;
	size_t slot_count; /* power of two */
	struct entry *entries;
	uint32_t entry_count;
	size_t entry_cap;
	uint64_t *words;
	size_t word_count;
	size_t word_cap;
};

struct intern *intern_new(void)
{
	struct intern *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->slot_count = FIRST_SLOTS;
	t->slots = calloc(FIRST_SLOTS, sizeof(*t->slots));
	t->entry_cap = FIRST_ENTRIES;
	t->entries = malloc(FIRST_ENTRIES * sizeof(*t->entries));
	t->word_cap = FIRST_WORDS;
	t->words = malloc(FIRST_WORDS * sizeof(*t->words));
	if (!t->slots || !t->entries || !t->words) {
		intern_free(t);
		return NULL;
	}
	return t;
}

void intern_free(struct intern *t)
{
	if (!t)
		return;
	free(t->slots);
	free(t->entries);
	free(t->words);
	free(t);
}

/* Doubles the slots; every key is distinct already, so the first free slot of its probe sequence will do. */
static int grow_slots(struct intern *t)
{
	size_t count = t->slot_count * 2;
	struct slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->slot_count; i++) {
		size_t at = t->slots[i].hash & (count - 1);

		if (!t->slots[i].index_plus_1)
			continue;
		while (slots[at].index_plus_1)
			at = (at + 1) & (count - 1);
		slots[at] = t->slots[i];
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	return 0;
}

/* Copies the key in as the next entry; the caller links it from a slot. */
static int append_entry(struct intern *t, const void *key, size_t len_bytes)
{
	size_t words = len_bytes / 8 + (len_bytes % 8 != 0);

	if (t->word_count + words > UINT32_MAX || t->entry_count == UINT32_MAX - 1)
		return -ENOMEM;
	if (vec_reach(&t->entries, &t->entry_cap, t->entry_count) ||
	    vec_reserve(&t->words, &t->word_cap, t->word_count + words))
		return -ENOMEM;
	if (len_bytes)
		memcpy(t->words + t->word_count, key, len_bytes);
	t->entries[t->entry_count++] = (struct entry){ .first_word = (uint32_t)t->word_count,
						       .len_bytes = (uint32_t)len_bytes };
	t->word_count += words;
	return 0;
}

static int entry_equals(const struct intern *t, uint32_t index, const void *key, size_t len_bytes)
{
	const struct entry *e = &t->entries[index];

	return e->len_bytes == len_bytes && (!len_bytes || memcmp(t->words + e->first_word, key, len_bytes) == 0);
}

/* The slot of @key, or the free one where it belongs. */
static size_t find_slot(const struct intern *t, const void *key, size_t len_bytes, uint32_t hash)
{
	size_t at = hash & (t->slot_count - 1);

	while (t->slots[at].index_plus_1 &&
	       (t->slots[at].hash != hash || !entry_equals(t, t->slots[at].index_plus_1 - 1, key, len_bytes)))
		at = (at + 1) & (t->slot_count - 1);
	return at;
}

bool intern_find(const struct intern *t, const void *key, size_t len_bytes, uint32_t *index_ret)
{
	size_t at = find_slot(t, key, len_bytes, (uint32_t)XXH3_64bits(key, len_bytes));

	if (t->slots[at].index_plus_1)
		*index_ret = t->slots[at].index_plus_1 - 1;
	return t->slots[at].index_plus_1;
}

int intern_add(struct intern *t, const void *key, size_t len_bytes, uint32_t *index_ret)
{
	uint32_t hash;
	size_t at;
	int err;

	if (len_bytes > UINT32_MAX)
		return -ENOMEM;
	hash = (uint32_t)XXH3_64bits(key, len_bytes);
	/* Growing first keeps a free slot at the end of every probe. */
	if ((size_t)t->entry_count + 1 > t->slot_count / 4 * 3) {
		err = grow_slots(t);
		if (err)
			return err;
	}
	at = find_slot(t, key, len_bytes, hash);
	if (t->slots[at].index_plus_1) {
		*index_ret = t->slots[at].index_plus_1 - 1;
		return 0;
	}
	err = append_entry(t, key, len_bytes);
	if (err)
		return err;
	t->slots[at] = (struct slot){ .index_plus_1 = t->entry_count, .hash = hash };
	*index_ret = t->entry_count - 1;
	return 1;
}

const void *intern_get(const struct intern *t, uint32_t index, size_t *len_ret)
{
	if (len_ret)
		*len_ret = t->entries[index].len_bytes;
	return t->words + t->entries[index].first_word;
}

uint32_t intern_count(const struct intern *t)
{
	return t->entry_count;
}

size_t intern_memory_bytes(const struct intern *t)
{
	return sizeof(*t) + t->slot_count * sizeof(*t->slots) + t->entry_cap * sizeof(*t->entries) +
	       t->word_cap * sizeof(*t->words);
}

void intern_shrink(struct intern *t)
{
	struct intern *fresh = t->slot_count > FIRST_SLOTS || t->word_cap > FIRST_WORDS ? intern_new() : NULL;
	struct intern old = *t;

	if (!fresh) {
		intern_reset(t);
		return;
	}
	*t = *fresh;
	*fresh = old;
	intern_free(fresh);
}

void intern_reset(struct intern *t)
{
	memset(t->slots, 0, t->slot_count * sizeof(*t->slots));
	t->entry_count = 0;
	t->word_count = 0;
}
