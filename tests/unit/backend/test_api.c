/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query API over a store made of a table of samples. The expected answers are the JSON that docs/api.md describes,
 * worked out by hand from that table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/profiles.h"

/* --- a store of a few samples --- */

struct table_sample {
	const char *service, *thread;
	uint64_t time_s;
	int64_t weight;
	const char *stack; /* "main;work;~fast": root first, ~ before an inlined call, a bare number an address */
};

static const struct table_sample table[] = {
	{ "shop", "t1", 1000, 4, "main;work;~fast" }, /* */
	{ "shop", "t1", 1001, 2, "main;work" },		  { "shop", "t2", 1002, 1, "main;idle" },
	{ "shop", "t2", 1003, 3, "main;work;main;work" },				 /* a recursion */
	{ "mail", "t3", 1004, 5, "main;send;4096" },	  { "mail", "t3", 1005, 7, "" }, /* no stack at all */
};

enum { MAX_NODES = 64 };

struct table_store {
	struct store store;
	struct {
		uint32_t parent;
		char name[32];
	} nodes[MAX_NODES];
	uint32_t count;
	uint32_t stacks[ARRAY_LEN(table)];
};

static uint32_t add_node(struct table_store *s, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < s->count; i++)
		if (s->nodes[i].parent == parent && !strcmp(s->nodes[i].name, name))
			return i;
	assert_true(s->count < MAX_NODES);
	s->nodes[s->count].parent = parent;
	snprintf(s->nodes[s->count].name, sizeof(s->nodes[0].name), "%s", name);
	return s->count++;
}

static const char *label_of(const struct table_sample *t, const char *label)
{
	if (!strcmp(label, "service.name"))
		return t->service;
	return !strcmp(label, "thread.name") ? t->thread : "";
}

static bool is_selected(const struct table_store *s, const struct store_selection *sel, size_t i)
{
	uint64_t time_ns = table[i].time_s * NSEC_PER_SEC;
	uint32_t stack = s->stacks[i];

	if (time_ns < sel->from_ns || time_ns >= sel->to_ns || (sel->kind && strcmp(sel->kind, "samples") != 0))
		return false;
	if (sel->stacks && (stack >= sel->stack_count || !(sel->stacks[stack / 64] >> (stack % 64) & 1)))
		return false;
	for (size_t m = 0; m < sel->matcher_count; m++) {
		const struct store_matcher *matcher = &sel->matchers[m];
		const char *value = label_of(&table[i], matcher->label);
		bool equal = !strcmp(value, matcher->value);

		assert_true(matcher->match == MATCH_EQUAL || matcher->match == MATCH_NOT_EQUAL);
		if (equal != (matcher->match == MATCH_EQUAL))
			return false;
	}
	return true;
}

static int late(const struct store_selection *sel)
{
	return sel->deadline_ns && clock_mono_ns() > sel->deadline_ns ? -ETIMEDOUT : 0;
}

static int sum_stacks(struct store *store, const struct store_selection *sel, const char *by,
		      int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;
	int err = late(sel);

	for (size_t i = 0; i < ARRAY_LEN(table) && !err; i++)
		if (is_selected(s, sel, i))
			err = fn(arg, by ? label_of(&table[i], by) : "", s->stacks[i], table[i].weight, 1);
	return err;
}

static int sum_times(struct store *store, const struct store_selection *sel, uint64_t step_ns, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(table) && !err; i++)
		if (is_selected(s, sel, i))
			err = fn(arg, by ? label_of(&table[i], by) : "",
				 (uint32_t)((table[i].time_s * NSEC_PER_SEC - sel->from_ns) / step_ns), table[i].weight, 1);
	return err;
}

static int labels(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg)
{
	(void)store;
	(void)sel;
	return fn(arg, "service.name") || fn(arg, "thread.name");
}

