/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a message's samples into rows of the tables. A thing's id is a hash of the bytes of its row, so every writer gives
 * it the same one; 64 bits of it: among a thousand million different stacks there are two of one id with a chance of 3 %.
 *
 * A thing's row goes in the first batch that refers to it, and is held to be known from then on, until all known things are
 * forgotten: when a batch did not arrive, and once a day, for ClickHouse drops rows that nobody has met for long.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/ids.h"
#include "backend/store/sample.h"
#include "backend/store/origin.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/vec.h"

enum {
	MOST_SENT = 1 << 21,
	DAY_S = 24 * 3600,
	MOST_ATTRIBUTES = 4096,
	MAPPING_IDS = 3,
};

#define LATEST_NS \
	(4102444800ull * NSEC_PER_SEC) /* the year 2100: DateTime, of which partitions and TTL are made, ends in 2106 */

const char *const click_inserts[CLICK_TABLES] = {
	[CLICK_FRAMES] =
		"INSERT INTO hearth_frames (id, seen, function, system_name, file, start_line, line, column, address,"
		" inlined, type, path, build_id, id_kind, memory_start, memory_limit, file_offset, key, value, kind,"
		" unit, mapping_key, mapping_value, mapping_kind, mapping_unit) FORMAT RowBinary",
	[CLICK_STACKS] = "INSERT INTO hearth_stacks (id, seen, service, frames) FORMAT RowBinary",
	[CLICK_LABELS] = "INSERT INTO hearth_labels (id, seen, key, value, kind, unit) FORMAT RowBinary",
	[CLICK_SERIES] =
		"INSERT INTO hearth_series (id, seen, service, sample_type, sample_unit, period_type, period_unit,"
		" period, shape, scope_name, scope_version, resource_keys, key, value, kind, unit) FORMAT RowBinary",
	[CLICK_SAMPLES] =
		"INSERT INTO hearth_samples (time, sample_type, service, series, stack, labels, cpu, weight, trace, span)"
		" FORMAT RowBinary",
};

struct click_sent {
	struct ids ids;
	uint64_t since_ns; /* Unix */
};

struct click_sent *click_sent_new(void)
{
	struct click_sent *t = calloc(1, sizeof(*t));

	if (t)
		ids_init(&t->ids, MOST_SENT);
	return t;
}

void click_sent_free(struct click_sent *t)
{
	if (t)
		ids_fini(&t->ids);
	free(t);
}

void click_sent_forget(struct click_sent *t)
{
	ids_clear(&t->ids);
}

/* --- one message --- */

struct label_row {
	uint64_t id; /* 0: not met */
	uint16_t cpu;
};

struct message {
	struct click_batch *batch;
	struct click_sent *sent;
	const struct profiles *p;
	struct str service; /* of the resource that is being read */
	uint32_t seen_s;
	struct buf *mappings;  /* by mapping: the end of a frame's row */
	struct buf *locations; /* by location: ids of its frames, outermost first */
	uint64_t *stacks;      /* by stack, of this service; 0: not met */
	struct intern *lists;  /* of sample attributes: indices -> place in list_rows */
	struct label_row *list_rows;
	size_t list_cap;
	struct buf row, frames;
	int err; /* sticks */
};

static int message_init(struct message *m)
{
	const struct dictionary *d = &m->p->dict;

	m->mappings = calloc(d->mapping_count + 1, sizeof(*m->mappings));
	m->locations = calloc(d->location_count + 1, sizeof(*m->locations));
	m->stacks = calloc(d->stack_count + 1, sizeof(*m->stacks));
	m->lists = intern_new();
	return m->mappings && m->locations && m->stacks && m->lists ? 0 : -ENOMEM;
}

