/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns leave out and groups keep apart the same in every aggregate; the tables of processes, threads and lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "base/text/pattern.h"
#include "proto/report/report.h"
#include "proto/sums/idle_waits.h"
#include "tests/unit/proto/golden.h"
#include "tests/unit/proto/text_profiles.h"

/* One sample a line of the table: seen once a second, so that a course over time has a shape. */
static const struct {
	const char *process, *thread, *container, *stack; /* root first */
	int64_t pid, tid, cpu;
	unsigned from_s, to_s; /* within the capture */
} samples[] = {
	{ "server", "main", "c-1", "main;serve;parse", 100, 100, 0, 0, 40 },
	{ "server", "worker", "c-1", "clone;work;parse", 100, 101, 1, 10, 30 },
	{ "server", "worker", "c-1", "clone;work;copy", 100, 102, 1, 10, 20 },
	{ "client", "main", NULL, "main;ask", 200, 200, 0, 35, 40 },
	{ "client", "main", NULL, "main;ask;copy", 201, 201, 0, 38, 40 },
};

static struct key_value text_value(const char *key, const char *value)
{
	return (struct key_value){ .key = str_z(key), .value = { .kind = VALUE_STRING, .string = str_z(value) } };
}

static uint32_t profile_of(struct builder *b, size_t i)
{
	struct key_value attributes[3] = {
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = samples[i].pid } },
		text_value("process.executable.name", samples[i].process),
	};

	if (samples[i].container)
		attributes[2] = text_value("container.id", samples[i].container);
	return builder_profile(b, builder_resource(b, attributes, samples[i].container ? 3 : 2), &text_cpu_spec);
}

static struct profiles *make(void)
{
	struct builder *b = builder_new();
	struct profiles *p;

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		int32_t stack[8], attributes[3] = {
			builder_attribute_string(b, "thread.name", str_z(samples[i].thread)),
			builder_attribute_int(b, "thread.id", samples[i].tid),
			builder_attribute_int(b, "cpu.logical_number", samples[i].cpu),
		};
		AUTO_FREE char *copy = strdup(samples[i].stack);
		char *rest = copy, *frame;
		uint32_t depth = 0;

		while ((frame = strsep(&rest, ";"))) {
			char name[64];

			snprintf(name, sizeof(name), "%s@app", frame);
			stack[ARRAY_LEN(stack) - ++depth] = text_frame(b, name);
		}
		for (uint64_t s = samples[i].from_s; s < samples[i].to_s; s++)
			builder_event(b, profile_of(b, i), builder_stack(b, &stack[ARRAY_LEN(stack) - depth], depth),
				      attributes, 3,
				      samples[i].tid == 101
					      ? builder_link(b, (const uint8_t[16]){ 1 }, (const uint8_t[8]){ 0xab })
					      : 0,
				      (TEXT_START_S + s) * 1000000000, false, 0);
	}
	assert_int_equal(builder_freeze(b, TEXT_START_S * 1000000000ull, (TEXT_START_S + 40) * 1000000000ull, &p), 0);
	builder_free(b);
	return p;
}

static void free_view(struct view **v)
{
	view_free(*v);
}

static void free_tree(struct tree **t)
{
	tree_free(*t);
}

static void free_top(struct top **t)
{
	top_free(*t);
}

static void free_activity(struct activity **a)
{
	activity_free(*a);
}

/* The folded stacks of what @view lets through. */
static void fold(const struct view *view, const struct profiles *p, struct buf *out)
{
	AUTO(free_tree) struct tree *t = tree_new();

	tree_view(t, view);
	assert_int_equal(tree_add(t, p), 0);
	assert_int_equal(report_folded(t, out), 0);
}

