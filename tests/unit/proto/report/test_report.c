/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms against golden files, and the JSON form read by Python. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "proto/report/report.h"
#include "proto/text.h"
#include "tests/unit/proto/golden.h"
#include "tests/unit/proto/text_profiles.h"

#define TEMPLATE                                                                                                           \
	"std::_Rb_tree<std::string, std::pair<std::string const, int>, std::_Select1st<std::pair<std::string const, int> " \
	">, "                                                                                                              \
	"std::less<std::string> >::_M_get_insert_unique_pos(std::string const&)"

static const char text[] =
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;parse@cc1plus;" TEMPLATE
	"@libstdc++.so.6 120\n"
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;parse@cc1plus;parse@cc1plus;lex@cc1plus 300\n"
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;parse@cc1plus 30\n"
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;optimize@cc1plus 250\n"
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;emit@cc1plus 3\n"
	"cc1plus;_start@cc1plus;__libc_start_main@/lib/libc.so.6;main@cc1plus;write@libc.so.6;do_syscall_64@[kernel] 2\n"
	"dockerd;runtime.goexit@dockerd.go;net/http.(*conn).serve@dockerd.go;runtime.mallocgc@dockerd.go 200\n"
	"dockerd;runtime.goexit@dockerd.go;net/http.(*conn).serve@dockerd.go 10\n"
	"dockerd;runtime.goexit@dockerd.go;runtime.gcBgMarkWorker@dockerd.go;@/usr/lib/libfoo.so 60\n"
	"kworker/0:1;ret_from_fork@[kernel];worker_thread@[kernel];nf_hook_slow@nf_tables 20\n"
	"swapper/0 4\n"
	"odd;na;me\x1b[31mred\tx@m\xff.so;caf\xc3\xa9@m 1\n";

static void free_top(struct top **t)
{
	top_free(*t);
}

static void free_tree(struct tree **t)
{
	tree_free(*t);
}

static void free_activity(struct activity **a)
{
	activity_free(*a);
}

static int group_top(struct top *t, struct buf *out, unsigned rows, unsigned columns)
{
	AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);

	assert_int_equal(top_add(t, p), 0);
	return report_top(t, &(struct report_style){ .max_rows = rows, .columns = columns }, out);
}

static void test_top(void **state)
{
	static const struct {
		unsigned rows, columns;
		const char *golden;
	} cases[] = { { 0, 0, "report_top.txt" }, { 5, 100, "report_top_100.txt" }, { 5, 60, "report_top_60.txt" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_top) struct top *t = top_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		assert_int_equal(group_top(t, &out, cases[i].rows, cases[i].columns), 0);
		assert_golden(&out, cases[i].golden);
	}
}

static void test_tree(void **state)
{
	static const struct {
		double min_percent;
		unsigned columns;
		const char *golden;
	} cases[] = { { 0, 0, "report_tree_all.txt" }, { 1, 100, "report_tree.txt" }, { 30, 60, "report_tree_heavy.txt" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);
		AUTO(free_tree) struct tree *t = tree_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		assert_int_equal(tree_add(t, p), 0);
		assert_int_equal(report_tree(t,
					     &(struct report_style){ .min_percent = cases[i].min_percent,
								     .columns = cases[i].columns },
					     &out),
				 0);
		assert_golden(&out, cases[i].golden);
	}
}

/* main calls f, into which g is inlined, and h into that; the source of h is known without its line. */
static struct profiles *inlined_profiles(void)
{
	static const char *const names[] = { "h", "g", "f" }, *const files[] = { "/src/h.h", "/src/a.c", "/src/a.c" };
	static const int64_t numbers[] = { 0, 7, 12 };
	struct builder *b = builder_new();
	struct profile_line lines[3] = { 0 }, line = { 0 };
	int32_t stack[2];
	struct profiles *p;

	for (int i = 0; i < 3; i++) {
		lines[i].function_index = builder_function(b, builder_string_z(b, names[i]), 0,
							   builder_string_z(b, files[i]), 0);
		lines[i].line = numbers[i];
	}
	line.function_index = builder_function(b, builder_string_z(b, "main"), 0, 0, 0);
	stack[0] = builder_location(b, 0, 0x20, lines, 3, NULL, 0);
	stack[1] = builder_location(b, 0, 0x10, &line, 1, NULL, 0);
	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec), builder_stack(b, stack, 2), NULL,
		      0, 0, 1, false, 0);
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	return p;
}

