/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines of V8's code and bytecode, each table by itself: from which place on which function is told, chains of
 * inlined calls, functions without a name or a script, and tables that are not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "agent/runtime/code/v8/v8_naming.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/agent/runtime/code/v8/v8_image.h"

static struct v8_image image;
static struct v8_marks marks;
static struct code_memory memory;
static struct v8_heap *heap;
static struct v8_code code; /* the optimized one */

static int begin(bool is_new)
{
	uint64_t stream_map = 0;

	image_make(&image, is_new);
	memset(&marks, 0, sizeof(marks));
	memory = image_memory(&image);
	heap = v8_heap_new(&image.layout, &memory);
	return !heap || v8_code_find(heap, image.optimized, &stream_map, &code);
}

static int begin_old(void **state)
{
	(void)state;
	return begin(false);
}

static int begin_new(void **state)
{
	(void)state;
	return begin(true);
}

static int end(void **state)
{
	(void)state;
	free(heap);
	return 0;
}

/* What was told, after a function that ended with @error; empty where that is one. */
static struct buf told(int error, struct block_names *n)
{
	struct buf out = BUF_EMPTY;

	if (!error) {
		assert_int_equal(block_names_write(n, &out), 0);
		assert_true(block_names_are_sound(out.data, out.len));
	}
	block_names_free(n);
	return out;
}

/* At @place stand these functions, innermost first: "NAME LINE START FILE", a bar between them; "" for none. */
static void stands(const struct buf *names, uint32_t place, const char *wanted)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	uint32_t count = block_names_find(names->data, names->len, place, false, lines);

	for (uint32_t i = 0; i < count; i++)
		buf_printf(&text, "%s%.*s %u %u %.*s", i ? "|" : "", (int)lines[i].name_bytes, lines[i].name, lines[i].line,
			   lines[i].start_line, (int)lines[i].file_bytes, lines[i].file);
	assert_string_equal(buf_text(&text), wanted);
}

#define FILE_NAME "/srv/app.mjs"

static struct buf name_optimized(void)
{
	struct block_names *n = block_names_new();
	struct v8_heap *h = heap;
	int error = v8_name_optimized(h, &marks, &code, n);

	assert_int_equal(error, 0);
	return told(error, n);
}

/* --- optimized code --- */

/* Each place begins with its own byte and goes on to the next. */
static void test_places(void **state)
{
	AUTO(buf_fini) struct buf names = name_optimized();

	(void)state;
	stands(&names, 0, "outer 5 2 " FILE_NAME);
	stands(&names, 7, "outer 5 2 " FILE_NAME);
	stands(&names, 8, "thing.inner 7 3 " FILE_NAME "|outer 6 2 " FILE_NAME);
	stands(&names, 11, "thing.inner 7 3 " FILE_NAME "|outer 6 2 " FILE_NAME);
	stands(&names, 12, "outer 8 2 " FILE_NAME);
	stands(&names, 1000, "outer 8 2 " FILE_NAME);
}

/* Code before the first position is the function's own, on no known line. */
static void test_before_the_first(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	uint8_t table[16];

	(void)state;
	code.positions = image_bytes(&image, table, image_position(table, 0, 4, image_raw(85, -1)));
	names = name_optimized();
	stands(&names, 0, "outer 0 2 " FILE_NAME);
	stands(&names, 3, "outer 0 2 " FILE_NAME);
	stands(&names, 4, "outer 5 2 " FILE_NAME);
}

static bool is_approximate(const struct buf *names, uint32_t place)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];

	assert_true(block_names_find(names->data, names->len, place, false, lines) > 0);
	return lines[0].is_approximate;
}

/* Which of the inlined functions runs nobody knows then, and it is said; where there are none, all is known but the line. */
static void test_no_positions(void **state)
{
	AUTO(buf_fini) struct buf names = name_optimized(), plain = BUF_EMPTY;

	(void)state;
	assert_false(is_approximate(&names, 0));
	assert_false(is_approximate(&names, 8));
	buf_fini(&names);
	code.positions = image_bytes(&image, "", 0);
	names = name_optimized();
	stands(&names, 0, "outer 0 2 " FILE_NAME);
	stands(&names, 100, "outer 0 2 " FILE_NAME);
	assert_true(is_approximate(&names, 0));
	assert_true(is_approximate(&names, 100));
	image_put(&image, code.deopt, 16 + 8 * image.layout.offset.deopt_inlined, image_bytes(&image, "", 0));
	plain = name_optimized();
	stands(&plain, 100, "outer 0 2 " FILE_NAME);
	assert_false(is_approximate(&plain, 100));
}

static uint64_t field_of(uint64_t word, uint32_t offset)
{
	uint64_t ret;

	memcpy(&ret, image.bytes + ((word & ~3ULL) - IMAGE_HEAP) + offset, sizeof(ret));
	return ret;
}

