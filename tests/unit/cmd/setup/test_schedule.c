/* SPDX-License-Identifier: Apache-2.0 */
/* --probabilistic as text. That chance keeps to it is a matter of tests/system/schedule.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "cmd/setup/schedule.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int err;
		double percent;
		uint64_t interval_ns;
	} cases[] = {
		{ "10", 0, 10, 0 },
		{ "10%", 0, 10, 0 },
		{ "0.5/1m", 0, 0.5, 60000000000 },
		{ "100/250ms", 0, 100, 250000000 },
		{ "0/5", 0, 0, 5000000000 },
		{ "5%/2h", 0, 5, 7200000000000 },
		{ "", -EINVAL, 0, 0 },
		{ "101", -EINVAL, 0, 0 },
		{ "-1", -EINVAL, 0, 0 },
		{ "nan", -EINVAL, 0, 0 },
		{ "10/", -EINVAL, 0, 0 },
		{ "10/0", -EINVAL, 0, 0 },
		{ "10/soon", -EINVAL, 0, 0 },
		{ "10 /1m", -EINVAL, 0, 0 },
		{ "10%1m", -EINVAL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double percent = 0;
		uint64_t interval_ns = 0;

		if (schedule_parse(cases[i].text, &percent, &interval_ns) != cases[i].err)
			fail_msg("'%s'", cases[i].text);
		assert_true(percent == cases[i].percent);
		assert_true(interval_ns == cases[i].interval_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