static void test_inlined(void **state)
{
	static const struct {
		unsigned extras;
		const char *folded;
	} cases[] = {
		{ 0, "[unknown];main;f;g;h 1\n" },
		{ FRAME_INLINED, "[unknown];main;f;g (inlined);h (inlined) 1\n" },
		{ FRAME_PLACE, "[unknown];main;f a.c:12;g a.c:7;h h.h 1\n" },
		{ FRAME_INLINED | FRAME_PLACE, "[unknown];main;f a.c:12;g a.c:7 (inlined);h h.h (inlined) 1\n" },
	};
	AUTO(put_profiles) struct profiles *p = inlined_profiles();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(free_tree) struct tree *t = tree_new();
		AUTO(free_top) struct top *top = top_new();
		AUTO(buf_fini) struct buf out = BUF_EMPTY;
		uint32_t count;

		tree_show(t, cases[i].extras);
		assert_int_equal(tree_add(t, p), 0);
		assert_int_equal(report_folded(t, &out), 0);
		assert_string_equal(buf_text(&out), cases[i].folded);
		if (cases[i].extras & FRAME_PLACE)
			top_split_lines(top);
		assert_int_equal(top_add(top, p), 0);
		assert_string_equal(top_rows(top, &count)[0].name, "h");
		assert_string_equal(top_rows(top, &count)[0].file, cases[i].extras & FRAME_PLACE ? "/src/h.h" : "");
		assert_int_equal(count, 4);
	}
}

static void test_folded(void **state)
{
	AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(tree_add(t, p), 0);
	assert_int_equal(report_folded(t, &out), 0);
	assert_golden(&out, "report_folded.txt");
}

static void test_folded_separators_in_names(void **state)
{
	struct builder *b = builder_new();
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, "a;b\nc d"), 0, 0, 0) };
	int32_t location = builder_location(b, 0, 1, &line, 1, NULL, 0);
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec), builder_stack(b, &location, 1),
		      NULL, 0, 0, 1, false, 0);
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	assert_int_equal(tree_add(t, p), 0);
	assert_int_equal(report_folded(t, &out), 0);
	assert_string_equal(buf_text(&out), "[unknown];a:b c d 1\n");
}

/* Python's own parser and sums over what it read. */
static void test_json(void **state)
{
	static const char check[] =
		"python3 -c '\n"
		"import json, sys\n"
		"d = json.load(sys.stdin)\n"
		"tree, functions = d[\"tree\"], d[\"functions\"]\n"
		"assert d[\"samples\"] == d[\"weight\"] == tree[0][\"total\"] == sum(n[\"self\"] for n in tree) == 1000, "
		"d[\"weight\"]\n"
		"assert (d[\"type\"], d[\"unit\"]) == (\"samples\", \"count\")\n"
		"assert tree[0][\"parent\"] == -1 and all(0 <= n[\"parent\"] < i for i, n in enumerate(tree) if i)\n"
		"for i, n in enumerate(tree):\n"
		"    assert n[\"total\"] == n[\"self\"] + sum(c[\"total\"] for c in tree if c[\"parent\"] == i), n\n"
		"def path(i):\n"
		"    return path(tree[i][\"parent\"]) + [tree[i][\"name\"]] if i else []\n"
		"lex = [i for i, n in enumerate(tree) if n[\"name\"] == \"lex\"]\n"
		"assert [path(i) for i in lex] == [[\"cc1plus\", \"_start\", \"__libc_start_main\", \"main\", \"parse\", "
		"\"parse\", \"lex\"]]\n"
		"assert {\"name\": \"parse\", \"module\": \"cc1plus\", \"type\": \"native\", \"source\": \"\", \"self\": "
		"30, "
		"\"total\": 450} "
		"in functions\n"
		"assert sum(p[\"weight\"] for p in d[\"processes\"]) == 1000 and len(d[\"processes\"]) == 5, "
		"d[\"processes\"]\n"
		"assert sum(f[\"self\"] for f in functions) == 996\n"
		"'";
	AUTO(put_profiles) struct profiles *p = text_profiles(text, 0);
	AUTO(free_top) struct top *top = top_new();
	AUTO(free_tree) struct tree *tree = tree_new();
	AUTO(free_activity) struct activity *activity = activity_new(ACTIVITY_PROCESSES, NULL);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	FILE *python;

	(void)state;
	assert_int_equal(top_add(top, p), 0);
	assert_int_equal(tree_add(tree, p), 0);
	assert_int_equal(activity_add(activity, p), 0);
	assert_int_equal(report_json(top, activity, tree, &out), 0);
	python = popen(check, "w");
	assert_non_null(python);
	assert_int_equal(fwrite(out.data, 1, out.len, python), out.len);
	assert_int_equal(pclose(python), 0);
}

