/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows against three witnesses that are not ours: readelf's interpreted tables (every row of the C library and of whatever
 * else is installed), glibc's backtrace() on this very process, and functions below whose call frame information is written
 * by hand.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows.h"
#include "base/cleanup.h"

/* --- memory that answers every address, to try rules on --- */

static uint64_t made_up(uint64_t addr)
{
	return (addr ^ addr >> 29) * 0x9e3779b97f4a7c15ull;
}

static int read_made_up(void *arg, uint64_t addr, void *dst, size_t len)
{
	uint64_t word = made_up(addr);

	(void)arg;
	memcpy(dst, &word, len);
	return 0;
}

static struct row_regs made_up_regs(uint64_t seed)
{
	struct row_regs regs = { .known = (1u << DWARF_REGS) - 1 };

	for (int i = 0; i < DWARF_REGS; i++)
		regs.value[i] = made_up(seed + (uint64_t)i);
	return regs;
}

static const int saved_numbers[SAVED_MAX] = { 3, 6, 12, 13, 14, 15, 16 };

/* What @row says must be what the exact evaluation of the same address says. */
static void check_row_against_eval(struct row_source *src, const struct row *row)
{
	struct row_regs in = made_up_regs(row->start), out;
	uint64_t sp = in.value[DWARF_RSP], cfa;
	int r = row_eval(src, row->start, &in, read_made_up, NULL, &out);

	if (row->cfa == ROW_CFA_ROOT) {
		assert_int_equal(r, 1);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(out.is_exact, row->is_signal_frame);
	switch (row->cfa) {
	case ROW_CFA_REG:
		cfa = in.value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;
		break;
	case ROW_CFA_DEREF:
		cfa = made_up(in.value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off) + (uint64_t)(int64_t)row->cfa_off2;
		break;
	case ROW_CFA_PLT:
		cfa = sp + 8 + ((in.value[DWARF_RIP] & 15) >= (uint64_t)row->cfa_off ? 8 : 0);
		break;
	case ROW_CFA_SIGNAL:
		assert_int_equal(out.value[DWARF_RIP], made_up(sp + 40 + 8 * REG_RIP));
		assert_int_equal(out.value[DWARF_RSP], made_up(sp + 40 + 8 * REG_RSP));
		assert_int_equal(out.value[DWARF_RBP], made_up(sp + 40 + 8 * REG_RBP));
		return;
	default:
		return;
	}
	assert_int_equal(out.value[DWARF_RSP], cfa);
	for (int i = 0; i < SAVED_MAX; i++) {
		int reg = saved_numbers[i];

		if (row->saved[i] == ROW_SAME)
			assert_true(!(out.known >> reg & 1) || out.value[reg] == in.value[reg]);
		else if (row->saved[i] != ROW_OTHER)
			assert_int_equal(out.value[reg], made_up(cfa + (uint64_t)(int64_t)row->saved[i]));
	}
}

/* --- readelf --- */

static const char *const reg_names[DWARF_REGS] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
						   "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra" };

static int reg_by_name(const char *name)
{
	for (int i = 0; i < DWARF_REGS; i++)
		if (strcmp(name, reg_names[i]) == 0)
			return i;
	return -1;
}

/* One column of readelf's, as "c-16", "u", "s", "exp", "r10", against @saved. */
static bool is_same_rule(const char *text, int32_t saved)
{
	if (text[0] == 'c')
		return saved == (text[1] ? strtol(text + 1, NULL, 10) : 0);
	if (strcmp(text, "u") == 0 || strcmp(text, "s") == 0)
		return saved == ROW_SAME;
	return saved == ROW_OTHER;
}

struct truth {
	uint64_t start;
	int columns[DWARF_REGS + 2]; /* register of each column after the CFA, -1 unknown */
	int column_count;
	char text[DWARF_REGS + 2][16]; /* the CFA, then the columns */
};

static void split_header(char *line, struct truth *t)
{
	char *save = NULL;

	strtok_r(line, " \n", &save); /* LOC */
	strtok_r(NULL, " \n", &save); /* CFA */
	t->column_count = 0;
	for (char *word; (word = strtok_r(NULL, " \n", &save)) && t->column_count < DWARF_REGS;)
		t->columns[t->column_count++] = reg_by_name(word);
}

static void split_row(char *line, struct truth *t)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);

	t->start = strtoull(word, NULL, 16);
	for (int i = 0; i <= t->column_count; i++) {
		do {
			word = strtok_r(NULL, " \n", &save);
		} while (word && word[0] == '('); /* the second half of "r10 (r10)" */
		snprintf(t->text[i], sizeof(t->text[i]), "%s", word ? word : "?");
	}
}

/* The caller's rsp is not the CFA but stands in some other register, as in longjmp. */
static bool moves_rsp(const struct truth *t)
{
	for (int c = 0; c < t->column_count; c++)
		if (t->columns[c] == DWARF_RSP && t->text[c + 1][0] != 'u')
			return true;
	return false;
}

