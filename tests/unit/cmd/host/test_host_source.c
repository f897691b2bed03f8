/* SPDX-License-Identifier: Apache-2.0 */
/* Readings on their way: a made-up root, what is encoded, what a stage in front changes, and what nobody takes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cmd/host/host_source.h"
#include "proto/otlp/signals.h"
#include "sinks/stage/stage.h"

static char folder[64];

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	strcpy(folder, "/tmp/test_host_source.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/proc", folder);
	if (mkdir(path, 0755))
		return -1;
	put("stat", "cpu 1 1 1 1\ncpu0 100 0 0 0\nbtime 1700000000\n");
	put("loadavg", "0.50 0.25 0.00 1/2 3\n");
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* A sink that keeps the last request as JSON. */
struct keeping {
	struct sink sink;
	struct buf json;
	unsigned count;
	int error;
};

static int keep_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct keeping *k = (struct keeping *)sink;
	struct otlp_other other;
	struct otlp_error why;

	(void)ack;
	assert_int_equal(signal, OTLP_METRICS);
	if (k->error)
		return k->error;
	assert_int_equal(otlp_other_decode(signal, false, data, len, &other, &why), 0);
	buf_reset(&k->json);
	assert_int_equal(otlp_other_json_encode(&other, &k->json), 0);
	otlp_other_fini(&other);
	k->count++;
	return 0;
}

static void keep_free(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops keep_ops = { .name = "keep", .consume_other = keep_other, .free = keep_free };

static uint64_t counted(struct metrics *metrics, const char *line)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *at;

	metrics_write(metrics, &text);
	at = strstr(buf_text(&text), line);
	if (!at)
		fail_msg("no %s in %s", line, buf_text(&text));
	return strtoull(at + strlen(line), NULL, 10);
}

static void has(const struct keeping *k, const char *text)
{
	if (!strstr(buf_text((struct buf *)&k->json), text))
		fail_msg("no %s in %s", text, buf_text((struct buf *)&k->json));
}

static struct profiles *a_host(void)
{
	static const char *const attributes[] = { "host.name", "a", "os.type", "linux" };
	struct profiles *p = NULL;

	assert_int_equal(host_resource_new(attributes, 2, &p), 0);
	return p;
}

static void test_ways(void **state)
{
	struct stage_edit edit = { .action = EDIT_UPSERT,
				   .key = "host.name",
				   .value = { .kind = VALUE_STRING, .string = STR("b") } };
	const struct stage_edits edits = { .items = &edit, .count = 1 };
	const struct host_config config = { .root = folder, .has = { [HOST_CPU] = true, [HOST_LOAD] = true } };
	struct keeping first = { .sink.ops = &keep_ops }, second = first;
	struct metrics *metrics = metrics_new();
	struct profiles *host = a_host();
	struct host_source *s;
	struct sink *end;

	(void)state;
	assert_int_equal(host_source_new(&config, host, metrics, &s), 0);
	profiles_put(host);
	assert_int_equal(host_source_end(s, &first.sink, &end), 0);
	assert_int_equal(host_source_add(s, end), 0);
	assert_int_equal(host_source_end(s, &second.sink, &end), 0);
	assert_int_equal(stage_edit_new(&edits, end, metrics, &end), 0);
	assert_int_equal(host_source_add(s, end), 0);
	host_source_read(s);
	has(&first, "\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":{\"stringValue\":\"a\"}},"
		    "{\"key\":\"os.type\",\"value\":{\"stringValue\":\"linux\"}}]}");
	has(&second, "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"b\"}}");
	has(&first, "\"name\":\"system.cpu.time\"");
	has(&first, "\"unit\":\"s\"");
	has(&first, "\"isMonotonic\":true");
	has(&first, "\"aggregationTemporality\":2");
	has(&first, "\"startTimeUnixNano\":\"1700000000000000000\"");
	has(&first, "\"gauge\":{\"dataPoints\":[{\"startTimeUnixNano\":\"1700000000000000000\"");
	has(&first, "\"asDouble\":0.25");
	has(&first, "\"name\":\"hearth.hostmetrics\"");
	has(&first, "\"schemaUrl\":\"https://opentelemetry.io/schemas/1.9.0\"");
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_points_total "), 2 * 7);
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_dropped_points_total "), 0);
	host_source_free(s);
	metrics_free(metrics);
	buf_fini(&first.json);
	buf_fini(&second.json);
}

/* The time of the start does not move with btime; what is unread or not taken is counted, the rest goes on. */
static void test_losses(void **state)
{
	const struct host_config config = { .root = folder, .has = { [HOST_CPU] = true, [HOST_MEMORY] = true } };
	struct keeping kept = { .sink.ops = &keep_ops };
	struct metrics *metrics = metrics_new();
	struct profiles *host = a_host();
	struct host_source *s;
	struct sink *end;

	(void)state;
	assert_int_equal(host_source_new(&config, host, metrics, &s), 0);
	profiles_put(host);
	assert_int_equal(host_source_end(s, &kept.sink, &end), 0);
	assert_int_equal(host_source_add(s, end), 0);
	host_source_read(s);
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_unread_total{scraper=\"memory\"} "), 1);
	put("stat", "cpu0 200 0 0 0\ncpu1 1 x\nbtime 1700000001\n");
	host_source_read(s);
	has(&kept, "\"startTimeUnixNano\":\"1700000000000000000\"");
	has(&kept, "\"asDouble\":2");
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_bad_lines_total{scraper=\"cpu\"} "), 1);
	kept.error = -EOPNOTSUPP;
	host_source_read(s);
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_dropped_points_total "), 4);
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_points_total "), 8);
	put("stat", "");
	host_source_read(s); /* nothing to tell, nothing sent */
	assert_int_equal(kept.count, 2);
	assert_int_equal(counted(metrics, "\nhearth_host_metrics_unread_total{scraper=\"cpu\"} "), 1);
	host_source_free(s);
	metrics_free(metrics);
	buf_fini(&kept.json);
}

/* The thread reads after the delay, and then each interval, until it is stopped. */
static void test_thread(void **state)
{
	const struct host_config config = {
		.root = folder, .has = { [HOST_LOAD] = true }, .interval_ns = 20 * NSEC_PER_MSEC, .delay_ns = NSEC_PER_MSEC
	};
	struct keeping kept = { .sink.ops = &keep_ops };
	struct metrics *metrics = metrics_new();
	struct profiles *host = a_host();
	const uint64_t start_ns = clock_mono_ns();
	struct host_source *s;
	struct sink *end;

	(void)state;
	assert_int_equal(host_source_new(&config, host, metrics, &s), 0);
	profiles_put(host);
	assert_int_equal(host_source_end(s, &kept.sink, &end), 0);
	assert_int_equal(host_source_add(s, end), 0);
	assert_int_equal(host_source_start(s), 0);
	while (counted(metrics, "\nhearth_host_metrics_points_total ") < 9 && clock_mono_ns() - start_ns < 10 * NSEC_PER_SEC)
		usleep(1000);
	assert_true(clock_mono_ns() - start_ns >= 40 * NSEC_PER_MSEC);
	host_source_stop(s);
	host_source_stop(s);
	assert_true(kept.count >= 3);
	host_source_free(s);
	metrics_free(metrics);
	buf_fini(&kept.json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