static void test_patterns(void **state)
{
	static const struct {
		enum view_pattern which;
		const char *expression, *folded;
	} cases[] = {
		{ VIEW_PROCESS, "^cl", "main;main;ask 5\nmain;main;ask;copy 2\n" },
		{ VIEW_PROCESS, "201", "main;main;ask;copy 2\n" },
		{ VIEW_PROCESS, "20", "" },
		{ VIEW_COMM, "work", "worker;clone;work;copy 10\nworker;clone;work;parse 20\n" },
		{ VIEW_COMM, "^client$", "main;main;ask 5\nmain;main;ask;copy 2\n" }, /* all threads of a process */
		{ VIEW_THREAD, "102", "worker;clone;work;copy 10\n" },
		{ VIEW_THREAD, "^(main|x)$", "main;main;ask 5\nmain;main;ask;copy 2\nmain;main;serve;parse 40\n" },
		{ VIEW_FOCUS, "^copy$", "main;main;ask;copy 2\nworker;clone;work;copy 10\n" },
		{ VIEW_FOCUS, "^app$", NULL }, /* the module of all: everything */
		{ VIEW_IGNORE, "pa?r|ask", "worker;clone;work;copy 10\n" },
		{ VIEW_HIDE, "^(work|ask)$",
		  "main;main 5\nmain;main;copy 2\nmain;main;serve;parse 40\nworker;clone;copy 10\nworker;clone;parse 20\n" },
	};
	AUTO(put_profiles) struct profiles *p = make();
	AUTO(buf_fini) struct buf everything = BUF_EMPTY;

	(void)state;
	fold(NULL, p, &everything);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_view) struct view *v = view_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

		assert_int_equal(view_match(v, cases[i].which, cases[i].expression, &error), 0);
		fold(v, p, &out);
		assert_string_equal(buf_text(&out), cases[i].folded ? cases[i].folded : buf_text(&everything));
	}
}

/* Samples of two types: time on a CPU where nobody asks, whichever comes first; each for itself; and all as time. */
static void test_kinds(void **state)
{
	static const struct builder_profile_spec waits = { "s", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 },
						 bytes = { "s", "1", "space", "bytes", "", "", 0, NULL, 0 };
	const uint64_t cpu_ns = 2 * (uint64_t)text_cpu_spec.period;
	char wall[64];
	const struct {
		const char *kind, *folded;
		uint64_t other_events, ns;
	} cases[] = {
		{ NULL, "[unknown];run 2\n", 2, cpu_ns },
		{ "samples", "[unknown];run 2\n", 0, cpu_ns },
		{ "off_cpu", "[unknown];wait 500\n", 0, 500 },
		{ "space", "[unknown];take 7\n", 0, 0 },
		{ "runnable", "", 0, 0 },
		{ VIEW_WALL, wall, 0, cpu_ns + 500 },
	};
	struct builder *b = builder_new();
	uint32_t resource = builder_resource(b, NULL, 0);
	char names[][10] = { "wait@app", "run@app", "take@app" };
	int32_t frames[] = { text_frame(b, names[0]), text_frame(b, names[1]), text_frame(b, names[2]) };
	struct profiles *p;

	(void)state;
	snprintf(wall, sizeof(wall), "[unknown];run %llu\n[unknown];wait 500\n", (unsigned long long)cpu_ns);
	builder_event(b, builder_profile(b, resource, &waits), builder_stack(b, &frames[0], 1), NULL, 0, 0, 5, true, 500);
	for (uint64_t i = 0; i < 2; i++)
		builder_event(b, builder_profile(b, resource, &text_cpu_spec), builder_stack(b, &frames[1], 1), NULL, 0, 0,
			      5 + i, false, 0);
	builder_event(b, builder_profile(b, resource, &bytes), builder_stack(b, &frames[2], 1), NULL, 0, 0, 5, true, 7);
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	builder_free(b);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_view) struct view *v = view_new();
		AUTO(free_tree) struct tree *t = tree_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		assert_int_equal(view_kind(v, cases[i].kind), 0);
		tree_view(t, v);
		assert_int_equal(tree_add(t, p), 0);
		assert_int_equal(report_folded(t, &out), 0);
		assert_string_equal(buf_text(&out), cases[i].folded);
		assert_int_equal(tree_sum(t)->other_events, cases[i].other_events);
		assert_int_equal(stack_sum_ns(tree_sum(t)), cases[i].ns);
	}
	profiles_put(p);
}

/* Waits of threads without work go; time on a CPU in the same functions stays, and waits that only have such a name in a
 * longer one. */
