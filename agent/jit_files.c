/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is looked at before it is opened (O_PATH), so that no device or pipe is touched; openat2 refuses links of every
 * kind and files of other file systems that are mounted there. A program that profilers are to read cannot do its own harm
 * with the map, that is what the limits of the readers are for; here others are kept from speaking for it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/jit_files.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* Times of files are those of the last timer tick, and the wall clock may be corrected a little. */
enum { START_SLACK_MS = 1000, TICK_MS = 10 /* of /proc/PID/stat: USER_HZ is 100 everywhere */ };

/* When it started, in milliseconds since boot: field 22 of /proc/PID/stat. */
static int read_start(uint32_t pid, uint64_t *ms_ret)
{
	unsigned long long ticks;
	AUTO_FCLOSE FILE *f = NULL;
	char path[32], line[1024], *p;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	len = fread(line, 1, sizeof(line) - 1, f);
	line[len] = '\0';
	p = strrchr(line, ')'); /* behind the name, which may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &ticks) != 1)
		return -ESRCH;
	*ms_ret = ticks * TICK_MS;
	return 0;
}

/* "Uid:" and "NSpid:" of /proc/PID/status (proc_pid_status(5)). */
static int read_status(uint32_t pid, struct jit_identity *who)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[32], line[512];
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	who->pid = pid; /* kernels without the line have no namespaces of pids */
	while (fgets(line, sizeof(line), f)) {
		char *last = strrchr(line, '\t');

		if (last && !strncmp(line, "NSpid:", 6))
			found += sscanf(last, "%u", &who->pid);
		else if (!strncmp(line, "Uid:", 4))
			found += sscanf(line, "Uid: %*u %u", &who->uid) * 2;
	}
	return found >= 2 ? 0 : -ESRCH;
}

int jit_identity_read(uint32_t pid, uint64_t start_boottime_ns, struct jit_identity *ret)
{
	uint64_t start_ms, boottime_ns;
	struct timespec now;
	int error = read_status(pid, ret);

	if (!error)
		error = read_start(pid, &start_ms);
	if (error)
		return error;
	if (start_boottime_ns && start_boottime_ns / (TICK_MS * NSEC_PER_MSEC) != start_ms / TICK_MS)
		return -ESRCH;
	clock_gettime(CLOCK_BOOTTIME, &now);
	boottime_ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	ret->start_unix_ns = clock_unix_ns() - boottime_ns + start_ms * NSEC_PER_MSEC;
	return 0;
}

static int check(const struct stat *st, const struct jit_identity *who)
{
	uint64_t written_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;

	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	if (st->st_nlink > 1)
		return -EMLINK;
	if (st->st_uid && st->st_uid != who->uid)
		return -EACCES;
	return written_ns + START_SLACK_MS * NSEC_PER_MSEC < who->start_unix_ns ? -ESTALE : 0;
}

int jit_map_open(int folder, uint32_t pid, const struct jit_identity *who)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	AUTO_CLOSE int found = -1;
	struct stat st;
	char path[40];
	int fd, error;

	snprintf(path, sizeof(path), "perf-%u.map", pid);
	found = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	if (found < 0)
		return errno == ELOOP || errno == EXDEV ? -EINVAL : -errno;
	error = fstat(found, &st) ? -errno : check(&st, who);
	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool jit_dump_is_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *p = name + 4;

	if (strncmp(name, "jit-", 4) != 0)
		return false;
	while (isdigit((unsigned char)*p))
		p++;
	return p > name + 4 && (!strcmp(p, ".dump") || !strcmp(p, ".dump (deleted)"));
}
