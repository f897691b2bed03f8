/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from a 64-bit key to a non-NULL pointer (open addressing; it grows and never shrinks). The map does not own the
 * objects that the pointers lead to. Not shared between threads.
 */
#ifndef HEARTH_BASE_MAP_H
#define HEARTH_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

struct map {
	struct map_slot *slots; /* owned; NULL while empty */
	size_t cap;		/* power of two or 0 */
	size_t count;
};

#define MAP_EMPTY ((struct map){ 0 })

void map_fini(struct map *m);

/* Returns the pointer under @key or NULL. */
void *map_get(const struct map *m, uint64_t key);

/* Puts @value (not NULL) under @key, replacing the value before. 0 or -ENOMEM. */
int map_put(struct map *m, uint64_t key, void *value);

/* Removes @key and returns its value, or NULL. */
void *map_del(struct map *m, uint64_t key);

/* Shows each entry once to @keep, which returns the new value for the key; NULL removes the entry. */
void map_sweep(struct map *m, void *(*keep)(void *arg, void *value), void *arg);

/* Either of @key_ret and @value_ret may be NULL. Walks all entries: start with *pos = 0; false at the end. Entries must not
 * be added or removed on the way. */
bool map_next(const struct map *m, size_t *pos, uint64_t *key_ret, void **value_ret);

/* Bytes of memory held, without the objects that the pointers lead to. */
static inline size_t map_memory_bytes(const struct map *m)
{
	return m->cap * sizeof(*m->slots);
}

#endif
