/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter against a real HTTP server (collector.py) that answers well, badly, late or not at all. After each case the
 * books must balance: samples in = exported + dropped, and exported = what the server counted in the bodies it acknowledged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/sinks/exporter.h"

static void test_headers(void **state)
{
	static const char *const headers[] = { "X-Test: yes", NULL };
	struct collector c = collector_start(0, ANSWERS("200"));
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .headers = headers });
	export_events(&e, EVENTS);
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), EVENTS + 1);
	assert_int_equal(e.acks[0].error, 0);
	finish(&e, &c, &lines, &messages);
	assert_int_equal(count_lines(&lines), 2);
	assert_has(&lines, "path=/v1development/profiles Content-Type=application/x-protobuf Content-Encoding=gzip "
			   "otlp-profiles-development-version=1 X-Test=yes ");
	assert_has(&lines, "agent=hearth/" HEARTH_VERSION " OTel-OTLP-Exporter-C/" HEARTH_VERSION "\n");
	assert_string_equal(buf_text(&messages), ""); /* nothing to say about what works */
	buf_fini(&lines);
	buf_fini(&messages);
}

/* Larger than the limit: several requests, none above it, with the ack after the last. */
static void test_split_without_gzip(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .packing = OTLP_UNPACKED, .max_export_bytes = 4096 });
	export_events(&e, 1000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 1000);
	finish(&e, &c, &lines, NULL);
	assert_true(count_lines(&lines) > 4);
	assert_has(&lines, "Content-Encoding=None");
	for (const char *at = buf_text(&lines); (at = strstr(at, " size=")); at++)
		assert_in_range(strtoul(at + strlen(" size="), NULL, 10), 1, 4096);
	buf_fini(&lines);
}

/* The same content, split so that no body of JSON is above the limit. */
static void test_json(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200", "200:partial=4", "200"));
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .protocol = OTLP_HTTP_JSON, .max_export_bytes = 16 << 10 });
	export_events(&e, 3000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 3000);
	assert_int_equal(counter(&e, "hearth_export_rejected_profiles_total", NULL), 4);
	finish(&e, &c, &lines, &messages);
	assert_true(count_lines(&lines) > 4);
	assert_has(&lines, "path=/v1development/profiles Content-Type=application/json Content-Encoding=gzip ");
	assert_has(&messages, " did not take 4 of the profiles of a request: too old\n");
	for (const char *at = buf_text(&lines); (at = strstr(at, " size=")); at++)
		assert_in_range(strtoul(at + strlen(" size="), NULL, 10), 1, 16 << 10);
	buf_fini(&lines);
	buf_fini(&messages);
}

static void test_json_refusal(void **state)
{
	struct collector c = collector_start(0, ANSWERS("400:status=no \"x\""));
	struct buf messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .protocol = OTLP_HTTP_JSON, .packing = OTLP_UNPACKED });
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	finish(&e, &c, NULL, &messages);
	assert_has(&messages, "with status 400: no \"x\"\n");
	buf_fini(&messages);
}

/* What a collector finds too large is sent in parts; what comes after is small enough at once. */
static void test_too_large(void **state)
{
	struct collector c = collector_start(0, ANSWERS("limit=40000"));
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	uint64_t refusals;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, 20000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 20000);
	assert_int_equal(e.acks[0].error, 0);
	refusals = attempts(&e, "refused");
	assert_int_equal(counter(&e, "hearth_export_splits_total", NULL), refusals);
	assert_in_range(refusals, 3, 12); /* halved each time, not each part anew */
	export_events(&e, 20000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(attempts(&e, "refused"), refusals);
	finish(&e, &c, &lines, &messages);
	assert_has(&lines, ":413 ");
	assert_has(&messages, "too large; sending at most");
	buf_fini(&lines);
	buf_fini(&messages);
}

/* A collector that finds everything too large gets it down to a size that cannot be the reason, and no further. */
static void test_everything_too_large(void **state)
{
	struct collector c = collector_start(0, ANSWERS("413"));
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, 5000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(dropped(&e, "refused"), 5000);
	assert_int_equal(e.acks[0].error, -EREMOTEIO);
	assert_in_range(attempts(&e, "refused"), 3, 60);
	finish(&e, &c, NULL, NULL);
}

