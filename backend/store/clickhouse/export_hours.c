/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns stored events into profiles again, a message an hour: resources, labels, links and times as they came, samples of
 * the same stack and labels together. Resources' values that are lists or bytes, and what a scope has beside name and
 * version, are left out. Times, ids and payloads of single reports were not kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "proto/arena.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"

enum {
	STACK_MOST_FRAMES = 1 << 16,
	MOST_ATTRIBUTES = 4096,
	TRACE_BYTES = 16,
	SPAN_BYTES = 8,
	HAS_TIMES = 1,
	HAS_VALUES = 2
};

#define SCOPE_KEYS "otel.scope."

/* A list of attributes as indices of the builder. */
struct list {
	uint32_t count;
	int32_t items[]; /* and room for one more */
};

struct series {
	struct builder_profile_spec spec;
	uint32_t profile;
	int shape;
};

/* One message while it is made; all its parts are in @memory. */
struct message {
	struct store_clickhouse *s;
	const struct store_selection *sel;
	struct builder *b;
	struct arena *memory;
	struct map series, labels; /* id -> struct series, struct list */
	struct map stacks;	   /* node -> index + 1 */
	uint64_t first_ns, last_ns;
};

static int message_init(struct message *m)
{
	m->b = builder_new();
	m->memory = arena_new();
	m->first_ns = UINT64_MAX;
	return m->b && m->memory ? 0 : -ENOMEM;
}

static void message_fini(struct message *m)
{
	builder_free(m->b);
	arena_free(m->memory);
	map_fini(&m->series);
	map_fini(&m->labels);
	map_fini(&m->stacks);
}

static const char *copy(struct message *m, struct str s, int *err)
{
	char *text = arena_alloc(m->memory, s.len + 1);

	if (!text) {
		*err = -ENOMEM;
		return "";
	}
	memcpy(text, s.data, s.len);
	return text;
}

/* --- attributes --- */

/* Four columns, side by side. */
struct columns {
	struct row_reader keys, values, kinds, units;
	uint64_t count;
};

static void skip_texts(struct row_reader *r, uint64_t count)
{
	while (count-- > 0 && !r->is_bad)
		(void)get_text(r);
}

static struct columns get_columns(struct row_reader *r)
{
	struct columns c = { .keys = *r };

	c.count = get_count(&c.keys);
	if (c.count > MOST_ATTRIBUTES)
		r->is_bad = true;
	(void)get_count(r);
	skip_texts(r, c.count);
	c.values = *r;
	skip_texts(r, get_count(r));
	c.kinds = *r;
	for (uint64_t i = get_count(r); i > 0 && !r->is_bad; i--)
		(void)get_number(r, 1);
	c.units = *r;
	skip_texts(r, get_count(r));
	(void)get_count(&c.values);
	(void)get_count(&c.kinds);
	(void)get_count(&c.units);
	c.count = r->is_bad ? 0 : c.count;
	return c;
}

/* One value of kind @kind that was written as @text; @owner_ret gets the owner of a list's memory. False: it cannot be told
 * again. */
static bool read_value(uint64_t kind, struct str text, struct any_value *ret, struct profiles **owner_ret)
{
	char number[40];
	struct otlp_error why;

	snprintf(number, sizeof(number), "%.*s", (int)(text.len < 39 ? text.len : 39), text.data);
	*ret = (struct any_value){ .kind = (enum value_kind)kind };
	switch (ret->kind) {
	case VALUE_STRING:
		ret->string = text;
		return true;
	case VALUE_BOOL:
		ret->boolean = str_is(text, "true");
		return true;
	case VALUE_INT:
		ret->integer = strtoll(number, NULL, 10);
		return true;
	case VALUE_DOUBLE:
		ret->real = strtod(number, NULL);
		return true;
	case VALUE_ARRAY:
		if (otlp_decode((uint8_t *)(uintptr_t)text.data, text.len, false, owner_ret, &why))
			return false;
		if ((*owner_ret)->dict.attribute_count < 2)
			return false;
		*ret = (*owner_ret)->dict.attributes[1].value;
		for (uint32_t i = 0; i < ret->array.count; i++)
			if (ret->kind != VALUE_ARRAY || ret->array.items[i].kind != VALUE_STRING)
				return false;
		return ret->kind == VALUE_ARRAY;
	default:
		return false;
	}
}

