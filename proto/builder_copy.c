/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder's freezing half: copies the intern tables into the arena of a struct profiles, lays out resources, scopes and
 * profiles around the samples, and deals the events out to them. Nothing here outlives the call; the caller throws away a
 * model that was left half made.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "proto/builder_tables.h"

enum { PROFILE_ID_BYTES = 16 };

struct copy {
	struct builder *b;
	struct profiles *p;
	uint64_t start_unix_ns, end_unix_ns;
	uint32_t *order; /* the profiles that have samples, as they will stand */
	uint32_t order_count;
	struct profile **profiles; /* by entry of TABLE_PROFILES */
	struct sample **samples;   /* by entry of TABLE_SAMPLES */
	uint8_t *ids;		   /* in the arena, one for each of @order */
};

static const void *entry(const struct copy *c, enum builder_table table, uint32_t index, size_t *len)
{
	return intern_get(c->b->tables[table], index, len);
}

static void *arena_array(struct copy *c, size_t count, size_t size)
{
	return profiles_alloc(c->p, count * size); /* what is counted was held in memory before: no overflow */
}

static bool copy_str(struct copy *c, struct str *out, const void *data, size_t len)
{
	char *text;

	*out = STR("");
	if (!len)
		return true;
	text = profiles_alloc(c->p, len);
	if (!text)
		return false;
	memcpy(text, data, len);
	*out = (struct str){ text, (uint32_t)len };
	return true;
}

static bool copy_indices(struct copy *c, struct indices *out, const int32_t *items, size_t count)
{
	out->count = (uint32_t)count;
	if (!count)
		return true;
	out->items = arena_array(c, count, sizeof(*items));
	if (!out->items)
		return false;
	memcpy(out->items, items, count * sizeof(*items));
	return true;
}

/* --- the dictionary: one function an element --- */

static bool copy_string(struct copy *c, uint32_t i)
{
	size_t len;
	const void *data = entry(c, TABLE_STRINGS, i, &len);

	return copy_str(c, &c->p->dict.strings[i], data, len);
}

static bool copy_function(struct copy *c, uint32_t i)
{
	const struct function_key *k = entry(c, TABLE_FUNCTIONS, i, NULL);

	c->p->dict.functions[i] = (struct profile_function){ k->name, k->system_name, k->filename, k->start_line };
	return true;
}

static bool copy_mapping(struct copy *c, uint32_t i)
{
	const struct mapping_key *k = entry(c, TABLE_MAPPINGS, i, NULL);
	struct profile_mapping *m = &c->p->dict.mappings[i];

	m->memory_start = k->memory_start;
	m->memory_limit = k->memory_limit;
	m->file_offset = k->file_offset;
	m->filename_strindex = k->filename;
	return copy_indices(c, &m->attributes, k->attributes, k->attribute_count);
}

/* An array of strings. */
static bool copy_texts(struct copy *c, struct any_value *out, const struct attribute_key *k)
{
	const char *at = k->text;
	uint32_t len;

	out->array.items = arena_array(c, k->number ? (size_t)k->number : 1, sizeof(*out->array.items));
	if (!out->array.items)
		return false;
	for (; out->array.count < k->number; at += len) {
		struct any_value *item = &out->array.items[out->array.count++];

		memcpy(&len, at, sizeof(len));
		at += sizeof(len);
		item->kind = VALUE_STRING;
		if (!copy_str(c, &item->string, at, len))
			return false;
	}
	return true;
}

static bool copy_attribute(struct copy *c, uint32_t i)
{
	size_t len;
	const struct attribute_key *k = entry(c, TABLE_ATTRIBUTES, i, &len);
	struct profile_attribute *a = &c->p->dict.attributes[i];

	a->key_strindex = k->key;
	a->unit_strindex = k->unit;
	a->value.kind = (enum value_kind)k->kind;
	if (a->value.kind == VALUE_STRING)
		return copy_str(c, &a->value.string, k->text, len - sizeof(*k));
	if (a->value.kind == VALUE_ARRAY)
		return copy_texts(c, &a->value, k);
	if (a->value.kind == VALUE_BOOL)
		a->value.boolean = k->number;
	else if (a->value.kind == VALUE_DOUBLE)
		memcpy(&a->value.real, &k->number, sizeof(k->number));
	else
		a->value.integer = k->number;
	return true;
}

