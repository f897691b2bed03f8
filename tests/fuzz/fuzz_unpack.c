/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that say they are gzip (even first byte) or zstd. Whatever comes out of gzip is what zlib makes of the same bytes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/unpack.h"
#include "base/buf.h"
#include "base/gzip.h"

enum { MAX_BYTES = 1 << 18 };

static void compare(const uint8_t *data, size_t len, const uint8_t *out, size_t out_len)
{
	struct buf truth = BUF_EMPTY;

	if (gzip_unpack(data, len, MAX_BYTES, &truth) || truth.len != out_len ||
	    (out_len && memcmp(truth.data, out, out_len)))
		abort();
	buf_fini(&truth);
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
