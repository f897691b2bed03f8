/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Go programs against two witnesses: readelf's interpretation of the .debug_frame that the linker wrote beside the
 * table, at every address; and the processor, stepping through programs of both prologues one instruction at a time while
 * the test keeps its own record of calls and returns.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent/rows/row_builder.h"
#include "base/cleanup.h"
#include "symbols/sources/gopclntab.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/symbols/go_program.h"

enum { STEPS = 60000, MANY_ROWS = 5000 };

static struct go_program programs[] = {
	{ .name = "plain", .go = NEW_GO, .options = "" },
	{ .name = "pie", .go = NEW_GO, .options = "-buildmode=pie" },
	{ .name = "old", .go = OLD_GO, .options = "" },
};

struct opened {
	const struct go_program *program;
	struct gopclntab table;
	void *rows;
};

static int build_all(void **state)
{
	(void)state;
	return go_programs_build(programs, ARRAY_LEN(programs));
}

static int remove_all(void **state)
{
	(void)state;
	return go_programs_remove(programs, ARRAY_LEN(programs));
}

static struct opened open_program(const struct go_program *p)
{
	const struct row_image image = { .data = p->image, .len = p->len };
	struct opened o = { .program = p };

	assert_int_equal(gopclntab_open(p->image, p->len, &o.table), 0);
	assert_int_equal(rows_go.open(&image, &o.rows), 0);
	return o;
}

static bool find_function(const struct opened *o, uint64_t addr, struct gopclntab_function *fn)
{
	uint32_t index;

	return gopclntab_find(&o->table, addr, &index) == 0 && gopclntab_function(&o->table, index, fn) == 0;
}

static bool find_row(const struct opened *o, uint64_t addr, struct row *row)
{
	size_t count;

	assert_int_equal(rows_go.build(o->rows, addr, addr + 1, row, 1, &count), 0);
	return count == 1;
}

/* --- .debug_frame --- */

/* Where the rows know better than the linker's tables, which count pushes and pops and nothing else. */
static const struct {
	const char *name;
	enum row_cfa cfa;
} exceptions[] = {
	{ "_rt0_amd64_linux", ROW_CFA_ROOT },
	{ "_rt0_amd64", ROW_CFA_ROOT },
	{ "runtime.goexit", ROW_CFA_ROOT },
	{ "runtime.mstart", ROW_CFA_ROOT },
	{ "runtime.rt0_go", ROW_CFA_ROOT },
	{ "runtime.mcall", ROW_CFA_ROOT },	 /* once on the other stack */
	{ "runtime.sigreturn", ROW_CFA_SIGNAL }, /* all registers stand in the ucontext */
	{ "runtime.sigreturn__sigaction", ROW_CFA_SIGNAL },
	{ "gogo", ROW_CFA_ROOT },		     /* the stack of a goroutine about to run */
	{ "runtime.clone", ROW_CFA_ROOT },	     /* the stack of a thread about to run */
	{ "runtime.morestack", ROW_CFA_SCHED },	     /* on the thread's own stack; the scheduler knows the way back */
	{ "runtime.systemstack", ROW_CFA_SCHED },    /* the same, before 1.21 */
	{ "runtime.asmcgocall", ROW_CFA_SCHED },     /* the same */
	{ "runtime.asmcgocall", ROW_CFA_DEREF },     /* on the thread's own stack all along */
	{ "syscall.rawVforkSyscall", ROW_CFA_NONE }, /* holds its return address in a register */
};

