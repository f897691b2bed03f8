/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions. A function is the bytes "name NUL module NUL" in an intern table, whose index is the function's
 * place in the counters beside it; the rows that readers see are made of both when they ask. While profiles are added, each
 * frame's function is looked up once and then known by the frame's id. One thread.
 */
#include "proto/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"

struct counters {
	struct top_counts all, recent;
	uint64_t last_sample; /* the number of the sample that was last counted in the totals */
	uint32_t type;	      /* in @types */
};

struct top {
	struct intern *names;
	struct intern *types; /* NUL-terminated */
	struct counters *counters;
	size_t counter_cap;
	struct top_row *rows; /* what readers saw last */
	size_t row_cap;
	uint64_t sample_number;
	struct weight_sum sum, recent_sum;
	unsigned extras; /* enum frame_extra */
	struct buf key;
};

struct top *top_new(void)
{
	struct top *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->names = intern_new();
	t->types = intern_new();
	if (!t->names || !t->types) {
		top_free(t);
		return NULL;
	}
	return t;
}

void top_show(struct top *t, unsigned extras)
{
	t->extras = extras;
}

void top_free(struct top *t)
{
	if (!t)
		return;
	intern_free(t->names);
	intern_free(t->types);
	free(t->counters);
	free(t->rows);
	buf_fini(&t->key);
	free(t);
}

void top_reset(struct top *t)
{
	intern_reset(t->names);
	t->sum = t->recent_sum = (struct weight_sum){ 0 };
}

void top_begin_interval(struct top *t)
{
	for (uint32_t i = 0; i < intern_count(t->names); i++)
		t->counters[i].recent = (struct top_counts){ 0 };
	t->recent_sum = (struct weight_sum){ 0 };
}

const struct weight_sum *top_sum(const struct top *t)
{
	return &t->sum;
}

const struct weight_sum *top_recent_sum(const struct top *t)
{
	return &t->recent_sum;
}

/* The place of the function whose key stands in @key. -ENOMEM. */
static int add_function(struct top *t, struct intern *names, struct str type, uint32_t *index_ret)
{
	uint32_t type_index;
	int is_new = intern_add(names, t->key.data, t->key.len, index_ret);

	if (is_new <= 0)
		return is_new;
	if (*index_ret >= t->counter_cap) {
		size_t cap = t->counter_cap ? t->counter_cap * 2 : 256;
		struct counters *grown = reallocarray(t->counters, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->counters = grown;
		t->counter_cap = cap;
	}
	buf_reset(&t->key);
	buf_append(&t->key, type.data, type.len);
	buf_putc(&t->key, '\0');
	if (t->key.failed || intern_add(t->types, t->key.data, t->key.len, &type_index) < 0)
		return -ENOMEM;
	t->counters[*index_ret] = (struct counters){ .type = type_index };
	return 0;
}

struct adding {
	struct top *t;
	uint32_t *function_of; /* place + 1 by frame id, 0: not looked up yet */
};

static int function_of(struct adding *a, const struct frame *f, uint32_t *index_ret)
{
	struct buf *key = &a->t->key;
	int err;

	if (a->function_of[f->id]) {
		*index_ret = a->function_of[f->id] - 1;
		return 0;
	}
	buf_reset(key);
	frame_print(f, a->t->extras, key);
	buf_putc(key, '\0');
	buf_append(key, f->module.data, f->module.len);
	buf_putc(key, '\0');
	err = key->failed ? -ENOMEM : add_function(a->t, a->t->names, f->type, index_ret);
	if (!err)
		a->function_of[f->id] = *index_ret + 1;
	return err;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct top *t = a->t;

	if (!weight_sum_add(&t->sum, s))
		return 0;
	weight_sum_add(&t->recent_sum, s);
	t->sample_number++;
	for (uint32_t i = 0; i < s->frame_count; i++) {
		struct counters *c;
		uint32_t index;
		int err = function_of(a, s->frames[i], &index);

		if (err)
			return err;
		c = &t->counters[index];
		if (i == 0) {
			c->all.self += s->weight;
			c->recent.self += s->weight;
		}
		if (c->last_sample == t->sample_number)
			continue;
		c->last_sample = t->sample_number;
		c->all.total += s->weight;
		c->recent.total += s->weight;
	}
	return 0;
}

int top_add(struct top *t, const struct profiles *p)
{
	AUTO_FREE uint32_t *places = calloc(profiles_frame_count(p) + 1, sizeof(*places));
	struct adding a = { t, places };

	return places ? profiles_each_stack(p, add_sample, &a) : -ENOMEM;
}

static int compare_names(const struct top_row *a, const struct top_row *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->module, b->module);
}

static int compare_counts(const struct top_counts *a, const struct top_counts *b)
{
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return a->total > b->total ? -1 : a->total < b->total;
}

static int by_self(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;
	int order = compare_counts(&a->all, &b->all);

	return order ? order : compare_names(a, b);
}

static int by_recent_self(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;
	int order = compare_counts(&a->recent, &b->recent);

	return order ? order : compare_names(a, b);
}

static int by_total(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;

	if (a->all.total != b->all.total)
		return a->all.total > b->all.total ? -1 : 1;
	return by_self(x, y);
}

static const struct top_row *make_rows(struct top *t, bool recent, int (*order)(const void *, const void *),
				       uint32_t *count_ret)
{
	uint32_t functions = intern_count(t->names), count = 0;

	*count_ret = 0;
	for (uint32_t i = 0; i < functions; i++)
		count += !recent || t->counters[i].recent.total;
	if (count > t->row_cap) {
		struct top_row *grown = reallocarray(t->rows, count, sizeof(*grown));

		if (!grown)
			return NULL;
		t->rows = grown;
		t->row_cap = count;
	}
	for (uint32_t i = 0; i < functions; i++) {
		const struct counters *c = &t->counters[i];
		const char *name = intern_get(t->names, i, NULL);

		if (recent && !c->recent.total)
			continue;
		t->rows[(*count_ret)++] = (struct top_row){
			.name = name,
			.module = name + strlen(name) + 1,
			.type = intern_get(t->types, c->type, NULL),
			.all = c->all,
			.recent = c->recent,
		};
	}
	if (*count_ret)
		qsort(t->rows, *count_ret, sizeof(*t->rows), order);
	return *count_ret ? t->rows : NULL;
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
	if (t->key.failed || add_function(t, fresh, (struct str){ row->type, (uint32_t)strlen(row->type) }, &index) < 0)
		return -ENOMEM;
	c = &t->counters[index];
	c->all.self += row->all.self;
	c->all.total += row->all.total;
	c->recent.self += row->recent.self;
	c->recent.total += row->recent.total;
	return 0;
}

int top_trim(struct top *t, uint32_t max_rows)
{
	struct top_row dropped = { .name = TOP_DROPPED, .module = "" };
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
