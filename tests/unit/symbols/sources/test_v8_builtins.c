/* SPDX-License-Identifier: Apache-2.0 */
/* V8's own tables of its builtins, in files made by hand: of each form that versions of node have, and spoilt ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/elf_image.h"
#include "symbols/sources/v8_builtins.h"
#include "tests/unit/made_v8.h"

/* Opens the tables of the file that @m says; @file is its bytes. */
static int open_made(const struct made_v8 *m, struct buf *file, struct elf_image *im, struct v8_builtins *ret)
{
	made_v8(m, file);
	assert_int_equal(elf_image_open(file->data, file->len, im), 0);
	return v8_builtins_open(im, ret);
}

static void check(const struct made_v8 *m)
{
	AUTO(v8_builtins_close) struct v8_builtins all;
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	struct v8_builtin one;
	struct elf_image im;

	assert_int_equal(open_made(m, &file, &im, &all), 0);
	assert_int_equal(all.count, MADE_V8_BUILTINS);
	assert_int_equal(all.stride, m->stride);
	assert_int_equal(all.code, MADE_V8_CODE);
	for (uint32_t i = 0; i < MADE_V8_BUILTINS; i++) {
		char name[40];

		made_v8_name(i, name);
		assert_true(v8_builtins_get(&im, &all, i, &one));
		assert_string_equal(one.name, made_v8_is_empty(m, i) ? "" : name);
		assert_int_equal(one.addr, MADE_V8_CODE + made_v8_start(i));
		assert_int_equal(one.size_bytes, made_v8_size(i));
	}
	assert_false(v8_builtins_get(&im, &all, MADE_V8_BUILTINS, &one));
}

static void test_forms(void **state)
{
	static const uint32_t strides[] = { 12, 16, 28, 32 }; /* V8 12 and later; 9; 10; 11 */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(strides); i++) {
		check(&(struct made_v8){ .stride = strides[i] });
		check(&(struct made_v8){ .stride = strides[i], .is_fixed = true });
		check(&(struct made_v8){ .stride = strides[i], .has_empty = true, .has_before = true });
		check(&(struct made_v8){ .stride = strides[i], .is_fixed = true, .has_empty = true, .has_before = true });
	}
}

static void test_spoilt(void **state)
{
	static const struct made_v8 spoilt[] = {
		{ .stride = 12, .names_less = 1 },    { .stride = 12, .names_less = MADE_V8_BUILTINS - 100 },
		{ .stride = 12, .bad_place = 300 },   { .stride = 12, .bad_place = MADE_V8_BUILTINS - 2 },
		{ .stride = 12, .bad_padding = 300 }, { .stride = 12, .bad_padding = MADE_V8_BUILTINS - 1 },
		{ .stride = 12, .has_symtab = true }, { .stride = 12, .has_no_constants = true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spoilt); i++) {
		AUTO(buf_fini) struct buf file = BUF_EMPTY;
		struct v8_builtins all;
		struct elf_image im;

		assert_int_equal(open_made(&spoilt[i], &file, &im, &all), -ENODATA);
		assert_null(all.names);
	}
}

/* A file that ends anywhere is not read beyond its end; sanitizers look. */
static void test_cut(void **state)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	size_t len;

	(void)state;
	made_v8(&(struct made_v8){ .stride = 12 }, &file);
	len = file.len;
	for (size_t part = 0; part < 64; part++) {
		size_t cut = len * part / 64;
		AUTO_FREE uint8_t *copy = malloc(cut + 1);
		struct v8_builtins all;
		struct elf_image im;

		assert_non_null(copy);
		memcpy(copy, file.data, cut);
		if (elf_image_open(copy, cut, &im))
			continue;
		if (!v8_builtins_open(&im, &all))
			v8_builtins_close(&all);
	}
}

static void test_names(void **state)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	const uint64_t wanted[] = { MADE_V8_CODE, MADE_V8_CODE + made_v8_start(7) - 1,
				    MADE_V8_CODE + made_v8_start(MADE_V8_HANDLERS) + 3 };
	struct code_names *names = code_names_new(wanted, ARRAY_LEN(wanted));
	struct symbol_files files = { 0 };
	struct code_answer answer;
	const char *name;
	size_t len;

	(void)state;
	made_v8(&(struct made_v8){ .stride = 28 }, &file);
	files.program = (struct symbol_image){ file.data, file.len };
	assert_non_null(names);
	assert_int_equal(source_v8(&files, names), 0);
	assert_int_equal(code_names_finish(names), 0);
	assert_int_equal(code_names_find(names, wanted[0], &answer), 0);
	name = code_names_name(names, answer.frames[0].function, &len);
	assert_true(len == strlen("Builtins_Builtin_0") && !memcmp(name, "Builtins_Builtin_0", len));
	assert_int_equal(answer.source, CODE_SOURCE_V8);
	assert_string_equal(code_source_name(answer.source), "v8");
	assert_int_equal(code_names_find(names, wanted[1], &answer), -ENOENT); /* between two */
	assert_int_equal(code_names_find(names, wanted[2], &answer), 0);
	name = code_names_name(names, answer.frames[0].function, &len);
	assert_true(len == strlen("Builtins_WideHandler") && !memcmp(name, "Builtins_WideHandler", len));
	assert_int_equal(answer.start, MADE_V8_CODE + made_v8_start(MADE_V8_HANDLERS));
	code_names_free(names);
	names = code_names_new(wanted, 0); /* nobody asks */
	assert_non_null(names);
	assert_int_equal(source_v8(&files, names), -ENODATA);
	code_names_free(names);
	names = code_names_new(NULL, 0);
	assert_non_null(names);
	assert_int_equal(source_v8(&files, names), 0);
	files.program.len_bytes = 0;
	assert_int_equal(source_v8(&files, names), -ENODATA);
	code_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
