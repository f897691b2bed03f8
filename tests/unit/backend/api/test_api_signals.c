/* SPDX-License-Identifier: Apache-2.0 */
/* From traces, spans and log lines to samples: by links, and by process and time where there are none; and the lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/api/api.h"
#include "backend/signals/signals.h"
#include "backend/store/sqlite/sqlite.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/otlp/signals.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define T0     1700000040000000000ull
#define LINKED "0a000000000000000000000000000001"
#define TIMED  "0b000000000000000000000000000002"

static struct store *store;
static struct signals *signals;
static struct api *api;

/* Samples of two processes, at T0 + 1, 2, ... ms, each of weight 1 << N. */
static const struct {
	const char *service, *thread_name;
	int64_t pid, thread;
	uint8_t span; /* of trace LINKED; 0: none */
	const char *function;
} samples[] = {
	{ "shop", "python", 70, 70, 1, "serve" }, { "shop", "python", 70, 70, 2, "query" },
	{ "shop", "python", 70, 71, 0, "idle" },  { "mail", "http-nio-8080-e", 80, 81, 0, "send" },
	{ "mail", "gc", 80, 82, 0, "collect" },	  { "mail", "http-nio-8080-e", 80, 81, 0, "sleep" },
};

static uint32_t resource_of(struct builder *b, size_t i)
{
	const struct key_value attributes[] = {
		{ .key = STR("service.name"), .value = { .kind = VALUE_STRING, .string = str_z(samples[i].service) } },
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = samples[i].pid } },
		{ .key = STR("host.name"), .value = { .kind = VALUE_STRING, .string = STR("box") } },
	};

	return builder_resource(b, attributes, ARRAY_LEN(attributes));
}

