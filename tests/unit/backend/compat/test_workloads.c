/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: the answers word for word, where names come from, and what goes when there is no room or time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/compat/workloads.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/otlp/json/json_decode.h"

static struct metrics *metrics;

static void add(struct workloads *w, uint64_t now_ns, const char *json)
{
	struct profiles *p;
	struct otlp_error err;

	if (otlp_json_decode((const uint8_t *)json, strlen(json), &p, &err))
		fail_msg("%s", err.message);
	workloads_add(w, p, now_ns);
	profiles_put(p);
}

#define ATTR(key, value)   "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":" value "}}"
/* One sample of @stack in a resource with @attributes. */
#define RESOURCE(attributes, type, stack, sample_attributes)                                                         \
	"{\"resource\":{\"attributes\":[" attributes "]},\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{"        \
	"\"typeStrindex\":" type "},\"samples\":[{\"stackIndex\":" stack ",\"attributeIndices\":[" sample_attributes \
	"],\"timestampsUnixNano\":[1]}]}]}]}"
#define REQUEST(resources)                                                                                              \
	"{\"resourceProfiles\":[" resources "],\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"off_cpu\",\"main\"," \
	"\"a<b>\",\"x.c\",\"profile.frame.type\",\"process.pid\",\"process.executable.name\"],\"attributeTable\":[{},"  \
	"{\"keyStrindex\":6,\"value\":{\"stringValue\":\"native\"}},{\"keyStrindex\":7,\"value\":{\"intValue\":9}},"    \
	"{\"keyStrindex\":8,\"value\":{\"stringValue\":\"own\"}}],"                                                     \
	"\"functionTable\":[{},{\"nameStrindex\":3,\"filenameStrindex\":5},{\"nameStrindex\":4}],"                      \
	"\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1},{\"functionIndex\":2}],\"attributeIndices\":[1]},"     \
	"{\"address\":7},{\"lines\":[{\"functionIndex\":1}]}],"                                                         \
	"\"stackTable\":[{},{\"locationIndices\":[1,2]},{\"locationIndices\":[3,2]}]}}"

#define C1 ATTR("container.id", "c1") "," NUMBER("process.pid", "12") "," ATTR("process.executable.name", "sh")
#define K8S                                                                                                               \
	ATTR("k8s.namespace.name", "ns")                                                                                  \
	"," ATTR("k8s.pod.name", "pod") "," ATTR("k8s.container.name", "box") "," ATTR("process.executable.path", "/bin/" \
														  "sh")

static void assert_workloads(struct workloads *w, const char *want)
{
	struct buf out = BUF_EMPTY;

	assert_int_equal(workloads_write(w, &out), 0);
	assert_string_equal(buf_text(&out), want);
	buf_fini(&out);
}

static void assert_functions(struct workloads *w, const char *id, int64_t pid, int error, const char *want)
{
	struct buf out = BUF_EMPTY;
	int r = pid < 0 ? workloads_write_functions(w, id, &out) : workloads_write_process_functions(w, id, pid, &out);

	assert_int_equal(r, error);
	if (!error)
		assert_string_equal(buf_text(&out), want);
	buf_fini(&out);
}

static struct workloads *new_workloads(uint64_t memory_bytes)
{
	const struct workloads_config config = { .memory_bytes = memory_bytes, .keep_age_ns = 60 * NSEC_PER_SEC };
	struct workloads *w = workloads_new(&config, metrics);

	assert_non_null(w);
	return w;
}

