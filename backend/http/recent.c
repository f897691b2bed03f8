/* SPDX-License-Identifier: Apache-2.0 */
/* A ring below a lock: the receivers' thread adds, the query thread reads. One for the process, as its log is. */
#include "backend/http/recent.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"

enum { KEPT = 50 };

static struct {
	pthread_mutex_t lock;
	struct recent_request ring[KEPT];
	uint64_t count; /* ever added; the next one goes to count % KEPT */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

void recent_add(const char *path, unsigned status, uint64_t bytes)
{
	pthread_mutex_lock(&kept.lock);
	struct recent_request *r = &kept.ring[kept.count++ % KEPT];

	r->unix_ns = clock_unix_ns();
	r->status = status;
	r->bytes = bytes;
	snprintf(r->path, sizeof(r->path), "%s", path);
	pthread_mutex_unlock(&kept.lock);
}

size_t recent_list(struct recent_request *requests, size_t max)
{
	pthread_mutex_lock(&kept.lock);
	uint64_t n = kept.count < KEPT ? kept.count : KEPT;

	if (n > max)
		n = max;
	for (uint64_t i = 0; i < n; i++)
		requests[i] = kept.ring[(kept.count - n + i) % KEPT];
	pthread_mutex_unlock(&kept.lock);
	return n;
}
