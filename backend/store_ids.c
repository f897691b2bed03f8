/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known things: buckets of eight, moved to the front when met, doubled while that is allowed. */
#include "backend/store_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_BUCKETS = 64 };

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

/* Keys of nodes are no hashes, so they are mixed here. */
static struct id_slot *bucket_of(const struct ids *t, struct id_key key)
{
	uint64_t mixed = (key.low ^ key.high) * 0x9e3779b97f4a7c15ull;

	return &t->slots[(mixed >> 32 & (t->bucket_count - 1)) * ID_WAYS];
}

uint32_t ids_get(struct ids *t, struct id_key key)
{
	struct id_slot *bucket;

	if (!t->bucket_count)
		return 0;
	bucket = bucket_of(t, key);
	for (size_t i = 0; i < ID_WAYS && bucket[i].id; i++) {
		struct id_slot met = bucket[i];

		if (met.low != key.low || met.high != key.high)
			continue;
		memmove(&bucket[1], &bucket[0], i * sizeof(*bucket));
		bucket[0] = met;
		return met.id;
	}
	return 0;
}

static void insert(struct ids *t, struct id_key key, uint32_t id)
{
	struct id_slot *bucket = bucket_of(t, key);

	if (!bucket[ID_WAYS - 1].id)
		t->count++;
	memmove(&bucket[1], &bucket[0], (ID_WAYS - 1) * sizeof(*bucket));
	bucket[0] = (struct id_slot){ .low = key.low, .high = key.high, .id = id };
}

static int grow(struct ids *t)
{
	struct ids grown = *t;

	grown.bucket_count = t->bucket_count ? t->bucket_count * 2 : FIRST_BUCKETS;
	grown.count = 0;
	grown.slots = calloc(grown.bucket_count * ID_WAYS, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = t->bucket_count; i > 0; i--) {
		for (size_t k = ID_WAYS; k > 0; k--) {
			const struct id_slot *slot = &t->slots[(i - 1) * ID_WAYS + k - 1];

			if (slot->id)
				insert(&grown, (struct id_key){ slot->low, slot->high }, slot->id);
		}
	}
	free(t->slots);
	*t = grown;
	return 0;
}

int ids_put(struct ids *t, struct id_key key, uint32_t id)
{
	bool is_full = t->bucket_count && bucket_of(t, key)[ID_WAYS - 1].id;

	/* A full bucket in a table with much room left is chance, and loses its oldest. */
	if ((!t->bucket_count || (is_full && t->count * 2 > t->bucket_count * ID_WAYS)) &&
	    t->bucket_count < t->most_buckets) {
		int err = grow(t);

		if (err && !t->bucket_count)
			return err; /* else the table stays as large as it is */
	}
	insert(t, key, id);
	return 0;
}
