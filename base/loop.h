/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop a thread: file descriptors, timers (timerfd) and signals (signalfd) call back on the thread that runs it.
 * Callbacks may add and remove watches, their own included.
 */
#ifndef HEARTH_BASE_LOOP_H
#define HEARTH_BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_watch; /* a file descriptor, timer or signal set in a loop */

/* A call to be made on the loop's thread; a member of the object it is about. */
struct loop_work {
	void (*fn)(struct loop_work *work);
	struct loop_work *next; /* the loop's */
};

/* @events are EPOLLIN... as epoll(7) reported them. */
typedef void (*loop_fd_fn)(void *arg, int fd, uint32_t events);
typedef void (*loop_timer_fn)(void *arg);
typedef void (*loop_signal_fn)(void *arg, int signo);

int loop_new(struct loop **ret);
void loop_free(struct loop *loop);

/* The loop does not own @fd: remove the watch first, then close it. @ret may be NULL (the watch is then freed with the
 * loop). 0 or -errno. */
int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg, struct loop_watch **ret);
int loop_change_fd(struct loop_watch *watch, uint32_t events);

/* Makes a timer, disarmed at first. */
int loop_add_timer(struct loop *loop, loop_timer_fn fn, void *arg, struct loop_watch **ret);

/* Fires @first_ns from now, then each @interval_ns (0: once). @first_ns 0 disarms. */
int loop_set_timer(struct loop_watch *watch, uint64_t first_ns, uint64_t interval_ns);

/* Blocks the signals of @set for the calling thread (call before threads start) and delivers them here. @ret may
 * be NULL. */
int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn fn, void *arg, struct loop_watch **ret);

/* Accepts NULL. Closes the descriptors that the loop opened itself. */
void loop_remove(struct loop_watch *watch);

/* Runs until loop_stop. 0 or -errno. */
int loop_run(struct loop *loop);

/* One round: waits at most @timeout_ms (-1: for ever) and calls back the watches that are ready. 0 or -errno. */
int loop_step(struct loop *loop, int timeout_ms);

/* May be called from a callback; loop_run then returns. */
void loop_stop(struct loop *loop);

/*
 * Has @work->fn called once on the loop's thread, soon; in the order of the posts. Any thread; cannot fail. @work is the
 * loop's until the call (fn may free it or post it again). Work that still waits at loop_free() is not called.
 */
void loop_post(struct loop *loop, struct loop_work *work);

/* The epoll descriptor, to nest this loop in another. */
int loop_fd(const struct loop *loop);

#endif
