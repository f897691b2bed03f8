/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons made by hand: which changes --fail-above finds, and how it tells them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/diff_check.h"
#include "tests/unit/proto/diff_results.h"
#include "tests/unit/proto/golden.h"

/* The limit is of the whole of A where times are compared; what has just the limit passes. */
static void test_failures(void **state)
{
	static const struct {
		enum diff_measure measure;
		double limit;
		uint32_t max_rows, expected;
	} cases[] = {
		{ DIFF_TIMES, 0.0625, 10, 4 }, { DIFF_TIMES, 0.0624, 10, 5 }, { DIFF_TIMES, 0.0624, 5, 5 },
		{ DIFF_TIMES, 0.0624, 3, 5 },  { DIFF_TIMES, 0.375, 10, 0 },  { DIFF_SHARES, 0.25, 10, 4 },
		{ DIFF_SHARES, 0.2, 1, 5 },
	};
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct diff_result r = result(cases[i].measure);

		buf_printf(&out, "--- above %g\n", cases[i].limit);
		assert_int_equal(diff_check(&r, cases[i].limit, cases[i].max_rows, &out), cases[i].expected);
	}
	assert_golden(&out, "diff_check.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_failures) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
