/* SPDX-License-Identifier: Apache-2.0 */
/* Walking stacks, the table of functions and the call tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "proto/sums/modules.h"
#include "proto/sums/top.h"
#include "proto/sums/tree.h"
#include "tests/unit/proto/text_profiles.h"

static void free_top(struct top **t)
{
	top_free(*t);
}

static void free_tree(struct tree **t)
{
	tree_free(*t);
}

static struct profiles *freeze(struct builder *b)
{
	struct profiles *p = NULL;

	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	return p;
}

static void add_text_top(struct top *t, const char *text)
{
	AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);

	assert_int_equal(top_add(t, p), 0);
}

/* "comm pid weight events: leaf|...|root" of each sample. */
static int describe(void *arg, const struct stack_sample *s)
{
	struct buf *out = arg;

	buf_printf(out, "%.*s %d %u %u:", (int)s->comm.len, s->comm.data, (int)s->pid, (unsigned)s->weight,
		   (unsigned)s->events);
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);

		buf_putc(out, i ? '|' : ' ');
		stack_frame_print(f, 0, out);
		buf_printf(out, "@%.*s/%.*s", (int)f->module.len, f->module.data, (int)f->type.len, f->type.data);
		if (f->line)
			buf_printf(out, ":%d", (int)f->line);
		buf_puts(out, f->inlined ? "(inlined)" : "");
	}
	buf_putc(out, '\n');
	return 0;
}

static void test_frames(void **state)
{
	struct builder *b = builder_new();
	int32_t native = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t kernel = builder_attribute_string(b, "profile.frame.type", STR("kernel"));
	int32_t thread = builder_attribute_string(b, "thread.name", STR("worker"));
	int32_t mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, "/usr/lib/libx.so.1"), NULL, 0);
	int32_t driver = builder_mapping(b, 0, 0, 0, builder_string_z(b, "nf_tables"), NULL, 0);
	struct profile_line lines[] = {
		{ .function_index = builder_function(b, builder_string_z(b, "inner"), 0, 0, 0), .line = 11 },
		{ .function_index = builder_function(b, builder_string_z(b, "middle"), 0, 0, 0), .line = 22 },
		{ .function_index = builder_function(b, 0, builder_string_z(b, "_Zouter"), 0, 0), .line = 33 },
	};
	int32_t stack[] = {
		builder_location(b, mapping, 0x10, lines, 3, &native, 1),
		builder_location(b, driver, 0x20, &lines[2], 1, &kernel, 1),
		builder_location(b, 0, 0x30, &lines[2], 1, &kernel, 1),
		builder_location(b, mapping, 0xabc, NULL, 0, &native, 1),
		builder_location(b, 0, 0x7f00, NULL, 0, NULL, 0),
	};
	static const struct builder_profile_spec spec = { .scope_name = "s",
							  .scope_version = "1",
							  .sample_type = "off_cpu",
							  .sample_unit = "nanoseconds",
							  .period_type = "",
							  .period_unit = "" };
	const struct key_value resource[] = {
		{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = STR("exe") } },
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 42 } },
	};
	uint32_t plain = builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec);
	uint32_t full = builder_profile(b, builder_resource(b, resource, 2), &text_cpu_spec);
	uint32_t waits = builder_profile(b, builder_resource(b, resource, 2), &spec);
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	builder_event(b, plain, builder_stack(b, stack, 5), NULL, 0, 0, 1, false, 0);
	builder_event(b, full, builder_stack(b, &stack[3], 1), &thread, 1, 0, 1, false, 0);
	builder_event(b, full, builder_stack(b, &stack[3], 1), &thread, 1, 0, 2, false, 0);
	builder_event(b, full, 0, NULL, 0, 0, 1, false, 0);
	builder_event(b, waits, builder_stack(b, &stack[4], 1), NULL, 0, 0, 1, true, 500);
	builder_event(b, waits, builder_stack(b, &stack[4], 1), NULL, 0, 0, 1, true, -3);
	p = freeze(b);
	assert_int_equal(stack_walk_each(p, describe, &out), 0);
	assert_string_equal(buf_text(&out),
			    " -1 1 1: inner@libx.so.1/native:11(inlined)|middle@libx.so.1/native:22(inlined)|"
			    "_Zouter@libx.so.1/native:33|_Zouter@nf_tables/kernel:33|_Zouter@[kernel]/kernel:33|"
			    "libx.so.1 (no symbols)@libx.so.1/native|[unknown]@/unknown\n"
			    "worker 42 2 2: libx.so.1 (no symbols)@libx.so.1/native\n"
			    "exe 42 1 1:\n"
			    "exe 42 500 2: [unknown]@/unknown\n");
}

