/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting for a comparison. A run is walked twice: for the time it spans, and to count the weight of each function and
 * stack in each of its slices of time. Functions and stacks are the same items in all runs. What follows from the counts is
 * in diff_judge.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/diff_runs.h"

struct diff *diff_new(const struct view *view)
{
	struct diff *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->view = view;
	d->functions = intern_new();
	d->types = intern_new();
	d->stacks = intern_new();
	if (!d->functions || !d->types || !d->stacks) {
		diff_free(d);
		return NULL;
	}
	return d;
}

static void run_fini(struct diff_run *run)
{
	for (size_t i = 0; i < DIFF_ITEM_KINDS; i++)
		free(run->items[i].slices);
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->run_count; i++)
		run_fini(&d->runs[i]);
	free(d->runs);
	free(d->program);
	free(d->type_of);
	free(d->result.functions);
	free(d->result.by_index);
	free(d->result.stacks);
	intern_free(d->functions);
	intern_free(d->types);
	intern_free(d->stacks);
	buf_fini(&d->key);
	free(d);
}

uint32_t diff_run_count(const struct diff *d, enum diff_side side)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < d->run_count; i++)
		count += d->runs[i].side == side;
	return count;
}

double diff_run_slice(const struct diff_run *run, enum diff_items kind, uint32_t item, unsigned k)
{
	const struct diff_counts *c = &run->items[kind];

	return item < c->count ? c->slices[(size_t)item * DIFF_SLICES + k] : 0;
}

double diff_run_item(const struct diff_run *run, enum diff_items kind, uint32_t item)
{
	double sum = 0;

	for (unsigned k = 0; k < DIFF_SLICES; k++)
		sum += diff_run_slice(run, kind, item, k);
	return sum;
}

/* --- counting a run --- */

struct adding {
	struct diff *d;
	struct diff_run *run;
	uint64_t first_unix_ns, last_unix_ns;
	struct str program; /* the executable of the heaviest process so far; then what nearly all is from, or "" */
	uint64_t program_weight;
	uint32_t *function_of; /* index + 1 by frame id */
	uint64_t *last_sample; /* by function: the number of the sample it was counted in last */
	size_t last_cap;
	uint64_t sample_number;
	struct buf path; /* the functions of the current stack, root first, uint32_t */
};

static uint64_t time_of(const struct stack_sample *s, uint64_t event)
{
	return s->sample->timestamp_count ? s->sample->timestamps_unix_ns[event] : s->profile->time_unix_ns;
}

static int find_span(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct str program;

	if (!weight_sum_add(&a->run->sum, s))
		return 0;
	/* By majority (Boyer and Moore): what has nine tenths is what is left in the end. */
	program = profiles_value_text(s->profiles, stack_sample_label(s, "process.executable.name"));
	if (program.len == a->program.len && !memcmp(program.data, a->program.data, program.len)) {
		a->program_weight += s->weight;
	} else if (a->program_weight >= s->weight) {
		a->program_weight -= s->weight;
	} else {
		a->program_weight = s->weight - a->program_weight;
		a->program = program;
	}
	for (uint64_t i = 0; i < s->events; i++) {
		uint64_t time = time_of(s, i);

		a->first_unix_ns = time < a->first_unix_ns ? time : a->first_unix_ns;
		a->last_unix_ns = time > a->last_unix_ns ? time : a->last_unix_ns;
	}
	return 0;
}

/* The module of @f as it is called in all runs: a program may be built under another name, a library be of another version.
 */
static void put_module(const struct adding *a, const struct frame *f, struct buf *key)
{
	const char *version = f->module.len ? memmem(f->module.data, f->module.len, ".so.", 4) : NULL;
	size_t len = version ? (size_t)(version + 3 - f->module.data) : strnlen(f->module.data, f->module.len);

	if (a->program.len && a->program.len == f->module.len && !memcmp(a->program.data, f->module.data, f->module.len))
		buf_puts(key, a->d->program);
	else
		buf_append(key, f->module.data, len);
	buf_putc(key, '\0');
}

