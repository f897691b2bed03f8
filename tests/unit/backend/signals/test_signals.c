/* SPDX-License-Identifier: Apache-2.0 */
/* Records of spans, logs and exemplars: found by trace, span, time and labels, cut, kept over a restart, and removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/signals/signals.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "proto/otlp/signals.h"

#define T0 1700000000000000000ull

/* Keeps a request, given as OTLP/JSON without its outermost braces. */
static void keep(struct signals *s, enum otlp_signal signal, const char *text)
{
	AUTO(buf_fini) struct buf json = BUF_EMPTY;
	AUTO(buf_fini) struct buf protobuf = BUF_EMPTY;
	struct otlp_error err;
	struct otlp_other other;

	buf_printf(&json, "{%s}", text);
	if (otlp_other_decode(signal, true, json.data, json.len, &other, &err))
		fail_msg("%s", err.message);
	assert_int_equal(otlp_other_encode(&other, &protobuf), 0);
	otlp_other_fini(&other);
	signals_keep(s, signal, protobuf.data, protobuf.len);
	signals_flush(s);
}

#define RESOURCE(service)                                                                                       \
	"\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"" service "\"}}," \
	"{\"key\":\"process.pid\",\"value\":{\"intValue\":\"77\"}}]}"

/* A span of 2 us, that begins at T0 + @trace us. */
static void keep_span(struct signals *s, unsigned trace, unsigned span, unsigned parent, const char *name)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	buf_printf(&text,
		   "\"resourceSpans\":[{" RESOURCE("shop") ",\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%032x\",\"spanId\":"
							   "\"%016x\"",
		   trace, span);
	if (parent)
		buf_printf(&text, ",\"parentSpanId\":\"%016x\"", parent);
	buf_printf(&text,
		   ",\"name\":\"%s\",\"kind\":2,\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":\"%llu\",\"status\":{"
		   "\"code\":2},\"attributes\":[{\"key\":\"thread.id\",\"value\":{\"intValue\":\"12\"}},{\"key\":"
		   "\"thread.name\",\"value\":{\"stringValue\":\"worker\"}}]}]}]}]",
		   name, T0 + trace * 1000, T0 + trace * 1000 + 2000);
	keep(s, OTLP_TRACES, buf_text(&text));
}

static int add_span(void *arg, const struct kept_span *span)
{
	const char *pid = signals_resource_value(&span->resource, "process.pid");

	buf_printf(arg, "%u<%u %s/%s %llu %u %u %lld %s %s; ", span->span[7], span->parent[7], span->resource.service,
		   span->name, (unsigned long long)(span->end_ns - span->start_ns), span->kind, span->status,
		   (long long)span->thread_id, span->thread_name, pid ? pid : "-");
	return 0;
}

static int add_name(void *arg, const struct kept_span *span)
{
	buf_printf(arg, "%s ", span->name);
	return 0;
}

static void check_names(struct signals *s, const struct signals_question *q, const char *wanted)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	assert_int_equal(signals_spans(s, q, add_name, &out), 0);
	assert_string_equal(buf_text(&out), wanted);
}

static struct signals *open_signals(const char *folder, uint64_t bytes, struct metrics *m)
{
	const struct signals_config config = { .folder = folder, .bytes = bytes };
	struct signals *s;

	assert_int_equal(signals_new(&config, m, &s), 0);
	return s;
}

