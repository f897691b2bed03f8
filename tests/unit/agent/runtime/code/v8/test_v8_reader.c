/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of V8 on a heap made by hand (v8_image.h), in the layouts of node 20 and node 24: what it finds, and what it
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/code/v8/v8_object.h"
#include "agent/runtime/code/v8/v8_script.h"
#include "base/cleanup.h"
#include "tests/unit/agent/runtime/code/v8/v8_image.h"
#include "tests/unit/agent/runtime/code/reader_dump.h"

static struct v8_image image;
static uint8_t state[CODE_STATE_BYTES];

static void begin(bool is_new)
{
	struct code_memory m;
	struct code_facts facts;

	image_make(&image, is_new);
	assert_true(image.used < IMAGE_LENGTHS && image.code_used < IMAGE_BYTES - IMAGE_CODE);
	facts = image_facts(&image);
	m = image_memory(&image);
	memset(state, 0, sizeof(state));
	assert_true(code_v8.state_bytes <= sizeof(state));
	assert_int_equal(code_v8.open(state, &m, &facts, 0), 0);
}

static int begin_old(void **arg)
{
	(void)arg;
	begin(false);
	return 0;
}

static int begin_new(void **arg)
{
	(void)arg;
	begin(true);
	return 0;
}

static struct code_block block_at(uint64_t pc, int expected)
{
	struct code_memory m = image_memory(&image);
	struct code_block b;

	assert_int_equal(code_v8.block(state, &m, pc, &b), expected);
	return b;
}

/* Does @line say that? */
static void check_line(const struct block_line *l, const char *name, uint32_t line, uint32_t start_line)
{
	assert_int_equal(l->name_bytes, strlen(name));
	assert_memory_equal(l->name, name, l->name_bytes);
	assert_int_equal(l->file_bytes, strlen("/srv/app.mjs"));
	assert_memory_equal(l->file, "/srv/app.mjs", l->file_bytes);
	assert_int_equal(l->line, line);
	assert_int_equal(l->start_line, start_line);
}

static void test_block(void **arg)
{
	struct code_block b = block_at(image.optimized + 100, 0);

	(void)arg;
	assert_int_equal(b.start, image.optimized);
	assert_int_equal(b.end, image.optimized + 200);
	assert_int_equal(block_at(image.optimized, 0).start, image.optimized);
	assert_int_equal(block_at(image.optimized + 199, 0).start, image.optimized);
	block_at(image.optimized + 200, -ENOENT);
	block_at(image.optimized - 1, -ENOENT); /* the head is no code */
	assert_int_equal(block_at(image.baseline + 64, 0).start, image.baseline);
	block_at(IMAGE_HEAP + 100, -ENOENT);
	block_at(0, -ENOENT);
	block_at(UINT64_MAX, -ENOENT);
	for (int i = 0; i < 3; i++) {
		struct code_memory m = image_memory(&image);

		assert_true(b.tokens[i].mask);
		assert_int_equal(code_read_u64(&m, b.tokens[i].addr) & b.tokens[i].mask, b.tokens[i].value);
	}
}

/* Code whose head points elsewhere, or at what is no code, is none. */
static void test_block_lies(void **arg)
{
	uint64_t stream = image.optimized - image.layout.offset.stream_head, code;

	(void)arg;
	memcpy(&code, image.bytes + (stream + 8 - IMAGE_HEAP), sizeof(code));
	image_put(&image, code, image.layout.offset.code_start, image.optimized + 64);
	block_at(image.optimized + 100, -ENOENT);
	image_put(&image, code, image.layout.offset.code_start, image.optimized);
	block_at(image.optimized + 100, 0);
	image_put(&image, stream, 8, image.script);
	block_at(image.optimized + 100, -ENOENT);
}

static struct buf names_at(uint64_t pc, int expected)
{
	struct code_memory m = image_memory(&image);
	struct block_names *n = block_names_new();
	struct code_block b = block_at(pc, 0);
	struct buf out = BUF_EMPTY;

	assert_int_equal(code_v8.names(state, &m, &b, n), expected);
	if (!expected) {
		assert_int_equal(block_names_write(n, &out), 0);
		assert_true(block_names_are_sound(out.data, out.len));
	}
	block_names_free(n);
	return out;
}