/* Threads do not keep a stack's samples apart, profiles and stacks do. */
static void test_walk_sums(void **state)
{
	struct builder *b = builder_new();
	int32_t threads[] = { builder_attribute_string(b, "thread.name", STR("one")),
			      builder_attribute_string(b, "thread.name", STR("two")) };
	int32_t a = builder_mapping(b, 0, 0, 0, builder_string(b, STR("a")), NULL, 0);
	int32_t c = builder_mapping(b, 0, 0, 0, builder_string(b, STR("c")), NULL, 0);
	int32_t locations[] = { builder_location(b, a, 0x10, NULL, 0, NULL, 0),
				builder_location(b, c, 0x20, NULL, 0, NULL, 0) };
	int32_t stacks[] = { builder_stack(b, &locations[0], 1), builder_stack(b, &locations[1], 1) };
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		const struct key_value pid = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = i / 8 } };
		uint32_t profile = builder_profile(b, builder_resource(b, &pid, 1), &text_cpu_spec);

		builder_event(b, profile, stacks[i % 4 == 3], &threads[i % 2], 1, 0, 1 + i, false, 0);
	}
	p = freeze(b);
	assert_int_equal(stack_walk_each_sum(p, describe, &out), 0);
	assert_string_equal(buf_text(&out), "one 0 6 6: a (no symbols)@a/unknown\ntwo 0 2 2: c (no symbols)@c/unknown\n"
					    "one 1 3 3: a (no symbols)@a/unknown\ntwo 1 1 1: c (no symbols)@c/unknown\n");
}

static int stop_at_second(void *arg, const struct stack_sample *s)
{
	(void)s;
	return ++*(int *)arg == 2 ? -ECANCELED : 0;
}

static void test_walk_stops(void **state)
{
	AUTO(put_profiles) struct profiles *p = text_profiles("a;x 1\na;y 1\na;z 1\n", 0);
	int calls = 0;

	(void)state;
	assert_int_equal(stack_walk_each(p, stop_at_second, &calls), -ECANCELED);
	assert_int_equal(calls, 2);
}

static void test_top(void **state)
{
	static const struct {
		const char *text, *rows;
	} cases[] = {
		{ "", "" },
		{ "a 3\n", "" }, /* no frames: weight, but no function */
		{ "a;main@x;f@x 2\na;main@x 1\n", "f@x 2/2 main@x 1/3 " },
		/* recursion, direct and mutual: once a sample in the total */
		{ "a;f@x;f@x;f@x 5\n", "f@x 5/5 " },
		{ "a;f@x;g@x;f@x;g@x 2\na;g@x;f@x 1\n", "g@x 2/3 f@x 1/3 " },
		/* one name in two modules is two functions; in two processes one */
		{ "a;f@x 1\na;f@y 2\nb;f@x 4\n", "f@x 5/5 f@y 2/2 " },
		/* ties: total, then name, then module */
		{ "a;z@m 1\na;b@m;c@m 1\na;y@n;c@n 1\na;b@m;q@m 1\n", "c@m 1/1 c@n 1/1 q@m 1/1 z@m 1/1 b@m 0/2 y@n 0/1 " },
		{ "a;@/lib/x.so 1\na;f@[kernel] 1\n", "f@[kernel] 1/1 x.so (no symbols)@x.so 1/1 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_top) struct top *t = top_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		const struct top_row *rows;
		uint32_t count;

		add_text_top(t, cases[i].text);
		rows = top_rows(t, &count);
		for (uint32_t r = 0; r < count; r++)
			buf_printf(&out, "%s@%s %u/%u ", rows[r].name, rows[r].module, (unsigned)rows[r].all.self,
				   (unsigned)rows[r].all.total);
		assert_string_equal(buf_text(&out), cases[i].rows);
	}
}

static void test_top_intervals(void **state)
{
	AUTO(free_top) struct top *t = top_new();
	const struct top_row *rows;
	uint32_t count;

	(void)state;
	add_text_top(t, "a;f@x 10\na;g@[kernel] 5\n");
	top_begin_interval(t, 0);
	add_text_top(t, "a;f@x 1\na;h@app.go 2\na 1\n");
	assert_int_equal(top_sum(t)->weight, 19);
	assert_int_equal(top_recent_sum(t)->weight, 4);
	assert_int_equal(top_recent_sum(t)->cpu_ns, 4 * 50000000);
	rows = top_recent_rows(t, &count);
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].name, "h");
	assert_string_equal(rows[0].type, "go");
	assert_float_equal(rows[1].recent.self, 1, 0);
	assert_int_equal(rows[1].all.self, 11);
	rows = top_rows(t, &count);
	assert_int_equal(count, 3);
	assert_string_equal(rows[1].name, "g");
	assert_string_equal(rows[1].type, "kernel");
	top_reset(t);
	assert_non_null(top_rows(t, &count));
	assert_int_equal(count, 0);
	assert_int_equal(top_sum(t)->events, 0);
	add_text_top(t, "a;f@x 1\n");
	assert_int_equal(top_rows(t, &count)[0].all.self, 1);
}

