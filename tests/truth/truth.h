/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the truth programs. Each prints what check.py wants to know of it, its call chain first ("chain main f01
 * ... leaf", root first, one line a chain), then calls through that chain until its time is over; spin() burns some
 * milliseconds at the leaf. Everything here is static and, but for again(), inlined: only the functions that a program
 * names are frames.
 *
 * A chain survives every optimisation: its functions are not inlined, cloned nor merged (FRAME; also not by the linker,
 * whose optimiser reads the same attributes), and what is done with truth_sink after each call keeps the call from becoming
 * a jump.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define FRAME __attribute__((noinline, disable_tail_calls))
#else
#define FRAME __attribute__((noipa)) /* also no clones, so that names keep no suffix */
#endif
#define INLINE static inline __attribute__((always_inline))

/* Keeps a value alive past a call, so that the call is not the last thing its function does. */
static volatile unsigned long truth_sink;

/* How long spin() takes: some milliseconds, or next to nothing while a program wants to be sampled on its way. */
enum { LONG_TURNS = 4800000, NO_TURNS = 2 };
static volatile int truth_turns = LONG_TURNS;

INLINE unsigned long turn(unsigned long x, int turns)
{
	for (int i = 0; i < turns; i++) {
		x = x * 6364136223846793005UL + 1442695040888963407UL;
		asm volatile("" : "+r"(x)); /* or clang does eight turns at once */
	}
	return x;
}

INLINE unsigned long spin(unsigned long x)
{
	return turn(x, truth_turns);
}

INLINE double now_seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

INLINE double seconds_argument(int argc, char **argv)
{
	return argc > 1 ? atof(argv[1]) : 3;
}

/* Says everything that was printed so far, also into a pipe, before the time begins; and whom main calls besides. */
INLINE void truth_told(void)
{
	puts("calls main *clock_gettime puts printf putchar fflush *_IO_* atof *strtod* libc: __str* musl:*");
	fflush(stdout);
}

/*
 * Calls through @chain for @seconds. A fifth of the time its leaf does nothing, so that samples hit every instruction on the
 * way there and back.
 */
#define RUN_CHAIN(chain, seconds)                                                             \
	do {                                                                                  \
		double end_ = now_seconds(CLOCK_MONOTONIC) + (seconds), start_, after_;       \
                                                                                              \
		puts("sweep\nfull 60");                                                       \
		truth_told();                                                                 \
		do {                                                                          \
			start_ = now_seconds(CLOCK_MONOTONIC);                                \
			truth_turns = LONG_TURNS;                                             \
			truth_sink += chain(truth_sink);                                      \
			truth_turns = NO_TURNS;                                               \
			after_ = now_seconds(CLOCK_MONOTONIC);                                \
			while (now_seconds(CLOCK_MONOTONIC) < after_ + (after_ - start_) / 4) \
				for (int i_ = 0; i_ < 20; i_++)                               \
					truth_sink += chain(truth_sink);                      \
		} while (after_ < end_);                                                      \
	} while (0)

/* What a program that runs again and again says of that; many of its samples are in the kernel's exec and the linker. */
INLINE void truth_told_again(void)
{
	puts("chain main again\ncalls again prctl *clock_gettime *fork* *Fork *exec* *wait* libc: _exit\noutside 50");
	truth_told();
}

/*
 * Runs this program's own file again and again, one child at a time, each with the argument "once", for @seconds. The parent
 * takes another name, so that it is not taken for one of the children.
 */
__attribute__((unused)) FRAME static int again(const char *self, double seconds)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds;

	prctl(PR_SET_NAME, "again");
	while (now_seconds(CLOCK_MONOTONIC) < end) {
		pid_t child = fork();
		int status = 0;

		if (child == 0) {
			execl(self, self, "once", (char *)NULL);
			_exit(127);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			return 1;
	}
	truth_sink++;
	return 0;
}

#endif
