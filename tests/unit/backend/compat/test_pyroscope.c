/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's questions over a store made of a table of samples: the answers are worked out by hand from that table, in the
 * JSON that Pyroscope's own service writes.
 */
#include "tests/unit/backend/api_table.h"

#define SERVICE "/querier.v1.QuerierService/"
#define CPU	"process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define SAMPLES "process_cpu:samples:count:cpu:nanoseconds"
#define SPAN	"codec=json&from=1000.000&to=1006.000"
#define MAIL	"{\"labels\":[{\"name\":\"service_name\",\"value\":\"mail\"}],"
#define SHOP	"{\"labels\":[{\"name\":\"service_name\",\"value\":\"shop\"}],"

/* The answer to @url is @text. */
static void is(const char *url, const char *text)
{
	AUTO_FREE char *answer = ask(url, 200);

	if (strcmp(answer, text) != 0)
		fail_msg("%s\n%s\nis not\n%s", url, answer, text);
}

static void test_types(void **state)
{
	(void)state;
	is(SERVICE "ProfileTypes?" SPAN,
	   "{\"profileTypes\":[{\"ID\":\"" CPU "\",\"name\":\"process_cpu\",\"sampleType\":\"cpu\","
	   "\"sampleUnit\":\"nanoseconds\",\"periodType\":\"cpu\",\"periodUnit\":\"nanoseconds\"},"
	   "{\"ID\":\"" SAMPLES "\",\"name\":\"process_cpu\",\"sampleType\":\"samples\","
	   "\"sampleUnit\":\"count\",\"periodType\":\"cpu\",\"periodUnit\":\"nanoseconds\"}]}");
}

static void test_labels(void **state)
{
	(void)state;
	is(SERVICE "LabelNames?" SPAN, "{\"names\":[\"__profile_type__\",\"service_name\",\"thread_name\"]}");
	is(SERVICE "LabelValues?label=service_name&" SPAN, "{\"names\":[\"mail\",\"shop\"]}");
	is(SERVICE "LabelValues?label=service.name&" SPAN, "{\"names\":[\"mail\",\"shop\"]}");
	is(SERVICE "LabelValues?label=thread_name&" SPAN, "{\"names\":[\"t1\",\"t2\",\"t3\"]}");
	is(SERVICE "LabelValues?label=thread_name&codec=json&from=1002.000&to=1004.000", "{\"names\":[\"t2\"]}");
	is(SERVICE "LabelValues?label=thread_name&codec=json",
	   "{\"names\":[\"t1\",\"t2\",\"t3\"]}"); /* no time is all of it */
	is(SERVICE "LabelValues?label=thread_name&codec=json&from=0.000&to=0.000", "{\"names\":[\"t1\",\"t2\",\"t3\"]}");
	is(SERVICE "LabelValues?label=__profile_type__&" SPAN, "{\"names\":[\"" CPU "\",\"" SAMPLES "\"]}");
	is(SERVICE "LabelValues?label=service_name&selector={thread_name=\"t3\"}&" SPAN, "{\"names\":[\"mail\"]}");
	is(SERVICE "LabelValues?label=service_name&selector={thread_name!=\"t3\"}&selector={}&" SPAN,
	   "{\"names\":[\"shop\"]}");
	is(SERVICE "LabelValues?label=service_name&selector={__profile_type__=\"" SAMPLES "\",service_name=~\"m.*\"}&" SPAN,
	   "{\"names\":[\"mail\"]}");
	is(SERVICE "LabelValues?label=service_name&selector={__profile_type__=\"memory:a:b:c:d\"}&" SPAN, "{\"names\":[]}");
	is(SERVICE "LabelNames?selector={__profile_type__=\"memory:a:b:c:d\"}&" SPAN, "{\"names\":[\"__profile_type__\"]}");
}

static void test_series(void **state)
{
	static const char type[] = "{\"name\":\"__profile_type__\",\"value\":\"";
	AUTO_FREE char *all = ask(SERVICE "Series?" SPAN, 200);
	size_t types = 0;

	(void)state;
	for (const char *p = all; (p = strstr(p, type)); p++)
		types++;
	assert_int_equal(types, 4); /* two services, two types */
	assert_non_null(strstr(all, "{\"name\":\"process_pid\",\"value\":\"8\"}"));
	assert_null(strstr(all, "host_name")); /* it has no value */
	is(SERVICE "Series?by=service_name&" SPAN,
	   "{\"labelsSet\":[{\"labels\":[{\"name\":\"service_name\",\"value\":\"shop\"}]},"
	   "{\"labels\":[{\"name\":\"service_name\",\"value\":\"mail\"}]}]}");
}