static void test_optimized_names(void **arg)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct buf names = names_at(image.optimized, 0);

	(void)arg;
	assert_int_equal(block_names_find(names.data, names.len, 3, false, lines), 1);
	check_line(&lines[0], "outer", 5, 2);
	assert_int_equal(block_names_find(names.data, names.len, 8, false, lines), 2);
	check_line(&lines[0], "thing.inner", 7, 3);
	check_line(&lines[1], "outer", 6, 2);
	assert_int_equal(block_names_find(names.data, names.len, 199, false, lines), 1);
	check_line(&lines[0], "outer", 8, 2);
	buf_fini(&names);
}

/* --- WebAssembly --- */

static void check_block(uint64_t pc, uint64_t start, uint64_t end)
{
	struct code_block b = block_at(pc, 0);

	if (b.start != start || b.end != end)
		fail_msg("at 0x%x: 0x%x to 0x%x", (unsigned)(pc - image.wasm), (unsigned)(b.start - image.wasm),
			 (unsigned)(b.end - image.wasm));
}

/* A function ends where another one begins, where there is room for one, or where its memory does. */
static void test_wasm_functions(void **arg)
{
	const uint64_t wrapper = image.wasm + IMAGE_WASM_WRAPPER, last = image.wasm + IMAGE_WASM_LAST;

	(void)arg;
	check_block(image.wasm, image.wasm, wrapper);
	check_block(wrapper - 1, image.wasm, wrapper);
	check_block(wrapper, wrapper, wrapper + 64);
	check_block(wrapper + 63, wrapper, wrapper + 64);
	block_at(wrapper + 64, -ENOENT);
	block_at(image.wasm - 1, -ENOENT);
	check_block(last + 2000, last, image.wasm + IMAGE_WASM_BYTES);
	block_at(last - 1, -ENOENT);
	image.bytes[IMAGE_WASM] = 0x54; /* the prologue is another one */
	block_at(image.wasm + 10, -ENOENT);
}

/* Jumps of the three tables, from their first byte to their last. */
static void test_wasm_jumps(void **arg)
{
	const uint64_t jumps = image.wasm + IMAGE_WASM_JUMPS, far = image.wasm + IMAGE_WASM_FAR,
		       late = image.wasm + IMAGE_WASM_LATE;

	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		check_block(jumps + 5 * i, jumps + 5 * i, jumps + 5 * i + 5);
		check_block(jumps + 5 * i + 4, jumps + 5 * i, jumps + 5 * i + 5);
	}
	block_at(jumps + 15, -ENOENT);
	block_at(jumps + 62, -ENOENT);
	check_block(far, far, far + 8);
	check_block(far + 16 + 7, far + 16, far + 24);
	block_at(far + 8, -ENOENT); /* the address */
	check_block(late, late, late + 10);
	check_block(late + 5, late, late + 10);
	image.bytes[IMAGE_WASM + IMAGE_WASM_JUMPS + 63] = 0; /* no such line has that */
	block_at(jumps, -ENOENT);
}

static struct row row_at(uint64_t pc)
{
	struct code_memory m = image_memory(&image);
	struct code_block b = block_at(pc, 0);
	struct row *rows, found = { 0 };
	size_t count;

	assert_int_equal(code_v8.rows(state, &m, &b, &rows, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (pc >= rows[i].start && pc < rows[i].end)
			found = rows[i];
	free(rows);
	return found;
}

/* Functions have a frame but at their ends; jumps have none, and may have pushed. */
static void test_wasm_rows(void **arg)
{
	const struct {
		uint64_t at;
		uint8_t reg;
		int16_t offset;
	} cases[] = { { 0, REG_SP, 8 },
		      { 1, REG_SP, 16 },
		      { 6, REG_FP, 16 },
		      { 16, REG_FP, 16 },
		      { 20, REG_SP, 8 },
		      { 100, REG_FP, 16 }, /* no path leads there */
		      { IMAGE_WASM_WRAPPER + 16, REG_FP, 16 },
		      { IMAGE_WASM_JUMPS + 5, REG_SP, 8 },
		      { IMAGE_WASM_FAR, REG_SP, 8 },
		      { IMAGE_WASM_LATE, REG_SP, 8 },
		      { IMAGE_WASM_LATE + 5, REG_SP, 16 } };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct row r = row_at(image.wasm + cases[i].at);

		if (r.cfa != ROW_CFA_REG || r.cfa_reg != cases[i].reg || r.cfa_off != cases[i].offset)
			fail_msg("at %u: register %d, offset %d", (unsigned)cases[i].at, r.cfa_reg, (int)r.cfa_off);
	}
}

/* The code at @pc has one function, for all of it, called @name. */
static void check_name(uint64_t pc, const char *name)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct buf names = names_at(pc, 0);

