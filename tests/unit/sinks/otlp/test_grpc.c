/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over gRPC against a server of HTTP/2 frames (grpc_collector.py), which also answers what a gRPC library would not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/curl.h"
#include "tests/unit/sinks/exporter.h"

static bool has_h2;

static int setup(void **state)
{
	(void)state;
	has_h2 = system("/usr/bin/python3 -c 'import h2' 2>/dev/null") == 0;
	return 0;
}

#define NEEDS_H2()                                        \
	do {                                              \
		(void)state;                              \
		if (!has_h2) {                            \
			print_message("no python3-h2\n"); \
			skip();                           \
		}                                         \
	} while (0)

/* @where: a port, or a path. */
static struct collector grpc_start(const char *where, const char *const *answers)
{
	const char *arguments[MAX_ARGUMENTS] = { "/usr/bin/python3", TEST_DATA "/unit/sinks/grpc_collector.py", where };

	for (size_t i = 0; answers[i]; i++)
		arguments[3 + i] = answers[i];
	return collector_run(arguments);
}

static void grpc_exporter(struct exporter *e, int port, struct otlp_sink_config config)
{
	char url[64];

	snprintf(url, sizeof(url), "grpc://127.0.0.1:%d", port);
	config.url = url;
	exporter_open(e, config);
}

static void test_request(void **state)
{
	static const char *const headers[] = { "X-Test: yes", NULL };
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	NEEDS_H2();
	c = grpc_start("0", ANSWERS("OK"));
	grpc_exporter(&e, c.port, (struct otlp_sink_config){ .headers = headers, .timeout_ns = 7 * NSEC_PER_SEC });
	export_events(&e, EVENTS);
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), EVENTS + 1);
	finish(&e, &c, &lines, &messages);
	assert_int_equal(count_lines(&lines), 2);
	assert_has(&lines, ":method=POST :scheme=http "
			   ":path=/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export "
			   "content-type=application/grpc te=trailers grpc-encoding=gzip grpc-accept-encoding=identity,gzip "
			   "grpc-timeout=7000m otlp-profiles-development-version=1 x-test=yes ");
	assert_has(&lines, "agent=hearth/" HEARTH_VERSION " OTel-OTLP-Exporter-C/" HEARTH_VERSION "\n");
	assert_string_equal(buf_text(&messages), "");
	buf_fini(&lines);
	buf_fini(&messages);
}

/* Uncompressed, larger than a window of HTTP/2, over a socket in the file system, without a deadline. */
static void test_large_over_unix_socket(void **state)
{
	char path[] = "/tmp/hearth-grpc-XXXXXX", url[64];
	struct buf lines = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	NEEDS_H2();
	close(mkstemp(path));
	unlink(path);
	snprintf(url, sizeof(url), "unix:%s", path);
	c = grpc_start(path, ANSWERS("OK"));
	exporter_open(&e, (struct otlp_sink_config){ .url = url, .packing = OTLP_UNPACKED, .timeout_ns = UINT64_MAX });
	export_events(&e, 20000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 20000);
	assert_true(counter(&e, "hearth_export_bytes_total", NULL) > 4 * 65535);
	finish(&e, &c, &lines, NULL);
	assert_has(&lines, " grpc-encoding=None ");
	assert_has(&lines, " grpc-timeout=None ");
	buf_fini(&lines);
	unlink(path);
}

struct retry_case {
	const char *first; /* the first answer; the second request gets OK */
	const char *result;
	const char *message;
	uint64_t least_ns; /* until the second request */
};

