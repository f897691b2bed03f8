/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns counts into changes. The difference of an item is that of the means over the runs of each side. The variance is made
 * of two estimates: one from the differences of neighbouring slices of a run, so that the phases of a program are no noise;
 * and one from how much the runs of one side differ. With a few runs the latter is known badly for a single item but well
 * for all together: so the slices' is multiplied by the ratio that the two have over all items, and each item's own counts
 * beside it as its degrees of freedom weigh. With one run a side there is only the first, and an allowance.
 *
 * The band is so wide that in all but one of twenty comparisons of equal programs no item at all leaves its band. How much
 * wider than that of one item it must be depends on how much items go together (callers and callees do); that is found by
 * a bootstrap: the slices' deviations are given random signs, the same for all items, and the largest of all standardized
 * differences is what counts. docs/diff.md has figures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/statistics.h"
#include "proto/sums/diff_runs.h"

enum {
	MIN_EVENTS = 20,      /* of an item in both sides together, below which it is not judged */
	TRUSTED_EVENTS = 100, /* from which on an item says something of the spread between runs */
	REPLICATES = 999,
	MAX_STACKS = 4000, /* judged, the heaviest */
};

static const double FUNCTION_ERROR = 0.04, STACK_ERROR = 0.01; /* one in twenty together */
/* One run a side: what runs may differ more than a run's slices show, as a factor and as a part of the item. */
static const double ALONE_VARIANCE = 4, ALONE_RELATIVE = 0.05;
static const double LEAST_FREEDOM = 1, MOST_FREEDOM = 50; /* of what all items together say of one */
static const double LEAST_OF_BINOMIAL = 1.0 / 16;	  /* slices that are more even than that are so by chance */

struct item {
	enum diff_items kind;
	uint32_t index;
	double mean[2], part;		  /* of the sides, of both */
	double events;			  /* in both */
	double within, binomial, between; /* variances of a run's part */
	double variance;		  /* of a run's part, in the end */
	double *deviations;		  /* by run and slice, of the mean difference; NULL: not judged */
	struct diff_change *change;
};

struct judging {
	struct diff *d;
	enum diff_measure measure;
	double least;
	uint32_t runs[2];
	double seconds[2], seconds_variance;
	double length_variance; /* of a run's CPU time, relative, where that is compared */
	struct item *items;
	uint32_t count;
	double freedom; /* of the runs: runs - 2 */
	double spread,
		spread_freedom; /* of the variance between runs over what was expected: its middle, and how sure it is */
	size_t width;		/* of an item's deviations: slices of all runs; 0: no run has any */
	double *memory;		/* of the deviations */
};

/* --- one item --- */

/* The factor for the parts of run @r: 1, or the run's length in that of A's runs. */
static double scale_of(const struct judging *j, uint32_t r)
{
	return j->measure == DIFF_TIMES ? (double)j->d->runs[r].sum.cpu_ns / 1e9 / j->seconds[DIFF_A] : 1;
}

/* The part of run @r that @item takes. */
static double part_of(const struct judging *j, uint32_t r, const struct item *item)
{
	const struct diff_run *run = &j->d->runs[r];

	return diff_run_item(run, item->kind, item->index) / run->weight * scale_of(j, r);
}

/* The variance of @item's part of run @r, estimated from the run's slices; keeps the deviations. */
static double slice_variance(const struct judging *j, uint32_t r, const struct item *item, double *deviations)
{
	const struct diff_run *run = &j->d->runs[r];
	double part = diff_run_item(run, item->kind, item->index) / run->weight, before = 0, sum = 0;

	for (unsigned k = 0; k < DIFF_SLICES; k++) {
		double deviation = (diff_run_slice(run, item->kind, item->index, k) - part * run->slices[k]) / run->weight;
		double step = (deviation - before) / sqrt(2) * scale_of(j, r);

		before = deviation;
		deviations[k] = k ? step : 0;
		sum += k ? step * step : 0;
	}
	return sum * DIFF_SLICES / (DIFF_SLICES - 1);
}

