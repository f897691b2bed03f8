/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that say they are gzip (even first byte) or zstd. Whatever comes out of gzip is what zlib makes of the same bytes,
 * but for two things that zlib alone refuses: a wrong checksum of the header (RFC 1952 lets it be ignored) and a block that
 * announces 287 or 288 lengths (none of the last two can be used).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "backend/ingest/unpack.h"

enum {
	MAX_BYTES = 1 << 18,
	GZIP_WINDOW = 15 + 16, /* zlib's notation of gzip's header and 32 KiB */
};

static void compare(const uint8_t *data, size_t len, const uint8_t *out, size_t out_len)
{
	uint8_t *truth = malloc(out_len + 1);
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)data,
		       .avail_in = (uInt)len,
		       .next_out = truth,
		       .avail_out = (uInt)out_len + 1 };
	int status;

	if (!truth || inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		abort();
	do {
		inflateValidate(&z, 0); /* libdeflate has checked the content's */
		status = inflate(&z, Z_FINISH);
	} while (status == Z_STREAM_END && z.avail_in && inflateReset(&z) == Z_OK);
	if (status == Z_STREAM_END) {
		if ((size_t)(z.next_out - truth) != out_len || (out_len && memcmp(truth, out, out_len)))
			abort();
	} else if (!z.msg || strcmp(z.msg, "too many length or distance symbols")) {
		abort();
	}
	inflateEnd(&z);
	free(truth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct unpacker *unpacker;
	enum ingest_encoding encoding = len && data[0] & 1 ? ENCODING_ZSTD : ENCODING_GZIP;
	size_t room = 0, out_len = 0;
	int ret;

	if (!unpacker && !(unpacker = unpacker_new()))
		abort();
	if (!len)
		return 0;
	data++;
	len--;
	ret = unpack_room(encoding, data, len, MAX_BYTES, &room);
	for (int attempt = 0; ret == 0 && attempt < 2; attempt++) {
		uint8_t *out = malloc(room ? room : 1);

		ret = unpack(unpacker, encoding, data, len, out, room, &out_len);
		if (ret == 0 && out_len > room)
			abort();
		if (ret == 0 && encoding == ENCODING_GZIP)
			compare(data, len, out, out_len);
		free(out);
		if (ret != -ENOSPC)
			break;
		ret = 0;
		room = MAX_BYTES;
	}
	return 0;
}
