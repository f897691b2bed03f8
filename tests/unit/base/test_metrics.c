/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics registry: its text, its bound, its stable series, and adding from several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

static struct metrics *m;

static int setup(void **state)
{
	(void)state;
	m = metrics_new();
	return m ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	metrics_free(m);
	return 0;
}

static void refresh(void *arg)
{
	metric_set(metrics_gauge(m, "hearth_queue_items", NULL, "Items waiting."), ++*(uint64_t *)arg);
}

static void test_text(void **state)
{
	struct buf labels AUTO(buf_fini) = BUF_EMPTY, out AUTO(buf_fini) = BUF_EMPTY;
	uint64_t items = 6;

	(void)state;
	metrics_label(&labels, "file", "a\\b\"c\nd", 7);
	metrics_label(&labels, "n", "12345", 2);
	metric_add(metrics_counter(m, "hearth_samples_total", "reason=\"root\"", "Samples.\nBy \"reason\" \\ end."), 2);
	metric_add(metrics_counter(m, "hearth_lost_total", NULL, "Lost."), UINT64_MAX);
	metric_add(metrics_counter(m, "hearth_samples_total", buf_text(&labels), "Samples."), 3);
	metric_add(metrics_counter(m, "hearth_samples_total", "a=\"b\"", "Samples."), 0);
	metric_add(metrics_counter(m, "hearth_samples_total", "reason=\"root\"", "Samples."), 5);
	assert_int_equal(metrics_on_collect(m, refresh, &items), 0);
	metrics_write(m, &out);
	assert_string_equal(buf_text(&out), "# HELP hearth_lost_total Lost.\n"
					    "# TYPE hearth_lost_total counter\n"
					    "hearth_lost_total 18446744073709551615\n"
					    "# HELP hearth_queue_items Items waiting.\n"
					    "# TYPE hearth_queue_items gauge\n"
					    "hearth_queue_items 7\n"
					    "# HELP hearth_samples_total Samples.\\nBy \"reason\" \\\\ end.\n"
					    "# TYPE hearth_samples_total counter\n"
					    "hearth_samples_total{reason=\"root\"} 7\n"
					    "hearth_samples_total{file=\"a\\\\b\\\"c\\nd\",n=\"12\"} 3\n"
					    "hearth_samples_total{a=\"b\"} 0\n");
}

static void append_series(void *arg, const char *name, const char *labels, uint64_t value)
{
	buf_printf(arg, "%s{%s}=%lu ", name, labels, (unsigned long)value);
}

/* Nanoseconds are written in seconds, with all digits. */
static void test_seconds(void **state)
{
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	static const uint64_t more_ns[] = { 1, 999999999, 12 * NSEC_PER_SEC, UINT64_MAX - 13 * NSEC_PER_SEC };
	static const char *const told[] = { "0.000000001", "1.000000000", "13.000000000", "18446744073.709551615" };
	struct metric *ns = metrics_seconds(m, "time_seconds_total", "of=\"x\"", "Time.");
	char want[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		metric_add(ns, more_ns[i]);
		buf_reset(&out);
		metrics_write(m, &out);
		snprintf(want, sizeof(want),
			 "# HELP time_seconds_total Time.\n# TYPE time_seconds_total counter\ntime_seconds_total{of=\"x\"} "
			 "%s\n",
			 told[i]);
		assert_string_equal(buf_text(&out), want);
	}
	buf_reset(&out);
	metrics_each(m, append_series, &out);
	assert_string_equal(buf_text(&out), "time_seconds_total{of=\"x\"}=18446744073 ");
}

static void test_each(void **state)
{
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	uint64_t items = 0;

	(void)state;
	metric_add(metrics_counter(m, "z_total", "x=\"2\"", "Z."), 1);
	metric_add(metrics_counter(m, "z_total", "x=\"1\"", "Z."), 2);
	metric_set(metrics_gauge(m, "a", NULL, "A."), 3);
	assert_int_equal(metrics_on_collect(m, refresh, &items), 0);
	metrics_each(m, append_series, &out);
	assert_string_equal(buf_text(&out), "a{}=3 hearth_queue_items{}=1 z_total{x=\"2\"}=1 z_total{x=\"1\"}=2 ");
}

