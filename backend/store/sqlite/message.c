/* SPDX-License-Identifier: Apache-2.0 */
/* Turns one message's samples into events. Entries of the message's own tables get their numbers when they are first met. */
#include "backend/store/sqlite/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sample.h"
#include "backend/store/origin.h"
#include "base/cleanup.h"

enum {
	KEPT_TABLES_BYTES = 1 << 18, /* from one message to the next */
	TABLES = 11,
	AHEAD = 8, /* samples whose stacks' memory is on its way */
};

static void message_fini(struct message *m)
{
	free(m->frames);
	free(m->path);
	free(m->label_sets);
	free(m->numbers);
	ids_fini(&m->label_set_of);
	buf_fini(&m->text);
	if (m->k->tables.cap > KEPT_TABLES_BYTES)
		buf_fini(&m->k->tables);
}

/* @count zeroed elements of @size bytes out of what was reserved. */
static void *carve(struct buf *tables, size_t count, size_t size)
{
	void *table = tables->data + tables->len;

	tables->len += (count * size + 15) / 16 * 16;
	return table;
}

static int message_init(struct message *m, struct keep *k, const struct profiles *p)
{
	const struct dictionary *d = &p->dict;
	struct buf *t = &k->tables;
	size_t bytes = d->string_count * (sizeof(*m->strings) + sizeof(*m->string_keys)) +
		       d->attribute_count * (sizeof(*m->attributes) + sizeof(*m->sets_of_one)) +
		       d->function_count * (sizeof(*m->functions) + sizeof(*m->function_keys)) +
		       d->mapping_count * sizeof(*m->mappings) + d->location_count * sizeof(*m->locations) +
		       d->stack_count * (sizeof(*m->stacks) + sizeof(*m->stack_keys)) + d->link_count * sizeof(*m->links) +
		       (size_t)TABLES * 16;

	*m = (struct message){ .k = k, .p = p };
	ids_init(&m->label_set_of, 1 << 16);
	buf_reset(t);
	if (buf_reserve(t, bytes))
		return -ENOMEM;
	memset(t->data, 0, bytes);
	m->strings = carve(t, d->string_count, sizeof(*m->strings));
	m->string_keys = carve(t, d->string_count, sizeof(*m->string_keys));
	m->attributes = carve(t, d->attribute_count, sizeof(*m->attributes));
	m->sets_of_one = carve(t, d->attribute_count, sizeof(*m->sets_of_one));
	m->functions = carve(t, d->function_count, sizeof(*m->functions));
	m->function_keys = carve(t, d->function_count, sizeof(*m->function_keys));
	m->mappings = carve(t, d->mapping_count, sizeof(*m->mappings));
	m->locations = carve(t, d->location_count, sizeof(*m->locations));
	m->stacks = carve(t, d->stack_count, sizeof(*m->stacks));
	m->stack_keys = carve(t, d->stack_count, sizeof(*m->stack_keys));
	m->links = carve(t, d->link_count, sizeof(*m->links));
	return 0;
}

/* --- rows --- */

static void insert(struct message *m, enum kept kind)
{
	sqlite3_stmt *st = m->k->insert[kind];
	int code = sqlite3_step(st);

	sqlite3_reset(st);
	if (!m->err)
		m->err = store_sqlite_errno(code);
}

void message_insert_integers(struct message *m, enum kept kind, uint32_t id, const int64_t *values, size_t count)
{
	sqlite3_bind_int64(m->k->insert[kind], 1, id);
	for (size_t i = 0; i < count; i++)
		sqlite3_bind_int64(m->k->insert[kind], (int)i + 2, values[i]);
	insert(m, kind);
}

/* Keeps a text that is not empty, or with @is_bytes any bytes. */
static uint32_t keep_bytes_of(struct message *m, struct id_key key, struct str s, bool is_bytes)
{
	uint32_t id_new, id = keep_number(m->k, KEPT_STRING, key, &id_new);
	sqlite3_stmt *st = m->k->insert[KEPT_STRING];

	if (id)
		return id;
	sqlite3_bind_int64(st, 1, id_new);
	if (is_bytes)
		sqlite3_bind_blob64(st, 2, s.data, s.len, SQLITE_STATIC);
	else
		sqlite3_bind_text64(st, 2, s.data, s.len, SQLITE_STATIC, SQLITE_UTF8);
	insert(m, KEPT_STRING);
	return id_new;
}

static uint32_t keep_bytes(struct message *m, struct str s, bool is_bytes)
{
	return s.len ? keep_bytes_of(m, id_key_of(s.data, s.len), s, is_bytes) : 0;
}

uint32_t message_string(struct message *m, int32_t index)
{
	const struct str s = m->p->dict.strings[index];

	if (s.len && !m->strings[index])
		m->strings[index] = keep_bytes_of(m, m->string_keys[index], s, false);
	return m->strings[index];
}

