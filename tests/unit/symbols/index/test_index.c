/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index says what the struct code_names says that it was written from: over random worlds, over much code, over deep
 * chains. And no damage to its bytes makes it say anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/index/index.h"
#include "symbols/index/format.h"
#include "tests/unit/symbols/code_worlds.h"

static const struct symbol_index_head head = { .build_id = "0123456789abcdef",
					       .best = CODE_SOURCE_DWARF,
					       .had_debug = true };

static struct buf write_index(const struct code_names *c)
{
	struct buf bytes = BUF_EMPTY;

	assert_int_equal(symbol_index_write(c, &head, &bytes), 0);
	return bytes;
}

/* Whether an address has the same answer, and all of its texts, in both. */
static bool answers_equal(const struct code_names *c, const struct symbol_index *x, uint64_t addr)
{
	struct code_answer a, b;
	int r = code_names_find(c, addr, &a);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	bool equal = symbol_index_find(x, addr, &b) == r && a.frame_count == b.frame_count;

	equal = equal && (r || (a.start == b.start && a.source == b.source && a.decl_line == b.decl_line));
	for (uint32_t i = 0; equal && i < a.frame_count; i++) {
		const struct code_frame *f = &a.frames[i], *g = &b.frames[i];
		size_t len;

		equal = f->line == g->line && f->column == g->column && (f->file == CODE_NONE) == (g->file == CODE_NONE) &&
			(f->function == CODE_NONE) == (g->function == CODE_NONE);
		if (equal && f->function != CODE_NONE) {
			const char *name = code_names_name(c, f->function, &len);

			buf_reset(&text);
			equal = symbol_index_name(x, g->function, &text) == 0 && text.len == len &&
				memcmp(text.data, name, len) == 0;
		}
		if (equal && f->file != CODE_NONE) {
			const char *path = code_names_path(c, f->file, &len);

			buf_reset(&text);
			buf_putc(&text, '>'); /* what is there stays */
			equal = symbol_index_path(x, g->file, &text) == 0 && text.len == len + 1 && text.data[0] == '>' &&
				memcmp(text.data + 1, path, len) == 0;
		}
	}
	return equal;
}

static void test_random(void **state)
{
	static struct world w;
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct code_names *c;
		struct symbol_index *x;
		struct buf bytes;

		make_world(&w, &seed);
		c = tell_world(&w, NULL, 0, round % 2);
		bytes = write_index(c);
		assert_int_equal(symbol_index_open(bytes.data, bytes.len, &x), 0);
		for (uint64_t addr = 0; addr < SPACE + 100; addr++)
			assert_true(answers_equal(c, x, addr));
		assert_true(answers_equal(c, x, UINT64_MAX));
		symbol_index_close(x);
		buf_fini(&bytes);
		code_names_free(c);
	}
}

/* Many functions, far apart and with long names, and inlined calls deeper than an answer is long. */
static struct code_names *make_much(uint64_t base)
{
	struct code_names *c = code_names_new(NULL, 0);
	uint32_t seed = 7;
	char text[512];

	code_names_begin(c, CODE_SOURCE_GO);
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t at = base + i * 1000ull + (i > 10000 ? 1ull << 40 : 0);
		uint32_t node = CODE_NONE;

		for (uint32_t depth = 0; depth <= (i % 2000 ? i % 7 : 255); depth++) {
			uint32_t n = below(&seed, 3000);

			snprintf(text, sizeof(text), "package%u/%0*u.function%u", n % 9, (int)(n % 300), n, n * n);
			node = code_names_node(c, node, code_names_function(c, text, strlen(text), n % 5 ? n : 0),
					       n % 3 ? add_file(c, text + n % 4) : CODE_NONE, n * 100, n % 70000);
			code_names_range(c, at + depth, at + 900 - depth, node);
		}
		for (uint32_t row = 0; row < 5; row++)
			code_names_line(c, at + row * 200, row % 2 ? add_file(c, text) : add_file(c, "same.go"),
					row % 2 ? row : UINT32_MAX, i % 2);
		code_names_line(c, at + 850, CODE_NONE, 0, 0);
	}
	assert_int_equal(code_names_finish(c), 0);
	return c;
}

