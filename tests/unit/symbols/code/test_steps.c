/* SPDX-License-Identifier: Apache-2.0 */
/* Overlapping ranges flattened into steps, address by address against all ranges; and what a budget that is too small says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/code/names.h"
#include "symbols/code/steps.h"

enum { ADDRESSES = 64, MAX_RANGES = 12, ROUNDS = 2000, ENOUGH_BYTES = 1 << 20 };

static unsigned seed = 7;

static unsigned draw(unsigned below)
{
	return (unsigned)rand_r(&seed) % below;
}

/* Three ranks; every range is a root. */
static uint32_t rank(const void *ctx, uint32_t value, uint32_t *root_ret)
{
	(void)ctx;
	*root_ret = value;
	return value % 3;
}

static int compare_steps(const void *a, const void *b)
{
	const struct code_step *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Ranges by address, each with a value of its own. */
static struct code_steps draw_ranges(struct code_step ranges[MAX_RANGES])
{
	struct code_steps s = { .data = ranges, .count = draw(MAX_RANGES + 1), .cap = MAX_RANGES };

	for (size_t i = 0; i < s.count; i++)
		ranges[i] = (struct code_step){ draw(ADDRESSES - 1), (uint32_t)i + 1, 1 + draw(ADDRESSES / 2) };
	qsort(ranges, s.count, sizeof(*ranges), compare_steps);
	return s;
}

/* The range that names the code at @addr; NULL: none. */
static const struct code_step *best_of(const struct code_steps *ranges, uint64_t addr)
{
	const struct code_step *best = NULL;

	for (size_t i = 0; i < ranges->count; i++) {
		const struct code_step *r = &ranges->data[i];

		if (addr < r->addr || addr - r->addr >= r->extra)
			continue;
		if (!best || r->value % 3 > best->value % 3 || (r->value % 3 == best->value % 3 && r->value > best->value))
			best = r;
	}
	return best;
}

static void check_steps(const struct code_steps *ranges, const struct code_steps *steps)
{
	const struct code_step *step = NULL;

	for (uint64_t addr = 0; addr < 2 * ADDRESSES; addr++) {
		const struct code_step *best = best_of(ranges, addr);

		for (size_t i = 0; i < steps->count && steps->data[i].addr <= addr; i++)
			step = &steps->data[i];
		assert_int_equal(step ? step->value : CODE_NONE, best ? best->value : CODE_NONE);
		if (step && best)
			assert_int_equal(step->extra + (addr - step->addr), addr - best->addr);
	}
}

static void test_flatten(void **state)
{
	struct code_step space[MAX_RANGES];

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct code_budget budget = { .max_bytes = ENOUGH_BYTES };
		struct code_steps ranges = draw_ranges(space), steps = { 0 };

		assert_int_equal(code_steps_flatten(&ranges, rank, NULL, &steps, &budget), 0);
		check_steps(&ranges, &steps);
		assert_int_equal(budget.held_bytes, steps.cap * sizeof(*steps.data));
		code_steps_fini(&steps, &budget);
		assert_int_equal(budget.held_bytes, 0);
	}
}

/* A budget is too small up to some size, and enough from there on; whatever is held is counted. */
static void test_budget(void **state)
{
	struct code_step space[MAX_RANGES];
	int refused = 0, done = 0;

	(void)state;
	for (size_t max_bytes = 0; max_bytes < 4096; max_bytes += 8) {
		struct code_budget budget = { .max_bytes = max_bytes };
		struct code_steps ranges, steps = { 0 };
		int err;

		seed = 3;
		do {
			ranges = draw_ranges(space);
		} while (ranges.count < MAX_RANGES);
		err = code_steps_flatten(&ranges, rank, NULL, &steps, &budget);
		if (err) {
			assert_int_equal(err, -E2BIG);
			assert_int_equal(done, 0);
			refused++;
		} else {
			check_steps(&ranges, &steps);
			done++;
		}
		assert_int_equal(budget.held_bytes, steps.cap * sizeof(*steps.data));
		code_steps_fini(&steps, &budget);
	}
	assert_true(refused > 2 && done > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flatten),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