static void test_idle(void **state)
{
	const struct builder_profile_spec specs[] = { { "s", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 },
						      { "s", "1", "runnable", "nanoseconds", "", "", 0, NULL, 0 },
						      { "s", "1", "waker", "nanoseconds", "", "", 0, NULL, 0 },
						      text_cpu_spec };
	static const char *const expected[] = { "[unknown];my_ep_poll 7\n", "[unknown];ep_poll 7\n[unknown];my_ep_poll 7\n",
						"[unknown];my_ep_poll 7\n",
						"[unknown];ep_poll 1\n[unknown];my_ep_poll 1\n" };
	char names[][24] = { "ep_poll@app", "my_ep_poll@app" };
	struct builder *b = builder_new();
	int32_t frames[] = { text_frame(b, names[0]), text_frame(b, names[1]) };
	uint32_t resource = builder_resource(b, NULL, 0);
	struct profiles *p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(specs); i++)
		for (size_t f = 0; f < ARRAY_LEN(frames); f++)
			builder_event(b, builder_profile(b, resource, &specs[i]), builder_stack(b, &frames[f], 1), NULL, 0,
				      0, 5, i < 3, 7);
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	builder_free(b);
	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		AUTO(free_view) struct view *v = view_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

		assert_int_equal(view_kind(v, specs[i].sample_type), 0);
		assert_int_equal(view_match(v, VIEW_IDLE, idle_waits_pattern(), &error), 0);
		fold(v, p, &out);
		assert_string_equal(buf_text(&out), expected[i]);
	}
	profiles_put(p);
}

static void test_patterns_together(void **state)
{
	AUTO(put_profiles) struct profiles *p = make();
	AUTO(free_view) struct view *v = view_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

	(void)state;
	assert_int_equal(view_match(v, VIEW_PROCESS, "server", &error), 0);
	assert_int_equal(view_match(v, VIEW_FOCUS, "parse", &error), 0);
	assert_int_equal(view_match(v, VIEW_IGNORE, "serve", &error), 0);
	fold(v, p, &out);
	assert_string_equal(buf_text(&out), "worker;clone;work;parse 20\n");
}

static void test_groups(void **state)
{
	static const struct {
		const char *by, *golden;
	} cases[] = {
		{ "process", "client (200);main;ask 5\nclient (201);main;ask;copy 2\nserver (100);clone;work;copy 10\n"
			     "server (100);clone;work;parse 20\nserver (100);main;serve;parse 40\n" },
		{ "thread", "main (100);main;serve;parse 40\nmain (200);main;ask 5\nmain (201);main;ask;copy 2\n"
			    "worker (101);clone;work;parse 20\nworker (102);clone;work;copy 10\n" },
		{ "container", "[no container.id];main;ask 5\n[no container.id];main;ask;copy 2\nc-1;clone;work;copy 10\n"
			       "c-1;clone;work;parse 20\nc-1;main;serve;parse 40\n" },
		{ "cpu", "CPU 0;main;ask 5\nCPU 0;main;ask;copy 2\nCPU 0;main;serve;parse 40\nCPU 1;clone;work;copy 10\n"
			 "CPU 1;clone;work;parse 20\n" },
		{ "comm", "main;main;ask 5\nmain;main;ask;copy 2\nmain;main;serve;parse 40\nworker;clone;work;copy 10\n"
			  "worker;clone;work;parse 20\n" },
		{ "exe", "client;main;ask 5\nclient;main;ask;copy 2\nserver;clone;work;copy 10\nserver;clone;work;parse 20\n"
			 "server;main;serve;parse 40\n" },
		{ "label=process.pid", "100;clone;work;copy 10\n100;clone;work;parse 20\n100;main;serve;parse 40\n"
				       "200;main;ask 5\n201;main;ask;copy 2\n" },
		{ "label=span_id", "[no span_id];clone;work;copy 10\n[no span_id];main;ask 5\n[no span_id];main;ask;copy 2\n"
				   "[no span_id];main;serve;parse 40\nab00000000000000;clone;work;parse 20\n" },
		{ "label=nothing",
		  "[no nothing];clone;work;copy 10\n[no nothing];clone;work;parse 20\n"
		  "[no nothing];main;ask 5\n[no nothing];main;ask;copy 2\n[no nothing];main;serve;parse 40\n" },
	};
	AUTO(put_profiles) struct profiles *p = make();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_view) struct view *v = view_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

		assert_int_equal(view_group(v, cases[i].by, &error), 0);
		fold(v, p, &out);
		assert_string_equal(buf_text(&out), cases[i].golden);
	}
}

