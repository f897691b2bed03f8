/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that is sent to ClickHouse, without one: the rows of every table, read column by column as RowBinary. Ids are
 * told by the order in which they came, for they are hashes: "frame#0" is the first row of hearth_frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/profiles_builder.h"
#include "tests/unit/proto/made_profiles.h"

#define NOW_NS	   (1700000000ull * NSEC_PER_SEC)
#define DAY_NS	   (24ull * 3600 * NSEC_PER_SEC)
#define LATEST_NS  (4102444800ull * NSEC_PER_SEC)
#define BEYOND_NS  (LATEST_NS + 5)
#define LARGEST_NS "4102444800000000000"

/* A row of a table, a letter a column: l 8 bytes, h 2, w 4, b 1, s a text, f ids of frames, a attributes, and a table's id.
 */
static const struct {
	const char *name, *columns;
} tables[CLICK_TABLES] = {
	[CLICK_FRAMES] = { "frame", "sssllllbsssslllaa" },
	[CLICK_STACKS] = { "stack", "sf" },
	[CLICK_LABELS] = { "label", "a" },
	[CLICK_SERIES] = { "series", "ssssslbssha" },
	[CLICK_SAMPLES] = { "sample", "lssETLhlss" },
};

struct told {
	uint64_t ids[CLICK_TABLES][16];
	uint64_t count[CLICK_TABLES];
};

static void tell_id(struct buf *out, const struct told *t, enum click_table table, uint64_t id)
{
	uint64_t n = 0;

	while (n < t->count[table] && t->ids[table][n] != id)
		n++;
	if (!id)
		buf_puts(out, "none");
	else if (n < t->count[table])
		buf_printf(out, "%s#%d", tables[table].name, (int)n);
	else
		buf_puts(out, "unknown");
}

static void tell_attributes(struct buf *out, struct row_reader *r)
{
	struct str keys[16], values[16];
	uint64_t kinds[16], count = get_count(r);

	assert_true(count < 16);
	for (uint64_t i = 0; i < count; i++)
		keys[i] = get_text(r);
	assert_int_equal(get_count(r), count);
	for (uint64_t i = 0; i < count; i++)
		values[i] = get_text(r);
	assert_int_equal(get_count(r), count);
	for (uint64_t i = 0; i < count; i++)
		kinds[i] = get_number(r, 1);
	assert_int_equal(get_count(r), count);
	buf_putc(out, '{');
	for (uint64_t i = 0; i < count; i++) {
		struct str unit = get_text(r);

		buf_printf(out, "%s%.*s=%.*s:%d%s%.*s", i ? " " : "", (int)keys[i].len, keys[i].data, (int)values[i].len,
			   values[i].data, (int)kinds[i], unit.len ? ":" : "", (int)unit.len, unit.data);
	}
	buf_putc(out, '}');
}

static void tell_column(struct buf *out, const struct told *t, char column, struct row_reader *r)
{
	struct str s;

	switch (column) {
	case 'l':
		buf_printf(out, "%lld", (long long)get_number(r, 8));
		break;
	case 'h':
		buf_printf(out, "%d", (int)get_number(r, 2));
		break;
	case 'b':
		buf_printf(out, "%d", (int)get_number(r, 1));
		break;
	case 's':
		s = get_text(r);
		buf_printf(out, "'%.*s'", (int)s.len, s.data);
		break;
	case 'f':
		for (uint64_t left = get_count(r); left && !r->is_bad; left--) {
			tell_id(out, t, CLICK_FRAMES, get_number(r, 8));
			buf_puts(out, left > 1 ? " " : "");
		}
		break;
	case 'a':
		tell_attributes(out, r);
		break;
	case 'E':
		tell_id(out, t, CLICK_SERIES, get_number(r, 8));
		break;
	case 'T':
		tell_id(out, t, CLICK_STACKS, get_number(r, 8));
		break;
	default:
		tell_id(out, t, CLICK_LABELS, get_number(r, 8));
		break;
	}
}

/* Every row of @batch, a line each, behind what was told before. @seen_s: when things are said to be seen. */
static void tell(struct buf *out, struct told *t, const struct click_batch *batch, uint64_t seen_s)
{
	for (enum click_table table = 0; table < CLICK_TABLES; table++) {
		struct row_reader r = rows_of(&batch->rows[table]);

		while (has_row(&r)) {
			if (table != CLICK_SAMPLES) {
				assert_true(t->count[table] < 16);
				t->ids[table][t->count[table]] = get_number(&r, 8);
				assert_int_equal(get_number(&r, 4), seen_s);
				t->count[table]++;
			}
			buf_printf(out, "%s", tables[table].name);
			for (const char *c = tables[table].columns; *c; c++) {
				buf_putc(out, ' ');
				tell_column(out, t, *c, &r);
			}
			buf_putc(out, '\n');
		}
		assert_false(r.is_bad);
	}
}

