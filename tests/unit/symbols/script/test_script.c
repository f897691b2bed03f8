/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of CPython's functions: tables as the compilers of 3.9, 3.10, 3.11 and 3.13 wrote them, with the line of each
 * instruction as the same interpreter tells it. Functions as bytes, with lengths that lie. Texts of each width.
 *
 * Made from code = compile(SOURCE, "x.py", "exec").co_consts[0] with python3.9 (dis.findlinestarts(code), which leaves out
 * places that go on with the line before), python3.10 (code.co_lines()), python3.11 and python3.13 (code.co_lines(), the
 * same as in code.co_positions()). Sources, after "def f(a, b):" in the first line or so: loop    a list over five lines, a
 * loop over it with a call over two lines, return far     700 empty lines, a call, 70,000 empty lines, return back    300
 * empty lines, then "return g(\n a,\n g(\n\n\n a))": the calls belong to the lines where they begin with    a with statement
 * around try and finally, return of a comprehension: places without a line lambda  "\n\nf = lambda a: a" gen     "yield a"
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/script/script.h"

enum { MAX_RUNS = 24, OBJECT_HEAD = 184 };

/* Instructions from .place on have .line; 0: none. */
struct run {
	uint32_t place, line;
};

static const struct known {
	const char *name;
	enum script_lines lines;
	uint32_t first_line, code_bytes, run_cnt;
	const char *table;
	uint32_t table_bytes;
	struct run runs[MAX_RUNS];
} known[] = {
#define TABLE(text) text, sizeof(text) - 1
	{ "3.9 loop",
	  SCRIPT_LINES_LNOTAB,
	  1,
	  42,
	  10,
	  TABLE("\x00\x02\x02\x01\x02\x01\x06\xfd\x04\x05\x08\x01\x04\x01\x04\x01\x02\xff\x06\x02"),
	  { { 0, 3 }, { 2, 4 }, { 4, 5 }, { 10, 2 }, { 14, 7 }, { 22, 8 }, { 26, 9 }, { 30, 10 }, { 32, 9 }, { 38, 11 } } },
	{ "3.9 back",
	  SCRIPT_LINES_LNOTAB,
	  1,
	  14,
	  6,
	  TABLE("\x00\x7f\x00\x7f\x00\x2f\x02\x01\x02\x01\x02\x03\x02\xfd\x02\xfe"),
	  { { 0, 302 }, { 2, 303 }, { 4, 304 }, { 6, 307 }, { 8, 304 }, { 10, 302 } } },
	{ "3.9 with",
	  SCRIPT_LINES_LNOTAB,
	  1,
	  76,
	  5,
	  TABLE("\x00\x01\x06\x01\x02\x01\x08\x02\x2e\x01"),
	  { { 0, 2 }, { 6, 3 }, { 8, 4 }, { 16, 6 }, { 62, 7 } } },
	{ "3.9 lambda", SCRIPT_LINES_LNOTAB, 3, 4, 1, TABLE(""), { { 0, 3 } } },
	{ "3.9 gen", SCRIPT_LINES_LNOTAB, 1, 10, 1, TABLE("\x00\x01"), { { 0, 2 } } },
	{ "3.10 loop",
	  SCRIPT_LINES_LINETABLE,
	  1,
	  42,
	  11,
	  TABLE("\x02\x02\x02\x01\x06\x01\x04\xfd\x08\x05\x04\x01\x04\x01\x02\x01\x04\xff\x02\x80\x04\x02"),
	  { { 0, 3 },
	    { 2, 4 },
	    { 4, 5 },
	    { 10, 2 },
	    { 14, 7 },
	    { 22, 8 },
	    { 26, 9 },
	    { 30, 10 },
	    { 32, 9 },
	    { 36, 0 },
	    { 38, 11 } } },
	{ "3.10 back",
	  SCRIPT_LINES_LINETABLE,
	  1,
	  14,
	  6,
	  TABLE("\x00\x7f\x00\x7f\x02\x2f\x02\x01\x02\x01\x02\x03\x02\xfd\x04\xfe"),
	  { { 0, 302 }, { 2, 303 }, { 4, 304 }, { 6, 307 }, { 8, 304 }, { 10, 302 } } },
	{ "3.10 with",
	  SCRIPT_LINES_LINETABLE,
	  1,
	  76,
	  6,
	  TABLE("\x06\x01\x02\x01\x08\x01\x12\x02\x1c\xfc\x0e\x05"),
	  { { 0, 2 }, { 6, 3 }, { 8, 4 }, { 16, 6 }, { 34, 2 }, { 62, 7 } } },
	{ "3.10 lambda", SCRIPT_LINES_LINETABLE, 3, 4, 1, TABLE("\x04\x00"), { { 0, 3 } } },
	{ "3.10 gen", SCRIPT_LINES_LINETABLE, 1, 12, 2, TABLE("\x02\x80\x0a\x01"), { { 0, 0 }, { 2, 2 } } },
	{ "3.11 loop",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  68,
	  12,
	  TABLE("\x80\x00\xe0\x08\x09\xd8\x08\x09\xd8\x08\x09\x88\x41\x89\x05\xf0\x07\x04\x09\x06\x80\x41\xf0\x0a\x00"
		"\x0e\x0f\xf0\x00\x03\x05\x11\xf0\x00\x03\x05\x11\x88\x01\xd8\x0b\x0c\xf0\x00\x02\x09\x11\xdd\x0c\x0d"
		"\x88\x61\xd8\x0e\x0f\xf1\x03\x01\x0d\x11\xf4\x00\x01\x0d\x11\xf0\x00\x01\x0d\x11\xf8\xe0\x0b\x0c\x80"
		"\x48"),
	  { { 0, 1 },
	    { 2, 3 },
	    { 4, 4 },
	    { 6, 5 },
	    { 14, 2 },
	    { 18, 7 },
	    { 26, 8 },
	    { 30, 9 },
	    { 44, 10 },
	    { 46, 9 },
	    { 62, 0 },
	    { 64, 11 } } },
	{ "3.11 far",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  66,
	  4,
	  TABLE("\x80\x00\xd8\x08\x09\x80\x41\xf5\x7a\x15\x00\x09\x0a\x88\x21\x89\x04\x8c\x04\x80\x41\xf5\x62\x4b\x22"
		"\x00\x0c\x0d\x88\x51\x89\x34\x8c\x34\x80\x4b"),
	  { { 0, 1 }, { 2, 2 }, { 6, 703 }, { 36, 70704 } } },
	{ "3.11 back",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  60,
	  7,
	  TABLE("\x80\x00\xf5\x5a\x09\x00\x0c\x0d\xd8\x08\x09\xdd\x08\x09\xf0\x06\x00\x0d\x0e\xf1\x07\x03\x09\x0f\xf4"
		"\x00\x03\x09\x0f\xf1\x05\x05\x0c\x10\xf4\x00\x05\x0c\x10\xf0\x00\x05\x05\x10"),
	  { { 0, 1 }, { 2, 302 }, { 14, 303 }, { 16, 304 }, { 28, 307 }, { 30, 304 }, { 44, 302 } } },
	{ "3.11 with",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  178,
	  13,
	  TABLE("\x80\x00\xd8\x09\x0a\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x02\x03\x09\x10\xdd\x0c\x0d\x89\x43"
		"\x8c\x43\x88\x43\xe5\x0c\x0d\x89\x43\x8c\x43\x88\x43\x88\x43\xf8\x8d\x41\x89\x43\x8c\x43\x88\x43\x88"
		"\x43\xf8\xf8\xf8\x88\x43\xf0\x09\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf1\x00\x04\x05"
		"\x10\xf4\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x00\x04\x05"
		"\x10\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf8\xf8\xf8\xf0\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0"
		"\x00\x04\x05\x10\xf0\x00\x04\x05\x10\xf0\x0a\x00\x0c\x1a\x88\x3e\x90\x71\x88\x3e\x89\x3e\x8c\x3e\xd0"
		"\x04\x19"),
	  { { 0, 1 },
	    { 2, 2 },
	    { 8, 3 },
	    { 10, 4 },
	    { 38, 6 },
	    { 68, 0 },
	    { 70, 6 },
	    { 100, 0 },
	    { 106, 6 },
	    { 108, 2 },
	    { 140, 0 },
	    { 146, 2 },
	    { 154, 7 } } },
	{ "3.11 lambda", SCRIPT_LINES_LOCATIONS, 3, 6, 1, TABLE("\x80\x00\x88\x61\x80\x00"), { { 0, 3 } } },
	{ "3.11 gen",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  18,
	  2,
	  TABLE("\xe8\x00\xe8\x00\x80\x00\xd8\x0a\x0b\x80\x47\x80\x47\x80\x47\x80\x47\x80\x47"),
	  { { 0, 1 }, { 6, 2 } } },
	{ "3.13 loop",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  80,
	  12,
	  TABLE("\x80\x00\xe0\x08\x09\xd8\x08\x09\xd8\x08\x09\x89\x05\xf0\x07\x04\x09\x06\x80\x41\xf3\x0a\x00\x0e\x0f"
		"\x88\x01\xdf\x0b\x0c\x88\x31\xdc\x0c\x0d\x88\x61\xd8\x0e\x0f\xf6\x03\x01\x0d\x11\xf1\x05\x00\x0e\x0f"
		"\xf0\x08\x00\x0c\x0d\x80\x48"),
	  { { 0, 1 },
	    { 2, 3 },
	    { 4, 4 },
	    { 6, 5 },
	    { 12, 2 },
	    { 16, 7 },
	    { 26, 8 },
	    { 44, 9 },
	    { 56, 10 },
	    { 58, 9 },
	    { 72, 7 },
	    { 76, 11 } } },
	{ "3.13 far",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  50,
	  4,
	  TABLE("\x80\x00\xd8\x08\x09\x80\x41\xf4\x7a\x15\x00\x09\x0a\x88\x21\x8b\x04\x80\x41\xf4\x62\x4b\x22\x00\x0c"
		"\x0d\x88\x51\x8b\x34\x80\x4b"),
	  { { 0, 1 }, { 2, 2 }, { 6, 703 }, { 28, 70704 } } },
	{ "3.13 back",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  44,
	  7,
	  TABLE("\x80\x00\xf4\x5a\x09\x00\x0c\x0d\xd8\x08\x09\xdc\x08\x09\xf0\x06\x00\x0d\x0e\xf3\x07\x03\x09\x0f\xf3"
		"\x05\x05\x0c\x10\xf0\x00\x05\x05\x10"),
	  { { 0, 1 }, { 2, 302 }, { 12, 303 }, { 14, 304 }, { 24, 307 }, { 26, 304 }, { 34, 302 } } },
	{ "3.13 with",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  176,
	  13,
	  TABLE("\x80\x00\xda\x09\x0a\xf0\x02\x03\x09\x10\xdc\x0c\x0d\x8c\x43\xe4\x0c\x0d\x8d\x43\xf7\x09\x00\x0a\x0b"
		"\xf1\x0a\x00\x18\x19\x8b\x3e\x91\x71\x90\x21\x8a\x41\x91\x71\x89\x3e\xd0\x04\x19\xf8\xf4\x03\x00\x0d"
		"\x0e\x8d\x43\xfa\xf7\x09\x00\x0a\x0b\x8d\x11\xfc\xf2\x0a\x00\x0c\x1a"),
	  { { 0, 1 },
	    { 2, 2 },
	    { 8, 3 },
	    { 10, 4 },
	    { 30, 6 },
	    { 52, 2 },
	    { 68, 7 },
	    { 102, 0 },
	    { 104, 6 },
	    { 126, 0 },
	    { 132, 2 },
	    { 160, 0 },
	    { 170, 7 } } },
	{ "3.13 lambda", SCRIPT_LINES_LOCATIONS, 3, 6, 1, TABLE("\x80\x00\x89\x61"), { { 0, 3 } } },
	{ "3.13 gen",
	  SCRIPT_LINES_LOCATIONS,
	  1,
	  20,
	  3,
	  TABLE("\xe9\x00\x80\x00\xd8\x0a\x0b\x83\x47\xf9"),
	  { { 0, 1 }, { 6, 2 }, { 16, 0 } } },
#undef TABLE
};