static void test_refused(void **state)
{
	AUTO(free_view) struct view *v = view_new();
	AUTO(buf_fini) struct buf error = BUF_EMPTY;

	(void)state;
	assert_int_equal(view_match(v, VIEW_FOCUS, "a(b", &error), -EINVAL);
	assert_non_null(strstr(buf_text(&error), "'a(b' is no regular expression: "));
	buf_reset(&error);
	assert_int_equal(view_match(v, VIEW_FOCUS, "(?:\\d+)++x", &error), 0); /* Perl's, as everywhere */
	assert_int_equal(error.len, 0);
	buf_reset(&error);
	assert_int_equal(view_group(v, "nonsense", &error), -EINVAL);
	assert_non_null(strstr(buf_text(&error), "'nonsense' is nothing to group by"));
	assert_int_equal(view_group(v, "label=", &error), -EINVAL);
}

static void test_tables(void **state)
{
	AUTO(put_profiles) struct profiles *p = make();
	AUTO(free_view) struct view *v = view_new();
	AUTO(free_top) struct top *top = top_new();
	AUTO(free_tree) struct tree *tree = tree_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY, csv = BUF_EMPTY, callers = BUF_EMPTY;
	struct report_style style = { .columns = 70, .by = "comm" };

	(void)state;
	assert_int_equal(view_group(v, "comm", &out), 0);
	top_view(top, v);
	assert_int_equal(top_add(top, p), 0);
	assert_int_equal(report_top(top, &style, &out), 0);
	assert_golden(&out, "report_top_by_comm.txt");
	assert_int_equal(report_csv(top, &csv), 0);
	assert_golden(&csv, "report_csv.txt");
	tree_invert(tree);
	assert_int_equal(tree_add(tree, p), 0);
	style.max_depth = 2;
	assert_int_equal(report_tree(tree, &style, &callers), 0);
	assert_golden(&callers, "report_tree_callers.txt");
}

static void test_activity(void **state)
{
	static const struct {
		enum activity_rows rows;
		bool with_course;
		unsigned columns;
		const char *golden;
	} cases[] = {
		{ ACTIVITY_PROCESSES, false, 80, "report_processes.txt" },
		{ ACTIVITY_THREADS, false, 80, "report_threads.txt" },
		{ ACTIVITY_PROCESSES, true, 80, "report_timeline.txt" },
		{ ACTIVITY_THREADS, true, 0, "report_timeline_threads.txt" },
	};
	AUTO(put_profiles) struct profiles *p = make();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_activity) struct activity *a = activity_new(cases[i].rows, NULL);
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		struct report_style style = { .columns = cases[i].columns, .max_rows = 4 };

		assert_int_equal(activity_add(a, p), 0);
		assert_int_equal(report_activity(a, cases[i].with_course, &style, &out), 0);
		assert_golden(&out, cases[i].golden);
	}
}

/* Events in any order, over any span: none is lost, and the slots cover them all. */
static void test_slots(void **state)
{
	static const uint64_t spans_ns[] = { 1, 1000, 77777777, 3600000000000, 40000000000000000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spans_ns); i++) {
		AUTO(free_activity) struct activity *a = activity_new(ACTIVITY_PROCESSES, NULL);
		uint64_t first = UINT64_MAX, last = 0, sum = 0, random = 1;
		struct activity_time time;
		uint32_t count;

		for (unsigned n = 0; n < 300; n++) {
			struct builder *b = builder_new();
			AUTO(put_profiles) struct profiles *p = NULL;
			uint64_t at;

			random = random * 6364136223846793005 + 1442695040888963407;
			at = 1000000000000000000 + (uint64_t)((double)(random >> 11) / 0x1p53 * (double)spans_ns[i]);
			first = at < first ? at : first;
			last = at > last ? at : last;
			builder_event(b, profile_of(b, n % 2 ? 0 : 3), builder_stack(b, NULL, 0), NULL, 0, 0, at, false, 0);
			assert_int_equal(builder_freeze(b, at, at + 1, &p), 0);
			builder_free(b);
			assert_int_equal(activity_add(a, p), 0);
		}
		time = activity_time(a);
		assert_true(time.slot_count <= ACTIVITY_SLOTS);
		assert_true(time.start_unix_ns <= first);
		assert_true(first - time.start_unix_ns < time.slot_ns * (ACTIVITY_SLOTS / 2));
		assert_true(last - time.start_unix_ns < time.slot_count * time.slot_ns);
		assert_true(last - first < 4 || (last - first) >= time.slot_ns * (ACTIVITY_SLOTS / 4));
		for (uint32_t r = 0; r < 2; r++)
			for (uint32_t s = 0; s < ACTIVITY_SLOTS; s++)
				sum += activity_rows(a, &count)[r]->slots[s];
		assert_int_equal(sum, 300);
		assert_int_equal(count, 2);
	}
}