static bool is_exception(const struct gopclntab_function *fn, const struct row *row)
{
	char name[256];

	if (row->cfa == ROW_CFA_REG) /* on another stack, the frame pointer stays; or rdx holds rsp for a moment */
		return fn->flags & GOPCLNTAB_SP_WRITE &&
		       ((row->cfa_reg == REG_FP && row->cfa_off == 16) || (row->cfa_reg == DWARF_RDX && row->cfa_off == 8));
	go_plain_name(fn->name, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
		if (strcmp(name, exceptions[i].name) == 0 && row->cfa == exceptions[i].cfa)
			return true;
	return false;
}

/* All of [start, end) has CFA = rsp + @off. */
static void check_range(const struct opened *o, uint64_t start, uint64_t end, int off)
{
	for (uint64_t at = start; at < end;) {
		struct gopclntab_function fn;
		struct row row;
		size_t count;
		int r = rows_go.build(o->rows, at, end, &row, 1, &count);

		assert_true(r == 0 || r == -ENOSPC);
		assert_int_equal(count, 1);
		assert_int_equal(row.start, at);
		at = row.end;
		if (row.cfa == ROW_CFA_REG && row.cfa_reg == REG_SP && row.cfa_off == off)
			continue;
		assert_true(find_function(o, row.start, &fn));
		if (!is_exception(&fn, &row))
			fail_msg("%s: %s at %lx: kind %d, register %d%+d, not rsp%+d", o->program->name, fn.name, row.start,
				 row.cfa, row.cfa_reg, row.cfa_off, off);
	}
}

static void check_tables(const struct opened *o)
{
	char command[128], line[256];
	bool is_debug_frame = false, has_row = false;
	uint64_t start = 0, end = 0, from, to;
	size_t checked = 0;
	int off = 0;
	FILE *f;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp %s", o->program->path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *range = strstr(line, " pc=");
		int next;

		if (strncmp(line, "Contents of", 11) == 0)
			is_debug_frame = strstr(line, ".debug_frame");
		else if (is_debug_frame && range && sscanf(range, " pc=%lx..%lx", &from, &to) == 2) {
			has_row = false;
			end = to;
		} else if (is_debug_frame && end && sscanf(line, "%lx rsp%d c-8", &from, &next) == 2) {
			if (has_row)
				check_range(o, start, from, off);
			start = from;
			off = next;
			has_row = true;
			checked++;
		} else if (has_row && line[0] == '\n') {
			check_range(o, start, end, off);
			has_row = false;
		}
	}
	assert_int_equal(pclose(f), 0);
	assert_true(checked > MANY_ROWS);
}

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct opened o;

		if (!programs[i].path[0])
			continue;
		o = open_program(&programs[i]);
		check_tables(&o);
		rows_go.close(o.rows);
	}
}

/* --- callers that never called --- */

/* runtime/traceback.go: "injectedCall"; and the signal's own return. */
static bool is_interruption(const char *name)
{
	static const char *const names[] = { "runtime.sigpanic", "runtime.asyncPreempt", "runtime.debugCallV2",
					     "runtime.sigreturn", "runtime.sigreturn__sigaction" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void test_interruptions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct opened o;
		size_t found = 0;

		if (!programs[i].path[0])
			continue;
		o = open_program(&programs[i]);
		for (uint32_t f = 0; f < o.table.function_count; f++) {
			struct gopclntab_function fn;
			struct row row;
			char name[256];

			if (gopclntab_function(&o.table, f, &fn) || !find_row(&o, fn.entry, &row))
				continue;
			go_plain_name(fn.name, name, sizeof(name));
			assert_int_equal(row.is_signal_frame, is_interruption(name));
			found += row.is_signal_frame;
		}
		assert_true(found >= 3);
		rows_go.close(o.rows);
	}
}

/* --- the processor --- */

struct call {
	uint64_t cfa, rbp;
	uint64_t function; /* entry, 0: not of the table */
};

struct walk {
	struct opened o;
	pid_t pid;
	struct call calls[512];
	size_t depth;
	size_t checked, moved, saved;
};

static uint64_t read_word(const struct walk *w, uint64_t addr)
{
	uint64_t word = 0;
	struct iovec to = { &word, 8 }, from = { (void *)addr, 8 };

	return process_vm_readv(w->pid, &to, 1, &from, 1, 0) == 8 ? word : 0;
}

static uint64_t function_at(const struct walk *w, uint64_t pc)
{
	struct gopclntab_function fn;

	return find_function(&w->o, pc, &fn) ? fn.entry : 0;
}