	assert_int_equal(block_names_find(names.data, names.len, 9, true, lines), 1);
	assert_int_equal(lines[0].name_bytes, strlen(name));
	assert_memory_equal(lines[0].name, name, strlen(name));
	buf_fini(&names);
}

/* All of it dies with its first words. */
static void test_wasm_names(void **arg)
{
	struct code_memory m = image_memory(&image);
	struct code_block b = block_at(image.wasm, 0);

	(void)arg;
	check_name(image.wasm + 20, "(wasm)");
	check_name(image.wasm + IMAGE_WASM_WRAPPER, "(wasm wrapper)");
	check_name(image.wasm + IMAGE_WASM_JUMPS, "(wasm jump)");
	assert_true(b.tokens[0].mask);
	image.bytes[IMAGE_WASM + 10] ^= 1;
	assert_true((code_read_u64(&m, b.tokens[1].addr) & b.tokens[1].mask) != b.tokens[1].value);
}

/* Where the file tells the types of WebAssembly's frames, code with frames of another type has no name. */
static void test_frames_of_others(void **arg)
{
	struct code_memory m = image_memory(&image);
	const uint64_t wrapper = image.wasm + IMAGE_WASM_WRAPPER;

	(void)arg;
	for (int is_wasms = 1; is_wasms >= 0; is_wasms--) {
		struct code_facts facts;

		image.layout.wasm_frames = 1ull << IMAGE_WASM_FRAME | (uint64_t)is_wasms << (IMAGE_WASM_FRAME + 1);
		facts = image_facts(&image);
		memset(state, 0, sizeof(state));
		assert_int_equal(code_v8.open(state, &m, &facts, 0), 0);
		check_name(image.wasm, "(wasm)");
		if (is_wasms)
			check_name(wrapper, "(wasm wrapper)");
		else
			names_at(wrapper, -ENODATA);
		assert_int_equal(row_at(wrapper + 16).cfa_reg, REG_FP);
	}
}

/* The kinds between those of regular expressions and of interpreted functions are WebAssembly's wrappers. */
static void test_other_names(void **arg)
{
	const struct v8_layout *l = &image.layout;
	const uint64_t code = block_at(image.regexp, 0).own[1];
	uint32_t kind;

	(void)arg;
	check_name(image.regexp, "(regexp)");
	names_at(image.baseline, -ENODATA); /* its frame tells */
	for (kind = l->kind_regexp + 1; kind < l->kind_interpreted; kind++) {
		image_set(&image, code, l->offset.code_flags, &kind, sizeof(kind));
		check_name(image.regexp, "(wasm wrapper)");
	}
	image_set(&image, code, l->offset.code_flags, &kind, sizeof(kind));
	names_at(image.regexp, -ENODATA);
	kind = l->kind_regexp - 1;
	image_set(&image, code, l->offset.code_flags, &kind, sizeof(kind));
	names_at(image.regexp, -ENODATA);
}