static void tells_what_runs(void **state)
{
	struct workloads *w = new_workloads(0);

	(void)state;
	assert_workloads(w, "{}\n");
	add(w, 1,
	    REQUEST(RESOURCE(C1 "," K8S, "1", "1", "") "," RESOURCE(ATTR("container.id", "b"), "1", "2", "2,3") "," RESOURCE(
		    ATTR("container.id", "b"), "1", "0", "") "," RESOURCE(ATTR("container.id", "off"), "2", "1",
									  "") "," RESOURCE(ATTR("service.name", "s"), "1",
											   "1", "")));
	assert_workloads(w, "{\"b\":{\"ContainerID\":\"b\",\"NamespaceName\":\"\",\"PodName\":\"\",\"ContainerName\":\"\","
			    "\"Processes\":{\"0\":{\"PID\":0,\"ExecutableName\":\"\",\"ExecutablePath\":\"\"},"
			    "\"9\":{\"PID\":9,\"ExecutableName\":\"own\",\"ExecutablePath\":\"\"}}},"
			    "\"c1\":{\"ContainerID\":\"c1\",\"NamespaceName\":\"ns\",\"PodName\":\"pod\","
			    "\"ContainerName\":\"box\",\"Processes\":{\"12\":{\"PID\":12,\"ExecutableName\":\"sh\","
			    "\"ExecutablePath\":\"/bin/sh\"}}}}\n");
	assert_functions(w, "c1", -1, 0,
			 "[{\"Language\":\"native\",\"Name\":\"a\\u003cb\\u003e\",\"File\":\"\"},"
			 "{\"Language\":\"native\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	assert_functions(w, "c1", 12, 0,
			 "[{\"Language\":\"native\",\"Name\":\"a\\u003cb\\u003e\",\"File\":\"\"},"
			 "{\"Language\":\"native\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	assert_functions(w, "b", 9, 0, "[{\"Language\":\"unknown\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	assert_functions(w, "b", 0, 0, "null\n");
	assert_functions(w, "b", -1, 0, "[{\"Language\":\"unknown\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	assert_functions(w, "b", 12, -ENOENT, NULL);
	assert_functions(w, "off", -1, -ENOENT, NULL);
	assert_functions(w, "", -1, -ENOENT, NULL);
	workloads_free(w);
}

static void first_names_win(void **state)
{
	struct workloads *w = new_workloads(0);

	(void)state;
	add(w, 1, REQUEST(RESOURCE(C1, "1", "1", "")));
	add(w, 2, REQUEST(RESOURCE(C1 "," K8S, "1", "2", "")));
	assert_workloads(w, "{\"c1\":{\"ContainerID\":\"c1\",\"NamespaceName\":\"\",\"PodName\":\"\",\"ContainerName\":\"\","
			    "\"Processes\":{\"12\":{\"PID\":12,\"ExecutableName\":\"sh\",\"ExecutablePath\":\"\"}}}}\n");
	assert_functions(w, "c1", 12, 0,
			 "[{\"Language\":\"native\",\"Name\":\"a\\u003cb\\u003e\",\"File\":\"\"},"
			 "{\"Language\":\"native\",\"Name\":\"main\",\"File\":\"x.c\"},"
			 "{\"Language\":\"unknown\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	workloads_free(w);
}

static void old_ones_go(void **state)
{
	struct workloads *w = new_workloads(0);
	uint64_t s = NSEC_PER_SEC;

	(void)state;
	add(w, 1 * s, REQUEST(RESOURCE(ATTR("container.id", "old"), "1", "1", "")));
	add(w, 30 * s, REQUEST(RESOURCE(ATTR("container.id", "new"), "1", "1", "")));
	add(w, 61 * s, REQUEST(""));
	assert_functions(w, "old", -1, 0,
			 "[{\"Language\":\"native\",\"Name\":\"a\\u003cb\\u003e\",\"File\":\"\"},"
			 "{\"Language\":\"native\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	add(w, 62 * s, REQUEST(""));
	assert_functions(w, "old", -1, -ENOENT, NULL);
	assert_functions(w, "new", -1, 0,
			 "[{\"Language\":\"native\",\"Name\":\"a\\u003cb\\u003e\",\"File\":\"\"},"
			 "{\"Language\":\"native\",\"Name\":\"main\",\"File\":\"x.c\"}]\n");
	add(w, 1000 * s, REQUEST(""));
	assert_workloads(w, "{}\n");
	workloads_free(w);
}

static uint64_t metric_value(const char *name)
{
	struct buf out = BUF_EMPTY;
	const char *line;
	uint64_t v = UINT64_MAX;

	metrics_write(metrics, &out);
	line = strstr(buf_text(&out), name);
	while (line && line[strlen(name)] != ' ')
		line = strstr(line + 1, name);
	if (line)
		v = strtoull(line + strlen(name), NULL, 10);
	buf_fini(&out);
	return v;
}

/* A thousand containers in memory for some: the last ones stay, and the bytes counted are given back. */
static void memory_is_bounded(void **state)
{
	struct workloads *w = new_workloads(64 << 10);
	struct buf out = BUF_EMPTY;
	char json[4096];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(json, sizeof(json), REQUEST(RESOURCE(ATTR("container.id", "c%d"), "1", "1", "")), i);
		add(w, (uint64_t)i, json);
		assert_true(metric_value("\nhearth_workloads_bytes") <= 64 << 10);
	}
	assert_int_equal(workloads_write_functions(w, "c999", &out), 0);
	assert_int_equal(workloads_write_functions(w, "c990", &out), 0);
	assert_int_equal(workloads_write_functions(w, "c1", &out), -ENOENT);
	buf_fini(&out);
	add(w, 1000 * NSEC_PER_SEC, REQUEST(""));
	assert_int_equal(metric_value("\nhearth_workloads_bytes"), 0);
	workloads_free(w);
}

/* One process with more functions than there is room for. */
static void functions_are_bounded(void **state)
{
	struct workloads *w = new_workloads(32 << 10);
	struct buf json = BUF_EMPTY, out = BUF_EMPTY;

	(void)state;
	buf_puts(&json,
		 "{\"resourceProfiles\":[" RESOURCE(C1, "1", "1", "") "],\"dictionary\":{\"stringTable\":[\"\",\"samples\"");
	for (int i = 0; i < 1000; i++)
		buf_printf(&json, ",\"function_%d\"", i);
	buf_puts(&json, "],\"functionTable\":[{}");
	for (int i = 0; i < 1000; i++)
		buf_printf(&json, ",{\"nameStrindex\":%d}", i + 2);
	buf_puts(&json, "],\"locationTable\":[{},{\"lines\":[{}");
	for (int i = 0; i < 1000; i++)
		buf_printf(&json, ",{\"functionIndex\":%d}", i + 1);
	buf_puts(&json, "]}],\"stackTable\":[{},{\"locationIndices\":[1]}]}}");
	add(w, 1, buf_text(&json));
	assert_true(metric_value("\nhearth_workloads_bytes") <= 32 << 10);
	assert_true(metric_value("\nhearth_workloads_dropped_total") > 500);
	assert_int_equal(workloads_write_functions(w, "c1", &out), 0);
	assert_non_null(strstr(buf_text(&out), "function_0\""));
	buf_fini(&json);
	buf_fini(&out);
	workloads_free(w);
}

/* --- the sink in front --- */

struct noting_sink {
	struct sink sink;
	int error; /* what it answers */
	unsigned consumed, others, flushed, freed;
};

static int note_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct noting_sink *s = (struct noting_sink *)sink;

	(void)p;
	(void)ack;
	s->consumed++;
	return s->error;
}

static int note_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct noting_sink *s = (struct noting_sink *)sink;

	(void)data;
	(void)ack;
	assert_int_equal(signal, OTLP_LOGS);
	assert_int_equal(len, 3);
	s->others++;
	return s->error;
}

static int note_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct noting_sink *s = (struct noting_sink *)sink;

	assert_int_equal(deadline_ns, 42);
	s->flushed++;
	return s->error;
}

static void note_free(struct sink *sink)
{
	((struct noting_sink *)sink)->freed++;
}

/* Everything goes on to the next sink, whose word counts; only what that took is seen. */
static void the_next_sink_decides(void **state)
{
	static const struct sink_ops ops = { .name = "noting",
					     .durable = true,
					     .consume = note_consume,
					     .consume_other = note_other,
					     .flush = note_flush,
					     .free = note_free };
	struct noting_sink next = { .sink.ops = &ops, .error = -EBUSY };
	struct workloads *w = workloads_new(&(struct workloads_config){ 0 }, metrics);
	AUTO(buf_fini) struct buf out = BUF_EMPTY, none = BUF_EMPTY;
	const char *json = REQUEST(RESOURCE(C1, "1", "1", ""));
	struct otlp_error err;
	struct profiles *p;
	struct sink *s;

	(void)state;
	assert_int_equal(otlp_json_decode((const uint8_t *)json, strlen(json), &p, &err), 0);
	assert_int_equal(workloads_sink_new(w, &next.sink, &s), 0);
	assert_string_equal(s->ops->name, "noting");
	assert_true(s->ops->durable);
	assert_int_equal(workloads_write(w, &none), 0);
	assert_int_equal(sink_consume(s, p, NULL), -EBUSY);
	assert_workloads(w, buf_text(&none));
	assert_int_equal(sink_consume_other(s, OTLP_LOGS, (const uint8_t *)"abc", 3, NULL), -EBUSY);
	assert_int_equal(sink_flush(s, 42), -EBUSY);
	next.error = 0;
	assert_int_equal(sink_consume(s, p, NULL), 0);
	assert_int_equal(workloads_write(w, &out), 0);
	assert_non_null(strstr(buf_text(&out), "\"c1\""));
	assert_int_equal(next.consumed, 2);
	assert_int_equal(next.others, 1);
	assert_int_equal(next.flushed, 1);
	assert_int_equal(next.freed, 0);
	sink_free(s);
	assert_int_equal(next.freed, 1);
	profiles_put(p);
	workloads_free(w);
}

static int make_metrics(void **state)
{
	(void)state;
	metrics = metrics_new();
	return metrics ? 0 : -1;
}

static int free_metrics(void **state)
{
	(void)state;
	metrics_free(metrics);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_runs),	 cmocka_unit_test(first_names_win),
		cmocka_unit_test(old_ones_go),		 cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(functions_are_bounded), cmocka_unit_test(the_next_sink_decides),
	};

	return cmocka_run_group_tests(tests, make_metrics, free_metrics);
}
