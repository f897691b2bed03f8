/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that other tools read and the flame graphs, of one small profile that has a case of everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/sums/activity.h"
#include "proto/report/flamegraph.h"
#include "proto/sums/timeline.h"
#include "tests/unit/proto/golden.h"
#include "tests/unit/proto/text_profiles.h"

/* The second kind of frames is of another length of time than the first, the third has none. */
static const struct builder_profile_spec alloc_spec = {
	.scope_name = "hearth",
	.scope_version = "1",
	.sample_type = "alloc_space",
	.sample_unit = "bytes",
	.period_type = "",
	.period_unit = "",
};

static const struct builder_profile_spec wall_spec = {
	.scope_name = "hearth",
	.scope_version = "1",
	.sample_type = "wall",
	.sample_unit = "nanoseconds",
	.period_type = "",
	.period_unit = "",
};

static int32_t typed(struct builder *b, const char *type)
{
	return builder_attribute_string(b, "profile.frame.type", text_str(type));
}

/* A frame of a function of its own, at @address of @module. @name NULL: without one. @file and @line may be NULL and 0. */
static int32_t frame(struct builder *b, const char *type, const char *module, uint64_t address, const char *name,
		     const char *file, int64_t line)
{
	int32_t attribute = typed(b, type);
	int32_t mapping = module ? builder_mapping(b, 0x400000, 0x500000, 0, builder_string_z(b, module), NULL, 0) : 0;
	struct profile_line at = { .line = line };

	if (name)
		at.function_index = builder_function(b, builder_string_z(b, name), 0, file ? builder_string_z(b, file) : 0,
						     0);
	return builder_location(b, mapping, address, &at, name != NULL, &attribute, 1);
}

/* A function into which two others are inlined. */
static int32_t inlined(struct builder *b)
{
	static const char *const names[] = { "clamp", "scale", "draw(int, \"x\")" };
	int32_t attribute = typed(b, "native");
	int32_t mapping = builder_mapping(b, 0x400000, 0x500000, 0, builder_string_z(b, "/usr/lib/libdraw.so"), NULL, 0);
	struct profile_line lines[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		lines[i].function_index = builder_function(b, builder_string_z(b, names[i]), 0,
							   builder_string_z(b, i ? "draw.c" : "clamp.h"), 0);
		lines[i].line = 10 * (i + 1);
	}
	return builder_location(b, mapping, 0x40beef, lines, 3, &attribute, 1);
}

enum { STACKS = 6 };

static void make_stacks(struct builder *b, int32_t stacks[STACKS])
{
	int32_t start = frame(b, "native", "/usr/bin/web", 0x401000, "main", "main.c", 7);
	int32_t draw = inlined(b), kernel = frame(b, "kernel", "[kernel]", 0xffffffff81000010, "do_syscall_64", NULL, 0);
	int32_t go = frame(b, "go", "/usr/bin/batch", 0x402000, "main.run", "run.go", 70);
	int32_t script = frame(b, "cpython", NULL, 0, "handle <a&b>", "app.py", 3),
		unnamed = frame(b, "native", "/usr/lib/libz.so", 0x1234, NULL, NULL, 0);
	int32_t nowhere = frame(b, "native", NULL, 0x77, NULL, NULL, 0),
		marker = frame(b, "abort-marker", NULL, 0, "[cut\tof\xc3\xa9]", NULL, 0);
	const int32_t all[STACKS][3] = {
		{ draw, start }, { kernel, draw, start }, { go, marker }, { script, start }, { unnamed, nowhere, start }
	};
	static const uint32_t counts[STACKS] = { 2, 3, 2, 2, 3, 0 };

	for (int i = 0; i < STACKS; i++)
		stacks[i] = builder_stack(b, all[i], counts[i]);
}

struct event {
	unsigned thread, stack;
	int64_t cpu;	    /* -1: not said */
	uint64_t ns, times; /* since the start */
};