static bool copy_location(struct copy *c, uint32_t i)
{
	const struct location_key *k = entry(c, TABLE_LOCATIONS, i, NULL);
	struct profile_location *l = &c->p->dict.locations[i];

	l->mapping_index = k->mapping;
	l->address = k->address;
	l->line_count = k->line_count;
	if (k->line_count) {
		l->lines = arena_array(c, k->line_count, sizeof(*l->lines));
		if (!l->lines)
			return false;
		memcpy(l->lines, k->lines, k->line_count * sizeof(*l->lines));
	}
	return copy_indices(c, &l->attributes, (const int32_t *)&k->lines[k->line_count], k->attribute_count);
}

static bool copy_stack(struct copy *c, uint32_t i)
{
	size_t len;
	const int32_t *locations = entry(c, TABLE_STACKS, i, &len);

	return copy_indices(c, &c->p->dict.stacks[i], locations, len / sizeof(*locations));
}

static bool copy_link(struct copy *c, uint32_t i)
{
	const uint8_t *ids = entry(c, TABLE_LINKS, i, NULL);
	struct profile_link *l = &c->p->dict.links[i];

	/* Receivers disagree about zero bytes in element 0 and agree about empty ids. */
	return copy_str(c, &l->trace_id, ids, i ? 16 : 0) && copy_str(c, &l->span_id, ids + 16, i ? 8 : 0);
}

static int copy_dictionary(struct copy *c)
{
	struct dictionary *d = &c->p->dict;
	const struct {
		enum builder_table table;
		void **items;
		uint32_t *count;
		size_t size;
		bool (*copy)(struct copy *c, uint32_t index);
	} parts[] = {
		{ TABLE_STRINGS, (void **)&d->strings, &d->string_count, sizeof(*d->strings), copy_string },
		{ TABLE_FUNCTIONS, (void **)&d->functions, &d->function_count, sizeof(*d->functions), copy_function },
		{ TABLE_MAPPINGS, (void **)&d->mappings, &d->mapping_count, sizeof(*d->mappings), copy_mapping },
		{ TABLE_ATTRIBUTES, (void **)&d->attributes, &d->attribute_count, sizeof(*d->attributes), copy_attribute },
		{ TABLE_LOCATIONS, (void **)&d->locations, &d->location_count, sizeof(*d->locations), copy_location },
		{ TABLE_STACKS, (void **)&d->stacks, &d->stack_count, sizeof(*d->stacks), copy_stack },
		{ TABLE_LINKS, (void **)&d->links, &d->link_count, sizeof(*d->links), copy_link },
	};

	for (size_t t = 0; t < ARRAY_LEN(parts); t++) {
		*parts[t].count = intern_count(c->b->tables[parts[t].table]);
		*parts[t].items = arena_array(c, *parts[t].count, parts[t].size);
		if (!*parts[t].items)
			return -ENOMEM;
		for (uint32_t i = 0; i < *parts[t].count; i++) {
			if (!parts[t].copy(c, i))
				return -ENOMEM;
		}
	}
	return 0;
}

/* --- resources, scopes, profiles --- */

