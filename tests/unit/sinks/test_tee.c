/* SPDX-License-Identifier: Apache-2.0 */
/* Small sinks: two of them behind one another, the one that forgets, and the one that counts aloud. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "sinks/sink_type.h"
#include "tests/unit/proto/text_profiles.h"

extern const struct sink_type sink_type_count, sink_type_null, sink_type_prometheus;

/* A sink that writes down what it is told, and answers as the test wants. */
struct noting {
	struct sink sink;
	char name; /* in the notes */
	int consumes, flushes;
	uint64_t deadline_ns;
};

static char notes[64];

static void note(const struct sink *sink, char what)
{
	const size_t len = strlen(notes);

	notes[len] = what;
	notes[len + 1] = ((const struct noting *)sink)->name;
}

static int note_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	assert_non_null(p);
	assert_null(ack);
	note(sink, 'c');
	return ((struct noting *)sink)->consumes;
}

static int note_flush(struct sink *sink, uint64_t deadline_ns)
{
	((struct noting *)sink)->deadline_ns = deadline_ns;
	note(sink, 'f');
	return ((struct noting *)sink)->flushes;
}

static void note_free(struct sink *sink)
{
	note(sink, 'e');
}

static const struct sink_ops noting_ops = {
	.name = "noting", .consume = note_consume, .flush = note_flush, .free = note_free
};

struct tee {
	struct metrics *metrics;
	struct noting first, second;
	struct sink *sink;
	struct profiles *p; /* of five samples */
};

static void begin(struct tee *t)
{
	memset(notes, 0, sizeof(notes));
	*t = (struct tee){ .metrics = metrics_new(),
			   .first = { .sink.ops = &noting_ops, .name = '1' },
			   .second = { .sink.ops = &noting_ops, .name = '2' },
			   .p = text_profiles("app;main@app 5\n", 0) };
	assert_int_equal(sink_tee_new(&t->first.sink, &t->second.sink, t->metrics, &t->sink), 0);
}

static uint64_t dropped(const struct tee *t)
{
	return metric_get(metrics_counter(t->metrics, "hearth_sink_dropped_samples_total",
					  "sink=\"noting\",reason=\"queue full\"", ""));
}

static void end(struct tee *t)
{
	sink_free(t->sink);
	assert_string_equal(notes + strlen(notes) - 4, "e1e2");
	profiles_put(t->p);
	metrics_free(t->metrics);
}

static void test_both_get_it(void **state)
{
	struct tee t;

	(void)state;
	begin(&t);
	assert_int_equal(sink_consume(t.sink, t.p, NULL), 0);
	assert_string_equal(notes, "c1c2");
	assert_int_equal(dropped(&t), 0);
	end(&t);
}

/* The first one's error is told, and the second one gets it all the same. */
static void test_the_first_fails(void **state)
{
	struct tee t;

	(void)state;
	begin(&t);
	t.first.consumes = -EIO;
	assert_int_equal(sink_consume(t.sink, t.p, NULL), -EIO);
	assert_string_equal(notes, "c1c2");
	assert_int_equal(dropped(&t), 0);
	end(&t);
}

/* The second one's error is counted, in samples, and told to nobody. */
static void test_the_second_fails(void **state)
{
	struct tee t;

	(void)state;
	begin(&t);
	t.second.consumes = -EAGAIN;
	assert_int_equal(sink_consume(t.sink, t.p, NULL), 0);
	assert_int_equal(dropped(&t), 5);
	assert_int_equal(sink_consume(t.sink, t.p, NULL), 0);
	assert_int_equal(dropped(&t), 10);
	end(&t);
}

static void test_flush(void **state)
{
	static const struct {
		int first, second, told;
	} cases[] = { { 0, 0, 0 }, { -EIO, 0, -EIO }, { 0, -ETIMEDOUT, -ETIMEDOUT }, { -EIO, -ETIMEDOUT, -EIO } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tee t;

		begin(&t);
		t.first.flushes = cases[i].first;
		t.second.flushes = cases[i].second;
		assert_int_equal(sink_flush(t.sink, 77), cases[i].told);
		assert_string_equal(notes, "f1f2");
		assert_int_equal(t.first.deadline_ns, 77);
		assert_int_equal(t.second.deadline_ns, 77);
		end(&t);
	}
}

/* Logs, metrics and traces are not for a tee. */
static void test_other_signals(void **state)
{
	struct tee t;

	(void)state;
	begin(&t);
	assert_int_equal(sink_consume_other(t.sink, OTLP_LOGS, (const uint8_t *)"x", 1, NULL), -EOPNOTSUPP);
	end(&t);
}

/* --- null, prometheus --- */

static void test_null_takes_all(void **state)
{
	struct profiles *p = text_profiles("app;main@app 5\n", 0);
	const struct sink_settings settings = { .receives = false };
	struct buf error = BUF_EMPTY;
	struct sink *sink = NULL;

	(void)state;
	assert_int_equal(sink_type_null.make(&settings, NULL, &sink, &error), 0);
	assert_string_equal(sink->ops->name, "null");
	assert_int_equal(sink_consume(sink, p, NULL), 0);
	assert_int_equal(sink_consume_other(sink, OTLP_TRACES, (const uint8_t *)"x", 1, NULL), 0);
	assert_false(sink->ops->durable);
	sink_free(sink);
	profiles_put(p);
}

/* What a receiver counts is there where something is received alone. */
static void test_prometheus(void **state)
{
	struct sink_settings settings = { .receives = false };
	struct buf error = BUF_EMPTY;
	struct sink *sink = NULL;

	(void)state;
	assert_int_equal(sink_type_prometheus.make(&settings, NULL, &sink, &error), -EINVAL);
	assert_null(sink);
	assert_string_equal(buf_text(&error), "--sink: prometheus is what 'hearth serve' counts for /metrics");
	settings.receives = true;
	assert_int_equal(sink_type_prometheus.make(&settings, NULL, &sink, &error), 0);
	sink_free(sink);
	buf_fini(&error);
}

/* --- count --- */

static const char *last_message(uint64_t *count)
{
	static struct log_message messages[8];
	size_t n = log_since(count, messages, 8);

	return n ? messages[n - 1].text : "";
}

/* Two samples of one program are of one resource and one profile. */
static void test_count_tells(void **state)
{
	struct profiles *p = text_profiles("app;main@app 5\napp;other@app 2\n", 0);
	struct buf error = BUF_EMPTY;
	struct sink *sink = NULL;
	uint64_t seen = 0;

	(void)state;
	assert_int_equal(sink_type_count.make(NULL, NULL, &sink, &error), 0);
	last_message(&seen);
	assert_int_equal(sink_consume(sink, p, NULL), 0);
	assert_non_null(strstr(last_message(&seen), "profiles: 1 resources, 1 profiles, 7 samples"));
	assert_int_equal(sink_consume_other(sink, OTLP_LOGS, (const uint8_t *)"abc", 3, NULL), 0);
	assert_non_null(strstr(last_message(&seen), "logs: a request of 3 bytes"));
	assert_int_equal(sink_consume_other(sink, OTLP_TRACES, (const uint8_t *)"", 0, NULL), 0);
	assert_non_null(strstr(last_message(&seen), "traces: a request of 0 bytes"));
	sink_free(sink);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_get_it),	 cmocka_unit_test(test_the_first_fails),
		cmocka_unit_test(test_the_second_fails), cmocka_unit_test(test_flush),
		cmocka_unit_test(test_other_signals),	 cmocka_unit_test(test_null_takes_all),
		cmocka_unit_test(test_prometheus),	 cmocka_unit_test(test_count_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
