/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes code in anonymous memory and says so as JITs do. Each piece of made code is called by a function of
 * this file that is called after it: calls_NAME calls NAME and nothing else. So a stack tells by itself what it ran.
 *
 *   jit_maker map SECONDS      a perf map in /tmp; after half the time it grows, and the memory of one function is used
 * again jit_maker dump SECONDS DIR a jitdump in DIR, with lines; one place is used by two functions in turn, 200 times a
 * second jit_maker silent SECONDS   says nothing jit_maker gone SECONDS     as map, but the map has no name any more after a
 * moment
 *
 * Made code runs a loop on line 10 and a loop on line 20 of its source, the second from SECOND bytes on.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/symbols/jitdump_bytes.h"

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, SECOND = 14 };
static const uint8_t template[] = {
	0x55, 0x48, 0x89, 0xe5,						  /* push %rbp; mov %rsp,%rbp */
	0xb8, 0x40, 0x0d, 0x03, 0, 0x83, 0xe8, 1, 0x75, 0xfb,		  /* mov $200000,%eax; 1: sub $1,%eax; jne 1b */
	0xb8, 0x40, 0x0d, 0x03, 0, 0x83, 0xe8, 1, 0x75, 0xfb, 0x5d, 0xc3, /* the same; pop %rbp; ret */
};
#else
enum { MACHINE = EM_AARCH64, SECOND = 20 };
static const uint32_t template[] = {
	0xa9bf7bfd, 0x910003fd,					    /* stp x29,x30,[sp,#-16]!; mov x29,sp */
	0x52a00060, 0x71000400, 0x54ffffe1,			    /* mov w0,#3<<16; 1: subs w0,w0,#1; b.ne 1b */
	0x52a00060, 0x71000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0, /* the same; ldp x29,x30,[sp],#16; ret */
};
#endif

enum { SPACING = 4096, PLACES = 16 };

typedef void made(void);

static uint8_t *area;
static FILE *map, *dump;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Code at place number @place; announced as @name, unless that is NULL. */
static made *make(unsigned place, const char *name)
{
	static uint64_t index;
	uint8_t *at = area + (size_t)place * SPACING;
	const struct jitdump_line lines[] = { { (uintptr_t)at, 10, "/made/up.c" },
					      { (uintptr_t)at + SECOND, 20, "/made/up.c" } };

	memcpy(at, template, sizeof(template));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(template));
	if (map && name)
		fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(template), name);
	if (map)
		fflush(map);
	if (dump && name) {
		uint64_t time_ns = now_ns();

		jitdump_lines(dump, time_ns, (uintptr_t)at, lines, 2);
		jitdump_load(dump, (uint32_t)getpid(), time_ns, (uintptr_t)at, at, sizeof(template), index++, name);
		fflush(dump);
	}
	return (made *)(void *)at;
}

/* What calls NAME. Never a tail call, and never merged with another. */
#define CALLS(name)                                                  \
	__attribute__((noinline)) static void calls_##name(made *fn) \
	{                                                            \
		fn();                                                \
		__asm__ volatile("# " #name);                        \
	}
CALLS(made_one)
CALLS(made_two)
CALLS(made_late)
CALLS(made_again)
CALLS(made_a)
CALLS(made_b)
CALLS(made_silent)

static void open_map(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	map = fopen(path, "w");
	if (!map)
		exit(1);
}

static void open_dump(const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	dump = fopen(path, "w+");
	if (!dump)
		exit(1);
	jitdump_header(dump, MACHINE, (uint32_t)getpid(), now_ns(), 0);
	fflush(dump);
	/* This is how it is announced. */
	if (mmap(NULL, SPACING, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		exit(77);
}

static void run_map(uint64_t half_ns, uint64_t end_ns, int loses_name)
{
	made *one, *two, *late, *again;
	char path[64];

	open_map();
	one = make(0, "made_one");
	two = make(1, "made_two");
	while (now_ns() < half_ns) {
		calls_made_one(one);
		calls_made_two(two);
	}
	late = make(2, "made_late");
	again = make(0, "made_again");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (loses_name)
		unlink(path);
	while (now_ns() < end_ns) {
		calls_made_late(late);
		calls_made_again(again);
	}
}

static void run_dump(uint64_t end_ns, const char *folder)
{
	open_dump(folder);
	while (now_ns() < end_ns) {
		made *fn = make(3, "made_a");
		uint64_t start_ns = now_ns();

		while (now_ns() - start_ns < 5000000)
			calls_made_a(fn);
		fn = make(3, "made_b");
		start_ns = now_ns();
		while (now_ns() - start_ns < 5000000)
			calls_made_b(fn);
	}
	jitdump_close(dump, now_ns());
}

int main(int argc, char **argv)
{
	uint64_t ns = argc > 2 ? (uint64_t)(strtod(argv[2], NULL) * 1e9) : 0, start_ns = now_ns();
	const char *what = argc > 1 ? argv[1] : "";

	area = mmap(NULL, SPACING * PLACES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || !ns)
		return 77;
	printf("%d\n", getpid());
	fflush(stdout);
	if (!strcmp(what, "dump") && argc > 3) {
		run_dump(start_ns + ns, argv[3]);
	} else if (!strcmp(what, "silent")) {
		made *silent = make(4, NULL);

		while (now_ns() < start_ns + ns)
			calls_made_silent(silent);
	} else {
		run_map(start_ns + ns / 2, start_ns + ns, !strcmp(what, "gone"));
	}
	return 0;
}