static void measure_item(struct judging *j, struct item *item)
{
	const struct diff *d = j->d;
	double effective = 0;
	uint32_t sliced = 0;

	for (uint32_t r = 0; r < d->run_count; r++) {
		const struct diff_run *run = &d->runs[r];
		double part = part_of(j, r, item), independent = run->weight * run->weight / run->squares;

		item->mean[run->side] += part / j->runs[run->side];
		item->events += part * independent;
		effective += independent;
		if (run->has_slices) {
			item->within += slice_variance(j, r, item, &item->deviations[(size_t)r * DIFF_SLICES]);
			sliced++;
		}
	}
	item->within = sliced ? item->within / sliced : 0;
	item->part = fmin((item->events + 1) / (effective + 2), 1 - 1 / (effective + 2));
	item->binomial = item->part * (j->measure == DIFF_TIMES ? 1 : 1 - item->part) * d->run_count / effective;
	for (uint32_t r = 0; r < d->run_count; r++) {
		double off = part_of(j, r, item) - item->mean[d->runs[r].side];

		item->between += j->freedom > 0 ? off * off / j->freedom : 0;
	}
}

/* The variance expected from a run's own slices. They tell nothing of rare events, and little of few, long phases. */
static double expected_variance(const struct judging *j, const struct item *item)
{
	double within = item->within;

	if (j->freedom <= 0)
		return fmax(within, item->binomial);
	if (item->events < TRUSTED_EVENTS || within <= 0)
		return item->binomial;
	return fmax(fmin(within, item->binomial), item->binomial * LEAST_OF_BINOMIAL);
}

/*
 * By how much more the runs differ than was expected, over all functions, and how much that differs from one to the other:
 * as G. K. Smyth has it (Linear models and empirical Bayes methods, 2004, section 6.2), from the logarithms of the ratios.
 * The more alike the functions are in that, the more all count for one.
 */
static void find_spread(struct judging *j)
{
	double sum = 0, squares = 0, half = j->freedom / 2, mean, excess;
	uint32_t count = 0;

	j->spread = 1;
	j->spread_freedom = LEAST_FREEDOM;
	for (uint32_t i = 0; i < j->count; i++) {
		const struct item *item = &j->items[i];
		double ratio = item->between / expected_variance(j, item);

		if (item->kind != DIFF_SELF || item->events < TRUSTED_EVENTS || ratio <= 0)
			continue;
		sum += log(ratio);
		squares += log(ratio) * log(ratio);
		count++;
	}
	if (count < 3)
		return;
	mean = sum / count;
	excess = (squares - sum * mean) / (count - 1) - statistics_trigamma(half);
	if (excess > 0)
		j->spread_freedom = fmax(2 * statistics_trigamma_inverse(excess), LEAST_FREEDOM);
	else
		j->spread_freedom = MOST_FREEDOM;
	j->spread_freedom = fmin(j->spread_freedom, MOST_FREEDOM);
	j->spread = exp(mean - statistics_digamma(half) + log(half) + statistics_digamma(j->spread_freedom / 2) -
			log(j->spread_freedom / 2));
	j->spread = fmax(j->spread, 1);
}

static void set_variance(const struct judging *j, struct item *item)
{
	double expected = expected_variance(j, item);

	if (j->freedom > 0) {
		item->variance = (j->spread_freedom * j->spread * expected + j->freedom * item->between) /
				 (j->spread_freedom + j->freedom);
		if (item->kind == DIFF_TOTAL)
			item->variance = fmax(fmax(item->variance, item->between),
					      item->part * item->part * j->length_variance);
	} else
		item->variance = ALONE_VARIANCE * expected + ALONE_RELATIVE * ALONE_RELATIVE * item->part * item->part;
}

/* --- all items --- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13; /* xorshift64; a fixed start, so that the same captures give the same answer */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_of(const struct item *item, bool stacks)
{
	return item->deviations && (item->kind == DIFF_STACK) == stacks;
}

/* The number of standard deviations by which the largest of all differences of equal programs is off at most, in all but
 * @error of the cases: by bootstrap. */
