/* SPDX-License-Identifier: Apache-2.0 */
/* The size that a frame states for itself is not believed: the frame is unpacked piece by piece. */
#include "base/pack/zstd.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { OUT_BYTES = 128 << 10 }; /* room that is made at a time */

int zstd_pack(const void *data, size_t len_bytes, int level, struct buf *out)
{
	size_t written;

	if (buf_reserve(out, ZSTD_compressBound(len_bytes)))
		return -ENOMEM;
	written = ZSTD_compress(out->data + out->len, buf_room(out), data, len_bytes, level);
	if (ZSTD_isError(written))
		return -ENOMEM;
	out->len += written;
	return 0;
}

/*
 * By levels the tables grow with the data: level 9 takes 13 MB for 4 MiB, level 12 takes 51. These take 2 MB at most.
 * Matches of four bytes pay off, as most of what profiles repeat are small numbers in rows.
 */
static int set_lean(ZSTD_CCtx *c)
{
	static const struct {
		ZSTD_cParameter parameter;
		int value;
	} rows[] = {
		{ ZSTD_c_strategy, ZSTD_lazy2 }, { ZSTD_c_windowLog, 22 }, { ZSTD_c_hashLog, 18 },
		{ ZSTD_c_chainLog, 18 },	 { ZSTD_c_searchLog, 4 },  { ZSTD_c_minMatch, 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(c, rows[i].parameter, rows[i].value)))
			return -ENOMEM;
	return 0;
}

int zstd_pack_lean(const void *data, size_t len_bytes, struct buf *out)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	int err = !c || buf_reserve(out, ZSTD_compressBound(len_bytes)) ? -ENOMEM : set_lean(c);
	size_t written = err ? 0 : ZSTD_compress2(c, out->data + out->len, buf_room(out), data, len_bytes);

	ZSTD_freeCCtx(c);
	if (err || ZSTD_isError(written))
		return -ENOMEM;
	out->len += written;
	return 0;
}

bool zstd_is_packed(const void *data, size_t len_bytes)
{
	return len_bytes >= 4 && !memcmp(data, "\x28\xb5\x2f\xfd", 4); /* RFC 8878, 3.1.1 */
}

static int error_of(size_t status)
{
	return ZSTD_getErrorCode(status) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

int zstd_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	ZSTD_inBuffer in = { .src = data, .size = len_bytes };
	size_t start = out->len, left = 1; /* bytes of the frame still to come, as far as libzstd knows; 0: it is whole */
	int err = stream ? 0 : -ENOMEM;

	while (!err && (in.pos < in.size || left)) {
		ZSTD_outBuffer room;
		size_t read = in.pos;

		err = buf_reserve(out, OUT_BYTES);
		if (err)
			break;
		room = (ZSTD_outBuffer){ .dst = out->data + out->len, .size = OUT_BYTES };
		left = ZSTD_decompressStream(stream, &room, &in);
		if (ZSTD_isError(left))
			err = error_of(left);
		else if (left && in.pos == in.size && in.pos == read && !room.pos)
			err = -EBADMSG; /* the frame needs more input than there is */
		out->len += room.pos;
		if (!err && out->len - start > max_bytes)
			err = -E2BIG;
	}
	ZSTD_freeDStream(stream);
	return err;
}