/* Out of order, with ties between threads. */
static const struct event events[] = {
	{ 0, 0, 1, 2000001, 1 }, { 1, 1, 0, 1000000, 1 }, { 0, 1, -1, 1000000, 1 },    { 2, 2, 11, 3500000, 2 },
	{ 3, 3, 3, 999, 1 },	 { 0, 4, 2, 0, 1 },	  { 3, 5, -1, 4000000000, 1 }, { 1, 0, 5, 1000000, 1 },
};

static const struct {
	const char *process; /* NULL: none is known */
	int64_t pid, tid;    /* -1: not said */
	const char *comm;    /* NULL: not said */
} threads[] = {
	{ "web", 100, 100, "web" }, { "web", 100, 101, "io worker" }, { "batch", 99, -1, "batch" }, { NULL, -1, 7, NULL }
};

static uint32_t resource_of(struct builder *b, unsigned thread)
{
	struct key_value kv[2] = { 0 };
	uint32_t count = 0;

	if (threads[thread].process)
		kv[count++] = (struct key_value){ .key = STR("process.executable.name"),
						  .value = { .kind = VALUE_STRING,
							     .string = text_str(threads[thread].process) } };
	if (threads[thread].pid >= 0)
		kv[count++] = (struct key_value){ .key = STR("process.pid"),
						  .value = { .kind = VALUE_INT, .integer = threads[thread].pid } };
	return builder_resource(b, kv, count);
}

/* The events as samples of @spec: of the CPU's with times, else as sums, which grow with their number. */
static struct profiles *make(const struct builder_profile_spec *spec)
{
	AUTO(free_builder) struct builder *b = builder_new();
	uint64_t start = (uint64_t)TEXT_START_S * 1000000000;
	struct profiles *p = NULL;
	int32_t stacks[STACKS];

	make_stacks(b, stacks);
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		const struct event *e = &events[i];
		uint32_t profile = builder_profile(b, resource_of(b, e->thread), spec), count = 0;
		int32_t attributes[3];

		if (threads[e->thread].comm)
			attributes[count++] = builder_attribute_string(b, "thread.name", text_str(threads[e->thread].comm));
		if (threads[e->thread].tid >= 0)
			attributes[count++] = builder_attribute_int(b, "thread.id", threads[e->thread].tid);
		if (e->cpu >= 0)
			attributes[count++] = builder_attribute_int(b, "cpu.logical_number", e->cpu);
		for (uint64_t n = 0; n < e->times && spec == &text_cpu_spec; n++)
			builder_event(b, profile, stacks[e->stack], attributes, count, 0, start + e->ns, false, 0);
		if (spec != &text_cpu_spec)
			builder_value(b, profile, stacks[e->stack], attributes, count, 0, i ? 5000 * (int64_t)(i * i) : 1);
	}
	assert_int_equal(builder_freeze(b, start, start + 5000000000, &p), 0);
	return p;
}

static const struct builder_profile_spec *const specs[] = { &text_cpu_spec, &alloc_spec, &wall_spec };

static void free_timeline(struct timeline **t)
{
	timeline_free(*t);
}

/* The version is the build's. */
static void put_unversioned(struct buf *text, struct buf *out)
{
	const char *at = buf_text(text);

	for (const char *version; (version = strstr(at, "hearth " HEARTH_VERSION));
	     at = version + strlen("hearth " HEARTH_VERSION)) {
		buf_append(out, at, (size_t)(version - at));
		buf_puts(out, "hearth VERSION");
	}
	buf_puts(out, at);
}

static int write_speedscope(const struct timeline *t, struct buf *out)
{
	return timeline_write_speedscope(t, "a \"name\"", out);
}

