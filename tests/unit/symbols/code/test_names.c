/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who names an address: cases written by hand, and random sources against a search over everything that was added, in its
 * plainest form. The same again with only some addresses wanted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/code/names.h"
#include "tests/unit/symbols/code_worlds.h"

/* The answer as text: "inner@file:line:column < outer@..." */
static const char *answer_text(const struct code_names *c, uint64_t addr)
{
	static char text[8192];
	struct code_answer a;
	size_t at = 0, len;
	int r = code_names_find(c, addr, &a);

	text[0] = '\0';
	assert_true(r == 0 || (r == -ENOENT && a.frame_count <= 1));
	for (uint32_t i = 0; i < a.frame_count; i++) {
		const struct code_frame *f = &a.frames[i];
		const char *name = "?", *path = "?";
		size_t path_len = 1;

		len = 1;
		if (f->function != CODE_NONE)
			name = code_names_name(c, f->function, &len);
		if (f->file != CODE_NONE)
			path = code_names_path(c, f->file, &path_len);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s@%.*s:%u:%u", i ? " < " : "", (int)len, name,
				       (int)path_len, path, f->line, f->column);
	}
	return text;
}

static void test_inlines_and_lines(void **state)
{
	struct code_names *c = code_names_new(NULL, 0);
	uint32_t file, other, outer, middle, inner, cold;
	struct code_answer a;

	(void)state;
	code_names_begin(c, CODE_SOURCE_DWARF);
	file = add_file(c, "a.c");
	other = add_file(c, "b.h");
	assert_int_equal(add_file(c, "a.c"), file);
	outer = code_names_node(c, CODE_NONE, code_names_function(c, "outer", 5, 7), CODE_NONE, 0, 0);
	middle = code_names_node(c, outer, add_function(c, "middle"), file, 20, 3);
	inner = code_names_node(c, middle, add_function(c, "inner"), other, 30, 4);
	assert_int_equal(code_names_node(c, inner, CODE_NONE, file, 1, 1), inner); /* without a name */
	cold = outer;
	code_names_range(c, 0x1050, 0x1060, inner); /* in any order */
	code_names_range(c, 0x1000, 0x1100, outer);
	code_names_range(c, 0x1040, 0x1080, middle);
	code_names_range(c, 0x3000, 0x3010, cold);
	code_names_range(c, 0x3010, 0x3020, cold);
	code_names_line(c, 0x1000, file, 8, 1);
	code_names_line(c, 0x1040, other, 2, 2);
	code_names_line(c, 0x1050, other, 99, 0);
	code_names_line(c, 0x1050, other, 5, 6); /* the last at an address */
	code_names_line(c, 0x1060, file, 9, 1);
	code_names_line(c, 0x1120, CODE_NONE, 0, 0);
	code_names_begin(c, CODE_SOURCE_SYMTAB);
	code_names_range(c, 0x1000, 0x1110, code_names_node(c, CODE_NONE, add_function(c, "_outer"), CODE_NONE, 0, 0));
	assert_int_equal(code_names_finish(c), 0);

	assert_string_equal(answer_text(c, 0xfff), "");
	/* what DWARF describes is called as its symbol */
	assert_string_equal(answer_text(c, 0x1000), "_outer@a.c:8:1");
	assert_string_equal(answer_text(c, 0x103f), "_outer@a.c:8:1");
	assert_string_equal(answer_text(c, 0x1040), "middle@b.h:2:2 < _outer@a.c:20:3");
	assert_string_equal(answer_text(c, 0x1050), "inner@b.h:5:6 < middle@b.h:30:4 < _outer@a.c:20:3");
	assert_string_equal(answer_text(c, 0x1060), "middle@a.c:9:1 < _outer@a.c:20:3");
	assert_string_equal(answer_text(c, 0x10ff), "_outer@a.c:9:1");
	assert_string_equal(answer_text(c, 0x1100), "_outer@a.c:9:1"); /* a hole that a later source fills */
	assert_string_equal(answer_text(c, 0x1110), "?@a.c:9:1");      /* a line, but no function */
	assert_string_equal(answer_text(c, 0x1120), "");
	assert_string_equal(answer_text(c, 0x3000), "outer@?:0:0");
	assert_int_equal(code_names_find(c, 0x1110, &a), -ENOENT);

	assert_int_equal(code_names_find(c, 0x1055, &a), 0);
	assert_int_equal(a.start, 0x1000);
	assert_int_equal(a.source, CODE_SOURCE_DWARF);
	assert_int_equal(a.decl_line, 0);
	assert_int_equal(code_names_find(c, 0x10ff, &a), 0);
	assert_int_equal(a.start, 0x1000);
	assert_int_equal(a.decl_line, 7);
	assert_int_equal(code_names_find(c, 0x3005, &a), 0);
	assert_int_equal(a.start, 0x3000);
	assert_int_equal(code_names_find(c, 0x3015, &a), 0);
	assert_int_equal(a.start, 0x3010); /* of its range, not of the one before it */
	assert_int_equal(code_names_find(c, 0x1105, &a), 0);
	assert_int_equal(a.start, 0x1000); /* of the symbol, not of the hole */
	assert_int_equal(a.source, CODE_SOURCE_SYMTAB);
	code_names_free(c);
}

