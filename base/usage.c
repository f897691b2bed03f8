/* SPDX-License-Identifier: Apache-2.0 */
/* The other half's numbers lie below a lock, so that they belong together. */
#include "base/usage.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct usage other;

static uint64_t rusage_ns(int who)
{
	struct rusage r;

	if (getrusage(who, &r))
		return 0;
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

struct usage usage_of_process(void)
{
	AUTO_FCLOSE FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long pages, resident;
	struct usage u = { .cpu_ns = rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN), .pid = getpid() };

	if (statm && fscanf(statm, "%lu %lu", &pages, &resident) == 2)
		u.resident_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return u;
}

struct usage usage_of_other(void)
{
	struct usage u;

	pthread_mutex_lock(&lock);
	u = other;
	pthread_mutex_unlock(&lock);
	return u;
}

void usage_set_other(const struct usage *u)
{
	pthread_mutex_lock(&lock);
	other = *u;
	pthread_mutex_unlock(&lock);
}
