/* SPDX-License-Identifier: Apache-2.0 */
/* Against printed tables (normal and Student quantiles) and exact values (statistics_digamma, statistics_trigamma). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/statistics.h"
#include "tests/unit/descriptors.h"

static void assert_near(double value, double expected, double off)
{
	if (!(fabs(value - expected) <= off))
		fail_msg("%.12g, not %.12g", value, expected);
}

static void test_quantiles(void **state)
{
	static const struct {
		double tails, freedom, quantile;
	} table[] = {
		{ 0.05, 0, 1.959964 },	 { 0.01, 0, 2.575829 },	 { 0.05, 1, 12.7062 },	  { 0.05, 2, 4.302653 },
		{ 0.05, 4, 2.776445 },	 { 0.01, 4, 4.604095 },	 { 0.001, 4, 8.610302 },  { 0.05, 10, 2.228139 },
		{ 0.001, 12, 4.317791 }, { 0.02, 30, 2.457262 }, { 0.05, 120, 1.979930 }, { 0.5, 5, 0.726687 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		double q = table[i].freedom > 0 ? statistics_student_quantile(table[i].tails, table[i].freedom)
						: statistics_normal_quantile(table[i].tails);

		assert_near(q, table[i].quantile, 1e-4);
		assert_near(table[i].freedom > 0 ? statistics_student_tails(q, table[i].freedom)
						 : statistics_normal_tails(q),
			    table[i].tails, 1e-9);
	}
	assert_near(statistics_student_tails(3, 1e7), statistics_normal_tails(3), 1e-8);
	assert_near(statistics_student_tails(0, 3), 1, 1e-12);
}

static void test_gamma(void **state)
{
	(void)state;
	assert_near(statistics_digamma(1), -0.577215664901533, 1e-11);
	assert_near(statistics_digamma(0.5), -1.963510026021423, 1e-11);
	assert_near(statistics_digamma(25), log(25) - 1.0 / 50 - 1.0 / 7500, 1e-6);
	assert_near(statistics_trigamma(1), M_PI * M_PI / 6, 1e-11);
	assert_near(statistics_trigamma(0.5), M_PI * M_PI / 2, 1e-11);
	for (double x = 0.01; x < 1000; x *= 3)
		assert_near(statistics_trigamma_inverse(statistics_trigamma(x)) / x, 1, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_quantiles), cmocka_unit_test(test_gamma) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
