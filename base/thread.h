/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads besides the main loop, and makes their locks and conditions. */
#ifndef HEARTH_BASE_THREAD_H
#define HEARTH_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts @fn with all signals blocked (they belong to the main loop), named @name (at most 15 bytes). 0 or -errno. */
int thread_start(pthread_t *thread_ret, const char *name, void *(*fn)(void *arg), void *arg);

/* A lock that its holder may take again. 0 or -errno. */
int thread_lock_init_recursive(pthread_mutex_t *lock);

/* A condition whose deadlines are of CLOCK_MONOTONIC. 0 or -errno. */
int thread_cond_init(pthread_cond_t *cond);

/* Waits on @cond until @deadline_ns (CLOCK_MONOTONIC; UINT64_MAX: for ever). 0 or -ETIMEDOUT. */
int thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);

#endif
