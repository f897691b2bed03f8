/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate packs: its level 6 is as fast as zlib's level 1 and makes a tenth less bytes. zlib unpacks, since it finds out
 * on the way how much there is. Whole blocks go through zlib in pieces, since it counts bytes in 32 bits.
 */
#include "base/pack/gzip.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

enum {
	WINDOW = 15 + 16,	   /* 32 KiB, with gzip's header: zlib's notation */
	OUT_BYTES = 64 << 10,	   /* room that is made at a time */
	MAX_PIECE_BYTES = 1 << 30, /* bytes of input at a time */
};

/* Gives zlib the next piece of input when the last is used up. */
static void feed(z_stream *z, const uint8_t **data, size_t *len)
{
	if (z->avail_in || !*len)
		return;
	z->next_in = (uint8_t *)(uintptr_t)*data;
	z->avail_in = *len < MAX_PIECE_BYTES ? (uInt)*len : MAX_PIECE_BYTES;
	*data += z->avail_in;
	*len -= z->avail_in;
}

static int make_room(z_stream *z, struct buf *out)
{
	if (buf_reserve(out, OUT_BYTES))
		return -ENOMEM;
	z->next_out = out->data + out->len;
	z->avail_out = OUT_BYTES;
	return 0;
}

int gzip_pack(const void *data, size_t len_bytes, int level, struct buf *out)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
	size_t room = c ? libdeflate_gzip_compress_bound(c, len_bytes) : 0, packed = 0;

	if (room && !buf_reserve(out, room)) /* pages of it that are not written are not resident */
		packed = libdeflate_gzip_compress(c, data, len_bytes, out->data + out->len, room);
	out->len += packed;
	libdeflate_free_compressor(c);
	return packed ? 0 : -ENOMEM;
}

bool gzip_is_packed(const void *data, size_t len_bytes)
{
	return len_bytes >= 2 && !memcmp(data, "\x1f\x8b", 2); /* RFC 1952, 2.3.1 */
}

int gzip_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out)
{
	const uint8_t *next = data;
	size_t start = out->len;
	z_stream z = { 0 };
	int error = 0;

	if (inflateInit2(&z, WINDOW) != Z_OK)
		return -ENOMEM;
	do {
		int status;

		feed(&z, &next, &len_bytes);
		error = make_room(&z, out);
		if (error)
			break;
		status = inflate(&z, Z_NO_FLUSH);
		out->len += OUT_BYTES - z.avail_out;
		if (out->len - start > max_bytes)
			error = -E2BIG;
		else if (status == Z_STREAM_END)
			error = z.avail_in || len_bytes ? (inflateReset(&z) == Z_OK ? 0 : -EBADMSG) : 1;
		else if (status != Z_OK)
			error = status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	} while (!error);
	inflateEnd(&z);
	return error < 0 ? error : 0;
}
