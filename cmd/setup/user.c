/* SPDX-License-Identifier: Apache-2.0 */
/* The invoking user. Nothing here trusts a path: a file is changed through its descriptor, opened without following a link.
 */
#include "cmd/setup/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/parse.h"

bool user_behind_sudo(struct user *ret)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t uid, gid;

	if (!uid_text || !gid_text || parse_u64(uid_text, &uid) || parse_u64(gid_text, &gid))
		return false;
	if (!uid || uid >= UINT32_MAX || gid >= UINT32_MAX)
		return false;
	*ret = (struct user){ .uid = (uid_t)uid, .gid = (gid_t)gid };
	return true;
}

bool user_invoking(struct user *ret)
{
	return geteuid() == 0 && user_behind_sudo(ret);
}

int user_become(const struct user *user)
{
	const struct passwd *passwd = getpwuid(user->uid);
	int err = passwd ? initgroups(passwd->pw_name, user->gid) : setgroups(1, &user->gid);

	if (err || setgid(user->gid) || setuid(user->uid))
		return -errno;
	if (passwd && (setenv("HOME", passwd->pw_dir, 1) || setenv("USER", passwd->pw_name, 1) ||
		       setenv("LOGNAME", passwd->pw_name, 1)))
		return -errno;
	return 0;
}

static bool may_write(const struct user *user, const char *folder)
{
	struct stat st;

	if (stat(folder, &st))
		return false;
	if (st.st_uid == user->uid)
		return st.st_mode & S_IWUSR;
	return st.st_mode & (st.st_gid == user->gid ? S_IWGRP : S_IWOTH);
}

void user_give_file(const struct user *user, const char *path)
{
	AUTO_FREE char *copy = strdup(path);
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (!copy || !may_write(user, dirname(copy)))
		return;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != 0 || st.st_nlink != 1)
		return;
	if (fchown(fd, user->uid, user->gid))
		return; /* a file system without owners: nothing to give */
}

void user_as_owner(const char *folder, const char *name, struct user *was_ret)
{
	AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *path = NULL;
	struct stat st;

	*was_ret = (struct user){ .uid = geteuid(), .gid = getegid() };
	if (was_ret->uid || fd < 0 || fstat(fd, &st) || !st.st_uid || asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	if (setegid(st.st_gid) || seteuid(st.st_uid) || eaccess(path, R_OK)) /* a folder above it is closed to the owner */
		user_end_as_owner(was_ret);
}

void user_end_as_owner(const struct user *was)
{
	if (geteuid() != was->uid && seteuid(was->uid))
		abort(); /* our saved user id is that */
	if (getegid() != was->gid && setegid(was->gid))
		abort();
}
