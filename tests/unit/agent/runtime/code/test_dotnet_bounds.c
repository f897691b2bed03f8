/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds that compilers kept: with a method's code in the forms of .NET 8 and 10, and in an image that was compiled ahead.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

#ifdef __x86_64__
enum { BYTES = 0x1000, AT = 0x100, CLR = 0x200, READY = 0x300, ARRAY = 0x400, HEAD = 0x80 };

static uint8_t bytes[BYTES];
static struct code_memory memory;
static struct code_block block;
static struct dotnet dotnet;
static uint32_t nibble_at;

#include "tests/unit/agent/runtime/code/made_bytes.h"

static void use_release(uint32_t release)
{
	int layout = dotnet_layout_find(&(struct code_facts){ .version = release << 16 });

	assert_true(layout >= 0);
	dotnet = (struct dotnet){ .layout = (uint32_t)layout };
}

static int setup(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memory = (struct code_memory){ .read = read_made, .reads_left = 10000, .bytes_left = 1 << 20, .end_ns = UINT64_MAX };
	block = (struct code_block){ .own = { [DOTNET_OWN_DEBUG] = AT } };
	use_release(8);
	return 0;
}

static void number(uint32_t value)
{
	int shift = 0;

	while (shift < 30 && value >> shift > 7)
		shift += 3;
	for (; shift >= 0; shift -= 3, nibble_at++)
		bytes[nibble_at / 2] |= (uint8_t)(((value >> shift & 7) | (shift ? 8u : 0)) << (nibble_at % 2 ? 4 : 0));
}

/* Bounds as numbers at @at; returns where they end. */
static uint32_t put_numbers(uint32_t at)
{
	nibble_at = 2 * at;
	number(4);
	number(0), number(1), number(2);	/* prologue */
	number(9), number(3), number(0x10 | 2); /* of a call */
	number(0), number(103), number(2);
	number(500), number(0), number(0);
	return (nibble_at + 1) / 2;
}

static uint32_t put_head(uint32_t at, uint32_t length)
{
	nibble_at = 2 * at;
	number(length);
	number(3);
	return (nibble_at + 1) / 2;
}

static void are_bounds(void)
{
	static const struct dotnet_bound wanted[] = { { 0, DOTNET_PROLOGUE }, { 9, 100 }, { 509, DOTNET_EPILOGUE } };
	struct dotnet_bounds b;

	assert_int_equal(dotnet_bounds_read(&dotnet, &memory, &block, &b), 0);
	assert_int_equal(b.count, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b.bounds[i].native, wanted[i].native);
		assert_int_equal(b.bounds[i].il, wanted[i].il);
	}
	free(b.bounds);
}

static int error_of(void)
{
	struct dotnet_bounds b;
	int error = dotnet_bounds_read(&dotnet, &memory, &block, &b);

	free(b.bounds);
	return error;
}

static void numbers_are_read(void **state)
{
	uint32_t length = put_numbers(0x800) - 0x800, from;

	(void)state;
	from = put_head(AT + 1, length);
	(void)put_numbers(from);
	are_bounds();
	setup(NULL); /* behind what is for code that is replaced while it runs, of 3 variables */
	bytes[AT] = 1;
	put(AT + 1 + 8, 3, 4);
	from = put_head(AT + 1 + 32 + 12, length);
	(void)put_numbers(from);
	are_bounds();
}

static void bit(uint32_t at, uint32_t *where, uint64_t value, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, (*where)++)
		bytes[at + *where / 8] |= (uint8_t)((value >> i & 1) << *where % 8);
}

/* 9 bits of native, 7 of instructions. */
static uint32_t put_packed(uint32_t at)
{
	static const uint32_t all[][3] = { { 2, 0, 1 }, { 3, 9, 3 }, { 2, 0, 103 }, { 0, 500, 0 } };
	uint32_t where = 0, from;

	nibble_at = 2 * at;
	number(4), number(8), number(6);
	from = (nibble_at + 1) / 2;
	for (int i = 0; i < 4; i++)
		bit(from, &where, all[i][0], 2), bit(from, &where, all[i][1], 9), bit(from, &where, all[i][2], 7);
	return from + (where + 7) / 8;
}

