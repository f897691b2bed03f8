/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles made of the rows of a ClickHouse that is none (fake_clickhouse.h): what is in them, and rows that are cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/profiles.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"
#include "tests/unit/descriptors.h"

enum { TIMES_AND_VALUES = 3, NO_TIMES = 2, HOUR_S = 3600 };

static struct fake_clickhouse fake;
static struct metrics *metrics;
static struct store *store;
static struct buf told;
static int refusal; /* what the one who takes profiles returns */

static const struct store_selection some = { .from_ns = 1000 * NSEC_PER_SEC,
					     .to_ns = 9000 * NSEC_PER_SEC,
					     .kind = "samples" };

static int begin(void **state)
{
	struct store_config config = { .read_only = true };
	struct store_error error;

	(void)state;
	fake_begin(&fake);
	fake.version = CLICK_SCHEMA_VERSION;
	metrics = metrics_new();
	config.place = fake.place;
	refusal = 0;
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

/* One attribute, KEY=VALUE of the kind @kind. */
static void put_attribute(struct buf *b, const char *key, const char *value, enum value_kind kind, const char *unit)
{
	put_number(b, 1, 1);
	put_z(b, key);
	put_number(b, 1, 1);
	put_z(b, value);
	put_number(b, 1, 1);
	put_number(b, kind, 1);
	put_number(b, 1, 1);
	put_z(b, unit);
}

static void put_none(struct buf *b)
{
	for (int i = 0; i < 4; i++)
		put_number(b, 0, 1);
}

static void put_series(struct buf *b, uint64_t id, int shape, const char *service)
{
	static const char *const texts[] = { "samples", "count", "cpu", "nanoseconds", "scope", "1.2" };

	put_number(b, id, 8);
	for (size_t i = 0; i < 6; i++)
		put_z(b, texts[i]);
	put_number(b, 50, 8);
	put_number(b, (uint64_t)shape, 1);
	put_number(b, 1, 2);
	put_attribute(b, "service.name", service, VALUE_STRING, "");
}

static void put_frame(struct buf *b, uint64_t id, const char *function, bool inlined)
{
	put_number(b, id, 8);
	put_z(b, function);
	put_z(b, "");
	put_z(b, "a.c");
	put_number(b, 3, 8);
	put_number(b, 4, 8);
	put_number(b, 5, 8);
	put_number(b, 0x1000 + id, 8);
	put_number(b, inlined, 1);
	put_z(b, "native");
	put_z(b, "/bin/shop");
	put_z(b, "cafe");
	put_z(b, "gnu");
	for (uint64_t i = 0; i < 3; i++)
		put_number(b, 0x400000 + i, 8);
	put_none(b);
	put_none(b);
}

static void put_sample(struct buf *b, const uint64_t ids[3], uint64_t cpu, uint64_t time_s, int64_t weight,
		       const char *trace)
{
	for (int i = 0; i < 3; i++)
		put_number(b, ids[i], 8);
	put_number(b, cpu, 2);
	put_number(b, time_s * NSEC_PER_SEC, 8);
	put_number(b, (uint64_t)weight, 8);
	put_z(b, trace);
	put_z(b, *trace ? "spanspan" : "");
}

enum { HOURS, STACKS, SERIES, LABELS, SAMPLES, FRAMES, STACK_FRAMES, ANSWERS };

static struct buf *answers[ANSWERS];

/* Two series with samples of the stack main -> sell (with "inner" inlined into it), in one hour. */
static void put_all(void)
{
	static const char *const parts[] = { "AS hour",
					     "SELECT DISTINCT stack",
					     "FROM hearth_series",
					     "FROM hearth_labels",
					     "SELECT series, stack",
					     "FROM hearth_frames",
					     "FROM hearth_stacks" };
	const uint64_t timed[] = { 71, 501, 81 }, summed[] = { 72, 501, 0 };

	for (int i = 0; i < ANSWERS; i++)
		answers[i] = fake_answer_to(&fake, parts[i]);
	put_number(answers[HOURS], 0, 8);
	put_number(answers[STACKS], 501, 8);
	put_series(answers[SERIES], 71, TIMES_AND_VALUES, "shop");
	put_series(answers[SERIES], 72, NO_TIMES, "till");
	put_number(answers[LABELS], 81, 8);
	put_attribute(answers[LABELS], "thread.name", "worker", VALUE_STRING, "");
	put_sample(answers[SAMPLES], timed, 3, 1001, 7, "traceidtraceid16");
	put_sample(answers[SAMPLES], timed, 3, 1500, -8, "traceidtraceid16");
	put_sample(answers[SAMPLES], timed, 0, 1200, 9, "");
	put_sample(answers[SAMPLES], summed, 0, 1300, 10, "");
	put_sample(answers[SAMPLES], summed, 0, 1300, 11, "");
	put_frame(answers[FRAMES], 31, "main", false);
	put_frame(answers[FRAMES], 32, "sell", false);
	put_frame(answers[FRAMES], 33, "inner", true);
	put_number(answers[STACK_FRAMES], 501, 8);
	put_number(answers[STACK_FRAMES], 3, 1);
	for (uint64_t frame = 31; frame <= 33; frame++)
		put_number(answers[STACK_FRAMES], frame, 8);
}

static void tell_sample(const struct profiles *p, const struct sample *s)
{
	const struct dictionary *d = &p->dict;
	const struct indices *stack = &d->stacks[s->stack_index];

	for (uint32_t i = 0; i < stack->count; i++) {
		const struct profile_location *l = &d->locations[stack->items[i]];

		buf_printf(&told, "%s%lx", i ? "<" : " ", (unsigned long)l->address);
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_function *f = &d->functions[l->lines[j].function_index];
			const struct str name = d->strings[f->name_strindex];

			buf_printf(&told, " %.*s:%d:%d", (int)name.len, name.data, (int)l->lines[j].line,
				   (int)l->lines[j].column);
		}
	}
	for (uint32_t i = 0; i < s->attributes.count; i++) {
		const struct profile_attribute *a = &d->attributes[s->attributes.items[i]];
		const struct str key = d->strings[a->key_strindex];

		buf_printf(&told, " %.*s=", (int)key.len, key.data);
		if (a->value.kind == VALUE_INT)
			buf_printf(&told, "%d", (int)a->value.integer);
		else
			buf_printf(&told, "%.*s", (int)a->value.string.len, a->value.string.data);
	}
	if (s->link_index)
		buf_printf(&told, " %.16s/%.8s", d->links[s->link_index].trace_id.data,
			   d->links[s->link_index].span_id.data);
	for (uint32_t i = 0; i < s->timestamp_count; i++)
		buf_printf(&told, " @%d", (int)(s->timestamps_unix_ns[i] / NSEC_PER_SEC));
	for (uint32_t i = 0; i < s->value_count; i++)
		buf_printf(&told, " %d", (int)s->values[i]);
	buf_puts(&told, ";");
}

