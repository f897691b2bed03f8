/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs of tests/turns. PROGRAM CASE SECONDS [COMM] spends its time in one turn or end of a stack and
 * prints what is right there, in regular expressions over stacks as judge.py writes them ("root;...;leaf|kernel"):
 *
 *   stack RE      the whole user part of a right stack
 *   seen N RE     at least N samples must have this somewhere: they were in the spot under test
 *
 * "@main", "@thread" and "@signal" stand for what libc puts below main, below a thread's function and below a handler. The
 * process takes the case's name (or COMM), so that its samples are found. All here is inlined: only functions that a program
 * names are frames.
 */
#ifndef TURNS_H
#define TURNS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa)) /* also no clones, so that names keep no suffix */
#endif
#define INLINE static inline __attribute__((always_inline))

static volatile unsigned long turn_sink;
static double turn_seconds, turn_end;

/* About @us microseconds. What follows it keeps the caller's frame: its result is used behind a call. */
INLINE void burn(int us)
{
	unsigned long x = turn_sink;

	for (long i = 0; i < us * 800L; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	turn_sink = x;
}

INLINE double turn_time(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Until its seconds of processor time are used up, those of its children too; on a busy machine not for ever. */
INLINE int running(void)
{
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	return turn_time(CLOCK_PROCESS_CPUTIME_ID) + (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
			       (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1e-6 <
		       turn_seconds &&
	       turn_time(CLOCK_MONOTONIC) < turn_end;
}

INLINE void right(const char *stack)
{
	printf("stack %s\n", stack);
}

INLINE void seen(int samples, const char *what)
{
	printf("seen %d %s\n", samples, what);
}

INLINE void told(void)
{
	fflush(stdout);
}

/* Stops with a message: what a case needs is not there. judge.py leaves the case out. */
INLINE void leave_out(const char *why)
{
	printf("skip %s\n", why);
	exit(0);
}

INLINE void *must_map(size_t bytes, int protection, int flags)
{
	void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		leave_out("no memory");
	return p;
}

INLINE void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = handler;
	sa.sa_flags = SA_SIGINFO | flags;
	sigaction(signal, &sa, NULL);
}

struct turn {
	const char *name;
	void (*run)(void);
};

/* Runs the case that the arguments name; without any, prints the names. */
INLINE int turns_main(int argc, char **argv, const struct turn *turns, size_t count)
{
	turn_seconds = argc > 2 ? atof(argv[2]) : 1;
	turn_end = turn_time(CLOCK_MONOTONIC) + 4 * turn_seconds;
	for (size_t i = 0; i < count; i++) {
		if (argc == 1) {
			puts(turns[i].name);
		} else if (!strcmp(turns[i].name, argv[1])) {
			prctl(PR_SET_NAME, argv[argc > 3 ? 3 : 1]);
			turns[i].run();
			return 0;
		}
	}
	return argc > 1 ? 2 : 0;
}

#define TURNS(...)                                                                    \
	int main(int argc, char **argv)                                               \
	{                                                                             \
		static const struct turn turns[] = { __VA_ARGS__ };                   \
                                                                                      \
		return turns_main(argc, argv, turns, sizeof(turns) / sizeof(*turns)); \
	}

#endif