/* Heaviest first, a point at the end of its step, values in the type's unit. */
static void test_select_series(void **state)
{
	(void)state;
	is(SERVICE "SelectSeries?step=2&by=service_name&" SPAN,
	   "{\"series\":[" MAIL "\"points\":[{\"value\":12,\"timestamp\":\"1006000\"}]}," SHOP
	   "\"points\":[{\"value\":6,\"timestamp\":\"1002000\"},{\"value\":4,\"timestamp\":\"1004000\"}]}]}");
	is(SERVICE "SelectSeries?step=4&" SPAN,
	   "{\"series\":[{\"labels\":[],\"points\":[{\"value\":10,\"timestamp\":\"1004000\"},"
	   "{\"value\":12,\"timestamp\":\"1006000\"}]}]}"); /* the last step is cut */
	is(SERVICE "SelectSeries?step=6&profile_type=" CPU "&" SPAN,
	   "{\"series\":[{\"labels\":[],\"points\":[{\"value\":1100000000,\"timestamp\":\"1006000\"}]}]}");
	is(SERVICE "SelectSeries?step=6&profile_type=" SAMPLES "&" SPAN,
	   "{\"series\":[{\"labels\":[],\"points\":[{\"value\":22,\"timestamp\":\"1006000\"}]}]}");
	is(SERVICE "SelectSeries?step=6&profile_type=memory:a:b:c:d&" SPAN, "{\"series\":[]}");
	is(SERVICE "SelectSeries?step=6&limit=1&by=thread_name&" SPAN,
	   "{\"series\":[{\"labels\":[{\"name\":\"thread_name\",\"value\":\"t3\"}],\"points\":[{\"value\":12,\"timestamp\":"
	   "\"1006000\"}]}]}");
	for (int i = 0; i < 2; i++) /* no limit */
		EXPECT(i ? SERVICE "SelectSeries?step=6&limit=0&by=thread_name&" SPAN
			 : SERVICE "SelectSeries?step=6&limit=-1&by=thread_name&" SPAN,
		       "\"t3\"}],\"points\":[{\"value\":12,\"timestamp\":\"1006000\"}]},{\"labels\":[{\"name\":\"thread_"
		       "name\","
		       "\"value\":\"t1\"}],\"points\":[{\"value\":6,",
		       "\"value\":\"t2\"}],\"points\":[{\"value\":4,\"timestamp\":\"1006000\"}]}]}");
	free(ask(SERVICE "SelectSeries?step=0.001&codec=json&from=1000.000&to=1019.999", 200)); /* most points */
}

/* Levels of boxes: how far from the box before, total, self, name. */
static void test_stacktraces(void **state)
{
	static const char names[] =
		"\"names\":[\"total\",\"main\",\"work\",\"fast\",\"send\",\"app+0x1000..0x1db0\",\"idle\"]";

	(void)state;
	EXPECT(SERVICE "SelectMergeStacktraces?" SPAN, names, "{\"values\":[\"0\",\"22\",\"7\",\"0\"]}",
	       "{\"values\":[\"7\",\"15\",\"0\",\"1\"]}",
	       "{\"values\":[\"7\",\"9\",\"2\",\"2\",\"0\",\"5\",\"0\",\"4\",\"0\",\"1\",\"1\",\"6\"]}",
	       "{\"values\":[\"9\",\"4\",\"4\",\"3\",\"0\",\"3\",\"0\",\"1\",\"0\",\"5\",\"5\",\"5\"]}",
	       "{\"values\":[\"13\",\"3\",\"3\",\"2\"]}]", "\"total\":\"22\",\"maxSelf\":\"7\"");
	EXPECT(SERVICE "SelectMergeStacktraces?profile_type=" CPU "&" SPAN,
	       "{\"values\":[\"0\",\"1100000000\",\"350000000\",\"0\"]}",
	       "\"total\":\"1100000000\",\"maxSelf\":\"350000000\"");
	EXPECT(SERVICE "SelectMergeStacktraces?max_nodes=5&" SPAN, "\"other\"", "\"total\":\"22\"");
	EXPECT(SERVICE "SelectMergeStacktraces?format=PROFILE_FORMAT_FLAMEGRAPH&selector={service_name=\"shop\"}&" SPAN,
	       "\"total\":\"10\",\"maxSelf\":\"4\"");
	EXPECT(SERVICE "SelectMergeStacktraces?profile_type=memory:a:b:c:d&" SPAN, "\"total\":\"0\",\"maxSelf\":\"0\"");
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *url, *says;
	} cases[] = {
		{ SERVICE "LabelValues?" SPAN, "name: say of which label" },
		{ SERVICE "LabelValues?label=&" SPAN, "name: say of which label" },
		{ SERVICE "LabelNames?selector={a=&" SPAN, "" },
		{ SERVICE "LabelNames?selector={a=\"1\"}&selector={b=\"1\"}&" SPAN, "selector: hearth takes one" },
		{ SERVICE "LabelNames?selector={__profile_type__!=\"x\"}&" SPAN, "hearth takes = and one of them" },
		{ SERVICE "LabelNames?selector={__profile_type__=\"x\",__profile_type__=\"y\"}&" SPAN,
		  "hearth takes = and one of them" },
		{ SERVICE "LabelNames?selector=shop&" SPAN, "" },
		{ SERVICE "SelectSeries?" SPAN, "step: seconds, 0.001 and more" },
		{ SERVICE "SelectSeries?step=0.0009&" SPAN, "step: seconds, 0.001 and more" },
		{ SERVICE "SelectSeries?step=nan&" SPAN, "step: seconds, 0.001 and more" },
		{ SERVICE "SelectSeries?step=2e9&" SPAN, "step: seconds, 0.001 and more" },
		{ SERVICE "SelectSeries?step=0.001&codec=json&from=1000.000&to=1020.000", "step: more than 20000 points" },
		{ SERVICE "SelectSeries?step=1&by=a&by=b&" SPAN, "by: hearth takes one" },
		{ SERVICE "SelectSeries?step=1&limit=x&" SPAN, "limit: " },
		{ SERVICE "SelectMergeStacktraces?format=PROFILE_FORMAT_DOT&" SPAN, "format: hearth has flame graphs only" },
		{ SERVICE "SelectMergeStacktraces?max_nodes=1&" SPAN, "max_nodes: " },
		{ SERVICE "SelectMergeStacktraces?max_nodes=200001&" SPAN, "max_nodes: " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *answer = ask(cases[i].url, 400);

		if (strncmp(answer, "{\"code\":\"invalid_argument\",\"message\":\"", 38) != 0 ||
		    !strstr(answer, cases[i].says))
			fail_msg("%s\n%s", cases[i].url, answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_types, setup, teardown),
		cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_series, setup, teardown),
		cmocka_unit_test_setup_teardown(test_select_series, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacktraces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
