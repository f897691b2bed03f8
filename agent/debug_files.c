/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places are those GDB looks at. A path never leaves the root it is looked up in (openat2 with RESOLVE_IN_ROOT: neither
 * "..", nor a symbolic link, nor a magic one), the names in it are the kernel's word, the build id's digits, or one checked
 * file name. What is found is looked at before it is opened (O_PATH), so that no device or pipe is touched, and is refused
 * unless the owner of the program could read it, too: else a link in somebody's folder would show others' files to a reader
 * that his program may have taken over. A FUSE mount that never answers cannot hold us: without allow_other, or from another
 * user namespace, the kernel refuses us at once (fuse_allow_current_process, fs/fuse/dir.c).
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/debug_files.h"
#include "base/cleanup.h"

enum { PROCESS_ROOT, OUR_ROOT };
enum { MIN_BUILD_ID = 4 }; /* hex digits; the first two are a folder */

#define DEBUG_FOLDER "/usr/lib/debug"

static const struct {
	uint8_t need, root;
	const char *before, *behind; /* the folder of the program (links) */
} places[DEBUG_FILE_PLACES] = {
	{ ELF_NEED_BUILD_ID, PROCESS_ROOT, NULL, NULL },	 { ELF_NEED_BUILD_ID, OUR_ROOT, NULL, NULL },
	{ ELF_NEED_DEBUGLINK, PROCESS_ROOT, "", "/" },		 { ELF_NEED_DEBUGLINK, PROCESS_ROOT, "", "/.debug/" },
	{ ELF_NEED_DEBUGLINK, PROCESS_ROOT, DEBUG_FOLDER, "/" }, { ELF_NEED_DEBUGLINK, OUR_ROOT, DEBUG_FOLDER, "/" },
	{ ELF_NEED_COMMON, PROCESS_ROOT, NULL, NULL },		 { ELF_NEED_COMMON, OUR_ROOT, NULL, NULL },
	{ ELF_NEED_PACKAGE, PROCESS_ROOT, NULL, NULL },
};

static bool is_build_id(const char *id)
{
	for (const char *c = id; *c; c++)
		if (!isdigit((unsigned char)*c) && !(*c >= 'a' && *c <= 'f'))
			return false;
	return strlen(id) >= MIN_BUILD_ID;
}

/* The path of place number @at. 0 or -errno. */
static int form_path(const struct debug_place *place, const struct elf_needed *needed, unsigned at, char *dst, size_t bytes)
{
	const char *slash = place->path[0] == '/' ? strrchr(place->path, '/') : NULL, *name = needed->name;
	int n = -1;

	if (!elf_needed_is_sound(needed) || (!slash && needed->need != ELF_NEED_BUILD_ID))
		return -EINVAL;
	switch ((enum elf_need)needed->need) {
	case ELF_NEED_BUILD_ID:
		if (!is_build_id(name))
			return -EINVAL;
		n = snprintf(dst, bytes, DEBUG_FOLDER "/.build-id/%.2s/%s.debug", name, name + 2);
		break;
	case ELF_NEED_DEBUGLINK:
		n = snprintf(dst, bytes, "%s%.*s%s%s", places[at].before, (int)(slash - place->path), place->path,
			     places[at].behind, name);
		break;
	case ELF_NEED_COMMON:
		n = snprintf(dst, bytes, DEBUG_FOLDER "/.dwz/%s", name);
		break;
	case ELF_NEED_PACKAGE:
		n = snprintf(dst, bytes, "%s.dwp", place->path);
		break;
	case ELF_NEED_MAX:
		return -EINVAL;
	}
	return n < (int)bytes ? 0 : -ENAMETOOLONG;
}

/* The root of process @pid, or ours when it is gone; -ENOENT for ours once more (it was tried as the process's). */
static int open_root(uint8_t root, uint32_t pid)
{
	AUTO_CLOSE int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), theirs = -1;
	struct stat a, b;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	theirs = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root == PROCESS_ROOT && theirs >= 0)
		return MOVE_FD(theirs);
	if (root == PROCESS_ROOT)
		return ours < 0 ? -errno : MOVE_FD(ours);
	if (ours < 0 || theirs < 0 || fstat(ours, &a) || fstat(theirs, &b) || (a.st_dev == b.st_dev && a.st_ino == b.st_ino))
		return -ENOENT;
	return MOVE_FD(ours);
}

/* May the owner of @program read what @st is of? */
static bool is_readable_to_owner(const struct stat *st, const struct stat *program)
{
	return st->st_uid == program->st_uid || st->st_mode & S_IROTH || !program->st_uid;
}

/* Opens @path below @root for reading if it is a plain file other than the program @program_fd. */
static int open_below(int root, const char *path, int program_fd)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	AUTO_CLOSE int found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
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

int debug_file_open(const struct debug_place *place, const struct elf_needed *needed, unsigned index)
{
	AUTO_CLOSE int root = -1;
	char path[PATH_MAX];
	unsigned at = 0;
	int error;

	while (at < DEBUG_FILE_PLACES && (places[at].need != needed->need || index--))
		at++;
	if (at == DEBUG_FILE_PLACES)
		return -ERANGE;
	error = form_path(place, needed, at, path, sizeof(path));
	if (error)
		return error;
	root = open_root(places[at].root, place->pid);
	return root < 0 ? root : open_below(root, path, place->fd);
}