static void test_deep(void **state)
{
	struct code_names *c = code_names_new(NULL, 0);
	uint32_t node = CODE_NONE, last = CODE_NONE;
	struct code_answer a;
	char name[16];
	size_t len;

	(void)state;
	code_names_begin(c, CODE_SOURCE_DWARF);
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		node = code_names_node(c, node, add_function(c, name), add_file(c, "x.c"), i, 0);
		assert_true(node != CODE_NONE);
		last = i == 255 ? node : last;
		code_names_range(c, i, 5000 - i, node);
	}
	assert_int_equal(node, last); /* the deepest there may be */
	assert_int_equal(code_names_finish(c), 0);
	assert_int_equal(code_names_find(c, 2000, &a), 0);
	assert_int_equal(a.frame_count, CODE_MAX_FRAMES);
	assert_memory_equal(code_names_name(c, a.frames[0].function, &len), "f255", 4);
	assert_memory_equal(code_names_name(c, a.frames[CODE_MAX_FRAMES - 1].function, &len), "f0", 2);
	assert_int_equal(a.frames[CODE_MAX_FRAMES - 1].line, 1); /* where f1 was called */
	assert_int_equal(a.start, 0);
	code_names_free(c);
}

static void test_edges(void **state)
{
	struct code_names *c = code_names_new(NULL, 0);
	uint32_t f, g;

	(void)state;
	assert_int_equal(code_names_finish(c), 0);
	assert_string_equal(answer_text(c, 0), "");
	code_names_free(c);

	c = code_names_new(NULL, 0);
	code_names_begin(c, CODE_SOURCE_DYNSYM);
	f = code_names_node(c, CODE_NONE, add_function(c, "f"), CODE_NONE, 0, 0);
	g = code_names_node(c, CODE_NONE, add_function(c, "g"), CODE_NONE, 0, 0);
	assert_int_equal(code_names_function(c, "", 0, 0), CODE_NONE);
	code_names_range(c, 10, 10, f);
	code_names_range(c, 20, 15, f);
	code_names_range(c, 30, 40, f);
	code_names_range(c, 30, 40, g);
	code_names_range(c, UINT64_MAX - 5, UINT64_MAX, g);
	code_names_range(c, 50, 60, CODE_NONE);
	code_names_line(c, 70, add_file(c, "never ends"), 1, 1);
	assert_int_equal(code_names_finish(c), 0);
	assert_string_equal(answer_text(c, 10), "");
	assert_string_equal(answer_text(c, 15), "");
	assert_string_equal(answer_text(c, 35), "g@?:0:0");
	assert_string_equal(answer_text(c, 55), "");
	assert_string_equal(answer_text(c, 70), "");
	assert_string_equal(answer_text(c, UINT64_MAX - 1), "g@?:0:0");
	assert_string_equal(answer_text(c, UINT64_MAX), "");
	code_names_free(c);
}

