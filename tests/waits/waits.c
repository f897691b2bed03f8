/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait in known ways for as many seconds as the argument says. At the end each tells its name, its tid, and in
 * nanoseconds how long it lived, how long it was on a CPU (its own clock) and how long it waited for one (the kernel's
 * schedstat): the rest is the time that it was blocked. A thread waits in the function wait_NAME alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull
enum { MANY = 20 };

static uint64_t deadline_ns;
static int pipe_fds[2];
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER, end_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end = PTHREAD_COND_INITIALIZER;
static bool is_over;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static bool goes_on(void)
{
	return now(CLOCK_MONOTONIC) < deadline_ns;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / NS), (long)(ns % NS) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void burn_ns(uint64_t ns)
{
	uint64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

__attribute__((noinline)) static void wait_nap(void)
{
	while (goes_on())
		sleep_ns(2000000);
}

__attribute__((noinline)) static void wait_doze(void)
{
	while (goes_on())
		sleep_ns(150000000);
}

__attribute__((noinline)) static void wait_forever(void)
{
	pthread_mutex_lock(&end_lock);
	while (!is_over)
		pthread_cond_wait(&end, &end_lock);
	pthread_mutex_unlock(&end_lock);
}

__attribute__((noinline)) static void wait_pipe(void)
{
	char byte;

	while (read(pipe_fds[0], &byte, 1) == 1)
		;
}

__attribute__((noinline)) static void wait_feed(void)
{
	while (goes_on()) {
		sleep_ns(5000000);
		if (write(pipe_fds[1], "x", 1) != 1)
			abort();
	}
	close(pipe_fds[1]);
}

/* Two threads do this, so each mostly waits for the other. */
__attribute__((noinline)) static void wait_lock(void)
{
	while (goes_on()) {
		pthread_mutex_lock(&contended);
		sleep_ns(20000000);
		pthread_mutex_unlock(&contended);
		sleep_ns(100000);
	}
}

__attribute__((noinline)) static void wait_poll(void)
{
	while (goes_on())
		poll(NULL, 0, 30);
}

__attribute__((noinline)) static void wait_burn(void)
{
	while (goes_on())
		burn_ns(1000000);
}

static const struct {
	const char *name;
	void (*run)(void);
	unsigned count;
} kinds[] = {
	{ "nap", wait_nap, 1 },	  { "doze", wait_doze, 1 }, { "forever", wait_forever, 1 }, { "pipe", wait_pipe, 1 },
	{ "feed", wait_feed, 1 }, { "lock", wait_lock, 2 }, { "poll", wait_poll, MANY },    { "burn", wait_burn, 3 },
};

static uint64_t run_delay_ns(void)
{
	uint64_t on, delay = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%" SCNu64 " %" SCNu64, &on, &delay) != 2)
		abort();
	fclose(f);
	return delay;
}

static void *run(void *arg)
{
	size_t kind = (size_t)arg;
	uint64_t start_ns = now(CLOCK_MONOTONIC), cpu_ns = now(CLOCK_THREAD_CPUTIME_ID), delay_ns = run_delay_ns();

	pthread_setname_np(pthread_self(), kinds[kind].name);
	kinds[kind].run();
	delay_ns = run_delay_ns() - delay_ns;
	cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	printf("%s %ld %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", kinds[kind].name, syscall(SYS_gettid),
	       now(CLOCK_MONOTONIC) - start_ns, cpu_ns, delay_ns);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	unsigned count = 0;

	deadline_ns = now(CLOCK_MONOTONIC) + (uint64_t)(atof(argc > 1 ? argv[1] : "3") * (double)NS);
	if (pipe(pipe_fds))
		abort();
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (unsigned i = 0; i < kinds[kind].count; i++)
			if (pthread_create(&threads[count++], NULL, run, (void *)kind))
				abort();
	while (goes_on())
		sleep_ns(10000000);
	pthread_mutex_lock(&end_lock);
	is_over = true;
	pthread_cond_broadcast(&end);
	pthread_mutex_unlock(&end_lock);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
