/* SPDX-License-Identifier: Apache-2.0 */
/* Gzip over whole blocks of memory, and over what comes bit by bit. Any thread; a stream is one's at a time. */
#ifndef HEARTH_BASE_PACK_GZIP_H
#define HEARTH_BASE_PACK_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Compresses @data at libdeflate's @level (1 to 12) and appends it to @out. 0 or -ENOMEM. */
int gzip_pack(const void *data, size_t len_bytes, int level, struct buf *out);

/* Compresses what is added at zlib's @level (1 to 9) and appends it to @out, which must outlive the stream and holds a whole
 * member after gzip_stream_end(). NULL without memory. */
struct gzip_stream *gzip_stream_new(int level, struct buf *out);
/* 0 or -ENOMEM. */
int gzip_stream_add(struct gzip_stream *s, const void *data, size_t len_bytes);
int gzip_stream_end(struct gzip_stream *s);
void gzip_stream_free(struct gzip_stream *s); /* accepts NULL */

/* Do the bytes begin as gzip's bytes do? */
bool gzip_is_packed(const void *data, size_t len_bytes);

/* Unpacks @data and appends the content to @out, one member after the other. 0; -EBADMSG: broken or cut; -E2BIG: more than
 * @max_bytes; -ENOMEM. */
int gzip_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);

#endif