/* The scope's name and version stand among a series' labels, and in columns of their own. */
static bool is_of_scope(struct str key)
{
	return key.len >= strlen(SCOPE_KEYS) && !memcmp(key.data, SCOPE_KEYS, strlen(SCOPE_KEYS));
}

static struct list *get_list(struct message *m, struct row_reader *r, uint64_t skip)
{
	struct columns c = get_columns(r);
	struct list *list = arena_alloc(m->memory, sizeof(*list) + (c.count + 1) * sizeof(int32_t));

	for (uint64_t i = 0; list && i < c.count; i++) {
		const struct str key = get_text(&c.keys), text = get_text(&c.values);
		struct profiles *owner = NULL;
		struct any_value value;
		const bool is_value = read_value(get_number(&c.kinds, 1), text, &value, &owner);
		const int32_t unit = builder_string(m->b, get_text(&c.units));

		if (is_value && i >= skip && !is_of_scope(key))
			list->items[list->count++] = builder_attribute(m->b, key, &value, unit);
		profiles_put(owner);
	}
	return list;
}

/* --- series --- */

/* The resource made of the first @count attributes. */
static int get_resource(struct message *m, struct columns c, uint64_t count, uint32_t *ret)
{
	AUTO_FREE struct key_value *items = calloc(count + 1, sizeof(*items));
	uint32_t kept = 0;

	if (!items)
		return -ENOMEM;
	for (uint64_t i = 0; i < count && i < c.count; i++) {
		struct profiles *owner = NULL;
		const struct str key = get_text(&c.keys), text = get_text(&c.values);

		items[kept] = (struct key_value){ .key = key };
		if (read_value(get_number(&c.kinds, 1), text, &items[kept].value, &owner) &&
		    items[kept].value.kind != VALUE_ARRAY)
			kept++;
		profiles_put(owner);
	}
	*ret = builder_resource(m->b, items, kept);
	return 0;
}

static int read_series(struct message *m, struct row_reader *r)
{
	const uint64_t id = get_number(r, 8);
	struct series *series = arena_alloc(m->memory, sizeof(*series));
	const char *texts[6];
	struct row_reader attributes;
	struct list *list;
	uint64_t resource_keys;
	uint32_t resource;
	int err = 0;

	if (!series)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		texts[i] = copy(m, get_text(r), &err);
	series->spec = (struct builder_profile_spec){
		texts[4], texts[5], texts[0], texts[1], texts[2], texts[3], .period = (int64_t)get_number(r, 8)
	};
	series->shape = (int)get_number(r, 1);
	resource_keys = get_number(r, 2);
	attributes = *r;
	err = err ? err : get_resource(m, get_columns(&attributes), resource_keys, &resource);
	list = err ? NULL : get_list(m, r, resource_keys);
	if (!list || r->is_bad)
		return err ? err : r->is_bad ? -EBADMSG : -ENOMEM;
	series->spec.attributes = list->items;
	series->spec.attribute_count = list->count;
	series->profile = builder_profile(m->b, resource, &series->spec);
	return map_get(&m->series, id) ? 0 : map_put(&m->series, id, series);
}

static int read_labels(struct message *m, struct row_reader *r)
{
	const uint64_t id = get_number(r, 8);
	struct list *list = get_list(m, r, 0);

	if (!list || r->is_bad)
		return list ? -EBADMSG : -ENOMEM;
	return map_get(&m->labels, id) ? 0 : map_put(&m->labels, id, list);
}

/* --- stacks --- */

