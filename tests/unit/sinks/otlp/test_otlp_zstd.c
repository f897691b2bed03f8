/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests packed by zstd: to collectors that take them, and that do not and say so in one way or another, over HTTP and
 * gRPC; from and into spools of gzip. Nothing is lost on the way to gzip, and it is gone once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/sinks/exporter.h"

static char dir[] = "/tmp/hearth-zstd-XXXXXX";
static bool has_h2;

static int setup(void **state)
{
	(void)state;
	has_h2 = system("/usr/bin/python3 -c 'import h2' 2>/dev/null") == 0;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct collector start(bool is_grpc, const char *const *answers)
{
	const char *arguments[MAX_ARGUMENTS] = { "/usr/bin/python3", TEST_DATA "/unit/sinks/grpc_collector.py", "0" };

	if (!is_grpc)
		return collector_start(0, answers);
	for (size_t i = 0; answers[i]; i++)
		arguments[3 + i] = answers[i];
	return collector_run(arguments);
}

static void open_to(struct exporter *e, bool is_grpc, int port, struct otlp_sink_config config)
{
	char url[64];

	snprintf(url, sizeof(url), "%s://127.0.0.1:%d", is_grpc ? "grpc" : "http", port);
	config.url = url;
	exporter_open(e, config);
}

static uint64_t repacked(struct exporter *e)
{
	return counter(e, "hearth_export_repacked_total", NULL);
}

static unsigned count_of(struct buf *text, const char *part)
{
	unsigned count = 0;

	for (const char *at = buf_text(text); (at = strstr(at, part)); at++)
		count++;
	return count;
}

/* Empty, small, and larger than the limit; in each form; with a token beside it. */
static void test_taken(void **state)
{
	static const struct {
		enum otlp_protocol protocol;
		bool is_grpc;
		const char *answer, *has;
	} rows[] = {
		{ OTLP_HTTP_PROTOBUF, false, "200", "Content-Type=application/x-protobuf Content-Encoding=zstd" },
		{ OTLP_HTTP_JSON, false, "200", "Content-Type=application/json Content-Encoding=zstd" },
		{ OTLP_GRPC, true, "OK", " grpc-encoding=zstd " },
	};
	char token[] = "/tmp/hearth-zstd-token-XXXXXX";
	int fd = mkstemp(token);

	(void)state;
	assert_int_equal(write(fd, "word\n", 5), 5);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
		struct collector c;
		struct exporter e;

		if (rows[i].is_grpc && !has_h2) {
			print_message("left out: gRPC no python3-h2\n");
			continue;
		}
		c = start(rows[i].is_grpc, ANSWERS(rows[i].answer));
		open_to(&e, rows[i].is_grpc, c.port,
			(struct otlp_sink_config){ .protocol = rows[i].protocol,
						   .packing = OTLP_ZSTD,
						   .token_file = token,
						   .max_export_bytes = 64 << 10 });
		export_events(&e, 0);
		export_events(&e, EVENTS);
		export_events(&e, 20000);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_int_equal(exported(&e), EVENTS + 20000);
		assert_int_equal(repacked(&e), 0);
		finish(&e, &c, &lines, &messages);
		assert_true(count_lines(&lines) > 3);
		assert_int_equal(count_of(&lines, rows[i].has), count_lines(&lines));
		assert_int_equal(count_of(&lines, "=Bearer word"), count_lines(&lines));
		for (const char *at = buf_text(&lines); (at = strstr(at, " size=")); at++)
			assert_in_range(strtoul(at + strlen(" size="), NULL, 10), 1, 64 << 10);
		assert_string_equal(buf_text(&messages), "");
		buf_fini(&lines);
		buf_fini(&messages);
	}
	unlink(token);
}

static const struct {
	bool is_grpc;
	const char *answer, *message;
} refusals[] = {
	{ false, "nozstd=415", "(status 415); sending them packed by gzip" },
	{ false, "nozstd=415:text=no such coding", "(status 415: no such coding); sending" },
	{ false, "nozstd=400:text=unsupported Content-Encoding: zstd", "(status 400: unsupported Content-Encoding: zstd)" },
	{ true, "nozstd=12:accept=identity,gzip", "(gRPC status 12 (UNIMPLEMENTED)); sending" },
	{ true, "nozstd=12:message=Decompressor is not installed for zstd", "(UNIMPLEMENTED): Decompressor is" },
	{ true, "nozstd=12:late=Unsupported Encoding", "(UNIMPLEMENTED): Unsupported Encoding)" },
};

/* The first request goes twice, what was queued meanwhile and comes later goes as gzip at once; it is said once. */
static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
		struct collector c;
		struct exporter e;

		if (refusals[i].is_grpc && !has_h2) {
			print_message("left out: gRPC no python3-h2\n");
			continue;
		}
		c = start(refusals[i].is_grpc, ANSWERS(refusals[i].answer));
		open_to(&e, refusals[i].is_grpc, c.port, (struct otlp_sink_config){ .packing = OTLP_ZSTD });
		for (int n = 0; n < 3; n++)
			export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		assert_int_equal(exported(&e), 4 * EVENTS);
		assert_int_equal(repacked(&e), 1);
		assert_int_equal(attempts(&e, "refused"), 1);
		assert_int_equal(attempts(&e, "ok"), 4);
		assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 0);
		for (unsigned n = 0; n < e.consumed; n++)
			assert_int_equal(e.acks[n].error, 0);
		finish(&e, &c, &lines, &messages);
		assert_int_equal(count_of(&lines, "ncoding=zstd"), 1);
		assert_int_equal(count_of(&lines, "ncoding=gzip "), 4);
		assert_int_equal(count_lines(&messages), 1);
		assert_has(&messages, " does not take requests packed by zstd ");
		assert_has(&messages, refusals[i].message);
		buf_fini(&lines);
		buf_fini(&messages);
	}
}

