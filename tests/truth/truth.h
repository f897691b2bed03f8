/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the truth programs share. Each prints its own call chain ("chain main f01 ... leaf", root first, one line a chain),
 * then calls through that chain until its time is over; spin() burns some milliseconds at the leaf, so that a sample
 * elsewhere is rare. Everything here is static and, but for again(), inlined: only the functions that a program names are
 * frames.
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
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noipa)) /* also no clones, so that names keep no suffix */
#endif
#define INLINE static inline __attribute__((always_inline))

/* Keeps a value alive past a call, so that the call is not the last thing its function does. */
static volatile unsigned long truth_sink;

INLINE unsigned long spin(unsigned long x)
{
	for (int i = 0; i < 4800000; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	return x;
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

/* Says everything that was printed so far, also into a pipe, before the time begins. */
INLINE void truth_told(void)
{
	fflush(stdout);
}

/*
 * Runs this program's own file again and again, one child at a time, each with the argument "once", for @seconds. The parent
 * takes another name, so that only the children carry the program's.
 */
__attribute__((noinline, unused)) static int again(const char *self, double seconds)
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
	return 0;
}

#endif