static void message_fini(struct message *m)
{
	for (uint32_t i = 0; m->mappings && i < m->p->dict.mapping_count; i++)
		buf_fini(&m->mappings[i]);
	for (uint32_t i = 0; m->locations && i < m->p->dict.location_count; i++)
		buf_fini(&m->locations[i]);
	free(m->mappings);
	free(m->locations);
	free(m->stacks);
	free(m->list_rows);
	intern_free(m->lists);
	buf_fini(&m->row);
	buf_fini(&m->frames);
}

/* The id of the thing with this row; the row goes into the batch when it is not known there. */
static uint64_t keep_row(struct message *m, enum click_table table, const struct buf *row)
{
	const struct id_key key = id_key_of(row->data, row->len);
	const struct id_key known = { key.low, key.high << 3 | table };
	const uint64_t id = key.low ? key.low : 1;
	struct buf *rows = &m->batch->rows[table];

	if (row->failed)
		m->err = -ENOMEM;
	if (ids_get(&m->sent->ids, known))
		return id;
	(void)ids_put(&m->sent->ids, known, 1);
	put_number(rows, id, 8);
	put_number(rows, m->seen_s, 4);
	buf_append(rows, row->data, row->len);
	return id;
}

/* Appends @from; for want of memory it may be short of something, and then so is @b. */
static void put_part(struct buf *b, const struct buf *from)
{
	buf_append(b, from->data, from->len);
	b->failed |= from->failed;
}

static void put_str(struct buf *b, struct str s)
{
	put_text(b, s.data, s.len);
}

static void put_string(struct message *m, struct buf *b, int32_t index)
{
	put_str(b, profiles_string(m->p, index));
}

/* --- attributes: arrays of keys, values, kinds and units --- */

struct attribute {
	struct str key, unit;
	const struct any_value *value;
};

static void put_value(struct message *m, struct buf *b, const struct any_value *v)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	char number[32] = "";
	struct str s;
	int err;

	if (profiles_value_string(m->p, v, &s)) {
		put_str(b, s);
		return;
	}
	switch (v->kind) {
	case VALUE_BOOL:
		put_str(b, str_z(v->boolean ? "true" : "false"));
		break;
	case VALUE_INT:
		snprintf(number, sizeof(number), "%" PRId64, v->integer);
		put_str(b, str_z(number));
		break;
	case VALUE_DOUBLE:
		snprintf(number, sizeof(number), "%.17g", v->real);
		put_str(b, str_z(number));
		break;
	case VALUE_BYTES:
		put_str(b, v->string);
		break;
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		err = origin_encode_value(m->p, v, &message);
		m->err = m->err ? m->err : err;
		put_text(b, buf_text(&message), message.len);
		break;
	default:
		put_str(b, STR(""));
		break;
	}
}

static void put_attributes(struct message *m, struct buf *b, const struct attribute *list, size_t count)
{
	count = count < MOST_ATTRIBUTES ? count : MOST_ATTRIBUTES;
	varint_append(b, count);
	for (size_t i = 0; i < count; i++)
		put_str(b, list[i].key);
	varint_append(b, count);
	for (size_t i = 0; i < count; i++)
		put_value(m, b, list[i].value);
	varint_append(b, count);
	for (size_t i = 0; i < count; i++)
		put_number(b, list[i].value->kind == VALUE_STRINDEX ? VALUE_STRING : list[i].value->kind, 1);
	varint_append(b, count);
	for (size_t i = 0; i < count; i++)
		put_str(b, list[i].unit);
}

static struct attribute attribute_at(const struct message *m, int32_t index)
{
	const struct profile_attribute *a = &m->p->dict.attributes[index];

	return (struct attribute){ profiles_string(m->p, a->key_strindex), profiles_string(m->p, a->unit_strindex),
				   &a->value };
}

static void put_indices(struct message *m, struct buf *b, const struct indices *list)
{
	AUTO_FREE struct attribute *items = malloc((list->count + 1) * sizeof(*items));

	if (!items) {
		m->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < list->count; i++)
		items[i] = attribute_at(m, list->items[i]);
	put_attributes(m, b, items, list->count);
}

