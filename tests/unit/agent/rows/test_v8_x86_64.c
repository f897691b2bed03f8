/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of V8's interpreter, in a file made of assembly with the names that V8's builtins have: which functions are the
 * interpreter's, from where on the trampoline's frame tells its function, and in which frame a handler runs. In a stripped
 * file V8's own tables tell which they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/code/starts.h"
#include "agent/rows/row_builder.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/sources/symbol_image.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/made_v8.h"

#define FUNCTION(name, code) ".type " name ", @function\n" name ":\n" code ".size " name ", . - " name "\n"

/* A builtin that is none of the interpreter's: 3 bytes. */
#define BEFORE FUNCTION("Builtins_ArrayPush", "push %rbp\npop %rbp\nret\n")
/* Offsets: 0 push; 1 mov; 4, 5, 6, 7, 9 push; 11 call, with all words in place; 13 leave; 14 ret; 15. */
#define TRAMPOLINE                                                                                                \
	FUNCTION("Builtins_InterpreterEntryTrampoline",                                                           \
		 "push %rbp\nmov %rsp, %rbp\npush %rsi\npush %rdi\npush %rax\npush %r12\npush %r14\ncall *%rax\n" \
		 "leave\nret\n")
/* 0 nop; 1 jmp: 3 bytes. */
#define WIDE FUNCTION("Builtins_WideHandler", "nop\njmp *%rcx\n")
/* 0 push; 1 mov; 4 call; 6 pop; 7 jmp; 9. */
#define FRAMED FUNCTION("Builtins_AddHandler", "push %rbp\nmov %rsp, %rbp\ncall *%rax\npop %rbp\njmp *%rcx\n")
/* 0 pop; 2 push; 3 mov; 6, 7 push; 8 cmp; 12 jb; 14 push; 16 ret. GUARD: push; 19 push; 20 mov; 23 push; 25 call; 27 mov; 30
 * pop; 31 ret; 32. */
#define PROLOGUE                                                                                                     \
	FUNCTION("Builtins_BaselineOutOfLinePrologue",                                                               \
		 "pop %r15\npush %rbp\nmov %rsp, %rbp\npush %rsi\npush %rdi\ncmp -0x60(%r13), %r10\njb 1f\n"         \
		 "push %r15\nret\n1: push %r15\npush %rbp\nmov %rsp, %rbp\npush $0x2c\ncall *%rax\nmov %rbp, %rsp\n" \
		 "pop %rbp\nret\n")
/* Its name is none of V8's. */
#define FOREIGN FUNCTION("helper", "push %rbp\npop %rbp\nret\n")

enum {
	TRAMPOLINE_BYTES = 15,
	WIDE_BYTES = 3,
	FRAMED_BYTES = 9,
	FOREIGN_BYTES = 3,
	BEFORE_BYTES = 3,
	PROLOGUE_BYTES = 32,
	GUARD = 17,
	BYTECODE = 1,
	BASELINE = 2
};

struct file {
	struct symbol_image image;
	Elf *elf;
	struct row_image rows;
	uint64_t code; /* where the text begins */
};

/* Makes a library of @assembly. False: no gcc is here. */
static bool open_file(struct file *f, const char *assembly, const char *options)
{
	char path[] = "/tmp/rows_v8_XXXXXX", command[256];
	AUTO_CLOSE int fd = mkstemp(path);
	FILE *gcc;

	if (system("gcc --version >/dev/null 2>&1") != 0) {
		unlink(path);
		return false;
	}
	snprintf(command, sizeof(command), "gcc -nostdlib -static -Wl,-Ttext=0x401000 %s -o %s -x assembler -", options,
		 path);
	gcc = popen(command, "w");
	assert_non_null(gcc);
	fprintf(gcc, ".globl _start\n.text\n_start:\n%s", assembly);
	assert_int_equal(pclose(gcc), 0);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	memset(f, 0, sizeof(*f));
	assert_int_equal(symbol_image_map(fd, &f->image), 0);
	elf_version(EV_CURRENT);
	f->elf = elf_memory((char *)(uintptr_t)f->image.data, f->image.len_bytes);
	assert_non_null(f->elf);
	f->rows = (struct row_image){ .data = f->image.data, .len = f->image.len_bytes, .elf = f->elf };
	f->code = 0x401000;
	return true;
}

