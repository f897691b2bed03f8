/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: what they change, what they keep back, that what comes in stays as it was, and whom an ack comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "proto/profiles_builder.h"
#include "sinks/sinks.h"
#include "sinks/stage/detectors.h"
#include "sinks/stage/stage.h"

/* A sink that keeps what came last. */
struct keeper {
	struct sink sink;
	struct sink_ops ops;
	struct profiles *last;
	unsigned count, freed;
};

static int keeper_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct keeper *k = (struct keeper *)sink;

	profiles_put(k->last);
	k->last = profiles_get(p);
	k->count++;
	if (ack)
		ack->done(ack, 0);
	return 0;
}

static void keeper_free(struct sink *sink)
{
	((struct keeper *)sink)->freed++;
}

static void keeper_init(struct keeper *k)
{
	*k = (struct keeper){ .ops = { .name = "keeper", .durable = true, .consume = keeper_consume, .free = keeper_free } };
	k->sink.ops = &k->ops;
}

static struct profiles *make(void)
{
	static const struct builder_profile_spec spec = { .scope_name = "t",
							  .scope_version = "",
							  .sample_type = "samples",
							  .sample_unit = "count",
							  .period_type = "",
							  .period_unit = "" };
	struct builder *b = builder_new();
	struct profiles *p = NULL;

	assert_non_null(b);
	for (int64_t i = 0; i < 2; i++) {
		const struct key_value attributes[] = {
			{ .key = STR("service.name"),
			  .value = { .kind = VALUE_STRING, .string = str_z(i ? "two" : "one") } },
			{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 10 + i } },
		};

		for (int64_t k = 0; k <= i; k++)
			builder_event(b, builder_profile(b, builder_resource(b, attributes, 2), &spec), 0, NULL, 0, 0, 5,
				      false, 0);
	}
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	builder_free(b);
	return p;
}