struct retry_case {
	const char *first; /* the first answer; the second request gets 200 */
	const char *result;
	const char *message;
	uint64_t least_ns; /* until the second request */
};

static const struct retry_case retry_cases[] = {
	{ "503", "busy", ": status 503; keeping up to 64 MiB and retrying\n", 250 * NSEC_PER_MSEC },
	{ "502:text=bad gateway", "busy", ": status 502: bad gateway; keeping", 250 * NSEC_PER_MSEC },
	{ "504:status=slow", "busy", ": status 504: slow; keeping", 250 * NSEC_PER_MSEC },
	{ "429:after=1", "busy", ": status 429; keeping", 1 * NSEC_PER_SEC },
	{ "503:date=3", "busy", ": status 503; keeping", 1 * NSEC_PER_SEC }, /* dates are whole seconds */
	{ "hang=20", "timeout", "timed out", 1250 * NSEC_PER_MSEC },
	{ "close", "unreachable", "Empty reply", 250 * NSEC_PER_MSEC },
	{ "cut", "unreachable", "; keeping", 250 * NSEC_PER_MSEC },
};

static void test_retries(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(retry_cases); i++) {
		const struct retry_case *r = &retry_cases[i];
		struct collector c = collector_start(0, ANSWERS(r->first, "200"));
		struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
		uint64_t start, timeout_ns = strcmp(r->result, "timeout") == 0 ? NSEC_PER_SEC : LONG_NS;
		struct exporter e;

		exporter_start(&e, c.port, (struct otlp_sink_config){ .timeout_ns = timeout_ns });
		start = clock_mono_ns();
		export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_in_range(clock_mono_ns() - start, r->least_ns, r->least_ns + 10 * NSEC_PER_SEC);
		assert_int_equal(attempts(&e, r->result), 1);
		assert_int_equal(attempts(&e, "ok"), 1);
		assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 1);
		assert_int_equal(exported(&e), EVENTS);
		assert_int_equal(e.acks[0].error, 0);
		finish(&e, &c, &lines, &messages);
		assert_has(&messages, "cannot reach http://127.0.0.1:"); /* and not user:secret@ */
		assert_has(&messages, r->message);
		assert_has(&messages, "answers again");
		assert_int_equal(count_lines(&messages), 2);
		assert_int_equal(count_lines(&lines), 2);
		buf_fini(&lines);
		buf_fini(&messages);
	}
}

struct final_case {
	const char *answer;
	const char *message;
};

static const struct final_case final_cases[] = {
	{ "400:status=index 7 is out of range", " refused 100 samples with status 400: index 7 is out of range\n" },
	{ "400:status=", " with status 400\n" }, /* empty */
	{ "400:text=no", " with status 400: no\n" },
	{ "404", " with status 404 (check the URL; " },
	{ "401", " with status 401 (check the credentials" },
	{ "413", " with status 413 (" },
	{ "500", " with status 500\n" },
	{ "301", " with status 301\n" },
};

static void test_final_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(final_cases); i++) {
		struct collector c = collector_start(0, ANSWERS(final_cases[i].answer, "202"));
		struct buf messages = BUF_EMPTY;
		struct exporter e;

		exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
		export_events(&e, EVENTS);
		export_events(&e, EVENTS); /* the next one fares better */
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_int_equal(attempts(&e, "refused"), 1);
		assert_int_equal(dropped(&e, "refused"), EVENTS);
		assert_int_equal(exported(&e), EVENTS);
		assert_int_equal(e.acks[0].error, -EREMOTEIO);
		assert_int_equal(e.acks[1].error, 0);
		finish(&e, &c, NULL, &messages);
		assert_has(&messages, final_cases[i].message);
		buf_fini(&messages);
	}
}

/* A refusal is an answer, too: the collector is there again, and what comes next neither waits nor counts as a retry. */
static void test_refused_when_back(void **state)
{
	struct collector c = collector_start(0, ANSWERS("503", "400:text=no", "202"));
	struct buf messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(e.acks[0].error, -EREMOTEIO);
	assert_int_equal(e.acks[1].error, 0);
	assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 1);
	finish(&e, &c, NULL, &messages);
	assert_has(&messages, "cannot reach ");
	assert_has(&messages, "answers again");
	assert_true(strstr(buf_text(&messages), "answers again") < strstr(buf_text(&messages), " refused "));
	buf_fini(&messages);
}

