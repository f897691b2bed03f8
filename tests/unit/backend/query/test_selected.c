/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a question: selectors in PromQL's label syntax, and times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "backend/query/selected.h"
#include "backend/query/selector.h"
#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

static void test_selectors(void **state)
{
	struct selector s = { 0 };
	struct buf error = BUF_EMPTY;

	(void)state;
	assert_int_equal(
		selector_parse(" { comm = \"a\\\"b\" , pid!='7', k8s.pod.name=~`x.*\\d`, other_label!~\"\", } ", &s, &error),
		0);
	assert_int_equal(s.count, 4);
	assert_string_equal(s.items[0].label, STORE_COMM_LABEL);
	assert_string_equal(selector_label("cpython_gil"), "cpython.gil");
	assert_string_equal(selector_label("exe"), STORE_EXE_LABEL);
	assert_string_equal(s.items[0].value, "a\"b");
	assert_string_equal(s.items[1].label, "process.pid");
	assert_int_equal(s.items[1].match, MATCH_NOT_EQUAL);
	assert_string_equal(s.items[2].value, "x.*\\d");
	assert_string_equal(s.items[3].label, "other_label");
	assert_int_equal(s.items[3].match, MATCH_NOT_REGEX);
	selector_fini(&s);
	assert_int_equal(selector_parse("", &s, &error), 0);
	assert_int_equal(s.count, 0);
	selector_fini(&s);
	buf_fini(&error);
}

static void test_words(void **state)
{
	static const struct {
		const char *text, *word; /* word NULL: a mistake */
		size_t count;
	} texts[] = {
		{ "java", "java", 0 },
		{ " {} java ", "java", 0 },
		{ "java {exe=\"x\"}", "java", 1 },
		{ "{exe=\"x\", pid!='7'} java", "java", 2 },
		{ "exe=\"x\" java", "java", 1 },
		{ "exe=\"x\", java", "java", 1 },
		{ "\"GC Thread#0\"", "GC Thread#0", 0 },
		{ "{exe=\"x\"} `a=\"b\"`", "a=\"b\"", 1 },
		{ "main.(*Tree).Find", "main.(*Tree).Find", 0 },
		{ "std::vector<int>::~vector", "std::vector<int>::~vector", 0 },
		{ "GC Thread", NULL, 0 },
		{ "java {exe=\"x\"} go", NULL, 0 },
		{ "java, go", NULL, 0 },
		{ "{java}", NULL, 0 },
		{ "operator=", NULL, 0 },
		{ "\"\"", NULL, 0 },
		{ "\"java", NULL, 0 },
		{ "java}", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct selector s = { 0 };
		struct buf error = BUF_EMPTY;
		int err = selector_parse(texts[i].text, &s, &error);

		if (err != (texts[i].word ? 0 : -EINVAL) || (err && !error.len))
			fail_msg("%s: %d %s", texts[i].text, err, buf_text(&error));
		if (!err) {
			assert_string_equal(s.word, texts[i].word);
			assert_int_equal(s.count, texts[i].count);
		}
		selector_fini(&s);
		buf_fini(&error);
	}
}

static void test_times(void **state)
{
	const struct store_status about = { .first_ns = 5, .last_ns = 9 };
	const uint64_t now_ns = 1763788000 * NSEC_PER_SEC;
	static const struct {
		const char *text;
		uint64_t ns; /* 0: no time */
	} times[] = {
		{ "now", 1763788000000000000 },
		{ "now-15m", 1763787100000000000 },
		{ "now+1h", 1763791600000000000 },
		{ "first", 5 },
		{ "last", 10 },
		{ "1763788000.25", 1763788000250000000 },
		{ "1763788000.1234567891", 1763788000123456789 },
		{ "2025-11-22T05:06:40Z", 1763788000000000000 },
		{ "2025-11-22T06:06:40.5+01:00", 1763788000500000000 },
		{ "2025-11-22T04:36:40-0030", 1763788000000000000 },
		{ "now-", 0 },
		{ "now-x", 0 },
		{ "now+17225867254", 0 }, /* behind the end of time */
		{ "-5", 0 },
		{ "1e9", 0 },
		{ "99999999999999999999", 0 },
		{ "2025-11-22", 0 },
		{ "2025-11-22T05:06:40", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		uint64_t ns = 0;
		int err = query_time(times[i].text, now_ns, &about, &ns);

		if (err != (times[i].ns ? 0 : -EINVAL) || ns != times[i].ns)
			fail_msg("%s: %d, %llu", times[i].text, err, (unsigned long long)ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_selectors), cmocka_unit_test(test_words),
					    cmocka_unit_test(test_times) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
