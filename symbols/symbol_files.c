/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the search's questions one after another, each from the places in their order. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/debug_places.h"
#include "symbols/debug_search.h"
#include "symbols/debuginfod.h"
#include "symbols/symbol_files.h"
#include "symbols/symbol_image.h"

/* Checking a gigabyte takes half a second. */
#define MAX_CRC_BYTES (4ull << 30)

struct finder {
	struct debug_search search;
	struct debuginfod *servers; /* NULL: none */
	int root_fd, program_fd;
	const char *program;  /* path below the root */
	char debug[PATH_MAX]; /* the same of the debug file; "": none */
};

/* Asks the servers. */
static int fetch(struct finder *f, const struct debug_need *need)
{
	AUTO_CLOSE int fd = f->servers ? debuginfod_wait(f->servers, need->name) : -1;
	int error = fd < 0 ? 0 : debug_search_take(&f->search, (enum debug_need_kind)need->kind, fd);

	return error == -ENOMEM ? error : 0;
}

/* Looks for @need in all its places. */
static int find(struct finder *f, const struct debug_need *need)
{
	char path[PATH_MAX];
	int error = 0;

	for (unsigned index = 0; error != -ERANGE && error != -EINVAL; index++) {
		AUTO_CLOSE int fd = -1;

		error = debug_place_path(need, f->program, f->debug[0] ? f->debug : NULL, index, path, sizeof(path));
		if (error)
			continue;
		fd = debug_place_open(f->root_fd, path, f->program_fd);
		if (fd < 0)
			continue;
		error = debug_search_take(&f->search, (enum debug_need_kind)need->kind, fd);
		if (!error && need->kind <= DEBUG_NEED_LINK)
			memcpy(f->debug, path, sizeof(path));
		if (!error || error == -ENOMEM)
			return error;
	}
	if ((need->kind == DEBUG_NEED_SERVED || need->kind == DEBUG_NEED_COMMON_SERVED) && fetch(f, need))
		return -ENOMEM;
	error = debug_search_take(&f->search, (enum debug_need_kind)need->kind, -1);
	return error == -ENOENT ? 0 : error; /* taken already */
}

int symbol_files_open(int fd, const char *path, const char *root, struct debuginfod *servers, struct symbol_files *ret)
{
	AUTO_CLOSE int root_fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *real = root ? strdup(path) : realpath(path, NULL);
	struct finder f = { .root_fd = root_fd, .program_fd = fd, .servers = servers };
	struct symbol_image program;
	struct debug_need need;
	int error;

	if (root_fd < 0)
		return -errno;
	f.program = real ? real : path;
	error = symbol_image_map(fd, &program);
	if (error)
		return error;
	debug_search_start(&f.search, fd, &program, true, MAX_CRC_BYTES);
	while (!error && debug_search_next(&f.search, &need))
		error = find(&f, &need);
	*ret = f.search.files;
	if (error)
		symbol_files_close(ret);
	return error;
}

void symbol_files_close(struct symbol_files *files)
{
	symbol_image_unmap(&files->program);
	symbol_image_unmap(&files->debug);
	symbol_image_unmap(&files->common);
	symbol_image_unmap(&files->package);
}
