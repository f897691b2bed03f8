/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program under ptrace. All its threads run, except one at a time, the one that is looked at ("the thread"). Signals reach
 * whom they are meant for. Children of the program are not followed.
 */
#ifndef HEARTH_TESTS_TRACEE_H
#define HEARTH_TESTS_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct memory;
struct tracee;

enum stop_kind {
	STOP_ENDED,    /* the program or the thread has ended */
	STOP_STEPPED,  /* one instruction further, or in a signal handler */
	STOP_BLOCKED,  /* the thread waits in the kernel and was stopped there */
	STOP_AT_BREAK, /* at one of tracee_run_to's addresses */
};

enum { MAX_BREAKS = 4 }; /* the processor's own */

/* Starts @argv, which is stopped at its first instruction. NULL when that fails, which has been said. */
struct tracee *tracee_start(char *const argv[]);

/* Ends the program too. Accepts NULL. */
void tracee_free(struct tracee *t);

pid_t tracee_pid(const struct tracee *t);

/* Lets everything run for @us microseconds and then stops a thread picked at random. Or, before that, a new one at its first
 * instruction: *@is_new_ret. False: the program has ended. */
bool tracee_run(struct tracee *t, uint64_t us, bool *is_new_ret);

/* The registers of the thread. False: it is gone. */
bool tracee_regs(struct tracee *t, struct user_regs_struct *regs);

/* The thread's alternate signal stack, which it is made to tell; 0 and 0: none. */
void tracee_alternate_stack(struct tracee *t, struct memory *m, uint64_t *sp_ret, uint64_t *bytes_ret);

/* One instruction of the thread. *@signal_ret: a signal was handed over with it (0: none). */
enum stop_kind tracee_step(struct tracee *t, int *signal_ret);

/* Runs the thread until it is at one of the @count addresses, for at most @ms milliseconds. */
enum stop_kind tracee_run_to(struct tracee *t, const uint64_t *addrs, uint32_t count, uint64_t ms);

/* Numbers that only depend on the seed. */
void random_seed(uint64_t seed);
uint64_t random_below(uint64_t bound);

#endif