static void check_rows(struct buf *told, const char *expected)
{
	assert_string_equal(buf_text(told), expected);
	buf_reset(told);
}

/* --- what is sent --- */

static int32_t function(struct builder *b, const char *name, const char *file, int64_t start_line)
{
	return builder_function(b, builder_string_z(b, name), builder_string_z(b, "_Z"), builder_string_z(b, file),
				start_line);
}

static uint32_t shop(struct builder *b, const char *service, const struct builder_profile_spec *spec)
{
	const struct key_value resource[] = {
		{ .key = STR("service.name"), .value = { .kind = VALUE_STRING, .string = text_str(service) } },
		{ .key = STR("n"), .value = { .kind = VALUE_INT, .integer = -3 } },
		{ .key = STR("ok"), .value = { .kind = VALUE_BOOL, .boolean = true } },
		{ .key = STR("off"), .value = { .kind = VALUE_BOOL, .boolean = false } },
		{ .key = STR("share"), .value = { .kind = VALUE_DOUBLE, .real = 0.5 } },
	};

	return builder_profile(b, builder_resource(b, resource, ARRAY_LEN(resource)), spec);
}

/* Leaf first: a location of two frames, of which one is inlined, and one of an address alone. */
static int32_t made_stack(struct builder *b)
{
	int32_t id = builder_attribute_string(b, "process.executable.build_id.htlhash", STR("cafe"));
	int32_t native = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t mapping = builder_mapping(b, 4096, 8192, 512, builder_string_z(b, "/bin/shop"), &id, 1);
	const struct profile_line lines[] = { { function(b, "inner", "a.c", 7), 11, 2 },
					      { function(b, "outer", "b.c", 8), 12, 3 } };
	const int32_t locations[] = { builder_location(b, mapping, 4242, lines, 2, &native, 1),
				      builder_location(b, 0, 99, NULL, 0, NULL, 0) };

	return builder_stack(b, locations, 2);
}

static struct profiles *one_of_all(void)
{
	AUTO(free_builder) struct builder *b = builder_new();
	static const uint8_t trace[16] = "trace-trace-trac", span[8] = "spanspan";
	struct builder_profile_spec spec = text_cpu_spec;
	const int32_t weight = builder_attribute(b, STR("weight"), &(struct any_value){ .kind = VALUE_INT, .integer = 20 },
						 builder_string_z(b, "kg"));
	const int32_t labels[] = { builder_attribute_string(b, "thread.name", STR("till")),
				   builder_attribute_int(b, "cpu.logical_number", 5),
				   builder_attribute_bool(b, "late", true) };
	uint32_t profile;
	int32_t stack = made_stack(b);

	spec.attributes = &weight;
	spec.attribute_count = 1;
	profile = shop(b, "shop", &spec);
	builder_event(b, profile, stack, labels, 3, builder_link(b, trace, span), NOW_NS, false, 0);
	builder_event(b, profile, stack, labels, 3, builder_link(b, trace, span), BEYOND_NS, false, 0);
	builder_event(b, profile, 0, NULL, 0, 0, NOW_NS + 1, false, 0);
	return freeze(b);
}

#define FRAMES_OF_SHOP                                                                               \
	"frame '' '' '' 0 0 0 99 0 '' '' '' '' 0 0 0 {} {}\n"                                        \
	"frame 'outer' '_Z' 'b.c' 8 12 3 4242 0 'native' '/bin/shop' 'cafe' 'htlhash' 4096 8192 512" \
	" {profile.frame.type=native:1} {process.executable.build_id.htlhash=cafe:1}\n"              \
	"frame 'inner' '_Z' 'a.c' 7 11 2 4242 1 'native' '/bin/shop' 'cafe' 'htlhash' 4096 8192 512" \
	" {profile.frame.type=native:1} {process.executable.build_id.htlhash=cafe:1}\n"
#define STACK_OF_SHOP	     "stack 'shop' frame#0 frame#1 frame#2\n"
#define RESOURCE_OF(service) "service.name=" service ":1 n=-3:3 ok=true:2 off=false:2 share=0.5:4"