/* Has outer call inner from line 6, which calls the function in literal @function from line 4. */
static void inline_twice(uint64_t function)
{
	const struct v8_offsets *o = &image.layout.offset;
	const uint64_t literals = field_of(code.deopt, 16 + 8u * o->deopt_literals);
	const int64_t inlined[2][2] = { { image_raw(105, -1), 1 }, { image_raw(65, 0), 0 } };
	uint8_t table[16];

	image_put(&image, literals, 16, function);
	image_put(&image, code.deopt, 16 + 8u * o->deopt_inlined, image_bytes(&image, inlined, sizeof(inlined)));
	code.positions = image_bytes(&image, table, image_position(table, 0, 0, image_raw(125, 1)));
}

static void test_inlined_into_inlined(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	inline_twice(image_function(&image, "deep", false, 60));
	names = name_optimized();
	stands(&names, 0, "deep 7 4 " FILE_NAME "|thing.inner 4 3 " FILE_NAME "|outer 6 2 " FILE_NAME);
}

/* A function that is none leaves its place without names, and no other. */
static void test_no_function(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	uint8_t table[16];
	uint32_t len;

	(void)state;
	inline_twice(image.script);
	len = image_position(table, 0, 0, image_raw(125, 1));
	len = image_position(table, len, 8, image_raw(85, -1) - image_raw(125, 1));
	code.positions = image_bytes(&image, table, len);
	names = name_optimized();
	stands(&names, 0, "");
	stands(&names, 8, "outer 5 2 " FILE_NAME);
}

/* A call that the table does not have. */
static void test_no_such_call(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	uint8_t table[16];
	uint32_t len = image_position(table, 0, 0, image_raw(125, 1));

	(void)state;
	len = image_position(table, len, 8, image_raw(85, -1) - image_raw(125, 1));
	code.positions = image_bytes(&image, table, len);
	names = name_optimized();
	stands(&names, 0, "");
	stands(&names, 8, "outer 5 2 " FILE_NAME);
}

/* --- functions --- */

static void set_function(uint64_t shared)
{
	image_put(&image, code.deopt, 16 + 8u * image.layout.offset.deopt_shared, shared);
	code.positions = image_bytes(&image, "", 0);
}

static void test_no_name(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	set_function(image_function(&image, "", false, 60));
	names = name_optimized();
	stands(&names, 0, "(anonymous) 0 4 " FILE_NAME);
}

/* Where the heap was moved while it was read, a name is no string any more: it is not known, which is not the same as none.
 */
static void test_name_moved(void **state)
{
	const struct v8_offsets *o = &image.layout.offset;
	const uint64_t with = image_function(&image, "gone", false, 60), without = image_function(&image, "", false, 60);
	struct block_names *n = block_names_new();
	struct v8_heap *h = heap;
	uint64_t scope, name;

	(void)state;
	memcpy(&scope, image.bytes + ((with & ~3ull) + o->shared_name - IMAGE_HEAP), sizeof(scope));
	memcpy(&name, image.bytes + ((scope & ~3ull) + 8 + 8u * o->scope_first + 16 - IMAGE_HEAP), sizeof(name));
	set_function(with);
	assert_int_equal(v8_name_optimized(h, &marks, &code, n), 0);
	image_put(&image, name, 0, 0x1234560); /* where the string went: no map */
	assert_int_equal(v8_name_optimized(h, &marks, &code, n), -EFAULT);
	set_function(without);
	image_put(&image, without, o->shared_name, image_smi(0)); /* that it has none */
	assert_int_equal(v8_name_optimized(h, &marks, &code, n), 0);
	image_put(&image, without, o->shared_name, 0x7000000001); /* nothing is there */
	assert_int_equal(v8_name_optimized(h, &marks, &code, n), -EFAULT);
	block_names_free(n);
}

/* In 9.x a function whose receiver is on the stack (1) or in a context (2) has a word for it before its name; one that has
 * none (0) or does not use it (3) has no such word, nor has any of later versions. */
static void test_receivers(void **state)
{
	(void)state;
	for (uint32_t has_words = 0; has_words < 2; has_words++) {
		for (uint32_t receiver = 0; receiver < 4; receiver++) {
			AUTO(buf_fini) struct buf own = BUF_EMPTY, inferred = BUF_EMPTY;

			image.layout.offset.scope_receiver = (uint16_t)has_words;
			set_function(image_function_receiver(&image, "method", false, 60, receiver));
			own = name_optimized();
			stands(&own, 0, "method 0 4 " FILE_NAME);
			set_function(image_function_receiver(&image, "Made.method", true, 60, receiver));
			inferred = name_optimized();
			stands(&inferred, 0, "Made.method 0 4 " FILE_NAME);
		}
	}
}

static void test_no_script(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	image_put(&image, image.outer, image.layout.offset.shared_script, image_smi(0));
	names = name_optimized();
	stands(&names, 0, "outer 0 0 ");
	stands(&names, 8, "thing.inner 7 3 " FILE_NAME "|outer 0 0 ");
}