/* Inlined calls that are called by each other, and functions that are none. */
static void test_names_lie(void **arg)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct code_block b = block_at(image.optimized, 0);
	uint64_t deopt = b.own[2], inlined, literals;
	int64_t call = image_raw(105, 0);
	struct buf names;

	(void)arg;
	memcpy(&inlined, image.bytes + ((deopt & ~3ULL) - IMAGE_HEAP) + 16 + 8 * image.layout.offset.deopt_inlined, 8);
	memcpy(&literals, image.bytes + ((deopt & ~3ULL) - IMAGE_HEAP) + 16 + 8 * image.layout.offset.deopt_literals, 8);
	image_put(&image, inlined, 16, (uint64_t)call); /* in itself */
	names = names_at(image.optimized, 0);
	assert_int_equal(block_names_find(names.data, names.len, 8, false, lines), 0);
	assert_int_equal(block_names_find(names.data, names.len, 12, false, lines), 1);
	buf_fini(&names);
	image_put(&image, inlined, 16, (uint64_t)image_raw(105, -1));
	image_put(&image, literals, 24, 3); /* a weak pointer that was cleared */
	names = names_at(image.optimized, 0);
	assert_int_equal(block_names_find(names.data, names.len, 8, false, lines), 0);
	buf_fini(&names);
	image_put(&image, deopt, 16 + 8 * image.layout.offset.deopt_shared, image.script);
	names_at(image.optimized, -EBADMSG);
}

static int function_of(uint32_t capture, uint64_t closure, uint64_t bytecode, struct captured_function *f, struct buf *out)
{
	const uint64_t words[CODE_CAPTURE_WORDS] = { bytecode, closure };
	struct code_memory m = image_memory(&image);
	struct block_names *n = block_names_new();
	int error = code_v8.function(state, &m, capture, words, f, n);

	if (!error)
		assert_int_equal(block_names_write(n, out), 0);
	block_names_free(n);
	return error;
}

static void test_interpreted(void **arg)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct captured_function f;
	struct buf names = BUF_EMPTY;

	(void)arg;
	assert_int_equal(function_of(1, image.closure, image.bytecode, &f, &names), 0);
	assert_int_equal(f.word, 2);
	assert_int_equal(f.base, image.layout.offset.bytecode_data - 1);
	assert_int_equal(f.bytes, 6);
	assert_int_equal(block_names_find(names.data, names.len, 2, false, lines), 1);
	check_line(&lines[0], "outer", 3, 2);
	assert_int_equal(block_names_find(names.data, names.len, 5, false, lines), 1);
	check_line(&lines[0], "outer", 4, 2);
	buf_fini(&names);
	/* Whose closure it is must show by the bytecode. */
	assert_int_equal(function_of(1, image.closure, image.bytecode + 16, &f, &names), -EBADMSG);
	assert_int_equal(function_of(1, image.script, image.bytecode, &f, &names), -EBADMSG);
	assert_int_equal(function_of(1, 0x123456789, image.bytecode, &f, &names), -EFAULT);
	/* Also while there is other code of it. */
	image_tier_up(&image);
	assert_int_equal(function_of(1, image.closure, image.bytecode, &f, &names), 0);
	buf_fini(&names);
}

static void test_baseline(void **arg)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct captured_function f;
	struct buf names = BUF_EMPTY;

	(void)arg;
	assert_int_equal(function_of(2, image.closure, image.bytecode, &f, &names), -EBADMSG); /* it has none */
	image_tier_up(&image);
	assert_int_equal(function_of(2, image.closure, image.bytecode, &f, &names), 0);
	assert_int_equal(f.word, CODE_CAPTURE_WORDS);
	assert_int_equal(f.base, image.baseline);
	assert_int_equal(f.bytes, 65);
	assert_int_equal(block_names_find(names.data, names.len, 2, false, lines), 1);
	check_line(&lines[0], "outer", 0, 2); /* the prologue */
	assert_int_equal(block_names_find(names.data, names.len, 5, false, lines), 1);
	check_line(&lines[0], "outer", 3, 2);
	assert_int_equal(block_names_find(names.data, names.len, 15, false, lines), 1);
	check_line(&lines[0], "outer", 3, 2);
	assert_int_equal(block_names_find(names.data, names.len, 35, false, lines), 1);
	check_line(&lines[0], "outer", 4, 2);
	buf_fini(&names);
}

static void check_string(uint64_t word, const char *expected)
{
	struct code_memory m = image_memory(&image);
	AUTO_FREE struct v8_heap *h = v8_heap_new(&image.layout, &m);
	struct buf out = BUF_EMPTY;
	int status = v8_string(h, word, &out);

	assert_int_equal(status, expected ? 0 : -EBADMSG);
	if (expected)
		assert_string_equal(buf_text(&out), expected);
	buf_fini(&out);
}

