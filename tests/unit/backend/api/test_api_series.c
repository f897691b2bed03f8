/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of series and values, and pieces of time: how they are put together, ordered and cut. */
#include "tests/unit/backend/api_table.h"

/* Series that a store tells, in this order. */
static struct told_series {
	const char *service;
	int64_t pid; /* -1: no such label */
	int64_t weight;
	uint64_t events;
} told[8];
static size_t told_count;

static int tell_series(struct store *store, const struct store_selection *sel,
		       int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg)
{
	int err = 0;

	(void)store;
	(void)sel;
	for (size_t i = 0; i < told_count && !err; i++) {
		struct key_value items[] = {
			{ .key = STR("service.name"), .value = { .kind = VALUE_STRING, .string = str_z(told[i].service) } },
			{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = told[i].pid } },
		};
		const struct key_values labels_of = { items, told[i].pid < 0 ? 1 : 2 };

		err = fn(arg, &labels_of, told[i].weight, told[i].events);
	}
	return err;
}

static struct store_read_ops ops;

static int begin(void **state)
{
	const int failed = setup(state);

	ops = table_ops;
	ops.series = tell_series;
	table_store.store.read = &ops;
	told_count = 0;
	return failed;
}

static void tell(const char *service, int64_t pid, int64_t weight, uint64_t events)
{
	told[told_count++] = (struct told_series){ service, pid, weight, events };
}

static void answers(const char *url, const char *wanted)
{
	AUTO_FREE char *answer = ask(url, 200);

	assert_string_equal(answer, wanted);
}

/* --- series --- */

#define A(weight, events) \
	"{\"labels\":{\"service.name\":\"a\",\"process.pid\":\"7\"},\"weight\":" weight ",\"events\":" events "}"
#define B(weight, events) "{\"labels\":{\"service.name\":\"b\"},\"weight\":" weight ",\"events\":" events "}"

static void test_no_series(void **state)
{
	(void)state;
	answers("/api/v1/series?" ALL, "{\"series\":[]}");
}

static void test_series_by_weight(void **state)
{
	(void)state;
	tell("b", -1, 3, 2);
	tell("a", 7, 9, 1);
	answers("/api/v1/series?" ALL, "{\"series\":[" A("9", "1") "," B("3", "2") "]}");
}

/* Series of one set of labels are one, also where others are told between them. */
static void test_series_are_joined(void **state)
{
	(void)state;
	tell("a", 7, 2, 1);
	tell("b", -1, 5, 1);
	tell("a", 7, 4, 3);
	tell("b", -1, 0, 1);
	tell("a", 7, 1, 1);
	answers("/api/v1/series?" ALL, "{\"series\":[" A("7", "5") "," B("5", "2") "]}");
}

static void test_series_that_weigh_the_same(void **state)
{
	(void)state;
	tell("b", -1, 5, 1);
	tell("a", 7, 5, 2);
	answers("/api/v1/series?" ALL, "{\"series\":[" A("5", "2") "," B("5", "1") "]}");
}

static void test_series_are_limited(void **state)
{
	(void)state;
	tell("b", -1, 3, 2);
	tell("a", 7, 9, 1);
	answers("/api/v1/series?limit=1&" ALL, "{\"series\":[" A("9", "1") "]}");
	answers("/api/v1/series?limit=2&" ALL, "{\"series\":[" A("9", "1") "," B("3", "2") "]}");
	free(ask("/api/v1/series?limit=0&" ALL, 400));
}

/* --- values --- */

static void test_values(void **state)
{
	(void)state;
	EXPECT("/api/v1/values?label=service&" ALL, "\"values\":[{\"value\":\"mail\",\"weight\":12,\"events\":2},{\"value\":"
						    "\"shop\",\"weight\":10,\"events\":4}]");
	EXPECT("/api/v1/values?label=service&limit=1&" ALL, "\"values\":[{\"value\":\"mail\",\"weight\":12,\"events\":2}]");
	EXPECT("/api/v1/values?label=service&prefix=sh&" ALL,
	       "\"values\":[{\"value\":\"shop\",\"weight\":10,\"events\":4}]");
	EXPECT("/api/v1/values?label=service&prefix=shopping&" ALL, "\"values\":[]");
}

/* t1 and t2 weigh 6 and 4, t3 weighs 12. */
static void test_values_of_threads(void **state)
{
	(void)state;
	EXPECT("/api/v1/values?label=thread.name&" ALL,
	       "\"values\":[{\"value\":\"t3\",\"weight\":12,\"events\":2},{\"value\":\"t1\",\"weight\":6,\"events\":2},"
	       "{\"value\":\"t2\",\"weight\":4,\"events\":2}]");
}

/* --- pieces of time --- */

static void test_a_piece_a_second(void **state)
{
	(void)state;
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=1", "\"step\":1", "\"total\":22",
	       "\"series\":[{\"value\":\"\",\"total\":22,\"weights\":[4,2,1,3,5,7]}]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&points=6", "\"step\":1", "\"weights\":[4,2,1,3,5,7]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&points=3", "\"step\":2", "\"weights\":[6,4,12]");
}

