/* SPDX-License-Identifier: Apache-2.0 */
/* The list is its own queue: children are put behind their parents and have their turn later. */
#include "base/ourselves.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/usage.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ourselves seen; /* under the lock, as is @oldest: the place of the one that is forgotten next */
static uint32_t oldest;

static pthread_once_t name_once = PTHREAD_ONCE_INIT;
static char name[NAME_MAX + 1];

static pthread_once_t paths_once = PTHREAD_ONCE_INIT;
static char program[PATH_MAX] = "/proc/self/exe", file[PATH_MAX] = "/proc/self/exe";

bool ourselves_has(const struct ourselves *o, uint32_t pid)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

static void add(struct ourselves *o, uint32_t pid)
{
	if (pid && o->count < OURSELVES_MAX && !ourselves_has(o, pid))
		o->pids[o->count++] = pid;
}

/* --- /proc --- */

/* Adds the children that one thread of @pid has forked, and that live. */
static void add_children(const char *proc, uint32_t pid, const char *tid, struct ourselves *o)
{
	char path[PATH_MAX], text[4096], *at, *end;

	snprintf(path, sizeof(path), "%s/%u/task/%.20s/children", proc, pid, tid);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return;
	for (at = text; *at; at = end) {
		const unsigned long child = strtoul(at, &end, 10);

		if (end == at || *end != ' ') /* the end, or a number that was cut */
			return;
		add(o, (uint32_t)child);
	}
}

void ourselves_read(const char *proc, uint32_t pid, struct ourselves *ret)
{
	*ret = (struct ourselves){ 0 };
	add(ret, pid);
	for (uint32_t i = 0; i < ret->count; i++) {
		char path[PATH_MAX];
		struct dirent *entry;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/%u/task", proc, ret->pids[i]);
		dir = opendir(path);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				add_children(proc, ret->pids[i], entry->d_name, ret);
		if (dir)
			closedir(dir);
	}
}

/* --- what is known --- */

void ourselves_saw(const struct ourselves *o)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < o->count && i < OURSELVES_MAX; i++) {
		if (ourselves_has(&seen, o->pids[i]))
			continue;
		if (seen.count < OURSELVES_MAX) {
			seen.pids[seen.count++] = o->pids[i];
			continue;
		}
		seen.pids[oldest] = o->pids[i];
		oldest = (oldest + 1) % OURSELVES_MAX;
	}
	pthread_mutex_unlock(&lock);
}

void ourselves_known(struct ourselves *ret)
{
	*ret = (struct ourselves){ 0 };
	add(ret, (uint32_t)getpid());
	add(ret, (uint32_t)usage_of_other().pid);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < seen.count; i++)
		add(ret, seen.pids[i]);
	pthread_mutex_unlock(&lock);
}

static void find_name(void)
{
	static const char mark[] = " (deleted)"; /* a newer hearth was installed over this one */
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[len > 0 ? len : 0] = '\0';
	if (len > (ssize_t)strlen(mark) && !strcmp(path + len - strlen(mark), mark))
		path[len - (ssize_t)strlen(mark)] = '\0';
	slash = strrchr(path, '/');
	snprintf(name, sizeof(name), "%.255s", slash ? slash + 1 : program_invocation_short_name);
}

const char *ourselves_name(void)
{
	pthread_once(&name_once, find_name);
	return name;
}

/* tools/package/bundle.sh: the loader is FOLDER/lib/ld.so, and starts FOLDER/lib/hearth. */
static void find_paths(void)
{
	static const char loader[] = "/lib/ld.so";
	char path[PATH_MAX];
	const ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const ssize_t folder = len - (ssize_t)strlen(loader);

	if (folder < 0 || folder + (ssize_t)sizeof("/lib/hearth") > PATH_MAX ||
	    memcmp(path + folder, loader, strlen(loader)) != 0)
		return;
	snprintf(program, sizeof(program), "%.*s/bin/hearth", (int)folder, path);
	snprintf(file, sizeof(file), "%.*s/lib/hearth", (int)folder, path);
}

const char *ourselves_program(void)
{
	pthread_once(&paths_once, find_paths);
	return program;
}

const char *ourselves_file(void)
{
	pthread_once(&paths_once, find_paths);
	return file;
}
