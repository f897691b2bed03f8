/* SPDX-License-Identifier: Apache-2.0 */
/* xz over whole blocks of memory, by liblzma. Any thread. */
#ifndef HEARTH_BASE_PACK_XZ_H
#define HEARTH_BASE_PACK_XZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Appends @data as one stream, compressed at xz's @level (0 to 9), to @out. This takes about twelve times the memory of
 * @data, and at most the memory of that level. 0 or -ENOMEM. */
int xz_pack(const void *data, size_t len_bytes, int level, struct buf *out);

/* Do the bytes begin as xz's bytes do? */
bool xz_is_packed(const void *data, size_t len_bytes);

/* Unpacks @data and appends the content to @out, one stream after the other. 0; -EBADMSG: broken or cut, or unpacking needs
 * more memory than files of xz -9 do; -E2BIG: more than @max_bytes; -ENOMEM. */
int xz_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);

#endif