/* The last piece is as long as the others, though the range ends within it. */
static void test_a_range_that_is_no_multiple(void **state)
{
	(void)state;
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=4", "\"step\":4", "\"weights\":[10,12]");
	EXPECT("/api/v1/timeline?from=1000&to=1005&step=4", "\"total\":15", "\"weights\":[10,5]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=2.5", "\"step\":2.5", "\"weights\":[7,8,7]");
}

/* Pieces of a minute and more are whole minutes, and begin with one. */
static void test_whole_minutes(void **state)
{
	(void)state;
	EXPECT("/api/v1/timeline?from=1000&to=1600&points=10", "\"from\":960,", "\"step\":120,",
	       "\"weights\":[22,0,0,0,0,0]");
	EXPECT("/api/v1/timeline?from=960&to=1560&points=10", "\"from\":960,", "\"step\":60,",
	       "\"weights\":[22,0,0,0,0,0,0,0,0,0]");
	EXPECT("/api/v1/timeline?from=1000&to=1590&points=10", "\"from\":1000,", "\"step\":59,");
	EXPECT("/api/v1/timeline?from=1000&to=1600&step=60", "\"from\":1000,", "\"step\":60,"); /* as it was asked for */
}

static void test_pieces_by_a_label(void **state)
{
	(void)state;
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=3&by=service",
	       "\"series\":[{\"value\":\"mail\",\"total\":12,\"weights\":[0,12]},"
	       "{\"value\":\"shop\",\"total\":10,\"weights\":[7,3]}]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=3&by=service&limit=1",
	       "\"series\":[{\"value\":\"mail\",\"total\":12,\"weights\":[0,12]},"
	       "{\"value\":\"(other)\",\"total\":10,\"weights\":[7,3]}]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=3&by=thread.name&limit=2",
	       "{\"value\":\"t3\",\"total\":12,\"weights\":[0,12]},{\"value\":\"t1\",\"total\":6,\"weights\":[6,0]},"
	       "{\"value\":\"(other)\",\"total\":4,\"weights\":[1,3]}]");
}

static void test_steps_that_are_none(void **state)
{
	static const char *const steps[] = { "0", "-1", "1s", "nan", "1000000001", "1e10", "x" };
	char url[128], wanted[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		AUTO_FREE char *answer = NULL;

		snprintf(url, sizeof(url), "/api/v1/timeline?from=1000&to=1006&step=%s", steps[i]);
		snprintf(wanted, sizeof(wanted), "step: '%s' is no number of seconds", steps[i]);
		answer = ask(url, 400);
		assert_non_null(strstr(answer, wanted));
	}
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=1000000000", "\"weights\":[22]");
}

/* As many pieces as there may be, and one more. */
static void test_the_most_pieces(void **state)
{
	AUTO_FREE char *answer = NULL;

	(void)state;
	free(ask("/api/v1/timeline?from=0&to=20000&step=1", 200));
	answer = ask("/api/v1/timeline?from=0&to=20001&step=1", 400);
	assert_non_null(strstr(answer, "step: more than 20000 pieces"));
}

/* --- heat map --- */

static void test_heat(void **state)
{
	(void)state;
	EXPECT("/api/v1/heatmap?from=1000&to=1006&columns=3&rows=2", "\"columns\":3", "\"rows\":2", "\"column_seconds\":2",
	       "\"total\":22", "\"weights\":[4,2,1,3,5,7]");
	EXPECT("/api/v1/heatmap?from=1000&to=1006&columns=2&rows=1", "\"column_seconds\":3", "\"weights\":[7,15]");
}

/* What does not come out even is in the last cell. */
static void test_uneven_heat(void **state)
{
	(void)state;
	EXPECT("/api/v1/heatmap?from=1000&to=1000.000000005&columns=2&rows=1", "\"column_seconds\":2e-09",
	       "\"weights\":[4,0]");
	EXPECT("/api/v1/heatmap?from=999.999999996&to=1000.000000001&columns=2&rows=1", "\"weights\":[0,4]");
}

static void test_too_many_cells(void **state)
{
	AUTO_FREE char *answer = NULL;

	(void)state;
	free(ask("/api/v1/heatmap?columns=1024&rows=1024&" ALL, 200));
	answer = ask("/api/v1/heatmap?columns=1024&rows=1025&" ALL, 400);
	assert_non_null(strstr(answer, "columns, rows: more than 1048576 cells"));
}

#define SERIES_TEST(name) cmocka_unit_test_setup_teardown(name, begin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERIES_TEST(test_no_series),
		SERIES_TEST(test_series_by_weight),
		SERIES_TEST(test_series_are_joined),
		SERIES_TEST(test_series_that_weigh_the_same),
		SERIES_TEST(test_series_are_limited),
		SERIES_TEST(test_values),
		SERIES_TEST(test_values_of_threads),
		SERIES_TEST(test_a_piece_a_second),
		SERIES_TEST(test_a_range_that_is_no_multiple),
		SERIES_TEST(test_whole_minutes),
		SERIES_TEST(test_pieces_by_a_label),
		SERIES_TEST(test_steps_that_are_none),
		SERIES_TEST(test_the_most_pieces),
		SERIES_TEST(test_heat),
		SERIES_TEST(test_uneven_heat),
		SERIES_TEST(test_too_many_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
