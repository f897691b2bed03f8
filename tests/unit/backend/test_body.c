/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies: their bounds, their budget, and gzip that is cut or corrupt anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "backend/body.h"

static void fill(struct body *b, size_t len, size_t max)
{
	static const uint8_t piece[1000];
	while (b->len < len) {
		size_t n = len - b->len < sizeof(piece) ? len - b->len : sizeof(piece);
		assert_int_equal(body_append(b, piece, n, max), 0);
	}
}

static void test_bounds(void **state)
{
	struct body_budget budget = { .limit_bytes = 1 << 20 };
	struct body b;
	(void)state;

	body_init(&b, &budget);
	fill(&b, 100000, 100000);
	assert_int_equal(body_append(&b, "x", 1, 100000), -EFBIG);
	assert_int_equal(b.len, 100000);
	assert_true(b.cap <= 100000);
	assert_int_equal(body_expect(&b, 100001, 100000), -EFBIG);
	body_fini(&b);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_budget_is_shared(void **state)
{
	struct body_budget budget = { .limit_bytes = 300000 };
	struct body a, b;
	(void)state;

	body_init(&a, &budget);
	body_init(&b, &budget);
	assert_int_equal(body_expect(&a, 200000, 200000), 0);
	assert_int_equal(budget.used_bytes, 200000);
	assert_int_equal(body_expect(&b, 200000, 200000), -ENOBUFS);
	fill(&b, 65536, 200000);
	assert_int_equal(body_append(&b, "x", 1, 200000), -ENOBUFS);
	assert_int_equal(b.len, 65536);
	body_fini(&a);
	assert_int_equal(body_append(&b, "x", 1, 200000), 0);

	size_t len;
	uint8_t *data = body_take(&b, &len);
	assert_non_null(data);
	assert_int_equal(len, 65537);
	assert_int_equal(budget.used_bytes, 0);
	free(data);
}

static void test_empty_body_can_be_taken(void **state)
{
	struct body_budget budget = { .limit_bytes = 10 };
	struct body b;
	size_t len = 1;
	(void)state;

	body_init(&b, &budget);
	uint8_t *data = body_take(&b, &len);
	assert_non_null(data);
	assert_int_equal(len, 0);
	free(data);
}

static size_t compress_gzip(const uint8_t *data, size_t len, uint8_t *out, size_t size)
{
	z_stream z = {
		.next_in = (uint8_t *)(uintptr_t)data, .avail_in = (uInt)len, .next_out = out, .avail_out = (uInt)size
	};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t written = z.total_out;
	deflateEnd(&z);
	return written;
}

static int gunzip(struct body_budget *budget, const uint8_t *data, size_t len, size_t max, uint8_t *out, size_t *out_len)
{
	struct body b;
	body_init(&b, budget);
	assert_int_equal(body_append(&b, data, len, 1 << 20), 0);
	int ret = body_gunzip(&b, max);
	if (ret == 0) {
		*out_len = b.len;
		memcpy(out, b.data, b.len);
	}
	body_fini(&b);
	assert_int_equal(budget->used_bytes, 0);
	return ret;
}

static void test_gzip_cut_and_corrupt_anywhere(void **state)
{
	struct body_budget budget = { .limit_bytes = 1 << 20 };
	uint8_t plain[3000], packed[4000], got[3000];
	size_t got_len = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i * i >> 5);
	size_t len = compress_gzip(plain, sizeof(plain), packed, sizeof(packed));
	assert_int_equal(gunzip(&budget, packed, len, sizeof(plain), got, &got_len), 0);
	assert_int_equal(got_len, sizeof(plain));
	assert_memory_equal(got, plain, sizeof(plain));
	assert_int_equal(gunzip(&budget, packed, len, sizeof(plain) - 1, got, &got_len), -EFBIG);

	for (size_t cut = 1; cut < len; cut++)
		assert_int_not_equal(gunzip(&budget, packed, cut, sizeof(plain), got, &got_len), 0);
	for (size_t i = 0; i < len; i++) {
		packed[i] ^= 0xff;
		int ret = gunzip(&budget, packed, len, sizeof(plain), got, &got_len);
		/* Time stamp, hints and origin in the header mean nothing to us; everything else must be seen. */
		if (i >= 4 && i < 10)
			assert_int_equal(ret, 0);
		else
			assert_int_not_equal(ret, 0);
		packed[i] ^= 0xff;
	}
}

static void test_inflating_is_charged(void **state)
{
	struct body_budget budget = { .limit_bytes = 100000 };
	static uint8_t plain[50000];
	uint8_t packed[1000];
	struct body b;
	(void)state;

	size_t len = compress_gzip(plain, sizeof(plain), packed, sizeof(packed));
	body_init(&b, &budget);
	assert_int_equal(body_append(&b, packed, len, 1000), 0);
	budget.used_bytes += 60000; /* others' */
	assert_int_equal(body_gunzip(&b, 1 << 20), -ENOBUFS);
	assert_int_equal(b.len, len);
	budget.used_bytes -= 60000;
	assert_int_equal(body_gunzip(&b, 1 << 20), 0);
	assert_int_equal(b.len, sizeof(plain));
	assert_int_equal(budget.used_bytes, sizeof(plain));
	body_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_budget_is_shared),
		cmocka_unit_test(test_empty_body_can_be_taken),
		cmocka_unit_test(test_gzip_cut_and_corrupt_anywhere),
		cmocka_unit_test(test_inflating_is_charged),
	};
	return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}
