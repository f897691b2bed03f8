/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program says what the files are called, so it may say anything: a path is resolved within the root, and what is no plain
 * file is never opened (opening alone has effects on some devices).
 */
#include "symbols/split_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbol_image.h"

/* Maps @path, of which links lead nowhere outside of @root. */
static int map_within(const char *root, const char *path, struct symbol_image *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	AUTO_CLOSE int top = open(root[0] ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int seen = top < 0 ? -1 : (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
	AUTO_CLOSE int fd = -1;
	char again[32];
	struct stat st;

	if (seen < 0 || fstat(seen, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", seen);
	fd = open(again, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : symbol_image_map(fd, ret);
}

static int open_split(void *arg, const char *dir, const char *name, struct symbol_image *ret)
{
	const struct split_files *f = arg;
	const char *last = strrchr(name, '/');
	struct buf path = BUF_EMPTY;
	int r = -ENOENT;

	/* Without a folder to start from a relative path leads nowhere. */
	if (name[0] == '/' || dir[0] == '/') {
		if (name[0] != '/')
			buf_printf(&path, "%s/", dir);
		buf_puts(&path, name);
		r = map_within(f->root, buf_text(&path), ret);
	}
	if (r && f->near) {
		buf_reset(&path);
		buf_printf(&path, "%s/%s", f->near, last ? last + 1 : name);
		r = map_within("", buf_text(&path), ret);
	}
	buf_fini(&path);
	return r;
}

static void close_split(void *arg, struct symbol_image *image)
{
	(void)arg;
	symbol_image_unmap(image);
}

struct symbol_opener split_files_opener(struct split_files *f)
{
	return (struct symbol_opener){ open_split, close_split, f };
}