static void bits_are_read(void **state)
{
	uint32_t length = put_packed(0x800) - 0x800;

	(void)state;
	use_release(10);
	(void)put_packed(put_head(AT + 1, length));
	are_bounds();
	setup(NULL); /* code that counts itself: the second ones are those without that */
	use_release(10);
	nibble_at = 2 * (AT + 1);
	number(UINT32_MAX), number(5), number(length), number(0);
	(void)put_packed((nibble_at + 1) / 2 + 5);
	are_bounds();
	assert_int_equal(bytes[AT], 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
	uint32_t length = put_numbers(0x800) - 0x800, from;

	(void)state;
	assert_int_equal(error_of(), -ENODATA); /* of no bytes */
	bytes[AT] = 4;				/* a flag that nobody knows */
	assert_int_equal(error_of(), -EBADMSG);
	bytes[AT] = 2;
	assert_int_equal(error_of(), -ENODATA);
	setup(NULL);
	from = put_head(AT + 1, length - 2); /* cut */
	(void)put_numbers(from);
	assert_int_equal(error_of(), -EBADMSG);
	setup(NULL);
	memset(bytes + AT + 1, 0xff, 24); /* a number without an end */
	assert_int_equal(error_of(), -EBADMSG);
	block.own[DOTNET_OWN_DEBUG] = 0;
	assert_int_equal(error_of(), -ENODATA);
	block.own[DOTNET_OWN_DEBUG] = BYTES + 1;
	assert_int_equal(error_of(), -EBADMSG);
}

/* An image whose entry 2 has debug information. */
static void put_image(uint32_t version)
{
	uint32_t length = put_numbers(0x800) - 0x800, from;
	const uint32_t base = 8;

	setup(NULL);
	block.own[DOTNET_OWN_DEBUG] = 0;
	block.own[DOTNET_OWN_IMAGE] = base;
	put(base, 0x5a4d, 2);
	put(base + 0x3c, HEAD, 4);
	put(base + HEAD, 0x4550, 4);
	put(base + HEAD + 24, 0x20b, 2);
	put(base + HEAD + 24 + 112 + 8 * 14, CLR, 4);
	put(base + CLR + 8, 0x600, 4);
	put(base + 0x600, 0x424a5342, 4);
	put(base + CLR + 64, READY, 4);
	put(base + READY, 0x00525452, 4);
	put(base + READY + 4, version, 2);
	put(base + READY + 12, 2, 4);
	put(base + READY + 16, 101, 4);
	put(base + READY + 28, 105, 4), put(base + READY + 32, ARRAY, 4);
	/* 20 elements, a number of two bytes; blocks' offsets have a byte each; the first block is an element that is alone:
	 * its number, then 0: the information follows */
	put(base + ARRAY, 20 << 2 << 2 | 1, 2);
	bytes[base + ARRAY + 2] = 2;
	bytes[base + ARRAY + 3] = 0x80;
	bytes[base + ARRAY + 4] = 2 << 2 << 1;
	from = put_head(base + ARRAY + 6, length);
	(void)put_numbers(from);
}

static void images_have_arrays(void **state)
{
	(void)state;
	put_image(9);
	block.own[DOTNET_OWN_ENTRY] = 2;
	are_bounds();
	for (uint32_t i = 0; i < 16; i++) {
		block.own[DOTNET_OWN_ENTRY] = i;
		if (i != 2)
			assert_int_equal(error_of(), -ENODATA);
	}
	block.own[DOTNET_OWN_ENTRY] = 20;
	assert_int_equal(error_of(), -ENODATA);
	put(8 + READY + 4, 17, 2); /* a form that is not known */
	block.own[DOTNET_OWN_ENTRY] = 2;
	assert_int_equal(error_of(), -ENODATA);
	put(8 + READY, 0, 4);
	assert_int_equal(error_of(), -ENODATA);
	put(8, 0, 2);
	assert_int_equal(error_of(), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(numbers_are_read, setup),
		cmocka_unit_test_setup(bits_are_read, setup),
		cmocka_unit_test_setup(what_makes_no_sense_is_refused, setup),
		cmocka_unit_test_setup(images_have_arrays, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