static int label_values(struct store *store, const struct store_selection *sel, const char *label,
			int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;

	if (late(sel))
		return -ETIMEDOUT;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *value = label_of(&table[i], label);
		int64_t weight = 0;
		uint64_t events = 0;
		bool is_first = true;

		for (size_t k = 0; k < ARRAY_LEN(table); k++) {
			if (!is_selected(s, sel, k) || strcmp(label_of(&table[k], label), value) != 0)
				continue;
			is_first &= k >= i;
			weight += table[k].weight;
			events++;
		}
		if (events && is_first && is_selected(s, sel, i) && fn(arg, value, weight, events))
			return -ENOMEM;
	}
	return 0;
}

static int kinds(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		 void *arg)
{
	const struct store_kind samples = { "samples", "count", "cpu", "nanoseconds", 50000000, ARRAY_LEN(table) };

	(void)store;
	(void)sel;
	return fn(arg, &samples);
}

static int executables(struct store *store, const struct store_selection *sel,
		       int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	const struct store_executable shop = { "/bin/shop", "ab12", "gnu", 4, 10, 10 },
				      mail = { "/bin/mail", "", "", 2, 10, 5 };
	int err = fn(arg, &shop);

	(void)store;
	(void)sel;
	return err ? err : fn(arg, &mail);
}

static uint32_t node_count(struct store *store)
{
	return ((struct table_store *)store)->count;
}

/* Frame n is that of node n. */
static int nodes(struct store *store, uint32_t first, uint32_t count, struct store_node *ret)
{
	struct table_store *s = (struct table_store *)store;

	assert_true(first + count <= s->count);
	for (uint32_t i = 0; i < count; i++)
		ret[i] = (struct store_node){ s->nodes[first + i].parent, first + i };
	return 0;
}

static int frame(struct store *store, uint32_t number, struct store_frame *ret)
{
	struct table_store *s = (struct table_store *)store;
	const char *name = s->nodes[number].name;

	*ret = (struct store_frame){ name, "", "a.c", "app", "/bin/app", "ab12", "native", 7, 1, 0, false };
	if (name[0] == '~') {
		ret->function = name + 1;
		ret->inlined = true;
	} else if (atoi(name)) {
		ret->function = "";
		ret->address = (uint64_t)atoi(name);
	}
	return 0;
}

static int status(struct store *store, struct store_status *ret)
{
	*ret = (struct store_status){ .kind = "table",
				      .place = "here",
				      .bytes = 100,
				      .events = 6,
				      .first_ns = 1000 * NSEC_PER_SEC,
				      .last_ns = 1005 * NSEC_PER_SEC,
				      .series = 2,
				      .nodes = node_count(store),
				      .frames = 9 };
	return 0;
}

static int export(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p),
		  void *arg)
{
	struct profiles *p = profiles_new();
	int err = store && sel && p ? fn(arg, p) : -ENOMEM;

	profiles_put(p);
	return err;
}

static const char *export_suffix(const char *format, const char **content_type_ret)
{
	*content_type_ret = "x/y";
	return !strcmp(format, "x") ? ".x" : NULL;
}

static int export_write(const char *format, struct profiles *const *profiles, size_t count, struct buf *out)
{
	buf_printf(out, "%zu in %s%s", count, format, profiles[0] ? "" : ", none");
	return 0;
}

static const struct api_export table_exports = { export_suffix, export_write };

static const struct store_ops table_ops = {
	.export = export,
	.sum_stacks = sum_stacks,
	.sum_times = sum_times,
	.labels = labels,
	.label_values = label_values,
	.kinds = kinds,
	.executables = executables,
	.node_count = node_count,
	.nodes = nodes,
	.frame = frame,
	.status = status,
};

static struct table_store table_store;
static struct api *api;

static int setup(void **state)
{
	struct api_config config = { .store = &table_store.store };

	(void)state;
	table_store = (struct table_store){ .store.ops = &table_ops, .count = 1 };
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *copy = strdup(table[i].stack), *rest = copy;

		for (char *name; *copy && (name = strsep(&rest, ";"));)
			table_store.stacks[i] = add_node(&table_store, table_store.stacks[i], name);
		free(copy);
	}
	return api_new(&config, &api);
}

