/* SPDX-License-Identifier: Apache-2.0 */
/* The draw of intervals of time (bpf/draw.h): their sum comes out right whatever their lengths are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/draw.h"

enum { SEEDS = 50 };

#define US 1000ull
#define MS 1000000ull
#define S  1000000000ull

static const uint64_t means[] = { 1 * MS, 50 * MS, 4 * S };

/* Marsaglia's xorshift64*: 32 bits that are equally distributed, as bpf_get_prandom_u32() gives them. */
static uint32_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545F4914F6CDD1Dull >> 32);
}

/* One that is as long as the mean, or longer, counts for just what it is. */
static void test_long(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(means); m++)
		for (int i = 0; i < 1000; i++) {
			assert_int_equal(draw_interval(means[m], means[m], next_random(&random)), means[m]);
			assert_int_equal(draw_interval(10 * S, means[m], next_random(&random)), 10 * S);
			assert_int_equal(draw_interval(86400 * S, means[m], UINT32_MAX), 86400 * S);
		}
	assert_int_equal(draw_interval(DRAW_MOST_NS - 1, DRAW_MOST_NS, 0), DRAW_MOST_NS);
	assert_int_equal(draw_interval(0, 50 * MS, 0), 0);
	assert_int_equal(draw_interval(1, 50 * MS, 0), 50 * MS);
	assert_int_equal(draw_interval(50 * MS - 1, 50 * MS, UINT32_MAX), 0);
}

/* A thread's intervals, of which one length takes as long as any other: the sums of many runs have the right mean. */
static void test_bias(void **state)
{
	static const uint64_t lengths[] = { 10 * US, 130 * US, 1 * MS, 7 * MS, 49 * MS, 50 * MS, 333 * MS, 1 * S, 10 * S };
	const double samples_a_run = 8000; /* so the mean of all runs has a deviation of 0.16 % */

	(void)state;
	for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
		uint64_t mean_ns = lengths[l] < MS ? 2 * MS : 50 * MS;
		double chance = lengths[l] < mean_ns ? (double)lengths[l] / (double)mean_ns : 1;
		uint64_t count = (uint64_t)(samples_a_run / chance), truth = count * lengths[l];
		double sum = 0, samples = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			uint64_t random = seed * 0x9E3779B97F4A7C15ull;

			for (uint64_t i = 0; i < count; i++) {
				uint64_t value = draw_interval(lengths[l], mean_ns, next_random(&random));

				sum += (double)value;
				samples += value > 0;
			}
		}
		print_message("%9.2f ms: %+.3f %% of the truth, %.0f samples a run\n", (double)lengths[l] / MS,
			      100 * (sum / SEEDS / (double)truth - 1), samples / SEEDS);
		assert_true(sum / SEEDS > 0.99 * (double)truth && sum / SEEDS < 1.01 * (double)truth);
		assert_true(samples / SEEDS < 1.01 * samples_a_run);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_long), cmocka_unit_test(test_bias) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