static double simultaneous_factor(const struct judging *j, bool stacks, double error)
{
	const size_t width = j->width;
	AUTO_FREE double *signs = reallocarray(NULL, width + 1, sizeof(*signs)), *sizes = NULL;
	double largest[REPLICATES];
	uint64_t random = 0x9e3779b97f4a7c15;
	uint32_t judged = 0;

	sizes = calloc((size_t)j->count + 1, sizeof(*sizes));
	if (!signs || !sizes)
		return NAN;
	for (uint32_t i = 0; i < j->count; i++) {
		if (!is_of(&j->items[i], stacks))
			continue;
		judged++;
		for (size_t k = 0; k < width; k++)
			sizes[i] += j->items[i].deviations[k] * j->items[i].deviations[k];
	}
	if (!width)
		return statistics_normal_quantile(judged ? error / judged : error);
	for (unsigned b = 0; b < REPLICATES; b++) {
		largest[b] = 0;
		for (size_t k = 0; k < width; k++)
			signs[k] = next_random(&random) >> 63 ? 1 : -1;
		for (uint32_t i = 0; i < j->count; i++) {
			double sum = 0;

			if (!is_of(&j->items[i], stacks) || sizes[i] <= 0)
				continue;
			for (size_t k = 0; k < width; k++)
				sum += signs[k] * j->items[i].deviations[k];
			largest[b] = fmax(largest[b], fabs(sum) / sqrt(sizes[i]));
		}
	}
	qsort(largest, REPLICATES, sizeof(*largest), by_number);
	/* Without slices all items count as independent. */
	return fmax(largest[(unsigned)((REPLICATES + 1) * (1 - error)) - 1],
		    largest[REPLICATES - 1] > 0 || !judged ? statistics_normal_quantile(error)
							   : statistics_normal_quantile(error / judged));
}

/* The same factor for variances of @freedom degrees (0: as good as known). */
static double widened(double factor, double freedom)
{
	return freedom > 0 ? statistics_student_quantile(statistics_normal_tails(factor), freedom) : factor;
}

static void judge_item(const struct judging *j, struct item *item, double factor)
{
	struct diff_change *c = item->change;
	double unit = j->measure == DIFF_TIMES ? j->seconds[DIFF_A] : 1;

	c->a = item->mean[DIFF_A] * unit;
	c->b = item->mean[DIFF_B] * unit;
	c->delta = c->b - c->a;
	c->band = factor * unit * sqrt(item->variance * (1.0 / j->runs[0] + 1.0 / j->runs[1]));
	c->changed = item->deviations && fabs(c->delta) > c->band && fabs(c->delta) > j->least * unit;
}

static void judge_whole(struct judging *j, double factor)
{
	struct diff_summary *s = &j->d->result.summary;
	struct diff_change *all = &s->all;

	*all = (struct diff_change){ .a = j->seconds[0], .b = j->seconds[1], .delta = j->seconds[1] - j->seconds[0] };
	if (j->freedom <= 0)
		return;
	all->band = widened(factor, j->freedom) * sqrt(j->seconds_variance * (1.0 / j->runs[0] + 1.0 / j->runs[1]));
	all->changed = j->measure == DIFF_TIMES && fabs(all->delta) > all->band && fabs(all->delta) > j->least * all->a;
}

/* --- items beside the rest of their runs --- */

enum { MOST_BESIDE_PERCENT = 90 }; /* of a run: there is hardly any rest */

static bool has_rest(const struct item *item)
{
	return item->deviations && item->kind != DIFF_TOTAL && item->part * 100 < MOST_BESIDE_PERCENT;
}

/* The ratio of @item to all else in run @r, times the average of all else: about the item's part. */
static double beside_rest(const struct judging *j, uint32_t r, const struct item *item)
{
	const struct diff_run *run = &j->d->runs[r];
	double part = diff_run_item(run, item->kind, item->index) / run->weight;

	return part < 1 ? part / (1 - part) * (1 - item->part) : part;
}

