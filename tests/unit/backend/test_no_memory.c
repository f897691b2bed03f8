/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, the way into a store, rows for ClickHouse and reading a store, for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/api/api.h"
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
static char folder[] = "/tmp/hearth-memory-XXXXXX";

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

static int add_time(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%s %u: %d %d\n", group ? group : "", bucket, (int)weight, (int)events);
	return 0;
}

static int add_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%d labels %d %d\n", (int)labels->count, (int)weight, (int)events);
	return 0;
}

static int add_part(void *arg, struct profiles *p)
{
	buf_printf(arg, "%d exported\n", (int)p->sample_events);
	return 0;
}

static int ask(struct store *s, struct buf *out)
{
	static const struct store_matcher matchers[] = {
		{ "thread.name", MATCH_EQUAL, "shop", NULL },
		{ "thread.name", MATCH_NOT_EQUAL, "shop", NULL },
		{ "trace_id", MATCH_EQUAL, "", NULL },
		{ "span_id", MATCH_NOT_EQUAL, "0000000000000001", NULL },
	};
	const struct store_selection all = { .to_ns = INT64_MAX, .kind = "samples" };
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(matchers) && !error; i++) {
		struct store_selection some = all;

		some.matchers = &matchers[i];
		some.matcher_count = 1;
		error = s->read->sum_stacks(s, &some, NULL, add_stack, out);
	}
	if (!error)
		error = s->read->sum_stacks(s, &all, "thread.name", add_stack, out);
	if (!error)
		error = s->read->sum_times(s, &all, NSEC_PER_SEC, NULL, add_time, out);
	if (!error)
		error = s->read->label_values(s, &all, "thread.name", add_value, out);
	if (!error)
		error = s->read->series(s, &all, add_series, out);
	return error ? error : s->read->export(s, &all, add_part, out);
}

/* A store is opened, asked and closed. */
static int reading(struct buf *out)
{
	const struct store_config config = { .place = folder, .read_only = true };
	struct store_error why;
	struct store *s;
	int error = store_sqlite_open(&config, NULL, &s, &why);

	if (error)
		return error;
	error = ask(s, out);
	s->close(s);
	return error;
}

/* Each question of the API over that store; 503: no memory. */
static int answers(struct buf *out)
{
	static const char *const questions[][8] = {
		{ "/api/v1/status" },
		{ "/api/v1/flamegraph", "by", "thread", "focus", "main" },
		{ "/api/v1/top", "limit", "3", "strip", "4" },
		{ "/api/v1/sandwich", "function", "main" },
		{ "/api/v1/diff", "query2", "{thread.name=\"bank\"}" },
		{ "/api/v1/timeline", "points", "4", "by", "thread" },
		{ "/api/v1/labels" },
		{ "/api/v1/values", "label", "thread.name" },
		{ "/api/v1/executables" },
		{ CONNECT_PATH "ProfileTypes", "codec", "json" },
		{ CONNECT_PATH "LabelNames", "codec", "json" },
		{ CONNECT_PATH "LabelValues", "codec", "json", "label", "thread_name" },
		{ CONNECT_PATH "Series", "codec", "json" },
		{ CONNECT_PATH "SelectSeries", "codec", "json", "step", "1", "by", "thread_name" },
		{ CONNECT_PATH "SelectMergeStacktraces", "codec", "json" },
	};
	const struct store_config store_config = { .place = folder, .read_only = true };
	struct api_config config = { 0 };
	struct store_error why;
	struct api *api = NULL;
	int error = store_sqlite_open(&store_config, NULL, &config.store, &why);

	if (error)
		return error;
	error = api_new(&config, &api);
	for (size_t i = 0; i < ARRAY_LEN(questions) && !error; i++) {
		struct query_param items[6] = { { "from", "900" }, { "to", "1100" } };
		struct query_params params = { .items = items, .count = 2 };
		struct api_answer answer = { 0 };

		for (size_t k = 1; k + 1 < ARRAY_LEN(questions[i]) && questions[i][k]; k += 2)
			items[params.count++] = (struct query_param){ questions[i][k], questions[i][k + 1] };
		error = api_answer(api, questions[i][0], &params, NULL, &answer);
		if (!error && answer.status != 200 && answer.status != 503)
			fail_msg("%s: %u, %s", questions[i][0], answer.status, buf_text(&answer.body));
		if (!error && answer.status != 200)
			error = -ENOMEM;
		if (!error && i) /* the status has this moment in it */
			buf_append(out, answer.body.data, answer.body.len);
		buf_fini(&answer.body);
	}
	api_free(api);
	config.store->close(config.store);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "bodies", bodies, false },   { "queue", queue, false },     { "rows", rows, false },
	{ "reading", reading, false }, { "answers", answers, false },
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

/* Makes the store that is read. */
static int write_store(void)
{
	const struct store_config config = { .place = folder, .keep_age_ns = 100ull * 365 * 24 * 3600 * NSEC_PER_SEC };
	struct store_error why;
	struct store *s;

	if (store_sqlite_open(&config, NULL, &s, &why))
		return -1;
	store_put(s, profiles);
	s->close(s);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };
	char command[64];
	int failed;

	profiles = text_profiles("shop;main@shop;sell@shop 3\nbank;main@bank;lend@bank 2\n", 0);
	if (!mkdtemp(folder) || loop_new(&loop) || !profiles || write_store())
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	profiles_put(profiles);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return failed + (system(command) != 0);
}
