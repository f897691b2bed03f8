/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts for a comparison. A run is walked twice: for the time it spans, and to count the weight of each function and stack
 * in each of its slices of time. Functions and stacks are the same items in all runs. The conclusions from the counts are
 * drawn in diff_judge.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "proto/sums/diff_runs.h"

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

	return item < c->count ? c->slices[(size_t)item * run->slice_count + k] : 0;
}

double diff_run_item(const struct diff_run *run, enum diff_items kind, uint32_t item)
{
	double sum = 0;

	for (unsigned k = 0; k < run->slice_count; k++)
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

static int find_span(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct str program;

	if (!stack_weight_add(&a->run->sum, s))
		return 0;
	/* Majority vote (Boyer and Moore): a program with nine tenths is left in the end. */
	program = profiles_value_text(s->profiles, view_sample_label(s, "process.executable.name"));
	if (program.len == a->program.len && !memcmp(program.data, a->program.data, program.len)) {
		a->program_weight += s->weight;
	} else if (a->program_weight >= s->weight) {
		a->program_weight -= s->weight;
	} else {
		a->program_weight = s->weight - a->program_weight;
		a->program = program;
	}
	for (uint64_t i = 0; i < s->events; i++) {
		uint64_t time = stack_time(s, i);

		a->first_unix_ns = time < a->first_unix_ns ? time : a->first_unix_ns;
		a->last_unix_ns = time > a->last_unix_ns ? time : a->last_unix_ns;
	}
	return 0;
}

/* Is @f the run's own program, under another name than in the first run? */
static bool is_renamed(const struct adding *a, const struct frame *f)
{
	return a->program.len && a->program.len == f->module.len &&
	       !memcmp(a->program.data, f->module.data, f->module.len) && !str_is(a->program, a->d->program);
}

/* The module of @f as it is called in all runs, as a library may be of another version. */
static void put_module(const struct frame *f, struct buf *key)
{
	const char *version = f->module.len ? memmem(f->module.data, f->module.len, ".so.", 4) : NULL;
	size_t len = version ? (size_t)(version + 3 - f->module.data) : strnlen(f->module.data, f->module.len);

	buf_append(key, f->module.data, len);
	buf_putc(key, '\0');
}

/* The function of d->key, of @type when it is new. */
static int add_key(struct diff *d, uint32_t type, uint32_t *index_ret)
{
	int is_new = d->key.failed ? -ENOMEM : intern_add(d->functions, d->key.data, d->key.len, index_ret);

	if (is_new <= 0)
		return is_new;
	if (vec_reach(&d->type_of, &d->type_cap, *index_ret))
		return -ENOMEM;
	d->type_of[*index_ret] = type;
	return 0;
}

static int add_function(struct adding *a, const struct frame *f, uint32_t *index_ret)
{
	struct diff *d = a->d;
	uint32_t type;
	size_t len;

	buf_reset(&d->key);
	buf_append(&d->key, f->type.data, f->type.len);
	if (d->key.failed || intern_add(d->types, buf_text(&d->key), strlen(buf_text(&d->key)) + 1, &type) < 0)
		return -ENOMEM;
	buf_reset(&d->key);
	stack_walk_put_key_name(&d->key, f, 0);
	len = d->key.len;
	if (is_renamed(a, f)) { /* a program may be built under another name; another program has other functions */
		buf_puts(&d->key, d->program);
		buf_putc(&d->key, '\0');
		if (!d->key.failed && intern_find(d->functions, d->key.data, d->key.len, index_ret))
			return 0;
		d->key.len = len;
	}
	put_module(f, &d->key);
	return add_key(d, type, index_ret);
}

static int function_of(struct adding *a, const struct frame *f, uint32_t *index_ret)
{
	if (!a->function_of[f->id]) {
		uint32_t index = 0;

		if (add_function(a, f, &index))
			return -ENOMEM;
		if (vec_reach_zero(&a->last_sample, &a->last_cap, index))
			return -ENOMEM;
		a->function_of[f->id] = index + 1;
	}
	*index_ret = a->function_of[f->id] - 1;
	return 0;
}

/* Adds to @item's weight in each of the run's @slice_count slices. */
static int count(struct diff_counts *c, uint32_t item, unsigned slice_count, const double *slices)
{
	if (VEC_RESERVE(&c->slices, &c->cap, item + 1ull, slice_count * sizeof(*c->slices), true))
		return -ENOMEM;
	if (item >= c->count)
		c->count = item + 1;
	for (unsigned k = 0; k < slice_count; k++)
		c->slices[(size_t)item * slice_count + k] += slices[k];
	return 0;
}

/* The weight of @s by slice. */
static void slice_up(const struct adding *a, const struct stack_sample *s, double slices[static DIFF_SLICES])
{
	double each = (double)s->weight / (double)s->events;
	double span = (double)(a->last_unix_ns - a->first_unix_ns) + 1;

	memset(slices, 0, DIFF_SLICES * sizeof(*slices));
	for (uint64_t i = 0; i < s->events; i++)
		slices[(unsigned)((double)(stack_time(s, i) - a->first_unix_ns) / span * DIFF_SLICES)] += each;
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
	const char *path;

	if (!stack_weight_add(&sum, s))
		return 0;
	a->sample_number++;
	slice_up(a, s, slices);
	buf_reset(&a->path);
	for (uint32_t i = s->frame_count; i-- > 0;) {
		if (function_of(a, stack_frame(s, i), &function))
			return -ENOMEM;
		buf_append(&a->path, &function, sizeof(function));
		if (i == 0 && count(&a->run->items[DIFF_SELF], function, DIFF_SLICES, slices))
			return -ENOMEM;
		if (a->last_sample[function] == a->sample_number)
			continue;
		a->last_sample[function] = a->sample_number;
		if (count(&a->run->items[DIFF_TOTAL], function, DIFF_SLICES, slices))
			return -ENOMEM;
	}
	path = buf_text(&a->path); /* may find no memory */
	if (a->path.failed || intern_add(a->d->stacks, path, a->path.len, &stack) < 0)
		return -ENOMEM;
	return count(&a->run->items[DIFF_STACK], stack, DIFF_SLICES, slices);
}

/* Checks the program that the majority vote left: with nine tenths of the weight its surplus is eight tenths at least. The
 * first run's name is that of all. */
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
	struct diff_run run = { .side = side, .slice_count = DIFF_SLICES };
	struct adding a = { .d = d, .run = &run, .first_unix_ns = UINT64_MAX, .program = STR("") };
	int err = vec_reach(&d->runs, &d->run_cap, d->run_count);

	if (err)
		return err;
	a.function_of = calloc(stack_walk_frame_count(p) + 1, sizeof(*a.function_of));
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

/* --- runs that are told --- */

int diff_begin_run(struct diff *d, enum diff_side side)
{
	int err = vec_reach(&d->runs, &d->run_cap, d->run_count);

	if (!err)
		d->runs[d->run_count++] = (struct diff_run){ .side = side, .slice_count = 1 };
	return err;
}

void diff_end_run(struct diff *d, double weight, uint64_t events, double squares)
{
	struct diff_run *run = &d->runs[d->run_count - 1];

	run->weight = weight;
	run->squares = squares;
	run->sum.events = events;
	if (weight > 0 && squares > 0)
		return;
	run_fini(run);
	d->run_count--;
}

int diff_count_function(struct diff *d, uint32_t function, double self, double total)
{
	struct diff_run *run = &d->runs[d->run_count - 1];
	int err = count(&run->items[DIFF_SELF], function, 1, &self);

	return err ? err : count(&run->items[DIFF_TOTAL], function, 1, &total);
}

int diff_find_function(struct diff *d, const char *name, const char *module, const char *type, uint32_t *index_ret)
{
	uint32_t type_index;

	if (intern_add(d->types, type, strlen(type) + 1, &type_index) < 0)
		return -ENOMEM;
	buf_reset(&d->key);
	buf_append(&d->key, name, strlen(name) + 1);
	buf_append(&d->key, module, strlen(module) + 1);
	return add_key(d, type_index, index_ret);
}
