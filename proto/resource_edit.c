/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/resource_edit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

enum { ROOM = 16, MAX_ATTRIBUTES = 4096 };

struct key_values resource_edit_list(const struct resource_edit *e)
{
	if (e->items)
		return (struct key_values){ e->items, e->count };
	return e->resource < e->from->resource_count ? e->from->resources[e->resource].resource.attributes
						     : (struct key_values){ NULL, 0 };
}

/* The first change makes the object that is changed, and the first of a resource a list of its own. */
static bool begin(struct resource_edit *e)
{
	struct key_values list = resource_edit_list(e);

	if (!e->to)
		e->to = profiles_derive(e->from);
	if (e->to && !e->items && !vec_reserve(&e->items, &e->cap, list.count + ROOM)) {
		if (list.count)
			memcpy(e->items, list.items, list.count * sizeof(*list.items));
		e->count = list.count;
	}
	e->failed |= !e->to || !e->items;
	return !e->failed;
}

const struct any_value *resource_edit_find(const struct resource_edit *e, const char *key)
{
	struct key_values list = resource_edit_list(e);

	return profiles_find_key(e->from, &list, key);
}

static struct str copy(struct resource_edit *e, struct str text)
{
	char *bytes = text.len ? profiles_alloc(e->to, text.len) : NULL;

	if (!text.len)
		return STR("");
	if (!bytes) {
		e->failed = true;
		return STR("");
	}
	memcpy(bytes, text.data, text.len);
	return (struct str){ bytes, text.len };
}

void resource_edit_set(struct resource_edit *e, struct str key, const struct any_value *value)
{
	struct any_value copied = *value;
	uint32_t at = 0;

	if (e->failed || !begin(e))
		return;
	if (value->kind == VALUE_STRING || value->kind == VALUE_BYTES)
		copied.string = copy(e, value->string);
	for (; at < e->count; at++) {
		struct str name = profiles_key(e->from, &e->items[at]);

		if (name.len == key.len && !memcmp(name.data, key.data, key.len))
			break;
	}
	if (at == e->count) {
		if (e->count >= MAX_ATTRIBUTES)
			return;
		if (vec_reach(&e->items, &e->cap, e->count)) {
			e->failed = true;
			return;
		}
		e->items[e->count++] = (struct key_value){ .key = copy(e, key) };
	}
	e->items[at].value = copied;
}

void resource_edit_set_list(struct resource_edit *e, struct str key, const struct str *texts, uint32_t count)
{
	struct any_value list = { .kind = VALUE_ARRAY };

	if (e->failed || !begin(e))
		return;
	list.array.items = profiles_alloc(e->to, (count ? count : 1) * sizeof(*list.array.items));
	e->failed |= !list.array.items;
	for (; list.array.items && list.array.count < count; list.array.count++)
		list.array.items[list.array.count] = (struct any_value){ .kind = VALUE_STRING,
									 .string = copy(e, texts[list.array.count]) };
	resource_edit_set(e, key, &list);
}

void resource_edit_remove(struct resource_edit *e, uint32_t index)
{
	if (e->failed || !begin(e) || index >= e->count)
		return;
	e->count--;
	memmove(&e->items[index], &e->items[index + 1], (e->count - index) * sizeof(*e->items));
}

bool resource_edit_next(struct resource_edit *e)
{
	struct key_value *list = NULL;

	if (e->items && !e->failed) {
		list = profiles_alloc(e->to, (e->count ? e->count : 1) * sizeof(*list));
		e->failed |= !list;
	}
	if (list) {
		struct resource_profiles *r = &e->to->resources[e->resource];

		memcpy(list, e->items, e->count * sizeof(*list));
		r->resource.attributes = (struct key_values){ list, e->count };
		r->has_resource = true;
	}
	free(e->items);
	e->items = NULL;
	e->count = e->cap = 0;
	return ++e->resource < e->from->resource_count && !e->failed;
}

struct profiles *resource_edit_end(struct resource_edit *e)
{
	free(e->items);
	e->items = NULL;
	if (!e->failed && e->to)
		return e->to;
	profiles_put(e->to);
	e->to = NULL;
	return profiles_get(e->from);
}

uint64_t resource_events(const struct resource_profiles *r)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < r->scope_count; i++)
		for (uint32_t j = 0; j < r->scopes[i].profile_count; j++) {
			const struct profile *p = &r->scopes[i].profiles[j];

			for (uint32_t k = 0; k < p->sample_count; k++)
				events += p->samples[k].timestamp_count ? p->samples[k].timestamp_count : 1;
		}
	return events;
}