static void close_file(struct file *f)
{
	elf_end(f->elf);
	symbol_image_unmap(&f->image);
}

enum { MOST = 32 };

struct rows {
	struct row list[MOST];
	size_t count;
};

/* The rows of @bytes from @at on, offsets in the text. */
static void build(struct file *f, uint64_t at, uint64_t bytes, struct rows *ret)
{
	void *state = NULL;

	assert_int_equal(rows_v8.open(&f->rows, &state), 0);
	assert_int_equal(rows_v8.build(state, f->code + at, f->code + at + bytes, ret->list, MOST, &ret->count), 0);
	rows_v8.close(state);
}

/* The row of the byte at @at, or NULL. */
static const struct row *row_at(const struct file *f, const struct rows *rows, uint64_t at)
{
	for (size_t i = 0; i < rows->count; i++)
		if (f->code + at >= rows->list[i].start && f->code + at < rows->list[i].end)
			return &rows->list[i];
	return NULL;
}

static void check(const struct file *f, const struct rows *rows, uint64_t at, uint8_t reg, int32_t off, uint8_t capture)
{
	const struct row *row = row_at(f, rows, at);

	assert_non_null(row);
	if (row->cfa != ROW_CFA_REG || row->cfa_reg != reg || row->cfa_off != off || row->capture != capture)
		fail_msg("at %u: %u, register %u, offset %d, capture %u", (unsigned)at, row->cfa, row->cfa_reg, row->cfa_off,
			 row->capture);
	assert_int_equal(row->saved[SAVED_RA], -8);
}

/* Before the five words stand behind rbp nobody can tell by them which function it is. */
static void test_trampoline(void **state)
{
	struct rows rows;
	struct file f;

	(void)state;
	if (!open_file(&f, TRAMPOLINE WIDE, ""))
		skip();
	build(&f, 0, TRAMPOLINE_BYTES, &rows);
	check(&f, &rows, 0, REG_SP, 8, 0);
	check(&f, &rows, 1, REG_SP, 16, 0);
	check(&f, &rows, 4, REG_FP, 16, 0);
	check(&f, &rows, 9, REG_FP, 16, 0);
	check(&f, &rows, 10, REG_FP, 16, 0);
	check(&f, &rows, 11, REG_FP, 16, BYTECODE);
	check(&f, &rows, 13, REG_FP, 16, BYTECODE);
	check(&f, &rows, 14, REG_SP, 8, 0);
	for (size_t i = 0; i + 1 < rows.count; i++)
		assert_int_equal(rows.list[i].end, rows.list[i + 1].start);
	assert_int_equal(rows.list[0].start, f.code);
	assert_int_equal(rows.list[rows.count - 1].end, f.code + TRAMPOLINE_BYTES);
	close_file(&f);
}

/* A handler without a frame runs in the one that rbp leads to. */
static void test_handler(void **state)
{
	struct rows rows;
	struct file f;

	(void)state;
	if (!open_file(&f, WIDE, ""))
		skip();
	build(&f, 0, WIDE_BYTES, &rows);
	assert_int_equal(rows.count, 1);
	check(&f, &rows, 0, REG_FP, 16, BYTECODE);
	check(&f, &rows, 2, REG_FP, 16, BYTECODE);
	assert_int_equal(rows.list[0].saved[SAVED_FP], -16);
	assert_int_equal(rows.list[0].start, f.code);
	assert_int_equal(rows.list[0].end, f.code + WIDE_BYTES);
	close_file(&f);
}