/* What is another thing is no script. */
static void test_scripts(void **arg)
{
	struct code_memory m = image_memory(&image);
	AUTO_FREE struct v8_heap *h = v8_heap_new(&image.layout, &m);
	struct v8_script script;

	(void)arg;
	assert_int_equal(v8_script_open(h, image.script, &script), 0);
	assert_int_equal(script.word, image.script);
	assert_int_equal(v8_script_open(h, image_string(&image, "ab"), &script), -EBADMSG);
	assert_int_not_equal(v8_script_open(h, image_smi(1), &script), 0);
}

static void test_strings(void **arg)
{
	enum { CONS_WIDE = 33, CONS = 41, SLICED = 43, THIN = 45, EXTERNAL = 42, UNCACHED = 58 };
	static const uint16_t wide[] = { 0x41, 0xe9, 0xd83d, 0xde00, 0xd83d, 0x42 }; /* A, e acute, a pair, half of one, B */
	uint64_t ab = image_string(&image, "ab"), empty = image_string(&image, ""), w, cons, deep = ab;

	(void)arg;
	check_string(ab, "ab");
	w = image_wide_string(&image, wide, 6);
	check_string(w, "A\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd"
			"B");
	cons = image_string_of(&image, CONS, 4, ab, image_string(&image, "cd"));
	check_string(cons, "abcd");
	check_string(image_string_of(&image, CONS_WIDE, 10, w, cons), "A\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd"
								      "Babcd");
	check_string(image_string_of(&image, CONS, 2, ab, empty), "ab"); /* joined since */
	check_string(image_string_of(&image, SLICED, 1, ab, image_smi(1)), "b");
	check_string(image_string_of(&image, SLICED, 2, ab, image_smi(1)), NULL); /* beyond its parent */
	check_string(image_string_of(&image, THIN, 2, ab, 0), "ab");
	check_string(image_string_of(&image, EXTERNAL, 2, 0, (ab & ~3ULL) + 16), "ab");
	check_string(image_string_of(&image, UNCACHED, 2, 0, 0), NULL);
	check_string(image.script, NULL);
	cons = image_string_of(&image, CONS, 4, 0, ab);
	image_put(&image, cons, 16, cons);
	check_string(cons, NULL); /* a part of itself */
	for (int i = 0; i < 30; i++)
		deep = image_string_of(&image, THIN, 2, deep, 0);
	check_string(deep, NULL);
}

/* Each budget, however small, ends in an error and never in a name that is half. */
static void test_budget(void **arg)
{
	struct captured_function f;
	const uint64_t words[CODE_CAPTURE_WORDS] = { image.bytecode, image.closure };
	bool was_enough = false;

	(void)arg;
	for (uint32_t reads = 0; reads < 60; reads++) {
		struct code_memory m = image_memory(&image);
		struct block_names *n = block_names_new();
		int error;

		memset(state, 0, sizeof(state));
		assert_int_equal(code_v8.open(state, &m, &(struct code_facts[]){ image_facts(&image) }[0], 0), 0);
		m.reads_left = reads;
		error = code_v8.function(state, &m, 1, words, &f, n);
		assert_true(was_enough ? error == 0 : error == 0 || error == -EDQUOT);
		was_enough |= error == 0;
		block_names_free(n);
	}
	assert_true(was_enough);
}

static void test_rows(void **arg)
{
	struct code_memory m = image_memory(&image);
	struct code_block b = block_at(image.optimized, 0);
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)arg;
	assert_int_equal(code_v8.rows(state, &m, &b, &rows, &count), 0);
	assert_true(count >= 4);
	assert_int_equal(rows[0].start, b.start);
	assert_int_equal(rows[0].cfa_reg, REG_SP);
	assert_int_equal(rows[0].cfa_off, 8);  /* push rbp */
	assert_int_equal(rows[1].cfa_off, 16); /* mov rbp, rsp */
	assert_int_equal(rows[2].cfa_reg, REG_FP);
	assert_int_equal(rows[2].start, b.start + 4);
	assert_int_equal(rows[2].end, b.start + 20); /* pop rbp */
	assert_int_equal(rows[3].cfa_reg, REG_SP);
	assert_int_equal(rows[3].end, b.start + sizeof(image_insns));
	assert_int_equal(rows[2].capture, 0);
}