static uint32_t keep_attribute(struct message *m, uint32_t key, uint32_t unit, const struct any_value *value)
{
	AUTO(buf_fini) struct buf complex = BUF_EMPTY;
	struct any_value v = *value;
	int64_t number = 0;

	if (v.kind == VALUE_STRINDEX)
		v = (struct any_value){ .kind = VALUE_STRING, .string = profiles_string(m->p, value->strindex) };
	if (v.kind == VALUE_ARRAY || v.kind == VALUE_KVLIST) {
		int err = origin_encode_value(m->p, &v, &complex);

		m->err = m->err ? m->err : err;
		v.string = (struct str){ complex.data ? (const char *)complex.data : "", (uint32_t)complex.len };
	}
	if (v.kind == VALUE_INT)
		number = v.integer;
	else if (v.kind == VALUE_BOOL)
		number = v.boolean;
	else if (v.kind == VALUE_DOUBLE)
		memcpy(&number, &v.real, sizeof(number));
	else if (v.kind != VALUE_NONE)
		number = keep_bytes(m, v.string, v.kind != VALUE_STRING);
	return keep_list(m->k, KEPT_ATTRIBUTE, (const int64_t[]){ key, unit, v.kind, number }, 4);
}

/* Attribute @index of the message's table. */
static uint32_t keep_attribute_at(struct message *m, int32_t index)
{
	const struct profile_attribute *a = &m->p->dict.attributes[index];

	if (!m->attributes[index])
		m->attributes[index] = keep_attribute(m, message_string(m, a->key_strindex),
						      message_string(m, a->unit_strindex), &a->value);
	return m->attributes[index];
}

/* A set of numbered attributes in this order; one of none is 0. */
static uint32_t keep_set(struct message *m, const int64_t *attributes, size_t count)
{
	return count ? keep_list(m->k, KEPT_SET, attributes, count < LIST_MOST_NUMBERS ? count : LIST_MOST_NUMBERS) : 0;
}

uint32_t message_set(struct message *m, const struct indices *list)
{
	uint32_t *of_one = list->count == 1 ? &m->sets_of_one[list->items[0]] : NULL;
	uint32_t set;

	if (of_one && *of_one)
		return *of_one;
	if (!ROOM(m, m->numbers, m->number_cap, 0, list->count))
		return 0;
	for (uint32_t i = 0; i < list->count; i++)
		m->numbers[i] = keep_attribute_at(m, list->items[i]);
	set = keep_set(m, m->numbers, list->count);
	if (of_one)
		*of_one = set;
	return set;
}

static uint32_t keep_key_values(struct message *m, const struct key_values *kvs)
{
	if (!ROOM(m, m->numbers, m->number_cap, 0, kvs->count))
		return 0;
	for (uint32_t i = 0; i < kvs->count; i++)
		m->numbers[i] = keep_attribute(m, keep_bytes(m, profiles_key(m->p, &kvs->items[i]), false), 0,
					       &kvs->items[i].value);
	return keep_set(m, m->numbers, kvs->count);
}

/* --- samples --- */

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static struct label_set make_label_set(struct message *m, const struct indices *list)
{
	struct label_set set = { 0 };
	int32_t alone = 0;
	size_t count = 0;

	if (!ROOM(m, m->numbers, m->number_cap, 0, list->count))
		return set;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct profile_attribute *a = &m->p->dict.attributes[list->items[i]];

		if (!set.cpu && store_is_cpu(m->p, a)) {
			set.cpu = (uint32_t)a->value.integer + 1;
			continue;
		}
		alone = list->items[i];
		m->numbers[count++] = keep_attribute_at(m, alone);
	}
	if (count == 1) {
		set.set = message_set(m, &(struct indices){ &alone, 1 });
		return set;
	}
	qsort(m->numbers, count, sizeof(*m->numbers), compare_numbers);
	set.set = keep_set(m, m->numbers, count);
	return set;
}

static struct label_set keep_label_set(struct message *m, const struct indices *list)
{
	struct id_key key;
	struct label_set set;
	uint32_t place;

	if (!list->count)
		return (struct label_set){ 0 };
	key = id_key_of(list->items, list->count * sizeof(*list->items));
	place = ids_get(&m->label_set_of, key);
	if (place)
		return m->label_sets[place - 1];
	set = make_label_set(m, list);
	if (!m->err && ROOM(m, m->label_sets, m->label_set_cap, m->label_set_count, 1)) {
		m->label_sets[m->label_set_count++] = set;
		(void)ids_put(&m->label_set_of, key, (uint32_t)m->label_set_count);
	}
	return set;
}

