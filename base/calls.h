/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of system calls (seccomp), as lists of what is allowed. Any other call fails with EPERM and is counted; with
 * HEARTH_REFUSED_CALLS=kill in the environment, as in hearth's own tests, it ends the process instead. A filter counts for
 * threads and processes that start later and cannot be taken off.
 */
#ifndef HEARTH_BASE_CALLS_H
#define HEARTH_BASE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct metrics;

/* Beside what every program does: files, memory that is never writable and executable at once, threads, waiting, sockets of
 * this machine, signals to itself. */
struct calls {
	const int *more; /* numbers of further calls, as SCMP_SYS() has them */
	size_t more_count;
	const unsigned long *requests; /* of ioctl(2) */
	size_t request_count;
	bool network;  /* sockets of the network, too */
	bool forks;    /* processes, too; none of them runs a program */
	bool kills;    /* SIGKILL to any process that the kernel lets it end */
	pid_t command; /* any signal to this one; 0: none */
};

/* Where refused calls are counted; to be called before processes are forked whose refusals this one tells. Without memory,
 * or when it is not called, calls_filter() counts for its own process. */
void calls_count_here(void);

/* Needs no-new-privileges. 0 or -errno. */
int calls_filter(const struct calls *calls);

/* Registers hearth_refused_system_calls_total{process="@process"}, and has the first refusals logged. @process is a literal.
 */
void calls_tell(struct metrics *metrics, const char *process);

#endif
