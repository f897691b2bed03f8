/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows from instructions alone. Against hand-made code whose frames are known, and against the call frame information that
 * compilers and assembler authors wrote for the same code: of libraries (their tables are hidden from the builder, and they
 * have no symbols but the exported ones), of this program, and of sources compiled at several levels.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/code/flow.h"
#include "agent/rows/code/state.h"
#include "agent/rows/row_builder.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sanitizer.h"
#include "tests/unit/agent/known_frames.h"
#include "tests/unit/descriptors.h"

/* --- functions of known frames --- */

static const char *const reg_names[USER_REGS] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
						  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15", "rip" };

static void print_saved(struct buf *out, const char *name, int32_t place)
{
	if (row_is_at_fp(place))
		buf_printf(out, ",%s=fp%+d", name, place - ROW_AT_FP);
	else
		buf_printf(out, ",%s=%d", name, place);
}

/* "OFFSET:CFA,bp=PLACE" for each row, "-" where there is none between two, "." behind the last. */
static void print_rows(struct buf *out, const struct row *rows, size_t count)
{
	uint64_t at = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *r = &rows[i];

		if (r->start != at)
			buf_printf(out, "%llx:- ", (unsigned long long)at);
		buf_printf(out, "%llx:", (unsigned long long)r->start);
		if (r->cfa == ROW_CFA_ROOT)
			buf_printf(out, "root");
		else if (r->cfa == ROW_CFA_DEREF)
			buf_printf(out, "*(%s%+d)%+d", reg_names[r->cfa_reg], r->cfa_off, r->cfa_off2);
		else
			buf_printf(out, "%s%+d", reg_names[r->cfa_reg], r->cfa_off);
		for (int s = 0; s < SAVED_RA; s++)
			if (r->cfa != ROW_CFA_ROOT && r->saved[s] != ROW_SAME)
				print_saved(out, reg_names[row_saved_regs[s]], r->saved[s]);
		if (row_is_in_reg(r->saved[SAVED_RA]))
			buf_printf(out, ",ra=%s", reg_names[r->saved[SAVED_RA] - ROW_IN_REG]);
		buf_printf(out, " ");
		at = r->end;
	}
	buf_printf(out, "%llx.", (unsigned long long)at);
}

static void test_functions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		struct code_function f = { 0, functions[i].len, functions[i].code, true, false };
		struct buf text = BUF_EMPTY;
		AUTO_FREE struct row *rows = NULL;
		size_t count;

		assert_int_equal(code_flow_rows(&f, &rows, &count, NULL), 0);
		print_rows(&text, rows, count);
		if (strlen(functions[i].rows) != text.len || memcmp(functions[i].rows, text.data, text.len))
			fail_msg("%s:\n  %.*s instead of\n  %s", functions[i].name, (int)text.len, (char *)text.data,
				 functions[i].rows);
		buf_fini(&text);
	}
}

