/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder's gathering half: everything that is added becomes the bytes of a key in an intern table, and an event is one
 * entry of a flat list that points at its sample's identity. builder_copy.c turns that into the model at each freeze. The
 * memory is kept from one interval to the next, unless an interval needed far less of it. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include "proto/builder_tables.h"

enum {
	KEEP_BYTES = 64 * 1024, /* a table this small is never given back */
	KEEP_FACTOR = 8,	/* nor one that holds less than this many times what was used */
	ENTRY_BYTES = 16,	/* about what an intern table spends on an entry beside its bytes */
};

static int32_t add(struct builder *b, enum builder_table table, const void *key, size_t len)
{
	uint32_t index = 0;

	if (b->failed)
		return 0;
	if (intern_add(b->tables[table], key, len, &index) < 0 || index > INT32_MAX) {
		b->failed = true;
		return 0;
	}
	return (int32_t)index;
}

/* Zeroed room for a key of @size bytes; NULL without memory. */
static void *key_room(struct builder *b, size_t size)
{
	buf_reset(&b->scratch);
	if (b->failed || buf_reserve(&b->scratch, size) < 0) {
		b->failed = true;
		return NULL;
	}
	return memset(b->scratch.data, 0, size);
}

/* @s as UTF-8, good until the next call: receivers refuse a whole request for one string that is not. */
static struct str clean(struct builder *b, struct str s)
{
	if (utf8_is_valid(s.data, s.len))
		return s;
	buf_reset(&b->cleaned);
	utf8_append_clean(&b->cleaned, s.data, s.len);
	if (b->cleaned.failed || b->cleaned.len > UINT32_MAX) {
		b->failed = true;
		return STR("");
	}
	return (struct str){ (const char *)b->cleaned.data, (uint32_t)b->cleaned.len };
}

/* Room for element @index of *@items; new room is zero. Without memory for it the builder fails. */
#define ROOM(b, items, cap, index) (!vec_reach_zero(items, cap, index) || ((b)->failed = true, false))

/* Copies @count indices in ascending order, each once; returns how many. @dst has room for all. */
static uint32_t sorted_set(int32_t *dst, const int32_t *src, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = n;

		while (at && dst[at - 1] > src[i])
			at--;
		if (at && dst[at - 1] == src[i])
			continue;
		memmove(&dst[at + 1], &dst[at], (n - at) * sizeof(*dst));
		dst[at] = src[i];
		n++;
	}
	return n;
}

/* The elements 0: "none" in every dictionary table. */
static void add_zero_elements(struct builder *b)
{
	static const union {
		struct function_key function;
		struct mapping_key mapping;
		struct attribute_key attribute;
		struct location_key location;
		uint8_t link[24];
	} zero;

	add(b, TABLE_STRINGS, "", 0);
	add(b, TABLE_FUNCTIONS, &zero, sizeof(zero.function));
	add(b, TABLE_MAPPINGS, &zero, sizeof(zero.mapping));
	add(b, TABLE_ATTRIBUTES, &zero, sizeof(zero.attribute));
	add(b, TABLE_LOCATIONS, &zero, sizeof(zero.location));
	add(b, TABLE_STACKS, "", 0);
	add(b, TABLE_LINKS, &zero, sizeof(zero.link));
}

static void reset_table(struct intern **table)
{
	size_t used = 0, len;
	struct intern *fresh;

	for (uint32_t i = 0; i < intern_count(*table); i++) {
		intern_get(*table, i, &len);
		used += len + ENTRY_BYTES;
	}
	if (intern_memory_bytes(*table) > KEEP_BYTES && intern_memory_bytes(*table) / KEEP_FACTOR > used) {
		fresh = intern_new();
		if (fresh) {
			intern_free(*table);
			*table = fresh;
			return;
		}
	}
	intern_reset(*table);
}