static int teardown(void **state)
{
	(void)state;
	api_free(api);
	return 0;
}

/* --- questions --- */

/* Asks "path?key=value&..." (no escapes but those for '&' in none). The answer's text is the caller's. */
static char *ask(const char *url, unsigned status_wanted)
{
	AUTO_FREE char *copy = strdup(url);
	struct query_param items[16];
	struct query_params params = { .items = items };
	struct api_answer answer = { 0 };
	char *rest = copy, *path = strsep(&rest, "?"), *text;

	while (rest && *rest) {
		char *value = strsep(&rest, "&"), *key = strsep(&value, "=");

		items[params.count++] = (struct query_param){ key, value };
	}
	api_answer(api, path, &params, &answer);
	text = strdup(buf_text(&answer.body));
	if (answer.status != status_wanted)
		print_message("%s\n%s\n", url, text);
	assert_int_equal(answer.status, status_wanted);
	buf_fini(&answer.body);
	return text;
}

#define ALL "from=first&to=last"

/* The answer to @url contains each of the texts. */
static void expect(const char *url, const char *const *texts)
{
	AUTO_FREE char *answer = ask(url, 200);

	for (; *texts; texts++) {
		if (!strstr(answer, *texts))
			print_message("%s\nlacks %s\n%s\n", url, *texts, answer);
		assert_non_null(strstr(answer, *texts));
	}
}

#define EXPECT(url, ...) expect(url, (const char *const[]){ __VA_ARGS__, NULL })

static void test_flamegraph(void **state)
{
	(void)state;
	/* all 22, main 15 = work 9 (fast 4, main 3 > work 3) + send 5 (address) + idle 1, 7 without a stack. */
	EXPECT("/api/v1/flamegraph?" ALL, "\"kind\":{\"type\":\"samples\",\"unit\":\"count\"},\"weight_ns\":50000000",
	       "\"from\":1000,\"to\":1005.000000001", "\"total\":22,\"events\":6",
	       "\"name\":[\"all\",\"(other)\",\"main\",\"work\",\"fast\",\"send\",\"app+0x1000\",\"idle\"]",
	       "\"function\":[0,2,3,4,2,3,5,6,7]", "\"parent\":[0,0,1,2,2,4,1,6,1]", "\"inlined\":[0,0,0,1,0,0,0,0,0]",
	       "\"self\":[7,0,2,4,0,3,0,5,1]", "\"total\":[22,15,9,4,3,3,5,5,1]", "\"cut_nodes\":0,\"cut_weight\":0");
}

/* A frame gets its name between two questions. */
static void test_names_later(void **state)
{
	(void)state;
	EXPECT("/api/v1/flamegraph?" ALL, "\"app+0x1000\"");
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
	       "\"total\":[22,15,9,7,6]", "\"self\":[7,0,2,7,6]", "\"cut_nodes\":6,\"cut_weight\":13");
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
	EXPECT("/api/v1/top?" ALL, "\"functions\":6,\"rows\":[{\"name\":\"work\"",
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
	       "\"from\":960,\"to\":1250,\"step\":120,\"total\":22,\"series\":[{\"value\":\"\",\"total\":22,\"weights\":[22,"
	       "0,0]}]");
	EXPECT("/api/v1/heatmap?from=1000&to=1006&columns=3&rows=2",
	       "\"column_seconds\":2,\"total\":22,\"weights\":[4,2,1,3,5,7]");
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
	       "\"status\":\"partly\",\"advice\":\"it has no build id");
	EXPECT("/api/v1/truth?" ALL, "\"truncated\":[]", "\"events\":6,\"complete\":6,\"frames\":20,\"unnamed_frames\":5");
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
			&table_store.store,    metrics, &table_exports, false, false, limits[i].timeout_ns,
			limits[i].memory_bytes
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
		cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