/* The scheme is cut off a URL of a file, and nothing else is. */
static void test_paths(void **state)
{
	static const struct {
		const char *name, *wanted;
	} cases[] = {
		{ "/plain/a.js", "outer 5 2 /plain/a.js" },
		{ "file:///a.mjs", "outer 5 2 /a.mjs" },
		{ "file://x", "outer 5 2 x" },
		{ "file://", "outer 5 2 file://" },
		{ "node:internal/main", "outer 5 2 node:internal/main" },
		{ "", "outer 5 2 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY;

		image_put(&image, image.script, image.layout.offset.script_name, image_string(&image, cases[i].name));
		names = name_optimized();
		stands(&names, 0, cases[i].wanted);
	}
}

/* --- bytecode --- */

static void test_bytecode(void **state)
{
	struct block_names *n = block_names_new();
	int error = v8_name_bytecode(heap, &marks, image.outer, image.bytecode, n);
	AUTO(buf_fini) struct buf names = told(error, n);

	(void)state;
	assert_int_equal(error, 0);
	stands(&names, 0, "outer 3 2 " FILE_NAME);
	stands(&names, 4, "outer 3 2 " FILE_NAME);
	stands(&names, 5, "outer 4 2 " FILE_NAME);
}

/* V8 makes the table when it is first wanted: until then no line is known. */
static void test_bytecode_without_positions(void **state)
{
	struct block_names *n = block_names_new();
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	int error;

	(void)state;
	image_put(&image, image.bytecode, image.layout.offset.bytecode_positions, image.script); /* no table */
	error = v8_name_bytecode(heap, &marks, image.outer, image.bytecode, n);
	names = told(error, n);
	assert_int_equal(error, 0);
	stands(&names, 0, "outer 0 2 " FILE_NAME);
	stands(&names, 5, "outer 0 2 " FILE_NAME);
}

static void test_bytecode_of_no_function(void **state)
{
	struct block_names *n = block_names_new();

	(void)state;
	assert_int_equal(v8_name_bytecode(heap, &marks, image.script, image.bytecode, n), -EBADMSG);
	block_names_free(n);
}

/* --- baseline code --- */

static int name_baseline(struct buf *names)
{
	struct block_names *n = block_names_new();
	struct v8_code baseline;
	uint64_t stream_map = 0;
	int error = v8_code_find(heap, image.baseline, &stream_map, &baseline);

	assert_int_equal(error, 0);
	error = v8_name_baseline(heap, &marks, image.outer, &baseline, image.bytes + IMAGE_LENGTHS,
				 image.layout.bytecode_cnt, n);
	*names = told(error, n);
	return error;
}

/* The prologue, then the code of three bytecodes, of which the last one is on the second line. */
static void test_baseline(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	assert_int_equal(name_baseline(&names), 0);
	stands(&names, 0, "outer 0 2 " FILE_NAME);
	stands(&names, 4, "outer 0 2 " FILE_NAME);
	stands(&names, 5, "outer 3 2 " FILE_NAME);
	stands(&names, 34, "outer 3 2 " FILE_NAME);
	stands(&names, 35, "outer 4 2 " FILE_NAME);
}

/* Lengths of bytecodes that make no sense. */
static void test_baseline_of_no_bytecode(void **state)
{
	static const int32_t lengths[] = { 0, -1, (16 << 20) + 1 };
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		image_put(&image, image.bytecode, 8, image_smi(lengths[i]));
		assert_int_equal(name_baseline(&names), -EBADMSG);
	}
	image_put(&image, image.bytecode, 8, image_smi(16 << 20)); /* as many as there may be, but not in this memory */
	assert_int_equal(name_baseline(&names), -EFAULT);
}

/* --- bounds --- */

/* Whatever there is left to read with, it ends with names or says why not. */
static void test_budget(void **state)
{
	bool has_ended = false, has_named = false;

	(void)state;
	for (uint32_t left = 0; left < 400 && !has_named; left++) {
		struct block_names *n = block_names_new();
		int error;

		memory = image_memory(&image);
		memory.reads_left = left;
		free(heap);
		heap = v8_heap_new(&image.layout, &memory);
		memset(&marks, 0, sizeof(marks));
		error = v8_name_optimized(heap, &marks, &code, n);
		assert_true(error == 0 || error == -EDQUOT);
		has_ended |= error == -EDQUOT;
		has_named |= error == 0;
		block_names_free(n);
	}
	assert_true(has_ended);
	assert_true(has_named);
}

#define NAMING_TEST(name) \
	cmocka_unit_test_setup_teardown(name, begin_old, end), cmocka_unit_test_setup_teardown(name, begin_new, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMING_TEST(test_places),
		NAMING_TEST(test_before_the_first),
		NAMING_TEST(test_no_positions),
		NAMING_TEST(test_inlined_into_inlined),
		NAMING_TEST(test_no_function),
		NAMING_TEST(test_no_such_call),
		NAMING_TEST(test_no_name),
		NAMING_TEST(test_name_moved),
		NAMING_TEST(test_receivers),
		NAMING_TEST(test_no_script),
		NAMING_TEST(test_paths),
		NAMING_TEST(test_bytecode),
		NAMING_TEST(test_bytecode_without_positions),
		NAMING_TEST(test_bytecode_of_no_function),
		NAMING_TEST(test_baseline),
		NAMING_TEST(test_baseline_of_no_bytecode),
		NAMING_TEST(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
