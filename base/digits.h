/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as decimal text, where there are so many of them that printf would take most of the time. Stateless. */
#ifndef HEARTH_BASE_DIGITS_H
#define HEARTH_BASE_DIGITS_H

#include <stdint.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* of UINT64_MAX, and of INT64_MIN with its sign */

extern const char digits_pairs[201];	/* "00" to "99" */
extern const uint64_t digits_least[20]; /* the least number with so many digits and one more */

static inline unsigned digits_count(uint64_t v)
{
	unsigned n = (unsigned)(64 - __builtin_clzll(v | 1)) * 1233 >> 12; /* its bits times log10(2): right or one less */

	return n + (v >= digits_least[n]);
}

/* Writes @v at @at, which has room for DIGITS_MAX characters; returns their end. No NUL behind them. */
static inline char *digits_u64(char *at, uint64_t v)
{
	char *end = at + digits_count(v), *p = end;

	for (; v >= 100; v /= 100)
		memcpy(p -= 2, &digits_pairs[v % 100 * 2], 2);
	if (v >= 10)
		memcpy(at, &digits_pairs[v * 2], 2);
	else
		*at = (char)('0' + v);
	return end;
}

static inline char *digits_i64(char *at, int64_t v)
{
	if (v >= 0)
		return digits_u64(at, (uint64_t)v);
	*at = '-';
	return digits_u64(at + 1, -(uint64_t)v);
}

#endif
