/* SPDX-License-Identifier: Apache-2.0 */
/* Reads capture files. */
#ifndef HEARTH_CMD_FILES_CAPTURE_H
#define HEARTH_CMD_FILES_CAPTURE_H

#include <stddef.h>

struct buf;
struct profiles;

struct capture {
	struct profiles *profiles; /* one reference, the caller's */
	size_t file_bytes;
	size_t read_bytes; /* less than file_bytes: the file is cut, this is what stands before the cut */
};

/*
 * Reads the file @path ("-": standard input). 0; -errno with @error saying which file, what is wrong with it and what to do.
 * A file cut in the middle is read up to its last whole message. A store's folder is read as one capture of all in it.
 */
int capture_read(const char *path, struct capture *ret, struct buf *error);

/* The same; says on the log what is wrong, and of a file that is cut what is left out. */
int capture_load(const char *path, struct capture *ret);

/*
 * Reads the capture @path a part at a time, so that memory holds one: @fn gets each for the time of the call and may change
 * it. A file that cannot be read in parts is one part. Stops when @fn returns not 0 and returns that; else 0, or -errno.
 * Logs the same as capture_load().
 */
int capture_each(const char *path, int (*fn)(void *arg, struct profiles *p), void *arg);

/* A cache of readable names, as the parts of a capture repeat them. One thread. */
struct capture_names;

struct capture_names *capture_names_new(void);
void capture_names_free(struct capture_names *names);

/* Makes the names of @p, which nobody else has yet, anew as the settings of symbols/demangle.h say, where it holds their
 * mangled form. @known: NULL, or what it takes them from and adds them to. 0, -ENOMEM. */
int capture_demangle(struct profiles *p, struct capture_names *known);

/* Leaves the inlined calls of @p, which nobody else has yet, out of its stacks. */
void capture_drop_inlined(struct profiles *p);

/* The name of @path in messages. */
const char *capture_name(const char *path);

#endif
