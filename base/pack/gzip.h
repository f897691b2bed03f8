/* SPDX-License-Identifier: Apache-2.0 */
/* Gzip over whole blocks of memory. Any thread. */
#ifndef HEARTH_BASE_PACK_GZIP_H
#define HEARTH_BASE_PACK_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Compresses @data at libdeflate's @level (1 to 12) and appends it to @out. 0 or -ENOMEM. */
int gzip_pack(const void *data, size_t len_bytes, int level, struct buf *out);

/* Do the bytes begin as gzip's bytes do? */
bool gzip_is_packed(const void *data, size_t len_bytes);

/* Unpacks @data and appends the content to @out, one member after the other. 0; -EBADMSG: broken or cut; -E2BIG: more than
 * @max_bytes; -ENOMEM. */
int gzip_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);

#endif
