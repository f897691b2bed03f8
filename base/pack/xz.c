/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed bytes may stand for any number of unpacked ones, so room for these is made piece by piece, and both that room and
 * the memory of the unpacker are bounded.
 */
#include "base/pack/xz.h"

#include <errno.h>
#include <lzma.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
	MAX_UNPACKER_BYTES = 80 << 20, /* xz -9 needs 65 MB */
	OUT_BYTES = 128 << 10,	       /* room that is made at a time */
};

/* The level's settings, changed for bytes without alignment, and with a window no larger than the data. */
static bool settings(int level, size_t len, lzma_options_lzma *ret)
{
	if (lzma_lzma_preset(ret, (uint32_t)level))
		return false;
	ret->pb = 0;
	while (ret->dict_size / 2 >= len && ret->dict_size / 2 >= LZMA_DICT_SIZE_MIN)
		ret->dict_size /= 2;
	return true;
}

int xz_pack(const void *data, size_t len_bytes, int level, struct buf *out)
{
	lzma_options_lzma options;
	lzma_filter filters[] = { { LZMA_FILTER_LZMA2, &options }, { LZMA_VLI_UNKNOWN, NULL } };

	if (!settings(level, len_bytes, &options) || buf_reserve(out, lzma_stream_buffer_bound(len_bytes)) ||
	    lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, data, len_bytes, out->data, &out->len, out->cap - 1))
		return -ENOMEM;
	return 0;
}

bool xz_is_packed(const void *data, size_t len_bytes)
{
	return len_bytes >= 6 && !memcmp(data, "\3757zXZ", 6); /* with the NUL; .xz file format, 2.1.1.1 */
}

static void stream_end(lzma_stream *s)
{
	lzma_end(s);
}

int xz_unpack(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out)
{
	AUTO(stream_end) lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret status = lzma_stream_decoder(&s, MAX_UNPACKER_BYTES, LZMA_CONCATENATED);
	size_t start = out->len;

	s.next_in = data;
	s.avail_in = len_bytes;
	while (status == LZMA_OK) {
		if (buf_reserve(out, OUT_BYTES))
			return -ENOMEM;
		s.next_out = out->data + out->len;
		s.avail_out = OUT_BYTES;
		status = lzma_code(&s, LZMA_FINISH);
		out->len += OUT_BYTES - s.avail_out;
		if (out->len - start > max_bytes)
			return -E2BIG;
	}
	return status == LZMA_STREAM_END ? 0 : status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
}