static struct script script_of(const struct known *k)
{
	return (struct script){ .head = { .first_line = k->first_line,
					  .line_bytes = k->table_bytes,
					  .lines = k->lines,
					  .code_offset = k->lines == SCRIPT_LINES_LOCATIONS ? OBJECT_HEAD : 0,
					  .scale = k->lines == SCRIPT_LINES_LINETABLE ? 2 : 1 },
				.name = "",
				.file = "",
				.line_table = (const uint8_t *)k->table };
}

/* The place as the runtime has it of the instruction @off bytes into the code. */
static uint32_t place_of(const struct script *s, uint32_t off)
{
	return s->head.code_offset + off / s->head.scale;
}

static uint32_t expected_line(const struct known *k, uint32_t off)
{
	uint32_t i = k->run_cnt - 1;

	while (k->runs[i].place > off)
		i--;
	return k->runs[i].line;
}

/* --- lines --- */

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct known *k = &known[i];
		struct script s = script_of(k);

		for (uint32_t off = 0; off < k->code_bytes; off += 2) {
			uint32_t line = script_line(&s, place_of(&s, off));

			if (line != expected_line(k, off))
				fail_msg("%s: %u has line %u, not %u", k->name, off, line, expected_line(k, off));
		}
		/* before the first instruction, however the runtime says so, even where that has no line */
		assert_int_equal(script_line(&s, place_of(&s, 0) - 1), k->first_line);
		assert_int_equal(script_line(&s, UINT32_MAX), k->first_line);
		assert_int_equal(script_line(&s, UINT32_MAX - 1), k->first_line);
		if (k->lines == SCRIPT_LINES_LNOTAB)
			continue;
		assert_int_equal(script_line(&s, place_of(&s, k->code_bytes)), 0);
		assert_int_equal(script_line(&s, INT32_MAX), 0);
	}
}

