/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that costs whoever profiles it what it can: neighbour KIND SECONDS [PER-SECOND]. Prints "ready" when it does.
 *
 *   mappings   runs code in 60,000 mappings of a file and of memory
 *   remap      maps a file as code, runs it, unmaps it, elsewhere each time
 *   threads    5,000 threads, each with a name and a depth of its own
 *   registers  runs with stack and frame pointers that lead anywhere: to nothing, to the kernel, into memory full of return
 *              addresses and frames, so that each sample has another stack, as deep as a walk goes
 *   jitdump    says without end, in a jitdump in its folder, that it has made functions, each with another long name and
 *              lines; PER-SECOND: bytes of it, 32 MB
 *   perfmap    the same in a perf map in /tmp
 *
 * Never part of what is shipped.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/symbols/jitdump_bytes.h"

enum {
	PAGE = 4096,
	MAPPINGS = 60000,
	REMAPPERS = 2,
	PLACES = 1 << 24,
	HELD = 8192,
	THREADS = 5000,
	HALL_WORDS = 1 << 20,
	AREA_BYTES = 64 << 20,
	SPACING = 64,
	NAME_BYTES = 900,
};

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
static const uint8_t loop[] = { 0xb8, 0x40, 0x0d, 0x03, 0, 0x83, 0xe8, 1, 0x75, 0xfb, 0xc3 }; /* count %eax down; ret */
#else
enum { MACHINE = EM_AARCH64 };
static const uint32_t loop[] = { 0x52a00060, 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#endif

typedef void made(void);

static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int is_over(void)
{
	return now_ns() >= end_ns;
}

static uint64_t random_number(void)
{
	static _Thread_local uint64_t x;

	if (!x)
		x = now_ns() ^ (uintptr_t)&x;
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "neighbour: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* A file of code without a name. */
static int code_file(void)
{
	char path[] = "./code.XXXXXX";
	int fd = mkstemp(path);

	must(fd >= 0 && !unlink(path) && !ftruncate(fd, PAGE) && pwrite(fd, loop, sizeof(loop), 0) == sizeof(loop), path);
	return fd;
}

/* An address where so much is free. */
static void *room(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(at != MAP_FAILED && !munmap(at, bytes), "address space");
	return at;
}

static void run(void *at)
{
	made *fn;

	memcpy(&fn, &at, sizeof(fn));
	fn();
}

/* --- the kinds --- */

static void mappings(void)
{
	const int fd = code_file(), memory = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *at = room((size_t)2 * MAPPINGS * PAGE); /* with holes between, or they would be one */

	for (size_t i = 0; i < MAPPINGS; i++) {
		uint8_t *page = at + 2 * i * PAGE;

		if (i % 2) {
			must(mmap(page, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == page, "mmap");
		} else {
			must(mmap(page, PAGE, memory, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page, "mmap");
			memcpy(page, loop, sizeof(loop));
		}
	}
	say_ready();
	while (!is_over())
		run(at + 2 * PAGE * (random_number() % MAPPINGS));
}

/* The kernel tells of each mapping, and of none that goes. */
static void *remap_on(void *arg)
{
	static _Thread_local uint8_t *held[HELD];
	const int fd = code_file();
	uint8_t *at = room((size_t)PLACES * PAGE);

	while (!is_over()) {
		uint8_t **slot = &held[random_number() % HELD];

		if (*slot)
			munmap(*slot, PAGE);
		*slot = at + random_number() % PLACES * PAGE;
		must(mmap(*slot, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == *slot, "mmap");
		if (random_number() % 64 == 0)
			run(*slot);
	}
	return arg;
}

static void start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	errno = pthread_create(thread, &small, fn, arg);
	must(!errno, "pthread_create");
}

static void remap(void)
{
	pthread_t threads[REMAPPERS];

	for (int i = 0; i < REMAPPERS; i++)
		start(&threads[i], remap_on, NULL);
	say_ready();
	for (int i = 0; i < REMAPPERS; i++)
		pthread_join(threads[i], NULL);
}

static uint64_t go_down(uint64_t levels);

static uint64_t go_down(uint64_t levels)
{
	volatile uint64_t x = levels;

	if (levels)
		x += go_down(levels - 1) ^ x;
	else
		for (int i = 0; i < 30000; i++)
			x += x ^ (uint64_t)i;
	return x;
}

static void *sleep_and_work(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "thread %td", (char *)arg - (char *)NULL);
	prctl(PR_SET_NAME, name);
	while (!is_over()) {
		usleep((unsigned)(random_number() % 2000000));
		(void)go_down(random_number() % 100);
	}
	return NULL;
}

static void threads(void)
{
	static pthread_t all[THREADS];

	for (long i = 0; i < THREADS; i++)
		start(&all[i], sleep_and_work, (char *)NULL + i);
	say_ready();
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
}

/* Memory that a program makes code in. */
static uint8_t *made_area(void)
{
	uint8_t *area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(area != MAP_FAILED, "mmap");
	return area;
}

/* Runs for a moment with @sp and @fp, which nothing may look at meanwhile. */
static void run_with(uint64_t sp, uint64_t fp)
{
#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %%r12\n\tmov %%rbp, %%r13\n\tmov %0, %%rsp\n\tmov %1, %%rbp\n\tmov $100000, %%ecx\n"
			 "1:\n\tsub $1, %%ecx\n\tjne 1b\n\tmov %%r12, %%rsp\n\tmov %%r13, %%rbp"
			 :
			 : "r"(sp), "r"(fp)
			 : "r12", "r13", "rcx", "cc", "memory");
#else
	__asm__ volatile("mov x19, sp\n\tmov x20, x29\n\tmov sp, %0\n\tmov x29, %1\n\tmov x21, #100000\n"
			 "1:\n\tsubs x21, x21, #1\n\tb.ne 1b\n\tmov sp, x19\n\tmov x29, x20"
			 :
			 : "r"(sp & ~15ull), "r"(fp)
			 : "x19", "x20", "x21", "cc", "memory");
#endif
}

/* A word of the hall: frames that follow each other, and between them addresses of our code, or of memory that may be code.
 */
static uint64_t word(const uint64_t *hall, size_t i, uint64_t area)
{
	const uint64_t random = random_number();

	if (i % 2 == 0)
		return (uintptr_t)(hall + i + 2 + random % 4 * 2);
	return random % 2 ? (uintptr_t)remap_on + 16 + random % 128 : area + random % AREA_BYTES;
}

static void registers(void)
{
	uint64_t *hall = malloc((HALL_WORDS + 16) * sizeof(*hall)), area = (uintptr_t)made_area();

	must(hall != NULL, "malloc");
	for (size_t i = 0; i < HALL_WORDS + 16; i++)
		hall[i] = word(hall, i, area);
	say_ready();
	while (!is_over()) {
		const uint64_t place = (uintptr_t)(hall + random_number() % (HALL_WORDS / 4) * 2);

		switch (random_number() % 16) {
		case 0:
			run_with(random_number(), random_number());
			break;
		case 1:
			run_with(random_number() % PAGE, random_number() % PAGE);
			break;
		case 2:
			run_with(0xffffffff81000000, 0xffff888000000000 + random_number() % (1ull << 40));
			break;
		case 3:
			run_with(place, random_number());
			break;
		default:
			run_with(place - 256, place);
		}
		for (unsigned i = 0; i < 4096; i++) { /* never the same frames for long */
			const size_t at = random_number() % HALL_WORDS;

			hall[at] = word(hall, at, area);
		}
	}
	free(hall);
}

/* Says so to @dump, or as a perf map to @map, at most @rate bytes a second. */
static void make(FILE *dump, FILE *map, uint64_t rate)
{
	uint8_t *area = made_area();
	char name[NAME_BYTES];
	const uint64_t began_ns = now_ns();

	say_ready();
	for (uint64_t i = 0; !is_over(); i++) {
		uint8_t *at = area + i * SPACING % AREA_BYTES;
		const struct jitdump_line lines[] = { { (uintptr_t)at, 10, "/made/up.c" },
						      { (uintptr_t)at + 5, 20, "/made/up.c" } };
		const uint64_t time_ns = now_ns();

		memcpy(at, loop, sizeof(loop));
		__builtin___clear_cache((char *)at, (char *)at + sizeof(loop));
		snprintf(name, sizeof(name), "f%llu_%0*llu", (unsigned long long)i, NAME_BYTES - 30,
			 (unsigned long long)random_number());
		if (dump) {
			jitdump_lines(dump, time_ns, (uintptr_t)at, lines, 2);
			jitdump_load(dump, (uint32_t)getpid(), time_ns, (uintptr_t)at, at, sizeof(loop), i, name);
		} else {
			fprintf(map, "%lx %x %s\n", (unsigned long)(uintptr_t)at, SPACING, name);
		}
		if (i % 64 == 0 || (uint64_t)ftell(dump ? dump : map) > (time_ns - began_ns) / 1000000 * (rate / 1000))
			run(area + random_number() % (i + 1) * SPACING % AREA_BYTES);
		while ((uint64_t)ftell(dump ? dump : map) > (now_ns() - began_ns) / 1000000 * (rate / 1000) && !is_over())
			run(at);
	}
}

static void jitdump(uint64_t rate)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	f = fopen(path, "w+");
	must(f != NULL, path);
	jitdump_header(f, MACHINE, (uint32_t)getpid(), now_ns(), 0);
	fflush(f);
	must(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) != MAP_FAILED, path);
	make(f, NULL, rate);
	fclose(f);
	unlink(path);
}

static void perfmap(uint64_t rate)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	must(f != NULL, path);
	make(NULL, f, rate);
	fclose(f);
	unlink(path);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "";
	const uint64_t rate = argc > 3 ? strtoull(argv[3], NULL, 10) : 32 << 20;

	end_ns = now_ns() + (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 1000000000;
	if (!strcmp(kind, "mappings"))
		mappings();
	else if (!strcmp(kind, "remap"))
		remap();
	else if (!strcmp(kind, "threads"))
		threads();
	else if (!strcmp(kind, "registers"))
		registers();
	else if (!strcmp(kind, "jitdump"))
		jitdump(rate);
	else if (!strcmp(kind, "perfmap"))
		perfmap(rate);
	else
		must(0, "usage: neighbour mappings|remap|threads|registers|jitdump|perfmap SECONDS [PER-SECOND]");
	return 0;
}
