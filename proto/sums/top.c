/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions. A function is the bytes "name NUL module NUL group NUL file NUL line NUL" in an intern table,
 * whose index is the function's place in the counters beside it, which go on for ever: what is recent is the difference to
 * what they were at the interval's begin, and what is left of the intervals before. The rows that readers see are made of
 * both when they ask. While profiles are added, each frame's function is looked up once a group and then known by the
 * frame's id. One thread.
 */
#include "proto/sums/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

struct counters {
	uint64_t self;
	struct top_counts before; /* the current interval */
	struct top_recent past;	  /* what of the intervals before it is left */
	uint32_t type, source;	  /* in @texts */
};

/* The part of a frame that most samples read: apart from the rest, so that more of them are in the CPU's cache. */
struct total {
	uint64_t weight;
	uint64_t last_sample; /* the number of the sample that was last counted */
};

struct top {
	struct intern *names;
	struct intern *texts; /* NUL-terminated */
	struct counters *counters;
	struct total *totals;
	size_t counter_cap;   /* of both */
	struct top_row *rows; /* what readers saw last */
	size_t row_cap;
	uint64_t sample_number;
	struct weight_sum sum, sum_before; /* the current interval */
	double past_weight;
	struct weight_sum recent_sum; /* what readers saw last */
	const struct view *view;
	bool by_line;
	enum top_kind kind;
	struct buf key;
};

struct top *top_new(void)
{
	struct top *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->names = intern_new();
	t->texts = intern_new();
	if (!t->names || !t->texts) {
		top_free(t);
		return NULL;
	}
	return t;
}

void top_view(struct top *t, const struct view *view)
{
	t->view = view;
}

void top_split_lines(struct top *t)
{
	t->by_line = true;
}

void top_count(struct top *t, enum top_kind kind)
{
	t->kind = kind;
}

void top_free(struct top *t)
{
	if (!t)
		return;
	intern_free(t->names);
	intern_free(t->texts);
	free(t->counters);
	free(t->totals);
	free(t->rows);
	buf_fini(&t->key);
	free(t);
}

void top_reset(struct top *t)
{
	intern_reset(t->names);
	t->sum = t->sum_before = (struct weight_sum){ 0 };
	t->past_weight = 0;
}

size_t top_memory_bytes(const struct top *t)
{
	return sizeof(*t) + intern_memory_bytes(t->names) + intern_memory_bytes(t->texts) +
	       t->counter_cap * (sizeof(*t->counters) + sizeof(*t->totals)) + t->row_cap * sizeof(*t->rows) + t->key.cap;
}

static struct top_recent recent_of(const struct top *t, uint32_t function)
{
	const struct counters *c = &t->counters[function];

	return (struct top_recent){ c->past.self + (double)(c->self - c->before.self),
				    c->past.total + (double)(t->totals[function].weight - c->before.total) };
}

void top_begin_interval(struct top *t, double keep)
{
	for (uint32_t i = 0; i < intern_count(t->names); i++) {
		struct top_recent recent = recent_of(t, i);

		t->counters[i].past = (struct top_recent){ recent.self * keep, recent.total * keep };
		t->counters[i].before = (struct top_counts){ t->counters[i].self, t->totals[i].weight };
	}
	t->past_weight = top_recent_weight(t) * keep;
	t->sum_before = t->sum;
}

double top_recent_weight(const struct top *t)
{
	return t->past_weight + (double)(t->sum.weight - t->sum_before.weight);
}

const struct weight_sum *top_sum(const struct top *t)
{
	return &t->sum;
}

const struct weight_sum *top_recent_sum(struct top *t)
{
	t->recent_sum = t->sum;
	t->recent_sum.weight -= t->sum_before.weight;
	t->recent_sum.events -= t->sum_before.events;
	t->recent_sum.cpu_ns -= t->sum_before.cpu_ns;
	t->recent_sum.other_events -= t->sum_before.other_events;
	return &t->recent_sum;
}

static int add_text(struct top *t, struct str text, uint32_t *index_ret)
{
	buf_reset(&t->key);
	buf_append(&t->key, text.data, text.len);
	buf_putc(&t->key, '\0');
	return t->key.failed || intern_add(t->texts, t->key.data, t->key.len, index_ret) < 0 ? -ENOMEM : 0;
}

static int set_source(struct top *t, struct counters *c, struct str source)
{
	return str_is(source, intern_get(t->texts, c->source, NULL)) ? 0 : add_text(t, source, &c->source);
}

static int grow_counters(struct top *t)
{
	size_t cap = t->counter_cap ? t->counter_cap * 2 : 256;
	struct counters *counters = reallocarray(t->counters, cap, sizeof(*counters));
	struct total *totals;

	t->counters = counters ? counters : t->counters;
	totals = counters ? reallocarray(t->totals, cap, sizeof(*totals)) : NULL;
	if (!totals)
		return -ENOMEM;
	t->totals = totals;
	t->counter_cap = cap;
	return 0;
}