/* --- frames and stacks --- */

/* The part of a frame's row that comes from its mapping: path, build id, its kind, three numbers. */
static const struct buf *mapping_of(struct message *m, int32_t index)
{
	static const char *const keys[MAPPING_IDS] = { "process.executable.build_id.gnu", "process.executable.build_id.go",
						       "process.executable.build_id.htlhash" };
	static const char *const kinds[MAPPING_IDS] = { "gnu", "go", "htlhash" };
	const struct profile_mapping *mapping = &m->p->dict.mappings[index];
	struct buf *b = &m->mappings[index];
	struct str id = STR(""), kind = STR("");

	if (b->len)
		return b;
	for (size_t i = 0; i < MAPPING_IDS && !id.len; i++) {
		const struct any_value *v = profiles_find_attribute(m->p, &mapping->attributes, keys[i]);

		if (v && profiles_value_string(m->p, v, &id))
			kind = str_z(kinds[i]);
	}
	put_string(m, b, mapping->filename_strindex);
	put_str(b, id);
	put_str(b, kind);
	put_number(b, mapping->memory_start, 8);
	put_number(b, mapping->memory_limit, 8);
	put_number(b, mapping->file_offset, 8);
	return b;
}

static void put_frame(struct message *m, const struct profile_location *l, const struct profile_line *line, bool inlined)
{
	static const struct profile_line none = { 0 };
	const struct profile_function *f = &m->p->dict.functions[line ? line->function_index : 0];
	const struct any_value *type = profiles_find_attribute(m->p, &l->attributes, "profile.frame.type");
	const struct buf *mapping = mapping_of(m, l->mapping_index);
	struct str type_text = profiles_value_text(m->p, type);
	struct buf *b = &m->row;

	line = line ? line : &none;
	buf_reset(b);
	put_string(m, b, f->name_strindex);
	put_string(m, b, f->system_name_strindex);
	put_string(m, b, f->filename_strindex);
	put_number(b, (uint64_t)f->start_line, 8);
	put_number(b, (uint64_t)line->line, 8);
	put_number(b, (uint64_t)line->column, 8);
	put_number(b, l->address, 8);
	put_number(b, inlined, 1);
	put_str(b, type_text);
	put_part(b, mapping);
	put_indices(m, b, &l->attributes);
	put_indices(m, b, &m->p->dict.mappings[l->mapping_index].attributes);
}

/* The ids of a location's frames, outermost first. */
static const struct buf *location_of(struct message *m, int32_t index)
{
	const struct profile_location *l = &m->p->dict.locations[index];
	const uint32_t count = l->line_count ? l->line_count : 1;
	struct buf *ids = &m->locations[index];

	for (uint32_t i = count; i > 0 && ids->len < (size_t)count * 8 && !m->err; i--) {
		put_frame(m, l, l->line_count ? &l->lines[i - 1] : NULL, i < count);
		put_number(ids, keep_row(m, CLICK_FRAMES, &m->row), 8);
	}
	return ids;
}

/* The id of stack @index, root first in its row; 0: the empty one. */
static uint64_t stack_of(struct message *m, int32_t index)
{
	const struct indices *stack = &m->p->dict.stacks[index];
	struct buf *frames = &m->frames, *row = &m->row;

	if (m->stacks[index] || !stack->count)
		return m->stacks[index];
	buf_reset(frames);
	for (uint32_t i = stack->count; i > 0 && !m->err; i--)
		put_part(frames, location_of(m, stack->items[i - 1]));
	buf_reset(row);
	put_str(row, m->service);
	varint_append(row, frames->len / 8);
	put_part(row, frames);
	m->stacks[index] = keep_row(m, CLICK_STACKS, row);
	return m->stacks[index];
}

/* --- labels --- */