/* Intervals that are over weigh less each time, and stand in rows until they weigh next to nothing. */
static void test_top_decays(void **state)
{
	AUTO(free_top) struct top *t = top_new();
	const struct top_row *rows;
	uint32_t count;

	(void)state;
	add_text_top(t, "a;r@x;f@x 8\na;r@x;g@x 4\n");
	assert_float_equal(top_recent_weight(t), 12, 0);
	top_begin_interval(t, 0.5);
	add_text_top(t, "a;r@x;g@x 3\n");
	assert_float_equal(top_recent_weight(t), 9, 0);
	assert_int_equal(top_recent_sum(t)->weight, 3);
	rows = top_recent_rows(t, &count);
	assert_int_equal(count, 3);
	assert_string_equal(rows[0].name, "g");
	assert_float_equal(rows[0].recent.self, 5, 0);
	assert_string_equal(rows[1].name, "f");
	assert_float_equal(rows[1].recent.self, 4, 0);
	assert_int_equal(rows[1].all.self, 8);
	assert_string_equal(rows[2].name, "r");
	assert_float_equal(rows[2].recent.total, 9, 0);
	assert_int_equal(top_trim(t, 0), 0); /* what is left of the past goes on in the new table */
	rows = top_recent_rows(t, &count);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].name, TOP_DROPPED);
	assert_float_equal(rows[0].recent.self, 9, 0);
	top_begin_interval(t, 0.01);
	assert_float_equal(top_recent_weight(t), 0.09, 1e-9);
	assert_non_null(top_recent_rows(t, &count));
	top_begin_interval(t, 0.01);
	assert_non_null(top_recent_rows(t, &count));
	assert_int_equal(count, 0);
}

static void test_top_trim(void **state)
{
	AUTO(free_top) struct top *t = top_new();
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const struct top_row *rows;
	uint32_t count;
	uint64_t self = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		buf_printf(&text, "a;main@x;f%u@[kernel] %u\n", i, i / 50 * 10 + 1);
	for (int round = 1; round <= 2; round++) {
		add_text_top(t, buf_text(&text));
		assert_int_equal(top_trim(t, 51), 0); /* 101 functions: not yet more than twice that */
		top_rows(t, &count);
		assert_int_equal(count, round == 1 ? 101 : 102);
		assert_int_equal(top_trim(t, 40), 0);
		rows = top_rows(t, &count);
		assert_int_equal(count, 41);
		assert_int_equal(top_sum(t)->weight, 600 * round);
		self = 0;
		for (uint32_t i = 0; i < count; i++) {
			self += rows[i].all.self;
			if (!strcmp(rows[i].name, "main"))
				assert_int_equal(rows[i].all.total, 600 * round); /* no self weight, but heavy: kept */
			else if (!strcmp(rows[i].name, TOP_DROPPED))
				assert_int_equal(rows[i].all.self, (50 + 11 * 11) * round);
			else
				assert_string_equal(rows[i].type, "kernel");
		}
		assert_int_equal(self, 600 * round);
	}
}

