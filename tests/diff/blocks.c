/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose two builds differ in one function: with -DMORE=5 hash_keys does 5 % more work. It goes through blocks of
 * data of different sizes, a few milliseconds in each function, always the same ones in the same order.
 *   blocks ROUNDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MORE
#define MORE 0
#endif

#define PART __attribute__((noinline, noclone)) static

enum { KEYS = 1 << 16, TEXT_BYTES = 1 << 16, GRID = 256 };

static volatile uint64_t sink;
static uint64_t table[KEYS];
static char text[TEXT_BYTES], copy[TEXT_BYTES];
static double grid[GRID * GRID];

PART void hash_keys(uint64_t n)
{
	uint64_t h = 1;

	n += n * MORE / 100;
	for (uint64_t i = 0; i < n; i++) {
		h ^= i;
		h *= 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	sink += h;
}

PART void walk_table(uint64_t n)
{
	uint64_t at = sink;

	for (uint64_t i = 0; i < n; i++)
		at = table[(at ^ i) % KEYS];
	sink += at;
}

PART int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

PART void sort_keys(uint64_t n)
{
	static uint64_t keys[512];

	for (uint64_t k = 0; k < n; k++) {
		for (uint64_t i = 0; i < 512; i++)
			keys[i] = (i + k) * 2654435761u;
		qsort(keys, 512, sizeof(*keys), compare);
		sink += keys[7];
	}
}

PART void scan_text(uint64_t n)
{
	uint64_t count = 0;

	for (uint64_t k = 0; k < n; k++)
		for (uint64_t i = 0; i < 4096; i++)
			count += text[(i * 7 + k) % TEXT_BYTES] == ' ';
	sink += count;
}

PART void relax_grid(uint64_t n)
{
	for (uint64_t k = 0; k < n; k++)
		for (uint64_t i = GRID + 1; i < 8000; i++)
			grid[i] = (grid[i - 1] + grid[i + 1] + grid[i - GRID] + grid[i + GRID]) * 0.25;
}

PART void copy_text(uint64_t n)
{
	for (uint64_t k = 0; k < n; k++) {
		memcpy(copy, text, sizeof(text));
		copy[k % TEXT_BYTES] = 1;
		sink += (uint64_t)copy[17];
	}
}

PART void print_numbers(uint64_t n)
{
	char line[64];

	for (uint64_t i = 0; i < n; i++)
		sink += (uint64_t)snprintf(line, sizeof(line), "%u %x %g", (unsigned)i, (unsigned)i * 3, (double)i * 0.5);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	uint64_t random = 1;

	for (uint64_t i = 0; i < KEYS; i++)
		table[i] = i * 40503u;
	for (uint64_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (char)('a' + i % 40);
	while (rounds--) {
		uint64_t size;

		random = random * 6364136223846793005u + 1442695040888963407u;
		size = 100 + (random >> 33) % 100; /* of this block */
		hash_keys(size * 25000);
		walk_table(size * 3000);
		sort_keys(size / 10);
		scan_text(size * 3);
		relax_grid(size * 2 / 3);
		copy_text(size * 3);
		print_numbers(size * 30);
	}
	return sink == 42;
}
