/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, against the kernel's own readings in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "base/clock.h"
#include "tests/unit/descriptors.h"

static uint64_t wall_ns(void)
{
	struct timespec ts;

	timespec_get(&ts, TIME_UTC);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void test_unix(void **state)
{
	uint64_t before = wall_ns(), now = clock_unix_ns(), after = wall_ns();

	(void)state;
	assert_in_range(now, before, after);
}

static void test_mono_advances(void **state)
{
	const struct timespec pause = { .tv_nsec = 20 * (long)NSEC_PER_MSEC };
	uint64_t start = clock_mono_ns();

	(void)state;
	nanosleep(&pause, NULL);
	assert_in_range(clock_mono_ns() - start, 20 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC);
}

static void test_conversion(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		uint64_t mono = clock_mono_ns(), wall = wall_ns();
		uint64_t converted = clock_mono_to_unix_ns(mono);

		/* The slack is for being scheduled out between the two readings. */
		assert_in_range(converted, wall - NSEC_PER_SEC, wall + NSEC_PER_SEC);
		assert_int_equal(clock_mono_to_unix_ns(mono + 12345) - converted, 12345);
		clock_refresh();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_mono_advances),
		cmocka_unit_test(test_conversion),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