static void check_spans(struct signals *s)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const uint8_t trace[16] = { [15] = 1 }, span[8] = { [7] = 7 };
	const struct signals_question all = { .to_ns = UINT64_MAX }, of_trace = { .to_ns = UINT64_MAX, .trace = trace },
				      of_span = { .to_ns = UINT64_MAX, .span = span }, early = { .to_ns = T0 + 1500 },
				      late = { .from_ns = T0 + 3500, .to_ns = UINT64_MAX };
	struct store_matcher m = { "service.name", MATCH_EQUAL, "shop", NULL };
	struct signals_question chosen = { .to_ns = UINT64_MAX, .matchers = &m, .matcher_count = 1 };
	struct pattern_error why;

	assert_int_equal(signals_spans(s, &of_trace, add_span, &out), 0);
	assert_string_equal(buf_text(&out), "7<5 shop/select 2000 2 2 12 worker 77; 5<0 shop/GET / 2000 2 2 12 worker 77; ");
	check_names(s, &of_span, "select ");
	check_names(s, &all, "other select GET / ");
	check_names(s, &early, "select GET / ");
	check_names(s, &late, "other ");
	check_names(s, &chosen, "other select GET / ");
	m.match = MATCH_NOT_EQUAL;
	check_names(s, &chosen, "");
	m = (struct store_matcher){ SIGNAL_NAME_LABEL, MATCH_EQUAL, "select", NULL };
	check_names(s, &chosen, "select ");
	m = (struct store_matcher){ STORE_TRACE_LABEL, MATCH_NOT_EQUAL, "00000000000000000000000000000001", NULL };
	check_names(s, &chosen, "other ");
	m = (struct store_matcher){ "comm", MATCH_EQUAL, "", NULL };
	check_names(s, &chosen, "other select GET / ");
	m = (struct store_matcher){ SIGNAL_NAME_LABEL, MATCH_NOT_REGEX, "GET.*|o.*", NULL };
	assert_int_equal(pattern_new(m.value, PATTERN_WHOLE, &m.pattern, &why), 0);
	check_names(s, &chosen, "select ");
	pattern_free(m.pattern);
}

static void put_spans(struct signals *s)
{
	keep_span(s, 1, 5, 0, "GET /");
	keep_span(s, 1, 7, 5, "select");
	keep_span(s, 2, 6, 0, "other");
}

static void test_spans(void **state)
{
	struct metrics *m = metrics_new();
	struct signals *s = open_signals(NULL, 1 << 24, m);

	(void)state;
	check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX }, "");
	put_spans(s);
	check_spans(s);
	assert_int_equal(signals_clear(s), 0);
	check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX }, "");
	put_spans(s);
	check_spans(s);
	signals_free(s);
	metrics_free(m);
}

static void test_folder(void **state)
{
	char folder[] = "/tmp/test_signals.XXXXXX", file[64];
	struct signals *s;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/signals.db", folder);
	s = open_signals(folder, 1 << 24, NULL);
	assert_int_not_equal(access(file, F_OK), 0); /* not before there is something to keep */
	put_spans(s);
	check_spans(s);
	signals_free(s);
	s = open_signals(folder, 1 << 24, NULL); /* a restart */
	check_spans(s);
	put_spans(s);
	check_names(s, &(struct signals_question){ .to_ns = T0 + 1500 }, "select GET / select GET / ");
	signals_free(s);
	{
		const struct signals_config config = { .folder = folder, .read_only = true };

		assert_int_equal(signals_new(&config, NULL, &s), 0);
		check_names(s, &(struct signals_question){ .to_ns = T0 + 1500 }, "select GET / select GET / ");
		assert_int_equal(signals_clear(s), -EROFS);
		signals_free(s);
	}
	assert_int_equal(truncate(file, 100), 0); /* damaged: it begins anew */
	s = open_signals(folder, 1 << 24, NULL);
	put_spans(s);
	check_spans(s);
	assert_int_equal(signals_clear(s), 0);
	check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX }, "");
	signals_free(s);
	assert_int_equal(unlink(file), 0);
	snprintf(file, sizeof(file), "%s/signals.db.damaged", folder);
	assert_int_equal(unlink(file), 0);
	(void)rmdir(folder);
}

static int add_log(void *arg, const struct kept_log *log)
{
	buf_printf(arg, "%u %s/%s %u.%u @%lld; ", log->severity, log->resource.service, log->body, log->trace[15],
		   log->span[7], (long long)(log->time_ns - T0));
	return 0;
}

