/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One step of the user stack walk: from a frame's registers and its row to the caller's registers. The same source runs in
 * the kernel (bpf/sampler.bpf.c) and in user space (agent/walk/late_walk.c, unit tests); the includer defines struct
 * unwind_memory, unwind_read(), which reads a word of user memory, and unwind_read_sched(): 0, or not 0 when it cannot be
 * had; unwind_code_mask(), the bits of a return address that are not a pointer authentication signature (bpf/arch.h); and
 * unwind_put_back(), which says what stood in place of a return address that the kernel took for a uretprobe.
 */
#ifndef HEARTH_BPF_UNWIND_H
#define HEARTH_BPF_UNWIND_H

#include "bpf/event.h"
#include "bpf/unwind_state.h"

struct unwind_memory;

static __always_inline int unwind_read(struct unwind_memory *memory, __u64 addr, __u64 *value);
static __always_inline int unwind_read_sched(struct unwind_memory *memory, struct unwind_sched *sched);
static __always_inline __u64 unwind_code_mask(void);
/* @pc, a return address of the frame that ends at @cfa, or the one that was there before. */
static __always_inline __u64 unwind_put_back(struct unwind_memory *memory, __u64 pc, __u64 cfa);

/*
 * A caller's frame lies above, unless the thread changed its stack in between: Go's calls of C, growing stacks of Rust,
 * handlers on an alternate stack. So the stack pointer may fall, but not for ever.
 */
enum { UNWIND_MAX_FALLS = 32 };

/* Returns 0 when the step could go on; 1, with state->end set, when the walk ends at this frame. */
static __always_inline int unwind_stop(struct unwind_state *state, __u32 end)
{
	state->end = end;
	return 1;
}

static __always_inline int unwind_signal(struct unwind_state *state, struct unwind_memory *memory)
{
	__u64 pc, sp, fp, lr = 0;

	if (CPU_HAS_LR && unwind_read(memory, state->sp + SIGNAL_LR, &lr))
		return unwind_stop(state, END_BAD_MEMORY);
	if (unwind_read(memory, state->sp + SIGNAL_FP, &fp) || unwind_read(memory, state->sp + SIGNAL_SP, &sp) ||
	    unwind_read(memory, state->sp + SIGNAL_PC, &pc))
		return unwind_stop(state, END_BAD_MEMORY);
	state->pc = pc;
	state->sp = sp;
	state->fp = fp;
	if (CPU_HAS_LR) {
		state->lr = lr;
		state->lost_sp = 0;
	}
	state->exact = 1;
	return 0;
}

/* The CFA of a frame that Go's scheduler knows about; 0 when the caller is in @state already. 1: the walk ends. */
static __always_inline int unwind_sched(struct unwind_state *state, __u64 row, struct unwind_memory *memory, __u64 *cfa)
{
	__u32 base = ROW_BASE(row);
	struct unwind_sched sched;
	int is_gone = unwind_read_sched(memory, &sched);
	__u64 depth;

	if (base == SCHED_RETURNS_DEPTH) { /* a goroutine that goes on has no sp noted, its stack's end is there all along */
		if (!sched.stack_hi || unwind_read(memory, state->sp + ROW_CFA(row), &depth))
			return unwind_stop(state, END_BAD_MEMORY);
		*cfa = sched.stack_hi - depth - ROW_RA(row);
		return 0;
	}
	if (is_gone) /* code that does not return may have let its goroutine go already */
		return unwind_stop(state, base == SCHED_RESUMES ? END_ROOT : END_BAD_MEMORY);
	state->fp = sched.fp;
	*cfa = sched.sp + ROW_CFA(row);
	if (base == SCHED_RETURNS)
		return 0;
	*cfa = 0;
	state->pc = sched.pc;
	state->sp = sched.sp;
	if (CPU_HAS_LR) {
		state->lr = sched.lr;
		state->lost_sp = 0;
	}
	state->exact = 0;
	return 0;
}

/*
 * @row is the row that covers state->pc (minus 1 for a return address). Returns 0 with the caller's registers in @state, or
 * 1 with state->end set; pc and sp are unchanged then.
 */