/* Turns the result of measure_item into that of the item beside the rest: there a part's variance is larger. */
static void measure_beside(const struct judging *j, struct item *item)
{
	double rest = 1 - item->part;

	item->within /= rest * rest;
	item->binomial /= rest;
	item->between = item->mean[DIFF_A] = item->mean[DIFF_B] = 0;
	for (uint32_t r = 0; r < j->d->run_count; r++)
		item->mean[j->d->runs[r].side] += beside_rest(j, r, item) / j->runs[j->d->runs[r].side];
	for (uint32_t r = 0; r < j->d->run_count; r++) {
		double off = beside_rest(j, r, item) - item->mean[j->d->runs[r].side];

		item->between += off * off / j->freedom;
	}
}

/*
 * Runs of one machine are faster and slower as a whole, by its clock and its other guests. An item that takes more time, and
 * also more beside all else in its runs by more than the noise of that, has changed, though its time alone would not show
 * it. The time must differ too, or what stays as it was would count as less when something else grew.
 */
static void judge_beside_rest(struct judging j, double functions, double stacks)
{
	double unit = j.seconds[DIFF_A];

	for (uint32_t i = 0; i < j.count; i++) {
		if (has_rest(&j.items[i]))
			measure_beside(&j, &j.items[i]);
		else
			j.items[i].between = 0; /* says nothing of the spread */
	}
	find_spread(&j);
	functions = widened(functions, j.freedom + j.spread_freedom);
	stacks = widened(stacks, j.freedom + j.spread_freedom);
	for (uint32_t i = 0; i < j.count; i++) {
		struct item *item = &j.items[i];
		struct diff_change *c = item->change;
		double delta = item->mean[DIFF_B] - item->mean[DIFF_A], band;

		if (!has_rest(item) || c->changed || fabs(c->delta) <= j.least * unit || c->delta * delta <= 0)
			continue;
		set_variance(&j, item);
		band = (item->kind == DIFF_STACK ? stacks : functions) *
		       sqrt(item->variance * (1.0 / j.runs[0] + 1.0 / j.runs[1]));
		if (fabs(delta) <= band)
			continue;
		c->changed = true;
		c->band = fabs(c->delta) * band / fabs(delta);
	}
}

/* --- the result --- */

static double strength(const struct diff_function *f)
{
	double self = f->self.changed ? fabs(f->self.delta) : 0, total = f->total.changed ? fabs(f->total.delta) : 0;

	return self > 0 ? self : total;
}

static int by_change(const void *x, const void *y)
{
	const struct diff_function *a = x, *b = y;
	double of_a = strength(a), of_b = strength(b);
	int order;

	if (a->self.changed != b->self.changed)
		return a->self.changed ? -1 : 1; /* who did it, then who calls that */
	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	if (a->self.delta != b->self.delta)
		return fabs(a->self.delta) > fabs(b->self.delta) ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->module, b->module);
}

static int by_stack_change(const void *x, const void *y)
{
	const struct diff_stack *a = x, *b = y;

	if (a->self.changed != b->self.changed)
		return a->self.changed ? -1 : 1;
	if (fabs(a->self.delta) != fabs(b->self.delta))
		return fabs(a->self.delta) > fabs(b->self.delta) ? -1 : 1;
	return a->count != b->count ? (a->count > b->count) - (a->count < b->count)
				    : memcmp(a->functions, b->functions, a->count * sizeof(*a->functions));
}

