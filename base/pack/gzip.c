/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate packs whole blocks: its level 6 is as fast as zlib's level 1 and makes a tenth less bytes. zlib packs what
 * comes bit by bit, which libdeflate does not, and unpacks, since it finds out on the way how much there is. Blocks go
 * through zlib in pieces, since it counts bytes in 32 bits.
 */
#include "base/pack/gzip.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
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

struct gzip_stream {
	z_stream z;
	struct buf *out;
};

struct gzip_stream *gzip_stream_new(int level, struct buf *out)
{
	struct gzip_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->out = out;
	if (deflateInit2(&s->z, level, Z_DEFLATED, WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK)
		return s;
	free(s);
	return NULL;
}

/* Compresses until all input is used up or, with @flush Z_FINISH, the end is written. */
static int pack_on(struct gzip_stream *s, const uint8_t *data, size_t len, int flush)
{
	int status;

	do {
		feed(&s->z, &data, &len);
		if (make_room(&s->z, s->out))
			return -ENOMEM;
		status = deflate(&s->z, flush);
		s->out->len += OUT_BYTES - s->z.avail_out;
	} while (flush == Z_FINISH ? status != Z_STREAM_END : len || !s->z.avail_out);
	return 0;
}

int gzip_stream_add(struct gzip_stream *s, const void *data, size_t len_bytes)
{
	return pack_on(s, data, len_bytes, Z_NO_FLUSH);
}

int gzip_stream_end(struct gzip_stream *s)
{
	return pack_on(s, NULL, 0, Z_FINISH);
}

void gzip_stream_free(struct gzip_stream *s)
{
	if (!s)
		return;
	deflateEnd(&s->z);
	free(s);
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