/* Compares readelf's row with ours at its first and last byte. */
static void check_truth(struct row_source *src, const struct truth *t, uint64_t end)
{
	uint64_t at[] = { t->start, end - 1 };

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct row row;
		size_t count;
		char cfa[32];
		bool is_root = false;

		assert_int_equal(rows_build(src, at[i], at[i] + 1, &row, 1, &count), 0);
		assert_int_equal(count, 1);
		assert_true(row.start == at[i] && row.end == at[i] + 1);
		check_row_against_eval(src, &row);
		for (int c = 0; c < t->column_count; c++)
			is_root |= t->columns[c] == DWARF_RIP && strcmp(t->text[c + 1], "u") == 0;
		assert_int_equal(is_root, row.cfa == ROW_CFA_ROOT);
		if (is_root)
			continue;
		snprintf(cfa, sizeof(cfa), "%s%+d", reg_names[row.cfa_reg], row.cfa_off);
		if (row.cfa == ROW_CFA_SIGNAL || row.cfa == ROW_CFA_EXPR) {
			assert_true(strcmp(t->text[0], "exp") == 0 || moves_rsp(t));
			continue;
		}
		assert_false(moves_rsp(t));
		assert_string_equal(row.cfa == ROW_CFA_REG ? cfa : "exp", t->text[0]);
		for (int c = 0; c < t->column_count; c++)
			for (int s = 0; s < SAVED_MAX; s++)
				if (t->columns[c] == saved_numbers[s])
					assert_true(is_same_rule(t->text[c + 1], row.saved[s]));
	}
}

/* Every row of every function of @path. Returns how many. */
static size_t check_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *line = NULL;
	struct row_source *src;
	struct truth last = { 0 };
	bool has_last = false;
	uint64_t fde_end = 0;
	size_t checked = 0, cap = 0;
	char command[512];
	FILE *f;

	assert_int_equal(row_source_new(fd, &src), 0);
	snprintf(command, sizeof(command), "LC_ALL=C readelf --debug-dump=frames-interp --wide '%s' 2>/dev/null", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		const char *pc = strstr(line, " FDE cie=") ? strstr(line, "pc=") : NULL;
		struct truth now = last;
		bool is_row = fde_end && line[0] != '\n' && strspn(line, "0123456789abcdef") == 16 && !strchr(line, '=') &&
			      !strstr(line, " CIE ") && !strstr(line, "ZERO");

		if (is_row)
			split_row(line, &now);
		if (has_last && !(is_row && now.start == last.start)) { /* of equal places the last line counts */
			uint64_t end = is_row ? now.start : fde_end;

			if (end > last.start) {
				check_truth(src, &last, end);
				checked++;
			}
		}
		has_last = is_row;
		if (is_row) {
			last = now;
		} else if (pc) {
			fde_end = strtoull(strstr(pc, "..") + 2, NULL, 16);
		} else if (strstr(line, "LOC ")) {
			split_header(line, &last);
		} else {
			fde_end = 0;
		}
	}
	pclose(f);
	row_source_free(src);
	return checked;
}

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
	"	nop\n"
	"	.cfi_endproc\n"
	"	.skip 12, 0x90\n"      /* padding: joined to the row before */
	"hand_deref: .cfi_startproc\n" /* CFA = *(rsp+32) + 8; rbx at *(rbp-40) */
	"	.cfi_escape 0x0f, 5, 0x77, 32, 0x06, 0x23, 8\n"
	"	.cfi_escape 0x10, 3, 2, 0x76, 0x58\n"
	"	nop\n"
	"	.cfi_endproc\n"
	"	.skip 31, 0x90\n"     /* a real gap */
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
	assert_true(rows[0].cfa == ROW_CFA_REG && rows[0].cfa_reg == DWARF_RSP && rows[0].cfa_off == 8);
	assert_int_equal(rows[0].saved[SAVED_RBP], ROW_SAME);
	assert_true(rows[1].cfa_off == 16 && rows[1].saved[SAVED_RBP] == -16 && rows[1].saved[SAVED_RA] == -8);
	assert_int_equal(rows[1].end, (uintptr_t)hand_deref - base);
	assert_true(rows[2].cfa == ROW_CFA_DEREF && rows[2].cfa_reg == DWARF_RSP);
	assert_true(rows[2].cfa_off == 32 && rows[2].cfa_off2 == 8 && rows[2].saved[SAVED_RBX] == ROW_OTHER);
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

	(void)state;
	in.value[9] = 3;
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_expr - m->bias, &in, read_made_up, NULL, &out), 0);
	cfa = made_up(in.value[DWARF_RSP] + 8 + 24) + 8;
	assert_int_equal(out.value[DWARF_RSP], cfa);
	assert_int_equal(out.value[DWARF_RIP], made_up(cfa - 8));
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_deref - m->bias, &in, read_made_up, NULL, &out), 0);
	assert_int_equal(out.value[DWARF_RBX], made_up(in.value[DWARF_RBP] - 40));
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_vfork - m->bias, &in, read_made_up, NULL, &out), 0);
	assert_int_equal(out.value[DWARF_RIP], in.value[5]);
	assert_int_equal(out.value[DWARF_RSP], in.value[DWARF_RSP]);

	assert_int_equal(row_eval(m->src, (uintptr_t)hand_deref - m->bias, &in, read_nothing, NULL, &out), -EFAULT);
	assert_int_equal(row_eval(m->src, (uintptr_t)hand_end - m->bias + 1, &in, read_made_up, NULL, &out), -ENOENT);
	in.known &= ~(1u << 9);
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
	static const int gregs[DWARF_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					       REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	struct row_regs regs = { .known = (1u << DWARF_REGS) - 1, .is_exact = true }, out;
	ucontext_t here;

	w->truth_count = backtrace(w->truth, MAX_PCS);
	getcontext(&here);
	for (int i = 0; i < DWARF_REGS; i++)
		regs.value[i] = (uint64_t)here.uc_mcontext.gregs[gregs[i]];
	for (w->count = 0; w->count < MAX_PCS; regs = out) {
		uint64_t pc = regs.value[DWARF_RIP];
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

	return cmocka_run_group_tests(tests, load_modules, free_modules);
}
