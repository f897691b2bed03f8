/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs are run from the folder, perhaps by root, so whoever may change it, or a folder above it, could have them run
 * others. Each folder on the way belongs to this user or to root, and is writable for nobody else; one with the sticky bit,
 * as /tmp, may be, as there nobody renames the folders of others.
 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct why {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int because(const struct why *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->size, format, args);
	va_end(args);
	return -1;
}

/* Whether @stat is of a folder that nobody but this user and root may change. Root is who has "/", by whatever number: in a
 * user namespace the machine's root may have another one. */
static bool is_ours(const struct stat *stat)
{
	struct stat top;

	if (stat->st_uid != geteuid() && (lstat("/", &top) || stat->st_uid != top.st_uid))
		return false;
	return S_ISDIR(stat->st_mode) && (!(stat->st_mode & (S_IWGRP | S_IWOTH)) || stat->st_mode & S_ISVTX);
}

/* Looks at each folder of @path, which has no links, from the top down. */
static int look_at_way(const char *path, const struct why *why)
{
	char part[PATH_MAX];
	struct stat stat;

	for (size_t len = 1; len <= strlen(path); len++) {
		if (len > 1 && path[len] != '/' && path[len])
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		if (lstat(part, &stat))
			return because(why, "%s: %s", part, strerror(errno));
		if (!is_ours(&stat))
			return because(why, "%s: others than you and root may change it", part);
	}
	return 0;
}

/* Opens the folder @path itself, whose parent is trusted; makes it where it is missing. */
static int open_own(const char *path, const struct why *why)
{
	struct statvfs fs;
	struct stat stat;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return because(why, "%s: %s", path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return because(why, "%s: %s", path, strerror(errno));
	if (fstat(fd, &stat) || fstatvfs(fd, &fs))
		because(why, "%s: %s", path, strerror(errno));
	else if (stat.st_uid != geteuid() || stat.st_mode & 077)
		because(why, "%s: it is not yours alone", path);
	else if (fs.f_flag & ST_NOEXEC)
		because(why, "%s: no programs may run there (noexec)", path);
	else
		return fd;
	close(fd);
	return -1;
}

/* The folder above the @number'th; false: there is none. */
static bool base_of(int number, char base_ret[static PATH_MAX])
{
	static const struct {
		const char *variable, *below;
	} bases[PLACES] = { { "XDG_CACHE_HOME", "" }, { "HOME", "/.cache" }, { "TMPDIR", "" }, { NULL, "/tmp" } };
	const char *value = bases[number].variable ? getenv(bases[number].variable) : "";

	if (!value || (bases[number].variable && value[0] != '/'))
		return false;
	return snprintf(base_ret, PATH_MAX, "%s%s", value, bases[number].below) < PATH_MAX;
}

int place_open(int number, char path_ret[static PATH_MAX], char *why_ret, size_t why_size)
{
	const struct why why = { why_ret, why_size };
	char base[PATH_MAX], real[PATH_MAX];
	int len;

	why_ret[0] = '\0';
	if (!base_of(number, base))
		return -1;
	if (number < 2)
		mkdir(base, 0700); /* a cache is made where it is missing; what is wrong with it, is said next */
	if (!realpath(base, real))
		return because(&why, "%s: %s", base, strerror(errno));
	if (look_at_way(real, &why))
		return -1;
	if (number < 2)
		len = snprintf(path_ret, PATH_MAX, "%s/hearth-appimage", real);
	else
		len = snprintf(path_ret, PATH_MAX, "%s/hearth-appimage-%u", real, (unsigned)geteuid());
	return len < PATH_MAX ? open_own(path_ret, &why) : because(&why, "%s: the path is too long", base);
}
