/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and sums out of a ClickHouse that is none (fake_clickhouse.h): what is asked, what rows mean, rows that are cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"
#include "tests/unit/descriptors.h"

static struct fake_clickhouse fake;
static struct metrics *metrics;
static struct store *store;
static struct buf told; /* what came of a question */

static int begin(void **state)
{
	struct store_config config = { .read_only = true };
	struct store_error error;

	(void)state;
	fake_begin(&fake);
	fake.version = CLICK_SCHEMA_VERSION;
	metrics = metrics_new();
	config.place = fake.place;
	return store_clickhouse_open(&config, metrics, &store, &error);
}

static int end(void **state)
{
	(void)state;
	store->close(store);
	metrics_free(metrics);
	fake_end(&fake);
	buf_fini(&told);
	return 0;
}

static void put_z(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

static void put_sums(struct buf *b, int64_t weight, uint64_t events)
{
	put_number(b, (uint64_t)weight, 8);
	put_number(b, events, 8);
}

/* The last question has @part in it. */
static void asks(const char *part)
{
	if (!strstr(buf_text(&fake.asked), part))
		fail_msg("'%s' is not in: %s", part, buf_text(&fake.asked));
}

static void tells(int err, const char *text)
{
	assert_int_equal(err, 0);
	assert_string_equal(buf_text(&told), text);
	buf_reset(&told);
}

static const struct store_selection some = { .from_ns = 5000000000, .to_ns = 9000000000, .kind = "samples" };

/* --- lists --- */

static int take_label(void *arg, const char *label)
{
	buf_printf(arg, "%s;", label);
	return 0;
}

static void test_labels(void **state)
{
	struct buf *b = fake_answer_to(&fake, "SELECT DISTINCT name");

	(void)state;
	put_z(b, "cpu.logical_number");
	put_z(b, "service.name");
	tells(store->read->labels(store, &some, take_label, &told), "cpu.logical_number;service.name;");
	asks("hearth_series WHERE id IN (SELECT series FROM hearth_samples WHERE ");
	asks("hearth_labels WHERE id IN (SELECT labels FROM hearth_samples WHERE ");
	asks("['trace_id', 'span_id']");
	b->len--;
	assert_int_equal(store->read->labels(store, &some, take_label, &told), -EBADMSG);
}

static int take_kind(void *arg, const struct store_kind *k)
{
	buf_printf(arg, "%s/%s %s/%s %d: %d;", k->type, k->unit, k->period_type, k->period_unit, (int)k->period,
		   (int)k->events);
	return 0;
}

static void put_kind(struct buf *b, const char *type, int64_t period, uint64_t events)
{
	put_z(b, type);
	put_z(b, "count");
	put_z(b, "cpu");
	put_z(b, "nanoseconds");
	put_sums(b, period, events);
}

static void test_kinds(void **state)
{
	struct buf *b = fake_answer_to(&fake, "SELECT sample_type,");

	(void)state;
	put_kind(b, "samples", 50, 7);
	put_kind(b, "off_cpu", 1, 3);
	tells(store->read->kinds(store, &some, take_kind, &told),
	      "samples/count cpu/nanoseconds 50: 7;off_cpu/count cpu/nanoseconds 1: 3;");
	assert_null(strstr(buf_text(&fake.asked), "sample_type = ")); /* the selection's own is ignored */
	b->len--;
	assert_int_equal(store->read->kinds(store, &some, take_kind, &told), -EBADMSG);
}

static int take_series(void *arg, const struct key_values *labels, int64_t weight, uint64_t events)
{
	for (uint32_t i = 0; i < labels->count; i++)
		buf_printf(arg, "%.*s=%.*s,", (int)labels->items[i].key.len, labels->items[i].key.data,
			   (int)labels->items[i].value.string.len, labels->items[i].value.string.data);
	buf_printf(arg, "%d %d;", (int)weight, (int)events);
	return 0;
}

static void test_series(void **state)
{
	struct buf *b = fake_answer_to(&fake, "SELECT arraySlice(s.key");

	(void)state;
	put_number(b, 3, 1);
	put_z(b, "service.name");
	put_z(b, "process.pid");
	put_z(b, "process.command_args");
	put_number(b, 3, 1);
	put_z(b, "shop");
	put_z(b, "7");
	put_z(b, "[\"a\"]");
	put_number(b, 3, 1);
	put_number(b, VALUE_STRING, 1);
	put_number(b, VALUE_INT, 1);
	put_number(b, VALUE_ARRAY, 1);
	put_sums(b, -5, 6);
	put_number(b, 0, 1); /* a resource without attributes */
	put_number(b, 0, 1);
	put_number(b, 0, 1);
	put_sums(b, 8, 9);
	tells(store->read->series(store, &some, take_series, &told),
	      "service.name=shop,process.pid=7,process.command_args=,-5 6;8 9;");
	asks("FROM hearth_samples WHERE ");
	asks(" GROUP BY series");
	b->len--;
	assert_int_equal(store->read->series(store, &some, take_series, &told), -EBADMSG);
	buf_reset(b);
	put_number(b, 0x048080, 3); /* 65,536 of them */
	assert_int_equal(store->read->series(store, &some, take_series, &told), -EBADMSG);
}

/* --- sums --- */

static int take_sum(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%s %u: %d %d;", group, number, (int)weight, (int)events);
	return 0;
}

static int take_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%s: %d %d;", value, (int)weight, (int)events);
	return 0;
}

