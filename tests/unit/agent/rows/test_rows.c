/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows against three witnesses that are not ours: readelf's interpreted tables (every row of the C library and of whatever
 * else is installed), glibc's backtrace() on this very process, and functions below whose call frame information is written
 * by hand.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#include "tests/unit/agent/rows_truth.h"
#include "tests/unit/descriptors.h"

static const char *libc_path(void)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)qsort, &info));
	return info.dli_fname;
}

static void test_against_readelf(void **state)
{
	static const char *const extra[] = { "/bin/bash", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					     "/usr/lib/x86_64-linux-gnu/libcrypto.so.3" };
	const char *all = getenv("ROWS_CHECK"); /* one more file by hand: ROWS_CHECK=/usr/bin/gdb .../test_rows */

	(void)state;
	assert_true(check_file(libc_path()) > 5000);
	for (size_t i = 0; i < ARRAY_LEN(extra); i++)
		if (access(extra[i], R_OK) == 0)
			assert_true(check_file(extra[i]) > 1000);
	if (all)
		print_message("%s: %zu rows checked\n", all, check_file(all));
}

/* --- functions with rules written by hand --- */

__asm__(".pushsection .text.hand,\"ax\",@progbits\n"
	".balign 256\n"
	"hand_start: .cfi_startproc\n"
	"	nop\n" /* rsp+8 */
	"	.cfi_def_cfa_offset 16\n	.cfi_offset rbp, -16\n"
	"	nop\n	nop\n"
	"	.cfi_remember_state\n	.cfi_restore_state\n" /* no change: the rows merge */
	"	ret\n"
	"	.cfi_endproc\n"
	"	.skip 12, 0x90\n"      /* padding: joined to the row before */
	"hand_deref: .cfi_startproc\n" /* CFA = *(rsp+32) + 8; rbx at *(rbp-40) */
	"	.cfi_escape 0x0f, 5, 0x77, 32, 0x06, 0x23, 8\n"
	"	.cfi_escape 0x10, 3, 2, 0x76, 0x58\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.skip 31, 0x90\n"     /* a real gap, which nothing leads to */
	"hand_expr: .cfi_startproc\n" /* CFA = *(rsp + 8 + r9 * 8) + 8, as in OpenSSL's RSAZ code */
	"	.cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"hand_vfork: .cfi_startproc\n" /* the return address is in rdi */
	"	.cfi_def_cfa_offset 0\n	.cfi_register rip, rdi\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"hand_root: .cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"hand_end: nop\n"
	"	.skip 32, 0x90\n"
	".popsection\n");
extern const char hand_start[], hand_deref[], hand_expr[], hand_vfork[], hand_root[], hand_end[];

struct module {
	uint64_t start, end; /* of its executable segment */
	uint64_t bias;
	char path[256];
	struct row_source *src;
};

struct modules {
	size_t count;
	struct module at[32];
};

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct modules *all = arg;
	bool is_vdso = info->dlpi_addr == 0 || strstr(info->dlpi_name, "vdso");

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !is_vdso; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		struct module *m = &all->at[all->count];
		int fd;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || all->count == ARRAY_LEN(all->at))
			continue;
		m->bias = info->dlpi_addr;
		m->start = info->dlpi_addr + ph->p_vaddr;
		m->end = m->start + ph->p_memsz;
		snprintf(m->path, sizeof(m->path), "%s", info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
		fd = open(m->path, O_RDONLY | O_CLOEXEC);
		if (row_source_new(fd, &m->src) == 0)
			all->count++;
		close(fd);
	}
	return 0;
}

static struct modules modules;

static int load_modules(void **state)
{
	(void)state;
	return dl_iterate_phdr(add_module, &modules);
}

static int free_modules(void **state)
{
	(void)state;
	for (size_t i = 0; i < modules.count; i++)
		row_source_free(modules.at[i].src);
	return 0;
}

static struct module *module_at(uint64_t pc)
{
	for (size_t i = 0; i < modules.count; i++)
		if (pc >= modules.at[i].start && pc < modules.at[i].end)
			return &modules.at[i];
	fail_msg("%llx lies in no module", (unsigned long long)pc);
	abort();
}