static int32_t location_of(struct message *m, const uint32_t *frames, uint32_t count)
{
	struct profile_line lines[256];
	const struct click_frame_more *more = NULL;
	struct store_frame f = { 0 };
	struct list *lists[2];
	int32_t mapping = 0;

	for (uint32_t i = 0; i < count; i++) {
		int32_t function = 0;

		if (click_frame(&m->s->store, frames[i], &f))
			return 0;
		if (*f.function || *f.system_name || *f.file || f.start_line)
			function = builder_function(m->b, builder_string_z(m->b, f.function),
						    builder_string_z(m->b, f.system_name), builder_string_z(m->b, f.file),
						    f.start_line);
		more = click_frame_more(m->s->names, frames[i]);
		lines[i] = (struct profile_line){ function, f.line, more->column };
	}
	for (size_t i = 0; i < 2; i++) {
		struct row_reader r = { (const uint8_t *)more->attributes[i].data,
					(const uint8_t *)more->attributes[i].data + more->attributes[i].len, false };

		lists[i] = get_list(m, &r, 0);
		if (!lists[i])
			return -ENOMEM;
	}
	if (*f.path || lists[1]->count || more->memory_start || more->memory_limit)
		mapping = builder_mapping(m->b, more->memory_start, more->memory_limit, more->file_offset,
					  builder_string_z(m->b, f.path), lists[1]->items, lists[1]->count);
	if (count == 1 && !lines[0].function_index && !lines[0].line)
		count = 0;
	return builder_location(m->b, mapping, f.address, lines, count, lists[0]->items, lists[0]->count);
}

/* Makes the stack from @node to the root; a location has an inlined call together with the function that it was inlined
 * into. */
static int32_t stack_of(struct message *m, uint32_t node)
{
	AUTO_FREE int32_t *locations = NULL;
	uintptr_t known = (uintptr_t)map_get(&m->stacks, node);
	uint32_t frames[256], n = 0, count = 0;
	const uint32_t leaf = node;
	int32_t index;

	if (!node || known)
		return node ? (int32_t)(known - 1) : 0;
	locations = malloc(STACK_MOST_FRAMES * sizeof(*locations));
	if (!locations)
		return -ENOMEM;
	while (node && count < STACK_MOST_FRAMES) {
		struct store_frame f;
		struct store_node at;

		if (click_nodes(&m->s->store, node, 1, &at) || click_frame(&m->s->store, at.frame, &f))
			return -EBADMSG;
		frames[n++] = at.frame;
		node = at.parent;
		if (f.inlined && node && n < ARRAY_LEN(frames))
			continue;
		locations[count] = location_of(m, frames, n);
		if (locations[count++] < 0)
			return -ENOMEM;
		n = 0;
	}
	index = builder_stack(m->b, locations, count);
	return map_put(&m->stacks, leaf, (void *)(uintptr_t)(index + 1)) ? -ENOMEM : index;
}

/* --- samples --- */

static int32_t link_of(struct message *m, struct str trace, struct str span)
{
	uint8_t t[TRACE_BYTES] = { 0 }, s[SPAN_BYTES] = { 0 };

	if (trace.len != sizeof(t) && span.len != sizeof(s))
		return 0;
	memcpy(t, trace.data, trace.len < sizeof(t) ? trace.len : sizeof(t));
	memcpy(s, span.data, span.len < sizeof(s) ? span.len : sizeof(s));
	return builder_link(m->b, t, s);
}

static bool is_selected(const struct message *m, uint32_t node)
{
	const struct store_selection *sel = m->sel;

	return !sel->stacks || (node < sel->stack_count && (sel->stacks[node / 64] >> (node % 64) & 1));
}

static int add_sample(struct message *m, struct row_reader *r)
{
	const struct series *series = map_get(&m->series, get_number(r, 8));
	const uint32_t node = click_names_stack(m->s->names, get_number(r, 8));
	struct list *labels = map_get(&m->labels, get_number(r, 8));
	const uint64_t cpu = get_number(r, 2), time_ns = get_number(r, 8);
	const int64_t weight = (int64_t)get_number(r, 8);
	const struct str trace = get_text(r), span = get_text(r);
	uint32_t count = labels ? labels->count : 0;
	int32_t none[1], *items = labels ? labels->items : none, stack, link;

	if (r->is_bad || !series || !is_selected(m, node))
		return r->is_bad ? -EBADMSG : 0;
	stack = stack_of(m, node);
	if (stack < 0)
		return stack;
	if (cpu)
		items[count++] = builder_attribute_int(m->b, "cpu.logical_number", (int64_t)cpu - 1);
	link = link_of(m, trace, span);
	m->first_ns = time_ns < m->first_ns ? time_ns : m->first_ns;
	m->last_ns = time_ns > m->last_ns ? time_ns : m->last_ns;
	if (series->shape & HAS_TIMES)
		builder_event(m->b, series->profile, stack, items, count, link, time_ns, series->shape & HAS_VALUES, weight);
	else
		builder_value(m->b, series->profile, stack, items, count, link, weight);
	return 0;
}