/* Too long to follow: what its first two instructions say, but not where a return has taken the frame away. */
static void test_long_function(void **state)
{
	static uint8_t code[CODE_FLOW_MAX_BYTES + 16];
	struct code_function f = { 0x1000, 0x1000 + sizeof(code), code, true, false };
	AUTO_FREE struct row *rows = NULL, *none = NULL;
	size_t count;

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x55\x48\x89\xe5", 4);
	memcpy(code + 0x8000, "\x5d\xc3", 2);
	assert_int_equal(code_flow_rows(&f, &rows, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_true(rows[0].start == 0x1004 && rows[0].end == 0x9001 && rows[1].start == 0x9002 && rows[1].end == f.end);
	assert_true(rows[0].cfa_reg == REG_FP && rows[0].cfa_off == 16 && rows[0].saved[SAVED_FP] == -16);
	code[0] = 0x90;
	assert_int_equal(code_flow_rows(&f, &none, &count, NULL), 0);
	assert_int_equal(count, 0);
}

static void test_calls(void **state)
{
	static const struct {
		const uint8_t *code;
		size_t len;
		bool is_call;
	} cases[] = {
		{ CODE("\xe8\x00\x00\x00\x00"), true },
		{ CODE("\xff\xd0"), true },
		{ CODE("\x41\xff\xd7"), true },
		{ CODE("\xff\x15\x00\x00\x00\x00"), true },
		{ CODE("\xff\x54\x24\x08"), true },
		{ CODE("\x3e\x41\xff\x94\x24\x00\x01\x00\x00"), true },
		{ CODE("\xff\xe0"), false },
		{ CODE("\xe9\x00\x00\x00\x00"), false },
		{ CODE("\x90\xff\xd0"), false },
		{ CODE("\xc3\x90"), false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(code_is_call(cases[i].code, cases[i].len), cases[i].is_call);
}

/* What may be an address in code that is not relocated; the nop that looks like mov edi, 0x401f0f is none. */
static void test_references(void **state)
{
	static const uint8_t mov[] = { 0xbf, 0x10, 0x1f, 0x40, 0x00, 0x90, 0x90, 0x90 };
	static const uint8_t nop[] = { 0xbf, 0x0f, 0x1f, 0x40, 0x00, 0x90, 0x90, 0x90 };
	uint64_t target = 0;

	(void)state;
	assert_int_equal(code_next_reference(mov, 0x401000, 0, 1, &target), 0);
	assert_int_equal(target, 0x401f10);
	assert_int_equal(code_next_reference(mov, 0x1000, 0, 1, &target), 1);
	assert_int_equal(code_next_reference(nop, 0x401000, 0, 1, &target), 1);
}

/* --- against tables --- */

struct view {
	uint8_t *data; /* a private copy-on-write mapping */
	struct row_image image;
	const struct row_builder *builder;
	void *state;
	uint64_t start, end; /* of its code */
};

/* Hides the search table of .eh_frame, whose ranges the code's builder would know to be covered, and finds the code. */
static void hide_tables(struct view *v)
{
	Elf64_Ehdr eh;

	memcpy(&eh, v->data, sizeof(eh));
	for (int i = 0; i < eh.e_phnum; i++) {
		uint8_t *at = v->data + eh.e_phoff + (size_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		memcpy(&ph, at, sizeof(ph));
		if (ph.p_type == PT_GNU_EH_FRAME)
			memset(at, 0, sizeof(ph.p_type));
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X) {
			v->start = ph.p_vaddr;
			v->end = ph.p_vaddr + ph.p_filesz;
		}
	}
}

static int open_view(const char *path, const struct row_builder *builder, struct view *v)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	*v = (struct view){ .builder = builder };
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	v->image.len = (size_t)st.st_size;
	v->data = mmap(NULL, v->image.len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(v->data, MAP_FAILED);
	if (builder == &rows_code)
		hide_tables(v);
	v->image.data = v->data;
	v->image.elf = elf_memory((char *)v->data, v->image.len);
	assert_int_equal(builder->open(&v->image, &v->state), 0);
	return 0;
}

static void close_view(struct view *v)
{
	v->builder->close(v->state);
	elf_end(v->image.elf);
	munmap(v->data, v->image.len);
}

struct score {
	uint64_t covered, found, wrong, other; /* bytes of code; other: said in terms of another register */
	uint64_t ns, blocks;
};

/* Registers are where @ours says, or back in place already although the table still names a slot now below the stack. */
static bool same_rbp(const struct row *ours, const struct row *truth)
{
	return ours->saved[SAVED_FP] == truth->saved[SAVED_FP] ||
	       (ours->saved[SAVED_FP] == ROW_SAME && truth->cfa_reg == REG_SP &&
		truth->saved[SAVED_FP] + truth->cfa_off < 0);
}

static void compare(const struct row *ours, const struct row *truth, struct score *score)
{
	uint64_t start = ours->start > truth->start ? ours->start : truth->start;
	uint64_t bytes = (ours->end < truth->end ? ours->end : truth->end) - start;

	if (truth->cfa != ROW_CFA_REG && truth->cfa != ROW_CFA_DEREF)
		return;
	score->found += bytes;
	if (ours->cfa != truth->cfa || ours->cfa_reg != truth->cfa_reg)
		score->other += bytes;
	else if (ours->cfa_off != truth->cfa_off || ours->cfa_off2 != truth->cfa_off2 || !same_rbp(ours, truth))
		score->wrong += bytes;
}

static struct score score_views(struct view *code, struct view *tables)
{
	struct row ours[256], truth[256];
	struct score score = { 0 };
	size_t n, m;

	for (uint64_t at = code->start & ~255ull; at < code->end; at += 256) {
		uint64_t before = clock_mono_ns();

		assert_int_equal(rows_code.build(code->state, at, at + 256, ours, 256, &n), 0);
		score.ns += clock_mono_ns() - before;
		score.blocks++;
		assert_int_equal(rows_eh_frame.build(tables->state, at, at + 256, truth, 256, &m), 0);
		for (size_t j = 0; j < m; j++)
			score.covered += truth[j].end - truth[j].start;
		for (size_t i = 0; i < n; i++) {
			assert_true(ours[i].is_guess && ours[i].start >= (i ? ours[i - 1].end : at));
			assert_true(ours[i].end > ours[i].start && ours[i].end <= at + 256);
			for (size_t j = 0; j < m; j++)
				if (ours[i].start < truth[j].end && truth[j].start < ours[i].end)
					compare(&ours[i], &truth[j], &score);
		}
	}
	return score;
}

/* At least @percent of the code that tables cover has a row; at most @wrong of 10,000 of its bytes have a different one, and
 * @other of 10,000 one that says the same by another register. */
static void check_file(const char *path, uint64_t percent, uint64_t wrong, uint64_t other)
{
	struct score s;
	struct view code, tables;

	if (open_view(path, &rows_code, &code)) {
		printf("%s: left out, not installed\n", path);
		return;
	}
	assert_int_equal(open_view(path, &rows_eh_frame, &tables), 0);
	s = score_views(&code, &tables);
	printf("%s: rows for %.1f %% of %llu KB, %.3f %% differ, %.2f %% by another register, %llu ns a block\n", path,
	       100.0 * (double)s.found / (double)s.covered, (unsigned long long)s.covered / 1024,
	       100.0 * (double)s.wrong / (double)s.found, 100.0 * (double)s.other / (double)s.found,
	       (unsigned long long)(s.ns / s.blocks));
	assert_true(s.covered > 4096 && s.found * 100 >= s.covered * percent);
	assert_true(s.wrong * 10000 <= s.found * wrong);
	assert_true(s.other * 10000 <= s.found * other);
	close_view(&code);
	close_view(&tables);
}

/* Where a function can begin, if something refers to it. */
static void test_starts(void **state)
{
	static const struct {
		const char *before;
		bool may;
	} starts[] = {
		{ "\x90\x90\x90\x90\xc3", true }, { "\x90\x90\x90\xeb\x10", true },  { "\xe9\x10\x20\x30\x00", true },
		{ "\xe8\x10\x20\x30\x00", true }, /* calls, which may never return */
		{ "\xe8\x10\x20\x30\xff", true }, { "\x48\x10\x20\x30\xff", false }, { "\x90\x90\x48\x89\xe5", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		assert_int_equal(code_may_follow((const uint8_t *)starts[i].before, 5), starts[i].may);
	assert_true(code_may_follow((const uint8_t *)starts[6].before, 0));
}

static void test_libraries(void **state)
{
	(void)state;
	/* Without symbols of their own, what follows a call that never returns is taken for its function's. */
	check_file("/lib/x86_64-linux-gnu/libc.so.6", 76, 40, 200);
	/* Its own tables forget here and there that rbp was pushed, and much of it is written by hand: OpenSSL 3.0 tells 0.9
	 * % by another register, 3.5 tells 2.3 %. */
	check_file("/lib/x86_64-linux-gnu/libcrypto.so.3", 75, 100, 250);
}

static void test_this_program(void **state)
{
	(void)state;
	if (HAS_SANITIZER) /* parts of which are written by hand, and may be linked in */
		skip();
	check_file("/proc/self/exe", 85, 1, 200);
}

/* Asked from any byte of a block on it says what it says of the whole. */
static void test_parts_of_blocks(void **state)
{
	enum { LONGEST_INSN = 15 }; /* the end of a block may look like padding when it is all that is asked for */
	struct view v;

	(void)state;
	assert_int_equal(open_view("/proc/self/exe", &rows_code, &v), 0);
	for (uint64_t at = v.start & ~255ull; at < v.end; at += 256) {
		struct row whole[256], rows[256];
		size_t n, count;

		assert_int_equal(rows_code.build(v.state, at, at + 256, whole, 256, &n), 0);
		for (size_t i = 0; i < n; i++) {
			for (uint64_t addr = whole[i].start; addr < whole[i].end && addr < at + 256 - LONGEST_INSN; addr++) {
				assert_int_equal(rows_code.build(v.state, addr, at + 256, rows, 256, &count), 0);
				assert_int_equal(count, n - i);
				assert_true(rows[0].start == addr && rows[0].end == whole[i].end);
				/* not the others: what a part of a function placed elsewhere saves is learned on the way */
				assert_true(rows[0].cfa == whole[i].cfa && rows[0].cfa_reg == whole[i].cfa_reg &&
					    rows[0].cfa_off == whole[i].cfa_off && rows[0].cfa_off2 == whole[i].cfa_off2 &&
					    rows[0].saved[SAVED_FP] == whole[i].saved[SAVED_FP] &&
					    rows[0].saved[SAVED_RA] == whole[i].saved[SAVED_RA]);
			}
		}
	}
	close_view(&v);
}

/* What was searched for goes when nothing needed it between two calls, and then it is found again. */
static void test_forgotten(void **state)
{
	struct view v;

	(void)state;
	assert_int_equal(open_view("/proc/self/exe", &rows_code, &v), 0);
	for (uint64_t at = v.start & ~255ull; at < v.end; at += 16 * 256) {
		struct row before[256], rows[256];
		size_t n, count;

		assert_int_equal(rows_code.build(v.state, at, at + 256, before, 256, &n), 0);
		rows_code.rest(v.state);
		rows_code.rest(v.state);
		assert_int_equal(rows_code.build(v.state, at, at + 256, rows, 256, &count), 0);
		assert_int_equal(count, n);
		for (size_t i = 0; i < n; i++)
			assert_true(rows[i].start == before[i].start && rows[i].end == before[i].end &&
				    rows[i].cfa == before[i].cfa && rows[i].cfa_off == before[i].cfa_off);
	}
	close_view(&v);
}

static int take_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr; /* of the program itself, which comes first */
	return 1;
}

__attribute__((noinline)) static uint64_t return_address(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static void test_return_address(void **state)
{
	uint64_t addr = return_address(), bias;
	struct view code;

	(void)state;
	dl_iterate_phdr(take_bias, &bias);
	assert_int_equal(open_view("/proc/self/exe", &rows_code, &code), 0);
	assert_true(rows_code_has_call_before(&code.image, addr - bias));
	assert_false(rows_code_has_call_before(&code.image, addr - bias - 1));
	assert_false(rows_code_has_call_before(&code.image, 0));
	assert_false(rows_code_has_call_before(&code.image, UINT64_MAX));
	close_view(&code);
}

/* As musl has it: no table, and the nop is there to be found by a return address less 1. */
void trampoline(void);
__asm__(".text\n"
	"\tnop\n"
	".type trampoline, @function\n"
	"trampoline:\n"
	"\tmov $15, %rax\n"
	"\tsyscall\n"
	".size trampoline, . - trampoline\n"
	"\tud2\n");

static void test_trampoline(void **state)
{
	uint64_t addr, bias;
	struct row rows[32];
	struct view code;
	size_t count;

	(void)state;
	dl_iterate_phdr(take_bias, &bias);
	addr = (uint64_t)(uintptr_t)trampoline - bias;
	assert_int_equal(open_view("/proc/self/exe", &rows_sigreturn, &code), 0);
	assert_true(rows_sigreturn_is_at(&code.image, addr));
	assert_false(rows_sigreturn_is_at(&code.image, addr + 7));
	for (uint64_t at = addr - 1; at < addr + 9; at++) { /* asked for one byte, as for one frame */
		assert_int_equal(rows_sigreturn.build(code.state, at, at + 1, rows, ARRAY_LEN(rows), &count), 0);
		assert_int_equal(count, 1);
		assert_true(rows[0].cfa == ROW_CFA_SIGNAL && rows[0].is_signal_frame && !rows[0].is_guess);
		assert_true(rows[0].start == at && rows[0].end == at + 1);
	}
	assert_int_equal(rows_sigreturn.build(code.state, addr - 1, addr + 16, rows, ARRAY_LEN(rows), &count), 0);
	assert_true(count && rows[0].start == addr - 1 && rows[0].end == addr + 9 && rows[0].cfa == ROW_CFA_SIGNAL);
	assert_int_equal(rows_sigreturn.build(code.state, addr - 1, addr + 9, rows, 0, &count), -ENOSPC);
	close_view(&code);
}

static void test_compiled(void **state)
{
	static const char *const flags[] = { "-O0", "-O2", "-O3 -fno-omit-frame-pointer", "-Os -fcf-protection" };
	char dir[] = "/tmp/hearth-code-XXXXXX", path[64], command[256];

	(void)state;
	if (system("command -v cc >/dev/null"))
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/code.so", dir);
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		snprintf(command, sizeof(command),
			 "cc -std=gnu17 -D_GNU_SOURCE -I. -shared -fPIC %s -o %s agent/rows/code/starts.c "
			 "agent/rows/code/flow.c",
			 flags[i], path);
		assert_int_equal(system(command), 0);
		check_file(path, 90, 0, 200);
	}
	unlink(path);
	rmdir(dir);
}

/* A library of the assembly @text, as the builder sees it. False where there is no compiler. */
static bool open_assembly(const char *text, const char *options, struct view *v)
{
	char dir[] = "/tmp/hearth-code-XXXXXX", path[64], source[64], command[256];
	FILE *f;

	if (system("command -v cc >/dev/null"))
		return false;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/code.so", dir);
	snprintf(source, sizeof(source), "%s/code.s", dir);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	snprintf(command, sizeof(command), "cc -nostdlib -shared %s -o %s %s", options, path, source);
	assert_int_equal(system(command), 0);
	assert_int_equal(open_view(path, &rows_code, v), 0);
	unlink(path);
	unlink(source);
	rmdir(dir);
	return true;
}

/* Between two functions with symbols, and behind one whose size is not known, what linkers put into static programs: jumps
 * through memory, with and without endbr64. */
static void test_stubs(void **state)
{
	static const char text[] = ".text\n.globl f, g\n.type f, @function\n.type g, @function\n.balign 4096\n"
				   "f: ret\n.size f, 1\n.balign 8, 0xcc\n"
				   "jmp *v(%rip)\nxchg %ax, %ax\n"
				   "endbr64\njmp *v(%rip)\n.balign 8, 0x90\n"
				   "mov %rax, %rbx\njmp *v(%rip)\n.balign 8, 0xcc\n"
				   "g: ret\n.balign 8, 0xcc\njmp *v(%rip)\n"
				   ".data\n.hidden v\nv: .quad 0\n.section .note.GNU-stack\n";
	static const struct {
		uint64_t start, end;
	} wanted[] = { { 0, 1 }, { 8, 14 }, { 16, 26 }, { 48, 49 }, { 56, 62 } };
	struct row rows[64];
	struct view code;
	size_t count;

	(void)state;
	if (!open_assembly(text, "", &code))
		skip();
	assert_int_equal(rows_code.build(code.state, code.start, code.start + 64, rows, ARRAY_LEN(rows), &count), 0);
	assert_int_equal(count, ARRAY_LEN(wanted));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].start, code.start + wanted[i].start);
		assert_int_equal(rows[i].end, code.start + wanted[i].end);
		assert_true(rows[i].cfa == ROW_CFA_REG && rows[i].cfa_reg == REG_SP && rows[i].cfa_off == 8);
		assert_true(rows[i].is_guess && rows[i].saved[SAVED_RA] == -8 && rows[i].saved[SAVED_FP] == ROW_SAME);
	}
	close_view(&code);
}

/* Behind a function whose size is not known, one that nothing leads to, as most of V8's in a file without symbols. */
static void test_not_referred_to(void **state)
{
	static const char text[] = ".text\n.globl f, g\n.type f, @function\n.type g, @function\n.balign 4096\n"
				   "f: ret\n.balign 32, 0xcc\n"
				   "push %rbp\nmov %rsp, %rbp\ncall *%rax\nleave\nret\n.balign 64, 0xcc\n"
				   "g: ret\n.size g, 1\n.section .note.GNU-stack\n";
	static const struct {
		uint64_t start, end;
		int reg, off;
	} wanted[] = { { 0, 1, REG_SP, 8 },    { 32, 33, REG_SP, 8 }, { 33, 36, REG_SP, 16 },
		       { 36, 39, REG_FP, 16 }, { 39, 40, REG_SP, 8 }, { 64, 65, REG_SP, 8 } };
	struct row rows[64];
	struct view code;
	size_t count;

	(void)state;
	if (!open_assembly(text, "", &code))
		skip();
	assert_int_equal(rows_code.build(code.state, code.start, code.start + 96, rows, ARRAY_LEN(rows), &count), 0);
	assert_int_equal(count, ARRAY_LEN(wanted));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rows[i].start, code.start + wanted[i].start);
		assert_int_equal(rows[i].end, code.start + wanted[i].end);
		assert_true(rows[i].cfa == ROW_CFA_REG && rows[i].cfa_reg == wanted[i].reg && rows[i].is_guess);
		assert_int_equal(rows[i].cfa_off, wanted[i].off);
	}
	close_view(&code);
}