static uint32_t keep_link(struct message *m, int32_t index)
{
	const struct profile_link *link = &m->p->dict.links[index];
	sqlite3_stmt *st = m->k->insert[KEPT_LINK];

	if (!index || m->links[index] || link->trace_id.len + link->span_id.len == 0)
		return m->links[index];
	m->links[index] = m->k->next[KEPT_LINK]++;
	sqlite3_bind_int64(st, 1, m->links[index]);
	sqlite3_bind_blob64(st, 2, link->trace_id.data, link->trace_id.len, SQLITE_STATIC);
	sqlite3_bind_blob64(st, 3, link->span_id.data, link->span_id.len, SQLITE_STATIC);
	insert(m, KEPT_LINK);
	return m->links[index];
}

static void add_sample(struct message *m, const struct profile *profile, const struct sample *sample, struct event *e)
{
	const struct label_set set = keep_label_set(m, &sample->attributes);
	struct keep *k = m->k;

	e->stack = message_stack(m, sample->stack_index);
	e->link = keep_link(m, sample->link_index);
	e->labels = set.set;
	e->cpu = set.cpu;
	if (m->err || !ROOM(m, k->events, k->event_cap, k->event_count, store_event_count(sample)))
		return;
	for (uint32_t i = 0; i < store_event_count(sample); i++) {
		const struct store_event event = store_event_kept(m->p, profile, sample, i);

		e->time_ns = event.time_ns > INT64_MAX ? INT64_MAX : event.time_ns;
		e->weight = event.weight;
		k->events[k->event_count++] = *e;
	}
}

/* The series of a profile's samples. */
static uint32_t keep_series(struct message *m, uint32_t resource_set, const struct origin *origin)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	const struct profile *profile = origin->profile;
	const int64_t head[2] = { origin->shape, message_set(m, &profile->attributes) };
	sqlite3_stmt *st = m->k->insert[KEPT_ORIGIN];
	const int32_t texts[4] = { profile->sample_type.type_strindex, profile->sample_type.unit_strindex,
				   profile->period_type.type_strindex, profile->period_type.unit_strindex };
	int err = origin_encode(m->p, origin, &message);
	uint32_t id, id_new;

	m->err = m->err ? m->err : err;
	if (m->err)
		return 0;
	buf_reset(&m->text);
	buf_append(&m->text, head, sizeof(head));
	buf_append(&m->text, message.data, message.len);
	id = keep_number(m->k, KEPT_ORIGIN, id_key_of(m->text.data, m->text.len), &id_new);
	if (!id) {
		id = id_new;
		sqlite3_bind_int64(st, 1, id);
		for (int i = 0; i < 4; i++) {
			const char *gauge = i == 1 ? store_gauge_unit(m->p, profile) : NULL;
			struct str s = gauge ? str_z(gauge) : profiles_string(m->p, texts[i]);

			sqlite3_bind_text64(st, i + 2, s.data, s.len, SQLITE_STATIC, SQLITE_UTF8);
		}
		sqlite3_bind_int64(st, 6, profile->period);
		sqlite3_bind_int64(st, 7, head[0]);
		sqlite3_bind_int64(st, 8, head[1]);
		sqlite3_bind_blob64(st, 9, message.data, message.len, SQLITE_STATIC);
		insert(m, KEPT_ORIGIN);
	}
	return keep_list(m->k, KEPT_SERIES, (const int64_t[]){ resource_set, id }, 2);
}

static void add_profile(struct message *m, uint32_t resource_set, struct origin *origin)
{
	const struct profile *profile = origin->profile;
	bool ticks = str_is(profiles_string(m->p, profile->period_type.unit_strindex), "nanoseconds") &&
		     profile->period > 0 && profile->period <= BLOCK_MAX_PERIOD;
	struct event e = { .period = ticks ? (uint32_t)profile->period : 0 };

	if (!profile->sample_count)
		return;
	for (uint32_t i = 0; i < profile->sample_count; i++)
		origin->shape |= (profile->samples[i].timestamp_count ? 1 : 0) | (profile->samples[i].value_count ? 2 : 0);
	e.series = keep_series(m, resource_set, origin);
	for (uint32_t i = 0; i < profile->sample_count && !m->err; i++) {
		if (i + AHEAD < profile->sample_count)
			ids_prefetch(&m->k->ids[KEPT_NODE], m->stack_keys[profile->samples[i + AHEAD].stack_index]);
		add_sample(m, profile, &profile->samples[i], &e);
	}
}

int keep_profiles(struct keep *k, const struct profiles *p)
{
	AUTO(message_fini) struct message m;

	if (message_init(&m, k, p))
		return -ENOMEM;
	message_make_keys(&m);
	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct resource_profiles *rp = &p->resources[r];
		uint32_t set = keep_key_values(&m, &rp->resource.attributes);

		for (uint32_t s = 0; s < rp->scope_count; s++) {
			for (uint32_t i = 0; i < rp->scopes[s].profile_count && !m.err; i++)
				add_profile(&m, set, &(struct origin){ rp, &rp->scopes[s], &rp->scopes[s].profiles[i], 0 });
		}
	}
	return m.err;
}