static void reset(struct builder *b)
{
	size_t slots = intern_count(b->tables[TABLE_PROFILES]);

	if (slots && b->slots) /* without memory there may be profiles that have no slot */
		memset(b->slots, 0, (slots < b->slot_cap ? slots : b->slot_cap) * sizeof(*b->slots));
	for (size_t i = 0; i < TABLE_COUNT; i++)
		reset_table(&b->tables[i]);
	if (b->event_cap * sizeof(*b->events) > KEEP_BYTES && b->event_cap / KEEP_FACTOR > b->event_count) {
		free(b->events);
		b->events = NULL;
		b->event_cap = 0;
	}
	if (b->scratch.cap > KEEP_BYTES)
		buf_fini(&b->scratch);
	buf_fini(&b->cleaned);
	b->event_count = 0;
	b->failed = false;
	add_zero_elements(b);
}

struct builder *builder_new(void)
{
	struct builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		b->tables[i] = intern_new();
		if (!b->tables[i]) {
			builder_free(b);
			return NULL;
		}
	}
	add_zero_elements(b);
	return b;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		if (b->tables[i])
			intern_free(b->tables[i]);
	}
	free(b->slots);
	free(b->specs);
	free(b->events);
	buf_fini(&b->scratch);
	buf_fini(&b->cleaned);
	free(b);
}

int32_t builder_string(struct builder *b, struct str s)
{
	s = clean(b, s);
	return s.len ? add(b, TABLE_STRINGS, s.data, s.len) : 0;
}

int32_t builder_string_z(struct builder *b, const char *s)
{
	return builder_string(b, (struct str){ s, (uint32_t)strlen(s) });
}

/* Appends the texts of an array; returns how many. */
static uint32_t add_texts(struct builder *b, const struct any_value *array, struct buf *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < array->array.count; i++) {
		struct str text = STR("");

		if (array->array.items[i].kind != VALUE_STRING)
			continue;
		text = clean(b, array->array.items[i].string);
		buf_append(out, &text.len, sizeof(text.len));
		buf_append(out, text.data, text.len);
		count++;
	}
	return count;
}

int32_t builder_attribute(struct builder *b, struct str key, const struct any_value *value, int32_t unit)
{
	struct attribute_key k = { .kind = (int32_t)value->kind, .unit = unit };
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct str text = STR("");

	k.key = builder_string(b, key);
	if (value->kind == VALUE_INT)
		k.number = value->integer;
	else if (value->kind == VALUE_BOOL)
		k.number = value->boolean;
	else if (value->kind == VALUE_DOUBLE)
		memcpy(&k.number, &value->real, sizeof(k.number));
	else if (value->kind == VALUE_STRING)
		text = clean(b, value->string);
	buf_append(&bytes, &k, sizeof(k));
	buf_append(&bytes, text.data, text.len);
	if (value->kind == VALUE_ARRAY) {
		k.number = add_texts(b, value, &bytes);
		if (!bytes.failed)
			memcpy(bytes.data, &k, sizeof(k));
	}
	b->failed |= bytes.failed;
	return b->failed ? 0 : add(b, TABLE_ATTRIBUTES, bytes.data, bytes.len);
}

static int32_t add_attribute(struct builder *b, const char *key, enum value_kind kind, int64_t number, struct str text)
{
	size_t size = sizeof(struct attribute_key) + text.len;
	struct attribute_key *k = key_room(b, size);

	if (!k)
		return 0;
	k->key = add(b, TABLE_STRINGS, key, strlen(key));
	k->kind = (int32_t)kind;
	k->number = number;
	memcpy(k->text, text.data, text.len);
	return add(b, TABLE_ATTRIBUTES, k, size);
}

int32_t builder_attribute_string(struct builder *b, const char *key, struct str value)
{
	return add_attribute(b, key, VALUE_STRING, 0, clean(b, value));
}

int32_t builder_attribute_int(struct builder *b, const char *key, int64_t value)
{
	return add_attribute(b, key, VALUE_INT, value, STR(""));
}