static const struct retry_case retry_cases[] = {
	{ "1", "busy", ": gRPC status 1 (CANCELLED); keeping", 250 * NSEC_PER_MSEC },
	{ "4", "busy", "(DEADLINE_EXCEEDED)", 250 * NSEC_PER_MSEC },
	{ "10", "busy", "(ABORTED)", 250 * NSEC_PER_MSEC },
	{ "11", "busy", "(OUT_OF_RANGE)", 250 * NSEC_PER_MSEC },
	{ "14:message=over%20there%25%c3%a9%zz", "busy", ": gRPC status 14 (UNAVAILABLE): over there%\xc3\xa9%zz; keeping",
	  250 * NSEC_PER_MSEC },
	{ "15:late=gone%0a", "busy", "(DATA_LOSS): gone ; keeping", 250 * NSEC_PER_MSEC },
	{ "8:retry=1200", "busy", "(RESOURCE_EXHAUSTED): wait; keeping", 1200 * NSEC_PER_MSEC },
	{ "14:bare=900", "busy", "(UNAVAILABLE): wait; keeping", 900 * NSEC_PER_MSEC },
	{ "http=503", "busy", "gRPC status 14 (UNAVAILABLE): HTTP status 503 without a gRPC status", 250 * NSEC_PER_MSEC },
	{ "http=429", "busy", "HTTP status 429 without", 250 * NSEC_PER_MSEC },
	{ "hang=20", "timeout", "timed out", 1250 * NSEC_PER_MSEC },
	{ "close", "unreachable", "; keeping", 250 * NSEC_PER_MSEC },
	{ "reset", "unreachable", "; keeping", 250 * NSEC_PER_MSEC },
	{ "cut", "unreachable", "; keeping", 250 * NSEC_PER_MSEC },
};

static void check_retry(const struct retry_case *r)
{
	struct collector c = grpc_start("0", ANSWERS(r->first, "OK"));
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	uint64_t start, timeout_ns = strcmp(r->result, "timeout") == 0 ? NSEC_PER_SEC : LONG_NS;
	struct exporter e;

	grpc_exporter(&e, c.port, (struct otlp_sink_config){ .timeout_ns = timeout_ns });
	start = clock_mono_ns();
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_in_range(clock_mono_ns() - start, r->least_ns, r->least_ns + 10 * NSEC_PER_SEC);
	if (attempts(&e, r->result) != 1)
		fail_msg("'%s' is not %s", r->first, r->result);
	assert_int_equal(attempts(&e, "ok"), 1);
	assert_int_equal(exported(&e), EVENTS);
	finish(&e, &c, &lines, &messages);
	assert_has(&messages, "cannot reach grpc://127.0.0.1:");
	assert_has(&messages, r->message);
	assert_int_equal(count_lines(&lines), 2);
	buf_fini(&lines);
	buf_fini(&messages);
}

static void test_retries(void **state)
{
	NEEDS_H2();
	for (size_t i = 0; i < ARRAY_LEN(retry_cases); i++)
		check_retry(&retry_cases[i]);
}

static const struct {
	const char *answer;
	const char *message;
} final_cases[] = {
	{ "3:message=index 7 is out of range",
	  " refused 100 samples with gRPC status 3 (INVALID_ARGUMENT): index 7 is out of range\n" },
	{ "2", "(UNKNOWN)\n" },
	{ "7", "(PERMISSION_DENIED) (check the credentials" },
	{ "8", "(RESOURCE_EXHAUSTED)\n" }, /* without RetryInfo */
	{ "8:message=received message larger than max (5 vs. 4)", " vs. 4) (lower the size of an export)\n" },
	{ "12", "gRPC status 12 (UNIMPLEMENTED) (check the URL" },
	{ "13", "(INTERNAL)\n" },
	{ "16", "(UNAUTHENTICATED) (check the credentials" },
	{ "77", "gRPC status 2 (UNKNOWN)" }, /* no such code */
	{ "x", "gRPC status 2 (UNKNOWN)" },
	{ "http=404", "gRPC status 12 (UNIMPLEMENTED): HTTP status 404 without a gRPC status (check the URL" },
	{ "http=401", "gRPC status 16 (UNAUTHENTICATED): HTTP status 401" },
	{ "http=400", "gRPC status 13 (INTERNAL): HTTP status 400" },
	{ "http=301", "gRPC status 2 (UNKNOWN): HTTP status 301" },
};