static void test_rows(void **state)
{
	AUTO(buf_fini) struct buf told = BUF_EMPTY;
	AUTO(click_batch_fini) struct click_batch batch = { 0 };
	AUTO(put_profiles) struct profiles *p = one_of_all();
	struct click_sent *sent = click_sent_new();
	struct told t = { 0 };

	(void)state;
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS), 0);
	assert_int_equal(batch.events, 3);
	tell(&told, &t, &batch, NOW_NS / NSEC_PER_SEC);
	check_rows(&told, FRAMES_OF_SHOP STACK_OF_SHOP
		   "label {thread.name=till:1 late=true:2}\n"
		   "label {}\n"
		   "series 'shop' 'samples' 'count' 'cpu' 'nanoseconds' 50000000 1 'hearth' '1' 5 {" RESOURCE_OF(
			   "shop") " weight=20:3:kg otel.scope.name=hearth:1 otel.scope.version=1:1}\n"
				   "sample 1700000000000000000 'samples' 'shop' series#0 stack#0 label#0 6 1 "
				   "'trace-trace-trac' 'spanspan'\n"
				   "sample " LARGEST_NS
				   " 'samples' 'shop' series#0 stack#0 label#0 6 1 'trace-trace-trac' 'spanspan'\n"
				   "sample 1700000000000000001 'samples' 'shop' series#0 none label#1 0 1 '' ''\n");
	click_sent_free(sent);
}

/* What samples refer to goes once, until it is forgotten, and for a service that it was not sent for. */
static void test_sent_once(void **state)
{
	static const char again[] =
		"sample 1700000000000000000 'samples' 'shop' series#0 stack#0 label#0 6 1 'trace-trace-trac' "
		"'spanspan'\n"
		"sample " LARGEST_NS " 'samples' 'shop' series#0 stack#0 label#0 6 1 'trace-trace-trac' 'spanspan'\n"
		"sample 1700000000000000001 'samples' 'shop' series#0 none label#1 0 1 '' ''\n";
	AUTO(buf_fini) struct buf told = BUF_EMPTY;
	AUTO(click_batch_fini) struct click_batch batch = { 0 };
	AUTO(put_profiles) struct profiles *p = one_of_all();
	struct click_sent *sent = click_sent_new();
	struct told t = { 0 };

	(void)state;
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS), 0);
	tell(&told, &t, &batch, NOW_NS / NSEC_PER_SEC);
	buf_reset(&told);
	click_batch_reset(&batch);
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS + DAY_NS), 0);
	assert_int_equal(batch.events, 3);
	tell(&told, &t, &batch, 0);
	check_rows(&told, again);

	click_batch_reset(&batch);
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS + DAY_NS + NSEC_PER_SEC), 0);
	t = (struct told){ 0 };
	tell(&told, &t, &batch, (NOW_NS + DAY_NS) / NSEC_PER_SEC + 1);
	assert_int_equal(t.count[CLICK_FRAMES], 3);
	assert_int_equal(t.count[CLICK_STACKS], 1);
	assert_int_equal(t.count[CLICK_LABELS], 2);
	assert_int_equal(t.count[CLICK_SERIES], 1);

	click_batch_reset(&batch);
	click_sent_forget(sent);
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS + DAY_NS + 2 * NSEC_PER_SEC), 0);
	t = (struct told){ 0 };
	tell(&told, &t, &batch, (NOW_NS + DAY_NS) / NSEC_PER_SEC + 2);
	assert_int_equal(t.count[CLICK_FRAMES], 3);
	click_sent_free(sent);
}

/* Two services with one stack, the second with sums: its stack has a row of its own, the frames of it have not. */
static void test_services(void **state)
{
	AUTO(buf_fini) struct buf told = BUF_EMPTY;
	AUTO(click_batch_fini) struct click_batch batch = { 0 };
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	static const struct builder_profile_spec sums = { .scope_name = "",
							  .scope_version = "",
							  .sample_type = "wait",
							  .sample_unit = "ms",
							  .period_type = "",
							  .period_unit = "" };
	struct click_sent *sent = click_sent_new();
	int32_t stack = made_stack(b);
	struct told t = { 0 };

	(void)state;
	builder_event(b, shop(b, "shop", &text_cpu_spec), stack, NULL, 0, 0, NOW_NS, false, 0);
	builder_event(b, shop(b, "bank", &sums), stack, NULL, 0, 0, NOW_NS, true, 70);
	p = freeze(b);
	assert_int_equal(click_batch_add(&batch, sent, p, NOW_NS), 0);
	tell(&told, &t, &batch, NOW_NS / NSEC_PER_SEC);
	check_rows(&told, FRAMES_OF_SHOP STACK_OF_SHOP
		   "stack 'bank' frame#0 frame#1 frame#2\n"
		   "label {}\n"
		   "series 'shop' 'samples' 'count' 'cpu' 'nanoseconds' 50000000 1 'hearth' '1' 5 {" RESOURCE_OF(
			   "shop") " otel.scope.name=hearth:1 otel.scope.version=1:1}\n"
				   "series 'bank' 'wait' 'ms' '' '' 0 3 '' '' 5 {" RESOURCE_OF(
					   "bank") "}\n"
						   "sample 1700000000000000000 'samples' 'shop' series#0 stack#0 label#0 0 "
						   "1 '' ''\n"
						   "sample 1700000000000000000 'wait' 'bank' series#1 stack#1 label#0 0 70 "
						   "'' ''\n");
	click_sent_free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_sent_once),
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