static void test_other_sample_types_are_left_out(void **state)
{
	static const struct builder_profile_spec waits = { .scope_name = "s",
							   .scope_version = "1",
							   .sample_type = "off_cpu",
							   .sample_unit = "nanoseconds",
							   .period_type = "",
							   .period_unit = "" };
	AUTO(free_top) struct top *t = top_new();
	AUTO(free_tree) struct tree *tree = tree_new();
	struct builder *b = builder_new();
	uint32_t resource = builder_resource(b, NULL, 0);
	AUTO(put_profiles) struct profiles *p = NULL;

	(void)state;
	builder_event(b, builder_profile(b, resource, &text_cpu_spec), 0, NULL, 0, 0, 1, false, 0);
	builder_event(b, builder_profile(b, resource, &waits), 0, NULL, 0, 0, 1, true, 1000000);
	p = freeze(b);
	assert_int_equal(top_add(t, p), 0);
	assert_int_equal(tree_add(tree, p), 0);
	assert_int_equal(top_sum(t)->weight, 1);
	assert_int_equal(top_sum(t)->other_events, 1);
	assert_int_equal(tree_total(tree_root(tree)), 1);
	assert_string_equal(tree_sum(tree)->type, "samples");
}

/* "name self/total" in pre-order, '>' for each level. */
static void describe_tree(const struct tree *t, const struct call_node *root, struct buf *out)
{
	uint32_t depth = 0;

	for (const struct call_node *n = root; n; n = call_next(root, n, &depth)) {
		for (uint32_t i = 0; i < depth; i++)
			buf_putc(out, '>');
		buf_printf(out, "%s %u/%u ", tree_name(t, n), (unsigned)tree_self(n), (unsigned)tree_total(n));
	}
}

static void test_tree(void **state)
{
	static const char text[] = "b;main@x;f@x 2\na;main@x;f@x 3\na;main@y;g@x 4\na;main@x 1\na;main@x;h@x 3\n";
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(buf_fini) struct buf by_weight = BUF_EMPTY, by_name = BUF_EMPTY, sum = BUF_EMPTY;

	(void)state;
	describe_tree(t, tree_root(t), &sum);
	assert_string_equal(buf_text(&sum), " 0/0 ");
	for (int i = 0; i < 2; i++) { /* adding again doubles, and reading in between does no harm */
		AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);

		assert_int_equal(tree_add(t, p), 0);
		tree_root(t);
	}
	describe_tree(t, tree_root(t), &by_weight);
	assert_string_equal(buf_text(&by_weight),
			    " 0/26 >a 0/22 >>main 2/22 >>>g 8/8 >>>f 6/6 >>>h 6/6 >b 0/4 >>main 0/4 >>>f 4/4 ");
	describe_tree(t, tree_root_by_name(t), &by_name);
	assert_string_equal(buf_text(&by_name),
			    " 0/26 >a 0/22 >>main 2/22 >>>f 6/6 >>>g 8/8 >>>h 6/6 >b 0/4 >>main 0/4 >>>f 4/4 ");
}

/* A function counts where it is innermost, and callers of one name in two modules are two. */
static void test_callers(void **state)
{
	static const char text[] = "a;main@x;f@x;g@x 2\na;main@y;f@x;h@x 3\na;main@x;f@x;f@x 4\na;main@y;f@z 5\na;f@x 1\n";
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);
	AUTO(buf_fini) struct buf callers = BUF_EMPTY, near = BUF_EMPTY;

	(void)state;
	tree_callers(t, "f", "x", 9);
	assert_int_equal(tree_add(t, p), 0);
	describe_tree(t, tree_root(t), &callers);
	assert_string_equal(buf_text(&callers), " 1/10 >f 0/4 >>main 4/4 >main 3/3 >main 2/2 ");
	tree_free(t);
	t = tree_new();
	tree_callers(t, "f", "x", 1);
	assert_int_equal(tree_add(t, p), 0);
	describe_tree(t, tree_root(t), &near);
	assert_string_equal(buf_text(&near), " 1/10 >f 4/4 >main 3/3 >main 2/2 ");
}