/* One that makes a frame is in it until it takes that away. */
static void test_handler_with_a_frame(void **state)
{
	struct rows rows;
	struct file f;

	(void)state;
	if (!open_file(&f, WIDE FRAMED, ""))
		skip();
	build(&f, WIDE_BYTES, FRAMED_BYTES, &rows);
	check(&f, &rows, WIDE_BYTES, REG_FP, 16, BYTECODE);
	check(&f, &rows, WIDE_BYTES + 1, REG_SP, 16, 0);
	check(&f, &rows, WIDE_BYTES + 4, REG_FP, 16, 0);
	check(&f, &rows, WIDE_BYTES + 6, REG_FP, 16, 0);
	check(&f, &rows, WIDE_BYTES + 7, REG_FP, 16, BYTECODE);
	close_file(&f);
}

/* The row at @at leads to the caller of the frame whose frame pointer stands at @reg + @off. */
static void check_passes(const struct file *f, const struct rows *rows, uint64_t at, uint8_t reg, int32_t off)
{
	const struct row *row = row_at(f, rows, at);

	assert_non_null(row);
	assert_int_equal(row->cfa, ROW_CFA_DEREF);
	assert_int_equal(row->cfa_reg, reg);
	assert_int_equal(row->cfa_off, off);
	assert_int_equal(row->cfa_off2, 16);
	assert_int_equal(row->saved[SAVED_RA], -8);
	assert_int_equal(row->saved[SAVED_FP], -16);
	assert_int_equal(row->capture, 0);
}

/* The prologue of baseline code stands for the function once its frame does; a frame that it has made in front of that for a
 * call of C is passed by. */
static void test_prologue(void **state)
{
	struct rows rows;
	struct file f;

	(void)state;
	if (!open_file(&f, PROLOGUE WIDE, ""))
		skip();
	build(&f, 0, PROLOGUE_BYTES, &rows);
	check(&f, &rows, 0, REG_SP, 8, 0);
	check(&f, &rows, 16, REG_FP, 16, BASELINE);
	check(&f, &rows, GUARD + 2, REG_FP, 16, BASELINE);
	check_passes(&f, &rows, GUARD + 3, REG_SP, 0);
	check_passes(&f, &rows, GUARD + 6, REG_FP, 0);
	check_passes(&f, &rows, GUARD + 9, REG_FP, 0);
	check_passes(&f, &rows, GUARD + 10, REG_FP, 0);
	check(&f, &rows, GUARD + 14, REG_FP, 16, BASELINE);
	close_file(&f);
}

/* Builtins that stand before the first handler are others', and so is what has another name. */
static void test_whose_functions(void **state)
{
	struct rows rows;
	struct file f;

	(void)state;
	if (!open_file(&f, BEFORE TRAMPOLINE WIDE FOREIGN FRAMED, ""))
		skip();
	build(&f, 0, BEFORE_BYTES + TRAMPOLINE_BYTES + WIDE_BYTES + FOREIGN_BYTES + FRAMED_BYTES, &rows);
	assert_null(row_at(&f, &rows, 0));
	assert_null(row_at(&f, &rows, BEFORE_BYTES - 1));
	assert_non_null(row_at(&f, &rows, BEFORE_BYTES));
	assert_non_null(row_at(&f, &rows, BEFORE_BYTES + TRAMPOLINE_BYTES + WIDE_BYTES - 1));
	assert_null(row_at(&f, &rows, BEFORE_BYTES + TRAMPOLINE_BYTES + WIDE_BYTES));
	assert_null(row_at(&f, &rows, BEFORE_BYTES + TRAMPOLINE_BYTES + WIDE_BYTES + FOREIGN_BYTES - 1));
	assert_non_null(row_at(&f, &rows, BEFORE_BYTES + TRAMPOLINE_BYTES + WIDE_BYTES + FOREIGN_BYTES));
	close_file(&f);
}

