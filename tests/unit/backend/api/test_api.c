/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query API over a store made of a table of samples. The expected answers are the JSON that docs/api.md describes,
 * worked out by hand from that table.
 */
#include "tests/unit/backend/api_table.h"

static void test_flamegraph(void **state)
{
	(void)state;
	/* all 22, main 15 = work 9 (fast 4, main 3 > work 3) + send 5 (address) + idle 1, 7 without a stack. */
	EXPECT("/api/v1/flamegraph?" ALL, "\"kind\":{\"type\":\"samples\",\"unit\":\"count\"},\"weight_ns\":50000000",
	       "\"from\":1000,\"to\":1005.000000001", "\"total\":22,\"events\":6",
	       "\"name\":[\"all\",\"(other)\",\"main\",\"work\",\"fast\",\"send\",\"app+0x1000..0x1db0\",\"idle\"]",
	       "\"function\":[0,2,3,4,2,3,5,6,7]", "\"parent\":[0,0,1,2,2,4,1,6,1]", "\"inlined\":[0,0,0,1,0,0,0,0,0]",
	       "\"self\":[7,0,2,4,0,3,0,5,1]", "\"total\":[22,15,9,4,3,3,5,5,1]", "\"cut_nodes\":0,\"cut_weight\":0");
}

/* A frame gets its name between two questions. */
static void test_names_later(void **state)
{
	(void)state;
	EXPECT("/api/v1/flamegraph?" ALL, "\"app+0x1000..0x1db0\"");
	for (uint32_t i = 1; i < table_store.count; i++)
		if (!strcmp(table_store.nodes[i].name, "4096"))
			strcpy(table_store.nodes[i].name, "found");
	table_store.store.names_version++;
	EXPECT("/api/v1/flamegraph?" ALL, "\"found\"");
}

static void test_flamegraph_without_inlines(void **state)
{
	(void)state;
	EXPECT("/api/v1/flamegraph?inline=0&" ALL, "\"function\":[0,2,3,2,3,4,5,6]", "\"self\":[7,0,6,0,3,0,5,1]");
}

static void test_flamegraph_by(void **state)
{
	(void)state;
	EXPECT("/api/v1/flamegraph?by=service_name&" ALL, "\"name\":[\"all\",\"(other)\",\"mail\",\"main\",\"send\"",
	       "\"type\":[\"\",\"\",\"label\",\"native\"", "\"total\":[22,12,5,5,5,10,10,9,4,3,3,1]");
}

/* Totals stay true: what is left out stands in "(other)". */
static void test_flamegraph_cut(void **state)
{
	(void)state;
	/* With the two that take what is hidden, five nodes: the root, main and work of it. */
	EXPECT("/api/v1/flamegraph?max_nodes=5&" ALL, "\"function\":[0,2,3,1,1]", "\"parent\":[0,0,1,2,1]",
	       "\"total\":[22,15,9,7,6]", "\"self\":[7,0,2,7,6]",
	       "\"cut_nodes\":6,\"cut_weight\":13,\"types\":[{\"type\":\"native\",\"self\":15,\"unnamed\":5}]");
}

static void test_filters(void **state)
{
	(void)state;
	EXPECT("/api/v1/flamegraph?query={service=\"shop\"}&" ALL, "\"total\":10,\"events\":4");
	EXPECT("/api/v1/flamegraph?query={service_name!=\"shop\",thread=\"t3\"}&" ALL, "\"total\":12,\"events\":2");
	EXPECT("/api/v1/flamegraph?focus=^work$&" ALL, "\"total\":9,\"events\":3");
	EXPECT("/api/v1/flamegraph?ignore=^(work|send)$&" ALL, "\"total\":8,\"events\":2");
	EXPECT("/api/v1/flamegraph?focus=main&ignore=fast&" ALL, "\"total\":11,\"events\":4");
	EXPECT("/api/v1/flamegraph?focus=^w[[:alpha:]{99}{99}]{3}$&" ALL, "\"total\":9,\"events\":3");
	EXPECT("/api/v1/flamegraph?from=1001&to=1003.5", "\"total\":6,\"events\":3");
	EXPECT("/api/v1/flamegraph?from=1970-01-01T00:16:41Z&to=1970-01-01T01:16:43.5+01:00", "\"total\":6,\"events\":3");
}