static void check_logs(struct signals *s, const struct signals_question *q, const char *wanted)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	assert_int_equal(signals_logs(s, q, add_log, &out), 0);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_logs(void **state)
{
	const uint8_t trace[16] = { [15] = 9 };
	struct signals *s = open_signals(NULL, 1 << 24, NULL);

	(void)state;
	keep(s, OTLP_LOGS,
	     "\"resourceLogs\":[{" RESOURCE(
		     "shop") ",\"scopeLogs\":[{\"logRecords\":["
			     "{\"timeUnixNano\":\"1700000000000000005\",\"severityNumber\":17,"
			     "\"body\":{\"stringValue\":\"Out of memory\"},"
			     "\"traceId\":\"00000000000000000000000000000009\",\"spanId\":\"0000000000000003\"},"
			     "{\"observedTimeUnixNano\":\"1700000000000000007\",\"severityNumber\":9,\"body\":{"
			     "\"kvlistValue\":{\"values\":[{\"key\":\"n\",\"value\":{\"intValue\":\"4\"}},{\"key\":\"f\","
			     "\"value\":{\"boolValue\":true}}]}}}]}]}]");
	check_logs(s, &(struct signals_question){ .to_ns = UINT64_MAX },
		   "9 shop/n=4 f=true 0.0 @7; 17 shop/Out of memory 9.3 @5; ");
	check_logs(s, &(struct signals_question){ .to_ns = UINT64_MAX, .severity = 13 }, "17 shop/Out of memory 9.3 @5; ");
	check_logs(s, &(struct signals_question){ .to_ns = UINT64_MAX, .text = "OF mem" }, "17 shop/Out of memory 9.3 @5; ");
	check_logs(s, &(struct signals_question){ .to_ns = UINT64_MAX, .trace = trace }, "17 shop/Out of memory 9.3 @5; ");
	check_logs(s, &(struct signals_question){ .to_ns = UINT64_MAX, .id = 2 }, "9 shop/n=4 f=true 0.0 @7; ");
	check_logs(s, &(struct signals_question){ .from_ns = T0 + 6, .to_ns = T0 + 7 }, "");
	check_logs(s, &(struct signals_question){ .from_ns = T0 + 7, .to_ns = T0 + 8 }, "9 shop/n=4 f=true 0.0 @7; ");
	signals_free(s);
}

static int add_exemplar(void *arg, const struct kept_exemplar *e)
{
	buf_printf(arg, "%s/%s %g %s %u.%u @%lld; ", e->resource.service, e->metric, e->value, e->unit, e->trace[15],
		   e->span[7], (long long)(e->time_ns - T0));
	return 0;
}

static void test_exemplars(void **state)
{
	struct signals *s = open_signals(NULL, 1 << 24, NULL);
	struct store_matcher m = { SIGNAL_METRIC_LABEL, MATCH_EQUAL, "time", NULL };
	struct signals_question q = { .to_ns = UINT64_MAX };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	keep(s, OTLP_METRICS,
	     "\"resourceMetrics\":[{" RESOURCE(
		     "shop") ",\"scopeMetrics\":[{\"metrics\":[{\"name\":\"time\",\"unit\":\"ms\",\"histogram\":{"
			     "\"dataPoints\":["
			     "{\"timeUnixNano\":\"1700000000000000009\",\"count\":\"1\",\"exemplars\":[{\"timeUnixNano\":"
			     "\"1700000000000000004\",\"asDouble\":2.5,\"traceId\":\"00000000000000000000000000000009\","
			     "\"spanId\":\"0000000000000003\"}]}]}},{\"name\":\"hits\",\"sum\":{\"dataPoints\":[{\"asInt\":"
			     "\"3\","
			     "\"exemplars\":[{\"timeUnixNano\":\"1700000000000000002\",\"asInt\":\"7\"}]}]}}]}]}]");
	assert_int_equal(signals_exemplars(s, &q, add_exemplar, &out), 0);
	assert_string_equal(buf_text(&out), "shop/time 2.5 ms 9.3 @4; shop/hits 7  0.0 @2; ");
	buf_reset(&out);
	q.matchers = &m;
	q.matcher_count = 1;
	assert_int_equal(signals_exemplars(s, &q, add_exemplar, &out), 0);
	assert_string_equal(buf_text(&out), "shop/time 2.5 ms 9.3 @4; ");
	signals_free(s);
}

static void see_counts(void *arg, const char *name, const char *labels, uint64_t value)
{
	if (!strcmp(name, "hearth_signals_incomplete_total") || (!strcmp(name, "hearth_signals_kept_total") && value))
		buf_printf(arg, "%s %llu; ", *labels ? labels : "incomplete", (unsigned long long)value);
}