/* What a compiler moved out of a function: entered from two places in it, and from another function with another frame; with
 * its symbol, and stripped, where it looks like the end of the function before it. */
static void test_moved_parts(void **state)
{
	static const char text[] = ".text\n.globl e, f\n.type e, @function\n.type f, @function\n.balign 4096\n"
				   "e: ret\n.size e, 1\n"
				   ".type f.cold, @function\n"
				   "f.cold: call e\njmp back\n" /* 1 */
				   "more: pop %rbx\nret\n"	/* b */
				   "torn: call e\nhlt\n"	/* d: two states meet */
				   ".size f.cold, . - f.cold\n.balign 256, 0xcc\n"
				   "f: push %rbx\ntest %edi, %edi\njne f.cold\njs more\nje torn\n"
				   "back: pop %rbx\njle torn\nret\n.size f, . - f\n.section .note.GNU-stack\n";
	static const char *const options[] = { "-Wl,-Bsymbolic", "-Wl,-Bsymbolic -s" };
	struct row rows[64];
	struct view code;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		struct buf out = BUF_EMPTY;
		size_t count;

		if (!open_assembly(text, options[i], &code))
			skip();
		assert_int_equal(rows_code.build(code.state, code.start, code.start + 64, rows, ARRAY_LEN(rows), &count), 0);
		for (size_t r = 0; r < count; r++) {
			rows[r].start -= code.start;
			rows[r].end -= code.start;
		}
		print_rows(&out, rows, count);
		buf_printf(&out, "%c", 0);
		assert_string_equal((char *)out.data, "0:rsp+8 1:rsp+16,rbx=-16 c:rsp+8 d.");
		buf_fini(&out);
		close_view(&code);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),      cmocka_unit_test(test_long_function),
		cmocka_unit_test(test_calls),	       cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_this_program),   cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_return_address), cmocka_unit_test(test_parts_of_blocks),
		cmocka_unit_test(test_stubs),	       cmocka_unit_test(test_not_referred_to),
		cmocka_unit_test(test_forgotten),      cmocka_unit_test(test_trampoline),
		cmocka_unit_test(test_starts),	       cmocka_unit_test(test_moved_parts),
		cmocka_unit_test(test_references),
	};

	if (elf_version(EV_CURRENT) == EV_NONE)
		return 1;
	return run_group_of_descriptors(tests, NULL, NULL);
}
