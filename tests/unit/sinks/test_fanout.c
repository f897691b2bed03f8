/* SPDX-License-Identifier: Apache-2.0 */
/* The fan-out over children that are slow, stuck, failing or durable: who gets what, what is counted, when acks complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "sinks/sinks.h"
#include "tests/unit/sinks/vectors.h"
#include "tests/unit/sinks/counted_ack.h"

#define LONG_NS	 (10 * NSEC_PER_SEC)
#define SHORT_NS (50 * NSEC_PER_MSEC)

enum { SAMPLES = 7 }; /* of every profile here */

/* A child that the test steers: it may be held inside consume(), fail, and keep its acks. */
struct probe {
	struct sink sink;
	struct sink_ops ops;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hold, entered;
	int error;
	unsigned consumed, flushed;
	size_t other_bytes;
	struct ack *acks[16];
	unsigned ack_count;
	bool *freed;
};

static int probe_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct probe *probe = (struct probe *)sink;
	int error;

	pthread_mutex_lock(&probe->lock);
	probe->entered = true;
	pthread_cond_broadcast(&probe->changed);
	while (probe->hold)
		pthread_cond_wait(&probe->changed, &probe->lock);
	assert_int_equal(p->sample_events, SAMPLES);
	error = probe->error;
	if (!error)
		probe->consumed++;
	if (!error && ack)
		probe->acks[probe->ack_count++] = ack;
	pthread_cond_broadcast(&probe->changed);
	pthread_mutex_unlock(&probe->lock);
	return error;
}

static int probe_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct probe *probe = (struct probe *)sink;
	int error;

	pthread_mutex_lock(&probe->lock);
	probe->entered = true;
	pthread_cond_broadcast(&probe->changed);
	while (probe->hold)
		pthread_cond_wait(&probe->changed, &probe->lock);
	error = probe->error;
	if (!error && signal == OTLP_LOGS && memcmp(data, "logs", len) == 0)
		probe->other_bytes += len;
	if (!error && ack)
		probe->acks[probe->ack_count++] = ack;
	pthread_mutex_unlock(&probe->lock);
	return error;
}

static int probe_flush(struct sink *sink, uint64_t deadline_ns)
{
	(void)deadline_ns;
	((struct probe *)sink)->flushed++;
	return 0;
}

static void probe_free(struct sink *sink)
{
	struct probe *probe = (struct probe *)sink;

	if (probe->freed)
		*probe->freed = true;
	free(probe);
}

static struct probe *probe_new(const char *name, bool durable)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	assert_non_null(probe);
	probe->ops = (struct sink_ops){ name, durable, probe_consume, probe_consume_other, probe_flush, probe_free };
	probe->sink.ops = &probe->ops;
	pthread_mutex_init(&probe->lock, NULL);
	pthread_cond_init(&probe->changed, NULL);
	return probe;
}

static void probe_set_hold(struct probe *probe, bool hold)
{
	pthread_mutex_lock(&probe->lock);
	probe->hold = hold;
	pthread_cond_broadcast(&probe->changed);
	pthread_mutex_unlock(&probe->lock);
}

/* Waits until the child's thread is inside consume(), where the hold keeps it. */
static void probe_wait_entered(struct probe *probe)
{
	pthread_mutex_lock(&probe->lock);
	while (!probe->entered)
		pthread_cond_wait(&probe->changed, &probe->lock);
	pthread_mutex_unlock(&probe->lock);
}

static void probe_wait_consumed(struct probe *probe, unsigned count)
{
	pthread_mutex_lock(&probe->lock);
	while (probe->consumed < count)
		pthread_cond_wait(&probe->changed, &probe->lock);
	pthread_mutex_unlock(&probe->lock);
}

static struct profiles *seven(void)
{
	struct profiles *p = vector_new(t1_resources, 1);

	p->sample_events = SAMPLES;
	return p;
}

struct setup {
	struct metrics *metrics;
	struct probe *a, *b;
	struct sink *fanout;
	struct profiles *p;
};

static struct setup setup_new(size_t queue_items, bool a_durable, bool b_durable)
{
	struct setup s = { .metrics = metrics_new(), .a = probe_new("a", a_durable), .b = probe_new("b", b_durable) };
	struct sink *children[] = { &s.a->sink, &s.b->sink };

