/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that work in spans of a millisecond, which their contexts tell (context.c): a function for each kind of span, and
 * one outside of all.
 *
 *   spans SECONDS THREADS [LIBRARY] [named]
 *
 * LIBRARY is opened at run time, else context.c is linked; "named": the process's context is in memory that has a name, not
 * in a memfd. The last byte of a span's id is its kind, as in the function's name; the one before is the thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 4 };

#ifdef OPENED
static void (*context_enter)(int thread, int kind, uint64_t number);
static void (*context_leave)(int by_pointer);
static void (*context_publish)(const char *version, int keys, int by_name);
#else
void context_enter(int thread, int kind, uint64_t number);
void context_leave(int by_pointer);
void context_publish(const char *version, int keys, int by_name);
#endif

static double end;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void spin(void)
{
	volatile uint64_t sum = 0;

	for (double until = now() + 0.001; now() < until;)
		for (uint64_t i = 0; i < 300; i++)
			sum += i * i;
}

static volatile int last; /* each writes another number there, or the compiler would make one of those that are alike */

#define WORK(name, number, more)                         \
	__attribute__((noinline)) static void name(void) \
	{                                                \
		spin();                                  \
		more;                                    \
		last = (number);                         \
	}
WORK(work0, 0, )
WORK(work1, 1, )
WORK(work2, 2, usleep(500))
WORK(work3, 3, )
WORK(outside, 4, )

static void *run(void *arg)
{
	static void (*const works[KINDS])(void) = { work0, work1, work2, work3 };
	const int thread = (int)(intptr_t)arg;

	for (uint64_t i = 0; now() < end; i++) {
		context_enter(thread, (int)(i % KINDS), i);
		works[i % KINDS]();
		context_leave(i % 3 == 0);
		outside();
	}
	return NULL;
}

#ifdef OPENED
static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "no %s: %s\n", name, dlerror());
		exit(2);
	}
	return symbol;
}

static void open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&context_enter = find(library, "context_enter");
	*(void **)&context_leave = find(library, "context_leave");
	*(void **)&context_publish = find(library, "context_publish");
}
#endif

int main(int argc, char **argv)
{
	const int threads = argc > 2 ? atoi(argv[2]) : 2, by_name = argc > 3 && !strcmp(argv[argc - 1], "named");
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	pthread_t all[64];

	if (threads < 1 || threads > 64)
		return 2;
#ifdef OPENED
	open_library(argv[3]);
#endif
	context_publish("1", 2, by_name);
	puts("go");
	fflush(stdout);
	end = now() + seconds;
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, run, (void *)(intptr_t)i);
	usleep(300000);
	context_publish("2", 3, by_name);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	return 0;
}
