/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout, names of settings and their defaults are those of elfutils' client (debuginfod_find_debuginfo(3), "CACHE"), which
 * may use the folder at the same time: so a file is written under another name and then renamed, and cleaning looks at when
 * a file was last read. The files cache_miss_s, cache_clean_interval_s and max_unused_age_s hold a number of seconds each;
 * cleaning marks the second by its time of change.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "symbols/find/debuginfod_cache.h"

enum { FOLDER_MODE = 0700, MISS_S = 600, CLEAN_INTERVAL_S = 24 * 3600, MAX_UNUSED_S = 7 * 24 * 3600 };

#define CLEAN_FILE "cache_clean_interval_s"

static void cleanup_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* --- the folder --- */

/* Makes @path and what is above it. */
static int make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, FOLDER_MODE) && errno != EEXIST ? -errno : 0;
}

/* The path the environment tells; NULL: none, or out of memory. */
static char *find_path(void)
{
	const char *set = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");
	char *path = NULL;

	if (set && *set)
		return strdup(set);
	if (home && *home) {
		if (asprintf(&path, "%s/.debuginfod_client_cache", home) < 0)
			return NULL;
		if (access(path, F_OK) == 0) /* where older clients had it */
			return path;
		free(path);
	}
	if (xdg && *xdg)
		return asprintf(&path, "%s/debuginfod_client", xdg) < 0 ? NULL : path;
	return home && *home && asprintf(&path, "%s/.cache/debuginfod_client", home) >= 0 ? path : NULL;
}

int debuginfod_cache_open(void)
{
	AUTO_FREE char *path = find_path();
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int error;

	if (!path || path[0] != '/')
		return -ENOENT;
	error = make_folders(path);
	if (error)
		return error;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	/* The folder's owner could lead us anywhere by links. */
	return st.st_uid == geteuid() ? MOVE_FD(fd) : -EPERM;
}

/* The number of seconds in the file @name. */
static long read_setting(int folder, const char *name, long otherwise)
{
	char text[32];
	ssize_t n = io_read_text(folder, name, text, sizeof(text));
	uint64_t value;

	if (n <= 0)
		return otherwise;
	text[strcspn(text, " \n")] = '\0';
	return parse_u64(text, &value) || value > INT32_MAX ? otherwise : (long)value;
}

long debuginfod_cache_miss_s(int folder)
{
	return read_setting(folder, "cache_miss_s", MISS_S);
}

/* --- files --- */

static void form_name(char name[DEBUGINFOD_NAME_BYTES], const char *build_id, const char *file)
{
	snprintf(name, DEBUGINFOD_NAME_BYTES, "%s/%s", build_id, file);
}

int debuginfod_cache_find(int folder, const char *build_id)
{
	char name[DEBUGINFOD_NAME_BYTES];
	struct stat st;
	AUTO_CLOSE int fd = -1;

	form_name(name, build_id, "debuginfo");
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? -ENODATA : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	if (st.st_size > 0)
		return MOVE_FD(fd);
	if (time(NULL) - st.st_mtime <= debuginfod_cache_miss_s(folder))
		return -ENOENT;
	unlinkat(folder, name, 0);
	return -ENODATA;
}

int debuginfod_cache_create(int folder, const char *build_id, char name[DEBUGINFOD_NAME_BYTES])
{
	char file[32];
	int fd;

	snprintf(file, sizeof(file), "debuginfo.hearth%d", getpid());
	form_name(name, build_id, file);
	if (mkdirat(folder, build_id, FOLDER_MODE) && errno != EEXIST)
		return -errno;
	unlinkat(folder, name, 0);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int debuginfod_cache_keep(int folder, const char *build_id, const char *name)
{
	char final[DEBUGINFOD_NAME_BYTES];

	form_name(final, build_id, "debuginfo");
	return renameat(folder, name, folder, final) ? -errno : 0;
}

void debuginfod_cache_drop(int folder, const char *build_id, const char *name)
{
	unlinkat(folder, name, 0);
	unlinkat(folder, build_id, AT_REMOVEDIR); /* where nothing else is in it */
}

void debuginfod_cache_miss(int folder, const char *build_id)
{
	AUTO_CLOSE int fd = -1;
	char name[DEBUGINFOD_NAME_BYTES];

	form_name(name, build_id, "debuginfo");
	if (mkdirat(folder, build_id, FOLDER_MODE) == 0 || errno == EEXIST)
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* --- cleaning --- */

/* Removes from the folder @name what was last read before @oldest, and then itself if it is empty. */
static void clean_build_id(int folder, const char *name, time_t oldest)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO(cleanup_dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    st.st_atime < oldest)
			unlinkat(dirfd(dir), entry->d_name, 0);
	unlinkat(folder, name, AT_REMOVEDIR);
}

/* Is it long enough ago? If so, it is now, for everybody. */
static int begin_cleaning(int folder)
{
	AUTO_CLOSE int fd = openat(folder, CLEAN_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_size == 0) {
		dprintf(fd, "%d", CLEAN_INTERVAL_S);
		return 0;
	}
	if (time(NULL) - st.st_mtime < read_setting(folder, CLEAN_FILE, CLEAN_INTERVAL_S))
		return -EAGAIN;
	return futimens(fd, NULL) ? -errno : 0;
}

void debuginfod_cache_clean(int folder)
{
	time_t oldest = time(NULL) - read_setting(folder, "max_unused_age_s", MAX_UNUSED_S);
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(cleanup_dir) DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir && copy >= 0)
		close(copy);
	if (!dir || begin_cleaning(folder))
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] && !entry->d_name[strspn(entry->d_name, "0123456789abcdef")])
			clean_build_id(folder, entry->d_name, oldest);
}
