/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the judge: a program that passes, for ever, through all kinds of code that a C library and a compiler make: string
 * functions, callbacks, signal handlers on either stack, jumps out of functions, frames of run-time size and alignment,
 * stubs, the vDSO, new threads.
 */
#include <alloca.h>
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef HAS_DLOPEN
#include <dlfcn.h>
#endif

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;

static NOINLINE int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	sink += strlen("callback");
	return x < y ? -1 : x > y;
}

static NOINLINE void sort(void)
{
	int numbers[40];

	for (int i = 0; i < 40; i++)
		numbers[i] = (i * 7919) % 101;
	qsort(numbers, 40, sizeof(numbers[0]), compare);
	sink += (uint64_t)numbers[3];
}

static NOINLINE void strings(void)
{
	static char text[5000], copy[5000];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(copy, text, sizeof(text));
	memmove(copy + 3, copy, 4000);
	strcpy(copy, "a short text, copied");
	strcat(copy, " and longer");
	sink += strlen(text) + (uint64_t)strcmp(text, copy) + (uint64_t)strncmp(text, copy, 3);
	sink += (uint64_t)(strchr(text, 'y') != NULL) + (uint64_t)(strstr(copy, "longer") != NULL);
	sink += (uint64_t)(memchr(text, 'z', sizeof(text)) != NULL) + strspn(copy, "abc") +
		(uint64_t)memcmp(text, copy, 900);
}

static NOINLINE void print(void)
{
	char text[300];

	snprintf(text, sizeof(text), "%s %d %.3f %p %-20s|%5ld", "print", 42, 3.14159, (void *)text, "left", 77l);
	sink += (uint64_t)text[7] + strtoul(text, NULL, 10) + (uint64_t)(strtod("2.718", NULL) * 100);
	printf("%s\n", text);
}

static NOINLINE void allocate(void)
{
	void *pieces[20];

	for (int i = 0; i < 20; i++)
		pieces[i] = malloc((size_t)(16 << (i % 9)));
	for (int i = 0; i < 20; i += 2)
		pieces[i] = realloc(pieces[i], 5000);
	for (int i = 0; i < 20; i++)
		free(pieces[i]);
}

static NOINLINE void run_time_size(size_t bytes)
{
	char *room = alloca(bytes);

	memset(room, 1, bytes);
	sink += (uint64_t)room[bytes / 2];
	sort();
}

static NOINLINE void aligned(int n)
{
	volatile char room[200] __attribute__((aligned(128)));

	memset((char *)room, n, sizeof(room));
	run_time_size((size_t)n * 64);
	sink += (uint64_t)room[n];
}

/* Arguments on the stack, found through the register that held it before it was aligned. */
static NOINLINE double many(int a, int b, int c, int d, int e, int f, double *g, int h, int i)
{
	volatile double room[16] __attribute__((aligned(64)));

	for (int n = 0; n < 16; n++)
		room[n] = sin((double)(a + n)) + pow((double)(b + c + d + e + f), 0.5);
	*g += room[h & 15];
	return room[i & 15];
}

static NOINLINE void clocks(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	clock_gettime(CLOCK_REALTIME, &t);
	sink += (uint64_t)time(NULL) + (uint64_t)t.tv_nsec;
}

static jmp_buf jump_to;

static NOINLINE void jump(int depth)
{
	char room[64];

	memset(room, depth, sizeof(room));
	sink += (uint64_t)room[5];
	if (depth == 0)
		longjmp(jump_to, 1);
	jump(depth - 1);
	sink++;
}

static NOINLINE void jumps(void)
{
	if (setjmp(jump_to) == 0)
		jump(5);
}

static NOINLINE void in_handler(int sig)
{
	sort();
	if (sig == SIGUSR1)
		raise(SIGUSR2); /* nested, on the alternate stack */
	if (sig == SIGUSR2)
		raise(SIGRTMIN);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	in_handler(sig);
	clocks();
}

static NOINLINE void signals(void)
{
	raise(SIGUSR1);
	raise(SIGUSR2);
	syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGRTMIN);
}

static void prepare_signals(void)
{
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGRTMIN, &act, NULL);
	act.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &act, NULL);
}

#ifndef NO_THREADS
static void *thread(void *arg)
{
	sort();
	print();
	return arg;
}

static NOINLINE void threads(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, thread, NULL) == 0)
		pthread_join(id, NULL);
}
#else
static void threads(void)
{
}
#endif

#ifdef HAS_DLOPEN
static NOINLINE void load(void)
{
	void *lib = dlopen("libz.so.1", RTLD_LAZY);
	unsigned long (*crc)(unsigned long, const char *, unsigned) = lib ? dlsym(lib, "crc32") : NULL;

	if (crc)
		sink += crc(0, "some text to sum", 16);
	if (lib)
		dlclose(lib);
}
#else
static void load(void)
{
}
#endif

int main(void)
{
	double g = 0;

	prepare_signals();
	for (unsigned round = 0;; round++) {
		strings();
		sort();
		print();
		allocate();
		aligned(1 + (int)(round % 50));
		sink += (uint64_t)many(1, 2, 3, 4, 5, 6, &g, (int)round, 3);
		clocks();
		jumps();
		signals();
		if (round % 8 == 0)
			threads();
		if (round % 64 == 0)
			load();
		sink += (uint64_t)toupper((int)(round & 127));
	}
}
