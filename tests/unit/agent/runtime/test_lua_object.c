/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts made of functions of Lua and LuaJIT, as the kernel copies them: names, tables of lines, and records that lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "bpf/runtime/lua_state.h"
#include "bpf/runtime/luajit_state.h"

enum { CODE = 0x7f001000 };

static const struct chain_state plain = { .runtime = RUNTIME_LUA };
static const struct chain_state marked = { .runtime = RUNTIME_LUA, .offset = { [LUA_MARKS] = 96 } };

/* A function from @source that begins on @line. */
struct made {
	const char *source;
	uint32_t line, count, lines; /* instructions; lines, of LuaJIT */
	const void *part[3];	     /* lines, more of them, marks */
	uint16_t bytes[3];
	uint8_t cut; /* bits of parts that could not be read */
};

static void make(uint32_t runtime, const struct made *m, struct buf *out)
{
	struct object_record r = { .addr = 0x7f0000002000, .runtime = runtime, .is_cut = m->cut };

	r.part_state[LUA_HAS_LINE] = m->line;
	r.part_state[LUA_HAS_COUNT] = m->count;
	if (runtime == RUNTIME_LUA) {
		r.part_state[LUA_HAS_CODE] = CODE;
	} else {
		r.part_state[LUAJIT_HAS_LINES] = m->lines;
		r.part_state[LUAJIT_HAS_CODE] = CODE;
	}
	r.part_bytes[LUA_PART_SOURCE] = (uint16_t)strlen(m->source);
	r.hdr.size = sizeof(r) + r.part_bytes[LUA_PART_SOURCE];
	for (int i = 0; i < 3; i++) {
		r.part_bytes[LUA_PART_LINES + i] = m->bytes[i];
		r.hdr.size += m->bytes[i];
	}
	buf_append(out, &r, sizeof(r));
	buf_puts(out, m->source);
	for (int i = 0; i < 3; i++)
		buf_append(out, m->part[i], m->bytes[i]);
	assert_false(out->failed);
}

/* Reads @m, and expects @name, @file and that the instruction before place CODE + 4 * i is on @lines[i - 1]. */
static void expect(const struct chain_state *layout, const struct made *m, const char *name, const char *file,
		   const uint32_t *lines, uint32_t count)
{
	AUTO(buf_fini) struct buf record = BUF_EMPTY;
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct script s;

	make(layout->runtime, m, &record);
	assert_int_equal(object_read((const struct object_record *)record.data, layout, &content), 0);
	assert_int_equal(script_open(content.data, content.len, &s), 0);
	assert_int_equal(s.head.name_bytes, strlen(name));
	assert_memory_equal(s.name, name, strlen(name));
	assert_int_equal(s.head.file_bytes, strlen(file));
	assert_memory_equal(s.file, file, strlen(file));
	assert_int_equal(s.head.first_line, m->line);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(script_line(&s, CODE + 4 * (i + 1)), lines[i]);
	if (count)
		assert_int_equal(script_line(&s, CODE), lines[0]); /* it has not begun */
	assert_int_equal(script_line(&s, CODE + 4 * (count + 1)), 0);
	assert_int_equal(script_line(&s, CODE - 4), 0);
	assert_int_equal(script_line(&s, 0), 0);
}

