/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are given away through their descriptors, opened without following a link, and only where nothing else leads to
 * them: a file with two names may be somebody's trap for us.
 */
#include "cmd/halves/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/log.h"

/* Beyond the ranges that systemd gives to dynamic users and containers (systemd's docs/UIDS-GIDS.md: 524288..1879048191),
 * and below 2^31, where some programs take numbers for negative ones. */
enum { FIRST_DERIVED = 1879048192, DERIVED_MASK = 0x0fffffff, DEEPEST = 3 };

bool owner_may_change(void)
{
	const uint64_t needed = 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_CHOWN;

	return geteuid() == 0 && !(needed & ~capabilities_effective());
}

/* --- who --- */

static uid_t derive(const char *path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *c = path; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	return FIRST_DERIVED + (hash & DERIVED_MASK);
}

/* Is the number @uid one that this user namespace has? */
static bool is_mapped(uid_t uid)
{
	AUTO_FCLOSE FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, count;

	while (map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
		if (uid >= inside && uid - inside < count)
			return true;
	return !map;
}

struct owner owner_for(const char *folder)
{
	struct owner owner = { .is_decided = true, .uid = geteuid(), .gid = getegid() };
	const struct passwd *hearth;
	struct stat st;

	if (!owner_may_change())
		return owner;
	hearth = folder && !stat(folder, &st) && st.st_uid ? NULL : getpwnam("hearth");
	if (folder && !stat(folder, &st) && st.st_uid) {
		owner.uid = st.st_uid;
		owner.gid = st.st_gid;
	} else if (hearth && hearth->pw_uid) {
		owner.uid = hearth->pw_uid;
		owner.gid = hearth->pw_gid;
	} else {
		AUTO_FREE char *real = folder ? realpath(folder, NULL) : NULL;

		owner.uid = derive(real ? real : folder ? folder : "/var/lib/hearth");
		owner.gid = owner.uid;
	}
	owner.changes = is_mapped(owner.uid);
	return owner;
}

/* --- folders --- */

static int make_folders(const char *path)
{
	AUTO_FREE char *part = strdup(path);

	if (!part)
		return -ENOMEM;
	for (char *slash = part + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		if (mkdir(part, 0700) && errno != EEXIST && errno != EROFS)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

/* A spool's folder of one collector has a lock in it. */
static bool holds_lock(int folder, const char *name)
{
	AUTO_CLOSE int below = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return below >= 0 && !fstatat(below, "lock", &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static bool is_one_of(const char *name, const char *const names[])
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names;
}

/* May what is called @name in @folder be of a store, a spool or a cache of debug files? */
static bool is_known(int folder, const char *name)
{
	static const char profiles[] = "profiles.db", signals[] = "signals.db";
	static const char *const files[] = { "lock",	     "reserve",		 "cache_clean_interval_s",
					     "cache_miss_s", "max_unused_age_s", NULL };
	static const char *const folders[] = { "symbols", "debuginfod", "lost+found", NULL };
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (S_ISREG(st.st_mode))
		return !strncmp(name, profiles, strlen(profiles)) || !strncmp(name, signals, strlen(signals)) ||
		       is_one_of(name, files);
	return S_ISDIR(st.st_mode) &&
	       (is_one_of(name, folders) || !name[strspn(name, "0123456789abcdef")] || holds_lock(folder, name));
}

/* Is the folder one of hearth's, with nothing else in it, as far as names tell? */
static bool is_ours(int folder)
{
	AUTO_CLOSE int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	bool is = dir;

	if (!dir)
		return false;
	copy = -1;
	while (is && (e = readdir(dir)))
		is = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || is_known(folder, e->d_name);
	closedir(dir);
	return is;
}

static void give(int fd, const struct stat *st, const struct owner *owner, unsigned *count)
{
	if (st->st_uid == owner->uid || st->st_uid || (S_ISREG(st->st_mode) && st->st_nlink != 1))
		return;
	if (fchown(fd, owner->uid, owner->gid))
		log_warn("a file of the store stays root's: %s", strerror(errno));
	else
		++*count;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the folder @fd one step below @above, on the same file system? A way up and a mounted one are not. */
static bool is_below(int fd, const struct stat *st, const struct stat *above)
{
	struct stat parent;

	return st->st_dev == above->st_dev && !is_same(st, above) && !fstatat(fd, "..", &parent, 0) &&
	       is_same(&parent, above);
}

/* Gives what is in @folder, and below it, to @owner. */
static void give_all(int folder, const struct owner *owner, int depth, unsigned *count)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	struct stat here;

	if (!dir && copy >= 0)
		close(copy);
	if (dir && fstat(folder, &here)) {
		closedir(dir);
		return;
	}
	while (dir && (e = readdir(dir))) {
		AUTO_CLOSE int fd = -1;
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		fd = openat(folder, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
			continue;
		if (S_ISDIR(st.st_mode) && !is_below(fd, &st, &here))
			continue;
		if (S_ISDIR(st.st_mode) && depth < DEEPEST)
			give_all(fd, owner, depth + 1, count);
		give(fd, &st, owner, count);
	}
	if (dir)
		closedir(dir);
}

int owner_take_folder(const struct owner *owner, const char *path)
{
	int err = make_folders(path);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned count = 0;
	struct stat st;

	if (fd < 0)
		return err ? err : -errno;
	if (!owner->changes)
		return MOVE_FD(fd);
	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid == owner->uid) {
		give_all(fd, owner, 0, &count);
		return MOVE_FD(fd);
	}
	if (st.st_uid || !is_ours(fd) || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	give_all(fd, owner, 0, &count);
	if (fchown(fd, owner->uid, owner->gid))
		return -errno;
	if (count)
		log_info("%s was root's; it belongs to the user %u now, who listens and keeps for hearth", path,
			 (unsigned)owner->uid);
	return MOVE_FD(fd);
}

/* --- becoming --- */

int owner_become(const struct owner *owner)
{
	int err;

	if (owner->changes && (setgroups(0, NULL) || setresgid(owner->gid, owner->gid, owner->gid) ||
			       setresuid(owner->uid, owner->uid, owner->uid)))
		return -errno;
	err = capabilities_keep(0);
	return err ? err : prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}
