/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known things: buckets of eight, moved to the front when met, doubled when both are full and it is allowed. */
#include "backend/store/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_BUCKETS = 64, LINE_BYTES = 64 };

void ids_init(struct ids *t, size_t most)
{
	*t = (struct ids){ .most_buckets = FIRST_BUCKETS };
	while (t->most_buckets * ID_WAYS < most)
		t->most_buckets *= 2;
}

void ids_fini(struct ids *t)
{
	free(t->slots);
	*t = (struct ids){ 0 };
}

void ids_clear(struct ids *t)
{
	free(t->slots);
	*t = (struct ids){ .most_buckets = t->most_buckets };
}

struct id_key id_key_of(const void *content, size_t len)
{
	XXH128_hash_t hash = XXH3_128bits(content, len);

	return (struct id_key){ .low = hash.low64, .high = (uint32_t)hash.high64 };
}

/* Two numbers multiplied to one of 128 bits, and its halves put together: one step of a hash, a few cycles. */
struct id_key id_key_below(struct id_key parent, struct id_key frame)
{
	const unsigned __int128 product = (unsigned __int128)(parent.low ^ 0xa0761d6478bd642full) *
					  (frame.low ^ 0xe7037ed1a0b428dbull);

	return (struct id_key){ .low = (uint64_t)product ^ (uint64_t)(product >> 64),
				.high = parent.high * 0x9e3779b1u + frame.high };
}

/* A key may be in either of two buckets, so that both are rarely full before the table is. */
static struct id_slot *bucket_of(const struct ids *t, struct id_key key, int choice)
{
	uint64_t mixed = (key.low ^ key.high) * (choice ? 0xc2b2ae3d27d4eb4full : 0x9e3779b97f4a7c15ull);

	mixed ^= mixed >> 29;
	return &t->slots[(mixed * 0xbf58476d1ce4e5b9ull >> 32 & (t->bucket_count - 1)) * ID_WAYS];
}

void ids_prefetch(const struct ids *t, struct id_key key)
{
	for (int choice = 0; choice < 2 && t->bucket_count; choice++) {
		const struct id_slot *bucket = bucket_of(t, key, choice);

		__builtin_prefetch(&bucket[0]);
		__builtin_prefetch(&bucket[ID_WAYS / 2]);
	}
}

static size_t used_of(const struct id_slot *bucket)
{
	size_t used = 0;

	while (used < ID_WAYS && bucket[used].id)
		used++;
	return used;
}

uint32_t ids_get(struct ids *t, struct id_key key)
{
	for (int choice = 0; choice < 2 && t->bucket_count; choice++) {
		struct id_slot *bucket = bucket_of(t, key, choice);

		for (size_t i = 0; i < ID_WAYS && bucket[i].id; i++) {
			struct id_slot met = bucket[i];

			if (met.low != key.low || met.high != key.high)
				continue;
			if (i) {
				memmove(&bucket[1], &bucket[0], i * sizeof(*bucket));
				bucket[0] = met;
			}
			return met.id;
		}
	}
	return 0;
}

/* The emptier bucket of @key. */
static struct id_slot *choose(const struct ids *t, struct id_key key)
{
	struct id_slot *first = bucket_of(t, key, 0), *second = bucket_of(t, key, 1);

	return used_of(second) < used_of(first) ? second : first;
}

/* Inserts into @bucket, which is one of @key's, at place @at or the first free one before it. */
static void insert(struct ids *t, struct id_slot *bucket, size_t at, struct id_key key, uint32_t id)
{
	const size_t used = used_of(bucket);

	at = used < at ? used : at;
	t->count += used < ID_WAYS;
	memmove(&bucket[at + 1], &bucket[at], (ID_WAYS - 1 - at) * sizeof(*bucket));
	bucket[at] = (struct id_slot){ .low = key.low, .high = key.high, .id = id };
}

static int grow(struct ids *t)
{
	struct ids grown = *t;

	grown.bucket_count = t->bucket_count ? t->bucket_count * 2 : FIRST_BUCKETS;
	grown.count = 0;
	grown.slots = aligned_alloc(LINE_BYTES, ids_memory_bytes(&grown));
	if (!grown.slots)
		return -ENOMEM;
	/* Not calloc(): a page that is read before it is written is faulted in twice. */
	memset(grown.slots, 0, ids_memory_bytes(&grown));
	for (size_t i = t->bucket_count; i > 0; i--) {
		for (size_t k = ID_WAYS; k > 0; k--) {
			const struct id_slot *slot = &t->slots[(i - 1) * ID_WAYS + k - 1];
			const struct id_key key = { slot->low, slot->high };

			if (slot->id)
				insert(&grown, choose(&grown, key), 0, key, slot->id);
		}
	}
	free(t->slots);
	*t = grown;
	return 0;
}

static int put(struct ids *t, size_t at, struct id_key key, uint32_t id)
{
	struct id_slot *bucket = t->bucket_count ? choose(t, key) : NULL;

	if (!bucket || (bucket[ID_WAYS - 1].id && t->bucket_count < t->most_buckets)) {
		int err = grow(t);

		if (err && !bucket)
			return err; /* else the table stays as large as it is */
		bucket = choose(t, key);
	}
	insert(t, bucket, at, key, id);
	return 0;
}

int ids_put(struct ids *t, struct id_key key, uint32_t id)
{
	return put(t, 0, key, id);
}

int ids_put_last(struct ids *t, struct id_key key, uint32_t id)
{
	return put(t, ID_WAYS - 1, key, id);
}
