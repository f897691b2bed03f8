/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs, metrics and traces against Google's protobuf: random messages over every field, as protobuf and in two ways of
 * JSON, all come out as the same protobuf bytes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/proto/otlp_bytes.h"
#include "proto/otlp/signals.h"
#include "tests/unit/proto/otlp_truth.h"

enum { MESSAGES = 12 };

static const char *const names[] = { [OTLP_LOGS] = "logs", [OTLP_METRICS] = "metrics", [OTLP_TRACES] = "traces" };

static int make_messages(void **state)
{
	(void)state;
	return mkdtemp(truth_folder) ? truth("signals %s %d", truth_folder, MESSAGES) : -1;
}

/* Decodes @in and checks that it is what @want says; returns the number of items. */
static uint64_t check(enum otlp_signal signal, bool is_json, const struct buf *in, const struct buf *want)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY, json = BUF_EMPTY, again = BUF_EMPTY;
	struct otlp_other o, from_json;
	struct otlp_error err;
	uint64_t items;

	if (otlp_other_decode(signal, is_json, in->data, in->len, &o, &err))
		fail_msg("%s: %s", names[signal], err.message);
	assert_int_equal(otlp_other_encode(&o, &out), 0);
	assert_int_equal(out.len, want->len);
	assert_memory_equal(out.data, want->data, want->len);
	assert_int_equal(otlp_other_json_encode(&o, &json), 0);
	assert_int_equal(otlp_other_decode(signal, true, json.data, json.len, &from_json, &err), 0);
	assert_int_equal(otlp_other_encode(&from_json, &again), 0);
	assert_int_equal(again.len, want->len);
	assert_memory_equal(again.data, want->data, want->len);
	items = o.items;
	assert_int_equal(from_json.items, items);
	otlp_other_fini(&o);
	otlp_other_fini(&from_json);
	return items;
}

static void come_through(void **state)
{
	(void)state;
	for (enum otlp_signal signal = OTLP_LOGS; signal <= OTLP_TRACES; signal++) {
		uint64_t items = 0;

		for (int i = 0; i < MESSAGES; i++) {
			AUTO(buf_fini) struct buf want = truth_read("%s-%d.%s", names[signal], i, "otlp");
			AUTO(buf_fini)
			struct buf camel = truth_read("%s-%d.%s", names[signal], i, "camel"),
				   hex = truth_read("%s-%d.%s", names[signal], i, "hex");
			uint64_t n = check(signal, false, &want, &want);

			assert_int_equal(check(signal, true, &camel, &want), n);
			assert_int_equal(check(signal, true, &hex, &want), n);
			items += n;
		}
		assert_true(items > MESSAGES);
	}
}

static void bytes_of(const char *text, struct buf *b)
{
	if (text[0] == '{')
		buf_puts(b, text);
	else
		bytes_fields(text, b);
}

#define RECORD(inner) "1{2{2{" inner "}}}"

static void refuses_malformed(void **state)
{
	static const struct {
		enum otlp_signal signal;
		const char *text, *message;
	} cases[] = {
		{ OTLP_LOGS, RECORD("1:5"), "LogRecord.time_unix_nano has wire type varint, not fixed64" },
		{ OTLP_LOGS, RECORD("8=5"), "LogRecord.flags has wire type fixed64, not fixed32" },
		{ OTLP_LOGS, RECORD("x45 x01"), "LogRecord.flags is cut off" },
		{ OTLP_LOGS, RECORD("3'\xff'"), "LogRecord.severity_text is not UTF-8" },
		{ OTLP_LOGS, RECORD("5{1'\xff'}"), "AnyValue.string_value is not UTF-8" },
		{ OTLP_LOGS, RECORD("2:-1"), "LogRecord.severity_number is -1, out of range" },
		{ OTLP_LOGS, "1'x'", "ResourceLogs" },
		{ OTLP_TRACES, "1{2{2{x85 x01 x00}}}", "Span.flags is cut off" },
		{ OTLP_METRICS, "1{2{2{10{1{6:4294967296}}}}}", "ExponentialHistogramDataPoint.scale is 4294967296" },
		{ OTLP_METRICS, "1{2{2{9{1{7'1234567'}}}}}", "HistogramDataPoint.explicit_bounds has 7 bytes" },
		{ OTLP_LOGS, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityNumber\":\"LOUD\"}]}]}]}",
		  "resourceLogs[0].scopeLogs[0].logRecords[0].severityNumber is not a number" },
		{ OTLP_METRICS,
		  "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"histogram\":{\"dataPoints\":[{"
		  "\"explicitBounds\":"
		  "[1,\"x\"]}]}}]}]}]}",
		  "metrics[0].histogram.dataPoints[0].explicitBounds[1] is not a number" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf b = BUF_EMPTY;
		struct otlp_other o = { 0 };
		struct otlp_error err;

		bytes_of(cases[i].text, &b);
		if (otlp_other_decode(cases[i].signal, b.data[0] == '{', b.data, b.len, &o, &err) != -EBADMSG ||
		    !strstr(err.message, cases[i].message))
			fail_msg("%s: got \"%s\", not \"%s\"", cases[i].text, o.memory ? "(accepted)" : err.message,
				 cases[i].message);
	}
}

/* References into a dictionary that there is none of count as absent. */
static void forgets_references(void **state)
{
	AUTO(buf_fini) struct buf b = BUF_EMPTY, out = BUF_EMPTY, want = BUF_EMPTY;
	struct otlp_other o;
	struct otlp_error err;

	(void)state;
	bytes_of(RECORD("5{5{1{8:70000} 1{1'x'}}} 6{3:70000 2{6{1{1'k' 2{8:5}}}}}"), &b);
	bytes_of(RECORD("5{5{1{} 1{1'x'}}} 6{2{6{1{1'k'}}}}"), &want);
	assert_int_equal(otlp_other_decode(OTLP_LOGS, false, b.data, b.len, &o, &err), 0);
	assert_int_equal(otlp_other_encode(&o, &out), 0);
	assert_int_equal(out.len, want.len);
	assert_memory_equal(out.data, want.data, want.len);
	otlp_other_fini(&o);
}

static void reads_names_of_enums(void **state)
{
	static const char json[] = "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"severityNumber\":"
				   "\"SEVERITY_NUMBER_FATAL4\"},{\"severityNumber\":\"9\"},{\"severityNumber\":13}]}]}]}";
	struct otlp_other o;
	struct otlp_error err;
	const struct log_record *r;

	(void)state;
	assert_int_equal(otlp_other_decode(OTLP_LOGS, true, (const uint8_t *)json, strlen(json), &o, &err), 0);
	r = ((const struct logs *)o.root)->resources[0].scopes[0].records;
	assert_int_equal(o.items, 3);
	assert_true(r[0].severity_number == 24 && r[1].severity_number == 9 && r[2].severity_number == 13);
	otlp_other_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(come_through),
		cmocka_unit_test(refuses_malformed),
		cmocka_unit_test(forgets_references),
		cmocka_unit_test(reads_names_of_enums),
	};

	return cmocka_run_group_tests(tests, make_messages, truth_remove);
}
