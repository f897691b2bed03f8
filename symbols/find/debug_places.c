/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places are those GDB looks at. A path never leaves the root it is looked up in (openat2 with RESOLVE_IN_ROOT: neither
 * "..", nor a symbolic link, nor a magic one). A file is looked at before it is opened (O_PATH), so that no device or pipe
 * is touched, and is refused unless the owner of the program could read it, too: else a link in somebody's folder would show
 * others' files to a reader that his program may have taken over. A FUSE mount that never answers cannot hold us: without
 * allow_other, or from another user namespace, the kernel refuses us at once (fuse_allow_current_process, fs/fuse/dir.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/find/debug_places.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* The folder of @path, up to and with its last slash, as printf's "%.*s" wants it. */
static int folder_len(const char *path)
{
	return (int)(strrchr(path, '/') - path) + 1;
}

static int link_path(const char *name, const char *program, unsigned index, char *dst, size_t bytes)
{
	int len = folder_len(program);

	switch (index) {
	case 0:
		return snprintf(dst, bytes, "%.*s%s", len, program, name);
	case 1:
		return snprintf(dst, bytes, "%.*s.debug/%s", len, program, name);
	case 2:
		return snprintf(dst, bytes, DEBUG_FOLDER "%.*s%s", len, program, name);
	}
	return -ERANGE;
}

/* 0 and up: as snprintf. */
static int form_path(const struct debug_need *need, const char *program, const char *debug, unsigned index, char *dst,
		     size_t bytes)
{
	const char *name = need->name, *from = debug ? debug : program;

	switch ((enum debug_need_kind)need->kind) {
	case DEBUG_NEED_BUILD_ID:
		return index ? -ERANGE : snprintf(dst, bytes, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", name, name + 2);
	case DEBUG_NEED_LINK:
		return link_path(name, program, index, dst, bytes);
	case DEBUG_NEED_COMMON:
		if (index == 0)
			return snprintf(dst, bytes, DEBUG_FOLDER "/.dwz/%s", name);
		return index == 1 ? snprintf(dst, bytes, "%.*s%s", folder_len(from), from, name) : -ERANGE;
	case DEBUG_NEED_PACKAGE:
		if (index == 0)
			return snprintf(dst, bytes, "%s.dwp", program);
		return index == 1 && debug ? snprintf(dst, bytes, "%s.dwp", debug) : -ERANGE;
	case DEBUG_NEED_SERVED:
	case DEBUG_NEED_COMMON_SERVED:
		return -ERANGE;
	case DEBUG_NEED_MAX:
		break;
	}
	return -EINVAL;
}

int debug_place_path(const struct debug_need *need, const char *program, const char *debug, unsigned index, char *dst,
		     size_t bytes)
{
	int n;

	if (!debug_need_is_sound(need) || (debug && debug[0] != '/') ||
	    (program[0] != '/' && need->kind != DEBUG_NEED_BUILD_ID))
		return -EINVAL;
	n = form_path(need, program, debug, index, dst, bytes);
	return n < 0 ? n : n < (int)bytes ? 0 : -ENAMETOOLONG;
}

/* May the owner of @program read what @st is of? */
static bool is_readable_to_owner(const struct stat *st, const struct stat *program)
{
	return st->st_uid == program->st_uid || st->st_mode & S_IROTH || !program->st_uid;
}

int debug_place_open(int root_fd, const char *path, int program_fd, bool in_one_mount)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (in_one_mount ? RESOLVE_NO_XDEV : 0),
	};
	AUTO_CLOSE int found = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	struct stat st, program;
	char proc[32];
	int fd;

	if (found < 0)
		return -errno;
	if (fstat(found, &st) || fstat(program_fd, &program))
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_readable_to_owner(&st, &program))
		return -EACCES;
	if (st.st_dev == program.st_dev && st.st_ino == program.st_ino)
		return -ENOENT;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", found);
	fd = open(proc, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}