static void test_partial_success(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200:partial=3"));
	struct buf messages = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(counter(&e, "hearth_export_rejected_profiles_total", NULL), 3);
	assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 0);
	finish(&e, &c, NULL, &messages);
	assert_has(&messages, " did not take 3 of the profiles of a request: too old\n");
	buf_fini(&messages);
}

static void test_collector_comes_later(void **state)
{
	int port = free_port();
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	struct collector c;
	struct exporter e;

	(void)state;
	exporter_start(&e, port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	export_events(&e, EVENTS);
	wait_for_attempt(&e, "unreachable");
	c = collector_start(port, ANSWERS("200"));
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 2 * EVENTS);
	finish(&e, &c, &lines, &messages);
	assert_int_equal(count_lines(&lines), 2);
	assert_int_equal(count_lines(&messages), 2);
	buf_fini(&lines);
	buf_fini(&messages);
}

/* Nobody there: the queue keeps the youngest, flush gives up at its deadline, and each ack learns what happened. */
static void test_queue_bound(void **state)
{
	struct buf messages = BUF_EMPTY;
	struct exporter e;
	uint64_t start;

	(void)state;
	exporter_start(&e, free_port(), (struct otlp_sink_config){ .max_queue_bytes = 16 << 10 });
	export_events(&e, EVENTS);
	wait_for_attempt(&e, "unreachable"); /* that one is being sent and stays */
	for (int i = 0; i < 20; i++)
		export_events(&e, EVENTS);
	assert_true(dropped(&e, "queue full") > 0);
	assert_int_equal(e.acks[0].done, 0);
	assert_int_equal(e.acks[1].error, -ENOBUFS);
	assert_int_equal(e.acks[20].done, 0);
	start = clock_mono_ns();
	assert_int_equal(flush_for(&e, 100 * NSEC_PER_MSEC), -ETIMEDOUT);
	assert_in_range(clock_mono_ns() - start, 100 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
	assert_true(dropped(&e, "shutdown") >= 2 * EVENTS);
	assert_int_equal(e.acks[20].error, -ETIMEDOUT);
	finish(&e, NULL, NULL, &messages);
	assert_has(&messages, "is full");
	buf_fini(&messages);
}

/* A request larger than the whole queue cannot wait anywhere. */
static void test_queue_smaller_than_request(void **state)
{
	struct exporter e;

	(void)state;
	exporter_start(&e, free_port(), (struct otlp_sink_config){ .max_queue_bytes = 16 });
	export_events(&e, EVENTS);
	assert_int_equal(dropped(&e, "queue full"), EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	finish(&e, NULL, NULL, NULL);
}

/* flush() and free() do not wait for an answer that does not come. */
static void test_hanging_collector(void **state)
{
	struct collector c = collector_start(0, ANSWERS("hang=30"));
	struct exporter e;
	uint64_t start = clock_mono_ns();

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, 300 * NSEC_PER_MSEC), -ETIMEDOUT);
	assert_int_equal(dropped(&e, "unanswered"), EVENTS); /* it may have that one */
	assert_int_equal(dropped(&e, "shutdown"), 1);
	export_events(&e, EVENTS); /* it goes on after a flush that failed */
	finish(&e, &c, NULL, NULL);
	assert_in_range(clock_mono_ns() - start, 300 * NSEC_PER_MSEC, 15 * NSEC_PER_SEC);
}

/* While a flush waits, a long backoff is cut short: a collector that is back is used. */
static void test_flush_hurries(void **state)
{
	struct collector c = collector_start(0, ANSWERS("503", "503", "503", "503", "503", "200"));
	struct exporter e;
	uint64_t start;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, EVENTS);
	start = clock_mono_ns();
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_in_range(clock_mono_ns() - start, 0, 7 * NSEC_PER_SEC); /* unhurried: 7.75 s at the least */
	assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 5);
	finish(&e, &c, NULL, NULL);
}

static void test_nothing_to_send(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ 0 });
	export_events(&e, 0);
	assert_int_equal(e.acks[0].done, 1);
	finish(&e, &c, &lines, NULL);
	assert_string_equal(buf_text(&lines), "");
	buf_fini(&lines);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The token of the moment goes along; a file without one leaves the old, and one that was replaced during a refusal gets a
 * second try. */