static void test_top(void **state)
{
	(void)state;
	EXPECT("/api/v1/top?" ALL,
	       "\"functions\":6,\"types\":[{\"type\":\"native\",\"self\":15,\"unnamed\":5}],\"rows\":[{\"name\":\"work\"",
	       "\"name\":\"work\",\"module\":\"app\",\"file\":\"a.c\",\"type\":\"native\",\"build_id\":\"ab12\",\"self\":5,"
	       "\"total\":9}",
	       "\"name\":\"main\",\"module\":\"app\",\"file\":\"a.c\",\"type\":\"native\",\"build_id\":\"ab12\",\"self\":0,"
	       "\"total\":15}");
	EXPECT("/api/v1/top?sort=total&limit=1&" ALL, "\"rows\":[{\"name\":\"main\"", "\"total\":15}]}");
	EXPECT("/api/v1/top?from=1000&to=1004&strip=4", "\"self\":5,\"total\":9,\"strip\":[0,2,0,3]", "\"strip\":[4,0,0,0]");
	EXPECT("/api/v1/top?from=996&to=4600&strip=4", "\"total\":9,\"strip\":[5,0]", "\"total\":4,\"strip\":[4,0]");
	EXPECT("/api/v1/top?from=996&to=15000&strip=3", "\"total\":9,\"strip\":[5,0,0]");
	EXPECT("/api/v1/top?inline=0&from=1000&to=1004&strip=2", "\"self\":9,\"total\":9,\"strip\":[6,3]");
	EXPECT("/api/v1/top?by=thread&" ALL, "\"value\":\"t2\",\"self\":3,\"total\":3}",
	       "\"value\":\"t1\",\"self\":2,\"total\":6}");
}

static void test_sandwich(void **state)
{
	(void)state;
	EXPECT("/api/v1/sandwich?function=work&" ALL,
	       "\"whole\":22,\"self\":2,\"total\":9,\"callers\":{\"functions\":{\"name\":[\"work\",\"(other)\",\"main\"]",
	       "\"callees\":{\"functions\":{\"name\":[\"work\",\"(other)\",\"fast\",\"main\",\"work\"]");
	EXPECT("/api/v1/sandwich?function=absent&" ALL, "\"self\":0,\"total\":0");
}

static void test_diff(void **state)
{
	(void)state;
	EXPECT("/api/v1/diff?query={service=\"shop\"}&query2={service=\"mail\"}&" ALL,
	       "\"total\":10,\"total2\":12,\"events\":4,\"events2\":2", "\"self2\":[7,0,", "\"total2\":[12,5,");
	EXPECT("/api/v1/diff?format=top&query={service=\"shop\"}&query2={service=\"mail\"}&" ALL,
	       "\"rows\":[{\"name\":\"work\"", "\"self\":5,\"total\":9,\"self2\":0,\"total2\":0}");
	EXPECT("/api/v1/diff?format=top&from=1000&to=1002&from2=1003&to2=1006", "\"from\":1000,\"to\":1002,",
	       "\"from2\":1003,\"to2\":1006,");
	EXPECT("/api/v1/diff?noise=1&query={service=\"shop\"}&query2={service=\"mail\"}&from=1000&to=1006",
	       "\"noise\":{\"runs\":[3,2],\"judged\":0,\"changed\":0,\"factor\":", "\"least\":0.005}",
	       "\"noise\":[0,0,0,0,0,0,0,0],\"part\":[0,0,0,0,0,0,0,0]}");
	EXPECT("/api/v1/diff?noise=1&format=top&query={service=\"shop\"}&query2={service=\"mail\"}&from=1000&to=1006",
	       "\"noise\":{\"runs\":[3,2]", "\"self_band\":", "\"total_changed\":false");
	EXPECT("/api/v1/diff?noise=1&query={service=\"shop\"}&query2={service=\"absent\"}&" ALL,
	       "\"events2\":0,\"nearest2\":[],\"functions\"");
}