static int copy_resource(struct copy *c, struct resource_profiles *rp, uint32_t index)
{
	size_t len, step, count = 0;
	const char *key = entry(c, TABLE_RESOURCES, index, &len);
	const struct resource_attribute_key *k;
	struct key_value *kv;

	rp->has_resource = true;
	for (size_t at = 0; at < len; at += step, count++) {
		k = (const void *)(key + at);
		step = (sizeof(*k) + k->key_len + k->value_len + 7) & ~(size_t)7;
	}
	if (!count)
		return 0;
	kv = arena_array(c, count, sizeof(*kv));
	if (!kv)
		return -ENOMEM;
	rp->resource.attributes = (struct key_values){ kv, (uint32_t)count };
	for (size_t at = 0; at < len; at += step, kv++) {
		k = (const void *)(key + at);
		step = (sizeof(*k) + k->key_len + k->value_len + 7) & ~(size_t)7;
		kv->value.kind = (enum value_kind)k->kind;
		if (!copy_str(c, &kv->key, k->text, k->key_len))
			return -ENOMEM;
		if (kv->value.kind == VALUE_BOOL)
			kv->value.boolean = k->number;
		else if (kv->value.kind == VALUE_INT)
			kv->value.integer = (int64_t)k->number;
		else if (kv->value.kind == VALUE_DOUBLE)
			memcpy(&kv->value.real, &k->number, sizeof(k->number));
		else if (!copy_str(c, &kv->value.string, k->text + k->key_len, k->value_len))
			return -ENOMEM;
	}
	return 0;
}

static const struct profile_key *profile_at(const struct copy *c, uint32_t position)
{
	return entry(c, TABLE_PROFILES, c->order[position], NULL);
}

static uint32_t scope_of(const struct copy *c, uint32_t position)
{
	return c->b->specs[profile_at(c, position)->spec].scope;
}

static int compare_profiles(const void *x, const void *y, void *arg)
{
	const struct copy *c = arg;
	const struct profile_key *a = entry(c, TABLE_PROFILES, *(const uint32_t *)x, NULL);
	const struct profile_key *b = entry(c, TABLE_PROFILES, *(const uint32_t *)y, NULL);
	uint32_t scope_a = c->b->specs[a->spec].scope, scope_b = c->b->specs[b->spec].scope;

	if (a->resource != b->resource)
		return a->resource < b->resource ? -1 : 1;
	if (scope_a != scope_b)
		return scope_a < scope_b ? -1 : 1;
	return a->spec < b->spec ? -1 : a->spec > b->spec;
}

/* choose_profiles() put these strings there, so that from then on they are only found. */
static struct value_type value_type(struct copy *c, const char *type, const char *unit)
{
	return (struct value_type){ .type_strindex = builder_string_z(c->b, type),
				    .unit_strindex = builder_string_z(c->b, unit) };
}

static int fill_profile(struct copy *c, struct profile *out, uint32_t position)
{
	const struct builder_profile_spec *spec = c->b->specs[profile_at(c, position)->spec].spec;
	uint32_t index = c->order[position];

	out->sample_type = value_type(c, spec->sample_type, spec->sample_unit);
	out->period_type = value_type(c, spec->period_type, spec->period_unit);
	out->period = spec->period;
	out->profile_id = (struct str){ (const char *)c->ids + (size_t)position * PROFILE_ID_BYTES, PROFILE_ID_BYTES };
	out->original_payload_format = out->original_payload = STR("");
	out->time_unix_ns = c->start_unix_ns;
	out->duration_ns = c->end_unix_ns; /* the end, until the events are dealt out */
	out->samples = arena_array(c, c->b->slots[index].sample_count, sizeof(*out->samples));
	c->profiles[index] = out;
	if (!copy_indices(c, &out->attributes, spec->attributes, spec->attribute_count))
		return -ENOMEM;
	return out->samples ? 0 : -ENOMEM;
}

