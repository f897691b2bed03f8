/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a process: behind any name, from lines that end anywhere, and of this process against the clock. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/stat_start.h"

#define BEHIND_NAME " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "

static void test_names(void **state)
{
	static const char *const names[] = { "hearth", "",	   " ",	       "a b c", ")",
					     "(",      "a) S 1 2", "((x) 9 9", ") ) )", "1 2 3\n4" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint64_t ticks = 0;
		char line[256];

		snprintf(line, sizeof(line), "17 (%s)" BEHIND_NAME "424242 23 24 25\n", names[i]);
		assert_int_equal(stat_start_ticks(line, &ticks), 0);
		assert_int_equal(ticks, 424242);
	}
}

static void test_numbers(void **state)
{
	static const struct {
		const char *line;
		int error;
		uint64_t ticks;
	} rows[] = {
		{ "1 (x)" BEHIND_NAME "0 23", 0, 0 },
		{ "1 (x)" BEHIND_NAME "18446744073709551615 23", 0, UINT64_MAX },
		{ "1 (x)" BEHIND_NAME "18446744073709551616 23", -EBADMSG, 7 },
		{ "1 (x)" BEHIND_NAME "-1 23", -EBADMSG, 7 },
		{ "1 (x)" BEHIND_NAME " 1 23", -EBADMSG, 7 },
		{ "1 (x)" BEHIND_NAME "x 23", -EBADMSG, 7 },
		{ "1 x" BEHIND_NAME "5 23", -EBADMSG, 7 },
		{ "", -EBADMSG, 7 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t ticks = 7;

		if (stat_start_ticks(rows[i].line, &ticks) != rows[i].error || ticks != rows[i].ticks)
			fail_msg("row %zu: %llu", i, (unsigned long long)ticks);
	}
}

/* A line that ends before the blank behind the number says nothing, rather than a smaller number. */
static void test_cut(void **state)
{
	static const char whole[] = "17 (a b)" BEHIND_NAME "424242 23";
	const size_t enough = strlen(whole) - 2;

	(void)state;
	for (size_t len = 0; len <= strlen(whole); len++) {
		char line[sizeof(whole)];
		uint64_t ticks = 7;

		memcpy(line, whole, len);
		line[len] = '\0';
		assert_int_equal(stat_start_ticks(line, &ticks), len >= enough ? 0 : -EBADMSG);
		assert_int_equal(ticks, len >= enough ? 424242 : 7);
	}
}

static double boot_seconds(void)
{
	struct timespec now;

	assert_return_code(clock_gettime(CLOCK_BOOTTIME, &now), errno);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A child with a name as bad as names get starts between two looks at the clock. */
static void test_a_process(void **state)
{
	const double hz = (double)sysconf(_SC_CLK_TCK), before = boot_seconds();
	int ready[2], status;
	uint64_t ticks = 0;
	char line[1024], c;
	double after;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_return_code(child, errno);
	if (!child) {
		AUTO_FCLOSE FILE *f = NULL;

		(void)prctl(PR_SET_NAME, "a) R 1 (2 3");
		f = fopen("/proc/self/stat", "re");
		if (!f || !fgets(line, sizeof(line), f) || stat_start_ticks(line, &ticks))
			_exit(1);
		_exit(write(ready[1], &ticks, sizeof(ticks)) != sizeof(ticks));
	}
	after = boot_seconds();
	close(ready[1]);
	assert_int_equal(read(ready[0], &ticks, sizeof(ticks)), sizeof(ticks));
	assert_int_equal(read(ready[0], &c, 1), 0);
	close(ready[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true((double)ticks / hz >= before - 2 / hz && (double)ticks / hz <= after + 2 / hz);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