/* Room for the result and an item for each of its changes. */
static int make_items(struct judging *j)
{
	struct diff *d = j->d;
	struct diff_result *result = &d->result;
	uint32_t functions = intern_count(d->functions), stacks = intern_count(d->stacks);

	free(result->functions);
	free(result->by_index);
	free(result->stacks);
	*result = (struct diff_result){ .function_count = functions, .stack_count = stacks };
	result->functions = calloc((size_t)functions + 1, sizeof(*result->functions));
	result->by_index = calloc((size_t)functions + 1, sizeof(struct diff_function *));
	result->stacks = calloc((size_t)stacks + 1, sizeof(*result->stacks));
	j->items = calloc(2 * (size_t)functions + stacks + 1, sizeof(*j->items));
	if (!result->functions || !result->by_index || !result->stacks || !j->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < functions; i++) {
		struct diff_function *f = &result->functions[i];

		f->name = intern_get(d->functions, i, NULL);
		f->module = f->name + strlen(f->name) + 1;
		f->type = intern_get(d->types, d->type_of[i], NULL);
		j->items[j->count++] = (struct item){ .kind = DIFF_SELF, .index = i, .change = &f->self };
		j->items[j->count++] = (struct item){ .kind = DIFF_TOTAL, .index = i, .change = &f->total };
	}
	for (uint32_t i = 0; i < stacks; i++) {
		struct diff_stack *s = &result->stacks[i];
		size_t bytes;

		s->functions = intern_get(d->stacks, i, &bytes);
		s->count = (uint32_t)(bytes / sizeof(*s->functions));
		j->items[j->count++] = (struct item){ .kind = DIFF_STACK, .index = i, .change = &s->self };
	}
	return 0;
}

static int heavier(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->events < y->events) - (x->events > y->events);
}

/* Measures all items, and keeps the deviations of those that are judged. */
static int measure_items(struct judging *j)
{
	AUTO_FREE double *scratch = calloc(j->width + 1, sizeof(*scratch));
	struct diff_summary *s = &j->d->result.summary;
	uint32_t judged = 0;

	if (!scratch)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->count; i++) {
		j->items[i].deviations = scratch;
		measure_item(j, &j->items[i]);
		j->items[i].deviations = NULL;
	}
	qsort(j->items, j->count, sizeof(*j->items), heavier);
	while (judged < j->count && j->items[judged].events >= MIN_EVENTS)
		judged++;
	j->memory = calloc(judged * j->width + 1, sizeof(*j->memory));
	if (!j->memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < judged; i++) {
		struct item *item = &j->items[i];

		if (item->kind == DIFF_STACK && s->judged_stacks++ >= MAX_STACKS)
			continue;
		if (item->kind == DIFF_TOTAL) {
			j->d->result.functions[item->index].judged = true;
			s->judged_functions++;
		}
		item->deviations = &j->memory[i * j->width];
		for (uint32_t r = 0; r < j->d->run_count; r++)
			if (j->d->runs[r].has_slices)
				slice_variance(j, r, item, &item->deviations[(size_t)r * DIFF_SLICES]);
	}
	s->judged_stacks = s->judged_stacks < MAX_STACKS ? s->judged_stacks : MAX_STACKS;
	return 0;
}

static int sum_up_runs(struct judging *j)
{
	bool can_be_time;
	struct diff_summary *s = &j->d->result.summary;

	for (uint32_t r = 0; r < j->d->run_count; r++) {
		const struct diff_run *run = &j->d->runs[r];

		if (run->weight <= 0)
			return -EINVAL;
		j->runs[run->side]++;
		if (run->has_slices)
			j->width = (size_t)j->d->run_count * DIFF_SLICES;
	}
	if (!j->runs[DIFF_A] || !j->runs[DIFF_B])
		return -EINVAL;
	for (uint32_t r = 0; r < j->d->run_count; r++) {
		const struct diff_run *run = &j->d->runs[r];

		j->seconds[run->side] += (double)run->sum.cpu_ns / 1e9 / j->runs[run->side];
		s->events[run->side] += run->sum.events;
	}
	j->freedom = (double)j->runs[0] + j->runs[1] - 2;
	for (uint32_t r = 0; r < j->d->run_count; r++) {
		const struct diff_run *run = &j->d->runs[r];
		double off = (double)run->sum.cpu_ns / 1e9 - j->seconds[run->side];

		j->seconds_variance += j->freedom > 0 ? off * off / j->freedom : 0;
	}
	for (int side = 0; side < 2; side++) {
		s->runs[side] = j->runs[side];
		s->seconds[side] = j->seconds[side];
	}
	can_be_time = j->runs[0] > 1 && j->runs[1] > 1 && j->seconds[0] > 0 && j->seconds[1] > 0;
	if (j->measure == DIFF_TIMES && !can_be_time)
		return -EINVAL;
	if (j->measure == DIFF_AUTO)
		j->measure = can_be_time ? DIFF_TIMES : DIFF_SHARES;
	if (j->measure == DIFF_TIMES)
		j->length_variance = j->seconds_variance / j->seconds[DIFF_A] / j->seconds[DIFF_A];
	s->measure = j->measure;
	return 0;
}

