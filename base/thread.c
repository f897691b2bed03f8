/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of pthreads that all parts with a thread share. */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

int thread_start(pthread_t *thread_ret, const char *name, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* base/calls.c */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread_ret, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return -error;
	pthread_setname_np(*thread_ret, name);
	return 0;
}

int thread_lock_init_recursive(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	return -pthread_mutex_init(lock, &attr);
}

int thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int error = pthread_condattr_init(&attributes);

	if (error)
		return -error;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	error = pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
	return -error;
}

int thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	struct timespec until = { .tv_sec = deadline_ns / NSEC_PER_SEC, .tv_nsec = deadline_ns % NSEC_PER_SEC };

	if (deadline_ns == UINT64_MAX)
		return -pthread_cond_wait(cond, lock);
	return -pthread_cond_timedwait(cond, lock, &until);
}
