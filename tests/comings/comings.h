/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the programs of this folder. Each prints, for every name (comm) that it or its children take, the call
 * chain that this name stands for: "chain COMM EXECUTABLE main NAME_outer NAME_inner NAME_leaf". judge.py holds every
 * sample of that name against it.
 */
#ifndef COMINGS_H
#define COMINGS_H

#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "../truth/truth.h"

/* About a tenth of a millisecond. */
INLINE unsigned long work(unsigned long x)
{
	for (int i = 0; i < 120000; i++)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	return x;
}

/* Runs for @ms milliseconds; with ALONE, which calls nothing outside, for about as long. */
INLINE unsigned long work_for(unsigned long ms)
{
#ifdef ALONE
	for (unsigned long i = 0; i < ms * 8; i++)
		truth_sink = work(truth_sink + ms);
#else
	double end = now_seconds(CLOCK_MONOTONIC) + (double)ms / 1e3;

	do
		truth_sink = work(truth_sink + ms);
	while (now_seconds(CLOCK_MONOTONIC) < end);
#endif
	return truth_sink;
}

#ifndef ROOM
#define ROOM 1 /* words in a frame */
#endif

/* NAME_outer calls NAME_inner calls NAME_leaf, which runs for @ms milliseconds. */
#define CHAIN(name)                                         \
	FRAME unsigned long name##_leaf(unsigned long ms);  \
	FRAME unsigned long name##_leaf(unsigned long ms)   \
	{                                                   \
		return work_for(ms);                        \
	}                                                   \
	FRAME unsigned long name##_inner(unsigned long ms); \
	FRAME unsigned long name##_inner(unsigned long ms)  \
	{                                                   \
		volatile unsigned long room[ROOM];          \
                                                            \
		room[0] = ms;                               \
		truth_sink += name##_leaf(ms) ^ room[0];    \
		return truth_sink;                          \
	}                                                   \
	FRAME unsigned long name##_outer(unsigned long ms); \
	FRAME unsigned long name##_outer(unsigned long ms)  \
	{                                                   \
		truth_sink += name##_inner(ms) ^ ms;        \
		return truth_sink;                          \
	}

typedef unsigned long chain_fn(unsigned long ms);

/* @prefix_text: the functions between the root and NAME_outer. */
INLINE void tell(const char *comm, const char *exe, const char *prefix_text, const char *name)
{
	printf("chain %s %s %s %s_outer %s_inner %s_leaf\n", comm, exe, prefix_text, name, name, name);
}

INLINE void name_me(const char *comm)
{
	prctl(PR_SET_NAME, comm);
}

/* Ends the program, saying what failed. */
INLINE void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s failed: %s\n", what, strerror(errno));
	exit(1);
}

INLINE int status_of(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

#endif
