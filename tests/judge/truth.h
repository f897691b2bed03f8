/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third voice: the stack as the program itself treats it. Over a stretch of single steps, each call that was seen names
 * a frame until it returns; each return whose call was before the stretch names one that must have been there all the time.
 * So at the end of a stretch the innermost frames of all its stops are known without any table. Where the program leaves
 * the order of calls and returns (another stack, longjmp, a landing pad), what follows is not joined to what was before.
 */
#ifndef HEARTH_TESTS_TRUTH_H
#define HEARTH_TESTS_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "tests/judge/judge.h"

struct truth;
struct truth_call;

/* A stop of the stretch, to be asked about at its end. */
struct truth_mark {
	const struct truth_call *innermost;
	uint32_t segment, returned;
};

struct truth *truth_new(struct memory *m);
void truth_free(struct truth *t);

/* A stretch begins. @is_first: at the first instruction of a program or thread, where there are no frames. */
void truth_begin(struct truth *t, bool is_first);

struct truth_mark truth_here(const struct truth *t);

/* Before the instruction at @regs is executed, and behind it. @signal: handed over by that step. True: it was a system call
 * (number @before->rax) that was executed. */
void truth_before(struct truth *t, const struct user_regs_struct *regs);
bool truth_after(struct truth *t, const struct user_regs_struct *regs, int signal);

/* The thread ran freely since the last stop, which had @last_sp, and stopped at @pc with @sp: did it return there, further
 * out than all that is known? Then that is a frame too. */
bool truth_returned(struct truth *t, uint64_t pc, uint64_t sp, uint64_t last_sp);

/* The callers' frames of the stop @mark, innermost first, as far as they are known. *@is_all_ret: there are no more. */
uint32_t truth_callers(const struct truth *t, const struct truth_mark *mark, uint64_t *pcs, uint32_t max, bool *is_all_ret);

#endif