static void test_hand_written(void **state)
{
	struct module *m = module_at((uintptr_t)hand_start);
	uint64_t base, start;
	struct row rows[64];
	size_t count;

	(void)state;
	base = m->bias;
	start = (uintptr_t)hand_start - base;
	assert_int_equal(rows_build(m->src, start, (uintptr_t)hand_end - base, rows, ARRAY_LEN(rows), &count), 0);
	assert_int_equal(count, 6);
	assert_true(rows[0].start == start && rows[0].end == start + 1);
	assert_true(rows[0].cfa == ROW_CFA_REG && rows[0].cfa_reg == REG_SP && rows[0].cfa_off == 8);
	assert_int_equal(rows[0].saved[SAVED_FP], ROW_SAME);
	assert_true(rows[1].cfa_off == 16 && rows[1].saved[SAVED_FP] == -16 && rows[1].saved[SAVED_RA] == -8);
	assert_int_equal(rows[1].end, (uintptr_t)hand_deref - base);
	assert_true(rows[2].cfa == ROW_CFA_DEREF && rows[2].cfa_reg == REG_SP);
	assert_true(rows[2].cfa_off == 32 && rows[2].cfa_off2 == 8 && rows[2].saved[SAVED_RBX] == ROW_AT_FP - 40);
	assert_int_equal(rows[2].end, (uintptr_t)hand_deref - base + 1);
	assert_true(rows[3].start == (uintptr_t)hand_expr - base && rows[3].cfa == ROW_CFA_EXPR);
	assert_true(rows[4].start == (uintptr_t)hand_vfork - base && rows[4].saved[SAVED_RA] == ROW_OTHER);
	assert_true(rows[5].start == (uintptr_t)hand_root - base && rows[5].cfa == ROW_CFA_ROOT);
	for (size_t i = 0; i < count; i++)
		check_row_against_eval(m->src, &rows[i]);

	/* cut by the range: inside the padding, and a range too full for the caller's array */
	assert_int_equal(rows_build(m->src, start, start + 9, rows, 2, &count), 0);
	assert_true(count == 2 && rows[1].end == start + 9);
	assert_int_equal(rows_build(m->src, start, (uintptr_t)hand_end - base, rows, 2, &count), -ENOSPC);
	assert_int_equal(count, 2);
	assert_int_equal(rows_build(m->src, start, start, rows, 1, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(rows_build(m->src, UINT64_MAX - 64, UINT64_MAX, rows, 1, &count), 0);
	assert_int_equal(count, 0);
}

static int read_nothing(void *arg, uint64_t addr, void *dst, size_t len)
{
	(void)arg, (void)addr, (void)dst, (void)len;
	return -1;
}

static void test_eval_rules(void **state)
{
	struct module *m = module_at((uintptr_t)hand_start);
	struct row_regs in = made_up_regs(7), out;
	uint64_t cfa;
	struct row row;

	(void)state;
	in.value[9] = 3;
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_expr - m->bias, &in, read_made_up, NULL, &out), 0);
	cfa = made_up(in.value[REG_SP] + 8 + 24) + 8;
	assert_int_equal(out.value[REG_SP], cfa);
	assert_int_equal(out.value[REG_PC], made_up(cfa - 8));
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_deref - m->bias, &in, read_made_up, NULL, &out), 0);
	assert_int_equal(out.value[DWARF_RBX], made_up(in.value[REG_FP] - 40));
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_vfork - m->bias, &in, read_made_up, NULL, &out), 0);
	assert_int_equal(out.value[REG_PC], in.value[5]);
	assert_int_equal(out.value[REG_SP], in.value[REG_SP]);

	assert_int_equal(row_eval(m->src, (uintptr_t)hand_deref - m->bias, &in, read_nothing, NULL, &out), -EFAULT);
	row = (struct row){ .cfa = ROW_CFA_REG, .cfa_reg = REG_SP, .cfa_off = 8 };
	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = i == SAVED_RA ? -8 : ROW_SAME;
	assert_int_equal(row_apply(&row, &in, read_made_up, NULL, &out), 0);
	assert_int_equal(out.value[REG_PC], made_up(in.value[REG_SP]));
	assert_int_equal(row_apply(&row, &in, read_nothing, NULL, &out), -EFAULT); /* no return address */
	assert_int_equal(row_eval(m->src, 1, &in, read_made_up, NULL, &out), -ENOENT);
	in.known &= ~(1ull << 9);
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_expr - m->bias, &in, read_made_up, NULL, &out), -ENODATA);
}