/* The place of the function whose key stands in @key. The source that is told last counts. -ENOMEM. */
static int add_function(struct top *t, struct intern *names, struct str type, struct str source, uint32_t *index_ret)
{
	struct counters *c;
	int is_new = intern_add(names, t->key.data, t->key.len, index_ret);

	if (is_new < 0)
		return is_new;
	if (!is_new)
		return source.len ? set_source(t, &t->counters[*index_ret], source) : 0;
	if (*index_ret >= t->counter_cap && grow_counters(t))
		return -ENOMEM;
	t->totals[*index_ret] = (struct total){ 0 };
	c = &t->counters[*index_ret];
	*c = (struct counters){ 0 };
	return add_text(t, type, &c->type) || add_text(t, source, &c->source) ? -ENOMEM : 0;
}

struct adding {
	struct top *t;
	struct intern *groups;	 /* their names, when the view groups */
	struct map functions_of; /* by group, of which each has: place + 1 by frame id, 0: not looked up yet */
	uint32_t *function_of;	 /* those of the current group */
	size_t frame_count;
};

static void adding_fini(struct adding *a)
{
	size_t at = 0;
	void *places;

	while (map_next(&a->functions_of, &at, NULL, &places))
		free(places);
	map_fini(&a->functions_of);
	intern_free(a->groups);
}

/* Makes @group the current one. -ENOMEM. */
static int enter_group(struct adding *a, struct str group)
{
	uint32_t number = 0;

	if (a->groups && intern_add(a->groups, group.data, group.len, &number) < 0)
		return -ENOMEM;
	a->function_of = map_get(&a->functions_of, number);
	if (a->function_of)
		return 0;
	a->function_of = calloc(a->frame_count + 1, sizeof(*a->function_of));
	if (!a->function_of || map_put(&a->functions_of, number, a->function_of)) {
		free(a->function_of);
		return -ENOMEM;
	}
	return 0;
}

/* Looks the function of @f up, for the first time in this walk. */
static int find_function(struct adding *a, const struct frame *f, struct str group, uint32_t *place)
{
	struct buf *key = &a->t->key;
	struct str whole = a->t->kind == TOP_MODULES ? f->module : group;
	bool by_line = a->t->by_line;
	uint32_t index;
	int err;

	buf_reset(key);
	if (a->t->kind == TOP_FUNCTIONS)
		stack_walk_put_key_name(key, f, 0);
	else
		stack_walk_put_key(key, strnlen(whole.data, whole.len) ? whole : STR("[unknown]"));
	stack_walk_put_key(key, a->t->kind == TOP_FUNCTIONS ? f->module : STR(""));
	stack_walk_put_key(key, a->t->kind == TOP_MODULES ? STR("") : group);
	stack_walk_put_key(key, by_line ? f->file : STR(""));
	if (by_line && f->line > 0)
		buf_printf(key, "%" PRId64, f->line);
	else
		buf_putc(key, '0');
	buf_putc(key, '\0');
	err = key->failed ? -ENOMEM : add_function(a->t, a->t->names, f->type, f->source, &index);
	if (!err)
		*place = index + 1;
	return err;
}

/* The innermost loop of every report: what it needs stands in variables, as it writes what might be them. */
static int add_sample(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct top *t = a->t;
	const uint32_t *ids = s->frame_ids, *end = ids ? ids + s->frame_count : NULL;
	struct total *totals = t->totals;
	uint64_t weight = s->weight, number;
	uint32_t *function_of;

	if (!stack_weight_add(&t->sum, s))
		return 0;
	number = ++t->sample_number;
	if (a->groups && enter_group(a, s->group))
		return -ENOMEM;
	function_of = a->function_of;
	for (; ids < end; ids++) {
		uint32_t place = function_of[*ids];
		struct total *total;

		if (!place) {
			if (find_function(a, &s->frames[*ids], s->group, &place))
				return -ENOMEM;
			function_of[*ids] = place;
			totals = t->totals;
		}
		total = &totals[place - 1];
		if (total->last_sample == number)
			continue;
		total->last_sample = number;
		total->weight += weight;
	}
	if (s->frame_count)
		t->counters[function_of[s->frame_ids[0]] - 1].self += weight;
	return 0;
}

int top_add(struct top *t, const struct profiles *p)
{
	AUTO(adding_fini) struct adding a = { .t = t, .frame_count = stack_walk_frame_count(p) };

	if (view_is_grouped(t->view)) {
		a.groups = intern_new();
		if (!a.groups)
			return -ENOMEM;
	} else if (enter_group(&a, STR(""))) {
		return -ENOMEM;
	}
	return view_each_sum(t->view, p, add_sample, &a);
}

