/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, the way into a store, rows for ClickHouse and reading a store, for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/ingest/body.h"
#include "backend/store/clickhouse/click.h"
#include "backend/store/queue.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "base/metrics.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/proto/text_profiles.h"

static struct loop *loop;
static struct profiles *profiles;
static struct store *store;

static void on_granted(struct claim *claim)
{
	(void)claim;
}

static int bodies(struct buf *out)
{
	struct budget budget;
	struct body b;
	int error = 0;

	budget_init(&budget, loop, 1 << 20, 1 << 18);
	body_init(&b, &budget, on_granted);
	claim_open(&b.claim);
	for (size_t room = 1 << 10; room <= 1 << 16 && !error; room *= 4) {
		error = body_room(&b, room);
		if (!error)
			buf_printf(out, "%zu ", body_append(&b, "0123456789", 10));
	}
	if (!error)
		buf_append(out, b.data, b.len);
	body_fini(&b);
	assert_int_equal(budget.used_bytes, 0);
	return error;
}

static int queue(struct buf *out)
{
	struct counted_ack ack = { .ack.done = counted_done };
	struct metrics *metrics = metrics_new();
	struct store_queue *q = NULL;
	struct sink *sink = NULL;
	struct store_item *item;
	int error = metrics ? store_queue_new(2, 1 << 20, metrics, &q) : -ENOMEM;

	if (!error)
		error = store_queue_sink(q, "queue", &sink);
	if (!error)
		error = sink_consume(sink, profiles, &ack.ack);
	if (!error) {
		item = store_queue_pop(q, 0);
		assert_non_null(item);
		store_queue_settle(q, &item, 1, 0);
		assert_int_equal(ack.done, 1);
		buf_printf(out, "%zu", store_queue_bytes(q));
	}
	sink_free(sink);
	store_queue_free(q);
	metrics_free(metrics);
	return error;
}

static int rows(struct buf *out)
{
	AUTO(click_batch_fini) struct click_batch batch = { 0 };
	AUTO(click_parcel_fini) struct click_parcel parcel = { 0 };
	struct click_sent *sent = click_sent_new();
	int error = sent ? click_batch_add(&batch, sent, profiles, 1700000000ull * NSEC_PER_SEC) : -ENOMEM;

	if (!error)
		error = click_parcel_make(&parcel, &batch);
	for (int i = 0; i < CLICK_TABLES && !error; i++)
		buf_append(out, batch.rows[i].data, batch.rows[i].len);
	click_sent_free(sent);
	return error;
}

static int add_stack(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	(void)node;
	buf_printf(arg, "%s %d %d\n", group ? group : "", (int)weight, (int)events);
	return 0;
}

static int add_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%s %d %d\n", value, (int)weight, (int)events);
	return 0;
}

static int reading(struct buf *out)
{
	const struct store_matcher thread = { "thread.name", MATCH_EQUAL, "shop", NULL };
	const struct store_selection all = { .to_ns = INT64_MAX, .kind = "samples" };
	struct store_selection some = all;
	int error;

	some.matchers = &thread;
	some.matcher_count = 1;
	error = store->read->sum_stacks(store, &some, NULL, add_stack, out);
	if (!error)
		error = store->read->sum_stacks(store, &all, "thread.name", add_stack, out);
	if (!error)
		error = store->read->label_values(store, &all, "thread.name", add_value, out);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "bodies", bodies, false },
	{ "queue", queue, false },
	{ "rows", rows, false },
	{ "reading", reading, false },
};

static void test_scenarios(void **state)
{
	AUTO(buf_fini) struct buf read = BUF_EMPTY;

	(void)state;
	assert_int_equal(reading(&read), 0);
	assert_non_null(strstr(buf_text(&read), "bank 2 2\n"));
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };
	const struct store_config config = { .place = ":memory:", .keep_age_ns = 100ull * 365 * 24 * 3600 * NSEC_PER_SEC };
	struct store_error why;
	int failed;

	profiles = text_profiles("shop;main@shop;sell@shop 3\nbank;main@bank;lend@bank 2\n", 0);
	if (loop_new(&loop) || !profiles || store_sqlite_open(&config, NULL, &store, &why))
		return 1;
	store_put(store, profiles);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	store->close(store);
	profiles_put(profiles);
	loop_free(loop);
	return failed;
}
