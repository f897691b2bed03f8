/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter with a spool: collectors that come and go, exporters that come and go, and the books between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/sinks/exporter.h"

static char dir[] = "/tmp/hearth-spool-XXXXXX";

static int setup(void **state)
{
	(void)state;
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static uint64_t spooled(struct exporter *e)
{
	return metric_get(metrics_gauge(e->metrics, "hearth_spool_samples", NULL, ""));
}

static void wait_for(struct exporter *e, uint64_t (*value)(struct exporter *e), uint64_t want)
{
	uint64_t until = clock_mono_ns() + LONG_NS;

	while (value(e) != want && clock_mono_ns() < until)
		usleep(1000);
	assert_int_equal(value(e), want);
}

/* A request of @signal with one empty record in it: one event in the books. */
static void export_other(struct exporter *e, enum otlp_signal signal)
{
	static const uint8_t request[] = { 0x0a, 0x04, 0x12, 0x02, 0x12, 0x00 };
	struct counted_ack *ack = &e->acks[e->consumed++];

	ack->ack.done = counted_done;
	e->samples++;
	assert_int_equal(sink_consume_other(e->sink, signal, request, sizeof(request), &ack->ack), 0);
}

/* Logs, metrics and traces go to places of their own, are acknowledged when the collector or the disk has them, and the next
 * start knows them apart. */
static void test_other_signals(void **state)
{
	const struct otlp_sink_config spooling = { .spool_dir = dir },
				      json = { .spool_dir = dir, .protocol = OTLP_HTTP_JSON };
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	int port = free_port();
	struct collector c;
	struct exporter e;

	(void)state;
	exporter_start(&e, port, spooling);
	export_events(&e, EVENTS);
	export_other(&e, OTLP_LOGS);
	export_other(&e, OTLP_METRICS);
	wait_for(&e, spooled, EVENTS + 2);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	for (unsigned i = 0; i < e.consumed; i++)
		assert_true(e.acks[i].done == 1 && !e.acks[i].error);
	e.spooled_after = EVENTS + 2;
	finish(&e, NULL, NULL, &messages);

	c = collector_start(port, ANSWERS("200", "200", "200", "200", "404:text=no logs here", "503:after=1", "200"));
	exporter_start(&e, port, json);
	e.spooled_before = EVENTS + 2;
	wait_for(&e, spooled, 0);
	export_other(&e, OTLP_TRACES);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	export_other(&e, OTLP_LOGS); /* refused: the producer learns it */
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(e.acks[0].error, 0);
	assert_int_equal(e.acks[1].error, -EREMOTEIO);
	export_other(&e, OTLP_LOGS); /* come again: the disk has it until then */
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(e.acks[2].error, 0);
	wait_for(&e, spooled, 0);
	for (enum otlp_signal signal = 0; signal < OTLP_OTHERS; signal++) {
		char label[32];

		snprintf(label, sizeof(label), "signal=\"%s\"", otlp_signal_name(signal));
		assert_int_equal(counter(&e, "hearth_forwarded_requests_total", label), signal == OTLP_LOGS ? 2 : 1);
	}
	finish(&e, &c, &lines, &messages);
	assert_has(&lines, "path=/v1development/profiles");
	assert_has(&lines, "path=/v1/logs Content-Type=application/json");
	assert_has(&lines, "path=/v1/metrics Content-Type=application/json");
	assert_has(&lines, "path=/v1/traces Content-Type=application/json");
	assert_has(&messages, "refused a request of logs with status 404: no logs here");
	buf_fini(&lines);
	buf_fini(&messages);
}

/* Nobody there: everything is on the disk soon, acknowledged, whatever the queue could hold. Another exporter, over another
 * protocol, delivers it to a collector that came meanwhile. */
static void test_next_start_delivers(void **state)
{
	const struct otlp_sink_config config = { .spool_dir = dir, .max_queue_bytes = 1 << 20 };
	struct buf lines = BUF_EMPTY, messages = BUF_EMPTY;
	int port = free_port();
	struct collector c;
	struct exporter e;

	(void)state;
	exporter_start(&e, port, config);
	export_events(&e, EVENTS);
	wait_for(&e, spooled, EVENTS);
	for (int i = 0; i < 50; i++)
		export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_int_equal(spooled(&e), 51 * EVENTS);
	for (int i = 0; i < 51; i++)
		assert_int_equal(e.acks[i].error, 0);
	e.spooled_after = 51 * EVENTS;
	finish(&e, NULL, NULL, &messages);
	assert_has(&messages, "; keeping up to 512 MiB in ");
	assert_has(&messages, "5100 samples for http://127.0.0.1:");

	c = collector_start(port, ANSWERS("200"));
	exporter_start(&e, port, config);
	e.spooled_before = 51 * EVENTS;
	export_events(&e, 7);
	wait_for(&e, exported, 51 * EVENTS + 7);
	wait_for(&e, spooled, 0);
	finish(&e, &c, &lines, NULL);
	assert_int_equal(count_lines(&lines), 52);
	buf_fini(&lines);
	buf_fini(&messages);
}

/* Fresh requests and old ones go by turns: neither waits for all of the other. */
static void test_turns(void **state)
{
	const struct otlp_sink_config config = { .spool_dir = dir };
	struct buf lines = BUF_EMPTY;
	int port = free_port();
	const char *text, *fresh;
	struct collector c;
	struct exporter e;

	(void)state;
	exporter_start(&e, port, config);
	for (int i = 0; i < 30; i++)
		export_events(&e, 10);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	e.spooled_after = 300;
	finish(&e, NULL, NULL, NULL);
	c = collector_start(port, ANSWERS("slow=0.1", "200"));
	exporter_start(&e, port, config);
	e.spooled_before = 300;
	for (int i = 0; i < 5; i++)
		export_events(&e, 11); /* while the first old one is on its way */
	wait_for(&e, exported, 355);
	finish(&e, &c, &lines, NULL);
	text = buf_text(&lines);
	fresh = text;
	for (int i = 0; i < 5; i++) {
		fresh = strstr(fresh + 1, " events=11 ");
		assert_non_null(fresh);
	}
	*(char *)(uintptr_t)fresh = '\0'; /* by then as many old ones, or one more or less */
	assert_in_range(count_lines(&lines), 8, 10);
	buf_fini(&lines);
}

/* In flight at the end: it is not lost, and not acknowledged as delivered. */
static void test_hanging_collector(void **state)
{
	struct collector c = collector_start(0, ANSWERS("hang=300"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .spool_dir = dir, .timeout_ns = 300 * NSEC_PER_SEC });
	export_events(&e, EVENTS);
	export_events(&e, EVENTS);
	collector_wait(&c, "hang=300", &lines);
	assert_int_equal(flush_for(&e, 300 * NSEC_PER_MSEC), 0);
	assert_int_equal(spooled(&e), 2 * EVENTS);
	e.spooled_after = 2 * EVENTS;
	finish(&e, &c, &lines, NULL);
	buf_fini(&lines);
}

/* A collector that goes in the middle, more than once, and what it had acknowledged is not sent again. */
static void test_comes_and_goes(void **state)
{
	struct collector c = collector_start(
		0, ANSWERS("200", "503", "503", "close", "200", "cut", "200", "429:after=1", "200"));
	struct buf lines = BUF_EMPTY;
	struct exporter e;

	(void)state;
	exporter_start(&e, c.port, (struct otlp_sink_config){ .spool_dir = dir });
	for (int i = 0; i < 20; i++) {
		export_events(&e, EVENTS);
		usleep(20000);
	}
	wait_for(&e, exported, 20 * EVENTS);
	wait_for(&e, spooled, 0);
	assert_true(counter(&e, "hearth_spooled_samples_total", NULL) > 0);
	finish(&e, &c, &lines, NULL); /* and it saw no more than that */
	assert_int_equal(count_lines(&lines), 25);
	buf_fini(&lines);
}

/* A refusal is final for what was spooled too; what is too large is split. */
static void test_refusals(void **state)
{
	const struct otlp_sink_config config = { .spool_dir = dir };
	int port = free_port();
	struct collector c;
	struct exporter e;

	(void)state;
	exporter_start(&e, port, config);
	export_events(&e, 1);
	export_events(&e, 5000);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	e.spooled_after = 5001;
	finish(&e, NULL, NULL, NULL);
	c = collector_start(port, ANSWERS("400", "limit=40000"));
	exporter_start(&e, port, config);
	e.spooled_before = 5001;
	wait_for(&e, exported, 5000);
	assert_int_equal(dropped(&e, "refused"), 1);
	finish(&e, &c, NULL, NULL);
}

/* The disk's share is bounded: the oldest goes, counted. */
static void test_bound(void **state)
{
	struct exporter e;

	(void)state;
	exporter_start(&e, free_port(), (struct otlp_sink_config){ .spool_dir = dir, .spool_bytes = 128 << 10 });
	for (int i = 0; i < MAX_REQUESTS; i++)
		export_events(&e, EVENTS);
	assert_int_equal(flush_for(&e, LONG_NS), 0);
	assert_true(dropped(&e, "spool full") > 0);
	assert_in_range(metric_get(metrics_gauge(e.metrics, "hearth_spool_bytes", NULL, "")), 1, 128 << 10);
	e.spooled_after = spooled(&e);
	assert_true(e.spooled_after > 0);
	finish(&e, NULL, NULL, NULL);
}

static void test_one_exporter_a_spool(void **state)
{
	struct otlp_sink_config config = { .url = "http://127.0.0.1:1", .spool_dir = dir };
	struct sink *first = NULL, *second = NULL, *other = NULL;
	struct metrics *metrics = metrics_new();

	(void)state;
	assert_int_equal(sink_otlp_new(&config, metrics, &first), 0);
	assert_int_equal(sink_otlp_new(&config, metrics, &second), -EBUSY);
	config.url = "http://127.0.0.1:2";
	assert_int_equal(sink_otlp_new(&config, metrics, &other), 0);
	sink_free(first);
	sink_free(other);
	metrics_free(metrics);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_next_start_delivers),	 CASE(test_turns),	   CASE(test_hanging_collector),
		CASE(test_comes_and_goes),	 CASE(test_refusals),	   CASE(test_bound),
		CASE(test_one_exporter_a_spool), CASE(test_other_signals),
	};

	setenv("no_proxy", "127.0.0.1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
