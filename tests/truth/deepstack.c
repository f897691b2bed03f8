/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each process's first sample finds the stack 200 KB deep: main, b01 ... b10 with 20 KB of locals each, leaf. A process uses
 * 100 ms of CPU and is followed by the next, so that every tenth sample or so is such a first one. With -DSPARSE most pages
 * of the locals are never touched: the stack has holes where nothing can be read. With -DHUGE b01 has 400 KB more, beyond
 * what a sample carries of a stack; with -DTHREAD too, b01 is called in a thread whose stack has other memory behind it.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "truth.h"

#ifdef SPARSE
enum { LOCAL_BYTES = 20 << 10, FILLED_BYTES = 64 };
#else
enum { LOCAL_BYTES = 20 << 10, FILLED_BYTES = LOCAL_BYTES };
#endif

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	while (now_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.1)
		x = spin(x);
	return x;
}

#ifdef HUGE
enum { FIRST_BYTES = LOCAL_BYTES + (400 << 10) };
#else
enum { FIRST_BYTES = LOCAL_BYTES };
#endif

#define LINK_OF(bytes, name, next)                                                      \
	FRAME unsigned long name(unsigned long x);                                      \
	FRAME unsigned long name(unsigned long x)                                       \
	{                                                                               \
		char local[bytes];                                                      \
                                                                                        \
		memset(local, (int)x, (bytes) == LOCAL_BYTES ? FILLED_BYTES : (bytes)); \
		asm volatile("" : : "r"(local) : "memory");                             \
		truth_sink += next(x + 1) ^ (unsigned long)local[x % FILLED_BYTES];     \
		return truth_sink;                                                      \
	}

#define LINK(name, next) LINK_OF(LOCAL_BYTES, name, next)

LINK(b10, leaf)
LINK(b09, b10)
LINK(b08, b09)
LINK(b07, b08)
LINK(b06, b07)
LINK(b05, b06)
LINK(b04, b05)
LINK(b03, b04)
LINK(b02, b03)
LINK_OF(FIRST_BYTES, b01, b02)

#ifdef THREAD
#define ROOT "begin"
FRAME void *begin(void *arg);
FRAME void *begin(void *arg)
{
	truth_sink += b01(1);
	return arg;
}

static int once(void)
{
	const size_t bytes = 4 << 20;
	char *stack = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	memset(stack + bytes, 1, bytes);
	return pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, bytes) ||
	       pthread_create(&thread, &attributes, begin, NULL) || pthread_join(thread, NULL);
}
#else
#define ROOT "main"
static int once(void)
{
	truth_sink += b01(1);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	int status;

	if (argc > 1 && strcmp(argv[1], "once") == 0)
		return once();
#ifdef THREAD
	puts("calls main *pthread_* mmap* *memset*");
#endif
	puts("chain " ROOT " b01 b02 b03 b04 b05 b06 b07 b08 b09 b10 leaf\ncalls b* memset __mem* libc:\n"
	     "calls leaf *clock_gettime");
	truth_told_again();
	status = again(argv[0], seconds_argument(argc, argv));
	truth_sink++;
	return status;
}