/* "key=value ..." of a resource. */
static void print_attributes(const struct profiles *p, uint32_t resource, struct buf *out)
{
	const struct key_values *list = &p->resources[resource].resource.attributes;

	for (uint32_t i = 0; i < list->count; i++) {
		struct str key = profiles_key(p, &list->items[i]), text;
		const struct any_value *v = &list->items[i].value;

		buf_printf(out, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
		if (profiles_value_string(p, v, &text))
			buf_printf(out, "%.*s", (int)text.len, text.data);
		else if (v->kind == VALUE_INT)
			buf_printf(out, "%d", (int)v->integer);
		else
			buf_printf(out, "kind %d", (int)v->kind);
	}
}

static void has(const struct profiles *p, uint32_t resource, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	print_attributes(p, resource, &out);
	assert_string_equal(buf_text(&out), expected);
}

static struct any_value text(const char *s)
{
	return (struct any_value){ .kind = VALUE_STRING, .string = str_z(s) };
}

static void test_edits(void **state)
{
	struct stage_edit items[] = {
		{ .action = EDIT_INSERT, .key = "service.name", .value = text("no") },
		{ .action = EDIT_INSERT, .key = "env", .value = text("test") },
		{ .action = EDIT_UPDATE, .key = "missing", .value = text("no") },
		{ .action = EDIT_UPSERT, .key = "service.name", .value = text("shop") },
		{ .action = EDIT_UPSERT, .key = "copy", .from = "process.pid" },
		{ .action = EDIT_UPSERT, .key = "none", .from = "missing" },
		{ .action = EDIT_CONVERT, .key = "process.pid", .value = { .kind = VALUE_STRING } },
		{ .action = EDIT_CONVERT, .key = "env", .value = { .kind = VALUE_INT } },
		{ .action = EDIT_DELETE, .pattern = NULL },
	};
	struct stage_test one = { .key = "service.name", .value = "one" };
	struct stage_edits edits = {
		.items = items, .count = ARRAY_LEN(items), .has_include = true, .include = { &one, 1 }
	};
	struct pattern_error error;
	struct metrics *metrics = metrics_new();
	struct profiles *p = make();
	struct keeper keeper;
	struct sink *stage;

	(void)state;
	assert_int_equal(pattern_new("^co", 0, &items[8].pattern, &error), 0);
	keeper_init(&keeper);
	assert_int_equal(stage_edit_new(&edits, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, p, NULL), 0);
	has(keeper.last, 0, "service.name=shop process.pid=10 env=test");
	has(keeper.last, 1, "service.name=two process.pid=11");
	has(p, 0, "service.name=one process.pid=10");
	assert_int_equal(keeper.last->sample_events, p->sample_events);
	sink_free(stage);
	assert_int_equal(keeper.freed, 1);
	pattern_free(items[8].pattern);
	profiles_put(keeper.last);
	profiles_put(p);
	metrics_free(metrics);
}

struct counted {
	struct ack ack;
	unsigned count;
	int error;
};

static void on_done(struct ack *ack, int error)
{
	struct counted *c = (struct counted *)ack;

	c->count++;
	c->error = error;
}

static void test_filter(void **state)
{
	struct stage_test two = { .key = "process.pid", .value = "11" }, any = { .key = "service.name" };
	struct stage_filter not_two = { .has_exclude = true, .exclude = { &two, 1 } };
	struct stage_filter nobody = { .has_exclude = true, .exclude = { &any, 1 } };
	struct counted acked = { .ack = { on_done } };
	struct metrics *metrics = metrics_new();
	struct profiles *p = make();
	struct keeper keeper;
	struct sink *stage;

	(void)state;
	keeper_init(&keeper);
	assert_int_equal(stage_filter_new(&not_two, &keeper.sink, metrics, &stage), 0);
	assert_true(stage->ops->durable);
	assert_int_equal(sink_consume(stage, p, &acked.ack), 0);
	assert_int_equal(keeper.last->resource_count, 1);
	assert_int_equal(keeper.last->sample_events, 1);
	assert_int_equal(p->resource_count, 2);
	assert_int_equal(acked.count, 1);
	assert_int_equal(metric_get(metrics_counter(metrics, "hearth_filtered_samples_total", NULL, "")), 2);
	sink_free(stage);
	/* what nobody wants is settled all the same */
	assert_int_equal(stage_filter_new(&nobody, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, p, &acked.ack), 0);
	assert_int_equal(keeper.count, 1);
	assert_int_equal(acked.count, 2);
	assert_int_equal(acked.error, 0);
	sink_free(stage);
	profiles_put(keeper.last);
	profiles_put(p);
	metrics_free(metrics);
}

static void test_limit(void **state)
{
	struct stage_limit tight = { .check_interval_ns = 1, .limit_bytes = 2, .spike_bytes = 1 };
	struct stage_limit wide = { .check_interval_ns = 1, .limit_percent = 100, .spike_percent = 1 };
	struct metrics *metrics = metrics_new();
	struct profiles *p = make();
	struct keeper keeper;
	struct sink *stage;

	(void)state;
	keeper_init(&keeper);
	assert_int_equal(stage_limit_new(&tight, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, p, NULL), -EAGAIN);
	assert_int_equal(metric_get(metrics_counter(metrics, "hearth_memory_limiter_refused_samples_total", NULL, "")), 3);
	sink_free(stage);
	assert_int_equal(stage_limit_new(&wide, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, p, NULL), 0);
	sink_free(stage);
	profiles_put(keeper.last);
	profiles_put(p);
	metrics_free(metrics);
}

static void test_detect(void **state)
{
	struct stage_detect detect = { .detectors = { "env", "system" }, .timeout_ns = NSEC_PER_SEC, .keeps = true };
	struct metrics *metrics = metrics_new();
	struct profiles *p = make();
	struct keeper keeper;
	struct sink *stage;
	struct str value;

	(void)state;
	setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=no,a%20b=c%2Cd,host.name=told", 1);
	keeper_init(&keeper);
	assert_int_equal(stage_detect_new(&detect, (struct stage_kubernetes){ 0 }, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, p, NULL), 0);
	value = profiles_value_text(keeper.last,
				    profiles_find_key(keeper.last, &keeper.last->resources[0].resource.attributes, "a b"));
	assert_true(str_is(value, "c,d"));
	value = profiles_value_text(
		keeper.last, profiles_find_key(keeper.last, &keeper.last->resources[0].resource.attributes, "host.name"));
	assert_true(str_is(value, "told")); /* the first detector */
	value = profiles_value_text(
		keeper.last, profiles_find_key(keeper.last, &keeper.last->resources[0].resource.attributes, "service.name"));
	assert_true(str_is(value, "one")); /* override: false */
	assert_non_null(profiles_find_key(keeper.last, &keeper.last->resources[1].resource.attributes, "host.arch"));
	sink_free(stage);
	profiles_put(keeper.last);
	profiles_put(p);
	metrics_free(metrics);
}

/* Several owners: the last one frees. */
static void test_shared(void **state)
{
	struct profiles *p = make();
	struct keeper keeper;
	struct sink *shared, *again;

	(void)state;
	keeper_init(&keeper);
	assert_int_equal(stage_shared_new(&keeper.sink, &shared), 0);
	again = stage_share(shared);
	assert_int_equal(sink_consume(again, p, NULL), 0);
	sink_free(shared);
	assert_int_equal(keeper.freed, 0);
	assert_int_equal(sink_consume(again, p, NULL), 0);
	sink_free(again);
	assert_int_equal(keeper.freed, 1);
	assert_int_equal(keeper.count, 2);
	profiles_put(keeper.last);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edits),  cmocka_unit_test(test_filter), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_detect), cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
