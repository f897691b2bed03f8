/* SPDX-License-Identifier: Apache-2.0 */
/* One message's samples to events. What the message's own tables refer to is numbered when it is first met. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sample.h"
#include "backend/store_sqlite_keep.h"
#include "backend/store_sqlite_origin.h"
#include "base/cleanup.h"

/* What a list of a sample's attributes means. */
struct label_set {
	uint32_t set, cpu;
};

/* A location's frames, outermost first, among struct message's. */
struct location_frames {
	uint32_t first, count; /* count 0: not met yet */
};

struct path_step {
	struct id_key key;
	uint32_t frame;
};

struct message {
	struct keep *k;
	const struct profiles *p;
	uint32_t *strings, *attributes, *functions, *mappings, *stacks,
		*links; /* numbers in the store; 0: not met, or none */
	uint8_t *stack_met;
	struct location_frames *locations;
	uint32_t *frames;
	size_t frame_count, frame_cap;
	struct path_step *path; /* of the stack at hand, outermost first */
	size_t path_count, path_cap;
	struct label_set *label_sets;
	size_t label_set_count, label_set_cap;
	struct ids label_set_of; /* bytes of the list of indices: place among label_sets + 1 */
	struct buf text;
	int err; /* sticks */
};

static void message_fini(struct message *m)
{
	void *const arrays[] = { m->strings,   m->attributes, m->functions, m->mappings, m->stacks,    m->links,
				 m->stack_met, m->locations,  m->frames,    m->path,	 m->label_sets };

	for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
		free(arrays[i]);
	ids_fini(&m->label_set_of);
	buf_fini(&m->text);
}

static int message_init(struct message *m, struct keep *k, const struct profiles *p)
{
	const struct dictionary *d = &p->dict;

	*m = (struct message){ .k = k, .p = p };
	ids_init(&m->label_set_of, 1 << 16);
	m->strings = calloc(d->string_count + 1, sizeof(*m->strings));
	m->attributes = calloc(d->attribute_count + 1, sizeof(*m->attributes));
	m->functions = calloc(d->function_count + 1, sizeof(*m->functions));
	m->mappings = calloc(d->mapping_count + 1, sizeof(*m->mappings));
	m->stacks = calloc(d->stack_count + 1, sizeof(*m->stacks));
	m->stack_met = calloc(d->stack_count + 1, sizeof(*m->stack_met));
	m->links = calloc(d->link_count + 1, sizeof(*m->links));
	m->locations = calloc(d->location_count + 1, sizeof(*m->locations));
	return m->strings && m->attributes && m->functions && m->mappings && m->stacks && m->stack_met && m->links &&
			       m->locations
		       ? 0
		       : -ENOMEM;
}

static void *grow(void *array, size_t *cap, size_t wanted, size_t size)
{
	size_t cap_new = *cap ? *cap * 2 : 1024;
	void *grown;

	if (wanted <= *cap)
		return array;
	while (cap_new < wanted)
		cap_new *= 2;
	grown = realloc(array, cap_new * size);
	if (grown)
		*cap = cap_new;
	return grown;
}

/* Room for one more of @array, or the message fails. */
#define ROOM(m, array, cap, count)                                                   \
	({                                                                           \
		void *grown_ = grow((array), &(cap), (count) + 1, sizeof(*(array))); \
		if (grown_)                                                          \
			(array) = grown_;                                            \
		else                                                                 \
			(m)->err = -ENOMEM;                                          \
		grown_ != NULL;                                                      \
	})

/* --- rows --- */

static void insert(struct message *m, enum kept kind)
{
	sqlite3_stmt *st = m->k->insert[kind];
	int code = sqlite3_step(st);

	sqlite3_reset(st);
	if (!m->err)
		m->err = store_sqlite_errno(code);
}

/* Rows of integers alone: the content is those. */
static uint32_t keep_integers(struct message *m, enum kept kind, const int64_t *values, size_t count)
{
	uint32_t id_new, id = keep_number(m->k, kind, values, count * sizeof(*values), &id_new);

	if (id)
		return id;
	sqlite3_bind_int64(m->k->insert[kind], 1, id_new);
	for (size_t i = 0; i < count; i++)
		sqlite3_bind_int64(m->k->insert[kind], (int)i + 2, values[i]);
	insert(m, kind);
	return id_new;
}