	s.p = seven();
	assert_int_equal(sink_fanout_new(children, 2, queue_items, s.metrics, &s.fanout), 0);
	return s;
}

static void setup_free(struct setup *s)
{
	sink_free(s->fanout);
	assert_int_equal(s->p->refs, 1); /* every reference came back */
	profiles_put(s->p);
	metrics_free(s->metrics);
}

static uint64_t dropped(struct setup *s, const char *sink, const char *reason)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "sink=\"%s\",reason=\"%s\"", sink, reason);
	return metric_get(metrics_counter(s->metrics, "hearth_sink_dropped_samples_total", labels, ""));
}

static int flush_for(struct sink *sink, uint64_t ns)
{
	return sink_flush(sink, clock_mono_ns() + ns);
}

static void test_everybody_gets_everything(void **state)
{
	struct setup s = setup_new(100, false, false);

	(void)state;
	for (int i = 0; i < 50; i++)
		assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	assert_int_equal(sink_consume_other(s.fanout, OTLP_LOGS, (const uint8_t *)"logs", 4, NULL), 0);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(s.a->consumed, 50);
	assert_int_equal(s.b->consumed, 50);
	assert_int_equal(s.a->other_bytes, 4);
	assert_int_equal(s.b->flushed, 1);
	setup_free(&s);
}

/* One in consume(), one queued; the next two find no room there, and the other child does not notice. */
static void test_slow_child(void **state)
{
	struct setup s = setup_new(1, false, false);

	(void)state;
	probe_set_hold(s.a, true);
	for (unsigned i = 1; i <= 4; i++) {
		assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
		probe_wait_entered(s.a);
		probe_wait_consumed(s.b, i); /* it keeps up */
	}
	assert_int_equal(dropped(&s, "a", "queue full"), 2 * SAMPLES);
	assert_int_equal(dropped(&s, "b", "queue full"), 0);
	probe_set_hold(s.a, false);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(s.a->consumed, 2);
	assert_int_equal(s.b->consumed, 4);
	setup_free(&s);
}

/* No child has room: the producer is told, its ack is not, and nothing is counted here. */
static void test_all_full(void **state)
{
	struct setup s = setup_new(1, false, true);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	probe_set_hold(s.a, true);
	probe_set_hold(s.b, true);
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	probe_wait_entered(s.a);
	probe_wait_entered(s.b);
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), -EAGAIN);
	assert_int_equal(ack.done, 0);
	assert_int_equal(dropped(&s, "a", "queue full") + dropped(&s, "b", "queue full"), 0);
	probe_set_hold(s.a, false);
	probe_set_hold(s.b, false);
	setup_free(&s);
	assert_int_equal(ack.done, 0);
}

static void test_ack_waits_for_durable_children(void **state)
{
	struct setup s = setup_new(10, true, false);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(s.a->ack_count, 1);
	assert_int_equal(s.b->consumed, 1);
	assert_int_equal(s.b->ack_count, 0); /* not durable: gets none */
	assert_int_equal(ack.done, 0);
	s.a->acks[0]->done(s.a->acks[0], -EREMOTEIO);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, -EREMOTEIO);
	setup_free(&s);
}

static int consume_logs(struct sink *sink, struct ack *ack)
{
	return sink_consume_other(sink, OTLP_LOGS, (const uint8_t *)"logs", 4, ack);
}

static uint64_t dropped_logs(struct setup *s, const char *reason)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "sink=\"a\",reason=\"%s\"", reason);
	return metric_get(metrics_counter(s->metrics, "hearth_sink_dropped_requests_total", labels, ""));
}