/* The profiles at [@from, @to) of @order, which share resource and scope. */
static int fill_scope(struct copy *c, struct scope_profiles *out, uint32_t from, uint32_t to)
{
	const struct builder_profile_spec *spec = c->b->specs[profile_at(c, from)->spec].spec;

	out->has_scope = true;
	out->schema_url = STR("");
	out->profile_count = to - from;
	out->profiles = arena_array(c, to - from, sizeof(*out->profiles));
	if (!out->profiles || !copy_str(c, &out->scope.name, spec->scope_name, strlen(spec->scope_name)) ||
	    !copy_str(c, &out->scope.version, spec->scope_version, strlen(spec->scope_version)))
		return -ENOMEM;
	for (uint32_t i = from; i < to; i++) {
		if (fill_profile(c, &out->profiles[i - from], i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The profiles at [@from, @to) of @order, which share the resource. */
static int fill_resource(struct copy *c, struct resource_profiles *out, uint32_t from, uint32_t to)
{
	uint32_t scopes = 1;

	for (uint32_t i = from + 1; i < to; i++)
		scopes += scope_of(c, i) != scope_of(c, i - 1);
	out->schema_url = STR("");
	out->scopes = arena_array(c, scopes, sizeof(*out->scopes));
	if (!out->scopes || copy_resource(c, out, profile_at(c, from)->resource) < 0)
		return -ENOMEM;
	for (uint32_t end; from < to; from = end) {
		for (end = from + 1; end < to && scope_of(c, end) == scope_of(c, from);)
			end++;
		if (fill_scope(c, &out->scopes[out->scope_count++], from, end) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int lay_out(struct copy *c)
{
	uint32_t resources = 0;

	for (uint32_t i = 0; i < c->order_count; i++)
		resources += !i || profile_at(c, i)->resource != profile_at(c, i - 1)->resource;
	if (!resources)
		return 0;
	c->p->resources = arena_array(c, resources, sizeof(*c->p->resources));
	if (!c->p->resources)
		return -ENOMEM;
	for (uint32_t from = 0, end; from < c->order_count; from = end) {
		for (end = from + 1; end < c->order_count && profile_at(c, end)->resource == profile_at(c, from)->resource;)
			end++;
		if (fill_resource(c, &c->p->resources[c->p->resource_count++], from, end) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- samples and their events --- */

static int copy_samples(struct copy *c)
{
	for (uint32_t i = 0; i < intern_count(c->b->tables[TABLE_SAMPLES]); i++) {
		size_t len;
		const struct sample_key *k = entry(c, TABLE_SAMPLES, i, &len);
		struct profile *profile = c->profiles[k->profile];
		struct sample *s = &profile->samples[profile->sample_count++];

		s->stack_index = k->stack;
		s->link_index = k->link;
		if (!copy_indices(c, &s->attributes, k->attributes, (len - sizeof(*k)) / sizeof(*k->attributes)))
			return -ENOMEM;
		c->samples[i] = s;
	}
	return 0;
}

static int compare_events(const void *x, const void *y)
{
	const struct builder_event *a = x, *b = y;

	if (a->time_unix_ns != b->time_unix_ns)
		return a->time_unix_ns < b->time_unix_ns ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

static void sort_events(struct builder *b)
{
	for (size_t i = 1; i < b->event_count; i++) {
		if (b->events[i].time_unix_ns < b->events[i - 1].time_unix_ns) {
			qsort(b->events, b->event_count, sizeof(*b->events), compare_events);
			return;
		}
	}
}

/* Gives every sample its arrays: times, and where there are values as many of them; of sums one. */
static int make_arrays(struct copy *c)
{
	struct builder *b = c->b;
	uint64_t *times = arena_array(c, b->event_count, sizeof(*times));

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < b->event_count; i++)
		c->samples[b->events[i].sample]->timestamp_count++;
	for (uint32_t i = 0; i < intern_count(b->tables[TABLE_SAMPLES]); i++) {
		const struct sample_key *k = entry(c, TABLE_SAMPLES, i, NULL);
		const struct builder_profile_slot *slot = &b->slots[k->profile];
		struct sample *s = c->samples[i];

		if (slot->has_sums) {
			s->value_count = 1;
		} else {
			s->timestamps_unix_ns = times;
			times += s->timestamp_count;
			s->value_count = slot->has_values ? s->timestamp_count : 0;
		}
		if (s->value_count) {
			s->values = arena_array(c, s->value_count, sizeof(*s->values));
			if (!s->values)
				return -ENOMEM;
		}
		c->p->sample_events += slot->has_sums ? 1 : s->timestamp_count;
		s->timestamp_count = 0;
	}
	return 0;
}

/* Deals the events out in the order of time and widens the windows of the profiles. */
static int copy_events(struct copy *c)
{
	struct builder *b = c->b;

	if (!b->event_count)
		return 0;
	sort_events(b);
	if (make_arrays(c))
		return -ENOMEM;
	for (size_t i = 0; i < b->event_count; i++) {
		const struct builder_event *e = &b->events[i];
		const struct sample_key *k = entry(c, TABLE_SAMPLES, e->sample, NULL);
		struct profile *profile = c->profiles[k->profile];
		struct sample *s = c->samples[e->sample];

		if (!s->timestamps_unix_ns) {
			s->values[0] = (int64_t)((uint64_t)s->values[0] + (uint64_t)e->value); /* may wrap, as protobuf's */
			continue;
		}
		if (s->values)
			s->values[s->timestamp_count] = e->value;
		s->timestamps_unix_ns[s->timestamp_count++] = e->time_unix_ns;
		if (e->time_unix_ns < profile->time_unix_ns)
			profile->time_unix_ns = e->time_unix_ns;
		if (e->time_unix_ns >= profile->duration_ns)
			profile->duration_ns = e->time_unix_ns + 1;
	}
	for (uint32_t i = 0; i < c->order_count; i++)
		c->profiles[c->order[i]]->duration_ns -= c->profiles[c->order[i]]->time_unix_ns;
	return 0;
}

/* Chooses the profiles and puts their names into the string table, before that is copied. */
static int choose_profiles(struct copy *c)
{
	for (uint32_t i = 0; i < intern_count(c->b->tables[TABLE_PROFILES]); i++) {
		const struct profile_key *k = entry(c, TABLE_PROFILES, i, NULL);
		const struct builder_profile_spec *spec = c->b->specs[k->spec].spec;

		if (!c->b->slots[i].sample_count)
			continue;
		value_type(c, spec->sample_type, spec->sample_unit);
		value_type(c, spec->period_type, spec->period_unit);
		c->order[c->order_count++] = i;
	}
	if (c->b->failed)
		return -ENOMEM;
	if (c->order_count)
		qsort_r(c->order, c->order_count, sizeof(*c->order), compare_profiles, c);
	return 0;
}

/*
 * Ids that nobody else has and that pack well: those of one freeze share their random bytes and end in a number, from 1 in
 * big endian. With a process a profile, ids that are random from end to end are a twelfth of what a build host sends.
 */
static int make_ids(struct copy *c)
{
	uint8_t random[PROFILE_ID_BYTES - sizeof(uint32_t)];

	c->ids = profiles_alloc(c->p, (size_t)c->order_count * PROFILE_ID_BYTES + 1);
	if (!c->ids)
		return -ENOMEM;
	for (size_t at = 0; at < sizeof(random);) {
		ssize_t n = getrandom(random + at, sizeof(random) - at, 0);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	for (uint32_t i = 0; i < c->order_count; i++) {
		uint8_t *id = c->ids + (size_t)i * PROFILE_ID_BYTES;
		uint32_t number = htobe32(i + 1);

		memcpy(id, random, sizeof(random));
		memcpy(id + sizeof(random), &number, sizeof(number));
	}
	return 0;
}

int builder_copy(struct builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns, struct profiles *p)
{
	size_t profiles = intern_count(b->tables[TABLE_PROFILES]), samples = intern_count(b->tables[TABLE_SAMPLES]);
	AUTO_FREE uint32_t *order = calloc(profiles + 1, sizeof(*order));
	AUTO_FREE struct profile **profile_of = calloc(profiles + 1, sizeof(*profile_of));
	AUTO_FREE struct sample **sample_of = calloc(samples + 1, sizeof(*sample_of));
	struct copy c = { b, p, start_unix_ns, end_unix_ns, order, 0, profile_of, sample_of, NULL };
	bool has_times = false;
	int (*const steps[])(struct copy * c) = { choose_profiles, make_ids,	 copy_dictionary,
						  lay_out,	   copy_samples, copy_events };

	if (!order || !profile_of || !sample_of)
		return -ENOMEM;
	for (size_t i = 0; i < profiles; i++)
		has_times |= b->slots[i].sample_count && !b->slots[i].has_sums;
	if (c.end_unix_ns <= start_unix_ns && has_times)
		c.end_unix_ns = start_unix_ns + 1;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int err = steps[i](&c);

		if (err < 0)
			return err;
	}
	return 0;
}