/* Text, or with @is_bytes what is none. */
static uint32_t keep_bytes(struct message *m, struct str s, bool is_bytes)
{
	uint32_t id_new, id = s.len ? keep_number(m->k, KEPT_STRING, s.data, s.len, &id_new) : 0;
	sqlite3_stmt *st = m->k->insert[KEPT_STRING];

	if (id || !s.len)
		return id;
	sqlite3_bind_int64(st, 1, id_new);
	if (is_bytes)
		sqlite3_bind_blob64(st, 2, s.data, s.len, SQLITE_STATIC);
	else
		sqlite3_bind_text64(st, 2, s.data, s.len, SQLITE_STATIC, SQLITE_UTF8);
	insert(m, KEPT_STRING);
	return id_new;
}

static uint32_t keep_text(struct message *m, struct str s)
{
	return keep_bytes(m, s, false);
}

static uint32_t keep_string(struct message *m, int32_t index)
{
	if (!m->strings[index])
		m->strings[index] = keep_text(m, m->p->dict.strings[index]);
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
		m->attributes[index] = keep_attribute(m, keep_string(m, a->key_strindex), keep_string(m, a->unit_strindex),
						      &a->value);
	return m->attributes[index];
}

/* A set of numbered attributes in this order; one of none is 0. */
static uint32_t keep_set(struct message *m, const int64_t *attributes, size_t count)
{
	return count ? keep_list(m->k, KEPT_SET, attributes, count < LIST_MOST_NUMBERS ? count : LIST_MOST_NUMBERS) : 0;
}

static uint32_t keep_indices(struct message *m, const struct indices *list)
{
	AUTO_FREE int64_t *numbers = malloc((list->count + 1) * sizeof(*numbers));

	if (!numbers) {
		m->err = -ENOMEM;
		return 0;
	}
	for (uint32_t i = 0; i < list->count; i++)
		numbers[i] = keep_attribute_at(m, list->items[i]);
	return keep_set(m, numbers, list->count);
}

static uint32_t keep_key_values(struct message *m, const struct key_values *kvs)
{
	AUTO_FREE int64_t *numbers = malloc((kvs->count + 1) * sizeof(*numbers));

	if (!numbers) {
		m->err = -ENOMEM;
		return 0;
	}
	for (uint32_t i = 0; i < kvs->count; i++)
		numbers[i] = keep_attribute(m, keep_text(m, profiles_key(m->p, &kvs->items[i])), 0, &kvs->items[i].value);
	return keep_set(m, numbers, kvs->count);
}

/* --- stacks --- */

static uint32_t keep_function(struct message *m, int32_t index)
{
	const struct profile_function *f = &m->p->dict.functions[index];

	if (index && !m->functions[index]) {
		const int64_t row[] = { keep_string(m, f->name_strindex), keep_string(m, f->system_name_strindex),
					keep_string(m, f->filename_strindex), f->start_line };

		m->functions[index] = keep_integers(m, KEPT_FUNCTION, row, ARRAY_LEN(row));
	}
	return m->functions[index];
}

static uint32_t keep_mapping(struct message *m, int32_t index)
{
	const struct profile_mapping *mapping = &m->p->dict.mappings[index];

	if (index && !m->mappings[index]) {
		const int64_t row[] = { keep_string(m, mapping->filename_strindex), (int64_t)mapping->memory_start,
					(int64_t)mapping->memory_limit, (int64_t)mapping->file_offset,
					keep_indices(m, &mapping->attributes) };

		m->mappings[index] = keep_integers(m, KEPT_MAPPING, row, ARRAY_LEN(row));
	}
	return m->mappings[index];
}

static uint32_t keep_frame(struct message *m, const struct frame_row *row)
{
	struct keep *k = m->k;
	uint32_t id_new, id = keep_number(k, KEPT_FRAME, row, sizeof(*row), &id_new);

	if (id)
		return id;
	if (ROOM(m, k->frames, k->frame_cap, k->frame_count))
		k->frames[k->frame_count++] = *row;
	return id_new;
}

/* The frames of location @index, numbered. */
static struct location_frames keep_location(struct message *m, int32_t index)
{
	const struct profile_location *l = &m->p->dict.locations[index];
	struct location_frames *frames = &m->locations[index];
	uint32_t count = l->line_count ? l->line_count : 1;
	struct frame_row row = { .address = l->address };

