/* SPDX-License-Identifier: Apache-2.0 */
/* The same as allocs.c in C++: by each form of operator new. Usage: news MB */
#include <cstdio>
#include <cstdlib>
#include <new>

#define APART __attribute__((noinline, noclone))

static void *volatile kept;

static void tell(const char *name, size_t bytes)
{
	printf("%s %zu\n", name, bytes);
	fflush(stdout);
}

extern "C" {

APART void alloc_new(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = ::operator new(4096);
		::operator delete(kept);
	}
	tell("alloc_new", bytes);
}

APART void alloc_array(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = ::operator new[](4096);
		::operator delete[](kept);
	}
	tell("alloc_array", bytes);
}

APART void alloc_nothrow(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = ::operator new(4096, std::nothrow);
		::operator delete(kept);
	}
	tell("alloc_nothrow", bytes);
}

APART void alloc_aligned_new(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = ::operator new(4096, std::align_val_t(256));
		::operator delete(kept, std::align_val_t(256));
	}
	tell("alloc_aligned_new", bytes);
}

APART void alloc_malloc(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		kept = malloc(4096);
		free(kept);
	}
	tell("alloc_malloc", bytes);
}
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], nullptr, 0) : 64) << 20;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	alloc_new(bytes);
	alloc_array(bytes);
	alloc_nothrow(bytes);
	alloc_aligned_new(bytes);
	alloc_malloc(bytes);
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
