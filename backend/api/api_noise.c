/* SPDX-License-Identifier: Apache-2.0 */
/* Two selections, cut into runs for the judge of differences. */
#include "backend/api/api_noise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/query/functions.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"

enum {
	RUNS = 8,   /* a side: with fewer their spread is badly known, with more they get short */
	STEPS = 256 /* of time, between which the cuts lie */
};

/* Differences below this part of the whole do not count, as with `hearth diff --min`. */
static const double LEAST = 0.005;
/* A function that nearly all samples are in says nothing of how much its parts vary: 1 - p counts as this at least. */
static const double LEAST_REST = 0.01;

void noise_fini(struct noise *n)
{
	diff_free(n->diff);
	free(n->numbers);
}

/* --- where a side is cut --- */

struct steps {
	uint64_t from_ns, step_ns;
	int64_t weights[STEPS];
	double total;
};

static int take_step(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct steps *s = arg;

	(void)group;
	(void)events;
	if (bucket < STEPS && weight > 0) {
		s->weights[bucket] = weights_add(s->weights[bucket], weight);
		s->total += (double)weight;
	}
	return 0;
}

/* Steps of whole hours or minutes where they are long enough: the store has sums of those. */
static void set_steps(struct steps *s, const struct store_selection *sel)
{
	const uint64_t range_ns = sel->to_ns - sel->from_ns;
	const uint64_t unit_ns = range_ns >= 2 * RUNS * HOUR_NS ? HOUR_NS : range_ns >= STEPS * MINUTE_NS ? MINUTE_NS : 1;

	s->from_ns = sel->from_ns - sel->from_ns % unit_ns;
	s->step_ns = (sel->to_ns - s->from_ns) / (STEPS - 1) + 1;
	s->step_ns = (s->step_ns + unit_ns - 1) / unit_ns * unit_ns;
}

/* Writes where the runs of @sel begin, and the end of the last one, to @cuts; *@count_ret: how many runs. */
static int cut_runs(struct api_call *call, const struct store_selection *sel, uint64_t cuts[static RUNS + 1],
		    uint32_t *count_ret)
{
	struct store *store = call->ctx.store;
	struct store_selection whole = *sel;
	struct steps s = { 0 };
	double sum = 0, last = 0, share;
	uint32_t count = 0;
	int err;

	set_steps(&s, sel);
	whole.from_ns = s.from_ns; /* time before the selection only moves the first cut */
	err = store->read->sum_times(store, &whole, s.step_ns, NULL, take_step, &s);
	if (err)
		return err;
	share = s.total / RUNS;
	cuts[0] = sel->from_ns;
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint64_t end_ns = s.from_ns + (i + 1) * s.step_ns;

		sum += (double)s.weights[i];
		if (sum - last < share || s.total - sum < share / 2 || end_ns <= sel->from_ns || end_ns >= sel->to_ns ||
		    count + 1 == RUNS)
			continue;
		cuts[++count] = end_ns;
		last = sum;
	}
	cuts[++count] = sel->to_ns;
	*count_ret = s.total > 0 ? count : 0;
	return 0;
}

/* --- what the functions weigh in a run --- */

struct counting {
	struct noise *noise;
	struct functions *functions;
};

static int find_number(struct counting *c, uint32_t function, uint32_t *ret)
{
	struct noise *n = c->noise;
	struct function f;
	int err = 0;

	if (vec_reach_zero(&n->numbers, &n->number_count, function))
		return -ENOMEM;
	if (!n->numbers[function]) {
		uint32_t number = 0;

		f = functions_get(c->functions, function);
		err = diff_find_function(n->diff, f.name, f.module, f.type, &number);
		n->numbers[function] = err ? 0 : number + 1;
	}
	*ret = n->numbers[function] - 1;
	return err;
}

static int count_function(void *arg, uint32_t function, int64_t self, int64_t total)
{
	struct counting *c = arg;
	uint32_t number = 0;
	int err = find_number(c, function, &number);

	return err ? err : diff_count_function(c->noise->diff, number, (double)self, (double)total);
}

static int add_side(struct noise *n, struct api_call *call, enum diff_side side, const struct query *q)
{
	struct query piece = *q; /* borrows all that is @q's */
	struct counting c = { n, call->ctx.functions };
	uint64_t cuts[RUNS + 1];
	uint32_t count = 0;
	int err = cut_runs(call, &q->sel, cuts, &count);

	for (uint32_t i = 0; i < count && !err; i++) {
		struct api_fill fill = { .sides = { &piece } };

		piece.sel.from_ns = cuts[i];
		piece.sel.to_ns = cuts[i + 1];
		err = diff_begin_run(n->diff, side);
		err = err ? err : api_sum_functions(call, &fill, count_function, &c);
		if (!err)
			diff_end_run(n->diff, (double)fill.total[0], fill.events[0], fill.squares[0]);
	}
	return err;
}

int noise_read(struct noise *n, struct api_call *call, const struct query *a, const struct query *b)
{
	const char *asked = query_param(call->params, "noise");
	int err;

	if (!asked || strcmp(asked, "1") != 0)
		return 0;
	n->diff = diff_new(NULL);
	if (!n->diff)
		return -ENOMEM;
	err = add_side(n, call, DIFF_A, a);
	err = err ? err : add_side(n, call, DIFF_B, b);
	err = err ? err : diff_judge(n->diff, DIFF_SHARES, LEAST, &n->result);
	return err == -EINVAL ? 0 : err; /* nothing to compare */
}

const struct diff_function *noise_of(const struct noise *n, uint32_t function)
{
	uint32_t number = n->result && function < n->number_count ? n->numbers[function] : 0;

	return number ? n->result->by_index[number - 1] : NULL;
}

double noise_part(const void *arg, uint32_t function)
{
	const struct diff_function *f = noise_of(arg, function);

	return f && f->judged ? (f->total.a + f->total.b) / 2 : 0;
}

double noise_factor(const void *arg, uint32_t function)
{
	const double part = noise_part(arg, function);

	return part > 0 ? noise_of(arg, function)->total.band / sqrt(part * fmax(1 - part, LEAST_REST)) : 0;
}

void noise_write(const struct noise *n, struct json *j)
{
	const struct diff_summary *s;

	if (!n->result)
		return;
	s = &n->result->summary;
	json_key(j, "noise");
	json_object_begin(j);
	json_key(j, "runs");
	json_array_begin(j);
	json_u64(j, s->runs[DIFF_A]);
	json_u64(j, s->runs[DIFF_B]);
	json_array_end(j);
	api_write_number(j, "judged", s->judged_functions);
	api_write_number(j, "changed", s->changed_functions);
	json_key(j, "factor");
	json_double(j, diff_band(n->diff, 0.5) / 0.5);
	json_key(j, "least");
	json_double(j, LEAST);
	json_object_end(j);
}