static void finish(struct judging *j)
{
	struct diff_result *result = &j->d->result;
	struct diff_summary *s = &result->summary;

	for (uint32_t i = 0; i < result->function_count; i++) {
		struct diff_function *f = &result->functions[i];

		s->changed_functions += f->self.changed || f->total.changed;
		for (uint32_t r = 0; r < j->d->run_count; r++) {
			const struct diff_run *run = &j->d->runs[r];

			f->seconds[run->side] += diff_run_item(run, DIFF_SELF, i) / run->weight * (double)run->sum.cpu_ns /
						 1e9 / j->runs[run->side];
		}
	}
	for (uint32_t i = 0; i < result->stack_count; i++)
		s->changed_stacks += result->stacks[i].self.changed;
	s->sharpness = diff_band(j->d, 0.5);
	s->spread = j->freedom > 0 ? j->spread : 0;
}

/* Sorted, with the functions of stacks found again by their numbers. */
static void sort_result(struct diff_result *result)
{
	for (uint32_t i = 0; i < result->function_count; i++)
		result->functions[i].index = i;
	if (result->function_count)
		qsort(result->functions, result->function_count, sizeof(*result->functions), by_change);
	for (uint32_t i = 0; i < result->function_count; i++)
		result->by_index[result->functions[i].index] = &result->functions[i];
	if (result->stack_count)
		qsort(result->stacks, result->stack_count, sizeof(*result->stacks), by_stack_change);
}

static int judge(struct judging *j)
{
	double functions, stacks, of_functions, of_stacks, freedom, prior = 0;
	uint32_t trusted = 0;
	int err = make_items(j);

	err = err ? err : sum_up_runs(j);
	err = err ? err : measure_items(j);
	if (err)
		return err;
	if (j->freedom > 0)
		find_spread(j);
	functions = simultaneous_factor(j, false, FUNCTION_ERROR);
	stacks = simultaneous_factor(j, true, STACK_ERROR);
	if (isnan(functions) || isnan(stacks))
		return -ENOMEM;
	freedom = j->freedom > 0 ? j->freedom + j->spread_freedom : 0;
	of_functions = widened(functions, freedom), of_stacks = widened(stacks, freedom); /* once: a quantile is dear */
	judge_whole(j, functions);
	for (uint32_t i = 0; i < j->count; i++) {
		struct item *item = &j->items[i];

		set_variance(j, item);
		judge_item(j, item, item->kind == DIFF_STACK ? of_stacks : of_functions);
		if (item->events >= TRUSTED_EVENTS && item->part < 0.95) {
			prior += item->variance / (item->part * (1 - item->part));
			trusted++;
		}
	}
	j->d->band_factor = of_functions * sqrt((trusted ? prior / trusted : 1) * (1.0 / j->runs[0] + 1.0 / j->runs[1]));
	if (j->measure == DIFF_TIMES)
		judge_beside_rest(*j, functions, stacks);
	finish(j);
	sort_result(&j->d->result);
	return 0;
}

int diff_judge(struct diff *d, enum diff_measure measure, double least, const struct diff_result **ret)
{
	struct judging j = { .d = d, .measure = measure, .least = least };
	int err = judge(&j);

	free(j.items);
	free(j.memory);
	*ret = err ? NULL : &d->result;
	return err;
}

double diff_band(const struct diff *d, double part)
{
	return part > 0 && part < 1 ? d->band_factor * sqrt(part * (1 - part)) : 0;
}
