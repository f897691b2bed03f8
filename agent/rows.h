/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows: for each address of a file's code, how to find the caller's registers. rows_build gives the rules as
 * plain numbers for as many addresses as they can express; row_eval applies the exact rule at one address, whatever it is.
 * Addresses are ELF virtual addresses. Leaf module: returns errors, never logs. A source is not shared between threads.
 */
#ifndef HEARTH_AGENT_ROWS_H
#define HEARTH_AGENT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cpu.h"

/* How the CFA (the caller's stack pointer when it goes on) is found. */
enum row_cfa {
	ROW_CFA_NONE,	 /* the tables give no rule here */
	ROW_CFA_REG,	 /* CFA = reg + off */
	ROW_CFA_DEREF,	 /* CFA = *(reg + off) + off2: realigned stacks */
	ROW_CFA_PLT,	 /* CFA = sp + 8 + ((pc & 15) >= off ? 8 : 0): x86's lazy-binding stubs */
	ROW_CFA_SCHED,	 /* Go's scheduler knows: see enum sched_base in bpf/event.h, which is cfa_reg here */
	ROW_CFA_SIGNAL,	 /* rt_sigreturn trampoline: all registers stand in the signal frame at sp */
	ROW_CFA_ROOT,	 /* outermost frame: it has no return address */
	ROW_CFA_EXPR,	 /* something else: only row_eval can tell */
	ROW_CFA_UNASKED, /* no table tells, and who knows more was not asked (rows_build_at) */
};

/* What the caller gets back, in the order of row.saved (enum row_saved): their DWARF numbers. */
extern const uint8_t row_saved_regs[SAVED_MAX];

#define ROW_SAME                                                                                                 \
	INT32_MIN /* the frame left the register alone (or nothing is known about it); the return address: in lr \
		   */
#define ROW_OTHER                                                                                               \
	(INT32_MIN + 1) /* neither at an offset from the CFA nor from the frame pointer: only row_eval can tell \
			 */

/* ROW_AT_FP + n: not at CFA + n but at fp + n, the frame's own fp. So gcc saves registers where it realigns the stack. */
enum { ROW_AT_FP = -(1 << 30), ROW_AT_FP_REACH = 1 << 20 };

static inline bool row_is_at_fp(int32_t saved)
{
	return saved >= ROW_AT_FP - ROW_AT_FP_REACH && saved <= ROW_AT_FP + ROW_AT_FP_REACH;
}

/* Valid for [start, end). Everything behind @cfa is 0 for kinds that do not use it. */
struct row {
	uint64_t start;
	uint64_t end;
	uint8_t cfa;		/* enum row_cfa */
	uint8_t cfa_reg;	/* DWARF number: ROW_CFA_REG, ROW_CFA_DEREF */
	bool is_signal_frame;	/* the caller was interrupted, it did not call: its pc is exact */
	bool is_guess;		/* from the instructions: right when the return address stands behind a call */
	bool is_followed;	/* from the instructions, whatever was learned of it since */
	bool is_behind_syscall; /* the first register is what a system call returned; 0 in a new thread, which has no caller
				 */
	bool is_end;	   /* a return address right behind it is where a stack made by hand ends; false from a builder */
	uint8_t wrong_cnt; /* how often the guess was wrong (agent/late.c); 0 from a builder */
	int32_t cfa_off;
	int32_t cfa_off2;
	int32_t saved[SAVED_MAX]; /* offset from the CFA, or one of the above: ROW_CFA_REG, _DEREF, _PLT, _SCHED */
};

struct row_source;

/* The tables of an ELF file, mapped into memory; @fd may be closed afterwards. Several kinds of table (.eh_frame,
 * .debug_frame; agent/row_builder.h) fill each other's gaps. 0; -ENOEXEC (no ELF file for this CPU), -ENODATA (no tables),
 * -ENOMEM, or what mapping said. */
int row_source_new(int fd, struct row_source **ret);

/* The same, with what the separate debug file of @fd has; the @len_bytes of that file at @debug (NULL: there is none) are
 * needed for this call alone. */
int row_source_new_debug(int fd, const void *debug, size_t len_bytes, struct row_source **ret);

/* The same for an image in memory (the vDSO), which is borrowed. */
int row_source_new_memory(const void *image, size_t len_bytes, struct row_source **ret);

void row_source_free(struct row_source *src);

/*
 * The rows of [start, end), cut at its borders, sorted, equal neighbours merged. Code without a rule has no row (or
 * ROW_CFA_NONE), but a gap of less than 16 bytes (padding) belongs to the row before it. 0; -ENOSPC when there are more than
 * @max rows (the first @max stand). A range of n bytes never has more than n rows.
 */
int rows_build(struct row_source *src, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret);

/*
 * The same for the sake of @addr: where only the instructions could tell, the rows are ROW_CFA_UNASKED (in the kernel's
 * caches a miss) unless @addr is there. To look at the instructions takes long in a large file, and nearly all that no table
 * covers never runs.
 */
int rows_build_at(struct row_source *src, uint64_t addr, uint64_t start, uint64_t end, struct row *rows, size_t max,
		  size_t *count_ret);

/* Registers of one frame. */
struct row_regs {
	uint64_t value[USER_REGS];
	uint64_t known; /* bit n: value[n] is what the frame has there */
	bool is_exact;	/* pc is where the thread stands, not a return address */
};

/* Copies @len_bytes (at most 8) of the process's memory at @addr. 0, or not 0 when it is not readable. */
typedef int (*row_read_fn)(void *arg, uint64_t addr, void *dst, size_t len_bytes);

/*
 * From the registers @in of the frame whose code address is @addr (ELF virtual address; for a return address the caller has
 * subtracted 1) to those of its caller, by the exact rule. 0; 1 at the outermost frame; -ENOENT (no rule), -EFAULT (memory
 * not readable), -ENODATA (needs a register that is not known), -ENOTSUP (an operation we do not know or a malformed
 * expression), -ENOMEM. @out is complete only after 0; it must not be @in.
 */
int row_eval(struct row_source *src, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
	     struct row_regs *out);

/* Does a call end at @addr, or the code for a handler's return begin there, so that @addr can be the return address that a
 * row with is_guess led to? */
bool row_is_return_address(const struct row_source *src, uint64_t addr);

#endif
