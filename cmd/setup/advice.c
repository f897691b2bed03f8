/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names better than those of the symbol tables are in debug files, which distributions ship apart. Debian's package of one
 * is called after the package of the file; dpkg's lists say which that is (one path a line,
 * /var/lib/dpkg/info/PACKAGE.list).
 */
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/setup/advice.h"
#include "symbols/symbols.h"

#define DPKG_LISTS "/var/lib/dpkg/info/"

static bool is_same_here(const char *path, const char *build_id)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct build_ids ids;
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && !build_ids_read(fd, &ids) && !strcmp(ids.gnu, build_id);
}

/* Has the list file @list the line @path? */
static bool has_line(const char *list, const char *path)
{
	AUTO_CLOSE int fd = open(list, O_RDONLY | O_CLOEXEC);
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	struct stat st;
	bool found;
	void *text;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		return false;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return false;
	buf_printf(&line, "\n%s\n", path);
	found = !line.failed && memmem(text, (size_t)st.st_size, line.data, line.len);
	munmap(text, (size_t)st.st_size);
	return found;
}

/* Appends the package that @path is of; false: none is known. */
static bool find_package(const char *path, struct buf *out)
{
	const char *unmerged = !strncmp(path, "/usr/lib", 8) || !strncmp(path, "/usr/bin", 8) ||
					       !strncmp(path, "/usr/sbin", 9)
				       ? path + 4
				       : path; /* packages from before /bin became a link name the file there */
	glob_t lists = { 0 };
	bool found = false;

	if (glob(DPKG_LISTS "*.list", 0, NULL, &lists))
		return false;
	for (size_t i = 0; i < lists.gl_pathc && !found; i++) {
		const char *name = lists.gl_pathv[i] + strlen(DPKG_LISTS);

		found = has_line(lists.gl_pathv[i], path) || (unmerged != path && has_line(lists.gl_pathv[i], unmerged));
		if (found)
			buf_append(out, name,
				   strcspn(name, ":") < strlen(name) ? strcspn(name, ":") : strlen(name) - strlen(".list"));
	}
	globfree(&lists);
	return found;
}

void advice_debug_files(void *arg, const char *path, const char *build_id, struct buf *out)
{
	AUTO(buf_fini) struct buf package = BUF_EMPTY;

	(void)arg;
	if (path[0] != '/' || path[1] == '/')
		return;
	if (!build_id[0]) {
		buf_puts(out, "it has no build id; build it with -g and keep it unstripped");
	} else if (is_same_here(path, build_id) && find_package(path, &package)) {
		const char *name = buf_text(&package);

		buf_printf(out, "install %s%s", name, !strcmp(name, "libc6") ? "-dbg" : "-dbgsym");
	} else {
		buf_printf(out, "put its debug file at /usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	}
}