	if (frames->count)
		return *frames;
	row.mapping = keep_mapping(m, l->mapping_index);
	row.attributes = keep_indices(m, &l->attributes);
	*frames = (struct location_frames){ .first = (uint32_t)m->frame_count, .count = count };
	for (uint32_t i = count; i > 0; i--) {
		const struct profile_line *line = l->line_count ? &l->lines[i - 1] : NULL;

		row.function = line ? keep_function(m, line->function_index) : 0;
		row.line = line ? line->line : 0;
		row.column = line ? line->column : 0;
		row.inlined = i < count;
		if (ROOM(m, m->frames, m->frame_cap, m->frame_count))
			m->frames[m->frame_count++] = keep_frame(m, &row);
	}
	return *frames;
}

static void add_step(struct message *m, uint32_t frame)
{
	struct id_key parent = m->path_count ? m->path[m->path_count - 1].key : (struct id_key){ 0 };

	if (ROOM(m, m->path, m->path_cap, m->path_count))
		m->path[m->path_count++] = (struct path_step){ id_key_below(parent, frame), frame };
}

/* The number of the path's last node. Those that are not known yet, the last of it, are kept. */
static uint32_t keep_path(struct message *m)
{
	struct keep *k = m->k;
	size_t known = m->path_count;
	uint32_t node = 0;

	while (known && !(node = ids_get(&k->ids[KEPT_NODE], m->path[known - 1].key)))
		known--;
	for (size_t i = known; i < m->path_count && ROOM(m, k->nodes, k->node_cap, k->node_count); i++) {
		k->nodes[k->node_count++] = (struct node_row){ .parent = node, .frame = m->path[i].frame };
		node = k->next[KEPT_NODE]++;
		(void)ids_put(&k->ids[KEPT_NODE], m->path[i].key, node);
	}
	return node;
}

static uint32_t keep_stack(struct message *m, int32_t index)
{
	const struct indices *stack = &m->p->dict.stacks[index];

	if (m->stack_met[index])
		return m->stacks[index];
	m->path_count = 0;
	for (uint32_t i = stack->count; i > 0 && !m->err; i--) {
		struct location_frames frames = keep_location(m, stack->items[i - 1]);

		for (uint32_t f = 0; f < frames.count && !m->err; f++)
			add_step(m, m->frames[frames.first + f]);
	}
	if (m->err)
		return 0;
	m->stack_met[index] = 1;
	m->stacks[index] = keep_path(m);
	return m->stacks[index];
}

/* --- samples --- */

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static struct label_set make_label_set(struct message *m, const struct indices *list)
{
	AUTO_FREE int64_t *numbers = malloc((list->count + 1) * sizeof(*numbers));
	struct label_set set = { 0 };
	size_t count = 0;

	if (!numbers) {
		m->err = -ENOMEM;
		return set;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct profile_attribute *a = &m->p->dict.attributes[list->items[i]];

		if (!set.cpu && store_is_cpu(m->p, a))
			set.cpu = (uint32_t)a->value.integer + 1;
		else
			numbers[count++] = keep_attribute_at(m, list->items[i]);
	}
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	set.set = keep_set(m, numbers, count);
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
	if (!m->err && ROOM(m, m->label_sets, m->label_set_cap, m->label_set_count)) {
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

	e->stack = keep_stack(m, sample->stack_index);
	e->link = keep_link(m, sample->link_index);
	e->labels = set.set;
	e->cpu = set.cpu;
	for (uint32_t i = 0; i < store_event_count(sample) && !m->err; i++) {
		const struct store_event event = store_event_at(profile, sample, i);

		e->time_ns = event.time_ns > INT64_MAX ? INT64_MAX : event.time_ns;
		e->weight = event.weight;
		if (ROOM(m, k->events, k->event_cap, k->event_count))
			k->events[k->event_count++] = *e;
	}
}

/* The series of a profile's samples. */
static uint32_t keep_series(struct message *m, uint32_t resource_set, const struct origin *origin)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	const struct profile *profile = origin->profile;
	const int64_t head[2] = { origin->shape, keep_indices(m, &profile->attributes) };
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
	id = keep_number(m->k, KEPT_ORIGIN, m->text.data, m->text.len, &id_new);
	if (!id) {
		id = id_new;
		sqlite3_bind_int64(st, 1, id);
		for (int i = 0; i < 4; i++) {
			struct str s = profiles_string(m->p, texts[i]);

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
	for (uint32_t i = 0; i < profile->sample_count && !m->err; i++)
		add_sample(m, profile, &profile->samples[i], &e);
}

int keep_profiles(struct keep *k, const struct profiles *p)
{
	AUTO(message_fini) struct message m;

	if (message_init(&m, k, p))
		return -ENOMEM;
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