static void test_names(void **state)
{
	static const struct {
		const char *source;
		uint32_t line;
		const char *name, *file;
	} cases[] = {
		{ "@/a/b.lua", 12, "function /a/b.lua:12", "/a/b.lua" },
		{ "@/a/b.lua", 0, "main chunk /a/b.lua", "/a/b.lua" },
		{ "=(command line)", 3, "function (command line):3", "(command line)" },
		{ "return 1", 1, "function [string \"return 1\"]:1", "[string \"return 1\"]" },
		{ "local x\nreturn x", 0, "main chunk [string \"local x...\"]", "[string \"local x...\"]" },
		{ "@a\tb\xff.lua", 1, "function a?b\xef\xbf\xbd.lua:1", "a?b\xef\xbf\xbd.lua" },
		{ "", 7, "", "" }, /* it could not be read */
		{ "123456789 123456789 123456789 123456789 123456789 123456789 123", 1,
		  "function [string \"123456789 123456789 123456789 123456789 123456789 123456789 ...\"]:1",
		  "[string \"123456789 123456789 123456789 123456789 123456789 123456789 ...\"]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct made m = { .source = cases[i].source, .line = cases[i].line };
		static const struct chain_state jit = { .runtime = RUNTIME_LUAJIT };

		expect(&plain, &m, cases[i].name, cases[i].file, NULL, 0);
		expect(&jit, &m, cases[i].name, cases[i].file, NULL, 0);
	}
	assert_string_equal(object_frame_type(RUNTIME_LUA), "lua");
	assert_string_equal(object_frame_type(RUNTIME_LUAJIT), "luajit");
}

/* 5.1 to 5.3: a number for each instruction; the table may be in two parts. */
static void test_plain_lines(void **state)
{
	static const uint32_t lines[] = { 12, 12, 13, 12, 70000 };
	const struct made whole = { "@f", 12, 5, 0, { lines }, { sizeof(lines) }, 0 };
	const struct made parts = { "@f", 12, 5, 0, { lines, lines + 2 }, { 8, 12 }, 0 };
	const struct made cut = { "@f", 12, 5, 0, { lines }, { 12 }, 0 };
	const struct made hole = { "@f", 12, 5, 0, { NULL, lines }, { 0, 12 }, 1 << LUA_PART_LINES };

	(void)state;
	expect(&plain, &whole, "function f:12", "f", lines, 5);
	expect(&plain, &parts, "function f:12", "f", lines, 5);
	expect(&plain, &cut, "function f:12", "f", lines, 3);
	expect(&plain, &hole, "function f:12", "f", lines, 0);
}

/* 5.4: differences, and marks where these do not fit. */
static void test_differences(void **state)
{
	static const int8_t differences[] = { 0, 1, 0, -1, -128, 2 };
	static const int32_t marks[] = { 4, 500 };
	static const uint32_t lines[] = { 12, 13, 13, 12, 500, 502 };
	const struct made whole = { "@f", 12, 6, 0, { differences, NULL, marks }, { 6, 0, 8 }, 0 };
	const struct made parts = { "@f", 12, 6, 0, { differences, differences + 4, marks }, { 4, 2, 8 }, 0 };
	const struct made unmarked = { "@f", 12, 6, 0, { differences }, { 6 }, 0 };

	(void)state;
	expect(&marked, &whole, "function f:12", "f", lines, 6);
	expect(&marked, &parts, "function f:12", "f", lines, 6);
	expect(&marked, &unmarked, "function f:12", "f", lines, 4); /* the rest is not known without its mark */
}

/* LuaJIT: differences to the first line, of the size that the number of lines needs; none for the first instruction. */
static void test_luajit_lines(void **state)
{
	static const struct chain_state jit = { .runtime = RUNTIME_LUAJIT };
	static const uint8_t bytes[] = { 1, 1, 200 };
	static const uint16_t halves[] = { 1, 1, 40000 };
	static const uint32_t words[] = { 1, 1, 100000 };
	static const uint32_t of_bytes[] = { 12, 13, 13, 212 }, of_halves[] = { 12, 13, 13, 40012 },
			      of_words[] = { 12, 13, 13, 100012 };
	const struct made small = { "@f", 12, 4, 255, { bytes, bytes + 1 }, { 1, 2 }, 0 };
	const struct made middle = { "@f", 12, 4, 256, { halves }, { 6 }, 0 };
	const struct made large = { "@f", 12, 4, 65536, { words }, { 12 }, 0 };

	(void)state;
	expect(&jit, &small, "function f:12", "f", of_bytes, 4);
	expect(&jit, &middle, "function f:12", "f", of_halves, 4);
	expect(&jit, &large, "function f:12", "f", of_words, 4);
}

static void test_lies(void **state)
{
	static const uint32_t runtimes[] = { RUNTIME_LUA, RUNTIME_LUAJIT };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
		const struct made m = { .source = "@f", .line = 12 };
		const struct chain_state layout = { .runtime = runtimes[i] };
		AUTO(buf_fini) struct buf record = BUF_EMPTY;
		AUTO(buf_fini) struct buf content = BUF_EMPTY;
		struct object_record *r;

		make(runtimes[i], &m, &record);
		r = (struct object_record *)record.data;
		r->part_bytes[LUA_PART_MORE] = 4000; /* behind the record's end */
		assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_plain_lines), cmocka_unit_test(test_differences),
		cmocka_unit_test(test_luajit_lines), cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
