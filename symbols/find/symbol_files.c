/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the search's questions one after another, each from the places in their order. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/find/debug_places.h"
#include "symbols/find/debug_search.h"
#include "symbols/find/debuginfod.h"
#include "symbols/find/symbol_files.h"
#include "symbols/sources/symbol_image.h"

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
		fd = debug_place_open(f->root_fd, path, f->program_fd, false);
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

/* --- .dwo files --- */

struct split_files {
	struct symbol_opener opener;
	int root_fd, program_fd;
	char *program; /* path below the root */
};

/* Formats the path of place number @index. False: there are no more, or it is no path. */
static bool split_place(const struct split_files *s, const char *dir, const char *name, unsigned index, char path[PATH_MAX])
{
	const char *last = strrchr(name, '/'), *end = strrchr(s->program, '/');
	int n;

	if (index == 0) /* where the compiler put it */
		n = snprintf(path, PATH_MAX, "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/", name);
	else /* beside the program, which was moved with it */
		n = snprintf(path, PATH_MAX, "%.*s/%s", end ? (int)(end - s->program) : 0, s->program,
			     last ? last + 1 : name);
	return n > 0 && n < PATH_MAX;
}

static int open_split(void *arg, const char *dir, const char *name, struct symbol_image *ret)
{
	const struct split_files *s = arg;
	char path[PATH_MAX];
	int error = -ENOENT;

	for (unsigned index = 0; index < 2 && error; index++) {
		AUTO_CLOSE int fd = -1;

		if (!split_place(s, dir, name, index, path) || path[0] != '/')
			continue;
		fd = debug_place_open(s->root_fd, path, s->program_fd, false);
		error = fd < 0 ? fd : symbol_image_map(fd, ret);
	}
	return error;
}

static void close_split(void *arg, struct symbol_image *image)
{
	(void)arg;
	symbol_image_unmap(image);
}

static void free_split(struct split_files *s)
{
	if (s->root_fd >= 0)
		close(s->root_fd);
	if (s->program_fd >= 0)
		close(s->program_fd);
	free(s->program);
	free(s);
}

/* Hands out the opener of the files that @f's program names itself. NULL without memory or descriptors. */
static const struct symbol_opener *new_split(const struct finder *f)
{
	struct split_files *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->opener = (struct symbol_opener){ .open = open_split, .close = close_split, .arg = s };
	s->root_fd = fcntl(f->root_fd, F_DUPFD_CLOEXEC, 0);
	s->program_fd = fcntl(f->program_fd, F_DUPFD_CLOEXEC, 0);
	s->program = strdup(f->program);
	if (s->root_fd >= 0 && s->program_fd >= 0 && s->program)
		return &s->opener;
	free_split(s);
	return NULL;
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
	ret->split = new_split(&f);
	if (!error && !ret->split)
		error = -ENOMEM;
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
	if (files->split)
		free_split(files->split->arg);
	files->split = NULL;
}
