/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of what zlib and libzstd packed: cut and corrupt anywhere, in too little room, in several pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "backend/ingest/unpack.h"

enum { PLAIN = 3000, MAX = 1 << 20 };

static struct unpacker *unpacker;
static uint8_t plain[PLAIN], packed[3 * PLAIN], out[MAX];

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLAIN; i++)
		plain[i] = (uint8_t)(i * i >> 5);
	unpacker = unpacker_new();
	return unpacker ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	unpacker_free(unpacker);
	return 0;
}

static size_t pack_gzip(uint8_t *to, size_t size)
{
	z_stream z = { .next_in = plain, .avail_in = PLAIN, .next_out = to, .avail_out = (uInt)size };
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t written = z.total_out;
	deflateEnd(&z);
	return written;
}

static size_t pack_zstd(uint8_t *to, size_t size, int says_size, int checksum)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, says_size);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	size_t written = ZSTD_compress2(c, to, size, plain, PLAIN);
	assert_false(ZSTD_isError(written));
	ZSTD_freeCCtx(c);
	return written;
}

/* @data in a block of its own, so that a sanitizer sees a byte too many read. */
static int try_room(enum ingest_encoding encoding, const uint8_t *data, size_t len, size_t room, size_t *len_ret)
{
	uint8_t *copy = malloc(len ? len : 1), *to = malloc(room ? room : 1);
	assert_non_null(copy);
	assert_non_null(to);
	memcpy(copy, data, len);
	int ret = unpack(unpacker, encoding, copy, len, to, room, len_ret);
	if (ret == 0)
		memcpy(out, to, *len_ret);
	free(copy);
	free(to);
	return ret;
}

static int unpack_whole(enum ingest_encoding encoding, const uint8_t *data, size_t len, size_t max, size_t *len_ret)
{
	size_t room = 0;
	int ret = unpack_room(encoding, data, len, max, &room);
	if (ret == 0)
		ret = try_room(encoding, data, len, room, len_ret);
	return ret == -ENOSPC ? try_room(encoding, data, len, max, len_ret) : ret;
}

static void test_cut_and_corrupt_anywhere(void **state)
{
	(void)state;
	for (int zstd = 0; zstd < 2; zstd++) {
		enum ingest_encoding encoding = zstd ? ENCODING_ZSTD : ENCODING_GZIP;
		size_t len = zstd ? pack_zstd(packed, sizeof(packed), 1, 1) : pack_gzip(packed, sizeof(packed)), got = 0;

		assert_int_equal(unpack_whole(encoding, packed, len, MAX, &got), 0);
		assert_int_equal(got, PLAIN);
		assert_memory_equal(out, plain, PLAIN);
		assert_int_equal(unpack_whole(encoding, packed, len, PLAIN, &got), 0);
		assert_int_equal(unpack_whole(encoding, packed, len, PLAIN - 1, &got), -EFBIG);
		for (size_t cut = 0; cut < len; cut++)
			if (unpack_whole(encoding, packed, cut, MAX, &got) == 0)
				fail_msg("cut at %zu of %zu", cut, len);
		for (size_t i = 0; i < len; i++) {
			packed[i] ^= 0xff;
			int ret = unpack_whole(encoding, packed, len, MAX, &got);
			/* Time stamp, hints and origin of gzip's header mean nothing to us; everything else must be seen. */
			if (!zstd && i >= 4 && i < 10)
				assert_int_equal(ret, 0);
			else if (ret == 0)
				fail_msg("byte %zu of %zu", i, len);
			packed[i] ^= 0xff;
		}
		packed[len] = 0;
		assert_int_equal(unpack_whole(encoding, packed, len + 1, MAX, &got), -EBADMSG);
	}
}

static void test_several_pieces(void **state)
{
	(void)state;
	for (int zstd = 0; zstd < 2; zstd++) {
		enum ingest_encoding encoding = zstd ? ENCODING_ZSTD : ENCODING_GZIP;
		size_t len = zstd ? pack_zstd(packed, sizeof(packed), 1, 0) : pack_gzip(packed, sizeof(packed)), got = 0;

		memcpy(packed + len, packed, len);
		assert_int_equal(unpack_whole(encoding, packed, 2 * len, MAX, &got), 0);
		assert_int_equal(got, 2 * PLAIN);
		assert_memory_equal(out + PLAIN, plain, PLAIN);
		assert_int_equal(unpack_whole(encoding, packed, 2 * len, 2 * PLAIN - 1, &got), -ENOSPC);
	}
}

static void test_length_unsaid(void **state)
{
	size_t len, room = 0, got = 0;
	(void)state;

	len = pack_zstd(packed, sizeof(packed), 0, 1);
	assert_int_equal(unpack_room(ENCODING_ZSTD, packed, len, MAX, &room), 0);
	assert_int_equal(room, MAX);
	assert_int_equal(unpack_whole(ENCODING_ZSTD, packed, len, MAX, &got), 0);
	assert_int_equal(got, PLAIN);
	assert_int_equal(unpack_whole(ENCODING_ZSTD, packed, len, PLAIN - 1, &got), -ENOSPC);
}

static void test_lies(void **state)
{
	size_t len = pack_gzip(packed, sizeof(packed)), room = 0, got = 0;
	(void)state;

	packed[len - 1] = 0xff; /* 4 GiB from so little */
	assert_int_equal(unpack_room(ENCODING_GZIP, packed, len, SIZE_MAX, &room), -EBADMSG);
	packed[len - 1] = 0;
	packed[len - 4]--;
	assert_int_equal(unpack_whole(ENCODING_GZIP, packed, len, MAX, &got), -EBADMSG);
	packed[len - 4] += 2;
	assert_int_equal(unpack_whole(ENCODING_GZIP, packed, len, MAX, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_and_corrupt_anywhere),
		cmocka_unit_test(test_several_pieces),
		cmocka_unit_test(test_length_unsaid),
		cmocka_unit_test(test_lies),
	};
	return cmocka_run_group_tests_name("unpack", tests, setup, teardown);
}
