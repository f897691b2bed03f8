/* SPDX-License-Identifier: Apache-2.0 */
/* How the chain of a script's frames came out, in words: each runtime and each end has its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/report/script_frames.h"
#include "agent/samples/merge.h"
#include "base/cleanup.h"

static void check(uint32_t runtime, uint32_t end, const char *expected)
{
	char text[SCRIPT_OUTCOME_BYTES];
	struct str outcome = script_outcome(SCRIPT_OUTCOME(runtime, end), text);

	assert_int_equal(outcome.len, strlen(expected));
	assert_memory_equal(outcome.data, expected, outcome.len);
}

static void test_words(void **state)
{
	(void)state;
	check(RUNTIME_PYTHON, CHAIN_END_ROOT, "python: complete");
	check(RUNTIME_PHP, CHAIN_END_TORN, "php: torn");
	check(RUNTIME_PYTHON, CHAIN_END_BAD_MEMORY, "python: unreadable");
	check(RUNTIME_PERL, SCRIPT_MISFIT, "perl: does not fit the native stack");
	check(RUNTIME_PERL, CHAIN_END_DEPTH, "perl: depth");
}

static void test_locks(void **state)
{
	static const char *const words[] = { "held", "waiting", "released" };

	(void)state;
	for (uint32_t lock = CHAIN_LOCK_HELD; lock < CHAIN_LOCK_MAX; lock++)
		assert_true(!strncmp(script_lock(lock).data, words[lock - 1], script_lock(lock).len + 1));
}

static void test_all_are_told(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < RUNTIME_ID_MAX; id++) {
		for (uint32_t end = 0; end < SCRIPT_END_MAX; end++) {
			char text[SCRIPT_OUTCOME_BYTES];
			uint32_t outcome = SCRIPT_OUTCOME(id, end);
			struct str words = script_outcome(outcome, text);

			assert_true(outcome && SCRIPT_OUTCOME_RUNTIME(outcome) == id && SCRIPT_OUTCOME_END(outcome) == end);
			assert_true(words.len > strlen(": ") && words.len < sizeof(text) - 1 && words.data[0] != ':');
			assert_non_null(strstr(text, ": "));
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_all_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