/* Logs are acknowledged as profiles are. */
static void test_acks_of_other_signals(void **state)
{
	struct setup s = setup_new(1, true, false);
	struct counted_ack acks[4] = { { .ack.done = counted_done },
				       { .ack.done = counted_done },
				       { .ack.done = counted_done },
				       { .ack.done = counted_done } };

	(void)state;
	assert_int_equal(consume_logs(s.fanout, &acks[0].ack), 0);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(acks[0].done, 0);
	s.a->acks[0]->done(s.a->acks[0], -EIO);
	assert_int_equal(acks[0].done, 1);
	assert_int_equal(acks[0].error, -EIO);

	s.a->entered = false;
	probe_set_hold(s.a, true); /* one in it, one queued, no room for a third */
	assert_int_equal(consume_logs(s.fanout, &acks[1].ack), 0);
	probe_wait_entered(s.a);
	assert_int_equal(consume_logs(s.fanout, &acks[2].ack), 0);
	assert_int_equal(consume_logs(s.fanout, &acks[3].ack), -EAGAIN);
	s.a->error = -ENOSPC;
	probe_set_hold(s.a, false);
	flush_for(s.fanout, LONG_NS);
	assert_int_equal(acks[1].error, -ENOSPC);
	assert_int_equal(acks[2].error, -ENOSPC);
	assert_int_equal(acks[3].done, 0);
	assert_int_equal(dropped_logs(&s, "error"), 2);

	s.a->error = -EOPNOTSUPP; /* no use for logs of this kind */
	acks[1].done = acks[1].error = 0;
	assert_int_equal(consume_logs(s.fanout, &acks[1].ack), 0);
	flush_for(s.fanout, LONG_NS);
	assert_int_equal(acks[1].done, 1);
	assert_int_equal(acks[1].error, 0);
	s.a->ops.consume_other = s.b->ops.consume_other = NULL;
	assert_int_equal(consume_logs(s.fanout, &acks[3].ack), -EOPNOTSUPP);
	assert_int_equal(acks[3].done, 0);
	setup_free(&s);
}

/* A child that is not durable may be as slow as it likes. */
static void test_ack_waits_for_nobody_else(void **state)
{
	struct setup s = setup_new(10, true, false);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	probe_set_hold(s.b, true);
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	probe_wait_entered(s.b);
	probe_wait_consumed(s.a, 1);
	s.a->acks[0]->done(s.a->acks[0], 0);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, 0);
	probe_set_hold(s.b, false);
	setup_free(&s);
}

/* What is to be kept is handed to nobody when it cannot be kept. */
static void test_full_durable_child(void **state)
{
	struct setup s = setup_new(1, true, false);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	probe_set_hold(s.a, true);
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	probe_wait_entered(s.a);
	probe_wait_consumed(s.b, 1); /* its queue has one place, too */
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	probe_wait_consumed(s.b, 2);
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), -EAGAIN);
	probe_set_hold(s.a, false);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(s.a->consumed, 2);
	assert_int_equal(s.b->consumed, 2);
	assert_int_equal(dropped(&s, "a", "queue full"), 0);
	assert_int_equal(ack.done, 0);
	setup_free(&s);
}

static void test_ack_of_indifferent_children(void **state)
{
	struct setup s = setup_new(10, false, false);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, 0);
	setup_free(&s);
}

static void test_failing_child(void **state)
{
	struct setup s = setup_new(10, true, true);
	struct counted_ack ack = { .ack.done = counted_done };

	(void)state;
	s.a->error = -ENOSPC;
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	assert_int_equal(dropped(&s, "a", "error"), SAMPLES);
	assert_int_equal(s.b->ack_count, 1);
	s.b->acks[0]->done(s.b->acks[0], 0);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, -ENOSPC);
	setup_free(&s);
}

/* Every failure is counted; that the reader of our output has gone is no news to anybody. */
static void test_failures_are_logged(void **state)
{
	static const struct {
		int error;
		bool logged;
	} cases[] = { { -ENOSPC, true }, { -EPIPE, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct setup s = setup_new(10, false, false);
		int saved_stderr = dup(STDERR_FILENO);
		char text[256] = "";
		FILE *log = tmpfile();

		assert_non_null(log);
		s.a->error = cases[i].error;
		dup2(fileno(log), STDERR_FILENO);
		assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
		assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
		dup2(saved_stderr, STDERR_FILENO);
		close(saved_stderr);
		rewind(log);
		text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
		assert_int_equal(strstr(text, "sink a failed") != NULL, cases[i].logged);
		assert_int_equal(text[0] != '\0', cases[i].logged);
		assert_int_equal(dropped(&s, "a", "error"), SAMPLES);
		fclose(log);
		setup_free(&s);
	}
}

/* A child that does not come back: flush gives up at its deadline, counts what was queued, and serves the other child. */
static void test_flush_deadline(void **state)
{
	struct setup s = setup_new(10, true, false);
	struct counted_ack ack = { .ack.done = counted_done };
	uint64_t start;

	(void)state;
	probe_set_hold(s.a, true);
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	probe_wait_entered(s.a);
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	assert_int_equal(sink_consume(s.fanout, s.p, NULL), 0);
	start = clock_mono_ns();
	assert_int_equal(flush_for(s.fanout, SHORT_NS), -ETIMEDOUT);
	assert_in_range(clock_mono_ns() - start, SHORT_NS, LONG_NS / 2);
	assert_int_equal(dropped(&s, "a", "shutdown"), 2 * SAMPLES);
	assert_int_equal(s.a->flushed, 0);
	assert_int_equal(s.b->flushed, 1);
	assert_int_equal(s.b->consumed, 3);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, -ETIMEDOUT);
	probe_set_hold(s.a, false);
	setup_free(&s);
}

