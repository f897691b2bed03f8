/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While one fsync runs, acks gather for the next: no timer, no delay when there is one alone, and at most two fsyncs' time
 * for any. The list of those that gather is under the lock; the thread takes it as a whole.
 *
 * Synced bytes leave the page cache: else a file that is written for hours would fill all memory and leave other programs
 * none; and in a virtual machine a write to memory never used before takes twice the processor time of one to reused pages.
 */
#include "sinks/commit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/vec.h"

struct acks {
	struct ack **items;
	size_t count, cap;
};

struct commit {
	int fd;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct acks gathered;
	bool stop;
};

struct commit *commit_new(int fd)
{
	struct commit *c = calloc(1, sizeof(*c));

	if (!c || thread_cond_init(&c->wake)) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->fd = fd;
	return c;
}

static void *commit_main(void *arg)
{
	struct commit *c = arg;
	struct acks taken = { 0 };
	bool stop = false;

	while (!stop) {
		struct acks gathered;
		int error;

		pthread_mutex_lock(&c->lock);
		while (!c->gathered.count && !c->stop)
			thread_cond_wait(&c->wake, &c->lock, UINT64_MAX);
		gathered = c->gathered;
		c->gathered = taken;
		c->gathered.count = 0;
		taken = gathered;
		stop = c->stop;
		pthread_mutex_unlock(&c->lock);

		error = taken.count && fsync(c->fd) && errno != EINVAL && errno != EROFS ? -errno : 0;
		for (size_t i = 0; i < taken.count; i++)
			taken.items[i]->done(taken.items[i], error);
		posix_fadvise(c->fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	free(taken.items);
	return NULL;
}

static int gather(struct commit *c, struct ack *ack)
{
	struct acks *g = &c->gathered;

	if (vec_reach(&g->items, &g->cap, g->count))
		return -ENOMEM;
	g->items[g->count++] = ack;
	return 0;
}

int commit_add(struct commit *c, struct ack *ack)
{
	int error = c->running ? 0 : thread_start(&c->thread, "commit", commit_main, c);

	if (error)
		return error;
	c->running = true;
	pthread_mutex_lock(&c->lock);
	error = gather(c, ack);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	return error;
}

void commit_free(struct commit *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->running)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c->gathered.items);
	free(c);
}
