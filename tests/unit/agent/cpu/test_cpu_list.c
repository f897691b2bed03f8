/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs's CPU lists. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/perf_event.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { MAX = 8 };

static const struct {
	const char *text;
	int count; /* or the error */
	uint32_t cpus[MAX];
} lists[] = {
	{ "0\n", 1, { 0 } },
	{ "0-3", 4, { 0, 1, 2, 3 } },
	{ "0-1,4,6-7\n", 5, { 0, 1, 4, 6, 7 } },
	{ "5-5,1048576", 2, { 5, 1048576 } },
	{ "", 0, { 0 } },
	{ "\n", 0, { 0 } },
	{ "0-7", 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
	{ "0-8", -ENOSPC, { 0 } },
	{ "0-1048576", -ENOSPC, { 0 } },
	{ "1048577", -EBADMSG, { 0 } },
	{ "99999999999999999999", -EBADMSG, { 0 } },
	{ "0-99999999999999999999", -EBADMSG, { 0 } },
	{ "3-2", -EBADMSG, { 0 } },
	{ "-1", -EBADMSG, { 0 } },
	{ "1-", -EBADMSG, { 0 } },
	{ "1-\n", -EBADMSG, { 0 } },
	{ "1,,2", -EBADMSG, { 0 } },
	{ ",1", -EBADMSG, { 0 } },
	{ "1 2", -EBADMSG, { 0 } },
	{ "all", -EBADMSG, { 0 } },
	{ "1x", -EBADMSG, { 0 } },
};

static void test_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		uint32_t cpus[MAX] = { 0 };
		int count = perf_event_cpus_parse(lists[i].text, cpus, MAX);

		print_message("\"%s\" -> %d\n", lists[i].text, count);
		assert_int_equal(count, lists[i].count);
		if (count > 0)
			assert_memory_equal(cpus, lists[i].cpus, (size_t)count * sizeof(*cpus));
	}
}

static void test_online(void **state)
{
	uint32_t cpus[4096];
	int count = perf_event_cpus_online(cpus, ARRAY_LEN(cpus));

	(void)state;
	assert_int_equal(count, sysconf(_SC_NPROCESSORS_ONLN));
	for (int i = 1; i < count; i++)
		assert_true(cpus[i] > cpus[i - 1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_lists), cmocka_unit_test(test_online) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