/* A table that was cut gives the lines up to there, or none, and nothing behind it is read. */
static void test_cut_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct known *k = &known[i];

		for (uint32_t len = 0; len < k->table_bytes; len++) {
			AUTO_FREE uint8_t *table = malloc(len ? len : 1);
			struct script s = script_of(k);

			assert_non_null(table);
			memcpy(table, k->table, len);
			s.line_table = table;
			s.head.line_bytes = len;
			s.head.is_cut = 1;
			for (uint32_t off = 0; off < k->code_bytes; off += 2) {
				uint32_t line = script_line(&s, place_of(&s, off));

				if (line && line != expected_line(k, off))
					fail_msg("%s, cut at %u: %u has line %u, not %u", k->name, len, off, line,
						 expected_line(k, off));
			}
			assert_int_equal(script_line(&s, place_of(&s, k->code_bytes)), 0);
		}
	}
}

static uint32_t line_at(enum script_lines lines, uint32_t first, const void *table, uint32_t bytes, uint32_t place)
{
	struct script s = { .head = { .first_line = first, .line_bytes = bytes, .lines = lines, .scale = 1 },
			    .line_table = table };

	return script_line(&s, place);
}

/* Tables that no compiler writes. */
static void test_absurd_tables(void **state)
{
	static const uint8_t up[] = { 0, 127, 4, 127 }, down[] = { 0, 0x80, 4, 0x81 };
	/* one entry with a line difference of 11 bytes; the same with a difference that takes 36 bits; below 0 */
	static const uint8_t endless[] = {
		0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f, 0x80, 0x00
	};
	static const uint8_t huge[] = { 0xe8, 0x40, 0x40, 0x40, 0x40, 0x40, 0x20 }, minus[] = { 0xe8, 0x03 };
	enum { ENTRY = 11 };
	uint8_t many[400 * ENTRY];

	(void)state;
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, INT32_MAX - 127, up, sizeof(up), 0), INT32_MAX);
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, INT32_MAX - 126, up, sizeof(up), 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, 129, down, sizeof(down), 0), 1);
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, 129, down, sizeof(down), 4), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, UINT32_MAX, NULL, 0, 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LNOTAB, 7, NULL, 0, 0), 7); /* a function of one line has no table */
	assert_int_equal(line_at(SCRIPT_LINES_LINETABLE, 7, NULL, 0, 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LOCATIONS, 7, endless, sizeof(endless), 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LOCATIONS, 7, huge, sizeof(huge), 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_LOCATIONS, 7, minus, sizeof(minus), 0), 6);
	assert_int_equal(line_at(SCRIPT_LINES_LOCATIONS, 1, minus, sizeof(minus), 0), 0);
	/* the highest differences there are, one after another: the sum has no room in 64 bits, where all are taken
	 */
	for (size_t i = 0; i + ENTRY <= sizeof(many); i += ENTRY)
		memcpy(&many[i], "\xe8\x7e\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x3f", ENTRY);
	assert_int_equal(line_at(SCRIPT_LINES_LOCATIONS, 7, many, sizeof(many), 2 * 400 - 1), 0);
	/* tables of a kind that there is not */
	assert_int_equal(line_at((enum script_lines)99, 7, up, sizeof(up), 0), 0);
}

