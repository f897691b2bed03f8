/* SPDX-License-Identifier: Apache-2.0 */
/* Message framing, in every way that a stream can be cut into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "backend/grpc/grpc_frame.h"
#include "base/cleanup.h"

struct outcome {
	enum grpc_frame_step end; /* MORE, BAD or SURPLUS */
	bool whole, compressed;
	uint32_t len;
	char message[16];
};

/* @len bytes in pieces of at most @piece, each in a block of its own, so that a sanitizer sees a read beyond it. */
static struct outcome read_pieces(const char *bytes, size_t len, size_t piece)
{
	struct grpc_frame f = { 0 };
	struct outcome o = { 0 };
	size_t have = 0;

	for (size_t at = 0; at < len && o.end == GRPC_FRAME_MORE; at += piece) {
		size_t n = len - at < piece ? len - at : piece, data_len;
		AUTO_FREE uint8_t *copy = memcpy(malloc(n), bytes + at, n);
		const uint8_t *p = copy, *data;
		enum grpc_frame_step step;

		while ((step = grpc_frame_next(&f, &p, copy + n, &data, &data_len)) == GRPC_FRAME_PREFIX ||
		       step == GRPC_FRAME_DATA) {
			if (step != GRPC_FRAME_DATA)
				continue;
			assert_true(data_len > 0 && have + data_len <= sizeof(o.message));
			memcpy(o.message + have, data, data_len);
			have += data_len;
		}
		o.end = step;
	}
	o.whole = grpc_frame_is_whole(&f);
	o.compressed = f.is_compressed;
	o.len = f.len;
	assert_int_equal(grpc_frame_is_begun(&f), len > 0);
	return o;
}

#define BYTES(s) s, sizeof(s) - 1

static void test_every_cut(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		struct outcome expected;
	} cases[] = {
		{ BYTES(""), { GRPC_FRAME_MORE, false, false, 0, "" } },
		{ BYTES("\0\0\0\0"), { GRPC_FRAME_MORE, false, false, 0, "" } },
		{ BYTES("\0\0\0\0\0"), { GRPC_FRAME_MORE, true, false, 0, "" } },
		{ BYTES("\1\0\0\0\0"), { GRPC_FRAME_MORE, true, true, 0, "" } },
		{ BYTES("\0\0\0\0\3abc"), { GRPC_FRAME_MORE, true, false, 3, "abc" } },
		{ BYTES("\1\0\0\0\3abc"), { GRPC_FRAME_MORE, true, true, 3, "abc" } },
		{ BYTES("\0\0\0\0\3ab"), { GRPC_FRAME_MORE, false, false, 3, "ab" } },
		{ BYTES("\0\1\2\3\4ab"), { GRPC_FRAME_MORE, false, false, 0x01020304, "ab" } },
		{ BYTES("\0\xff\xff\xff\xff"), { GRPC_FRAME_MORE, false, false, UINT32_MAX, "" } },
		{ BYTES("\0\0\0\0\3abcd"), { GRPC_FRAME_SURPLUS, true, false, 3, "abc" } },
		{ BYTES("\0\0\0\0\0\0"), { GRPC_FRAME_SURPLUS, true, false, 0, "" } },
		{ BYTES("\2\0\0\0\0"), { GRPC_FRAME_BAD, false, false, 0, "" } },
		{ BYTES("\xff"), { GRPC_FRAME_BAD, false, false, 0, "" } },
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t piece = 1; piece <= 10; piece++) {
			struct outcome o = read_pieces(cases[i].bytes, cases[i].len, piece);

			assert_int_equal(o.end, cases[i].expected.end);
			if (o.end == GRPC_FRAME_BAD)
				continue;
			assert_int_equal(o.whole, cases[i].expected.whole);
			assert_int_equal(o.compressed, cases[i].expected.compressed);
			assert_int_equal(o.len, cases[i].expected.len);
			assert_string_equal(o.message, cases[i].expected.message);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