static int add_function(struct adding *a, const struct frame *f, uint32_t *index_ret)
{
	struct diff *d = a->d;
	uint32_t type;
	int is_new;

	buf_reset(&d->key);
	buf_append(&d->key, f->type.data, f->type.len);
	if (intern_add(d->types, buf_text(&d->key), strlen(buf_text(&d->key)) + 1, &type) < 0)
		return -ENOMEM;
	buf_reset(&d->key);
	frame_print(f, 0, &d->key);
	for (size_t i = 0; i < d->key.len; i++)
		d->key.data[i] = d->key.data[i] ? d->key.data[i] : '?';
	buf_putc(&d->key, '\0');
	put_module(a, f, &d->key);
	is_new = d->key.failed ? -ENOMEM : intern_add(d->functions, d->key.data, d->key.len, index_ret);
	if (is_new <= 0)
		return is_new;
	if (*index_ret >= d->type_cap) {
		size_t cap = d->type_cap ? d->type_cap * 2 : 256;
		uint32_t *grown = reallocarray(d->type_of, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		d->type_of = grown;
		d->type_cap = cap;
	}
	d->type_of[*index_ret] = type;
	return 0;
}

static int function_of(struct adding *a, const struct frame *f, uint32_t *index_ret)
{
	if (!a->function_of[f->id]) {
		uint32_t index = 0;

		if (add_function(a, f, &index))
			return -ENOMEM;
		if (index >= a->last_cap) {
			size_t cap = 2 * (size_t)index + 256;
			uint64_t *grown = reallocarray(a->last_sample, cap, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			memset(&grown[a->last_cap], 0, (cap - a->last_cap) * sizeof(*grown));
			a->last_sample = grown;
			a->last_cap = cap;
		}
		a->function_of[f->id] = index + 1;
	}
	*index_ret = a->function_of[f->id] - 1;
	return 0;
}

static int count(struct diff_counts *c, uint32_t item, const double slices[static DIFF_SLICES])
{
	if (item >= c->cap) {
		uint32_t cap = item < UINT32_MAX / 2 ? 2 * item + 256 : UINT32_MAX;
		double *grown = reallocarray(c->slices, cap, DIFF_SLICES * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(&grown[(size_t)c->cap * DIFF_SLICES], 0, (size_t)(cap - c->cap) * DIFF_SLICES * sizeof(*grown));
		c->slices = grown;
		c->cap = cap;
	}
	if (item >= c->count)
		c->count = item + 1;
	for (unsigned k = 0; k < DIFF_SLICES; k++)
		c->slices[(size_t)item * DIFF_SLICES + k] += slices[k];
	return 0;
}

/* The weight of @s by slice. */
static void slice_up(const struct adding *a, const struct stack_sample *s, double slices[static DIFF_SLICES])
{
	double each = (double)s->weight / (double)s->events;
	double span = (double)(a->last_unix_ns - a->first_unix_ns) + 1;

	memset(slices, 0, DIFF_SLICES * sizeof(*slices));
	for (uint64_t i = 0; i < s->events; i++)
		slices[(unsigned)((double)(time_of(s, i) - a->first_unix_ns) / span * DIFF_SLICES)] += each;
	a->run->squares += each * each * (double)s->events;
	for (unsigned k = 0; k < DIFF_SLICES; k++)
		a->run->slices[k] += slices[k];
	a->run->weight += (double)s->weight;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct weight_sum sum = a->run->sum;
	double slices[DIFF_SLICES];
	uint32_t function, stack;

	if (!weight_sum_add(&sum, s))
		return 0;
	a->sample_number++;
	slice_up(a, s, slices);
	buf_reset(&a->path);
	for (uint32_t i = s->frame_count; i-- > 0;) {
		if (function_of(a, stack_frame(s, i), &function))
			return -ENOMEM;
		buf_append(&a->path, &function, sizeof(function));
		if (i == 0 && count(&a->run->items[DIFF_SELF], function, slices))
			return -ENOMEM;
		if (a->last_sample[function] == a->sample_number)
			continue;
		a->last_sample[function] = a->sample_number;
		if (count(&a->run->items[DIFF_TOTAL], function, slices))
			return -ENOMEM;
	}
	if (a->path.failed || intern_add(a->d->stacks, buf_text(&a->path), a->path.len, &stack) < 0)
		return -ENOMEM;
	return count(&a->run->items[DIFF_STACK], stack, slices);
}

/* What the majority left: with nine tenths of the weight its surplus is eight tenths at least. The first run's name is that
 * of all. */
static int name_program(struct adding *a)
{
	if ((double)a->program_weight < 0.8 * (double)a->run->sum.weight)
		a->program = STR("");
	if (a->program.len && !a->d->program) {
		a->d->program = strndup(a->program.data, a->program.len);
		if (!a->d->program)
			return -ENOMEM;
	}
	return 0;
}

int diff_add_run(struct diff *d, enum diff_side side, const struct profiles *p)
{
	struct diff_run run = { .side = side };
	struct adding a = { .d = d, .run = &run, .first_unix_ns = UINT64_MAX, .program = STR("") };
	int err;

	if (d->run_count == d->run_cap) {
		uint32_t cap = d->run_cap ? d->run_cap * 2 : 8;
		struct diff_run *grown = reallocarray(d->runs, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		d->runs = grown;
		d->run_cap = cap;
	}
	a.function_of = calloc(profiles_frame_count(p) + 1, sizeof(*a.function_of));
	err = a.function_of ? view_each_stack(d->view, p, find_span, &a) : -ENOMEM;
	if (!err && d->run_count && run.sum.events &&
	    (strcmp(run.sum.type, d->runs[0].sum.type) || strcmp(run.sum.unit, d->runs[0].sum.unit)))
		err = -EINVAL;
	if (!err)
		err = name_program(&a);
	run.has_slices = a.last_unix_ns > a.first_unix_ns;
	if (!err)
		err = view_each_stack(d->view, p, add_sample, &a);
	free(a.function_of);
	free(a.last_sample);
	buf_fini(&a.path);
	if (err)
		run_fini(&run);
	else
		d->runs[d->run_count++] = run;
	return err;
}