static void test_final_answers(void **state)
{
	NEEDS_H2();
	for (size_t i = 0; i < ARRAY_LEN(final_cases); i++) {
		struct collector c = grpc_start("0", ANSWERS(final_cases[i].answer, "OK"));
		struct buf messages = BUF_EMPTY;
		struct exporter e;

		grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
		export_events(&e, EVENTS);
		export_events(&e, EVENTS); /* the next one fares better */
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_int_equal(attempts(&e, "refused"), 1);
		assert_int_equal(dropped(&e, "refused"), EVENTS);
		assert_int_equal(exported(&e), EVENTS);
		finish(&e, &c, NULL, &messages);
		assert_has(&messages, final_cases[i].message);
		buf_fini(&messages);
	}
}

static bool loses_trailers(void)
{
	return curl_version_info(CURLVERSION_NOW)->version_num < 0x080100;
}

/* A message and no status is UNKNOWN, but where libcurl may have lost it. */
static void test_no_status(void **state)
{
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	NEEDS_H2();
	c = grpc_start("0", ANSWERS("none"));
	grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(dropped(&e, "refused"), loses_trailers() ? 0 : EVENTS);
	finish(&e, NULL, NULL, &messages);
	collector_stop(&c, &lines);
	if (!loses_trailers())
		assert_has(&messages, "gRPC status 2 (UNKNOWN): an answer without a gRPC status\n");
	buf_fini(&lines);
	buf_fini(&messages);
}

/* What a server that stops has answered is answered, although it says goodbye in the same breath. */
static void test_goodbye(void **state)
{
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	NEEDS_H2();
	c = grpc_start("0", ANSWERS("OK:goaway"));
	grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), EVENTS + 1);
	finish(&e, &c, &lines, &messages);
	assert_int_equal(count_lines(&lines), 2);
	assert_string_equal(buf_text(&messages), "");
	buf_fini(&lines);
	buf_fini(&messages);
	check_retry(&(struct retry_case){ "14:goaway", loses_trailers() ? "unreachable" : "busy", "; keeping",
					  250 * NSEC_PER_MSEC });
}

static void test_too_large(void **state)
{
	struct collector c;
	struct exporter e;

	NEEDS_H2();
	c = grpc_start("0", ANSWERS("limit=40000"));
	grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, 5000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 5000);
	assert_true(counter(&e, "hearth_export_splits_total", NULL) > 0);
	finish(&e, &c, NULL, NULL);
}

static void test_partial_success(void **state)
{
	static const char *const answers[] = { "OK:partial=3", "OK:gzip=3" };

	NEEDS_H2();
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct collector c = grpc_start("0", ANSWERS(answers[i]));
		struct buf messages = BUF_EMPTY;
		struct exporter e;

		grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
		export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_int_equal(counter(&e, "hearth_export_rejected_profiles_total", NULL), 3);
		finish(&e, &c, NULL, &messages);
		assert_has(&messages, " did not take 3 of the profiles of a request: too old\n");
		buf_fini(&messages);
	}
}

/* A server that speaks HTTP/1.1 only. */
static void test_http1_server(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200"));
	struct buf messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	grpc_exporter(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	wait_for_attempt(&e, "unreachable");
	assert_int_equal(flush_for(&e, NSEC_PER_SEC), -ETIMEDOUT);
	/* the deadline may fall into an attempt, which then has no answer */
	assert_int_equal(dropped(&e, "shutdown") + dropped(&e, "unanswered"), EVENTS);
	finish(&e, &c, NULL, &messages);
	assert_has(&messages, "cannot reach grpc://");
	buf_fini(&messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),		cmocka_unit_test(test_large_over_unix_socket),
		cmocka_unit_test(test_retries),		cmocka_unit_test(test_final_answers),
		cmocka_unit_test(test_partial_success), cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_http1_server),	cmocka_unit_test(test_goodbye),
		cmocka_unit_test(test_no_status),
	};

	setenv("no_proxy", "127.0.0.1", 1);
	return cmocka_run_group_tests(tests, setup, NULL);
}
