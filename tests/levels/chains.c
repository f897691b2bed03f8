/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads whose stacks tell whose they are.   chains SLOT SECONDS
 * Each of the four threads has functions of its own, by their number N = SLOT * 4 + thread, and a depth of its own:
 * run_N, N + 3 times deep_N, and below that spin_N (which takes time), hot_N(tid) (which is probed) and wait_N (which
 * sleeps). At the end a line a thread: its tid, pid, N, and how often it called hot_N. Built without frame pointers and at
 * fixed addresses: bytes of one thread's stack would pass for another's.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noclone))
enum { THREADS = 4 };

static uint64_t deadline_ns;
static int slot;

struct thread {
	long tid;
	uint64_t calls;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The number makes each of them differ from the others, or the compiler would take one for all. */
#define CHAIN(n)                                                 \
	OWN void spin_##n(void)                                  \
	{                                                        \
		for (int i = 0; i < 20000; i++)                  \
			__asm__ volatile("# %0" ::"i"(n));       \
	}                                                        \
	OWN void hot_##n(long tid)                               \
	{                                                        \
		__asm__ volatile("nop # %1" ::"r"(tid), "i"(n)); \
	}                                                        \
	OWN void wait_##n(void)                                  \
	{                                                        \
		struct timespec t = { 0, 30000 + n * 5000 };     \
		nanosleep(&t, NULL);                             \
		__asm__ volatile("# %0" ::"i"(n));               \
	}                                                        \
	OWN void deep_##n(struct thread *self, int depth)        \
	{                                                        \
		if (depth > 1) {                                 \
			deep_##n(self, depth - 1);               \
		} else {                                         \
			spin_##n();                              \
			hot_##n(self->tid);                      \
			wait_##n();                              \
			hot_##n(self->tid);                      \
			self->calls += 2;                        \
		}                                                \
		__asm__ volatile("# %0" ::"i"(n));               \
	}                                                        \
	OWN void run_##n(struct thread *self)                    \
	{                                                        \
		while (now_ns() < deadline_ns)                   \
			deep_##n(self, n + 3);                   \
	}

#define FOUR(X, a, b, c, d) X(a) X(b) X(c) X(d)
#define SIXTEEN(X)	    FOUR(X, 0, 1, 2, 3) FOUR(X, 4, 5, 6, 7) FOUR(X, 8, 9, 10, 11) FOUR(X, 12, 13, 14, 15)
SIXTEEN(CHAIN)

#define ENTRY(n) run_##n,
static void (*const chains[])(struct thread *) = { SIXTEEN(ENTRY) };

static void *start(void *arg)
{
	int n = slot * THREADS + (int)(intptr_t)arg;
	struct thread self = { syscall(SYS_gettid), 0 };
	char text[64];
	int len;

	snprintf(text, sizeof(text), "chain %d", n);
	prctl(PR_SET_NAME, text);
	chains[n](&self);
	len = snprintf(text, sizeof(text), "%ld %d %d %llu\n", self.tid, getpid(), n, (unsigned long long)self.calls);
	return (void *)(intptr_t)(write(1, text, (size_t)len) != len);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc < 3)
		return 2;
	slot = atoi(argv[1]) % 4;
	deadline_ns = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, start, (void *)(intptr_t)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
