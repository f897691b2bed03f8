/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard over whole blocks of memory, by libzstd. Any thread. */
#ifndef HEARTH_BASE_PACK_ZSTD_H
#define HEARTH_BASE_PACK_ZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Appends @data as one frame, compressed at zstd's @level, to @out. 0 or -ENOMEM. */
int zstd_pack(const void *data, size_t len_bytes, int level, struct buf *out);

/* The same in about the time that gzip's level 6 takes, with 2.1 MB of memory beside that of @out however much there is.
 * Unpacking takes a window of 4 MiB at most. */
int zstd_pack_lean(const void *data, size_t len_bytes, struct buf *out);

/* Do the bytes begin as zstd's bytes do? */
bool zstd_is_packed(const void *data, size_t len_bytes);

/* Unpacks @data and appends the content to @out, one frame after the other. 0; -EBADMSG: broken or cut; -E2BIG: more than
 * @max_bytes; -ENOMEM. */
int zstd_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);

#endif
