/* SPDX-License-Identifier: Apache-2.0 */
/* The dynamic linker takes the first file that exports malloc: the program, then libraries in their order, which the C
 * library is mostly the last of. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/probe/allocator.h"
#include "agent/probe/code_check.h"
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

/* C++'s operator new in all its forms. By default these call malloc, and are counted there. Of a 64-bit size_t. */
static const char *const operators[] = {
	"_Znwm",
	"_Znam",
	"_ZnwmRKSt9nothrow_t",
	"_ZnamRKSt9nothrow_t",
	"_ZnwmSt11align_val_t",
	"_ZnamSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t",
	"_ZnamSt11align_val_tRKSt9nothrow_t",
};

/* Allocators, told by a function that they alone have, which come with an operator new that does not call their malloc. */
static const struct {
	const char *sign;
	const char *caller; /* a function that calls another one of these: NULL: none does */
	size_t operators;   /* how many of the above call none of these */
} known[] = {
	{ "tc_malloc", "posix_memalign", 8 }, /* gperftools, src/tcmalloc.cc: it calls memalign */
	{ "mallctl", NULL, 4 },		      /* jemalloc 5.3, src/jemalloc_cpp.cpp: the aligned ones call aligned_alloc */
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

/* Finds the function @name of the file @path of @pid. -ENOENT: it has none, or it cannot be probed. */
static int find_function(uint32_t pid, const char *path, const char *name, struct probe_set **ret)
{
	char text[PATH_MAX + 64], root[PROC_PATH_BYTES];
	const char *const texts[] = { text };
	struct agent_error why = { "" };
	int error;

	if (snprintf(text, sizeof(text), "uprobe:%s%s:%s", proc_path(root, pid, "root"), path, name) >= (int)sizeof(text) ||
	    strchr(path, ':'))
		return -ENOENT;
	error = probes_find(texts, 1, ret, &why);
	return error && error != -ENOMEM ? -ENOENT : error;
}

/* Adds that function. The same. */
static int add_function(struct alloc_set *set, uint32_t pid, const char *path, const char *name, uint32_t size)
{
	struct probe_set *found;
	int error = find_function(pid, path, name, &found);

	if (error)
		return error;
	for (uint32_t i = 0; i < found->count && !error; i++)
		error = add_place(set, &found->list[i], pid, size);
	probe_set_free(found);
	return error;
}

/* Which of the known allocators @path has; ARRAY_LEN(known): another one. */
static size_t known_in(uint32_t pid, const char *path)
{
	struct probe_set *found;
	size_t i = 0;

	while (i < ARRAY_LEN(known) && find_function(pid, path, known[i].sign, &found))
		i++;
	if (i < ARRAY_LEN(known))
		probe_set_free(found);
	return i;
}

/* Does the function only jump to another one? That is then a form of operator new, too, and has its own probe. */
static bool is_jump(const struct probe *found)
{
	AUTO_CLOSE int fd = open(found->target, O_RDONLY | O_CLOEXEC);
	uint8_t code[16];
	ssize_t n = fd < 0 ? -1 : pread(fd, code, sizeof(code), (off_t)found->offset);

	return n > 0 && code_is_jump(code, (size_t)n);
}

static int add_operators(struct alloc_set *set, uint32_t pid, const char *path, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		struct probe_set *found = NULL;

		error = find_function(pid, path, operators[i], &found);
		if (error == -ENOENT) {
			error = 0;
			continue;
		}
		for (uint32_t j = 0; !error && j < found->count; j++)
			if (!is_jump(&found->list[j]))
				error = add_place(set, &found->list[j], pid, ALLOC_SIZE_FIRST);
		probe_set_free(found);
	}
	return error;
}

/* Adds the functions of the allocator in @path. -ENOENT: there is none. */
static int add_allocator(struct alloc_set *set, uint32_t pid, const char *path)
{
	int error = add_function(set, pid, path, functions[0].name, functions[0].size);
	size_t which = error || is_libc(path) ? ARRAY_LEN(known) : known_in(pid, path);
	const char *caller = which < ARRAY_LEN(known) ? known[which].caller : NULL;

	for (size_t i = 1; i < ARRAY_LEN(functions) && !error; i++) {
		if (caller && !strcmp(functions[i].name, caller))
			continue;
		/* the C libraries' realloc calls malloc where there was nothing */
		uint32_t size = is_libc(path) && !strcmp(functions[i].name, "realloc") ? ALLOC_SIZE_GROWN
										       : functions[i].size;

		error = add_function(set, pid, path, functions[i].name, size);
		error = error == -ENOENT ? 0 : error;
	}
	return !error && which < ARRAY_LEN(known) ? add_operators(set, pid, path, known[which].operators) : error;
}

int allocator_add_file(struct alloc_set *set, uint32_t pid, const char *path)
{
	return path[0] != '/' || is_linker(path) ? -ENOENT : add_allocator(set, pid, path);
}

bool allocator_is_libc(const char *path)
{
	return path[0] == '/' && is_libc(path);
}

int allocator_add(struct alloc_set *set, uint32_t pid, struct agent_error *err)
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

void allocator_set_free(struct alloc_set *set)
{
	for (uint32_t i = 0; set && i < set->count; i++)
		free(set->list[i].file);
	free(set ? set->list : NULL);
	free(set);
}