/* Data behind the last instruction that looks like a system call; no row speaks of it, which who asks would not believe. */
static void test_data_rows(void **arg)
{
	enum { AT = 100 };
	struct code_memory m = image_memory(&image);
	struct code_block b = block_at(image.optimized, 0);
	AUTO_FREE struct row *rows = NULL;
	bool is_met = false;
	size_t count;

	(void)arg;
	image_set(&image, b.start, AT, "\x0f\x05\x90", 3); /* syscall; nop */
	assert_int_equal(code_v8.rows(state, &m, &b, &rows, &count), 0);
	for (size_t i = 0; i < count; i++) {
		is_met |= rows[i].start <= b.start + AT + 2 && rows[i].end > b.start + AT + 2;
		assert_false(rows[i].is_behind_syscall);
	}
	assert_true(is_met);
}

static void test_unsound_layouts(void **arg)
{
	struct code_facts facts = { .id = CODE_V8 };
	struct code_memory m = image_memory(&image);
	struct v8_layout l = image.layout;

	struct code_capture captures[CODE_CAPTURES] = { { .count = 0 } };

	(void)arg;
	assert_int_equal(code_v8.open(state, &m, &facts, 0), -ENOTSUP);
	assert_string_equal(code_v8.lacks(&facts), "this version is not known");
	code_v8.captures(NULL, &facts, captures);
	assert_int_equal(captures[0].count, 0);
	l.handlers.start = 0;
	memcpy(facts.fact, &l, sizeof(l));
	assert_true(strstr(code_v8.lacks(&facts), "interpreter"));
	assert_int_equal(code_v8.open(state, &m, &facts, 0), 0);
	l.handlers.start = l.handlers.end = 0x1000;
	memcpy(facts.fact, &l, sizeof(l));
	assert_null(code_v8.lacks(&facts));
	l.offset.stream_step = 0;
	memcpy(facts.fact, &l, sizeof(l));
	assert_int_equal(code_v8.open(state, &m, &facts, 0), -ENOTSUP);
	l = image.layout;
	l.bytecode_cnt = 100000;
	memcpy(facts.fact, &l, sizeof(l));
	assert_int_equal(code_v8.open(state, &m, &facts, 0), -ENOTSUP);
}

static void all_is_as_written(void **arg)
{
	static struct code_facts facts;
	static struct dumped what;

	(void)arg;
	facts = image_facts(&image);
	what = (struct dumped){ .reader = &code_v8,
				.facts = &facts,
				.from = IMAGE_HEAP + IMAGE_CODE,
				.to = IMAGE_HEAP + IMAGE_CODE + image.code_used,
				.captured = { { 1, { image.bytecode, image.closure } },
					      { 2, { image.bytecode, image.closure } },
					      { 1, { image.closure, image.closure } },
					      { 1, { image.bytecode } } },
				.read = image_read,
				.arg = &image };
	reader_is_as_written(&what, image.layout.version >> 16 == 13 ? "code_v8_24.txt" : "code_v8_20.txt");
}

#define BOTH(test) cmocka_unit_test_setup(test, begin_old), cmocka_unit_test_setup(test, begin_new)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(all_is_as_written), BOTH(test_block),	     BOTH(test_block_lies),	  BOTH(test_optimized_names),
		BOTH(test_other_names),	 BOTH(test_names_lie),	     BOTH(test_interpreted),	  BOTH(test_baseline),
		BOTH(test_strings),	 BOTH(test_scripts),	     BOTH(test_budget),		  BOTH(test_rows),
		BOTH(test_data_rows),	 BOTH(test_unsound_layouts), BOTH(test_wasm_functions),	  BOTH(test_wasm_jumps),
		BOTH(test_wasm_rows),	 BOTH(test_wasm_names),	     BOTH(test_frames_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