/* Records that nothing can lead to are counted, and those beside them are kept. */
static void test_incomplete(void **state)
{
	struct metrics *m = metrics_new();
	struct signals *s = open_signals(NULL, 1 << 24, m);
	AUTO(buf_fini) struct buf counts = BUF_EMPTY;

	(void)state;
	keep(s, OTLP_METRICS,
	     "\"resourceMetrics\":[{" RESOURCE(
		     "shop") ",\"scopeMetrics\":[{\"metrics\":[{\"name\":\"hits\",\"sum\":{\"dataPoints\":["
			     "{\"exemplars\":[{\"asInt\":\"7\"},{\"timeUnixNano\":\"1700000000000000002\"}]}]}}]}]}]");
	keep(s, OTLP_TRACES,
	     "\"resourceSpans\":[{" RESOURCE(
		     "shop") ",\"scopeSpans\":[{\"spans\":[{\"name\":\"no ids\"},"
			     "{\"traceId\":\"0000000000000000000000000000000a\",\"name\":\"no id\"},"
			     "{\"traceId\":\"0000000000000000000000000000000a\",\"spanId\":\"000000000000000b\","
			     "\"name\":\"whole\"}]}]}]");
	check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX }, "whole ");
	metrics_each(m, see_counts, &counts);
	assert_string_equal(buf_text(&counts), "incomplete 3; signal=\"traces\" 1; signal=\"metrics\" 1; ");
	signals_free(s);
	metrics_free(m);
}

static int stop(void *arg, const struct kept_span *span)
{
	++*(unsigned *)arg;
	return span->name[0] == 's' ? 5 : 0;
}

static void test_limits(void **state)
{
	struct metrics *m = metrics_new();
	struct signals *s = open_signals(NULL, 1, m); /* the least, 1 MB */
	const struct signals_question all = { .to_ns = UINT64_MAX };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	char name[400];
	unsigned count = 0;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memcpy(name + SIGNAL_NAME_BYTES - 2, "\xc3\xa9", 2); /* a character that would be cut */
	keep_span(s, 1, 5, 0, name);
	assert_int_equal(signals_spans(s, &all, add_name, &out), 0);
	assert_int_equal(strlen(buf_text(&out)), SIGNAL_NAME_BYTES - 2 + 1);
	put_spans(s);
	assert_int_equal(signals_spans(s, &all, stop, &count), 5);
	assert_int_equal(count, 2);
	assert_int_equal(signals_spans(s, &(struct signals_question){ .to_ns = UINT64_MAX, .deadline_ns = 1 }, stop, &count),
			 5); /* looked at now and then */
	signals_free(s);
	metrics_free(m);
}

static void see_removed(void *arg, const char *name, const char *labels, uint64_t value)
{
	(void)labels;
	if (!strcmp(name, "hearth_signals_removed_total"))
		*(uint64_t *)arg = value;
}

/* The oldest go when there are too many bytes, and what is too old. */
static void test_retention(void **state)
{
	struct metrics *m = metrics_new();
	struct signals *s = open_signals(NULL, 1, m);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const uint8_t first[16] = { [15] = 1 };
	const uint64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC;
	uint64_t removed = 0;

	(void)state;
	put_spans(s);
	for (unsigned span = 1000; !removed && clock_mono_ns() < end_ns;) {
		buf_reset(&text);
		buf_puts(&text, "\"resourceSpans\":[{" RESOURCE("shop") ",\"scopeSpans\":[{\"spans\":[");
		for (unsigned i = 0; i < 4000; i++, span++)
			buf_printf(&text,
				   "%s{\"traceId\":\"%032x\",\"spanId\":\"%016x\",\"name\":\"n\",\"startTimeUnixNano\":"
				   "\"%llu\",\"endTimeUnixNano\":\"%llu\"}",
				   i ? "," : "", span, span, T0, T0);
		buf_puts(&text, "]}]}]");
		keep(s, OTLP_TRACES, buf_text(&text));
		signals_look(s);
		keep(s, OTLP_TRACES, "");
		metrics_each(m, see_removed, &removed);
	}
	assert_true(removed > 0);
	check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX, .trace = first }, "");
	signals_free(s);
	metrics_free(m);

	{
		const struct signals_config config = { .bytes = 1 << 24, .age_ns = NSEC_PER_SEC };

		assert_int_equal(signals_new(&config, NULL, &s), 0);
		put_spans(s); /* of years ago */
		signals_look(s);
		keep(s, OTLP_TRACES, "");
		check_names(s, &(struct signals_question){ .to_ns = UINT64_MAX }, "");
		signals_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),	  cmocka_unit_test(test_folder),     cmocka_unit_test(test_logs),
		cmocka_unit_test(test_exemplars), cmocka_unit_test(test_incomplete), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_retention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
