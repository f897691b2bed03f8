/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile model's memory, its references, and the look-ups that resolve reference-encoded attributes. The maker of an
 * object (the decoder, the builder) fills it alone; after that any thread reads it and none writes.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "proto/arena.h"
#include "proto/profiles.h"

struct profiles *profiles_new(void)
{
	struct arena *arena = arena_new();
	struct profiles *p = arena ? arena_alloc(arena, sizeof(*p)) : NULL;

	if (!p) {
		arena_free(arena);
		return NULL;
	}
	p->arena = arena;
	p->message = STR("");
	atomic_init(&p->refs, 1);
	return p;
}

struct profiles *profiles_derive(struct profiles *p)
{
	struct profiles *derived = profiles_new();
	size_t bytes = p->resource_count * sizeof(*p->resources);

	if (!derived)
		return NULL;
	derived->resources = profiles_alloc(derived, bytes ? bytes : 1);
	if (!derived->resources) {
		profiles_put(derived);
		return NULL;
	}
	if (bytes)
		memcpy(derived->resources, p->resources, bytes);
	derived->resource_count = p->resource_count;
	derived->dict = p->dict;
	derived->sample_events = p->sample_events;
	derived->base = profiles_get(p);
	return derived;
}

void *profiles_alloc(struct profiles *p, size_t size_bytes)
{
	return arena_alloc(p->arena, size_bytes);
}

struct profiles *profiles_get(struct profiles *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void profiles_put(struct profiles *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;

	void (*freed)(void *arg) = p->freed;
	void *arg = p->freed_arg;
	struct profiles *base = p->base;
	free(p->source);
	arena_free(p->arena); /* @p is in it */
	if (freed)
		freed(arg);
	profiles_put(base);
}

void profiles_on_free(struct profiles *p, void (*fn)(void *arg), void *arg)
{
	p->freed = fn;
	p->freed_arg = arg;
}

size_t profiles_memory_bytes(const struct profiles *p)
{
	return arena_memory_bytes(p->arena) + malloc_usable_size(p->source) + (p->base ? profiles_memory_bytes(p->base) : 0);
}

bool str_is(struct str s, const char *text)
{
	return strlen(text) == s.len && !memcmp(s.data, text, s.len);
}

struct str profiles_key(const struct profiles *p, const struct key_value *kv)
{
	return kv->key_strindex ? profiles_string(p, kv->key_strindex) : kv->key;
}

bool profiles_value_string(const struct profiles *p, const struct any_value *v, struct str *ret)
{
	if (v->kind != VALUE_STRING && v->kind != VALUE_STRINDEX)
		return false;
	*ret = v->kind == VALUE_STRING ? v->string : profiles_string(p, v->strindex);
	return true;
}

bool profiles_value_append(const struct profiles *p, const struct any_value *v, struct buf *out)
{
	struct str text;

	if (profiles_value_string(p, v, &text))
		buf_append(out, text.data, text.len);
	else if (v->kind == VALUE_INT)
		buf_printf(out, "%" PRId64, v->integer);
	else if (v->kind == VALUE_BOOL)
		buf_puts(out, v->boolean ? "true" : "false");
	else if (v->kind == VALUE_DOUBLE)
		buf_printf(out, "%.17g", v->real);
	else
		return false;
	return true;
}

struct str profiles_value_text(const struct profiles *p, const struct any_value *v)
{
	struct str text = STR("");

	if (v)
		profiles_value_string(p, v, &text);
	return text;
}

const struct any_value *profiles_find_attribute(const struct profiles *p, const struct indices *attributes, const char *key)
{
	for (uint32_t i = 0; i < attributes->count; i++) {
		const struct profile_attribute *a = &p->dict.attributes[attributes->items[i]];

		if (str_is(profiles_string(p, a->key_strindex), key))
			return &a->value;
	}
	return NULL;
}

const struct any_value *profiles_find_key(const struct profiles *p, const struct key_values *kvs, const char *key)
{
	for (uint32_t i = 0; i < kvs->count; i++) {
		if (str_is(profiles_key(p, &kvs->items[i]), key))
			return &kvs->items[i].value;
	}
	return NULL;
}
