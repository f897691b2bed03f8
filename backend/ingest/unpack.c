/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompression by libdeflate and libzstd, both from one whole block into another. A gzip body of one member ends with its
 * content's length, which is tried first: when it lies, or there are more members, the caller gives all the room there may
 * be. No bomb costs more than filling that.
 */
#include "backend/ingest/unpack.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
	GZIP_MIN_BYTES = 18,	  /* header and trailer: RFC 1952 */
	DEFLATE_MAX_RATIO = 1032, /* by the format: 258 bytes from two bits */
};

struct unpacker {
	struct libdeflate_decompressor *deflate;
	ZSTD_DCtx *zstd;
};

struct unpacker *unpacker_new(void)
{
	struct unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->deflate = libdeflate_alloc_decompressor();
	u->zstd = ZSTD_createDCtx();
	if (!u->deflate || !u->zstd) {
		unpacker_free(u);
		return NULL;
	}
	return u;
}

void unpacker_free(struct unpacker *u)
{
	if (!u)
		return;
	libdeflate_free_decompressor(u->deflate);
	ZSTD_freeDCtx(u->zstd);
	free(u);
}

/* The last member's content modulo 2^32: the last four bytes say it. */
static int gzip_room(const uint8_t *data, size_t len, size_t max_bytes, size_t *room_ret)
{
	const uint8_t *p;
	size_t says;

	if (len < GZIP_MIN_BYTES)
		return -EBADMSG;
	p = data + len - 4;
	says = (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
	if (says / DEFLATE_MAX_RATIO > len)
		return -EBADMSG;
	if (says > max_bytes)
		return -EFBIG;
	*room_ret = says;
	return 0;
}

static int zstd_room(const uint8_t *data, size_t len, size_t max_bytes, size_t *room_ret)
{
	unsigned long long says = ZSTD_getFrameContentSize(data, len);

	if (says == ZSTD_CONTENTSIZE_ERROR)
		return -EBADMSG;
	if (says == ZSTD_CONTENTSIZE_UNKNOWN) {
		*room_ret = max_bytes;
		return 0;
	}
	if (says > max_bytes)
		return -EFBIG;
	*room_ret = (size_t)says;
	return 0;
}

int unpack_room(enum ingest_encoding encoding, const uint8_t *data, size_t len, size_t max_bytes, size_t *room_ret)
{
	if (encoding == ENCODING_ZSTD)
		return zstd_room(data, len, max_bytes, room_ret);
	return gzip_room(data, len, max_bytes, room_ret);
}

static int gunzip(struct unpacker *u, const uint8_t *data, size_t len, uint8_t *out, size_t room, size_t *len_ret)
{
	size_t done = 0;

	do {
		size_t used = 0, made = 0;

		switch (libdeflate_gzip_decompress_ex(u->deflate, data, len, out + done, room - done, &used, &made)) {
		case LIBDEFLATE_SUCCESS:
			break;
		case LIBDEFLATE_INSUFFICIENT_SPACE:
			return -ENOSPC;
		default:
			return -EBADMSG;
		}
		data += used;
		len -= used;
		done += made;
	} while (len);
	*len_ret = done;
	return 0;
}

static int unzstd(struct unpacker *u, const uint8_t *data, size_t len, uint8_t *out, size_t room, size_t *len_ret)
{
	size_t ret = ZSTD_decompressDCtx(u->zstd, out, room, data, len);

	if (!ZSTD_isError(ret)) {
		*len_ret = ret;
		return 0;
	}
	switch (ZSTD_getErrorCode(ret)) {
	case ZSTD_error_dstSize_tooSmall:
		return -ENOSPC;
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

int unpack(struct unpacker *u, enum ingest_encoding encoding, const uint8_t *data, size_t len, uint8_t *out, size_t room,
	   size_t *len_ret)
{
	uint8_t nothing; /* an address also for no room */

	if (encoding == ENCODING_ZSTD)
		return unzstd(u, data, len, out ? out : &nothing, room, len_ret);
	return gunzip(u, data, len, out ? out : &nothing, room, len_ret);
}
