/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into hearth, what a test cannot order from a machine. KILL_FILE=END and KILL_AT=N: it is killed within the Nth
 * write to a file whose path ends so, half of which is written. LUCK=FOLDER: while there is a file FOLDER/errno, writes to a
 * store fail with the number in it; FOLDER/clock has the seconds by which the wall clock is wrong. SLOW_FILE=END and
 * SLOW_MS=N: each write to a file whose path ends so takes N ms.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The number in the file @name of $LUCK; 0: there is none. */
static long luck(const char *name)
{
	const char *folder = getenv("LUCK");
	char path[4096], text[32];
	ssize_t len;
	int fd;

	if (!folder)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = 0;
	return strtol(text, NULL, 10);
}

/* Whether what @fd is open on ends in @end. */
static bool is_file(int fd, const char *end)
{
	char link[64], path[4096];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = end ? readlink(link, path, sizeof(path) - 1) : -1;
	if (len < (ssize_t)(end ? strlen(end) : 0))
		return false;
	path[len] = 0;
	return !strcmp(path + len - strlen(end), end);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	static ssize_t (*real)(int fd, const void *data, size_t size, off64_t at);
	static atomic_long count;
	const char *kill_at = getenv("KILL_AT");
	long error;

	if (!real)
		real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
	if (kill_at && is_file(fd, getenv("KILL_FILE")) && atomic_fetch_add(&count, 1) + 1 == strtol(kill_at, NULL, 10)) {
		(void)real(fd, data, size / 2, at);
		kill(getpid(), SIGKILL);
	}
	error = is_file(fd, "/profiles.db") || is_file(fd, "/profiles.db-wal") ? luck("errno") : 0;
	if (error) {
		errno = (int)error;
		return -1;
	}
	return real(fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*real)(int fd, const void *data, size_t size);
	const char *slow = getenv("SLOW_FILE"), *ms = getenv("SLOW_MS");

	if (!real)
		real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	if (slow && ms && is_file(fd, slow))
		usleep((useconds_t)(strtoul(ms, NULL, 10) * 1000));
	return real(fd, data, size);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t id, struct timespec * ts);
	int status;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	status = real(id, ts);
	if (!status && id == CLOCK_REALTIME)
		ts->tv_sec += luck("clock");
	return status;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;
	int status = clock_gettime(CLOCK_REALTIME, &ts);

	(void)zone;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return status;
}
