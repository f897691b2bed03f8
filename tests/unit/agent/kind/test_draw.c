/* SPDX-License-Identifier: Apache-2.0 */
/* The draw of intervals of time (bpf/draw.h): their sums come out right whatever their lengths and their pattern are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/draw.h"

enum { SEEDS = 50, MAX_STEPS = 6 };

#define US 1000ull
#define MS 1000000ull
#define S  1000000000ull

static uint64_t random_state;

/* Marsaglia's xorshift64*: 32 bits that are equally distributed, as bpf_get_prandom_u32() gives them. */
static __u32 draw_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (__u32)(random_state * 0x2545F4914F6CDD1Dull >> 32);
}

/* One that is as long as the mean, or longer, counts for just what it is. */
static void test_long(void **state)
{
	static const uint64_t means[] = { 1 * US, 1 * MS, 50 * MS, DRAW_MOST_NS };
	struct draw d;

	(void)state;
	random_state = 1;
	for (size_t m = 0; m < ARRAY_LEN(means); m++) {
		draw_begin(&d, means[m]);
		assert_true((uint64_t)d.left_ns + d.rest_ns == means[m]);
		for (int i = 0; i < 1000; i++) {
			uint64_t value = draw_interval(&d, means[m] - 1, means[m]);

			assert_true(value == 0 || value == means[m] || value == 2 * means[m]);
			assert_int_equal(draw_interval(&d, means[m], means[m]), means[m]);
			assert_int_equal(draw_interval(&d, 86400 * S, means[m]), 86400 * S);
		}
	}
	draw_begin(&d, 50 * MS);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(draw_interval(&d, 0, 50 * MS), 0);
}

/* A thread's waits, again and again: each place in its program that waits has the sum that it took, in the mean of many
 * runs. */
static const struct {
	const char *name;
	uint64_t mean_ns;
	uint64_t waits[MAX_STEPS]; /* of one turn, each at a place of its own */
} patterns[] = {
	{ "10 us", 2 * MS, { 10 * US } },
	{ "130 us", 2 * MS, { 130 * US } },
	{ "1 ms", 50 * MS, { 1 * MS } },
	{ "7 ms", 50 * MS, { 7 * MS } },
	{ "49 ms", 50 * MS, { 49 * MS } },
	{ "50 ms", 50 * MS, { 50 * MS } },
	{ "10 s", 50 * MS, { 10 * S } },
	{ "turns that divide the mean", 50 * MS, { 1 * MS, 1 * MS, 3 * MS, 5 * MS } },
	{ "short and nearly the mean", 50 * MS, { 2 * MS, 48 * MS } },
	{ "of all lengths", 50 * MS, { 10 * US, 300 * US, 2 * MS, 20 * MS, 333 * MS, 10 * S } },
};

static void run(size_t pattern, double sums[MAX_STEPS], uint64_t turns, uint64_t seed)
{
	const uint64_t *waits = patterns[pattern].waits, mean_ns = patterns[pattern].mean_ns;
	struct draw d;

	random_state = seed * 0x9E3779B97F4A7C15ull;
	draw_begin(&d, mean_ns);
	for (uint64_t i = 0; i < turns; i++)
		for (int k = 0; k < MAX_STEPS && waits[k]; k++)
			sums[k] += (double)draw_interval(&d, waits[k], mean_ns);
}

static void test_bias(void **state)
{
	(void)state;
	for (size_t p = 0; p < ARRAY_LEN(patterns); p++) {
		const uint64_t *waits = patterns[p].waits, mean_ns = patterns[p].mean_ns;
		double sums[MAX_STEPS] = { 0 };
		uint64_t turn_ns = 0, turns;

		for (int k = 0; k < MAX_STEPS; k++)
			turn_ns += waits[k] < mean_ns ? waits[k] : 0;
		turns = turn_ns ? 8000 * mean_ns / turn_ns : 100; /* 8,000 samples of short waits a run */
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			run(p, sums, turns, seed);
		for (int k = 0; k < MAX_STEPS && waits[k]; k++) {
			double truth = (double)waits[k] * (double)turns * SEEDS, off = sums[k] / truth - 1;
			/* The bound is 1 % where there are samples enough for it, else 4 deviations of what there is. */
			double samples = waits[k] < mean_ns ? truth / (double)mean_ns : 1e9,
			       most = samples > 160000 ? 0.01 : 4 / __builtin_sqrt(samples);

			print_message("%-28s %10.3f ms: %+.3f %%\n", patterns[p].name, (double)waits[k] / MS, 100 * off);
			assert_true(off > -most && off < most);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_long), cmocka_unit_test(test_bias) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
