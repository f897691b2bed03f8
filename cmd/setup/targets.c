/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor for each process or thread, readable when it has ended (pidfd_open(2)). There is none for pids of another
 * namespace than ours: then /proc is looked at now and then.
 */
#include "cmd/setup/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/options/config.h"

enum { LOOK_MS = 500 };
enum { PIDFD_OF_THREAD = O_EXCL }; /* PIDFD_THREAD (linux/pidfd.h, 6.9) */

struct target {
	struct targets *all;
	struct loop_watch *watch;
	int fd; /* -1: none */
	uint32_t id;
};

static void end(struct target *t)
{
	loop_remove(t->watch);
	t->watch = NULL;
	if (--t->all->alive == 0)
		t->all->on_end(t->all->arg);
}

static void on_end(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	end(arg);
}

/* Gone, or a zombie that its parent has not waited for (proc_pid_stat(5)). */
static bool has_ended(uint32_t id)
{
	char path[PROC_PATH_BYTES], text[512];
	ssize_t len = io_read_text(AT_FDCWD, proc_path(path, id, "stat"), text, sizeof(text));
	const char *state;

	if (len <= 0)
		return true;
	state = strrchr(text, ')'); /* behind the name, which may hold anything */
	return state && (!strncmp(state, ") Z", 3) || !strncmp(state, ") X", 3));
}

static void on_look(void *arg)
{
	struct target *t = arg;

	if (has_ended(t->id))
		end(t);
}

static int look_at(struct target *t, struct loop *loop)
{
	int err = loop_add_timer(loop, on_look, t, &t->watch);

	t->all->alive++;
	return err ? err : loop_set_timer(t->watch, LOOK_MS * NSEC_PER_MSEC, LOOK_MS * NSEC_PER_MSEC);
}

/* A process that has ended already needs no watching. */
static int watch(struct targets *all, struct loop *loop, uint32_t id, unsigned flags)
{
	struct target *t = &all->items[all->count++];

	*t = (struct target){ .all = all, .fd = -1, .id = id };
	if (!proc_root_is_ours())
		return look_at(t, loop);
	t->fd = pidfd_open((pid_t)id, flags);
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
