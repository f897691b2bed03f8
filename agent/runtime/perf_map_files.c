/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is looked at before it is opened (O_PATH), so that no device or pipe is touched; openat2 refuses links of every
 * kind and files of other file systems that are mounted there. A program that profilers are to read cannot do its own harm
 * with the map, that is what the limits of the readers are for; here others are kept from speaking for it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/runtime/perf_map_files.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/stat_start.h"

enum {
	TICK_MS = 10,	      /* of /proc/PID/stat: USER_HZ is 100 everywhere */
	START_SLACK_MS = 20,  /* times of files are those of the last timer tick, up to 10 ms ago; so are times of starts */
	CLOCK_STEP_MS = 1000, /* the wall clock may have been set by that much since, where the process holds its map open */
	MAX_DESCRIPTORS = 4096 /* that are looked at */
};

/* When it started, in milliseconds since boot. */
static int read_start(uint32_t pid, uint64_t *ms_ret)
{
	uint64_t ticks;
	char line[1024];
	ssize_t len = proc_read_text(pid, pid, "stat", line, sizeof(line));

	if (len < 0)
		return len == -ENOENT ? -ESRCH : (int)len;
	if (stat_start_ticks(line, &ticks))
		return -ESRCH;
	*ms_ret = ticks * TICK_MS;
	return 0;
}

/* "Uid:" and "NSpid:" of /proc/PID/status (proc_pid_status(5)). */
static int read_status(uint32_t pid, struct jit_identity *who)
{
	char path[PROC_PATH_BYTES], line[512];
	AUTO_FCLOSE FILE *f = fopen(proc_path(path, pid, "status"), "re");
	int found = 0;

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

int perf_map_identity_read(uint32_t pid, uint64_t start_boottime_ns, struct jit_identity *ret)
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
	boottime_ns -= start_ms * NSEC_PER_MSEC; /* its age */
	ret->start_mono_ns = clock_mono_ns() > boottime_ns ? clock_mono_ns() - boottime_ns : 0;
	ret->task_pid = pid;
	return 0;
}

/* How a process holds its map. */
enum holding { HELD_NOT, HELD_TO_WRITE, HELD_TO_APPEND };

/* The flags of descriptor @name, "flags:" of /proc/PID/fdinfo (proc_pid_fdinfo(5)). */
static int read_flags(uint32_t pid, const char *name)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[64], line[128];
	unsigned flags = 0;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%.20s", pid, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	return (int)flags;
}

/* Links are read and not followed, so nobody's file system is asked. */
static enum holding find_holding(uint32_t pid, const char *map)
{
	enum holding found = HELD_NOT;
	char path[PATH_MAX], target[PATH_MAX], name[32];
	unsigned left = MAX_DESCRIPTORS;
	const struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	folder = pid ? opendir(path) : NULL;
	while (folder && found != HELD_TO_APPEND && left-- && (entry = readdir(folder))) {
		const char *slash;
		int flags;

		snprintf(name, sizeof(name), "fd/%.20s", entry->d_name);
		if (proc_read_link(pid, pid, name, false, target, sizeof(target)) == -EBUSY)
			break;
		slash = strrchr(target, '/');
		if (!slash || strcmp(slash + 1, map) != 0)
			continue;
		flags = read_flags(pid, entry->d_name);
		if (flags & O_APPEND)
			found = HELD_TO_APPEND;
		else if ((flags & O_ACCMODE) != O_RDONLY)
			found = HELD_TO_WRITE;
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The time when the file was made; now, if its file system does not say. */
static uint64_t born_ns(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME))
		return UINT64_MAX / 2;
	return (uint64_t)st.stx_btime.tv_sec * NSEC_PER_SEC + st.stx_btime.tv_nsec;
}

/* Is @time_ns more than @slack_ms before @who started? */
static bool is_before(uint64_t time_ns, unsigned slack_ms, const struct jit_identity *who)
{
	return time_ns + slack_ms * NSEC_PER_MSEC < who->start_unix_ns;
}

/* A file that was there before the process, and was written since: the process made it anew, or it appends to another's. */
static int check_times(int fd, const struct stat *st, const char *map, const struct jit_identity *who)
{
	uint64_t written_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;

	if (is_before(written_ns, CLOCK_STEP_MS, who))
		return -ESTALE;
	if (is_before(written_ns, START_SLACK_MS, who) && find_holding(who->task_pid, map) != HELD_TO_WRITE)
		return -ESTALE;
	if (is_before(born_ns(fd), START_SLACK_MS, who) && find_holding(who->task_pid, map) == HELD_TO_APPEND)
		return -EEXIST;
	return 0;
}

static int check(int fd, const char *map, const struct jit_identity *who)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_nlink > 1)
		return -EMLINK;
	if (st.st_uid && st.st_uid != who->uid)
		return -EACCES;
	return check_times(fd, &st, map, who);
}

int perf_map_file_open(int folder, uint32_t pid, const struct jit_identity *who)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	AUTO_CLOSE int found = -1;
	char path[40];
	int fd, error;

	snprintf(path, sizeof(path), "perf-%u.map", pid);
	found = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	if (found < 0)
		return errno == ELOOP || errno == EXDEV ? -EINVAL : -errno;
	error = check(found, path, who);
	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool perf_map_dump_is_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *p = name + 4;

	if (strncmp(name, "jit-", 4) != 0)
		return false;
	while (isdigit((unsigned char)*p))
		p++;
	return p > name + 4 && (!strcmp(p, ".dump") || !strcmp(p, ".dump (deleted)"));
}
