/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file behind another process's mapping without ever waiting for its file system. Files of local file systems
 * are opened here; all others (FUSE, NFS, ...), and all that is opened by a path, by a small process of its own, which forks
 * a child for each: a file system that does not answer keeps that child, not the agent.
 */
#ifndef HEARTH_AGENT_FILE_OPEN_H
#define HEARTH_AGENT_FILE_OPEN_H

#include <stdbool.h>
#include <stdint.h>

struct metrics;

struct file_key {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	uint64_t generation;
	bool has_generation; /* absent from /proc/PID/maps */
};

/* A mapping, for /proc to lead to what it maps. */
struct file_place {
	uint32_t pid;
	uint32_t tid; /* a task of it that lives, if its leader may not */
	uint64_t start, end;
};

struct file_opener;

/* Forks the process that opens; to be called before there are threads, or descriptors that matter. 0 or -errno. */
int file_opener_new(struct metrics *metrics, struct file_opener **ret);
void file_opener_free(struct file_opener *o);

/* @fn is called now and then while a file system does not answer. It must open nothing. */
void file_opener_on_wait(struct file_opener *o, void (*fn)(void *arg), void *arg);

/*
 * A descriptor of the regular file @key that is mapped at @at, or -errno; -EBUSY when its file system does not answer, which
 * is said after 1 s the first time and at once for a while from then on. @path as the process saw it; "[vdso]" is the
 * image of our own vDSO. Through /proc/PID/map_files, /proc/PID/root, or (the process being gone) the plain path; never
 * another file than @key.
 */
int file_open(struct file_opener *o, const struct file_key *key, const char *path, const struct file_place *at);

/*
 * A descriptor (O_PATH) of the folder @name in the root folder of process @pid, 0: in ours, if it is on a local file system;
 * or -errno: -EREMOTE when it is not, -EBUSY when that is not known in time, or was not a moment ago for another process.
 */
int file_opener_folder(struct file_opener *o, uint32_t pid, const char *name);

/* Can the file @key, which @task has mapped, be read without waiting for anybody? */
bool file_opener_is_local(struct file_opener *o, const struct file_key *key, uint32_t task);

/* The file system of @key let a reader wait for too long: as if opening had. */
void file_opener_blame(struct file_opener *o, const struct file_key *key);

#endif
