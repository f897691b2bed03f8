/* SPDX-License-Identifier: Apache-2.0 */
/* A file is believed when it says itself that it has the build id: what is in a folder may be stale. */
#include "backend/naming/local_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/find/debuginfod.h"
#include "symbols/symbols.h"

enum { MIN_ID_CHARS = 8 }; /* shorter ones name nothing */

struct local_files {
	struct debuginfod *servers; /* NULL: none are set */
};

/* Copies the build id in lower case. False: no build id of a linker. */
static bool read_id(const char *text, char ret[65])
{
	size_t len = strlen(text);

	if (len < MIN_ID_CHARS || len > 64 || strspn(text, "0123456789abcdefABCDEF") != len)
		return false;
	for (size_t i = 0; i <= len; i++)
		ret[i] = (char)tolower((unsigned char)text[i]);
	return true;
}

/* Opens @path if it is a plain file with this id. */
static int open_if_it_is(const char *path, const char *id)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct build_ids ids;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || build_ids_read(fd, &ids) || strcmp(ids.gnu, id) != 0)
		return -ENOENT;
	return MOVE_FD(fd);
}

int local_files_open(struct local_files *f, const char *build_id)
{
	static const struct {
		const char *folder, *end;
	} places[] = { { "/usr/lib/debug/.build-id", ".debug" }, { "/usr/lib/.build-id", "" } };
	char id[65], path[PATH_MAX];
	int fd = -ENOENT;

	if (!read_id(build_id, id))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(places) && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s/%.2s/%s%s", places[i].folder, id, id + 2, places[i].end);
		fd = open_if_it_is(path, id);
	}
	if (fd < 0 && f->servers)
		fd = debuginfod_find(f->servers, id);
	return fd >= 0 || fd == -EINPROGRESS ? fd : fd == -EAGAIN ? -EINPROGRESS : -ENOENT;
}

struct local_files *local_files_new(void)
{
	struct local_files *f = calloc(1, sizeof(*f));

	if (f && debuginfod_new(&f->servers))
		f->servers = NULL;
	return f;
}

void local_files_free(struct local_files *f)
{
	if (!f)
		return;
	debuginfod_free(f->servers);
	free(f);
}
