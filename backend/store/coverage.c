/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minutes that have samples are asked for, which a store has at hand; then the two minutes where the samples begin and end
 * are looked at in detail. The minutes around the range tell whether it begins or ends in the middle of samples.
 */
#include "backend/store/coverage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { MOST_MINUTES = 1 << 20, PIECES = 1024 /* of a minute that is looked at in detail */ };

struct pieces {
	uint64_t *bits;
	uint64_t count;
};

static int take_piece(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	struct pieces *p = arg;

	(void)group;
	(void)weight;
	if (bucket < p->count && events)
		p->bits[bucket / 64] |= 1ull << bucket % 64;
	return 0;
}

static bool has_samples(const struct pieces *p, uint64_t i)
{
	return p->bits[i / 64] >> (i % 64) & 1;
}

/* Sets the bits of @p's pieces from @from_ns on that have samples; all bits are 0 before. */
static int look(struct store *store, const struct store_selection *sel, uint64_t from_ns, uint64_t step_ns, struct pieces *p)
{
	const struct store_selection all = {
		.from_ns = from_ns, .to_ns = from_ns + p->count * step_ns, .kind = sel->kind, .deadline_ns = sel->deadline_ns
	};

	return store->read->sum_times(store, &all, step_ns, NULL, take_piece, p);
}

/* Moves *@ns to the first sample of the minute that begins there, or to the end of the last one, to within a piece. */
static int refine(struct store *store, const struct store_selection *sel, uint64_t minute_ns, bool is_end, uint64_t *ns)
{
	uint64_t bits[PIECES / 64] = { 0 };
	struct pieces p = { bits, PIECES };
	const uint64_t step_ns = minute_ns / PIECES + 1;
	int err = look(store, sel, *ns, step_ns, &p);
	uint64_t first = 0, end = PIECES;

	while (!err && first < end && !has_samples(&p, first))
		first++;
	while (!err && end > first && !has_samples(&p, end - 1))
		end--;
	if (!err && first < end)
		*ns += (is_end ? end : first) * step_ns;
	else if (!err && is_end)
		*ns += minute_ns;
	return err;
}

/* Minutes without a gap that is too long: [first, end). */
struct run {
	uint64_t first, end;
};

/* The next run from minute @at on; false when there is none. */
static bool next_run(const struct pieces *minutes, uint64_t most_empty, uint64_t at, struct run *ret)
{
	uint64_t empty = 0;

	while (at < minutes->count && !has_samples(minutes, at))
		at++;
	*ret = (struct run){ at, at };
	for (; at < minutes->count && empty <= most_empty; at++) {
		empty = has_samples(minutes, at) ? 0 : empty + 1;
		if (!empty)
			ret->end = at + 1;
	}
	return ret->first < ret->end;
}

static void add_run(const struct store_selection *sel, uint64_t from_ns, uint64_t to_ns, struct coverage *c)
{
	from_ns = from_ns > sel->from_ns ? from_ns : sel->from_ns;
	to_ns = to_ns < sel->to_ns ? to_ns : sel->to_ns;
	if (from_ns >= to_ns)
		return;
	if (!c->covered_ns)
		c->from_ns = from_ns;
	c->covered_ns += to_ns - from_ns;
	c->to_ns = to_ns;
	c->last_from_ns = from_ns;
}

int coverage_of(struct store *store, const struct store_selection *sel, struct coverage *ret)
{
	const uint64_t range_ns = sel->to_ns - sel->from_ns, step_ns = (range_ns / MINUTE_NS / MOST_MINUTES + 1) * MINUTE_NS;
	const uint64_t before_ns = sel->from_ns > COVERAGE_GAP_NS ? sel->from_ns - COVERAGE_GAP_NS : 0;
	const uint64_t start_ns = before_ns - before_ns % step_ns, most_empty = COVERAGE_GAP_NS / step_ns;
	struct pieces minutes = { .count = (sel->to_ns + COVERAGE_GAP_NS - start_ns) / step_ns + 1 };
	AUTO_FREE uint64_t *bits = calloc(minutes.count / 64 + 1, sizeof(*bits));
	struct run run, next;
	int err = bits ? 0 : -ENOMEM;

	*ret = (struct coverage){ 0 };
	minutes.bits = bits;
	err = err || !range_ns ? err : look(store, sel, start_ns, step_ns, &minutes);
	if (err || !range_ns || !next_run(&minutes, most_empty, 0, &run))
		return err;
	for (bool is_first = true, is_last = false; !is_last && !err; is_first = false, run = next) {
		uint64_t from_ns = start_ns + run.first * step_ns, to_ns = start_ns + (run.end - 1) * step_ns;

		is_last = !next_run(&minutes, most_empty, run.end, &next);
		if (is_first && from_ns + step_ns > sel->from_ns && from_ns < sel->to_ns)
			err = refine(store, sel, step_ns, false, &from_ns);
		if (is_last && !err && to_ns < sel->to_ns)
			err = refine(store, sel, step_ns, true, &to_ns);
		else
			to_ns += step_ns;
		add_run(sel, from_ns, to_ns, ret);
	}
	return err;
}