static void test_much(void **state)
{
	static const uint64_t bases[] = { 0, 0x400000, 0xffffffff80000000 - (1ull << 41) };

	(void)state;
	for (size_t b = 0; b < ARRAY_LEN(bases); b++) {
		struct code_names *c = make_much(bases[b]);
		struct buf bytes = write_index(c);
		struct symbol_index_sizes sizes;
		struct symbol_index *x;
		uint32_t seed = 3;

		assert_int_equal(symbol_index_open(bytes.data, bytes.len, &x), 0);
		sizes = symbol_index_sizes(x);
		assert_true(sizes.steps >= 100000 && sizes.functions > 2000 && sizes.all_bytes == bytes.len);
		assert_int_equal(symbol_index_check(x), 0);
		for (int i = 0; i < 100000; i++) {
			uint64_t addr = bases[b] + below(&seed, 10000) * 1000ull + below(&seed, 1000);

			assert_true(answers_equal(c, x, addr + (i % 2 ? 10000 * 1000ull + (1ull << 40) : 0)));
		}
		for (uint64_t at = 0; at < 1000; at++)
			assert_true(answers_equal(c, x, bases[b] + at));
		symbol_index_close(x);
		buf_fini(&bytes);
		code_names_free(c);
	}
}

static void test_head(void **state)
{
	struct code_names *c = code_names_new(NULL, 0);
	struct symbol_index_head full = {
		.best = CODE_SOURCE_PLT, .is_broken = true, .had_common = true, .had_package = true
	};
	struct buf bytes = BUF_EMPTY;
	struct code_answer a;
	struct symbol_index *x;
	uint8_t *data;

	(void)state;
	assert_int_equal(code_names_finish(c), 0);
	memset(full.build_id, 'f', SYMBOL_INDEX_ID_BYTES);
	buf_puts(&bytes, "in front");
	assert_int_equal(symbol_index_write(c, &full, &bytes), 0);
	data = bytes.data + strlen("in front");
	assert_int_equal(symbol_index_open(data, bytes.len - 8, &x), 0);
	assert_string_equal(symbol_index_head(x)->build_id, full.build_id);
	assert_int_equal(symbol_index_head(x)->best, CODE_SOURCE_PLT);
	assert_true(symbol_index_head(x)->is_broken && symbol_index_head(x)->had_common &&
		    symbol_index_head(x)->had_package);
	assert_false(symbol_index_head(x)->had_debug);
	assert_int_equal(symbol_index_find(x, 0, &a), -ENOENT);
	assert_int_equal(symbol_index_find(x, UINT64_MAX, &a), -ENOENT);
	assert_int_equal(symbol_index_name(x, 0, &bytes), -EBADMSG);
	assert_int_equal(symbol_index_path(x, CODE_NONE, &bytes), -EBADMSG);
	symbol_index_close(x);

	assert_int_equal(symbol_index_open(data, bytes.len - 9, &x), -EBADMSG);
	assert_int_equal(symbol_index_open(data, 20, &x), -EBADMSG);
	assert_int_equal(symbol_index_open(data, 0, &x), -EBADMSG);
	((struct index_header *)data)->version++;
	assert_int_equal(symbol_index_open(data, bytes.len - 8, &x), -EPROTONOSUPPORT);
	buf_fini(&bytes);
	code_names_free(c);
}