static void check_timelines(int (*write)(const struct timeline *t, struct buf *out), const char *first, bool by_time,
			    const char *golden)
{
	AUTO(buf_fini) struct buf all = BUF_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		AUTO(put_profiles) struct profiles *p = make(specs[i]);
		AUTO(free_timeline) struct timeline *t = NULL;
		AUTO(buf_fini) struct buf text = BUF_EMPTY, plain = BUF_EMPTY;

		assert_int_equal(timeline_new(p, &t), 0);
		if (by_time)
			timeline_sort_by_time(t);
		assert_int_equal(write(t, &text), 0);
		buf_puts(&text, "\nEND");
		put_unversioned(&text, &plain);
		golden_part(&plain, first, "\nEND", &all);
	}
	assert_golden(&all, golden);
}

static void test_speedscope(void **state)
{
	(void)state;
	check_timelines(write_speedscope, "{", false, "write_speedscope.txt");
}

static void test_firefox(void **state)
{
	(void)state;
	check_timelines(timeline_write_firefox, "{", false, "write_firefox.txt");
}

static void test_perf_script(void **state)
{
	(void)state;
	check_timelines(timeline_write_perf_script, "", true, "write_perf_script.txt");
}

static void free_tree(struct tree **t)
{
	tree_free(*t);
}

static void test_flamegraphs(void **state)
{
	AUTO(buf_fini) struct buf all = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		AUTO(put_profiles) struct profiles *p = make(specs[i]);
		AUTO(free_tree) struct tree *t = tree_new();
		AUTO(buf_fini) struct buf svg = BUF_EMPTY, html = BUF_EMPTY;

		assert_int_equal(tree_add(t, p), 0);
		assert_int_equal(flamegraph_write_svg(t, &svg), 0);
		golden_part(&svg, "<svg ", "<style>", &all);
		golden_part(&svg, ".p0{", "<foreignObject", &all);
		golden_part(&svg, "<g id=\"frames\"", "<script>", &all);
		assert_int_equal(flamegraph_write_html(t, &html), 0);
		golden_part(&html, "<h1>", "</h1>", &all);
		golden_part(&html, "<script id=\"data\"", "</script>", &all);
	}
	golden_rounded(&all);
	assert_golden(&all, "write_flamegraphs.txt");
}

static void free_activity(struct activity **a)
{
	activity_free(*a);
}

/* Rows of one weight stand by name, then pid, then tid, whatever the order they came in. */
static void test_activity_ties(void **state)
{
	static const struct {
		const char *comm;
		int64_t pid, tid;
	} rows[] = { { "b", 1, 5 }, { "b", 1, 4 }, { "a", 3, 9 }, { "a", 2, 10 }, { "a", 2, 11 }, { "c", 1, 1 } };
	static const size_t expected[] = { 3, 4, 2, 1, 0, 5 };

	(void)state;
	for (size_t turn = 0; turn < ARRAY_LEN(rows); turn++) {
		AUTO(free_activity) struct activity *a = activity_new(ACTIVITY_THREADS, NULL);
		AUTO(free_builder) struct builder *b = builder_new();
		AUTO(put_profiles) struct profiles *p = NULL;
		const struct activity_row *const *sorted;
		uint32_t count;

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			size_t r = (i * 5 + turn) % ARRAY_LEN(rows);
			struct key_value kv = { .key = STR("process.pid"),
						.value = { .kind = VALUE_INT, .integer = rows[r].pid } };
			int32_t attributes[] = { builder_attribute_string(b, "thread.name", text_str(rows[r].comm)),
						 builder_attribute_int(b, "thread.id", rows[r].tid) };

			builder_event(b, builder_profile(b, builder_resource(b, &kv, 1), &text_cpu_spec),
				      builder_stack(b, NULL, 0), attributes, 2, 0, 1000000000, false, 0);
		}
		assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
		assert_int_equal(activity_add(a, p), 0);
		sorted = activity_rows(a, &count);
		assert_int_equal(count, ARRAY_LEN(rows));
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(sorted[i]->pid, rows[expected[i]].pid);
			assert_int_equal(sorted[i]->tid, rows[expected[i]].tid);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_speedscope),  cmocka_unit_test(test_firefox),	  cmocka_unit_test(test_perf_script),
		cmocka_unit_test(test_flamegraphs), cmocka_unit_test(test_activity_ties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