static int take(void *arg, struct profiles *p)
{
	assert_null(arg);
	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct scope_profiles *scope = &p->resources[r].scopes[0];
		const struct str service = p->resources[r].resource.attributes.items[0].value.string;

		buf_printf(&told, "%.*s %.*s", (int)service.len, service.data, (int)scope->scope.name.len,
			   scope->scope.name.data);
		for (uint32_t i = 0; i < scope->profile_count; i++) {
			buf_printf(&told, " period %d:", (int)scope->profiles[i].period);
			for (uint32_t j = 0; j < scope->profiles[i].sample_count; j++)
				tell_sample(p, &scope->profiles[i].samples[j]);
		}
		buf_puts(&told, "\n");
	}
	return refusal;
}

static int export(const struct store_selection *sel)
{
	buf_reset(&told);
	return store->read->export(store, sel, take, NULL);
}

#define STACK " 1020 inner:4:5 sell:4:5<101f main:4:5"
static const char all[] = "shop scope period 50:" STACK
			  " thread.name=worker cpu.logical_number=2 traceidtraceid16/spanspan @1001 @1500 7 -8;" STACK
			  " thread.name=worker @1200 9;\n"
			  "till scope period 50:" STACK " 21;\n";

static void test_hour(void **state)
{
	(void)state;
	put_all();
	assert_int_equal(export(&some), 0);
	assert_string_equal(buf_text(&told), all);
	refusal = -E2BIG;
	assert_int_equal(export(&some), -E2BIG);
}

/* Each hour is a message; who takes them can end it. */
static void test_hours(void **state)
{
	const char *second;

	(void)state;
	put_all();
	put_number(answers[HOURS], HOUR_S, 8);
	put_number(answers[HOURS], 2 * HOUR_S, 8);
	assert_int_equal(export(&some), 0);
	second = buf_text(&told) + sizeof(all) - 1;
	assert_int_equal(told.len, 3 * (sizeof(all) - 1));
	assert_memory_equal(second, all, sizeof(all) - 1);
	refusal = -E2BIG;
	assert_int_equal(export(&some), -E2BIG);
	assert_string_equal(buf_text(&told), all); /* and not asked further */
}

/* Stacks that were not chosen are left out, and an hour without any is no message. */
static void test_chosen(void **state)
{
	struct store_selection chosen = some;
	uint64_t mask[2] = { ~0ull, ~0ull };
	uint32_t node;

	(void)state;
	put_all();
	assert_int_equal(export(&some), 0);
	node = click_names_stack(store_clickhouse_of(store)->names, 501);
	assert_in_range(node, 1, 63);
	chosen.stacks = mask;
	chosen.stack_count = node + 1;
	assert_int_equal(export(&chosen), 0);
	assert_string_equal(buf_text(&told), all);
	chosen.stack_count = node;
	assert_int_equal(export(&chosen), 0);
	assert_string_equal(buf_text(&told), "");
	chosen.stack_count = node + 1;
	mask[0] &= ~(1ull << node);
	assert_int_equal(export(&chosen), 0);
	assert_string_equal(buf_text(&told), "");
}

/* An answer that ends early is an error, whichever it is, and never less of the profiles. */
static void test_cut(void **state)
{
	for (int i = 0; i < ANSWERS; i++) {
		if (i)
			assert_int_equal(begin(state), 0);
		put_all();
		answers[i]->len--;
		if (export(&some) != -EBADMSG)
			fail_msg("answer %d was taken though it is cut", i);
		if (i + 1 < ANSWERS)
			assert_int_equal(end(state), 0);
	}
}

static void test_second_hour_cut(void **state)
{
	(void)state;
	put_all();
	put_number(answers[HOURS], HOUR_S, 7);
	assert_int_equal(export(&some), -EBADMSG);
	assert_string_equal(buf_text(&told), all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hour), TEST(test_hours), TEST(test_chosen), TEST(test_cut), TEST(test_second_hour_cut),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