/* Rows are cut at the borders of what is asked; too little room for them is told. */
static void test_borders(void **state)
{
	struct row row;
	struct rows rows;
	struct file f;
	void *v8 = NULL;
	size_t count;

	(void)state;
	if (!open_file(&f, TRAMPOLINE WIDE FRAMED, ""))
		skip();
	build(&f, 12, TRAMPOLINE_BYTES - 12 + 1, &rows);
	assert_int_equal(rows.list[0].start, f.code + 12);
	assert_int_equal(rows.list[rows.count - 1].end, f.code + TRAMPOLINE_BYTES + 1);
	build(&f, 5, 1, &rows);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.list[0].start, f.code + 5);
	assert_int_equal(rows.list[0].end, f.code + 6);
	build(&f, TRAMPOLINE_BYTES + WIDE_BYTES + FRAMED_BYTES, 50, &rows);
	assert_int_equal(rows.count, 0);
	assert_int_equal(rows_v8.open(&f.rows, &v8), 0);
	assert_int_equal(rows_v8.build(v8, f.code, f.code + TRAMPOLINE_BYTES, &row, 1, &count), -ENOSPC);
	assert_int_equal(rows_v8.build(v8, f.code + 11, f.code + 12, &row, 1, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(row.capture, BYTECODE);
	rows_v8.close(v8);
	close_file(&f);
}

/* A file whose symbols name no handler, and one that has no symbols. */
static void test_no_interpreter(void **state)
{
	static const struct {
		const char *assembly, *options;
	} files[] = { { TRAMPOLINE FRAMED, "" }, { TRAMPOLINE WIDE, "-s" }, { FOREIGN, "" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		void *v8 = NULL;
		struct file f;

		if (!open_file(&f, files[i].assembly, files[i].options))
			skip();
		assert_int_equal(rows_v8.open(&f.rows, &v8), -ENODATA);
		assert_null(v8);
		close_file(&f);
	}
}

/* A stripped file: its handlers are those that V8's tables name, and all of its functions begin and end as they say. */
static void test_stripped(void **state)
{
	static const struct made_v8 whole = { .stride = 12 }, spoilt = { .stride = 12, .names_less = 1 };
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	const uint64_t handler = MADE_V8_CODE + made_v8_start(MADE_V8_HANDLERS),
		       other = MADE_V8_CODE + made_v8_start(MADE_V8_HANDLERS - 1);
	struct code_starts *starts;
	struct code_function found;
	struct file f = { 0 };
	struct rows rows;
	void *v8 = NULL;

	(void)state;
	made_v8(&whole, &bytes);
	elf_version(EV_CURRENT);
	f.elf = elf_memory((char *)bytes.data, bytes.len);
	assert_non_null(f.elf);
	f.rows = (struct row_image){ .data = bytes.data, .len = bytes.len, .elf = f.elf, .functions = rows_v8.functions };
	build(&f, handler, made_v8_size(MADE_V8_HANDLERS), &rows);
	assert_int_equal(rows.count, 1);
	check(&f, &rows, handler, REG_FP, 16, BYTECODE);
	build(&f, other, made_v8_size(MADE_V8_HANDLERS - 1), &rows);
	assert_int_equal(rows.count, 0);
	build(&f, MADE_V8_CODE + made_v8_start(MADE_V8_ENTRY), made_v8_size(MADE_V8_ENTRY), &rows);
	assert_true(rows.count > 0);
	assert_int_equal(code_starts_new(&f.rows, &starts), 0);
	assert_int_equal(code_starts_find(starts, other + 2, other + 3, &found), 0);
	assert_int_equal(found.start, other);
	assert_int_equal(found.end, other + made_v8_size(MADE_V8_HANDLERS - 1));
	assert_true(found.is_all_its);
	code_starts_free(starts);
	elf_end(f.elf);

	made_v8(&spoilt, &bytes);
	f.elf = elf_memory((char *)bytes.data, bytes.len);
	assert_non_null(f.elf);
	f.rows = (struct row_image){ .data = bytes.data, .len = bytes.len, .elf = f.elf };
	assert_int_equal(rows_v8.open(&f.rows, &v8), -ENODATA);
	assert_null(v8);
	elf_end(f.elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trampoline),	     cmocka_unit_test(test_handler),
		cmocka_unit_test(test_handler_with_a_frame), cmocka_unit_test(test_prologue),
		cmocka_unit_test(test_whose_functions),	     cmocka_unit_test(test_borders),
		cmocka_unit_test(test_no_interpreter),	     cmocka_unit_test(test_stripped),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
