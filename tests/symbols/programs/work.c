/* SPDX-License-Identifier: Apache-2.0 */
/* C with functions inlined into each other, static ones of the same name, aliases; nothing but the C library. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline __attribute__((always_inline)) uint64_t turn(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline __attribute__((always_inline)) uint64_t mix(uint64_t a, uint64_t b)
{
	a += turn(b, 13);
	return a ^ turn(a, 7);
}

__attribute__((noinline)) uint64_t hash(const char *text, size_t len)
{
	uint64_t h = len;

	for (size_t i = 0; i < len; i++)
		h = mix(h, (unsigned char)text[i]);
	return h;
}

uint64_t hash_alias(const char *text, size_t len) __attribute__((alias("hash"), weak));

static int compare(const void *a, const void *b)
{
	uint64_t x = hash(a, 8), y = hash_alias(b, 8);

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static char rows[512][8];
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	for (size_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < 512; i++)
			snprintf(rows[i], sizeof(rows[i]), "%zx", i * 7919 + r);
		qsort(rows, 512, 8, compare);
	}
	printf("%.8s %d\n", rows[0], (int)strlen(rows[1]));
	return 0;
}