static void test_too_much(void **state)
{
	struct code_names *c = code_names_new(NULL, 0);
	AUTO_FREE char *name = malloc(100 << 10);
	size_t len;
	uint32_t f;

	(void)state;
	memset(name, 'x', 100 << 10);
	code_names_begin(c, CODE_SOURCE_DWARF);
	f = code_names_function(c, name, 100 << 10, 0);
	code_names_name(c, f, &len);
	assert_int_equal(len, 65535);
	for (uint32_t i = 0; i < (CODE_NAMES_MAX_BYTES >> 16) + 2; i++) {
		memcpy(name, &i, sizeof(i));
		f = code_names_function(c, name, 65535, 0);
	}
	assert_int_equal(f, CODE_NONE);
	assert_int_equal(code_names_finish(c), -E2BIG);
	code_names_free(c);
}

/* --- random sources against a plain search --- */

enum { DESCRIBED = 1, SYMBOLS = 2 }; /* sources: DWARF, and what its functions are called by */

/* The range of source @s that names @addr; NULL: none does. */
static const struct random_range *best_range(const struct world *w, uint64_t addr, uint32_t s)
{
	const struct random_range *best = NULL;

	for (size_t i = 0; i < w->range_count; i++) {
		const struct random_range *r = &w->ranges[i];

		if (r->source == s && addr >= r->start && addr < r->end &&
		    (!best || r->depth > best->depth || (r->depth == best->depth && r->node > best->node)))
			best = r;
	}
	return best;
}

/* What answer_text should say. A wanted address that has its name for good asks no later source for its line. */
static const char *expected_text(const struct world *w, uint64_t addr, bool is_wanted)
{
	static char text[8192];
	const struct random_range *best = NULL, *symbol = NULL;
	const struct random_row *row = NULL;
	size_t at = 0;
	uint32_t node;
	char line[32] = "?:0:0";

	for (uint32_t s = 0; s < SOURCES && !best; s++)
		best = best_range(w, addr, s);
	if (best && best->source == DESCRIBED)
		symbol = best_range(w, addr, SYMBOLS);
	for (uint32_t s = 0; s < SOURCES && !row; s++) {
		for (size_t i = 0; i < w->row_count; i++)
			if (w->rows[i].source == s && w->rows[i].addr <= addr)
				row = &w->rows[i];
		row = row && row->line ? row : NULL;
		if (is_wanted && best && best->source == s && s != DESCRIBED)
			break;
	}
	if (row)
		snprintf(line, sizeof(line), "line:%u:1", row->line);
	if (!best)
		snprintf(text, sizeof(text), row ? "?@%s" : "%.0s", line);
	for (node = best ? best->node : CODE_NONE; node != CODE_NONE; node = w->parent[node]) {
		uint32_t called = symbol && w->parent[node] == CODE_NONE ? symbol->node : node;

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%sn%u@%s", at ? " < " : "", called, line);
		snprintf(line, sizeof(line), "call:%u:0", node);
	}
	return text;
}

/* Where no line is expected there may be one, which a later source told of a neighbour. */
static void assert_same_but_line(const char *ours, const char *expected)
{
	size_t name = strcspn(expected, "@");

	if (strncmp(expected + name, "@?:0:0", 6) != 0 || strncmp(ours, expected, name) != 0)
		assert_string_equal(ours, expected);
	else
		assert_string_equal(ours + name + strcspn(ours + name, " "), expected + name + 6);
}

static void test_random(void **state)
{
	static struct world w;
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint64_t wanted[8];
		struct code_names *c;

		make_world(&w, &seed);
		c = tell_world(&w, NULL, 0, round % 2);
		for (uint64_t addr = 0; addr < SPACE + 100; addr++)
			assert_string_equal(answer_text(c, addr), expected_text(&w, addr, false));
		code_names_free(c);

		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			wanted[i] = (i ? wanted[i - 1] : 0) + below(&seed, SPACE / 4);
		c = tell_world(&w, wanted, ARRAY_LEN(wanted), round % 2);
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			assert_same_but_line(answer_text(c, wanted[i]), expected_text(&w, wanted[i], true));
		code_names_free(c);
	}
}