/* --- this process against backtrace() --- */

enum { MAX_PCS = 64 };

struct walk {
	int count;
	uint64_t pcs[MAX_PCS];
	int truth_count;
	void *truth[MAX_PCS];
};

static int read_own(void *arg, uint64_t addr, void *dst, size_t len)
{
	(void)arg;
	memcpy(dst, (const void *)(uintptr_t)addr, len); /* our own live stack */
	return 0;
}

__attribute__((noinline)) static void walk_here(struct walk *w)
{
	static const int gregs[USER_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
					      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	struct row_regs regs = { .known = (1ull << USER_REGS) - 1, .is_exact = true }, out;
	ucontext_t here;

	w->truth_count = backtrace(w->truth, MAX_PCS);
	getcontext(&here);
	for (int i = 0; i < USER_REGS; i++)
		regs.value[i] = (uint64_t)here.uc_mcontext.gregs[gregs[i]];
	for (w->count = 0; w->count < MAX_PCS; regs = out) {
		uint64_t pc = regs.value[REG_PC];
		struct module *m = module_at(pc);

		w->pcs[w->count++] = pc;
		if (row_eval(m->src, pc - m->bias - !regs.is_exact, &regs, read_own, NULL, &out))
			break;
	}
}

/* The innermost frames differ: two places of walk_here, and a sanitizer puts a frame of its own around backtrace(). */
static void check_walk(const struct walk *w)
{
	int more = w->truth_count - w->count;

	assert_true(w->count > 5);
	assert_in_range(more, 0, 1);
	for (int i = 1; i < w->count; i++)
		assert_int_equal(w->pcs[i], (uintptr_t)w->truth[i + more]);
}

static struct walk walk;

static int compare_walk(const void *a, const void *b)
{
	walk_here(&walk);
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int sig)
{
	(void)sig;
	walk_here(&walk);
}

static void test_own_stack(void **state)
{
	int numbers[] = { 2, 1 };

	(void)state;
	qsort(numbers, 2, sizeof(numbers[0]), compare_walk);
	check_walk(&walk);
}

static void test_through_signal(void **state)
{
	struct sigaction act = { .sa_handler = on_signal };
	size_t trampolines = 0;

	(void)state;
	memset(&walk, 0, sizeof(walk));
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	raise(SIGUSR1);
	check_walk(&walk);
	for (int i = 0; i < walk.count; i++) { /* one frame is the trampoline, known for what it is */
		struct module *m = module_at(walk.pcs[i]);
		struct row row;
		size_t count;

		assert_int_equal(rows_build(m->src, walk.pcs[i] - m->bias, walk.pcs[i] - m->bias + 1, &row, 1, &count), 0);
		trampolines += count && row.cfa == ROW_CFA_SIGNAL;
	}
	assert_int_equal(trampolines, 1);
}

/* --- files that are none --- */

static void test_foreign_files(void **state)
{
	struct row_source *src;
	int fd = memfd_create("short", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(row_source_new(-1, &src), -EBADF);
	assert_int_equal(row_source_new(fd, &src), -ENOEXEC);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(row_source_new(fd, &src), -ENOEXEC);
	assert_int_equal(pwrite(fd, "\177ELF\2\1\1", 7, 0), 7);
	assert_int_equal(row_source_new(fd, &src), -ENOEXEC);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_readelf), cmocka_unit_test(test_hand_written),
		cmocka_unit_test(test_eval_rules),	cmocka_unit_test(test_own_stack),
		cmocka_unit_test(test_through_signal),	cmocka_unit_test(test_foreign_files),
	};

	return run_group_of_descriptors(tests, load_modules, free_modules);
}
