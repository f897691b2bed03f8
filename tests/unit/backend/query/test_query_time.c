/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time at their edges: what is one, what is none, and to the nanosecond which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "backend/query/selected.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define NOW (1000 * NSEC_PER_SEC)

static const struct store_status about = { .first_ns = 5, .last_ns = 9 };

static void is(const char *text, uint64_t ns)
{
	uint64_t told = 77;

	if (query_time(text, NOW, &about, &told) || told != ns)
		fail_msg("'%s' is told to be %llu", text, (unsigned long long)told);
}

/* What is no time leaves its place as it was. */
static void is_none(const char *text)
{
	uint64_t told = 77;

	if (query_time(text, NOW, &about, &told) != -EINVAL || told != 77)
		fail_msg("'%s' is told to be %llu", text, (unsigned long long)told);
}

static void test_before_now(void **state)
{
	(void)state;
	is("now", NOW);
	is("now-1s", 999 * NSEC_PER_SEC);
	is("now-500ms", NOW - NSEC_PER_SEC / 2);
	is("now-2m", 880 * NSEC_PER_SEC);
	is("now-1000s", 0);
}

/* Time begins at 0: what is before is that. */
static void test_before_the_epoch(void **state)
{
	(void)state;
	is("now-1001s", 0);
	is("now-10000h", 0);
}

/* A plus sign that nobody escaped is a space in a URL. */
static void test_behind_now(void **state)
{
	(void)state;
	is("now+1s", 1001 * NSEC_PER_SEC);
	is("now 1s", 1001 * NSEC_PER_SEC);
	is_none("now1s");
	is_none("now*1s");
	is_none("now+");
	is_none("nowadays");
}

static void test_of_the_store(void **state)
{
	(void)state;
	is("first", 5);
	is("last", 10);
	is_none("firs");
	is_none("first ");
	is_none("lastly");
}

static void test_fractions(void **state)
{
	(void)state;
	is("7.5", 7500000000);
	is("7.000000001", 7000000001);
	is("7.0000000019", 7000000001);
	is("7.123456789", 7123456789);
	is("7.", 7000000000);
	is("0.1", 100000000);
	is("0", 0);
	is_none(".5");
	is_none("7.5s");
	is_none("7,5");
	is_none("7.5.1");
}

/* The last second whose nanoseconds are a positive number of 64 bits with a sign. */
static void test_the_last_second(void **state)
{
	(void)state;
	is("9223372036", 9223372036000000000);
	is_none("9223372037");
	is_none("18446744073709551616"); /* 2^64 */
	is_none("18446744073709551623"); /* it would be 7 */
}

static void test_zones(void **state)
{
	(void)state;
	is("1970-01-02T00:00:00Z", 86400 * NSEC_PER_SEC);
	is("1970-01-02T00:00:00z", 86400 * NSEC_PER_SEC);
	is("1970-01-02T00:00:00+01:00", 82800 * NSEC_PER_SEC);
	is("1970-01-02T00:00:00-01:00", 90000 * NSEC_PER_SEC);
	is("1970-01-02T00:00:00+0130", 81000 * NSEC_PER_SEC);
	is("1970-01-02T00:00:00-00:59", 89940 * NSEC_PER_SEC);
	is("1970-01-01T01:00:00+01:00", 0);
}

static void test_no_zones(void **state)
{
	static const char *const texts[] = {
		"1970-01-02T00:00:00",	      "1970-01-02T00:00:00Zz",	   "1970-01-02T00:00:00 ",
		"1970-01-02T00:00:00+",	      "1970-01-02T00:00:00+1",	   "1970-01-02T00:00:00+01:60",
		"1970-01-02T00:00:00+01:00x", "1970-01-02T00:00:00+-1:00", "1970-01-02T00:00:00+01:-1",
		"1970-01-02T00:00:00*01:00",  "1970-01-02T00:00:00.5",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		is_none(texts[i]);
}

static void test_fractions_of_dates(void **state)
{
	(void)state;
	is("1970-01-01T00:00:01.25Z", 1250000000);
	is("1970-01-01T00:00:01.000000007Z", 1000000007);
	is("1970-01-01T01:00:01.5+01:00", 1500000000);
}

static void test_dates_before_the_epoch(void **state)
{
	(void)state;
	is_none("1969-12-31T23:59:59Z");
	is_none("1970-01-01T00:00:00+00:01");
	is("1969-12-31T23:59:59-00:01", 59 * NSEC_PER_SEC);
}

static void test_no_dates(void **state)
{
	(void)state;
	is_none("");
	is_none("1970-13-02T00:00:00Z");
	is_none("1970-01-02 00:00:00Z");
	is_none("01/02/1970");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_now),
		cmocka_unit_test(test_before_the_epoch),
		cmocka_unit_test(test_behind_now),
		cmocka_unit_test(test_of_the_store),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_the_last_second),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_no_zones),
		cmocka_unit_test(test_fractions_of_dates),
		cmocka_unit_test(test_dates_before_the_epoch),
		cmocka_unit_test(test_no_dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