static void test_same_series_and_bound(void **state)
{
	static struct metric *first[10000];
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	char labels[32];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(first); i++) {
			struct metric *s;

			snprintf(labels, sizeof(labels), "i=\"%zu\"", i / 2);
			s = metrics_counter(m, i % 2 ? "odd_total" : "even_total", labels, "Many.");
			assert_non_null(s);
			if (!round)
				first[i] = s;
			assert_ptr_equal(s, first[i]);
			metric_add(s, i);
			assert_int_equal(metric_get(s), i * (size_t)(round + 1));
		}
	}
	assert_null(metrics_counter(m, "odd_total", "i=\"one too many\"", "Many."));
	assert_null(metrics_gauge(m, "new_name", NULL, "Too many."));
	metric_add(NULL, 1);
	metric_set(NULL, 1);
	assert_int_equal(metric_get(NULL), 0);
	metrics_write(m, &out);
	assert_null(strstr(buf_text(&out), "new_name"));
}

enum { THREADS = 4, ADDS = 20000 };

static void *add_many(void *arg)
{
	char labels[32];

	(void)arg;
	for (int i = 0; i < ADDS; i++) {
		snprintf(labels, sizeof(labels), "i=\"%d\"", i % 50);
		metric_add(metrics_counter(m, "shared_total", labels, "Shared."), 1);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	char labels[32];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 50; i++) {
		snprintf(labels, sizeof(labels), "i=\"%d\"", i);
		assert_int_equal(metric_get(metrics_counter(m, "shared_total", labels, "Shared.")), THREADS * ADDS / 50);
	}
}

static void append_labels(void *arg, const char *name, const char *labels, uint64_t value)
{
	(void)name;
	buf_printf(arg, "%s %" PRIu64 ",", labels, value);
}

/* First, middle and last of a family go; what stays stays in order, and a name can come back, from 0. */
static void test_remove(void **state)
{
	static const char *const labels[] = { "n=\"0\"", "n=\"1\"", "n=\"2\"", "n=\"3\"" };
	static const struct {
		unsigned index;
		const char *left;
	} steps[] = {
		{ 1, "n=\"0\" 1,n=\"2\" 3,n=\"3\" 4," },
		{ 3, "n=\"0\" 1,n=\"2\" 3," },
		{ 0, "n=\"2\" 3," },
		{ 2, "" },
	};
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	struct metric *series[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		series[i] = metrics_counter(m, "hearth_some_total", labels[i], "Some.");
		metric_add(series[i], i + 1);
	}
	metrics_remove(m, NULL);
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		metrics_remove(m, series[steps[i].index]);
		buf_reset(&out);
		metrics_each(m, append_labels, &out);
		assert_string_equal(buf_text(&out), steps[i].left);
	}
	metric_add(metrics_counter(m, "hearth_some_total", labels[1], "Some."), 7);
	metric_add(metrics_counter(m, "hearth_some_total", labels[3], "Some."), 9);
	buf_reset(&out);
	metrics_each(m, append_labels, &out);
	assert_string_equal(buf_text(&out), "n=\"1\" 7,n=\"3\" 9,");
}

/* --- of two processes --- */

static void pass_on(void *arg, const struct metric_view *view)
{
	assert_int_equal(metrics_other(arg, view), 0);
}

/* What another process counted stands in its own series or is added to ours, once however often it is told, and lasts longer
 * than the texts. */
static void test_other(void **state)
{
	struct metrics *other = metrics_new();
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	struct metric_view wrong = { .name = "hearth_a_total", .help = "", .type = "gauge" };

	(void)state;
	assert_non_null(other);
	metric_add(metrics_counter(m, "hearth_a_total", "x=\"1\"", "A."), 2);
	metric_add(metrics_counter(other, "hearth_a_total", "x=\"1\"", "A."), 3);
	metric_add(metrics_counter(other, "hearth_a_total", "x=\"2\"", "A."), 4);
	metric_set(metrics_gauge(other, "hearth_b_items", NULL, "B."), 5);
	metric_add(metrics_seconds(other, "hearth_c_seconds_total", NULL, "C."), 6 * NSEC_PER_SEC);
	metrics_view(other, pass_on, m);
	metrics_view(other, pass_on, m);
	assert_int_equal(metrics_other(m, &wrong), -EINVAL);
	wrong = (struct metric_view){ .name = "hearth_c_seconds_total", .help = "", .type = "counter" };
	assert_int_equal(metrics_other(m, &wrong), -EINVAL);
	metrics_free(other);
	metrics_write(m, &out);
	assert_string_equal(buf_text(&out), "# HELP hearth_a_total A.\n"
					    "# TYPE hearth_a_total counter\n"
					    "hearth_a_total{x=\"1\"} 5\n"
					    "hearth_a_total{x=\"2\"} 4\n"
					    "# HELP hearth_b_items B.\n"
					    "# TYPE hearth_b_items gauge\n"
					    "hearth_b_items 5\n"
					    "# HELP hearth_c_seconds_total C.\n"
					    "# TYPE hearth_c_seconds_total counter\n"
					    "hearth_c_seconds_total 6.000000000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seconds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_series_and_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remove, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