int32_t builder_attribute_bool(struct builder *b, const char *key, bool value)
{
	return add_attribute(b, key, VALUE_BOOL, value, STR(""));
}

int32_t builder_function(struct builder *b, int32_t name, int32_t system_name, int32_t filename, int64_t start_line)
{
	struct function_key k = { name, system_name, filename, 0, start_line };

	return add(b, TABLE_FUNCTIONS, &k, sizeof(k));
}

int32_t builder_mapping(struct builder *b, uint64_t memory_start, uint64_t memory_limit, uint64_t file_offset,
			int32_t filename, const int32_t *attributes, uint32_t attribute_count)
{
	struct mapping_key *k = key_room(b, sizeof(*k) + attribute_count * sizeof(*attributes));

	if (!k)
		return 0;
	k->memory_start = memory_start;
	k->memory_limit = memory_limit;
	k->file_offset = file_offset;
	k->filename = filename;
	k->attribute_count = sorted_set(k->attributes, attributes, attribute_count);
	return add(b, TABLE_MAPPINGS, k, sizeof(*k) + k->attribute_count * sizeof(*attributes));
}

int32_t builder_location(struct builder *b, int32_t mapping, uint64_t address, const struct profile_line *lines,
			 uint32_t line_count, const int32_t *attributes, uint32_t attribute_count)
{
	size_t size = sizeof(struct location_key) + line_count * sizeof(*lines);
	struct location_key *k = key_room(b, size + attribute_count * sizeof(*attributes));

	if (!k)
		return 0;
	k->address = address;
	k->mapping = mapping;
	k->line_count = line_count;
	for (uint32_t i = 0; i < line_count; i++) { /* by member: the padding stays zero */
		k->lines[i].function_index = lines[i].function_index;
		k->lines[i].line = lines[i].line;
		k->lines[i].column = lines[i].column;
	}
	k->attribute_count = sorted_set((int32_t *)&k->lines[line_count], attributes, attribute_count);
	return add(b, TABLE_LOCATIONS, k, size + k->attribute_count * sizeof(*attributes));
}

int32_t builder_stack(struct builder *b, const int32_t *locations, uint32_t count)
{
	return count ? add(b, TABLE_STACKS, locations, count * sizeof(*locations)) : 0;
}

int32_t builder_link(struct builder *b, const uint8_t trace_id[16], const uint8_t span_id[8])
{
	uint8_t key[24];

	memcpy(key, trace_id, 16);
	memcpy(key + 16, span_id, 8);
	return add(b, TABLE_LINKS, key, sizeof(key));
}

uint32_t builder_resource(struct builder *b, const struct key_value *attributes, uint32_t count)
{
	struct buf *key = &b->scratch;

	buf_reset(key);
	for (uint32_t i = 0; i < count; i++) {
		const struct key_value *kv = &attributes[i];
		struct str text = kv->value.kind == VALUE_STRING ? clean(b, kv->value.string) : STR("");
		struct resource_attribute_key k = { kv->key.len, text.len, kv->value.kind, 0, 0 };

		if (kv->value.kind == VALUE_BOOL)
			k.number = kv->value.boolean;
		else if (kv->value.kind == VALUE_INT)
			k.number = (uint64_t)kv->value.integer;
		else if (kv->value.kind == VALUE_DOUBLE)
			memcpy(&k.number, &kv->value.real, sizeof(k.number));
		buf_append(key, &k, sizeof(k));
		buf_append(key, kv->key.data, kv->key.len);
		buf_append(key, text.data, text.len);
		buf_append(key, "\0\0\0\0\0\0\0", -key->len & 7);
	}
	if (key->failed)
		b->failed = true;
	return (uint32_t)add(b, TABLE_RESOURCES, key->data ? (const void *)key->data : "", key->len);
}