static void test_no_table(void **state)
{
	(void)state;
	assert_int_equal(line_at(SCRIPT_LINES_NONE, 7, NULL, 0, 1234), 1234);
	assert_int_equal(line_at(SCRIPT_LINES_NONE, 7, NULL, 0, 0), 0);
	assert_int_equal(line_at(SCRIPT_LINES_NONE, 7, NULL, 0, INT32_MAX), INT32_MAX);
	assert_int_equal(line_at(SCRIPT_LINES_NONE, 7, NULL, 0, UINT32_MAX), 0);
}

/* --- functions as bytes --- */

static void test_round_trip(void **state)
{
	static const struct script s = { .head = { .first_line = 3,
						   .name_bytes = 4,
						   .file_bytes = 9,
						   .line_bytes = 5,
						   .lines = SCRIPT_LINES_LINETABLE,
						   .code_offset = 6,
						   .scale = 2,
						   .is_cut = 1 },
					 .name = "name",
					 .file = "/a/file.x",
					 .line_table = (const uint8_t *)"\1\2\0\4\5" };
	struct script again;
	struct buf out = BUF_EMPTY;

	(void)state;
	buf_puts(&out, "before");
	script_write(&s, &out);
	assert_false(out.failed);
	assert_int_equal(script_open(out.data + 6, out.len - 6, &again), 0);
	assert_memory_equal(&again.head, &s.head, sizeof(s.head));
	assert_memory_equal(again.name, "name", 4);
	assert_memory_equal(again.file, "/a/file.x", 9);
	assert_memory_equal(again.line_table, "\1\2\0\4\5", 5);
	for (size_t len = 0; len < out.len - 6; len++)
		assert_int_equal(script_open(out.data + 6, len, &again), -EBADMSG);
	buf_putc(&out, 0);
	assert_int_equal(script_open(out.data + 6, out.len - 6, &again), -EBADMSG);
	buf_fini(&out);
}