static void put_samples(void)
{
	static const struct builder_profile_spec cpu = { "hearth", "1", "cpu", "nanoseconds", "", "", 0, NULL, 0 };
	const uint8_t trace[16] = { 10, [15] = 1 };
	struct builder *b = builder_new();
	struct profiles *p;

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct profile_line line = { builder_function(b, builder_string_z(b, samples[i].function), 0, 0, 10), 12,
					     0 };
		const int32_t location = builder_location(b, 0, 0x1100 + 16 * i, &line, 1, NULL, 0),
			      labels[] = { builder_attribute_int(b, "thread.id", samples[i].thread),
					   builder_attribute_string(b, "thread.name", str_z(samples[i].thread_name)) };
		const uint8_t span[8] = { [7] = samples[i].span };

		builder_event(b, builder_profile(b, resource_of(b, i), &cpu), builder_stack(b, &location, 1), labels, 2,
			      samples[i].span ? builder_link(b, trace, span) : 0, T0 + (i + 1) * NSEC_PER_MSEC, true,
			      1 << i);
	}
	assert_int_equal(builder_freeze(b, T0, T0 + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	store_put(store, p);
	profiles_put(p);
}

__attribute__((format(printf, 2, 3))) static void put_signal(enum otlp_signal signal, const char *format, ...)
{
	AUTO(buf_fini) struct buf protobuf = BUF_EMPTY;
	struct otlp_error err;
	struct otlp_other other;
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (otlp_other_decode(signal, true, (const uint8_t *)text, strlen(text), &other, &err))
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(otlp_other_encode(&other, &protobuf), 0);
	otlp_other_fini(&other);
	signals_keep(signals, signal, protobuf.data, protobuf.len);
}

/* A span of @ms milliseconds from T0 + @from_ms on; @more: further attributes of its resource and its own. */
static void put_span(const char *trace, unsigned span, const char *parent, const char *name, const char *service,
		     unsigned from_ms, unsigned ms, const char *resource, const char *own)
{
	put_signal(
		OTLP_TRACES,
		"{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"%"
		"s\"}}"
		"%s]},\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%s\",\"spanId\":\"%016x\",\"parentSpanId\":\"%s\",\"name\":"
		"\"%s\",\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":\"%llu\",\"attributes\":[%s]}]}]}]}",
		service, resource, trace, span, parent, name, T0 + from_ms * NSEC_PER_MSEC,
		T0 + (from_ms + ms) * NSEC_PER_MSEC, own);
}

#define INT(key, value)	 "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"

static void put_log(const char *body, const char *service, const char *ids, unsigned at_ms)
{
	put_signal(OTLP_LOGS,
		   "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" TEXT(
			   "service.name", "%s") "]},\"scopeLogs\":[{"
						 "\"logRecords\":[{\"timeUnixNano\":\"%llu\",\"severityNumber\":17,\"body\":"
						 "{\"stringValue\":\"%s\"}%s}]}]}]}",
		   service, T0 + at_ms * NSEC_PER_MSEC, body, ids);
}

static int setup(void **state)
{
	struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	const struct signals_config kept = { .bytes = 1 << 28 };
	struct api_config of_api = { 0 };
	struct store_error err;

	(void)state;
	if (store_sqlite_open(&config, NULL, &store, &err))
		fail_msg("%s", err.message);
	put_samples();
	assert_int_equal(signals_new(&kept, NULL, &signals), 0);
	put_span(LINKED, 1, "", "GET /", "shop", 0, 3, "", "");
	put_span(LINKED, 2, "0000000000000001", "select", "shop", 1, 2, "", "");
	/* Java's agent: a thread's number that is not the kernel's, and its name; the process by its number. */
	put_span(TIMED, 0x21, "", "POST /mail", "mail", 3, 2, "," INT("process.pid", "80") "," TEXT("host.name", "box"),
		 INT("thread.id", "23") "," TEXT("thread.name",
						 "http-nio-8080-exec-1")); /* the kernel has 15 letters of it */
	put_span(TIMED, 0x22, "0000000000000021", "by id", "mail", 4, 2, "," INT("process.pid", "80"),
		 INT("thread.id", "82"));
	put_span(TIMED, 0x23, "0000000000000021", "by service", "mail", 3, 5, "", "");
	put_span(TIMED, 0x24, "0000000000000021", "elsewhere", "mail", 3, 5,
		 "," INT("process.pid", "80") "," TEXT("host.name", "other") "," TEXT("service.instance.id", "x"), "");
	put_span(TIMED, 0x25, "0000000000000021", "nobody", "queue", 3, 5, "", "");
	put_log("of a trace", "shop", ",\"traceId\":\"" LINKED "\",\"spanId\":\"0000000000000002\"", 2);
	put_log("of a process", "mail", "", 5);
	put_log("of nobody", "queue", "", 5);
	put_signal(OTLP_METRICS,
		   "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" TEXT(
			   "service.name", "shop") "]},\"scopeMetrics\":[{"
						   "\"metrics\":[{\"name\":\"latency\",\"unit\":\"ms\",\"gauge\":{"
						   "\"dataPoints\":[{\"asDouble\":3,\"exemplars\":[{"
						   "\"timeUnixNano\":\"%llu\",\"asDouble\":3,\"traceId\":\"" LINKED
						   "\",\"spanId\":\"0000000000000001\"}]}]}}]}]}]}",
		   T0 + NSEC_PER_MSEC);
	signals_flush(signals);
	of_api = (struct api_config){ .store = store, .signals = signals };
	return api_new(&of_api, &api);
}

static int teardown(void **state)
{
	(void)state;
	api_free(api);
	signals_free(signals);
	store->close(store);
	return 0;
}

/* Asks @path with the parameters @more, "key=value&..."; the answer must have @part. */
static void expect(unsigned status, const char *path, const char *more, const char *part)
{
	AUTO_FREE char *copy = strdup(more);
	struct query_param items[8];
	struct query_params params = { .items = items };
	struct api_answer answer = { 0 };
	char *rest = copy;

	while (rest && *rest) {
		char *value = strsep(&rest, "&"), *key = strsep(&value, "=");

		items[params.count++] = (struct query_param){ key, value };
	}
	(void)api_answer(api, path, &params, NULL, &answer);
	if (answer.status != status || !strstr(buf_text(&answer.body), part))
		fail_msg("%s?%s: %u %s, wanted %s", path, more, answer.status, buf_text(&answer.body), part);
	buf_fini(&answer.body);
}

static void test_span(void **state)
{
	(void)state;
	expect(200, "/api/v1/span/0000000000000001/flamegraph", "", "\"joined\":\"link\"");
	expect(200, "/api/v1/span/0000000000000001/flamegraph", "", "\"total\":1,\"events\":1");
	expect(200, "/api/v1/span/0000000000000022/flamegraph", "", "\"joined\":\"time\"");
	expect(200, "/api/v1/span/0000000000000022/flamegraph", "", "\"total\":16,\"events\":1");
	expect(200, "/api/v1/span/0000000000000022/top", "", "\"joined\":\"time\"");
	/* By time its own time counts, whatever is asked for. */
	expect(200, "/api/v1/span/0000000000000022/flamegraph", "from=first&to=last", "\"total\":16,\"events\":1");
	expect(200, "/api/v1/span/0000000000000022/where", "",
	       "{\"joined\":\"time\",\"query\":\"{process.pid=\\\"80\\\", thread.id=\\\"82\\\"}\",\"from\":1700000040.004,");
	/* By the thread's name, as the number fits none of the process, whose number is one of its host. */
	expect(200, "/api/v1/span/0000000000000021/where", "",
	       "\"query\":\"{process.pid=\\\"80\\\", host.name=\\\"box\\\", thread.name=\\\"http-nio-8080-e\\\"}\"");
	expect(200, "/api/v1/span/0000000000000023/where", "", "\"query\":\"{service.name=\\\"mail\\\"}\"");
	/* A number of another host is not believed. */
	expect(200, "/api/v1/span/0000000000000024/where", "", "\"query\":\"{service.name=\\\"mail\\\"}\"");
	expect(200, "/api/v1/span/0000000000000025/where", "", "{\"joined\":\"none\",\"query\":\"\"");
	expect(200, "/api/v1/span/0000000000000025/flamegraph", "", "\"joined\":\"none\"");
	expect(200, "/api/v1/span/00000000000000ff/where", "", "{\"joined\":\"none\",\"query\":\"\"}");
	expect(200, "/api/v1/span/0000000000000002/where", "",
	       "{\"joined\":\"link\",\"query\":\"{span_id=\\\"0000000000000002\\\"}\"");
}

static void test_trace(void **state)
{
	(void)state;
	expect(200, "/api/v1/trace/" LINKED, "", "\"joined\":\"link\"");
	expect(200, "/api/v1/trace/" LINKED, "",
	       "{\"span_id\":\"0000000000000002\",\"parent\":\"0000000000000001\",\"name\":\"select\",\"service\":\"shop\","
	       "\"start\":1700000040.001,\"duration_ns\":2000000,\"span_kind\":0,\"status\":0,\"ns\":2,\"joined\":\"link\","
	       "\"kinds\":{\"cpu\":{\"weight\":2,\"events\":1}}}");
	expect(200, "/api/v1/trace/" TIMED, "", "\"trace_id\":\"" TIMED "\",\"joined\":\"time\"");
	expect(200, "/api/v1/trace/" TIMED, "", "\"name\":\"by id\"");
	expect(200, "/api/v1/trace/" TIMED, "",
	       "\"ns\":16,\"joined\":\"time\",\"kinds\":{\"cpu\":{\"weight\":16,\"events\":1}}}");
	expect(200, "/api/v1/trace/" TIMED, "",
	       "\"name\":\"nobody\",\"service\":\"queue\",\"start\":1700000040.003,\"duration_ns\":5000000,\"span_kind\":0,"
	       "\"status\":0,\"ns\":0,\"kinds\":{}}");
	expect(200, "/api/v1/trace/0c000000000000000000000000000001", "", "\"joined\":\"none\"");
}

static void test_traces(void **state)
{
	(void)state;
	expect(200, "/api/v1/traces", "from=first&to=last",
	       "\"traces\":[{\"trace_id\":\"" TIMED
	       "\",\"name\":\"POST /mail\",\"service\":\"mail\",\"start\":1700000040.003,"
	       "\"duration_ns\":5000000,\"spans\":5,\"errors\":0},{\"trace_id\":\"" LINKED "\",\"name\":\"GET /\",");
	expect(200, "/api/v1/traces", "from=first&to=last&sort=heaviest", "\"traces\":[{\"trace_id\":\"" LINKED "\"");
	expect(200, "/api/v1/traces", "from=first&to=last&limit=1", "\"spans\":5,\"errors\":0}],\"more\":true}");
	/* Of frames: only traces with links, with all their spans. */
	expect(200, "/api/v1/traces", "from=first&to=last&focus=query",
	       "\"traces\":[{\"trace_id\":\"" LINKED "\",\"name\":\"GET /\",\"service\":\"shop\",\"start\":1700000040,"
	       "\"duration_ns\":3000000,\"spans\":2,\"errors\":0,\"joined\":\"link\",\"weight\":2,\"events\":1}],\"more\":"
	       "false}");
	expect(200, "/api/v1/traces", "from=first&to=last&query={span_name=\"by id\"}",
	       "\"traces\":[{\"trace_id\":\"" TIMED "\",\"name\":\"by id\",");
	expect(200, "/api/v1/traces", "from=first&to=last&query={comm=\"python\"}",
	       "\"traces\":[{\"trace_id\":\"" LINKED "\",\"name\":\"GET /\"");
	expect(200, "/api/v1/traces", "from=first&to=last&query={service=\"nothing\"}", "\"traces\":[],");
}

static void test_span_name(void **state)
{
	(void)state;
	expect(200, "/api/v1/flamegraph", "from=first&to=last&query={span_name=\"select\"}", "\"total\":2,\"events\":1");
	expect(200, "/api/v1/flamegraph", "from=first&to=last&query={span_name=~\"select|GET.*\"}",
	       "\"total\":3,\"events\":2");
	expect(200, "/api/v1/flamegraph", "from=first&to=last&query={span_name=\"no such\"}", "\"total\":0,\"events\":0");
	expect(200, "/api/v1/flamegraph", "from=first&to=last&query={service=\"shop\",span_name!=\"select\"}",
	       "\"total\":5,\"events\":2");
}

static void test_logs(void **state)
{
	(void)state;
	expect(200, "/api/v1/logs", "from=first&to=last",
	       "\"severity\":17,\"service\":\"queue\",\"body\":\"of nobody\"},{\"id\":2,");
	expect(200, "/api/v1/logs", "from=first&to=last&query={trace_id=\"" LINKED "\"}",
	       "\"logs\":[{\"id\":1,\"time\":1700000040.0019999,\"severity\":17,\"service\":\"shop\",\"body\":\"of a "
	       "trace\","
	       "\"trace_id\":\"" LINKED "\",\"span_id\":\"0000000000000002\"}],\"more\":false}");
	expect(200, "/api/v1/logs", "from=first&to=last&query={span_name=\"select\"}", "\"logs\":[{\"id\":1,");
	expect(200, "/api/v1/logs", "from=first&to=last&text=PROCESS", "\"logs\":[{\"id\":2,");
	expect(200, "/api/v1/logs", "from=first&to=last&severity=fatal", "\"logs\":[],\"more\":false}");
	expect(200, "/api/v1/logs", "from=first&to=last&severity=Error&limit=1", "\"body\":\"of nobody\"}],\"more\":true}");
	expect(400, "/api/v1/logs", "from=first&to=last&severity=bad", "severity: ");
	expect(200, "/api/v1/log/1/where", "",
	       "{\"joined\":\"link\",\"query\":\"{trace_id=\\\"" LINKED
	       "\\\"}\",\"from\":1700000039.0019999,\"to\":1700000041.0019999}");
	expect(200, "/api/v1/log/1/where", "of=process", "{\"joined\":\"time\",\"query\":\"{service.name=\\\"shop\\\"}\"");
	expect(200, "/api/v1/log/2/where", "", "{\"joined\":\"time\",\"query\":\"{service.name=\\\"mail\\\"}\"");
	expect(200, "/api/v1/log/3/where", "", "{\"joined\":\"none\"");
	expect(404, "/api/v1/log/4/where", "", "no such log line");
	assert_null(api_params("/api/v1/log/x/where"));
	assert_null(api_params("/api/v1/log/1/flamegraph"));
	assert_null(api_params("/api/v1/trace/" LINKED "/where"));
}

static void test_exemplars(void **state)
{
	(void)state;
	expect(200, "/api/v1/exemplars", "from=first&to=last",
	       "\"exemplars\":[{\"time\":1700000040.001,\"value\":3,\"metric\":\"latency\",\"unit\":\"ms\",\"service\":"
	       "\"shop\","
	       "\"trace_id\":\"" LINKED "\",\"span_id\":\"0000000000000001\"}],\"more\":false}");
	expect(200, "/api/v1/exemplars", "from=first&to=last&query={metric=\"other\"}", "\"exemplars\":[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_span),	  cmocka_unit_test(test_trace), cmocka_unit_test(test_traces),
		cmocka_unit_test(test_span_name), cmocka_unit_test(test_logs),	cmocka_unit_test(test_exemplars),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
