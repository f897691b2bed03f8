/* SPDX-License-Identifier: Apache-2.0 */
/* Writes numbers as decimal text where there are so many that printf would take most of the time. Stateless. */
#ifndef HEARTH_BASE_TEXT_DIGITS_H
#define HEARTH_BASE_TEXT_DIGITS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum {
	DIGITS_MAX = 20,	     /* of UINT64_MAX, and of INT64_MIN with its sign */
	DIGITS_WORD_END = 100000000, /* the first number of more than eight digits */
};

/*
 * The eight digits of @v, which is below DIGITS_WORD_END, as numbers 0 to 9; the first is the lowest byte. The number is
 * halved into fours, twos and ones, one multiplication for each step; the quotients are right for all numbers below that
 * bound.
 */
static inline uint64_t digits_word(uint32_t v)
{
	uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
	uint64_t hundreds = fours * 5243 >> 19 & 0x0000007f0000007f; /* / 100 */
	uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
	uint64_t tens = twos * 103 >> 10 & 0x000f000f000f000f; /* / 10 */

	return tens | (twos - tens * 10) << 8;
}

#define DIGITS_ZEROS 0x3030303030303030u /* eight times '0' */

char *digits_long(char *at, uint64_t v);

/* Writes @v at @at, which has room for DIGITS_MAX characters, or for 8 when it has no more digits; returns their end. The
 * room behind that end is undefined: there is no NUL. */
static inline char *digits_u64(char *at, uint64_t v)
{
	uint64_t digits, text;
	unsigned skip;

	if (v >= DIGITS_WORD_END)
		return digits_long(at, v);
	digits = digits_word((uint32_t)v);
	skip = (unsigned)__builtin_ctzll(digits | 1ull << 56) & ~7u; /* the leading zeros, but not the last digit */
	text = htole64((digits | DIGITS_ZEROS) >> skip);
	memcpy(at, &text, sizeof(text));
	return at + (sizeof(text) - skip / 8);
}

static inline char *digits_i64(char *at, int64_t v)
{
	if (v >= 0)
		return digits_u64(at, (uint64_t)v);
	*at = '-';
	return digits_u64(at + 1, -(uint64_t)v);
}

#endif
