/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of whole bodies, bounded by the room given and never by what the bytes claim. Any thread, one at a time. */
#ifndef HEARTH_BACKEND_INGEST_UNPACK_H
#define HEARTH_BACKEND_INGEST_UNPACK_H

#include <stddef.h>
#include <stdint.h>

enum ingest_encoding { ENCODING_IDENTITY, ENCODING_GZIP, ENCODING_ZSTD };

struct unpacker;

/* NULL when out of memory. */
struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *u); /* accepts NULL */

/*
 * How much room to try first: what the body says its content takes, or @max_bytes where it does not say. 0 and *@room_ret;
 * -EFBIG: it says more than @max_bytes; -EBADMSG: what it says cannot be.
 */
int unpack_room(enum ingest_encoding encoding, const uint8_t *data, size_t len, size_t max_bytes, size_t *room_ret);

/*
 * Into @out, of @room bytes. gzip: one member or several (RFC 1952); zstd: one frame or several. 0 and *@len_ret; -ENOSPC:
 * @room is too small; -EBADMSG: cut, corrupt, or followed by something else; -ENOMEM.
 */
int unpack(struct unpacker *u, enum ingest_encoding encoding, const uint8_t *data, size_t len, uint8_t *out, size_t room,
	   size_t *len_ret);

#endif