/* Any byte changed: nothing opens, or is found, unless it is what it was. */
static void test_damaged(void **state)
{
	static struct world w;
	uint32_t seed = 5, broken = 0;
	struct code_names *c;
	struct buf bytes;

	(void)state;
	make_world(&w, &seed);
	c = tell_world(&w, NULL, 0, false);
	bytes = write_index(c);
	for (size_t at = 0; at < bytes.len; at++) {
		struct symbol_index *x;

		bytes.data[at] ^= (uint8_t)(1 << at % 8);
		if (symbol_index_open(bytes.data, bytes.len, &x) == 0) {
			assert_true(at >= ((struct index_header *)bytes.data)->data);
			assert_int_equal(symbol_index_check(x), -EBADMSG);
			for (uint64_t addr = 0; addr < SPACE; addr += 13) {
				struct code_answer a;
				int r = symbol_index_find(x, addr, &a);

				assert_true(r == -EBADMSG || (r == -ENOENT && answers_equal(c, x, addr)));
			}
			symbol_index_close(x);
			broken++;
		}
		bytes.data[at] ^= (uint8_t)(1 << at % 8);
	}
	assert_true(broken > 100);
	buf_fini(&bytes);
	code_names_free(c);
}

/* DWARF with 9,500 names of 60 KB, each the tail of one text, and a symbol table. The zeros are there because a reader
 * spends no more effort than goes with a file's size. */
static const char much_dwarf[] =
	".text\n.skip 200000, 0x90\n.globl in_symtab\n.type in_symtab,@function\nin_symtab: .skip 100, 0x90\n"
	".size in_symtab, 100\n"
	".section .debug_abbrev,\"\",@progbits\n"
	".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0\n" /* unit: low_pc, high_pc data4 */
	".uleb128 2, 0x2e\n.byte 0\n"					     /* subprogram: */
	".uleb128 0x6e, 0x0e, 0x11, 0x01, 0x12, 0x06, 0, 0, 0\n"	     /* linkage_name strp, low_pc, high_pc data4 */
	".section .debug_info,\"\",@progbits\n"
	".4byte 2f - 1f\n1: .2byte 4\n.4byte .debug_abbrev\n.byte 8\n"
	".uleb128 1\n.8byte .text\n.4byte 200000\n"
	".set i, 0\n"
	".rept 9500\n.uleb128 2\n.4byte .debug_str + i\n.8byte .text + i * 20\n.4byte 20\n"
	".set i, i + 1\n.endr\n"
	".byte 0\n2:\n"
	".section .debug_str,\"\",@progbits\n\n.fill 60000, 1, 'a'\n.fill 20000000\n";

static void test_too_much_dwarf(void **state)
{
	char folder[] = "/tmp/test_symbol_index.XXXXXX", path[64], command[256];
	struct buf bytes = BUF_EMPTY, name = BUF_EMPTY;
	struct symbol_files files = { 0 };
	struct code_answer a;
	struct symbol_index *x;
	FILE *f;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/much", folder);
	snprintf(command, sizeof(command), "gcc -shared -nostdlib -x assembler -o %s -", path);
	f = popen(command, "w");
	assert_non_null(f);
	fputs(much_dwarf, f);
	assert_int_equal(pclose(f), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	assert_int_equal(symbol_index_build(&files, "abcdabcd", &bytes), 0);
	assert_int_equal(symbol_index_open(bytes.data, bytes.len, &x), 0);
	assert_true(symbol_index_head(x)->is_broken);
	assert_int_equal(symbol_index_head(x)->best, CODE_SOURCE_SYMTAB);
	assert_string_equal(symbol_index_head(x)->build_id, "abcdabcd");
	assert_int_equal(symbol_index_sizes(x).functions, 1);
	assert_int_equal(symbol_index_find(x, 0x1000 + 200000, &a), 0);
	assert_int_equal(symbol_index_name(x, a.frames[0].function, &name), 0);
	assert_string_equal(buf_text(&name), "in_symtab");
	symbol_index_close(x);
	symbol_image_unmap(&files.program);
	buf_fini(&bytes);
	buf_fini(&name);
	close(fd);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	cmocka_unit_test(test_much),	       cmocka_unit_test(test_head),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_too_much_dwarf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
