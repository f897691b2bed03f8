/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor for each process or thread, readable when it has ended (pidfd_open(2)). */
#include "cmd/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "cmd/config.h"

enum { PIDFD_OF_THREAD = O_EXCL }; /* PIDFD_THREAD (linux/pidfd.h, 6.9) */

struct target {
	struct targets *all;
	struct loop_watch *watch;
	int fd;
};

static void on_end(void *arg, int fd, uint32_t events)
{
	struct target *t = arg;

	(void)fd;
	(void)events;
	loop_remove(t->watch);
	t->watch = NULL;
	if (--t->all->alive == 0)
		t->all->on_end(t->all->arg);
}

/* What has ended already needs no watching. */
static int watch(struct targets *all, struct loop *loop, uint32_t id, unsigned flags)
{
	struct target *t = &all->items[all->count++];

	*t = (struct target){ .all = all, .fd = pidfd_open((pid_t)id, flags) };
	if (t->fd < 0)
		return errno == ESRCH ? 0 : -errno;
	all->alive++;
	return loop_add_fd(loop, t->fd, EPOLLIN, on_end, t, &t->watch);
}

int targets_watch(struct targets *t, const struct config *config, struct loop *loop, void (*fn)(void *arg), void *arg)
{
	size_t count = config->pids.count + config->tids.count;
	int err = 0;

	*t = (struct targets){ .items = calloc(count + 1, sizeof(*t->items)), .on_end = fn, .arg = arg };
	if (!t->items)
		return -ENOMEM;
	for (size_t i = 0; i < config->pids.count && !err; i++)
		err = watch(t, loop, config->pids.items[i], 0);
	for (size_t i = 0; i < config->tids.count && !err; i++) {
		err = watch(t, loop, config->tids.items[i], PIDFD_OF_THREAD);
		if (err == -EINVAL) { /* as if it lived for ever */
			t->alive++;
			err = 0;
		}
	}
	if (err)
		log_error("cannot watch the processes of --pid: %s", strerror(-err));
	else if (count && !t->alive) /* while we were starting */
		fn(arg);
	return err;
}

void targets_fini(struct targets *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->items[i].watch)
			loop_remove(t->items[i].watch);
		if (t->items[i].fd >= 0)
			close(t->items[i].fd);
	}
	free(t->items);
	*t = (struct targets){ 0 };
}