static int compare_names(const struct top_row *a, const struct top_row *b)
{
	int order = strcmp(a->name, b->name);

	order = order ? order : strcmp(a->module, b->module);
	order = order ? order : strcmp(a->group, b->group);
	order = order ? order : strcmp(a->file, b->file);
	return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_self(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;

	if (a->all.self != b->all.self)
		return a->all.self > b->all.self ? -1 : 1;
	if (a->all.total != b->all.total)
		return a->all.total > b->all.total ? -1 : 1;
	return compare_names(a, b);
}

static int by_recent_self(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;

	if (a->recent.self != b->recent.self)
		return a->recent.self > b->recent.self ? -1 : 1;
	if (a->recent.total != b->recent.total)
		return a->recent.total > b->recent.total ? -1 : 1;
	return compare_names(a, b);
}

static int by_total(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;

	if (a->all.total != b->all.total)
		return a->all.total > b->all.total ? -1 : 1;
	return by_self(x, y);
}

static const char *next_part(const char *part)
{
	return part + strlen(part) + 1;
}

static struct top_row row_of(const struct top *t, uint32_t function)
{
	const struct counters *c = &t->counters[function];
	struct top_row row = {
		.name = intern_get(t->names, function, NULL),
		.type = intern_get(t->texts, c->type, NULL),
		.source = intern_get(t->texts, c->source, NULL),
		.all = { c->self, t->totals[function].weight },
		.recent = recent_of(t, function),
	};

	row.module = next_part(row.name);
	row.group = next_part(row.module);
	row.file = next_part(row.group);
	row.line = strtoll(next_part(row.file), NULL, 10);
	return row;
}

static const struct top_row *make_rows(struct top *t, bool recent, int (*order)(const void *, const void *),
				       uint32_t *count_ret)
{
	uint32_t functions = intern_count(t->names), count = 0;

	*count_ret = 0;
	for (uint32_t i = 0; i < functions; i++)
		count += !recent || recent_of(t, i).total >= TOP_FORGOTTEN;
	if (vec_reserve(&t->rows, &t->row_cap, (size_t)count + 1))
		return NULL;
	for (uint32_t i = 0; i < functions; i++) {
		if (!recent || recent_of(t, i).total >= TOP_FORGOTTEN)
			t->rows[(*count_ret)++] = row_of(t, i);
	}
	if (*count_ret)
		qsort(t->rows, *count_ret, sizeof(*t->rows), order);
	return t->rows;
}

const struct top_row *top_rows(struct top *t, uint32_t *count_ret)
{
	return make_rows(t, false, by_self, count_ret);
}

const struct top_row *top_recent_rows(struct top *t, uint32_t *count_ret)
{
	return make_rows(t, true, by_recent_self, count_ret);
}

/* Puts @row into the table @fresh, which takes over the counters. */
static int carry_over(struct top *t, struct intern *fresh, const struct top_row *row)
{
	uint32_t index;
	struct counters *c;

	buf_reset(&t->key);
	buf_append(&t->key, row->name, strlen(row->name) + 1);
	buf_append(&t->key, row->module, strlen(row->module) + 1);
	buf_append(&t->key, row->group, strlen(row->group) + 1);
	buf_append(&t->key, row->file, strlen(row->file) + 1);
	buf_printf(&t->key, "%" PRId64, row->line);
	buf_putc(&t->key, '\0');
	if (t->key.failed || add_function(t, fresh, str_z(row->type), str_z(row->source), &index) < 0)
		return -ENOMEM;
	c = &t->counters[index];
	c->self += row->all.self;
	t->totals[index].weight += row->all.total;
	c->before = (struct top_counts){ c->self, t->totals[index].weight };
	c->past.self += row->recent.self;
	c->past.total += row->recent.total;
	return 0;
}

int top_trim(struct top *t, uint32_t max_rows)
{
	struct top_row dropped = { .name = TOP_DROPPED, .module = "", .group = "", .file = "", .source = "" };
	struct intern *fresh;
	uint32_t count, kept = 0;
	const struct top_row *rows;
	int err = 0;

	if (intern_count(t->names) / 2 <= max_rows)
		return 0;
	rows = make_rows(t, false, by_total, &count);
	fresh = rows ? intern_new() : NULL;
	if (!fresh)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (kept < max_rows && strcmp(rows[i].name, TOP_DROPPED) != 0) {
			kept++;
			err = carry_over(t, fresh, &rows[i]);
		} else {
			dropped.type = rows[i].type;
			dropped.all.self += rows[i].all.self;
			dropped.recent.self += rows[i].recent.self;
		}
	}
	dropped.all.total = dropped.all.self;
	dropped.recent.total = dropped.recent.self;
	if (!err)
		err = carry_over(t, fresh, &dropped);
	intern_free(t->names);
	t->names = fresh;
	if (err)
		top_reset(t);
	return err;
}
