/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a range has samples: beginnings, ends, gaps, and what is asked of the store for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/coverage.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S, NEAR_MS = 60 };

/* Samples: one each @each_s seconds from @from_s to @to_s. */
struct samples {
	uint64_t from_s, to_s, each_s;
};

struct fake {
	struct store store;
	const struct samples *samples;
	unsigned asked_finely, asked;
};

static int sum_times(struct store *store, const struct store_selection *sel, uint64_t step_ns, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	struct fake *fake = (struct fake *)store;

	assert_null(by);
	assert_int_equal(sel->matcher_count, 0);
	assert_null(sel->stacks);
	assert_string_equal(sel->kind, "samples");
	fake->asked++;
	fake->asked_finely += step_ns % MINUTE_NS || sel->from_ns % MINUTE_NS;
	for (const struct samples *s = fake->samples; s->each_s; s++) {
		for (uint64_t at = s->from_s; at <= s->to_s; at += s->each_s) {
			const uint64_t ns = at * NSEC_PER_SEC;

			if (ns >= sel->from_ns && ns < sel->to_ns)
				assert_int_equal(fn(arg, "", (uint32_t)((ns - sel->from_ns) / step_ns), 0, 1), 0);
		}
	}
	return 0;
}

static struct coverage cover(const struct samples *samples, uint64_t from_s, uint64_t to_s)
{
	static const struct store_read_ops ops = { .sum_times = sum_times };
	const struct store_matcher ignored = { .label = "x", .value = "y" };
	const struct store_selection sel = { .from_ns = from_s * NSEC_PER_SEC,
					     .to_ns = to_s * NSEC_PER_SEC,
					     .kind = "samples",
					     .matchers = &ignored,
					     .matcher_count = 1 };
	struct fake fake = { .store.read = &ops, .samples = samples };
	struct coverage c;

	assert_int_equal(coverage_of(&fake.store, &sel, &c), 0);
	assert_true(fake.asked_finely <= 2 && fake.asked <= 3);
	return c;
}

static void assert_seconds(uint64_t ns, uint64_t s)
{
	assert_in_range(ns / 1000000, s * 1000 > NEAR_MS ? s * 1000 - NEAR_MS : 0, s * 1000 + NEAR_MS);
}

static void test_coverage(void **state)
{
	enum { T = 1000000 * 60 + 20 };
	static const struct samples first_minute[] = { { T, T + 30, 1 }, { 0 } };
	static const struct samples day[] = { { T, T + DAY_S, 7 }, { 0 } };
	static const struct samples idle[] = { { T, T + HOUR_S, 240 }, { 0 } };
	static const struct samples night[] = { { T, T + HOUR_S, 1 }, { T + 9 * HOUR_S, T + 10 * HOUR_S, 1 }, { 0 } };
	static const struct samples none[] = { { 0 } };
	struct coverage c;

	(void)state;
	c = cover(first_minute, T - HOUR_S, T + 35); /* an hour is asked for, there are 30 seconds */
	assert_seconds(c.covered_ns, 30);
	assert_seconds(c.from_ns, T);
	assert_seconds(c.to_ns, T + 30);
	assert_seconds(c.last_from_ns, T);
	c = cover(day, T + HOUR_S + 7, T + 2 * HOUR_S + 11); /* in the middle */
	assert_int_equal(c.covered_ns, (HOUR_S + 4) * NSEC_PER_SEC);
	assert_int_equal(c.from_ns, (T + HOUR_S + 7) * NSEC_PER_SEC);
	c = cover(day, T + HOUR_S, T + HOUR_S + 1); /* without a sample in it */
	assert_int_equal(c.covered_ns, NSEC_PER_SEC);
	c = cover(idle, T - 10, T + HOUR_S + 10); /* idle, not off */
	assert_seconds(c.covered_ns, HOUR_S);
	c = cover(night, T - HOUR_S, T + 11 * HOUR_S); /* off for hours: the gap's ends are told to a minute */
	assert_in_range(c.covered_ns / NSEC_PER_SEC, 2 * HOUR_S, 2 * HOUR_S + 120);
	assert_seconds(c.from_ns, T);
	assert_seconds(c.to_ns, T + 10 * HOUR_S);
	assert_in_range(c.last_from_ns / NSEC_PER_SEC, T + 9 * HOUR_S - 60, T + 9 * HOUR_S);
	c = cover(night, T + 2 * HOUR_S, T + 8 * HOUR_S);
	assert_int_equal(c.covered_ns, 0);
	assert_int_equal(c.from_ns, 0);
	c = cover(none, T, T + HOUR_S);
	assert_int_equal(c.covered_ns, 0);
	c = cover(first_minute, 0, T + 100); /* since 1970: the minutes are coarser, the ends are not much */
	assert_true(c.covered_ns / NSEC_PER_SEC >= 28 && c.covered_ns / NSEC_PER_SEC <= 33);
	c = cover(first_minute, T, T);
	assert_int_equal(c.covered_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_coverage) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
