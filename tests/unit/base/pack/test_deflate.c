/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of deflate are unpacked if they are whole and as long as was said. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/pack/deflate.h"

enum { BYTES = 100000 };

static uint8_t content[BYTES], packed[BYTES], out[BYTES + 1];

/* Packs the first @len bytes; returns how long they are then. */
static size_t pack(size_t len)
{
	z_stream z = { .next_in = content, .avail_in = (uInt)len, .next_out = packed, .avail_out = sizeof(packed) };

	for (size_t i = 0; i < len; i++)
		content[i] = (uint8_t)(i * i >> 9);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void streams_are_unpacked(void **state)
{
	static const size_t lengths[] = { 0, 1, 300, BYTES };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t len = pack(lengths[i]);

		memset(out, 0xee, sizeof(out));
		assert_int_equal(deflate_unpack(packed, len, out, lengths[i]), 0);
		assert_memory_equal(out, content, lengths[i]);
		assert_int_equal(out[lengths[i]], 0xee);
		assert_int_equal(deflate_unpack(packed, sizeof(packed), out, lengths[i]), 0); /* something is behind it */
	}
}

static void others_are_refused(void **state)
{
	size_t len = pack(BYTES);

	(void)state;
	assert_int_equal(deflate_unpack(packed, len, out, BYTES - 1), -EBADMSG);
	assert_int_equal(deflate_unpack(packed, len, out, BYTES + 1), -EBADMSG);
	assert_int_equal(deflate_unpack(packed, len - 1, out, BYTES), -EBADMSG);
	assert_int_equal(deflate_unpack(packed, 0, out, BYTES), -EBADMSG);
	packed[0] |= 6; /* a kind of block that there is not */
	assert_int_equal(deflate_unpack(packed, len, out, BYTES), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_unpacked),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