static int ask(struct message *m, const struct store_selection *sel, const char *select, const char *tail,
	       struct buf *answer)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };

	buf_puts(&q.text, select);
	click_where(&q, sel, !sel->kind);
	buf_puts(&q.text, tail);
	return click_ask(m->s, &q, sel, answer);
}

/* Calls @read for each row of what is asked. */
static int ask_rows(struct message *m, const struct store_selection *sel, const char *select, const char *tail,
		    int (*read)(struct message *m, struct row_reader *r))
{
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct row_reader r;
	int err = ask(m, sel, select, tail, &answer);

	for (r = rows_of(&answer); !err && has_row(&r);)
		err = read(m, &r);
	return err;
}

static int load_stacks(struct message *m, const struct store_selection *sel)
{
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	int err = ask(m, sel, "SELECT DISTINCT stack FROM hearth_samples WHERE ", "", &answer);

	if (!err && answer.len % sizeof(uint64_t))
		err = -EBADMSG;
	return err ? err
		   : click_names_load(m->s, sel, (const uint64_t *)(const void *)answer.data, answer.len / sizeof(uint64_t));
}

/* The samples of @sel as one message. */
static int export_piece(struct store_clickhouse *s, const struct store_selection *sel,
			int (*fn)(void *arg, struct profiles *p), void *arg)
{
	AUTO(message_fini) struct message m = { .s = s, .sel = sel };
	struct profiles *p;
	int err = message_init(&m);

	err = err ? err : load_stacks(&m, sel);
	err = err ? err
		  : ask_rows(&m, sel,
			     "SELECT id, sample_type, sample_unit, period_type, period_unit, scope_name, scope_version,"
			     " period, shape, resource_keys, key, value, kind, unit FROM hearth_series"
			     " WHERE id IN (SELECT series FROM hearth_samples WHERE ",
			     ") ORDER BY id", read_series);
	err = err ? err
		  : ask_rows(&m, sel,
			     "SELECT id, key, value, kind, unit FROM hearth_labels"
			     " WHERE id IN (SELECT labels FROM hearth_samples WHERE ",
			     ")", read_labels);
	err = err ? err
		  : ask_rows(&m, sel,
			     "SELECT series, stack, labels, cpu, time, weight, trace, span FROM hearth_samples WHERE ",
			     " ORDER BY series, stack, labels, cpu, time", add_sample);
	if (err || !builder_event_count(m.b))
		return err;
	err = builder_freeze(m.b, m.first_ns, m.last_ns + 1, &p);
	if (err)
		return err;
	err = fn(arg, p);
	profiles_put(p);
	return err;
}

int click_export(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	struct message m = { .s = s, .sel = sel };
	AUTO(buf_fini) struct buf hours = BUF_EMPTY;
	struct row_reader r;
	int err;

	pthread_mutex_lock(&s->read_lock);
	err = ask(&m, sel,
		  "SELECT DISTINCT toUInt64(toUnixTimestamp(toStartOfHour(time))) AS hour FROM hearth_samples WHERE ",
		  " ORDER BY hour", &hours);
	for (r = rows_of(&hours); !err && has_row(&r);) {
		const uint64_t hour_ns = get_number(&r, 8) * NSEC_PER_SEC;
		struct store_selection piece = *sel;

		piece.from_ns = hour_ns > sel->from_ns ? hour_ns : sel->from_ns;
		piece.to_ns = hour_ns + HOUR_NS < sel->to_ns ? hour_ns + HOUR_NS : sel->to_ns;
		err = r.is_bad ? -EBADMSG : export_piece(s, &piece, fn, arg);
	}
	pthread_mutex_unlock(&s->read_lock);
	return err;
}