/* Without a flush, free() still hands out what was accepted. */
static void test_free_delivers(void **state)
{
	struct setup s = setup_new(10, false, true);
	struct counted_ack ack = { .ack.done = counted_done };
	bool freed = false;

	(void)state;
	s.a->freed = &freed;
	s.b->error = -EIO;
	assert_int_equal(sink_consume(s.fanout, s.p, &ack.ack), 0);
	setup_free(&s);
	assert_true(freed);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, -EIO);
}

static void test_refused_construction_frees_children(void **state)
{
	struct metrics *metrics = metrics_new();
	bool freed[2] = { false };
	struct sink *children[65], *fanout;

	(void)state;
	for (int i = 0; i < 65; i++) {
		struct probe *probe = probe_new("p", false);

		probe->freed = &freed[i % 2];
		children[i] = &probe->sink;
	}
	assert_int_equal(sink_fanout_new(children, 65, 1, metrics, &fanout), -E2BIG);
	assert_true(freed[0] && freed[1]);
	metrics_free(metrics);
}

struct producer {
	struct sink *fanout;
	struct profiles *p;
	unsigned accepted;
	struct counted_ack acks[200];
};

static void *producer_main(void *arg)
{
	struct producer *producer = arg;

	for (int i = 0; i < 200; i++) {
		producer->acks[i].ack.done = counted_done;
		if (sink_consume(producer->fanout, producer->p, &producer->acks[i].ack) == 0)
			producer->accepted++;
	}
	return NULL;
}

/* Several producers against small queues: acks complete exactly once for what was accepted, and the samples add up. */
static void test_many_producers(void **state)
{
	struct setup s = setup_new(4, false, false);
	struct producer *producers = calloc(3, sizeof(*producers));
	pthread_t threads[3];
	unsigned accepted = 0, done = 0;

	(void)state;
	assert_non_null(producers);
	for (int i = 0; i < 3; i++) {
		producers[i].fanout = s.fanout;
		producers[i].p = s.p;
		assert_int_equal(pthread_create(&threads[i], NULL, producer_main, &producers[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		accepted += producers[i].accepted;
	}
	assert_int_equal(flush_for(s.fanout, LONG_NS), 0);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 200; k++)
			done += producers[i].acks[k].done;
	assert_int_equal(done, accepted);
	assert_int_equal(s.a->consumed * SAMPLES + dropped(&s, "a", "queue full"), accepted * SAMPLES);
	assert_int_equal(s.b->consumed * SAMPLES + dropped(&s, "b", "queue full"), accepted * SAMPLES);
	free(producers);
	setup_free(&s);
}

static void test_null(void **state)
{
	struct profiles *p = seven();
	struct sink *s;

	(void)state;
	assert_int_equal(sink_null_new(&s), 0);
	assert_int_equal(sink_consume(s, p, NULL), 0);
	assert_int_equal(p->refs, 1);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everybody_gets_everything),
		cmocka_unit_test(test_slow_child),
		cmocka_unit_test(test_all_full),
		cmocka_unit_test(test_ack_waits_for_durable_children),
		cmocka_unit_test(test_ack_waits_for_nobody_else),
		cmocka_unit_test(test_acks_of_other_signals),
		cmocka_unit_test(test_full_durable_child),
		cmocka_unit_test(test_ack_of_indifferent_children),
		cmocka_unit_test(test_failing_child),
		cmocka_unit_test(test_failures_are_logged),
		cmocka_unit_test(test_flush_deadline),
		cmocka_unit_test(test_free_delivers),
		cmocka_unit_test(test_refused_construction_frees_children),
		cmocka_unit_test(test_many_producers),
		cmocka_unit_test(test_null),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
