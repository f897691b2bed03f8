/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal text against printf's: around every power of two and of ten, and at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/digits.h"
#include "tests/unit/descriptors.h"

/* What may be written to: eight digits, or as many as there are. */
static size_t room(const char *text)
{
	size_t sign = *text == '-', digits = strlen(text) - sign;

	return sign + (digits < 8 ? 8 : digits);
}

static void check(uint64_t v)
{
	char want[32], got[32];
	char *end;

	snprintf(want, sizeof(want), "%" PRIu64, v);
	memset(got, '#', sizeof(got));
	end = digits_u64(got, v);
	assert_memory_equal(got, want, strlen(want));
	assert_ptr_equal(end, got + strlen(want));
	assert_memory_equal(got + room(want), "####", 4);

	snprintf(want, sizeof(want), "%" PRId64, (int64_t)v);
	memset(got, '#', sizeof(got));
	end = digits_i64(got, (int64_t)v);
	assert_memory_equal(got, want, strlen(want));
	assert_ptr_equal(end, got + strlen(want));
	assert_memory_equal(got + room(want), "####", 4);
}

static void check_around(uint64_t v)
{
	check(v - 1);
	check(v);
	check(v + 1);
	check(-v);
}

static void edges(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (unsigned bit = 0; bit < 64; bit++)
		check_around(UINT64_C(1) << bit);
	for (unsigned i = 0; i < 20; i++, power *= 10)
		check_around(power);
	for (uint64_t v = 0; v < 20000; v++)
		check(v);
}

static void any(void **state)
{
	(void)state;
	srandom(7);
	for (int i = 0; i < 100000; i++) {
		uint64_t v = (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();

		check(v >> (random() & 63));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),
		cmocka_unit_test(any),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
