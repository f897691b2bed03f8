/* SPDX-License-Identifier: Apache-2.0 */
/* The queue in front of a store: its limits, what is told to whom when, and what a flush waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "backend/store/queue.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/profiles.h"
#include "proto/profiles_builder.h"
#include "tests/unit/sinks/counted_ack.h"

enum { ITEMS = 3 };

struct fixture {
	struct metrics *metrics;
	struct store_queue *q;
	struct sink *sink;
	struct profiles *p;
	struct counted_ack acks[ITEMS + 1];
};

static uint64_t in_ms(uint64_t ms)
{
	return clock_mono_ns() + ms * NSEC_PER_MSEC;
}

static void open_queue(struct fixture *f, size_t max_items, size_t max_bytes)
{
	struct builder *b = builder_new();

	*f = (struct fixture){ .metrics = metrics_new() };
	assert_int_equal(builder_freeze(b, 1, 2, &f->p), 0);
	builder_free(b);
	for (size_t i = 0; i <= ITEMS; i++)
		f->acks[i].ack.done = counted_done;
	assert_int_equal(store_queue_new(max_items, max_bytes, f->metrics, &f->q), 0);
	assert_int_equal(store_queue_sink(f->q, "queue", &f->sink), 0);
}

static void close_queue(struct fixture *f)
{
	sink_free(f->sink);
	store_queue_free(f->q);
	profiles_put(f->p);
	metrics_free(f->metrics);
}

/* A flush ends with what was in when it began, or at its deadline; acks and bytes end with what is settled. */
static void test_flush(void **state)
{
	struct store_item *items[2];
	struct fixture f;
	size_t bytes;

	(void)state;
	open_queue(&f, ITEMS, SIZE_MAX);
	bytes = profiles_memory_bytes(f.p);
	assert_int_equal(sink_flush(f.sink, in_ms(0)), 0); /* nothing is in */
	assert_int_equal(sink_consume(f.sink, f.p, &f.acks[0].ack), 0);
	assert_int_equal(sink_flush(f.sink, in_ms(20)), -ETIMEDOUT);
	assert_int_equal(sink_consume(f.sink, f.p, &f.acks[1].ack), 0);
	assert_int_equal(store_queue_bytes(f.q), 2 * bytes);
	for (int i = 0; i < 2; i++) {
		items[i] = store_queue_pop(f.q, in_ms(0));
		assert_non_null(items[i]);
		assert_ptr_equal(items[i]->p, f.p);
	}
	assert_null(store_queue_pop(f.q, in_ms(5)));
	assert_int_equal(store_queue_bytes(f.q), 2 * bytes); /* it counts until it is settled */
	store_queue_settle(f.q, items, 1, -EIO);
	assert_int_equal(f.acks[0].done, 1);
	assert_int_equal(f.acks[0].error, -EIO);
	assert_int_equal(f.acks[1].done, 0);
	assert_int_equal(store_queue_bytes(f.q), bytes);
	assert_int_equal(store_queue_flush(f.q, in_ms(20)), -ETIMEDOUT);
	store_queue_settle(f.q, items + 1, 1, 0);
	assert_int_equal(f.acks[1].done, 1);
	assert_int_equal(f.acks[1].error, 0);
	assert_int_equal(store_queue_bytes(f.q), 0);
	assert_int_equal(store_queue_flush(f.q, in_ms(0)), 0);
	close_queue(&f);
}

/* What is turned away keeps its ack, takes no memory and is counted. */
static void check_turned_away(struct fixture *f, size_t taken, int want, unsigned long count)
{
	struct metric *full = metrics_counter(f->metrics, "hearth_store_queue_full_total", NULL, "");
	const size_t bytes = store_queue_bytes(f->q);

	assert_int_equal(sink_consume(f->sink, f->p, &f->acks[taken].ack), want);
	assert_int_equal(f->acks[taken].done, 0);
	assert_int_equal(store_queue_bytes(f->q), bytes);
	assert_int_equal(metric_get(full), count);
}

static void test_limits(void **state)
{
	struct store_item *item;
	struct fixture f;
	size_t bytes;

	(void)state;
	open_queue(&f, ITEMS, SIZE_MAX);
	bytes = profiles_memory_bytes(f.p);
	for (size_t i = 0; i < ITEMS; i++)
		assert_int_equal(sink_consume(f.sink, f.p, &f.acks[i].ack), 0);
	check_turned_away(&f, ITEMS, -EAGAIN, 1);
	store_queue_close(f.q);
	check_turned_away(&f, ITEMS, -EPIPE, 2);
	for (size_t i = 0; i < ITEMS; i++) {
		item = store_queue_pop(f.q, in_ms(0));
		assert_non_null(item); /* also behind its closing */
		store_queue_settle(f.q, &item, 1, 0);
	}
	assert_null(store_queue_pop(f.q, in_ms(10000)));
	assert_int_equal(sink_flush(f.sink, in_ms(0)), 0); /* what was turned away is not waited for */
	close_queue(&f);

	/* Bytes: one more is taken below the limit, none at it. */
	open_queue(&f, ITEMS, 2 * bytes);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(sink_consume(f.sink, f.p, &f.acks[i].ack), 0);
	check_turned_away(&f, 2, -EAGAIN, 1);
	item = store_queue_pop(f.q, in_ms(0));
	check_turned_away(&f, 2, -EAGAIN, 2); /* taken out, not settled */
	store_queue_settle(f.q, &item, 1, 0);
	assert_int_equal(sink_consume(f.sink, f.p, &f.acks[2].ack), 0);
	while ((item = store_queue_pop(f.q, in_ms(0))))
		store_queue_settle(f.q, &item, 1, 0);
	close_queue(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_flush), cmocka_unit_test(test_limits) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
