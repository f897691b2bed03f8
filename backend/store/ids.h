/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of things that the store's writer has already kept: from the 128-bit hash of a thing's content to its number. 96
 * bits of the hash are held. The table is bounded: when it is at its largest, the thing of a bucket that was not met for
 * longest is forgotten, and would be kept a second time under another number; readers put equal things together by content,
 * so that costs bytes alone. Not shared between threads.
 */
#ifndef HEARTH_BACKEND_STORE_IDS_H
#define HEARTH_BACKEND_STORE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_key {
	uint64_t low;
	uint32_t high;
};

struct id_slot {
	uint64_t low;
	uint32_t high;
	uint32_t id; /* 0: free */
};

struct ids {
	struct id_slot *slots; /* buckets of ID_WAYS, newest met first; each two lines of cache */
	size_t bucket_count;   /* power of two or 0 */
	size_t most_buckets;
	size_t count;
};

enum { ID_WAYS = 8 };

/* At most @most entries are held, rounded up to a power of two. */
void ids_init(struct ids *t, size_t most);
void ids_fini(struct ids *t);
void ids_clear(struct ids *t); /* forgets all, keeps the bound */

/* Bytes of memory held. */
static inline size_t ids_memory_bytes(const struct ids *t)
{
	return t->bucket_count * ID_WAYS * sizeof(*t->slots);
}

struct id_key id_key_of(const void *content, size_t len);

/* The key of the frame whose key is @frame below the node whose key is @parent ({ 0 }: none): of its whole path. So a node
 * is found without those above it, and is not new when one of them, or a frame, was forgotten. */
struct id_key id_key_below(struct id_key parent, struct id_key frame);

static inline bool id_key_is_none(struct id_key key)
{
	return !key.low && !key.high;
}

/* The number under @key, or 0. */
uint32_t ids_get(struct ids *t, struct id_key key);

/* Has memory on its way here for an ids_get() of @key soon. */
void ids_prefetch(const struct ids *t, struct id_key key);

/* Puts @id, not 0, under @key, which is not there. 0 or -ENOMEM. */
int ids_put(struct ids *t, struct id_key key, uint32_t id);

/* The same for what is likely not met again: until it is, it is the first to be forgotten. So it does not push out things
 * that come time and again. */
int ids_put_last(struct ids *t, struct id_key key, uint32_t id);

#endif
