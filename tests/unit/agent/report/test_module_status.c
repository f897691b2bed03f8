/* SPDX-License-Identifier: Apache-2.0 */
/* Where modules' names come from, as metrics: the heaviest are shown, the others summed, and nothing is counted twice or
 * lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/report/module_status.h"
#include "base/buf.h"
#include "base/metrics.h"

static struct metrics *metrics;
static struct module_status *modules;

static int setup(void **state)
{
	(void)state;
	metrics = metrics_new();
	return module_status_new(metrics, &modules);
}

static int teardown(void **state)
{
	(void)state;
	module_status_free(modules);
	metrics_free(metrics);
	return 0;
}

static void count(const char *name, const char *build_id, const char *source, uint64_t samples)
{
	uint32_t module = module_status_find(modules, str_z(name), build_id, source);

	assert_true(module != UINT32_MAX);
	module_status_add(modules, module, samples);
}

/* What the metrics say. */
struct shown {
	unsigned series;
	uint64_t sum, other;
	char labels[40][160];
	uint64_t values[40];
};

static void note(void *arg, const char *name, const char *labels, uint64_t value)
{
	struct shown *s = arg;

	if (strcmp(name, "hearth_module_symbols_samples") != 0)
		return;
	assert_true(s->series < 40);
	snprintf(s->labels[s->series], sizeof(s->labels[0]), "%s", labels);
	s->values[s->series++] = value;
	s->sum += value;
	if (strstr(labels, "module=\"[other]\""))
		s->other = value;
}

static struct shown publish(void)
{
	struct shown ret = { .series = 0 };

	module_status_publish(modules);
	metrics_each(metrics, note, &ret);
	return ret;
}

static uint64_t value_of(const struct shown *s, const char *label)
{
	for (unsigned i = 0; i < s->series; i++)
		if (strstr(s->labels[i], label))
			return s->values[i];
	return UINT64_MAX;
}

static void test_a_module(void **state)
{
	struct shown s;

	(void)state;
	count("app", "ab12", "symtab", 3);
	count("app", "ab12", "symtab", 4);
	s = publish();
	assert_int_equal(s.series, 1);
	assert_int_equal(s.values[0], 7);
	assert_non_null(strstr(s.labels[0], "module=\"app\",build_id=\"ab12\",source=\"symtab\",quality=\""));
}

/* Files of one name with other build ids are others. */
static void test_build_ids(void **state)
{
	struct shown s;

	(void)state;
	count("app", "ab12", "symtab", 3);
	count("app", "cd34", "symtab", 5);
	count("app", "", "symtab", 7);
	s = publish();
	assert_int_equal(s.series, 3);
	assert_int_equal(value_of(&s, "build_id=\"ab12\""), 3);
	assert_int_equal(value_of(&s, "build_id=\"cd34\""), 5);
	assert_int_equal(value_of(&s, "build_id=\"\""), 7);
}

/* Where names come from another place since, the file has another series, with all that was counted. */
static void test_another_source(void **state)
{
	struct shown s;

	(void)state;
	count("app", "ab12", "symtab", 3);
	(void)publish();
	count("app", "ab12", "dwarf", 2);
	s = publish();
	assert_int_equal(s.series, 1);
	assert_int_equal(value_of(&s, "source=\"dwarf\""), 5);
}

static void test_a_module_without_names(void **state)
{
	struct shown s;

	(void)state;
	count("app", "ab12", "", 3);
	s = publish();
	assert_string_equal(s.labels[0], "module=\"app\"");
}

static void count_many(unsigned from, unsigned to)
{
	char name[32];

	for (unsigned i = from; i < to; i++) {
		snprintf(name, sizeof(name), "m%04u", i);
		count(name, "x", "symtab", 1000 + i);
	}
}

