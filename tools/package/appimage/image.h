/* SPDX-License-Identifier: Apache-2.0 */
/* The squashfs that lies behind the end of this ELF file, and copies of it in folders. One thread. */
#ifndef HEARTH_APPIMAGE_IMAGE_H
#define HEARTH_APPIMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <squashfuse/squashfuse.h>

#include "hash.h"

struct image {
	int fd;			    /* the whole file */
	uint64_t offset;	    /* where the squashfs begins, in bytes */
	uint64_t len;		    /* of the squashfs, in bytes */
	char name[HASH_DIGITS + 1]; /* the hash of all its bytes, in hexadecimal digits: only this content has it */
	sqfs fs;
	bool is_open; /* @fs is */
};

/* Opens the file that this process was started from. image_close() even after an error, which is -ENOEXEC: it is no ELF file
 * with a squashfs behind it, -EBADMSG: that is damaged or cut, or what open(2) and read(2) say. */
int image_open(struct image *image);
void image_close(struct image *image);

/* Whether the folder @dir has all files of the image, of their lengths and kinds, and of this user. -EBADMSG: the image is
 * damaged. */
int image_is_whole(struct image *image, int dir, bool *is_whole_ret);

/* Writes all files into the empty folder @dir; with @tells their names to standard output. -EBADMSG: the image is damaged,
 * else -errno of what could not be written, of which half may be there. */
int image_unpack(struct image *image, int dir, bool tells);

#endif
