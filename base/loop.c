/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop. Everything belongs to the thread that runs it, but for the list of posted work, which has a lock and wakes
 * the loop through an eventfd. A watch is in the loop's live list until loop_remove; one
 * that is removed while callbacks run moves to the dead list and is freed when the outermost round ends, because events of
 * that round may still point to it. So a removed watch is never called again, and its memory never reused in between.
 */
#include "base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVENTS_PER_ROUND = 64 };

enum watch_kind { WATCH_FD, WATCH_TIMER, WATCH_SIGNALS };

struct loop_watch {
	struct loop *loop;
	struct loop_watch *next, **link; /* link: the pointer that leads to this watch; NULL once removed */
	enum watch_kind kind;
	int fd; /* owned unless kind is WATCH_FD */
	union {
		loop_fd_fn fd_fn;
		loop_timer_fn timer_fn;
		loop_signal_fn signal_fn;
	};
	void *arg;
};

struct loop {
	int epoll_fd;
	bool is_stopped;
	unsigned depth; /* rounds under way: a callback may call loop_step */
	struct loop_watch *live, *dead;
	int posted_fd; /* readable while @posted is not empty */
	pthread_mutex_t lock;
	struct loop_work *posted, **posted_end; /* under the lock */
};

/* Takes @fd over when @kind owns descriptors, and then closes it on failure too. */
static int add_watch(struct loop *loop, enum watch_kind kind, int fd, uint32_t events, struct loop_watch **ret)
{
	struct loop_watch *w = calloc(1, sizeof(*w));
	struct epoll_event ev = { .events = events, .data.ptr = w };
	int err = -ENOMEM;

	if (!w)
		goto fail;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		err = -errno;
		goto fail;
	}
	w->loop = loop;
	w->kind = kind;
	w->fd = fd;
	w->next = loop->live;
	w->link = &loop->live;
	if (w->next)
		w->next->link = &w->next;
	loop->live = w;
	*ret = w;
	return 0;
fail:
	if (kind != WATCH_FD)
		close(fd);
	free(w);
	return err;
}

int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg, struct loop_watch **ret)
{
	struct loop_watch *w;
	int err = add_watch(loop, WATCH_FD, fd, events, &w);

	if (err)
		return err;
	w->fd_fn = fn;
	w->arg = arg;
	if (ret)
		*ret = w;
	return 0;
}

static void run_posted(void *arg, int fd, uint32_t events)
{
	struct loop *loop = arg;
	struct loop_work *work, *next;
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
	(void)events;
	pthread_mutex_lock(&loop->lock);
	work = loop->posted;
	loop->posted = NULL;
	loop->posted_end = &loop->posted;
	pthread_mutex_unlock(&loop->lock);
	for (; work; work = next) {
		next = work->next;
		work->fn(work);
	}
}

void loop_post(struct loop *loop, struct loop_work *work)
{
	bool was_empty;

	work->next = NULL;
	pthread_mutex_lock(&loop->lock);
	was_empty = !loop->posted;
	*loop->posted_end = work;
	loop->posted_end = &work->next;
	if (was_empty) /* inside the lock: once the loop has the work, it may be freed at any time */
		eventfd_write(loop->posted_fd, 1);
	pthread_mutex_unlock(&loop->lock);
}

int loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err;

	if (!loop)
		return -ENOMEM;
	pthread_mutex_init(&loop->lock, NULL);
	loop->posted_end = &loop->posted;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->posted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = loop->epoll_fd < 0 || loop->posted_fd < 0
		      ? -errno
		      : loop_add_fd(loop, loop->posted_fd, EPOLLIN, run_posted, loop, NULL);
	if (err) {
		loop_free(loop);
		return err;
	}
	*ret = loop;
	return 0;
}

int loop_change_fd(struct loop_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) < 0 ? -errno : 0;
}

int loop_add_timer(struct loop *loop, loop_timer_fn fn, void *arg, struct loop_watch **ret)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct loop_watch *w;
	int err;

	if (fd < 0)
		return -errno;
	err = add_watch(loop, WATCH_TIMER, fd, EPOLLIN, &w);
	if (err)
		return err;
	w->timer_fn = fn;
	w->arg = arg;
	*ret = w;
	return 0;
}

static struct timespec ns_to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

int loop_set_timer(struct loop_watch *w, uint64_t first_ns, uint64_t interval_ns)
{
	struct itimerspec its = { .it_value = ns_to_timespec(first_ns), .it_interval = ns_to_timespec(interval_ns) };

	return timerfd_settime(w->fd, 0, &its, NULL) < 0 ? -errno : 0;
}

int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn fn, void *arg, struct loop_watch **ret)
{
	struct loop_watch *w;
	int fd, err;

	err = -pthread_sigmask(SIG_BLOCK, set, NULL);
	if (err)
		return err;
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = add_watch(loop, WATCH_SIGNALS, fd, EPOLLIN, &w);
	if (err)
		return err;
	w->signal_fn = fn;
	w->arg = arg;
	if (ret)
		*ret = w;
	return 0;
}

static void free_dead(struct loop *loop)
{
	while (loop->dead) {
		struct loop_watch *w = loop->dead;

		loop->dead = w->next;
		free(w);
	}
}

void loop_remove(struct loop_watch *w)
{
	struct loop *loop;

	if (!w)
		return;
	loop = w->loop;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	if (w->kind != WATCH_FD)
		close(w->fd);
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->link = NULL;
	w->next = loop->dead;
	loop->dead = w;
	if (!loop->depth)
		free_dead(loop);
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->live)
		loop_remove(loop->live);
	free_dead(loop);
	if (loop->posted_fd >= 0)
		close(loop->posted_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

static void call_back(struct loop_watch *w, uint32_t events)
{
	struct signalfd_siginfo info;
	uint64_t expirations;

	switch (w->kind) {
	case WATCH_FD:
		w->fd_fn(w->arg, w->fd, events);
		break;
	case WATCH_TIMER:
		/* Nothing to read: an earlier callback of this round set the timer anew. */
		if (read(w->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
			w->timer_fn(w->arg);
		break;
	case WATCH_SIGNALS:
		while (w->link && read(w->fd, &info, sizeof(info)) == sizeof(info))
			w->signal_fn(w->arg, (int)info.ssi_signo);
		break;
	}
}

int loop_step(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_ROUND];
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_ROUND, timeout_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	loop->depth++;
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = events[i].data.ptr;

		if (w->link)
			call_back(w, events[i].events);
	}
	if (--loop->depth == 0)
		free_dead(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	int err = 0;

	while (!loop->is_stopped && !err)
		err = loop_step(loop, -1);
	loop->is_stopped = false;
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->is_stopped = true;
}

int loop_fd(const struct loop *loop)
{
	return loop->epoll_fd;
}