static void test_timeline(void **state)
{
	(void)state;
	EXPECT("/api/v1/timeline?from=1000&to=1006&step=2",
	       "\"step\":2,\"total\":22,\"series\":[{\"value\":\"\",\"total\":22,\"weights\":[6,4,12]}]");
	EXPECT("/api/v1/timeline?from=1000&to=1006&points=2&by=service&limit=1",
	       "\"series\":[{\"value\":\"mail\",\"total\":12,\"weights\":[0,12]},{\"value\":\"(other)\",\"total\":10,"
	       "\"weights\":[7,3]}]");
	EXPECT("/api/v1/timeline?from=1000&to=1250&points=3",
	       "\"from\":960,\"to\":1250,\"covered_seconds\":5.039062586,\"covered_from\":999.960938182,\"covered_to\":"
	       "1005.000000768,\"step\":120,\"total\":22,\"series\":[{\"value\":\"\",\"total\":22,\"weights\":[22,"
	       "0,0]}]");
	EXPECT("/api/v1/heatmap?from=1000&to=1006&columns=3&rows=2",
	       "\"column_seconds\":2,\"total\":22,\"weights\":[4,2,1,3,5,7]");
}

/* An average is over the time that has samples, and the range may be asked to fit it. */
static void test_covered(void **state)
{
	(void)state;
	EXPECT("/api/v1/top?from=0&to=1250&query={comm=\"nobody\"}", "\"covered_seconds\":5.0", "\"total\":0");
	EXPECT("/api/v1/values?label=comm&from=1001&to=1003", "\"from\":1001,\"to\":1003,\"covered_seconds\":2,");
	EXPECT("/api/v1/flamegraph?from=recent&to=1250",
	       "\"from\":999.960938182,\"to\":1250,\"covered_seconds\":5.039062586,");
	EXPECT("/api/v1/flamegraph?from=recent&to=1004", "\"from\":994,\"to\":1004,\"covered_seconds\":4.039061818,");
	EXPECT("/api/v1/flamegraph?from=recent&to=100000", "\"from\":99100,\"to\":100000,\"covered_seconds\":0,");
	EXPECT("/api/v1/diff?from=0&to=1250&from2=1001&to2=1003", "\"covered_seconds\":5.0", "\"covered_seconds2\":2,");
}

static void test_labels(void **state)
{
	(void)state;
	EXPECT("/api/v1/labels?" ALL, "{\"labels\":[\"service.name\",\"thread.name\"]}");
	EXPECT("/api/v1/values?label=service&" ALL,
	       "[{\"value\":\"mail\",\"weight\":12,\"events\":2},{\"value\":\"shop\",\"weight\":10,\"events\":4}]");
	EXPECT("/api/v1/values?label=service&prefix=sh&" ALL,
	       "\"values\":[{\"value\":\"shop\",\"weight\":10,\"events\":4}]}");
}

static void test_status(void **state)
{
	(void)state;
	EXPECT("/api/v1/executables?" ALL, "\"status\":\"named\",\"advice\":\"\"}",
	       "\"status\":\"partly\",\"advice\":\"it has no build id", "{\"path\":\"[JIT code] java\"",
	       "\"status\":\"unnamed\",\"advice\":\"Java 17 and newer: jcmd PID Compiler.perfmap");
	EXPECT("/api/v1/truth?" ALL, "\"truncated\":[]",
	       "\"events\":6,\"complete\":6,\"total\":22,\"named_self\":11,\"frames\":30,\"unnamed_frames\":15");
	EXPECT("/api/v1/inside?" ALL, "{\"kind\":{\"type\":\"samples\",\"unit\":\"count\"},\"weight_ns\":",
	       "\"events\":6,\"stacks\":6,\"tables\":[]}");
	EXPECT("/api/v1/status", "\"store\":{\"kind\":\"table\",\"place\":\"here\",\"bytes\":100,\"events\":6",
	       "\"kinds\":[{\"type\":\"samples\",\"unit\":\"count\",\"period_type\":\"cpu\",\"period_unit\":\"nanoseconds\","
	       "\"period\":50000000");
}

