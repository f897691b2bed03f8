/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of threads of which one waits for the other, for as many seconds as the argument says: for a lock, a pipe, a slow
 * database behind TCP, another behind a socket in the file system that is polled, and for a timer alone. At the end each
 * that waits tells: its name, its tid, how many nanoseconds it waited for the other by its own clock, and what a profile
 * should say: the waker's thread ("-": an interrupt) and function, and what was waited for.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull

static uint64_t deadline_ns;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fds[2], tcp_listener, unix_listener;
static struct sockaddr_in tcp_address = { .sin_family = AF_INET };
static struct sockaddr_un unix_address = { .sun_family = AF_UNIX };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static int goes_on(void)
{
	return now() < deadline_ns;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { 0, (long)ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void tell(const char *name, uint64_t waited_ns, const char *waker, const char *function, const char *target)
{
	printf("%s %ld %" PRIu64 " %s %s %s\n", name, syscall(SYS_gettid), waited_ns, waker, function, target);
}

static void must(int is_so)
{
	if (!is_so)
		abort();
}

/* --- a lock: one holds it for long, the other comes meanwhile --- */

__attribute__((noinline)) static void let_go(void)
{
	pthread_mutex_unlock(&contended);
	__asm__ volatile("");
}

static void hold(void)
{
	while (goes_on()) {
		pthread_mutex_lock(&contended);
		sleep_ns(20000000);
		let_go();
		sleep_ns(5000000);
	}
}

static void take(void)
{
	uint64_t waited = 0;
	char target[64];

	while (goes_on()) {
		uint64_t start = now();

		pthread_mutex_lock(&contended);
		waited += now() - start;
		pthread_mutex_unlock(&contended);
		while (goes_on() && !pthread_mutex_trylock(&contended)) { /* until the other has it again */
			pthread_mutex_unlock(&contended);
			sleep_ns(100000);
		}
	}
	snprintf(target, sizeof(target), "futex 0x%" PRIxPTR, (uintptr_t)&contended);
	tell("take", waited, "hold", "let_go", target);
}

/* --- a pipe --- */

__attribute__((noinline)) static void feed_pipe(void)
{
	must(write(pipe_fds[1], "x", 1) == 1);
	__asm__ volatile("");
}

static void feed(void)
{
	while (goes_on()) {
		sleep_ns(15000000);
		feed_pipe();
	}
	close(pipe_fds[1]);
}

static void drink(void)
{
	uint64_t waited = 0, start = now();
	char target[64], byte;
	struct stat st;

	while (read(pipe_fds[0], &byte, 1) == 1) {
		waited += now() - start;
		start = now();
	}
	must(!fstat(pipe_fds[0], &st));
	snprintf(target, sizeof(target), "pipe:[%llu]", (unsigned long long)st.st_ino);
	tell("drink", waited, "feed", "feed_pipe", target);
}

/* --- databases --- */

__attribute__((noinline)) static int answer(int fd)
{
	ssize_t n = send(fd, "a", 1, MSG_NOSIGNAL);

	__asm__ volatile("");
	return n == 1;
}

static void serve(int listener)
{
	int fd = accept(listener, NULL, NULL);
	char byte;

	must(fd >= 0);
	while (recv(fd, &byte, 1, 0) == 1) {
		sleep_ns(30000000); /* a slow query */
		if (!answer(fd))
			break;
	}
	close(fd);
}

static void serve_tcp(void)
{
	serve(tcp_listener);
}

static void serve_unix(void)
{
	serve(unix_listener);
}

static uint64_t ask(int fd, int polls)
{
	uint64_t waited = 0;
	char byte;

	while (goes_on()) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t start = now();

		must(send(fd, "q", 1, MSG_NOSIGNAL) == 1);
		must(!polls || poll(&p, 1, -1) == 1);
		must(recv(fd, &byte, 1, 0) == 1);
		waited += now() - start;
	}
	close(fd);
	return waited;
}

static void ask_tcp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char target[64];

	must(!connect(fd, (void *)&tcp_address, sizeof(tcp_address)));
	snprintf(target, sizeof(target), "tcp 127.0.0.1:%u", ntohs(tcp_address.sin_port));
	tell("ask_tcp", ask(fd, 0), "serve_tcp", "answer", target);
}

static void ask_unix(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char target[160];

	must(!connect(fd, (void *)&unix_address, sizeof(unix_address)));
	snprintf(target, sizeof(target), "unix %s", unix_address.sun_path);
	tell("ask_unix", ask(fd, 1), "serve_unix", "answer", target);
}

/* --- a timer --- */

static void doze(void)
{
	uint64_t waited = 0;

	while (goes_on()) {
		uint64_t start = now();

		sleep_ns(25000000);
		waited += now() - start;
	}
	tell("doze", waited, "-", "-", "-");
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = { { "hold", hold },
	    { "take", take },
	    { "feed", feed },
	    { "drink", drink },
	    { "serve_tcp", serve_tcp },
	    { "ask_tcp", ask_tcp },
	    { "serve_unix", serve_unix },
	    { "ask_unix", ask_unix },
	    { "doze", doze } };

static void *run(void *arg)
{
	size_t i = (size_t)arg;

	pthread_setname_np(pthread_self(), all[i].name);
	all[i].run();
	return NULL;
}

int main(int argc, char **argv)
{
	enum { COUNT = sizeof(all) / sizeof(*all) };
	socklen_t len = sizeof(tcp_address);
	pthread_t threads[COUNT];

	deadline_ns = now() + (uint64_t)(atof(argc > 1 ? argv[1] : "3") * (double)NS);
	tcp_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	snprintf(unix_address.sun_path, sizeof(unix_address.sun_path), "%s", argc > 2 ? argv[2] : "./database");
	tcp_listener = socket(AF_INET, SOCK_STREAM, 0);
	unix_listener = socket(AF_UNIX, SOCK_STREAM, 0);
	must(!pipe(pipe_fds));
	must(!bind(tcp_listener, (void *)&tcp_address, len) && !getsockname(tcp_listener, (void *)&tcp_address, &len));
	must(!bind(unix_listener, (void *)&unix_address, sizeof(unix_address)));
	must(!listen(tcp_listener, 1) && !listen(unix_listener, 1));
	for (size_t i = 0; i < COUNT; i++)
		must(!pthread_create(&threads[i], NULL, run, (void *)i));
	for (size_t i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
	unlink(unix_address.sun_path);
	return 0;
}
