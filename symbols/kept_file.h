/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in the folder of indexes (symbols/index/cache.h) as they are read and written: mapped only if nobody else could have
 * written them, replaced as a whole. No state.
 */
#ifndef HEARTH_SYMBOLS_KEPT_FILE_H
#define HEARTH_SYMBOLS_KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

/* A file that comes to be has a name with this in front until it is whole. */
#define KEPT_FILE_NEW ".new-"

enum { KEPT_FILE_NEW_BYTES = 32 };

struct kept_file {
	void *data; /* NULL: nothing is mapped */
	size_t len_bytes;
	struct timespec used; /* its access time */
};

/* Is what @st tells of this user's or root's, and not writable for others? */
bool kept_file_is_ours(const struct stat *st);

/* Maps the file @fd, whoever wrote it, for reading; @fd stays the caller's. 0; -EBADMSG: it is empty, or no plain file;
 * -errno.
 */
int kept_file_map_fd(int fd, struct kept_file *ret);

/* Maps the file @name of the folder @dir_fd for reading. 0; -ENOENT; -EBADMSG: it is empty, no plain file, or not
 * kept_file_is_ours; -errno. */
int kept_file_map(int dir_fd, const char *name, struct kept_file *ret);

/* Accepts one that is not mapped, and leaves it so. */
void kept_file_unmap(struct kept_file *f);

/* Gives the memory back that reading took; what is read again comes from the file. */
void kept_file_rest(const struct kept_file *f);

/* Makes up a name for a file that comes to be. 0 or -errno. */
int kept_file_new_name(char dst[static KEPT_FILE_NEW_BYTES]);

/* Writes the @len_bytes at @data to the file @name of the folder @dir_fd, in the place of what was there. 0 or -errno; then
 * the old one is still there. */
int kept_file_replace(int dir_fd, const char *name, const void *data, size_t len_bytes);

#endif