static __always_inline int unwind_step(struct unwind_state *state, __u64 row, struct unwind_memory *memory)
{
	__u32 rule = ROW_RULE(row);
	bool is_frame = rule == RULE_FRAME, ra_in_lr = ROW_RA_IN_LR(row) && !is_frame;
	__u64 base = is_frame || ROW_BASE(row) == BASE_FP ? state->fp : state->sp;
	__u64 cfa, pc, fp;

	if (rule == RULE_CFA) {
		cfa = base + ROW_CFA(row);
		if (CPU_HAS_LR && state->lost_sp && ROW_BASE(row) == BASE_SP) {
			if (ROW_FP(row) >= 0)
				return unwind_stop(state, END_NO_RULE);
			cfa = state->fp - 8 * (__s64)ROW_FP(row); /* the register that keeps the frame record points at it */
		}
	} else if (rule == RULE_FP) {
		if (!state->fp) /* the value that the first frame of a stack has in rbp (Go's goexit, thread starts) */
			return unwind_stop(state, END_ROOT);
		cfa = state->fp + 16;
	} else if (is_frame && ROW_BASE(row) == FRAME_PLAIN) {
		cfa = base + (__s64)ROW_OFF1(row);
	} else if (rule == RULE_DEREF || is_frame) {
		if (unwind_read(memory, base + (__s64)ROW_OFF1(row), &cfa))
			return unwind_stop(state, END_BAD_MEMORY);
		cfa += (__s64)ROW_OFF2(row);
	} else if (rule == RULE_PLT) {
		cfa = state->sp + 8 + ((state->pc & 15) >= (__u64)ROW_OFFSET(row) ? 8 : 0);
	} else if (rule == RULE_SIGNAL) {
		return unwind_signal(state, memory);
	} else if (rule == RULE_SCHED) {
		if (unwind_sched(state, row, memory, &cfa))
			return 1;
		if (!cfa)
			return 0;
	} else {
		if (rule == RULE_USER || (rule == RULE_ROOT && ROW_BASE(row) == ROOT_OF_RETURNS && state->exact))
			return unwind_stop(state, END_USER_RULE);
		return unwind_stop(state, rule == RULE_ROOT ? END_ROOT : END_NO_RULE);
	}
	if (cfa <= state->sp && !(cfa == state->sp && ra_in_lr) && (rule == RULE_FP || ++state->falls > UNWIND_MAX_FALLS))
		return unwind_stop(state, END_NO_PROGRESS);
	if (ra_in_lr) {
		pc = state->lr;
		if (!pc)
			return unwind_stop(state, state->exact ? END_ROOT : END_NO_RULE);
	} else if (unwind_read(memory, is_frame ? base + 8 : cfa + ROW_RA(row), &pc)) {
		return unwind_stop(state, END_BAD_MEMORY);
	}
	pc = unwind_put_back(memory, pc & unwind_code_mask(), cfa);
	fp = state->fp;
	if ((ROW_FP(row) || is_frame) &&
	    unwind_read(memory, is_frame || ROW_FP(row) == ROW_FP_AT_FP ? state->fp : cfa + 8 * (__s64)ROW_FP(row), &fp))
		return unwind_stop(state, END_BAD_MEMORY);
	if (!pc)
		return unwind_stop(state, END_ROOT);
	state->pc = pc;
	state->sp = cfa;
	state->fp = fp;
	if (CPU_HAS_LR) {
		state->lr = 0;
		state->lost_sp = rule == RULE_FP;
	}
	state->exact = 0;
	return 0;
}

/* Returns the last row that starts at or before @offset. Rows are sorted and rows[0] starts at or before @offset. */
static __always_inline __u64 unwind_search(const __u64 *rows, __u32 row_cnt, __u32 offset)
{
	__u32 low = 0;

#pragma GCC unroll 5
	for (__u32 half = BLOCK_ROWS / 2; half; half /= 2) {
		__u32 t = low + half;

		if (t < row_cnt && t < BLOCK_ROWS && ROW_START(rows[t]) <= offset)
			low = t;
	}
	return rows[low & (BLOCK_ROWS - 1)];
}

#endif