static void put_frame(struct buf *b, uint64_t id, const char *function)
{
	put_number(b, id, 8);
	put_z(b, function);
	put_z(b, "");
	put_z(b, "");
	for (int i = 0; i < 4; i++)
		put_number(b, 0, 8);
	put_number(b, 0, 1);
	put_z(b, "native");
	put_z(b, "/bin/shop");
	put_z(b, "cafe");
	put_z(b, "gnu");
	for (int i = 0; i < 3; i++)
		put_number(b, 0, 8);
	for (int i = 0; i < 8; i++)
		put_number(b, 0, 1); /* no attributes, of the place and of the mapping */
}

/* Stacks 501 (main, sell) and 502 (main). */
static void put_stacks(void)
{
	struct buf *b = fake_answer_to(&fake, "FROM hearth_frames");

	put_frame(b, 31, "main");
	put_frame(b, 32, "sell");
	b = fake_answer_to(&fake, "FROM hearth_stacks");
	put_number(b, 501, 8);
	put_number(b, 2, 1);
	put_number(b, 31, 8);
	put_number(b, 32, 8);
	put_number(b, 502, 8);
	put_number(b, 1, 1);
	put_number(b, 31, 8);
}

static uint32_t node_of(uint64_t stack)
{
	return click_names_stack(store_clickhouse_of(store)->names, stack);
}

static void test_sum_stacks(void **state)
{
	AUTO(buf_fini) struct buf want = BUF_EMPTY;
	struct store_selection chosen = some;
	uint64_t mask[1] = { 0 };
	struct buf *b;

	(void)state;
	put_stacks();
	b = fake_answer_to(&fake, "FROM hearth_samples");
	put_z(b, "t1");
	put_number(b, 501, 8);
	put_sums(b, 4, 1);
	put_z(b, "t1");
	put_number(b, 502, 8);
	put_sums(b, 5, 2);
	put_z(b, "t2");
	put_number(b, 501, 8);
	put_sums(b, -6, 3);
	assert_int_equal(store->read->sum_stacks(store, &some, "thread.name", take_sum, &told), 0);
	assert_int_not_equal(node_of(501), node_of(502));
	buf_printf(&want, "t1 %u: 4 1;t1 %u: 5 2;t2 %u: -6 3;", node_of(501), node_of(502), node_of(501));
	tells(0, buf_text(&want));
	/* stacks chosen one by one: the others are left out */
	mask[0] = 1ull << node_of(502);
	chosen.stacks = mask;
	chosen.stack_count = node_of(502) + 1;
	assert_int_equal(store->read->sum_stacks(store, &chosen, "thread.name", take_sum, &told), 0);
	buf_reset(&want);
	buf_printf(&want, "t1 %u: 5 2;", node_of(502));
	tells(0, buf_text(&want));
	/* and a value that has several of them is told once */
	mask[0] |= 1ull << node_of(501);
	chosen.stack_count = 64;
	tells(store->read->label_values(store, &chosen, "thread.name", take_value, &told), "t1: 9 3;t2: -6 3;");
	b->len--;
	assert_int_equal(store->read->sum_stacks(store, &some, "thread.name", take_sum, &told), -EBADMSG);
}

static void test_label_values(void **state)
{
	struct buf *b = fake_answer_to(&fake, "FROM hearth_samples");

	(void)state;
	put_z(b, "t1");
	put_sums(b, 4, 1);
	put_z(b, "t2");
	put_sums(b, 5, 2);
	tells(store->read->label_values(store, &some, "thread.name", take_value, &told), "t1: 4 1;t2: 5 2;");
}

/* By time, from the selection's begin on. The kind with the most samples, where none is named. */
static void test_sum_times(void **state)
{
	struct store_selection no_kind = some;
	struct buf *b = fake_answer_to(&fake, "SELECT sample_type,");

	(void)state;
	no_kind.kind = NULL;
	put_kind(b, "off_cpu", 1, 3);
	put_kind(b, "samples", 50, 2);
	b = fake_answer_to(&fake, "AS bucket");
	put_number(b, 0, 8);
	put_sums(b, 4, 1);
	put_number(b, UINT32_MAX, 8);
	put_sums(b, 5, 2);
	tells(store->read->sum_times(store, &no_kind, 2000000000, NULL, take_sum, &told), " 0: 4 1; 4294967295: 5 2;");
	asks("intDiv(toUnixTimestamp64Nano(time) - 5000000000, 2000000000)");
	assert_int_equal(store->read->sum_times(store, &some, 0, NULL, take_sum, &told), -EINVAL);
	put_number(b, 1ull << 32, 8);
	put_sums(b, 5, 2);
	assert_int_equal(store->read->sum_times(store, &some, 1, NULL, take_sum, &told), -ERANGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_labels),     TEST(test_kinds),	TEST(test_series),
		TEST(test_sum_stacks), TEST(test_label_values), TEST(test_sum_times),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