/* Rows that go back and forth: of all at or before an address the nearest counts. */
static void test_unsorted_rows(void **state)
{
	static const uint64_t wanted[] = { 11, 17, 22, 35 };
	static const uint32_t addrs[] = { 10, 30, 20, 25, 15, 40, 16 };
	static const char *const expected[] = { "?@f:100:0", "?@f:106:0", "?@f:102:0", "?@f:101:0" };

	(void)state;
	for (int pass = 0; pass < 2; pass++) {
		struct code_names *c = code_names_new(pass ? wanted : NULL, pass ? ARRAY_LEN(wanted) : 0);

		code_names_begin(c, CODE_SOURCE_DWARF);
		for (uint32_t i = 0; i < ARRAY_LEN(addrs); i++)
			code_names_line(c, addrs[i], add_file(c, "f"), 100 + i, 0);
		code_names_line(c, 50, CODE_NONE, 0, 0);
		assert_int_equal(code_names_finish(c), 0);
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			assert_string_equal(answer_text(c, wanted[i]), expected[i]);
		code_names_free(c);
	}
}

/* Of sequences that overlap the one that starts first counts as far as it reaches; of rows at one address the last. */
static void test_overlapping_sequences(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t line; /* 0: the end */
	} rows[] = { { 50, 5 }, { 60, 6 }, { 66, 7 }, { 90, 0 }, { 10, 1 },
		     { 40, 2 }, { 40, 3 }, { 70, 0 }, { 20, 8 }, { 65, 0 } };
	static const struct {
		uint64_t addr;
		const char *expected;
	} cases[] = { { 9, "" },	 { 10, "?@f:1:0" }, { 20, "?@f:1:0" }, { 40, "?@f:3:0" }, { 64, "?@f:3:0" },
		      { 69, "?@f:3:0" }, { 70, "?@f:7:0" }, { 89, "?@f:7:0" }, { 90, "" } };
	struct code_names *c = code_names_new(NULL, 0);

	(void)state;
	code_names_begin(c, CODE_SOURCE_DWARF);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		code_names_line(c, rows[i].addr, rows[i].line ? add_file(c, "f") : CODE_NONE, rows[i].line, 0);
	assert_int_equal(code_names_finish(c), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(answer_text(c, cases[i].addr), cases[i].expected);
	code_names_free(c);
}

static void test_wants(void **state)
{
	static const uint64_t wanted[] = { 100, 105, 5000, UINT64_MAX - 1 };
	struct code_names *c = code_names_new(wanted, ARRAY_LEN(wanted));

	(void)state;
	assert_true(code_names_wants(c, 0, UINT64_MAX));
	assert_true(code_names_wants(c, 100, 101));
	assert_false(code_names_wants(c, 101, 105));
	assert_true(code_names_wants(c, 101, 106));
	assert_false(code_names_wants(c, 0, 100));
	assert_false(code_names_wants(c, 200, 200));
	assert_false(code_names_wants(c, 5001, UINT64_MAX - 1));
	assert_true(code_names_wants(c, 5001, UINT64_MAX));
	code_names_begin(c, CODE_SOURCE_DWARF);
	code_names_range(c, 100, 106, code_names_node(c, CODE_NONE, add_function(c, "f"), CODE_NONE, 0, 0));
	assert_true(code_names_wants(c, 100, 101));
	code_names_begin(c, CODE_SOURCE_SYMTAB);
	assert_true(code_names_wants(c, 100, 101)); /* a symbol may tell the name */
	code_names_range(c, 100, 106, code_names_node(c, CODE_NONE, add_function(c, "f.cold"), CODE_NONE, 0, 0));
	code_names_begin(c, CODE_SOURCE_DYNSYM);
	assert_false(code_names_wants(c, 0, 5000)); /* they have their names */
	assert_true(code_names_wants(c, 0, 5001));
	assert_int_equal(code_names_finish(c), 0);
	code_names_free(c);

	c = code_names_new(wanted, 0);
	assert_false(code_names_wants(c, 0, UINT64_MAX));
	assert_int_equal(code_names_finish(c), 0);
	code_names_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlines_and_lines),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_unsorted_rows),
		cmocka_unit_test(test_overlapping_sequences),
		cmocka_unit_test(test_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
