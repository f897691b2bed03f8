/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the file behind another process's mapping without ever waiting for its file system. Files of local file systems
 * are opened here. A small process of its own opens all others (FUSE, NFS, ...) and all that are opened by a path. It forks
 * a child for each: a file system that does not answer keeps that child, not the agent.
 */
#ifndef HEARTH_AGENT_FILES_OPEN_H
#define HEARTH_AGENT_FILES_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/proc/file_key.h"
#include "base/wait_hook.h"

struct metrics;

/* A mapping, through which /proc leads to the mapped file. */
struct file_place {
	uint32_t pid;
	uint32_t tid; /* a live task of the process, in case its leader has ended */
	uint64_t start, end;
};

struct file_opener;

/* Forks the process that opens files. To be called before there are threads, or descriptors that must not be inherited. 0 or
 * -errno. */
int file_opener_new(struct metrics *metrics, struct file_opener **ret);
void file_opener_free(struct file_opener *o);

/* @hook (copied) runs now and then while a file system does not answer. It must open nothing. */
void file_opener_on_wait(struct file_opener *o, struct wait_hook hook);

/*
 * A descriptor of the regular file @key that is mapped at @at, or -errno; -EBUSY when its file system does not answer: after
 * 1 s the first time, at once for a while from then on. @path is as the process saw it; "[vdso]" is the image of our own
 * vDSO. The file is opened through /proc/PID/map_files, /proc/PID/root, or (if the process is gone) the plain path; it is
 * never another file than @key.
 */
int file_open(struct file_opener *o, const struct file_key *key, const char *path, const struct file_place *at);

/*
 * Returns a descriptor (O_PATH) of the folder @name in the root folder of process @pid (0: in ours) if it is on a local file
 * system; or -errno: -EREMOTE when it is not, -EBUSY when that is not known in time, or was not known in time a moment ago
 * for another process.
 */
int file_opener_folder(struct file_opener *o, uint32_t pid, const char *name);

/* Can the file @key, which @task has mapped, be read without waiting for anybody? */
bool file_opener_is_local(struct file_opener *o, const struct file_key *key, uint32_t task);

/* The file system of @key let a reader wait for too long: treats it as one that did not answer when opening. */
void file_opener_blame(struct file_opener *o, const struct file_key *key);

#endif
