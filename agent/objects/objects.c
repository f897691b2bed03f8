/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/objects/objects.h"
#include "base/map.h"
#include "base/vec.h"

struct objects {
	struct map by_hash;    /* -> the first of a list */
	struct object **by_id; /* [id - 1]; NULL: free */
	uint32_t cap, id_cnt;
	uint32_t *free_ids;
	uint32_t free_cnt, free_cap;
	uint32_t count;
	size_t bytes;
};

int objects_new(struct objects **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	map_fini(&o->by_hash);
	free(o->by_id);
	free(o->free_ids);
	free(o);
}

/* A free id, with room for it to be given back later; 0: there is no memory. One is left. */
static uint32_t take_id(struct objects *o)
{
	if (o->free_cnt)
		return o->free_ids[--o->free_cnt];
	if (vec_reach(&o->by_id, &o->cap, o->id_cnt) || vec_reach(&o->free_ids, &o->free_cap, o->id_cnt))
		return 0;
	o->by_id[o->id_cnt] = NULL;
	return ++o->id_cnt;
}

int objects_add(struct objects *o, uint32_t runtime, const void *content, uint32_t len, struct object **ret)
{
	uint64_t hash = XXH3_64bits(content, len);
	struct object *first = map_get(&o->by_hash, hash), *object;
	uint32_t id;

	for (object = first; object; object = object->next) {
		if (object->runtime == runtime && object->len_bytes == len && !memcmp(object->content, content, len)) {
			*ret = object_get(object);
			return 0;
		}
	}
	if (!o->free_cnt && o->id_cnt >= OBJECT_IDS - 1)
		return -ENOSPC;
	object = malloc(sizeof(*object) + len);
	id = object ? take_id(o) : 0;
	if (!id || map_put(&o->by_hash, hash, object)) {
		if (id)
			o->free_ids[o->free_cnt++] = id;
		free(object);
		return -ENOMEM;
	}
	*object = (struct object){
		.id = id, .refs = 1, .runtime = runtime, .len_bytes = len, .hash = hash, .next = first, .all = o
	};
	memcpy(object->content, content, len);
	o->by_id[id - 1] = object;
	o->count++;
	o->bytes += sizeof(*object) + len;
	*ret = object;
	return 0;
}

struct object *objects_find(const struct objects *o, uint32_t id)
{
	return id && id <= o->id_cnt ? o->by_id[id - 1] : NULL;
}

struct object *object_get(struct object *object)
{
	if (object)
		object->refs++;
	return object;
}

void object_put(struct object *object)
{
	struct objects *o;
	struct object *first, *at;

	if (!object || --object->refs)
		return;
	o = object->all;
	first = map_get(&o->by_hash, object->hash);
	if (first == object && object->next) {
		(void)map_put(&o->by_hash, object->hash, object->next); /* replaces: needs no memory */
	} else if (first == object) {
		(void)map_del(&o->by_hash, object->hash);
	} else {
		for (at = first; at->next != object; at = at->next)
			;
		at->next = object->next;
	}
	o->by_id[object->id - 1] = NULL;
	o->free_ids[o->free_cnt++] = object->id;
	o->count--;
	o->bytes -= sizeof(*object) + object->len_bytes;
	free(object);
}

uint32_t objects_count(const struct objects *o)
{
	return o->count;
}

size_t objects_memory_bytes(const struct objects *o)
{
	return sizeof(*o) + map_memory_bytes(&o->by_hash) + o->cap * sizeof(*o->by_id) + o->free_cap * sizeof(*o->free_ids) +
	       o->bytes;
}