static void test_token(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200", "200", "200", "slow401=1", "200", "401"));
	char path[] = "/tmp/hearth-token-XXXXXX";
	struct buf lines = BUF_EMPTY;
	struct exporter e;
	char url[64];

	(void)state;
	close(mkstemp(path));
	write_file(path, "first\n");
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", c.port);
	exporter_open(&e, (struct otlp_sink_config){ .url = url, .token_file = path });
	export_events(&e, 1);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	write_file(path, "second");
	export_events(&e, 2);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	write_file(path, "two words");
	export_events(&e, 4);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	export_events(&e, 8);
	collector_wait(&c, "slow401=1", &lines); /* it is on its way, and will be refused */
	write_file(path, "third\n");
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	export_events(&e, 16);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(dropped(&e, "refused"), 16);
	finish(&e, &c, &lines, NULL);
	assert_has(&lines, "Authorization=Bearer first sent=");
	assert_has(&lines, "Authorization=Bearer second sent=");
	assert_has(&lines, "answer=slow401=1 ");
	assert_has(&lines, "Authorization=Bearer third sent=");
	assert_int_equal(count_lines(&lines), 6);
	assert_null(strstr(buf_text(&lines), "words"));
	buf_fini(&lines);
	unlink(path);
}

/* The proxy is asked for the whole URL. */
static void test_proxy(void **state)
{
	struct collector c = collector_start(0, ANSWERS("200"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;
	char proxy[64];

	(void)state;
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", c.port);
	exporter_open(&e, (struct otlp_sink_config){ .url = "http://collector.invalid:4318", .proxy = proxy });
	export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	finish(&e, &c, &lines, NULL);
	assert_has(&lines, "path=http://collector.invalid:4318/v1development/profiles ");
	buf_fini(&lines);
}

struct config_case {
	struct otlp_sink_config config;
	int error;
};

static const char *const header_without_colon[] = { "Authorization Bearer x", NULL };
static const char *const header_with_newline[] = { "A: b\r\nC: d", NULL };
static const char *const header_good[] = { "Authorization: Bearer x", NULL };

static const struct config_case config_cases[] = {
	{ { .url = "http://127.0.0.1:1" }, 0 },
	{ { .url = "https://collector.example/own/path", .headers = header_good }, 0 },
	{ { .url = "" }, -EINVAL },
	{ { .url = "127.0.0.1:4317" }, 0 },
	{ { .url = "http://" }, -EINVAL },
	{ { .url = "http://host:99999" }, -EINVAL },
	{ { .url = "ftp://host/" }, -EPROTONOSUPPORT },
	{ { .url = "nonsense://host/" }, -EPROTONOSUPPORT },
	{ { .url = "http://h", .headers = header_without_colon }, -EBADMSG },
	{ { .url = "http://h", .headers = header_with_newline }, -EBADMSG },
	{ { .url = "https://h", .ca_file = "/nonexistent/ca.pem" }, -ENOENT },
	{ { .url = "https://h", .cert_file = "/nonexistent/cert.pem" }, -ENOENT },
	{ { .url = "https://h", .cert_file = "/dev/null", .key_file = "/nonexistent/key.pem" }, -ENOENT },
	{ { .url = "https://h", .token_file = "/nonexistent/token" }, -ENOENT },
	{ { .url = "https://h", .token_file = "/dev/null" }, -ENODATA },
};

static void test_configuration(void **state)
{
	struct metrics *metrics = metrics_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(config_cases); i++) {
		struct sink *s = NULL;
		int error = sink_otlp_new(&config_cases[i].config, metrics, &s);

		if (error != config_cases[i].error)
			fail_msg("'%s': %d, not %d", config_cases[i].config.url, error, config_cases[i].error);
		sink_free(s);
	}
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_split_without_gzip),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_final_answers),
		cmocka_unit_test(test_partial_success),
		cmocka_unit_test(test_refused_when_back),
		cmocka_unit_test(test_collector_comes_later),
		cmocka_unit_test(test_queue_bound),
		cmocka_unit_test(test_queue_smaller_than_request),
		cmocka_unit_test(test_hanging_collector),
		cmocka_unit_test(test_flush_hurries),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_refusal),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_everything_too_large),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_nothing_to_send),
		cmocka_unit_test(test_configuration),
	};

	setenv("no_proxy", "127.0.0.1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