static struct label_row make_labels(struct message *m, const struct indices *list)
{
	AUTO_FREE struct attribute *items = malloc((list->count + 1) * sizeof(*items));
	struct label_row row = { 0 };
	size_t count = 0;

	if (!items) {
		m->err = -ENOMEM;
		return row;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct profile_attribute *a = &m->p->dict.attributes[list->items[i]];

		if (!row.cpu && store_is_cpu(m->p, a))
			row.cpu = (uint16_t)(a->value.integer + 1);
		else
			items[count++] = attribute_at(m, list->items[i]);
	}
	buf_reset(&m->row);
	put_attributes(m, &m->row, items, count);
	row.id = keep_row(m, CLICK_LABELS, &m->row);
	return row;
}

static struct label_row labels_of(struct message *m, const struct indices *list)
{
	uint32_t place;
	int is_new = intern_add(m->lists, list->count ? (const void *)list->items : "", list->count * sizeof(*list->items),
				&place);

	if (is_new < 0 || vec_reach(&m->list_rows, &m->list_cap, place)) {
		m->err = -ENOMEM;
		return (struct label_row){ 0 };
	}
	if (is_new)
		m->list_rows[place] = make_labels(m, list);
	return m->list_rows[place];
}

/* --- series --- */

static size_t add_key_values(const struct message *m, const struct key_values *kvs, struct attribute *items)
{
	for (uint32_t i = 0; i < kvs->count; i++)
		items[i] = (struct attribute){ profiles_key(m->p, &kvs->items[i]), STR(""), &kvs->items[i].value };
	return kvs->count;
}

/* The id of a series. Its labels are the resource's attributes, the profile's, and the scope's name and version. */
static uint64_t series_of(struct message *m, const struct resource_profiles *rp, const struct scope_profiles *sp,
			  const struct profile *profile, int shape)
{
	const struct key_values *resource = &rp->resource.attributes;
	const struct any_value scope[2] = { { .kind = VALUE_STRING, .string = sp->scope.name },
					    { .kind = VALUE_STRING, .string = sp->scope.version } };
	AUTO_FREE struct attribute *items = malloc((resource->count + profile->attributes.count + 3) * sizeof(*items));
	struct buf *b = &m->row;
	size_t count = 0;

	if (!items) {
		m->err = -ENOMEM;
		return 0;
	}
	count = add_key_values(m, resource, items);
	for (uint32_t i = 0; i < profile->attributes.count; i++)
		items[count++] = attribute_at(m, profile->attributes.items[i]);
	for (size_t i = 0; i < 2; i++)
		if (scope[i].string.len)
			items[count++] = (struct attribute){ i ? STR("otel.scope.version") : STR("otel.scope.name"), STR(""),
							     &scope[i] };
	buf_reset(b);
	put_str(b, m->service);
	put_string(m, b, profile->sample_type.type_strindex);
	if (store_gauge_unit(m->p, profile))
		put_str(b, str_z(store_gauge_unit(m->p, profile)));
	else
		put_string(m, b, profile->sample_type.unit_strindex);
	put_string(m, b, profile->period_type.type_strindex);
	put_string(m, b, profile->period_type.unit_strindex);
	put_number(b, (uint64_t)profile->period, 8);
	put_number(b, (uint64_t)shape, 1);
	put_str(b, sp->scope.name);
	put_str(b, sp->scope.version);
	put_number(b, resource->count < MOST_ATTRIBUTES ? resource->count : MOST_ATTRIBUTES, 2);
	put_attributes(m, b, items, count);
	return keep_row(m, CLICK_SERIES, b);
}

/* --- samples --- */

static void put_sample(struct message *m, const struct buf *middle, const struct buf *end, struct store_event e)
{
	struct buf *b = &m->batch->rows[CLICK_SAMPLES];

	put_number(b, e.time_ns < LATEST_NS ? e.time_ns : LATEST_NS, 8);
	buf_append(b, middle->data, middle->len);
	put_number(b, (uint64_t)e.weight, 8);
	buf_append(b, end->data, end->len);
	m->batch->events++;
}