/* What takes too long or too much is ended, said and counted. */
static void test_limits(void **state)
{
	static const struct {
		const char *url, *error, *counter;
		uint64_t timeout_ns;
		size_t memory_bytes;
	} limits[] = {
		{ "/api/v1/flamegraph?" ALL, "this takes too long: ask for", "reason=\"time\"", 1, 0 },
		{ "/api/v1/flamegraph?" ALL "&by=tid", "no memory for this now: ask for", "reason=\"memory\"", 0, 100 },
		{ "/api/v1/export?format=x&" ALL, "no memory for this now: ask for", "reason=\"memory\"", 0, 100 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct metrics *metrics = metrics_new();
		const struct api_config config = {
			.store = &table_store.store,
			.metrics = metrics,
			.exports = &table_exports,
			.timeout_ns = limits[i].timeout_ns,
			.memory_bytes = limits[i].memory_bytes,
		};
		AUTO_FREE char *answer = NULL;

		api_free(api);
		assert_int_equal(api_new(&config, &api), 0);
		answer = ask(limits[i].url, 503);
		assert_non_null(strstr(answer, limits[i].error));
		assert_int_equal(metric_get(metrics_counter(metrics, "hearth_query_ended_total", limits[i].counter, "")), 1);
		api_free(MOVE(api));
		metrics_free(metrics);
	}
}

/* Numbers in what is asked, at their limits and one beyond. */
static void test_numbers(void **state)
{
	static const struct {
		const char *url, *key;
		long least, most;
	} numbers[] = {
		{ "/api/v1/flamegraph?" ALL, "max_nodes", 2, 200000 },
		{ "/api/v1/top?" ALL, "limit", 1, 100000 },
		{ "/api/v1/top?" ALL, "strip", 0, 240 },
		{ "/api/v1/values?label=comm&" ALL, "limit", 1, 100000 },
		{ "/api/v1/timeline?" ALL, "points", 1, 20000 },
		{ "/api/v1/timeline?by=service&" ALL, "limit", 1, 1000 },
		{ "/api/v1/heatmap?rows=1&" ALL, "columns", 1, 20000 },
		{ "/api/v1/heatmap?columns=1&" ALL, "rows", 1, 20000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		const long values[] = { numbers[i].least, numbers[i].most, numbers[i].least - 1, numbers[i].most + 1 };

		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			AUTO_FREE char *answer = NULL;
			char url[160], error[128];

			snprintf(url, sizeof(url), "%s&%s=%ld", numbers[i].url, numbers[i].key, values[k]);
			snprintf(error, sizeof(error), "%s: '%ld' is no whole number between %ld and %ld", numbers[i].key,
				 values[k], numbers[i].least, numbers[i].most);
			answer = ask(url, k < 2 ? 200 : 400);
			if (k >= 2 && !strstr(answer, error))
				fail_msg("%s: %s", url, answer);
		}
	}
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *url, *error;
	} mistakes[] = {
		{ "/api/v1/flamegraph?from=yesterday", "from: 'yesterday' is no time" },
		{ "/api/v1/flamegraph?from=1000&to=900", "from is after to" },
		{ "/api/v1/flamegraph?max_nodes=1", "max_nodes: '1' is no whole number between 2 and 200000" },
		{ "/api/v1/flamegraph?focus=(", "focus: '(' is no regular expression" },
		{ "/api/v1/flamegraph?query={service", "query: one of = != =~ !~ is missing at character 9 of {service" },
		{ "/api/v1/flamegraph?query={service=\"a\"", "a comma or the closing brace is missing at character 13" },
		{ "/api/v1/flamegraph?query={service=~\"(\"}", "query: '(' is no regular expression" },
		{ "/api/v1/flamegraph?focus=^(.?){30}(.?){30}(.?){30}[^a-z]&" ALL,
		  "focus: it takes too many steps to tell whether '" },
		{ "/api/v1/top?ignore=^(.?){30}(.?){30}(.?){30}[^a-z]&" ALL,
		  "ignore: it takes too many steps to tell whether '" },
		{ "/api/v1/flamegraph?focus=((a{900}){900}){900}",
		  "focus: '((a{900}){900}){900}' is no regular expression: " },
		{ "/api/v1/sandwich?" ALL, "function: say of which function" },
		{ "/api/v1/values?" ALL, "label: say of which label" },
		{ "/api/v1/timeline?step=x", "step: 'x' is no number of seconds" },
		{ "/api/v1/timeline?from=0&to=1000&step=0.001", "step: more than 20000 pieces" },
		{ "/api/v1/export?" ALL, "format: say which" },
		{ "/api/v1/export?format=odt&" ALL, "format: there is no format 'odt'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		AUTO_FREE char *answer = ask(mistakes[i].url, 400);
		AUTO_FREE char *copy = strdup(mistakes[i].error);

		/* In JSON a quote has a backslash before it. */
		if (!strstr(answer, copy))
			print_message("%s\n%s\n", mistakes[i].url, answer);
		assert_non_null(strstr(answer, copy));
	}
	free(ask("/api/v1/nothing", 404));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flamegraph, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flamegraph_without_inlines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flamegraph_by, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flamegraph_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_top, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sandwich, setup, teardown),
		cmocka_unit_test_setup_teardown(test_diff, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_covered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