/* Follows calls, returns and tail calls; anything else that leaves a function (a goroutine switch) starts anew. */
static void record_step(struct walk *w, const struct user_regs_struct *old, const struct user_regs_struct *new)
{
	struct call *top = w->depth ? &w->calls[w->depth - 1] : NULL;
	const uint8_t *code = gopclntab_code(&w->o.table, old->rip, 1);
	uint64_t function = function_at(w, new->rip);

	if (new->rsp == old->rsp - 8) {
		uint64_t pushed = read_word(w, new->rsp);

		if (pushed > old->rip && pushed <= old->rip + 8 && new->rip != pushed) {
			if (w->depth == ARRAY_LEN(w->calls))
				w->depth = 0;
			w->calls[w->depth++] = (struct call){ new->rsp + 8, new->rbp, function };
			return;
		}
	}
	if (!top)
		return;
	if (new->rsp == top->cfa && (!code || *code == 0xc3)) {
		w->depth--;
		if (w->depth && w->calls[w->depth - 1].function != function)
			w->depth = 0;
	} else if (function != top->function && new->rsp + 8 == top->cfa) {
		top->function = function;
	} else if (function != top->function) {
		w->depth = 0;
	}
}

static void check_step(struct walk *w, const struct user_regs_struct *regs)
{
	const struct call *top = w->depth ? &w->calls[w->depth - 1] : NULL;
	struct gopclntab_function fn;
	uint64_t cfa, rbp;
	struct row row;

	if (!top || !top->function)
		return;
	assert_true(find_function(&w->o, regs->rip, &fn));
	if (!find_row(&w->o, regs->rip, &row))
		fail_msg("%s: no row at %llx in %s", w->o.program->name, regs->rip, fn.name);
	if (row.cfa != ROW_CFA_REG)
		return;
	cfa = (row.cfa_reg == REG_FP ? regs->rbp : regs->rsp) + (uint64_t)(int64_t)row.cfa_off;
	rbp = row.saved[SAVED_FP] == ROW_SAME ? regs->rbp : read_word(w, cfa + (uint64_t)(int64_t)row.saved[SAVED_FP]);
	if (cfa != top->cfa || rbp != top->rbp)
		fail_msg("%s: %s at %llx: CFA %lx, rbp %lx, not %lx, %lx", w->o.program->name, fn.name, regs->rip, cfa, rbp,
			 top->cfa, top->rbp);
	w->checked++;
	w->moved += row.cfa_reg == REG_FP;
	w->saved += row.saved[SAVED_FP] != ROW_SAME;
}

/* Runs the program's first thread step by step. */
static void walk_program(struct walk *w)
{
	struct user_regs_struct old, new;
	int status;

	w->pid = fork();
	if (w->pid == 0) {
		close(STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(w->o.program->path, w->o.program->path, "1", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, w->pid, NULL, &old), 0);
	for (size_t i = 0; i < STEPS; i++, old = new) {
		int sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

		assert_int_equal(ptrace(PTRACE_SINGLESTEP, w->pid, NULL, (void *)(long)sig), 0);
		assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
		if (!WIFSTOPPED(status))
			break;
		assert_int_equal(ptrace(PTRACE_GETREGS, w->pid, NULL, &new), 0);
		if (sig || WSTOPSIG(status) != SIGTRAP)
			w->depth = 0;
		else
			record_step(w, &old, &new);
		check_step(w, &new);
	}
	kill(w->pid, SIGKILL);
	waitpid(w->pid, &status, 0);
}

static void test_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		Elf64_Ehdr ehdr;
		struct walk w;

		if (!programs[i].path[0])
			continue;
		memcpy(&ehdr, programs[i].image, sizeof(ehdr));
		if (ehdr.e_type != ET_EXEC) /* addresses as in the file */
			continue;
		w = (struct walk){ .o = open_program(&programs[i]) };
		walk_program(&w);
		printf("%s: %zu steps checked, %zu with rbp saved, %zu on another stack\n", programs[i].name, w.checked,
		       w.saved, w.moved);
		assert_true(w.checked > STEPS / 2 && w.saved > STEPS / 4 && w.moved > 50);
		rows_go.close(w.o.rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_tables), cmocka_unit_test(test_interruptions),
					    cmocka_unit_test(test_steps) };

	return run_group_of_descriptors(tests, build_all, remove_all);
}