static void test_lying_lengths(void **state)
{
	static const struct {
		uint32_t name_bytes, file_bytes, line_bytes;
		int error;
	} cases[] = {
		{ 8, 0, 0, 0 },
		{ 0, 8, 0, 0 },
		{ 0, 0, 8, 0 },
		{ 3, 2, 3, 0 },
		{ 0, 0, 0, -EBADMSG },
		{ 9, 0, 0, -EBADMSG },
		{ 3, 2, 2, -EBADMSG },
		{ UINT32_MAX, 9, 0, -EBADMSG }, /* 8 in 32 bits */
		{ UINT32_MAX, UINT32_MAX, 10, -EBADMSG },
		{ 9, UINT32_MAX, 0, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct {
			struct script_head head;
			uint8_t rest[8];
		} content = { .head = { .name_bytes = cases[i].name_bytes,
					.file_bytes = cases[i].file_bytes,
					.line_bytes = cases[i].line_bytes } };
		struct script s;

		assert_int_equal(script_open(&content, sizeof(content), &s), cases[i].error);
	}
}

/* --- texts --- */

static void check_text(const void *bytes, size_t len, unsigned width, const char *expected)
{
	AUTO_FREE uint8_t *copy = malloc(len ? len : 1); /* no byte behind the end can be read unseen */
	struct buf out = BUF_EMPTY;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	buf_puts(&out, "> ");
	script_text(copy, len, width, &out);
	assert_string_equal(buf_text(&out), expected);
	buf_fini(&out);
}

static void test_texts(void **state)
{
	static const uint16_t two[] = { 'a',	0x7f,	0x80,	0x7ff,	0x800,	0xd7ff, 0xd800,
					0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff, 9 };
	static const uint32_t four[] = { 'a',	   0x1f,     0x20,   0xffff,	 0x10000,   0x1f600,
					 0x10ffff, 0x110000, 0xd83d, 0x80000041, UINT32_MAX };

	(void)state;
	check_text("plain", 5, 1, "> plain");
	check_text("\0a\tb\n\x1f\x7f~\x80\xe9\xff", 11, 1, "> ?a?b???~\xc2\x80\xc3\xa9\xc3\xbf");
	check_text(two, sizeof(two), 2,
		   "> "
		   "a?"
		   "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xee\x80\x80\xef"
		   "\xbf\xbf?");
	check_text(four, sizeof(four), 4,
		   "> a? "
		   "\xef\xbf\xbf\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf"
		   "\xbd");
	/* half a character at the end is left out */
	check_text("a\0b\0c", 5, 2, "> ab");
	check_text("a\0\0\0b\0\0", 7, 4, "> a");
	check_text("a", 1, 2, "> ");
	check_text("", 0, 4, "> ");
	/* no width, and absurd ones */
	check_text("abc", 3, 0, "> ");
	check_text("abc", 3, 7, "> ");
	check_text("a\0\0\0xyz", 7, 7, "> a");
	check_text("abc", 3, UINT32_MAX, "> ");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	 cmocka_unit_test(test_cut_tables), cmocka_unit_test(test_absurd_tables),
		cmocka_unit_test(test_no_table), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_lying_lengths),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