static uint32_t find_spec(struct builder *b, const struct builder_profile_spec *spec)
{
	uint32_t scope = b->spec_count;

	for (uint32_t i = 0; i < b->spec_count; i++) {
		if (b->specs[i].spec == spec)
			return i;
		if (scope == b->spec_count && !strcmp(b->specs[i].spec->scope_name, spec->scope_name) &&
		    !strcmp(b->specs[i].spec->scope_version, spec->scope_version))
			scope = b->specs[i].scope;
	}
	if (!ROOM(b, &b->specs, &b->spec_cap, b->spec_count))
		return 0;
	b->specs[b->spec_count] = (struct builder_spec){ spec, scope };
	return b->spec_count++;
}

uint32_t builder_profile(struct builder *b, uint32_t resource, const struct builder_profile_spec *spec)
{
	struct profile_key k = { resource, find_spec(b, spec) };
	uint32_t index = (uint32_t)add(b, TABLE_PROFILES, &k, sizeof(k));

	return ROOM(b, &b->slots, &b->slot_cap, index) ? index : 0;
}

/* The number of the sample, which stands from now on; -1 without memory, also when an event finds none. */
static int64_t add_sample(struct builder *b, uint32_t profile, int32_t stack, const int32_t *attributes,
			  uint32_t attribute_count, int32_t link)
{
	struct sample_key *k = key_room(b, sizeof(*k) + attribute_count * sizeof(*attributes));
	uint32_t before = intern_count(b->tables[TABLE_SAMPLES]);
	uint32_t sample;

	if (!k || !ROOM(b, &b->events, &b->event_cap, b->event_count))
		return -1;
	k->profile = profile;
	k->stack = stack;
	k->link = link;
	attribute_count = sorted_set(k->attributes, attributes, attribute_count);
	sample = (uint32_t)add(b, TABLE_SAMPLES, k, sizeof(*k) + attribute_count * sizeof(*attributes));
	if (b->failed)
		return -1;
	if (sample == before)
		b->slots[profile].sample_count++;
	return sample;
}

void builder_event(struct builder *b, uint32_t profile, int32_t stack, const int32_t *attributes, uint32_t attribute_count,
		   int32_t link, uint64_t time_unix_ns, bool has_value, int64_t value)
{
	int64_t sample = add_sample(b, profile, stack, attributes, attribute_count, link);

	if (sample < 0)
		return;
	b->slots[profile].has_values |= has_value;
	b->events[b->event_count++] = (struct builder_event){ time_unix_ns, has_value ? value : 1, (uint32_t)sample };
}

void builder_value(struct builder *b, uint32_t profile, int32_t stack, const int32_t *attributes, uint32_t attribute_count,
		   int32_t link, int64_t value)
{
	int64_t sample = add_sample(b, profile, stack, attributes, attribute_count, link);

	if (sample < 0)
		return;
	b->slots[profile].has_sums = true;
	b->events[b->event_count++] = (struct builder_event){ 0, value, (uint32_t)sample };
}

uint64_t builder_event_count(const struct builder *b)
{
	return b->event_count;
}

size_t builder_memory_bytes(const struct builder *b)
{
	size_t bytes = sizeof(*b) + b->slot_cap * sizeof(*b->slots) + b->spec_cap * sizeof(*b->specs) +
		       b->event_cap * sizeof(*b->events) + b->scratch.cap + b->cleaned.cap;

	for (size_t i = 0; i < TABLE_COUNT; i++)
		bytes += intern_memory_bytes(b->tables[i]);
	return bytes;
}

int builder_freeze(struct builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns, struct profiles **ret)
{
	struct profiles *p = b->failed ? NULL : profiles_new();
	int err = p ? builder_copy(b, start_unix_ns, end_unix_ns, p) : -ENOMEM;

	reset(b);
	if (!err)
		err = profiles_order(p);
	if (err < 0) {
		profiles_put(p);
		return err;
	}
	*ret = p;
	return 0;
}
