/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates in known ways, when a line comes on its input, and prints "NAME BYTES" for each: how much the function of that
 * name asked for. Then it waits for the end of its input. Usage: allocs MB */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static void *volatile kept;

static void tell(const char *name, size_t bytes)
{
	printf("%s %zu\n", name, bytes);
	fflush(stdout);
}

APART void alloc_small(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = malloc(4096);
		free(kept);
	}
	tell("alloc_small", bytes);
}

APART void alloc_large(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 1 << 20) {
		kept = malloc(1 << 20);
		free(kept);
	}
	tell("alloc_large", bytes);
}

APART void alloc_zeroed(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8192) {
		kept = calloc(16, 512);
		free(kept);
	}
	tell("alloc_zeroed", bytes);
}

/* From nothing to twice as much, and so on. */
APART void alloc_grown(size_t bytes)
{
	size_t sum = 0;

	while (sum < bytes) {
		kept = NULL;
		for (size_t size = 4096; size <= 65536; size *= 2) {
			kept = realloc(kept, size);
			sum += size;
		}
		free(kept);
	}
	tell("alloc_grown", sum);
}

APART void alloc_aligned(size_t bytes)
{
	void *p = NULL;

	for (size_t i = 0; i < bytes; i += 16384) {
		if (posix_memalign(&p, 4096, 16384))
			exit(1);
		kept = p;
		free(kept);
	}
	tell("alloc_aligned", bytes);
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 0) : 64) << 20;
	char line[64];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	alloc_small(bytes);
	alloc_large(bytes);
	alloc_zeroed(bytes);
	alloc_grown(bytes);
	alloc_aligned(bytes);
	tell("done", 0);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
