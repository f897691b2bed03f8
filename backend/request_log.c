/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of entries under a lock. */
#include "backend/request_log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { KEPT = 100 };

struct request_log {
	pthread_mutex_t lock;
	struct request_entry entries[KEPT];
	unsigned count, next; /* next: the one to be written, the oldest when the ring is full */
};

struct request_log *request_log_new(void)
{
	struct request_log *log = calloc(1, sizeof(*log));

	if (log)
		pthread_mutex_init(&log->lock, NULL);
	return log;
}

void request_log_free(struct request_log *log)
{
	if (!log)
		return;
	pthread_mutex_destroy(&log->lock);
	free(log);
}

void request_log_add(struct request_log *log, const char *path, unsigned status, uint64_t bytes)
{
	struct request_entry *e;

	pthread_mutex_lock(&log->lock);
	e = &log->entries[log->next];
	log->next = (log->next + 1) % KEPT;
	log->count += log->count < KEPT;
	e->time_ns = clock_unix_ns();
	e->status = status;
	e->bytes = bytes;
	snprintf(e->path, sizeof(e->path), "%s", path);
	pthread_mutex_unlock(&log->lock);
}

void request_log_each(struct request_log *log, void (*fn)(void *arg, const struct request_entry *e), void *arg)
{
	pthread_mutex_lock(&log->lock);
	for (unsigned i = 0; i < log->count; i++)
		fn(arg, &log->entries[(log->next + KEPT - log->count + i) % KEPT]);
	pthread_mutex_unlock(&log->lock);
}
