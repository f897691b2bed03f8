/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Touches memory in known ways and prints "NAME BYTES" for each: how much memory the function of that name was the first to
 * touch. Usage: touch MB [EXTRA_MB_OF_HUGE_PAGES]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

#define APART __attribute__((noinline, noclone))

static uint8_t *map(size_t bytes, int advice)
{
	uint8_t *at = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	at = (uint8_t *)(((uintptr_t)at + HUGE - 1) & -(uintptr_t)HUGE);
	madvise(at, bytes, advice);
	return at;
}

static void tell(const char *name, size_t bytes)
{
	printf("%s %zu\n", name, bytes);
	fflush(stdout);
}

APART void write_pages(uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		((volatile uint8_t *)at)[i] = 1;
}

/* Pages of 4 KB. */
APART void touch_small(size_t bytes)
{
	uint8_t *at = map(bytes, MADV_NOHUGEPAGE);

	write_pages(at, bytes);
	tell("touch_small", bytes);
	munmap(at, bytes);
}

/* Two places, one with three times as much as the other, page by page in turns. */
APART void touch_one(uint8_t *at)
{
	*(volatile uint8_t *)at = 1;
}

APART void touch_three(uint8_t *at)
{
	for (int i = 0; i < 3; i++)
		((volatile uint8_t *)at)[i * PAGE] = 1;
}

APART void touch_in_turns(size_t bytes)
{
	uint8_t *at = map(bytes, MADV_NOHUGEPAGE);

	for (size_t i = 0; i < bytes; i += 4 * PAGE) {
		touch_one(at + i);
		touch_three(at + i + PAGE);
	}
	tell("touch_one", bytes / 4);
	tell("touch_three", bytes / 4 * 3);
	munmap(at, bytes);
}

/* The size of the huge pages of the memory from @at on. */
static size_t huge_bytes(const uint8_t *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[256];
	unsigned long start, end, kb = 0;
	int is_here = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_here = (uintptr_t)at >= start && (uintptr_t)at < end;
		else if (is_here && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

/* Huge pages, where the kernel has some. */
APART void touch_huge(size_t bytes)
{
	uint8_t *at = map(bytes, MADV_HUGEPAGE);

	write_pages(at, bytes);
	fprintf(stderr, "huge pages: %zu of %zu MB\n", huge_bytes(at) >> 20, bytes >> 20);
	tell("touch_huge", bytes);
	munmap(at, bytes);
}

/* New memory that the kernel writes to. */
APART void touch_by_read(size_t bytes)
{
	uint8_t *at = map(bytes, MADV_NOHUGEPAGE);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < bytes; i += 1 << 20)
		if (read(fd, at + i, 1 << 20) != 1 << 20)
			exit(1);
	close(fd);
	tell("touch_by_read", bytes);
	munmap(at, bytes);
}

/* Pages that a child copies, as it writes to what it shares with its parent. */
APART void touch_copies(size_t bytes)
{
	uint8_t *at = map(bytes, MADV_NOHUGEPAGE);

	memset(at, 1, PAGE); /* of the parent, and its page table */
	for (size_t i = 0; i < bytes; i += PAGE)
		at[i] = 1;
	if (!fork()) {
		write_pages(at, bytes);
		_exit(0);
	}
	wait(NULL);
	tell("touch_copies", 2 * bytes);
	munmap(at, bytes);
}

/* Memory that is used again is not new. */
APART void touch_again(size_t bytes)
{
	static uint8_t page[64 * PAGE];

	for (size_t i = 0; i < bytes; i += PAGE)
		((volatile uint8_t *)page)[i % sizeof(page)]++;
	tell("touch_again", sizeof(page));
}

int main(int argc, char **argv)
{
	size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 0) : 64) << 20;
	size_t huge = (argc > 2 ? strtoul(argv[2], NULL, 0) : 64) << 20;

	touch_small(bytes);
	touch_in_turns(bytes);
	if (huge)
		touch_huge(huge);
	touch_by_read(bytes);
	touch_copies(bytes);
	touch_again(bytes);
	return 0;
}