static void test_nothing(void **state)
{
	AUTO(free_top) struct top *top = top_new();
	AUTO(free_tree) struct tree *tree = tree_new();
	AUTO(free_activity) struct activity *activity = activity_new(ACTIVITY_PROCESSES, NULL);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(report_top(top, &(struct report_style){ .max_rows = 20, .columns = 80 }, &out), 0);
	assert_int_equal(report_tree(tree, &(struct report_style){ .min_percent = 0.5, .columns = 80 }, &out), 0);
	assert_int_equal(report_folded(tree, &out), 0);
	assert_string_equal(buf_text(&out), "0 samples\n0 samples\n");
	buf_reset(&out);
	assert_int_equal(report_json(top, activity, tree, &out), 0);
	assert_string_equal(buf_text(&out),
			    "{\"samples\":0,\"weight\":0,\"type\":\"\",\"unit\":\"\",\"cpu_ns\":0,\"functions\":[],"
			    "\"processes\":[],\"tree\":[{\"name\":\"\",\"parent\":-1,\"self\":0,\"total\":0}]}\n");
}

/* A recursion that forks at every level: 3,000 forks deep, and still no line wider than the screen's guides allow. */
static void test_deep_forks(void **state)
{
	enum { DEPTH = 3000 };
	struct builder *b = builder_new();
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec);
	struct profile_line one = { .function_index = builder_function(b, builder_string_z(b, "0x1"), 0, 0, 0) };
	struct profile_line other = { .function_index = builder_function(b, builder_string_z(b, "0x2"), 0, 0, 0) };
	int32_t stack[DEPTH + 1];
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(free_tree) struct tree *t = tree_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	size_t lines = 0;

	(void)state;
	for (uint32_t i = 0; i <= DEPTH; i++)
		stack[i] = builder_location(b, 0, 1, i ? &one : &other, 1, NULL, 0);
	for (uint32_t i = 1; i <= DEPTH; i++) { /* one more of one each time, with another at the leaf */
		stack[DEPTH - i] = builder_location(b, 0, 1, &other, 1, NULL, 0);
		builder_event(b, profile, builder_stack(b, &stack[DEPTH - i], i + 1), NULL, 0, 0, i, false, 0);
		stack[DEPTH - i] = builder_location(b, 0, 1, &one, 1, NULL, 0);
	}
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	assert_int_equal(tree_add(t, p), 0);
	assert_int_equal(report_tree(t, &(struct report_style){ 0 }, &out), 0);
	for (char *line = (char *)out.data, *end; line < (char *)out.data + out.len; line = end + 1, lines++) {
		end = memchr(line, '\n', (size_t)((char *)out.data + out.len - line));
		assert_non_null(end);
		*end = '\0';
		assert_true(text_columns(line) < 17 + 41 * 3 + 12);
	}
	assert_int_equal(lines, 3 + 1 + 2 * DEPTH);
}

static void test_text(void **state)
{
	static const struct {
		const char *name;
		unsigned max_columns;
		const char *cut, *line;
	} cases[] = {
		{ "short", 10, "short", "short" },
		{ "exactly10!", 10, "exactly10!", "exactly10!" },
		{ "elevenchars", 10, "eleve…hars", "elevencha…" },
		{ "äöüäöüäöüäöü", 5, "äö…öü", "äöüä…" },
		{ "abcdef", 1, "…", "…" },
		{ "a\nb\x7f\xc2\x9b"
		  "c\xe2\x82",
		  20, "a?b??c??", "a?b??c??" },
		{ "", 3, "", "" },
	};
	static const struct {
		uint64_t ns;
		const char *text;
	} durations[] = {
		{ 0, "0 ms" },
		{ 120000000, "120 ms" },
		{ 5000000000, "5.0 s" },
		{ 307000000000, "5 m 07 s" },
		{ 3600000000000, "1 h 00 m" },
		{ 1000000000000000, "277 h 46 m" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY, line = BUF_EMPTY;

		text_name(&out, cases[i].name, cases[i].max_columns);
		assert_string_equal(buf_text(&out), cases[i].cut);
		text_line(&line, cases[i].name, cases[i].max_columns);
		assert_string_equal(buf_text(&line), cases[i].line);
	}
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		text_duration(&out, durations[i].ns);
		assert_string_equal(buf_text(&out), durations[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_folded_separators_in_names),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_deep_forks),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
