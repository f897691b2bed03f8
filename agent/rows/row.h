/* SPDX-License-Identifier: Apache-2.0 */
/* One unwind row: the rule by which the caller's registers are found at an address, and the registers it works on. */
#ifndef HEARTH_AGENT_ROWS_ROW_H
#define HEARTH_AGENT_ROWS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/cpu/cpu.h"

/* How the CFA (the caller's stack pointer when it goes on) is found. */
enum row_cfa {
	ROW_CFA_NONE,	 /* the tables give no rule here */
	ROW_CFA_REG,	 /* CFA = reg + off */
	ROW_CFA_DEREF,	 /* CFA = *(reg + off) + off2: realigned stacks */
	ROW_CFA_PLT,	 /* CFA = sp + 8 + ((pc & 15) >= off ? 8 : 0): x86's lazy-binding stubs */
	ROW_CFA_SCHED,	 /* Go's scheduler knows: see enum sched_base in bpf/event.h, which is cfa_reg here */
	ROW_CFA_SIGNAL,	 /* rt_sigreturn trampoline: all registers stand in the signal frame at sp */
	ROW_CFA_ROOT,	 /* outermost frame: it has no return address */
	ROW_CFA_TAGGED,	 /* generated code: CFA is behind the next word from cfa_reg on that is tagged as an address of
			    such code; REG_PC: from the stack pointer that a scheduler noted. User space alone */
	ROW_CFA_EXPR,	 /* something else: only row_eval can tell */
	ROW_CFA_UNASKED, /* no table tells, and who knows more was not asked (rows_build_at) */
};

/* The registers that the caller gets back, in the order of row.saved (enum row_saved): their DWARF numbers. */
extern const uint8_t row_saved_regs[SAVED_MAX];

#define ROW_SAME                                                                                                 \
	INT32_MIN /* the frame left the register alone (or nothing is known about it); the return address: in lr \
		   */
#define ROW_OTHER                                                                                               \
	(INT32_MIN + 1) /* neither at an offset from the CFA nor from the frame pointer: only row_eval can tell \
			 */

/* ROW_AT_FP + n: not at CFA + n but at fp + n, the frame's own fp. So gcc saves registers where it realigns the stack. */
enum { ROW_AT_FP = -(1 << 30), ROW_AT_FP_REACH = 1 << 20 };

/* Two forms that only rows of generated code have. ROW_AT_SP + n: at sp + n, the frame's own sp. ROW_IN_REG + n: not saved,
 * but in the register with DWARF's number n. */
enum { ROW_AT_SP = -(1 << 29), ROW_AT_SP_REACH = 1 << 20, ROW_IN_REG = 1 << 30 };

static inline bool row_is_at_sp(int32_t saved)
{
	return saved >= ROW_AT_SP - ROW_AT_SP_REACH && saved <= ROW_AT_SP + ROW_AT_SP_REACH;
}

static inline bool row_is_in_reg(int32_t saved)
{
	return saved >= ROW_IN_REG && saved < ROW_IN_REG + USER_REGS;
}

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
	uint8_t wrong_cnt; /* how often the guess was wrong (agent/walk/late_walk.c); 0 from a builder */
	uint8_t capture;   /* generated code: which words of the frame tell its function (code_reader.h); 0: none */
	int32_t cfa_off;
	int32_t cfa_off2;
	int32_t saved[SAVED_MAX]; /* offset from the CFA, or one of the above: ROW_CFA_REG, _DEREF, _PLT, _SCHED */
};

/* Do @a and @b say the same of the code where they hold? */
static inline bool row_is_alike(const struct row *a, const struct row *b)
{
	return a->cfa == b->cfa && a->cfa_reg == b->cfa_reg && a->is_signal_frame == b->is_signal_frame &&
	       a->is_guess == b->is_guess && a->is_followed == b->is_followed && a->capture == b->capture &&
	       a->is_behind_syscall == b->is_behind_syscall && a->cfa_off == b->cfa_off && a->cfa_off2 == b->cfa_off2 &&
	       memcmp(a->saved, b->saved, sizeof(a->saved)) == 0;
}

/* Registers of one frame. */
struct row_regs {
	uint64_t value[USER_REGS];
	uint64_t known; /* bit n: value[n] is what the frame has there */
	bool is_exact;	/* pc is where the thread stands, not a return address */
};

/* Copies @len_bytes (at most 8) of the process's memory at @addr. 0, or not 0 when it is not readable. */
typedef int (*row_read_fn)(void *arg, uint64_t addr, void *dst, size_t len_bytes);

#endif