/* @head: the bytes of type, service and series, of all samples of a profile. */
static void add_sample(struct message *m, const struct profile *profile, const struct sample *sample, const struct buf *head)
{
	const struct profile_link *link = &m->p->dict.links[sample->link_index];
	const struct label_row labels = labels_of(m, &sample->attributes);
	const uint64_t stack = stack_of(m, sample->stack_index);
	AUTO(buf_fini) struct buf end = BUF_EMPTY;
	struct buf *middle = &m->frames;

	buf_reset(middle);
	put_part(middle, head);
	put_number(middle, stack, 8);
	put_number(middle, labels.id, 8);
	put_number(middle, labels.cpu, 2);
	put_str(&end, sample->link_index ? link->trace_id : STR(""));
	put_str(&end, sample->link_index ? link->span_id : STR(""));
	if (middle->failed || end.failed)
		m->err = -ENOMEM;
	for (uint32_t i = 0; i < store_event_count(sample) && !m->err; i++)
		put_sample(m, middle, &end, store_event_kept(m->p, profile, sample, i));
}

static void add_profile(struct message *m, const struct resource_profiles *rp, const struct scope_profiles *sp,
			const struct profile *profile)
{
	struct buf heads[4] = { 0 }; /* by shape */

	for (uint32_t i = 0; i < profile->sample_count && !m->err; i++) {
		const struct sample *sample = &profile->samples[i];
		int shape = (sample->timestamp_count ? 1 : 0) | (sample->value_count ? 2 : 0);
		struct buf *head = &heads[shape];

		if (!head->len) {
			uint64_t series = series_of(m, rp, sp, profile, shape);

			put_string(m, head, profile->sample_type.type_strindex);
			put_str(head, m->service);
			put_number(head, series, 8);
		}
		add_sample(m, profile, sample, head);
	}
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		buf_fini(&heads[i]);
}

/* --- batches --- */

int click_batch_add(struct click_batch *b, struct click_sent *sent, const struct profiles *p, uint64_t now_ns)
{
	AUTO(message_fini)
	struct message m = { .batch = b, .sent = sent, .p = p, .seen_s = (uint32_t)(now_ns / NSEC_PER_SEC) };

	m.err = message_init(&m);
	if (now_ns / NSEC_PER_SEC - sent->since_ns / NSEC_PER_SEC > DAY_S) {
		click_sent_forget(sent);
		sent->since_ns = now_ns;
	}
	for (uint32_t r = 0; r < p->resource_count && !m.err; r++) {
		const struct resource_profiles *rp = &p->resources[r];
		const struct any_value *service = profiles_find_key(p, &rp->resource.attributes, "service.name");
		const struct str before = m.service;

		m.service = profiles_value_text(p, service);
		if (r && (before.len != m.service.len || memcmp(before.data, m.service.data, before.len) != 0))
			memset(m.stacks, 0, p->dict.stack_count * sizeof(*m.stacks));
		for (uint32_t s = 0; s < rp->scope_count; s++)
			for (uint32_t i = 0; i < rp->scopes[s].profile_count && !m.err; i++)
				add_profile(&m, rp, &rp->scopes[s], &rp->scopes[s].profiles[i]);
	}
	for (size_t i = 0; i < CLICK_TABLES && !m.err; i++)
		m.err = b->rows[i].failed ? -ENOMEM : 0;
	return m.err;
}

void click_batch_reset(struct click_batch *b)
{
	for (size_t i = 0; i < CLICK_TABLES; i++)
		buf_reset(&b->rows[i]);
	b->events = 0;
}

void click_batch_fini(struct click_batch *b)
{
	for (size_t i = 0; i < CLICK_TABLES; i++)
		buf_fini(&b->rows[i]);
}