/* At the end of time, too, where a slot's number and ACTIVITY_SLOTS more are no number any more. */
static void test_last_slots(void **state)
{
	static const uint64_t times[] = { UINT64_MAX - 10, UINT64_MAX - 1000, UINT64_MAX };
	AUTO(free_activity) struct activity *a = activity_new(ACTIVITY_PROCESSES, NULL);
	struct activity_time time;
	const uint64_t *slots;
	uint32_t count;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		AUTO(free_builder) struct builder *b = builder_new();
		AUTO(put_profiles) struct profiles *p = NULL;

		builder_event(b, profile_of(b, 0), builder_stack(b, NULL, 0), NULL, 0, 0, times[i], false, 0);
		assert_int_equal(builder_freeze(b, 0, 1, &p), 0);
		assert_int_equal(activity_add(a, p), 0);
	}
	time = activity_time(a);
	assert_int_equal(time.slot_ns, 4);
	assert_int_equal(time.slot_count, 251);
	assert_true(time.start_unix_ns == UINT64_MAX - 1003);
	slots = activity_rows(a, &count)[0]->slots;
	assert_int_equal(slots[0], 1);
	assert_int_equal(slots[248], 1);
	assert_int_equal(slots[250], 1);
}

static bool read_source(const char *path, struct buf *out)
{
	if (strcmp(path, "/src/f.c") != 0)
		return false;
	buf_puts(out, "int f(void)\n{\n\tint sum = 0;\n\tfor (;;)\n\t\tsum++;\n\treturn sum;\n}\n");
	return true;
}

/* A listing with the source beside it, and what is said where it is not there. */
static void test_lines(void **state)
{
	static const int64_t numbers[] = { 5, 3, 0, 40 };
	struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(free_top) struct top *functions = top_new(), *lines = top_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY, expected = BUF_EMPTY;
	struct pattern *pattern;
	struct pattern_error why;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
		struct profile_line line = { .line = numbers[i] };
		int32_t location;

		line.function_index = builder_function(b, builder_string_z(b, i < 3 ? "f" : "g"), 0,
						       builder_string_z(b, i < 3 ? "/src/f.c" : "/nowhere/x.c"), 0);
		location = builder_location(b, 0, i + 1, &line, 1, NULL, 0);
		for (unsigned n = 0; n < 4 - i; n++)
			builder_event(b, profile_of(b, 0), builder_stack(b, &location, 1), NULL, 0, 0, 1 + n, false, 0);
	}
	assert_int_equal(builder_freeze(b, 1, 9, &p), 0);
	builder_free(b);
	top_split_lines(lines);
	assert_int_equal(top_add(functions, p), 0);
	assert_int_equal(top_add(lines, p), 0);
	assert_int_equal(report_lines(functions, lines, NULL, read_source, &(struct report_style){ 0 }, &out), 0);
	buf_puts(&expected, "10 samples, 500 ms of CPU time\n\nf\n  90.00% in itself, 90.00% with what it calls\n"
			    "  SELF%  TOTAL%   LINE  /src/f.c\n 20.00%  20.00%      ?\n"
			    " 30.00%  30.00%      3      int sum = 0;\n                     4      for (;;)\n"
			    " 40.00%  40.00%      5          sum++;\n\n"
			    "g\n  10.00% in itself, 10.00% with what it calls\n"
			    "  SELF%  TOTAL%   LINE  /nowhere/x.c\n 10.00%  10.00%     40\n");
	assert_string_equal(buf_text(&out), buf_text(&expected));
	buf_reset(&out);
	assert_int_equal(pattern_new("^[hg]$", 0, &pattern, &why), 0);
	assert_int_equal(report_lines(functions, lines, pattern, NULL, &(struct report_style){ 0 }, &out), 0);
	pattern_free(pattern);
	assert_null(strstr(buf_text(&out), "\nf\n"));
	assert_non_null(strstr(buf_text(&out), "\ng\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns), cmocka_unit_test(test_kinds),	    cmocka_unit_test(test_patterns_together),
		cmocka_unit_test(test_idle),	 cmocka_unit_test(test_groups),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_tables),	 cmocka_unit_test(test_activity),   cmocka_unit_test(test_slots),
		cmocka_unit_test(test_lines),	 cmocka_unit_test(test_last_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