/* As many as are shown, and one more, which is the lightest. */
static void test_as_many_as_are_shown(void **state)
{
	struct shown s;

	(void)state;
	count_many(1, 1 + MODULES_SHOWN);
	s = publish();
	assert_int_equal(s.series, MODULES_SHOWN);
	assert_int_equal(s.other, 0);
	count_many(0, 1);
	s = publish();
	assert_int_equal(s.series, MODULES_SHOWN + 1);
	assert_int_equal(s.other, 1000);
	assert_int_equal(value_of(&s, "module=\"m0000\""), UINT64_MAX);
	assert_int_equal(value_of(&s, "module=\"m0001\""), 1001);
}

/* A module that became heavier is shown in place of one that is lighter. */
static void test_a_module_comes_up(void **state)
{
	struct shown s;

	(void)state;
	count_many(0, 1 + MODULES_SHOWN);
	(void)publish();
	count("m0000", "x", "symtab", 5000);
	s = publish();
	assert_int_equal(value_of(&s, "module=\"m0000\""), 6000);
	assert_int_equal(value_of(&s, "module=\"m0001\""), UINT64_MAX);
	assert_int_equal(s.other, 1001);
}

/* Of those that weigh the same the one that was met first is shown. */
static void test_ties(void **state)
{
	char name[32];
	struct shown s;

	(void)state;
	for (unsigned i = 0; i <= MODULES_SHOWN; i++) {
		snprintf(name, sizeof(name), "m%04u", i);
		count(name, "x", "symtab", 5);
	}
	s = publish();
	assert_int_equal(s.other, 5);
	assert_int_equal(value_of(&s, "module=\"m0000\""), 5);
	assert_int_equal(value_of(&s, "module=\"m0020\""), UINT64_MAX);
}

/* When there are too many those that are not shown are forgotten, but not what they had. */
static void test_too_many(void **state)
{
	uint64_t sum = 0, before;
	struct shown s;

	(void)state;
	for (unsigned i = 0; i < 1024; i++)
		sum += 1000 + i;
	count_many(0, 1024);
	before = module_status_memory_bytes(modules);
	s = publish();
	assert_int_equal(s.sum, sum);
	assert_int_equal(s.series, MODULES_SHOWN + 1);
	assert_true(module_status_memory_bytes(modules) < before);
	s = publish();
	assert_int_equal(s.sum, sum);
	assert_int_equal(value_of(&s, "module=\"m1023\""), 2023);
	count("m0000", "x", "symtab", 50000); /* begins anew */
	s = publish();
	assert_int_equal(value_of(&s, "module=\"m0000\""), 50000);
	assert_int_equal(s.sum, sum + 50000);
}

/* One less than too many are all kept. */
static void test_almost_too_many(void **state)
{
	struct shown s;

	(void)state;
	count_many(0, 1023);
	(void)publish();
	count("m0000", "x", "symtab", 50000);
	s = publish();
	assert_int_equal(value_of(&s, "module=\"m0000\""), 51000);
}

/* Samples of a module that could not be kept are among the others. */
static void test_no_module(void **state)
{
	struct shown s;

	(void)state;
	module_status_add(modules, UINT32_MAX, 9);
	s = publish();
	assert_int_equal(s.series, 1);
	assert_string_equal(s.labels[0], "module=\"[other]\"");
	assert_int_equal(s.other, 9);
}

static void test_nothing(void **state)
{
	(void)state;
	assert_int_equal(publish().series, 0);
	module_status_free(NULL);
}

#define STATUS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STATUS_TEST(test_a_module),
		STATUS_TEST(test_build_ids),
		STATUS_TEST(test_another_source),
		STATUS_TEST(test_a_module_without_names),
		STATUS_TEST(test_as_many_as_are_shown),
		STATUS_TEST(test_a_module_comes_up),
		STATUS_TEST(test_ties),
		STATUS_TEST(test_too_many),
		STATUS_TEST(test_almost_too_many),
		STATUS_TEST(test_no_module),
		STATUS_TEST(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