/* Refusals that are about other things, or that gzip does not mend, are final as they ever were. */
static void test_other_refusals(void **state)
{
	static const struct {
		bool is_grpc;
		enum otlp_packing packing;
		const char *answer;
		unsigned repacked;
	} rows[] = {
		{ false, OTLP_ZSTD, "400:text=no", 0 },
		{ false, OTLP_ZSTD, "404", 0 },
		{ false, OTLP_GZIP, "415", 0 },
		{ false, OTLP_UNPACKED, "415", 0 },
		{ false, OTLP_ZSTD, "415", 1 },
		{ true, OTLP_ZSTD, "12:message=unknown service", 0 },
		{ true, OTLP_ZSTD, "12:accept=identity,gzip,zstd", 0 },
		{ true, OTLP_ZSTD, "3:message=bad encoding", 0 },
		{ true, OTLP_ZSTD, "http=415", 0 },
		{ true, OTLP_GZIP, "12:accept=identity", 0 },
		{ true, OTLP_ZSTD, "12:accept=identity", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf messages = BUF_EMPTY;
		struct collector c;
		struct exporter e;

		if (rows[i].is_grpc && !has_h2)
			continue;
		c = start(rows[i].is_grpc, ANSWERS(rows[i].answer));
		open_to(&e, rows[i].is_grpc, c.port, (struct otlp_sink_config){ .packing = rows[i].packing });
		export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		if (repacked(&e) != rows[i].repacked || attempts(&e, "refused") != 1 + rows[i].repacked)
			fail_msg("row %zu: %d", i, (int)repacked(&e));
		assert_int_equal(dropped(&e, "refused"), EVENTS);
		assert_int_equal(e.acks[0].error, -EREMOTEIO);
		finish(&e, &c, NULL, &messages);
		assert_has(&messages, " refused 100 samples ");
		buf_fini(&messages);
	}
}

/* A collector that finds a request too large, or is away between: as with gzip. */
static void test_split_and_retry(void **state)
{
	struct collector c = collector_start(0, ANSWERS("503", "limit=40000"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;

	(void)state;
	open_to(&e, false, c.port, (struct otlp_sink_config){ .packing = OTLP_ZSTD });
	export_events(&e, 20000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(exported(&e), 20000);
	assert_true(counter(&e, "hearth_export_splits_total", NULL) > 0);
	assert_int_equal(counter(&e, "hearth_export_retries_total", NULL), 1);
	finish(&e, &c, &lines, NULL);
	assert_int_equal(count_of(&lines, "ncoding=zstd"), count_lines(&lines));
	buf_fini(&lines);
}

/* However a request was packed when it went into the spool, it is sent as the collector takes it. */
static void test_spool(void **state)
{
	static const struct {
		enum otlp_packing kept, sent;
		const char *answer, *encoding;
		unsigned repacked;
	} rows[] = {
		{ OTLP_GZIP, OTLP_ZSTD, "200", "ncoding=zstd", 0 },
		{ OTLP_ZSTD, OTLP_ZSTD, "200", "ncoding=zstd", 0 },
		{ OTLP_UNPACKED, OTLP_ZSTD, "200", "ncoding=zstd", 0 },
		{ OTLP_ZSTD, OTLP_GZIP, "200", "ncoding=gzip", 0 },
		{ OTLP_ZSTD, OTLP_UNPACKED, "200", "ncoding=None", 0 },
		{ OTLP_ZSTD, OTLP_ZSTD, "nozstd=415", "ncoding=gzip", 1 },
		{ OTLP_GZIP, OTLP_GZIP, "200", "ncoding=gzip", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int port = free_port();
		struct buf lines = BUF_EMPTY;
		struct collector c;
		struct exporter e;
		uint64_t until;

		open_to(&e, false, port, (struct otlp_sink_config){ .packing = rows[i].kept, .spool_dir = dir });
		for (int n = 0; n < 3; n++)
			export_events(&e, EVENTS);
		assert_int_equal(flush_for(&e, LONG_NS), 0);
		e.spooled_after = 3 * EVENTS;
		finish(&e, NULL, NULL, NULL);
		c = collector_start(port, ANSWERS(rows[i].answer));
		open_to(&e, false, port, (struct otlp_sink_config){ .packing = rows[i].sent, .spool_dir = dir });
		e.spooled_before = 3 * EVENTS;
		until = clock_mono_ns() + LONG_NS;
		while (exported(&e) < 3 * EVENTS && clock_mono_ns() < until)
			usleep(1000);
		assert_int_equal(exported(&e), 3 * EVENTS);
		assert_int_equal(repacked(&e), rows[i].repacked);
		finish(&e, &c, &lines, NULL);
		assert_int_equal(count_lines(&lines), 3 + rows[i].repacked);
		assert_int_equal(count_of(&lines, rows[i].encoding), 3);
		buf_fini(&lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),	       cmocka_unit_test(test_refused),
		cmocka_unit_test(test_other_refusals), cmocka_unit_test(test_split_and_retry),
		cmocka_unit_test(test_spool),
	};

	setenv("no_proxy", "127.0.0.1", 1);
	return cmocka_run_group_tests(tests, setup, teardown);
}
