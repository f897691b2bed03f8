/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a moment as stores keep them: times the seconds for which they held, under a unit that says so. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "backend/store/sample.h"

static void test_gauges(void **state)
{
	static struct str strings[] = { STR(""),      STR("inuse_space"), STR("bytes"), STR("inuse_objects"),
					STR("count"), STR("alloc_space"), STR("inuse") };
	static const struct {
		int32_t type, unit;
		uint64_t seconds;
		const char *kept_unit;
		int64_t weight;
	} expected[] = {
		{ 1, 2, 5, "byte_seconds", 5000 }, { 3, 4, 60, "count_seconds", 60000 },
		{ 1, 2, 0, "byte_seconds", 1000 }, { 5, 2, 5, NULL, 1000 },
		{ 6, 2, 5, NULL, 1000 },
	};
	const struct profiles p = { .dict = { .strings = strings, .string_count = 7 } };
	uint64_t time = 17;
	int64_t value = 1000;
	const struct sample sample = {
		.timestamps_unix_ns = &time, .timestamp_count = 1, .values = &value, .value_count = 1
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct profile profile = { .sample_type = { expected[i].type, expected[i].unit },
						 .duration_ns = expected[i].seconds * NSEC_PER_SEC };
		const char *unit = store_gauge_unit(&p, &profile);
		const struct store_event e = store_event_kept(&p, &profile, &sample, 0);

		assert_int_equal(!unit, !expected[i].kept_unit);
		if (unit)
			assert_string_equal(unit, expected[i].kept_unit);
		assert_int_equal(e.weight, expected[i].weight);
		assert_int_equal(e.time_ns, 17);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gauges) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
