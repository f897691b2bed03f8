/* SPDX-License-Identifier: Apache-2.0 */
/* zlib in one call each way. No state. */
#include "sinks/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

enum {
	GZIP_LEVEL = 1,	       /* profiles shrink about as well as at 6, at a third of the time */
	GZIP_WINDOW = 15 + 16, /* 32 KiB with a gzip header, in zlib's notation */
	UNPACK_STEP_BYTES = 64 << 10,
};

int gzip_pack(const uint8_t *data, size_t len, size_t room_bytes, uint8_t **ret, size_t *len_ret)
{
	z_stream z = { 0 };
	uint8_t *out, *fitted;
	size_t bound;
	int end;

	if (len > UINT32_MAX / 2)
		return -E2BIG;
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&z, len);
	out = malloc(room_bytes + bound);
	z.next_in = (uint8_t *)(uintptr_t)data;
	z.avail_in = (unsigned)len;
	z.next_out = out + room_bytes;
	z.avail_out = (unsigned)bound;
	end = out ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	*len_ret = z.total_out;
	deflateEnd(&z);
	if (end != Z_STREAM_END) {
		free(out);
		return -ENOMEM;
	}
	fitted = realloc(out, room_bytes + *len_ret); /* the queue's bound counts what is used */
	*ret = fitted ? fitted : out;
	return 0;
}

/* Inflates into @out until the stream ends. */
static int inflate_all(z_stream *z, size_t max_bytes, struct buf *out)
{
	for (;;) {
		int state;

		if (buf_reserve(out, UNPACK_STEP_BYTES))
			return -ENOMEM;
		z->next_out = out->data + out->len;
		z->avail_out = UNPACK_STEP_BYTES;
		state = inflate(z, Z_NO_FLUSH);
		out->len += UNPACK_STEP_BYTES - z->avail_out;
		if (out->len > max_bytes)
			return -E2BIG;
		if (state == Z_STREAM_END)
			return z->avail_in ? -EBADMSG : 0;
		if (state != Z_OK)
			return state == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
}

int gzip_unpack(const uint8_t *data, size_t len, size_t max_bytes, uint8_t **ret, size_t *len_ret)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)data, .avail_in = (unsigned)len };
	struct buf out = BUF_EMPTY;
	int error;

	if (len > UINT32_MAX / 2)
		return -E2BIG;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	error = inflate_all(&z, max_bytes, &out);
	inflateEnd(&z);
	if (error) {
		buf_fini(&out);
		return error;
	}
	*ret = out.data; /* at least one step was reserved */
	*len_ret = out.len;
	return 0;
}
