/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic linker takes the first file that exports malloc: the program, then libraries in their order, which the C
 * library is mostly the last of. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "agent/probe/allocator.h"
#include "agent/probe/probe.h"
#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "bpf/alloc_size.h"

/* A function of all allocators; realloc is here as one that does not call malloc. */
static const struct {
	const char *name;
	uint32_t size;
} functions[] = {
	{ "malloc", ALLOC_SIZE_FIRST },		{ "calloc", ALLOC_SIZE_PRODUCT },	{ "realloc", ALLOC_SIZE_SECOND },
	{ "aligned_alloc", ALLOC_SIZE_SECOND }, { "posix_memalign", ALLOC_SIZE_THIRD }, { "memalign", ALLOC_SIZE_SECOND },
	{ "valloc", ALLOC_SIZE_FIRST },
};

enum { MAX_FILES = 512 };

struct mapped_files {
	char *path[MAX_FILES]; /* owned */
	uint32_t count;
};

static void mapped_files_fini(struct mapped_files *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		free(f->path[i]);
}

static int add_file(void *arg, const struct proc_map *map)
{
	struct mapped_files *f = arg;
	char *path;

	if (!map->executable || map->path_len < 2 || map->path[0] != '/' || f->count == MAX_FILES)
		return 0;
	path = strndup(map->path, map->path_len);
	if (!path)
		return -ENOMEM;
	if (f->count && !strcmp(f->path[f->count - 1], path))
		free(path);
	else
		f->path[f->count++] = path;
	return 0;
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_libc(const char *path)
{
	return begins_with(base_name(path), "libc.so") || begins_with(base_name(path), "libc-") ||
	       begins_with(base_name(path), "ld-musl") || begins_with(base_name(path), "libc.musl");
}

/* glibc's dynamic linker has a malloc for itself. */
static bool is_linker(const char *path)
{
	return begins_with(base_name(path), "ld-linux") || begins_with(base_name(path), "ld-2.");
}

static int add_place(struct alloc_set *set, const struct probe *found, uint32_t pid, uint32_t size)
{
	struct alloc_place *place;

	for (uint32_t i = 0; i < set->count; i++) /* two names of one function */
		if (set->list[i].pid == pid && set->list[i].offset == found->offset &&
		    !strcmp(set->list[i].file, found->target))
			return 0;
	if (vec_reach(&set->list, &set->cap, set->count))
		return -ENOMEM;
	place = &set->list[set->count];
	*place = (struct alloc_place){ .pid = pid, .size = size, .offset = found->offset, .file = strdup(found->target) };
	set->count += place->file != NULL;
	return place->file ? 0 : -ENOMEM;
}

/* Adds the function @name of the file @path of @pid. -ENOENT: it has none, or it cannot be probed. */
static int add_function(struct alloc_set *set, uint32_t pid, const char *path, const char *name, uint32_t size)
{
	char text[PATH_MAX + 64], root[PROC_PATH_BYTES];
	const char *const texts[] = { text };
	struct agent_error why = { "" };
	struct probe_set *found;
	int error;

	if (snprintf(text, sizeof(text), "uprobe:%s%s:%s", proc_path(root, pid, "root"), path, name) >= (int)sizeof(text) ||
	    strchr(path, ':'))
		return -ENOENT;
	error = probes_find(texts, 1, &found, &why);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	for (uint32_t i = 0; i < found->count && !error; i++)
		error = add_place(set, &found->list[i], pid, size);
	probe_set_free(found);
	return error;
}

/* Adds the functions of the allocator in @path. -ENOENT: there is none. */
static int add_allocator(struct alloc_set *set, uint32_t pid, const char *path)
{
	int error = add_function(set, pid, path, functions[0].name, functions[0].size);

	for (size_t i = 1; i < ARRAY_LEN(functions) && !error; i++) {
		if (strstr(base_name(path), "tcmalloc") && !strcmp(functions[i].name, "posix_memalign"))
			continue; /* it calls memalign */
		/* the C libraries' realloc calls malloc where there was nothing */
		uint32_t size = is_libc(path) && !strcmp(functions[i].name, "realloc") ? ALLOC_SIZE_GROWN
										       : functions[i].size;

		error = add_function(set, pid, path, functions[i].name, size);
		error = error == -ENOENT ? 0 : error;
	}
	return error;
}

static int find_of(struct alloc_set *set, uint32_t pid, struct agent_error *err)
{
	AUTO(mapped_files_fini) struct mapped_files files = { .count = 0 };
	int error = proc_maps_each(pid, add_file, &files);

	if (error) {
		snprintf(err->message, sizeof(err->message), "malloc of process %u: %s", pid,
			 error == -ENOENT || error == -ESRCH ? "there is no such process" : strerror(-error));
		return error;
	}
	for (int is_last = 0; is_last < 2; is_last++)
		for (uint32_t i = 0; i < files.count; i++) {
			if (is_linker(files.path[i]) || is_libc(files.path[i]) != is_last)
				continue;
			error = add_allocator(set, pid, files.path[i]);
			if (error != -ENOENT)
				return error;
		}
	snprintf(err->message, sizeof(err->message),
		 "malloc of process %u: none of its files has such a function that can be probed; --memory needs none", pid);
	return -ENOENT;
}

int allocator_find(const uint32_t *pids, size_t count, struct alloc_set **ret, struct agent_error *err)
{
	struct alloc_set *set = calloc(1, sizeof(*set));
	int error = set ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++)
		error = find_of(set, pids[i], err);
	if (error) {
		allocator_set_free(set);
		return error;
	}
	*ret = set;
	return 0;
}

void allocator_set_free(struct alloc_set *set)
{
	for (uint32_t i = 0; set && i < set->count; i++)
		free(set->list[i].file);
	free(set ? set->list : NULL);
	free(set);
}
