/* SPDX-License-Identifier: Apache-2.0 */
/* Varints: each length to the byte, what ends too early, what is too large, and that nothing behind the end is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/varint.h"

/* The bytes in a block of their own, behind which a sanitizer sees each look. */
static const uint8_t *read_exactly(const uint8_t *bytes, size_t len, uint64_t *ret)
{
	AUTO_FREE uint8_t *copy = malloc(len ? len : 1);
	const uint8_t *end;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	end = varint_read(copy, copy + len, ret);
	return end ? bytes + (end - copy) : NULL;
}

static void check_both_ways(uint64_t v, size_t expected)
{
	uint8_t bytes[VARINT_BYTES + 1];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	uint64_t back = ~v;
	size_t len;

	memset(bytes, 0xff, sizeof(bytes));
	len = (size_t)(varint_write(bytes, v) - bytes);
	assert_int_equal(len, expected);
	assert_int_equal(bytes[len], 0xff);
	assert_ptr_equal(read_exactly(bytes, len, &back), bytes + len);
	assert_int_equal(back, v);
	back = ~v;
	assert_ptr_equal(read_exactly(bytes, sizeof(bytes), &back), bytes + len); /* more follows */
	assert_int_equal(back, v);
	for (size_t cut = 0; cut < len; cut++) {
		assert_null(read_exactly(bytes, cut, &back));
		assert_null(varint_read(bytes, bytes + cut, &back)); /* its last byte stands behind the end */
	}
	varint_append(&out, v);
	varint_append(&out, 5);
	assert_int_equal(out.len, len + 1);
	assert_memory_equal(out.data, bytes, len);
	assert_int_equal(out.data[len], 5);
}

static void test_lengths(void **state)
{
	(void)state;
	check_both_ways(0, 1);
	for (unsigned bits = 1; bits <= 64; bits++) {
		uint64_t greatest = UINT64_MAX >> (64 - bits);

		check_both_ways(greatest, (bits + 6) / 7);
		check_both_ways(greatest / 2 + 1, (bits + 6) / 7);
	}
}

static void test_bytes(void **state)
{
	static const uint8_t longer[] = { 0x81, 0x80, 0x80, 0x00 };
	uint8_t bytes[VARINT_BYTES];
	uint64_t v = 0;

	(void)state;
	assert_int_equal(varint_write(bytes, 300) - bytes, 2);
	assert_memory_equal(bytes, "\xac\x02", 2);
	assert_int_equal(varint_write(bytes, 0x1fffff) - bytes, 3);
	assert_memory_equal(bytes, "\xff\xff\x7f", 3);
	assert_ptr_equal(read_exactly(longer, sizeof(longer), &v), longer + sizeof(longer));
	assert_int_equal(v, 1);
}

static void test_too_large(void **state)
{
	uint8_t bytes[11];
	uint64_t v = 0;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	bytes[9] = 1;
	assert_ptr_equal(read_exactly(bytes, 10, &v), bytes + 10);
	assert_int_equal(v, UINT64_MAX);
	v = 5;
	bytes[9] = 2; /* bit 65 */
	assert_null(read_exactly(bytes, 10, &v));
	bytes[9] = 0x81;
	bytes[10] = 0; /* an eleventh byte, though it says nothing */
	assert_null(read_exactly(bytes, 11, &v));
	memset(bytes, 0x80, sizeof(bytes));
	assert_null(read_exactly(bytes, 11, &v));
	assert_int_equal(v, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