/* Depth must cost no C stack, also beyond what hearth itself samples. */
static void test_deep_stacks(void **state)
{
	enum { DEPTH = 200000 };
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(free_top) struct top *top = top_new();
	struct builder *b = builder_new();
	int32_t *stack = calloc(DEPTH, sizeof(*stack));
	AUTO(put_profiles) struct profiles *p = NULL;
	const char *last_name = "";
	uint64_t last_self = 0;
	uint32_t depth = 0, deepest = 0, count;

	(void)state;
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct profile_line line = { 0 };
		char name[16];

		snprintf(name, sizeof(name), "0x%x", i % 1000);
		line.function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0);
		stack[i] = builder_location(b, 0, i % 1000, &line, 1, NULL, 0);
	}
	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec), builder_stack(b, stack, DEPTH),
		      NULL, 0, 0, 1, false, 0);
	free(stack);
	p = freeze(b);
	assert_int_equal(tree_add(t, p), 0);
	for (const struct call_node *root = tree_root(t), *n = root; n; n = call_next(root, n, &depth)) {
		deepest = depth > deepest ? depth : deepest;
		last_name = tree_name(t, n);
		last_self = tree_self(n);
	}
	assert_int_equal(deepest, DEPTH + 1);
	assert_string_equal(last_name, "0x0");
	assert_int_equal(last_self, 1);
	assert_int_equal(top_add(top, p), 0);
	assert_int_equal(top_rows(top, &count)[0].all.total, 1);
	assert_int_equal(count, 1000);
}

/* A hostile input: one location of many lines, many times in one stack, would be 10^10 frames. */
static void test_frames_of_a_stack_are_bounded(void **state)
{
	enum { LINES = 100000 };
	AUTO(free_top) struct top *top = top_new();
	struct builder *b = builder_new();
	struct profile_line *lines = calloc(LINES, sizeof(*lines));
	int32_t *stack = calloc(LINES, sizeof(*stack));
	AUTO(put_profiles) struct profiles *p = NULL;
	uint32_t count;

	(void)state;
	stack[0] = builder_location(b, 0, 1, lines, LINES, NULL, 0);
	for (uint32_t i = 1; i < LINES; i++)
		stack[i] = stack[0];
	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec), builder_stack(b, stack, LINES),
		      NULL, 0, 0, 1, false, 0);
	free(lines);
	free(stack);
	p = freeze(b);
	assert_int_equal(top_add(top, p), 0);
	assert_int_equal(top_rows(top, &count)[0].all.self, 1);
}

/* A sample of "f" in a module whose names are from @source (NULL: it is not told). */
static void add_named_from(struct top *t, const char *source)
{
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	int32_t attribute = source ? builder_attribute_string(b, MODULES_SOURCE_KEY, str_z(source)) : 0;
	int32_t mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, "app"), &attribute, source != NULL);
	const struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, "f"), 0, 0, 0) };
	int32_t location = builder_location(b, mapping, 0x10, &line, 1, NULL, 0);

	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec), builder_stack(b, &location, 1),
		      NULL, 0, 0, 1, false, 0);
	assert_int_equal(builder_freeze(b, 0, 1000000000, &p), 0);
	assert_int_equal(top_add(t, p), 0);
}

/* Names may come from a better source as time goes on: the last one that was told is shown. */
static void test_source(void **state)
{
	static const struct {
		const char *told, *shown;
	} cases[] = { { NULL, "" }, { "symtab", "symtab" }, { "dwarf", "dwarf" }, { NULL, "dwarf" }, { "dwarf", "dwarf" } };
	struct top *t = top_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t count;
		const struct top_row *rows;

		add_named_from(t, cases[i].told);
		rows = top_rows(t, &count);
		assert_int_equal(count, 1);
		assert_string_equal(rows[0].source, cases[i].shown);
		assert_int_equal(rows[0].all.total, i + 1);
	}
	top_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),	      cmocka_unit_test(test_walk_sums),
		cmocka_unit_test(test_walk_stops),    cmocka_unit_test(test_top),
		cmocka_unit_test(test_top_intervals), cmocka_unit_test(test_top_decays),
		cmocka_unit_test(test_top_trim),      cmocka_unit_test(test_other_sample_types_are_left_out),
		cmocka_unit_test(test_tree),	      cmocka_unit_test(test_callers),
		cmocka_unit_test(test_deep_stacks),   cmocka_unit_test(test_frames_of_a_stack_are_bounded),
		cmocka_unit_test(test_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
