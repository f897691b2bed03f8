/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper, with this test as its agent and backends that end as they are told: what it tells, how long it pauses, when it
 * is over. In the keeper's process an hour takes no time: who would wait is told that the time is over.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/calls.h"
#include "base/capabilities.h"
#include "base/clock.h"
#include "cmd/halves/backend_half.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/hand_over.h"
#include "cmd/halves/keeper.h"
#include "tests/unit/descriptors.h"

enum { MOST = 32, LIVES = 99 };

/* What all processes see. */
static struct seen {
	/* how each backend ends: an exit status, -SIGNAL, LIVES: when the agent has gone; and how long it lived */
	int ends[MOST];
	uint64_t life_ns[MOST];
	unsigned failing_fork; /* counted from 1 */
	unsigned failing_watch;
	size_t secrets;
	int confined;

	unsigned forks, watches, backends;
	bool is_first[MOST];
	char http[64], page[64], metrics[64], grpc[64], rest[64], pprof[64], senders_grpc[64];
	unsigned looks;
	bool calls_are_right, gave_up;
	bool agent_told;    /* to the backend: the agent has something to say */
	uint64_t passed_ns; /* of a time that is made up */
	int longest_ms;
} * seen;

static struct share share;
static int sock, control;
static pid_t keeper;

/* --- stand-ins --- */

void hand_over(struct share *given, bool keeps, struct handed_over *ret)
{
	if (given != &share || !keeps)
		_exit(56);
	*ret = (struct handed_over){ .secret_count = seen->secrets };
}

void hand_over_again(struct handed_over *h)
{
	(void)h;
	seen->looks++;
}

void hand_over_ports(const struct config *config)
{
	(void)config;
}

int capabilities_keep(uint64_t set)
{
	seen->gave_up = set == CAPABILITY_KEEPER;
	return 0;
}

uint64_t capabilities_of(unsigned kept, uint64_t have)
{
	(void)have;
	return kept;
}

uint64_t capabilities_effective(void)
{
	return ~0ull;
}

int calls_filter(const struct calls *calls)
{
	seen->calls_are_right = calls->network && calls->forks && calls->kills && !calls->command &&
				calls->more_count == 15 && calls->request_count == 2;
	return seen->confined;
}

pid_t fork(void)
{
	if (seen && ++seen->forks == seen->failing_fork + 1 && seen->failing_fork) {
		errno = EAGAIN;
		return -1;
	}
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

int pidfd_open(pid_t pid, unsigned flags)
{
	if (seen && ++seen->watches == seen->failing_watch) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	const int err = (int)syscall(SYS_clock_gettime, id, ret);
	uint64_t ns = (uint64_t)ret->tv_sec * NSEC_PER_SEC + (uint64_t)ret->tv_nsec + (seen ? seen->passed_ns : 0);

	ret->tv_sec = (time_t)(ns / NSEC_PER_SEC);
	ret->tv_nsec = (long)(ns % NSEC_PER_SEC);
	return err;
}

/* A limited time passes at once, unless something has happened. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int n = (int)syscall(SYS_poll, fds, count, 0);

	if (n || !timeout_ms)
		return n;
	if (timeout_ms < 0 || fds[count - 1].fd >= 0) /* a backend runs, and does what it was told */
		return (int)syscall(SYS_poll, fds, count, -1);
	seen->passed_ns += (uint64_t)timeout_ms * NSEC_PER_MSEC;
	if (timeout_ms > seen->longest_ms)
		seen->longest_ms = timeout_ms;
	return 0;
}

static void copy_address(char *to, const char *address)
{
	snprintf(to, 64, "%s", address ? address : "");
}

void backend_half(const struct backend_task *task)
{
	const struct config *c = &task->share->backend;
	const unsigned i = seen->backends++;
	char byte;

	seen->is_first[i] = task->is_first;
	copy_address(seen->http, c->http_address);
	copy_address(seen->page, c->page_address);
	copy_address(seen->metrics, c->metrics_address);
	copy_address(seen->grpc, c->grpc_address);
	copy_address(seen->rest, c->rest_address);
	copy_address(seen->pprof, c->pprof_address);
	copy_address(seen->senders_grpc, task->share->senders.grpc_address);
	if (!task->keeps || task->is_lenient || !task->handed)
		_exit(55);
	seen->passed_ns += seen->life_ns[i];
	if (seen->ends[i] == LIVES)
		(void)!recv(task->sock, &byte, 1, 0);
	if (seen->ends[i] < 0) {
		signal(-seen->ends[i], SIG_DFL);
		kill(getpid(), -seen->ends[i]);
	}
	_exit(seen->ends[i] == LIVES ? BACKEND_DONE : seen->ends[i]);
}

/* --- the agent's end --- */

static int begin(void **state)
{
	(void)state;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return -1;
	share = (struct share){ .backend = { .http_address = "127.0.0.1:0",
					     .page_address = "[::1]:0",
					     .metrics_address = "m:0",
					     .grpc_address = "g:0",
					     .rest_address = "r:0",
					     .pprof_address = "p:0",
					     .drain_timeout_ns = NSEC_PER_SEC } };
	return 0;
}

static int end(void **state)
{
	struct seen *mine = seen;

	(void)state;
	seen = NULL;
	return munmap(mine, sizeof(*mine));
}

static void start(void)
{
	keeper = keeper_fork(&share, true, false, &sock, &control);
	assert_true(keeper > 0);
}

/* The next note, once it has come; false: there is none, and the keeper has gone, perhaps without having read all. */
static bool hear(struct keeper_note *note)
{
	ssize_t n = recv(control, note, sizeof(*note), 0);

	assert_true(n == 0 || n == sizeof(*note) || (n < 0 && errno == ECONNRESET));
	return n > 0;
}

/* The status of the keeper's process. */
static int leave(void)
{
	int status;

	close(sock);
	close(control);
	assert_int_equal(waitpid(keeper, &status, 0), keeper);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Each backend that dies is told with its status and the pause, which doubles up to half a minute; a long life makes it
 * short again; one that is done, or refused, is the last. */
static void test_pauses(void **state)
{
	static const struct {
		int ends;
		uint64_t life_s, pause_ms;
	} rows[] = {
		{ BACKEND_FAILED, 0, 100 },   { -SIGKILL, 0, 200 },
		{ -SIGSEGV, 1, 400 },	      { 77, 0, 800 },
		{ BACKEND_FAILED, 0, 1600 },  { BACKEND_FAILED, 0, 3200 },
		{ BACKEND_FAILED, 0, 6400 },  { 3, 59, 12800 },
		{ BACKEND_FAILED, 0, 25600 }, { BACKEND_FAILED, 0, 30000 },
		{ BACKEND_FAILED, 0, 30000 }, { BACKEND_FAILED, 61, 100 },
		{ BACKEND_FAILED, 0, 200 },
	};
	const size_t count = sizeof(rows) / sizeof(*rows);
	const int last[] = { BACKEND_DONE, BACKEND_REFUSED };

	for (size_t l = 0; l < 2; l++) {
		struct keeper_note note;
		pid_t pid = 0;
		uint64_t paused_ms = 0;

		if (l)
			assert_int_equal(begin(state), 0);
		for (size_t i = 0; i < count; i++) {
			seen->ends[i] = rows[i].ends;
			seen->life_ns[i] = rows[i].life_s * NSEC_PER_SEC;
			paused_ms += rows[i].pause_ms + rows[i].life_s * 1000;
		}
		seen->ends[count] = last[l];
		start();
		for (size_t i = 0; i < count; i++) {
			assert_true(hear(&note));
			assert_true(note.pid > 0 && note.pid != pid && note.pid != keeper);
			pid = note.pid;
			if (rows[i].ends < 0)
				assert_true(WIFSIGNALED(note.wait_status) && WTERMSIG(note.wait_status) == -rows[i].ends);
			else
				assert_true(WIFEXITED(note.wait_status) && WEXITSTATUS(note.wait_status) == rows[i].ends);
			if (note.pause_ns != rows[i].pause_ms * NSEC_PER_MSEC)
				fail_msg("pause %zu is %.1f ms", i, (double)note.pause_ns / (double)NSEC_PER_MSEC);
		}
		assert_true(hear(&note));
		assert_int_equal(WEXITSTATUS(note.wait_status), last[l]);
		assert_int_equal(note.pause_ns, UINT64_MAX);
		assert_false(hear(&note)); /* it has gone by itself */
		assert_int_equal(leave(), 0);
		assert_int_equal(seen->backends, count + 1);
		for (size_t i = 0; i <= count; i++)
			assert_int_equal(seen->is_first[i], i == 0);
		assert_in_range(seen->passed_ns / NSEC_PER_MSEC, paused_ms, paused_ms + 20);
		assert_true(seen->calls_are_right && seen->gave_up);
		if (!l)
			assert_int_equal(end(state), 0);
	}
}

/* A backend that cannot be started is tried again, as the first one. */
static void test_no_process(void **state)
{
	struct keeper_note note;

	(void)state;
	seen->failing_fork = 1;
	seen->ends[0] = BACKEND_FAILED;
	seen->ends[1] = BACKEND_DONE;
	start();
	assert_true(hear(&note));
	assert_int_equal(note.pause_ns, 200 * NSEC_PER_MSEC);
	assert_true(hear(&note));
	assert_false(hear(&note));
	assert_int_equal(leave(), 0);
	assert_int_equal(seen->backends, 2);
	assert_true(seen->is_first[0] && !seen->is_first[1]);
}

/* A backend whose end would not be seen is ended, which is told, and another takes its place. */
static void test_no_watch(void **state)
{
	struct keeper_note note;
	pid_t pid;

	(void)state;
	seen->failing_watch = 1;
	seen->ends[0] = seen->ends[1] = LIVES;
	start();
	assert_true(hear(&note));
	assert_true(WIFSIGNALED(note.wait_status) && WTERMSIG(note.wait_status) == SIGKILL);
	assert_int_equal(note.pause_ns, 100 * NSEC_PER_MSEC);
	pid = note.pid;
	assert_int_equal(kill(pid, 0), -1);
	for (int i = 0; i < 10000 && *(volatile unsigned *)&seen->watches < 2; i++)
		usleep(1000);
	assert_int_equal(leave(), 0);
	assert_int_equal(seen->watches, 2);
}

/* Backends after the first take the ports that it had, also those that send. */
static void test_ports(void **state)
{
	static const struct keeper_ports ports = { { 65535, 2, 3, 4, 0 } };
	struct keeper_note note;

	(void)state;
	seen->ends[0] = BACKEND_FAILED;
	seen->ends[1] = BACKEND_DONE;
	keeper = -1;
	seen->life_ns[0] = 0;
	start();
	assert_int_equal(send(control, &ports, sizeof(ports), 0), sizeof(ports));
	assert_int_equal(send(control, "x", 1, 0), 1); /* is nothing */
	assert_true(hear(&note));
	assert_true(hear(&note));
	assert_false(hear(&note));
	assert_int_equal(leave(), 0);
	assert_string_equal(seen->http, "127.0.0.1:2");
	assert_string_equal(seen->page, "[::1]:65535");
	assert_string_equal(seen->metrics, "m:3");
	assert_string_equal(seen->grpc, "g:4");
	assert_string_equal(seen->rest, "r:0");
	assert_string_equal(seen->pprof, "p:0");
	assert_string_equal(seen->senders_grpc, "g:4");
}

/* Without a page of its own the first port is the receiver's. */
static void test_one_port(void **state)
{
	static const struct keeper_ports ports = { { 9, 0, 7, 0, 5, 6 } };
	struct keeper_note note;

	(void)state;
	share.backend.page_address = share.backend.metrics_address = NULL;
	share.backend.grpc_address = "off";
	seen->ends[0] = BACKEND_FAILED;
	start();
	assert_int_equal(send(control, &ports, sizeof(ports), 0), sizeof(ports));
	while (hear(&note))
		;
	assert_int_equal(leave(), 0);
	assert_string_equal(seen->http, "127.0.0.1:9");
	assert_string_equal(seen->page, "");
	assert_string_equal(seen->metrics, "");
	assert_string_equal(seen->grpc, "off");
	assert_string_equal(seen->rest, "r:5");
	assert_string_equal(seen->pprof, "p:6");
}

/* An agent that goes is followed by the backend, then the keeper. */
static void test_agent_gone(void **state)
{
	(void)state;
	seen->ends[0] = LIVES;
	start();
	assert_int_equal(leave(), 0);
	assert_in_range(seen->backends, 0, 1);
	seen->ends[0] = seen->ends[1] = BACKEND_FAILED; /* and in a pause */
	seen->backends = 0;
	start();
	assert_int_equal(leave(), 0);
	assert_true(seen->backends <= 2);
}

/* Who cannot give up what it should is no keeper. */
static void test_not_confined(void **state)
{
	struct keeper_note note;

	(void)state;
	seen->confined = -EPERM;
	start();
	assert_false(hear(&note));
	assert_int_equal(leave(), 1);
	assert_int_equal(seen->backends, 0);
}

static void test_no_keeper(void **state)
{
	(void)state;
	seen->forks = 1;
	seen->failing_fork = 1; /* the next one */
	assert_int_equal(keeper_fork(&share, true, false, &sock, &control), -EAGAIN);
	close(sock);
	close(control);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pauses, begin, end),
		cmocka_unit_test_setup_teardown(test_no_process, begin, end),
		cmocka_unit_test_setup_teardown(test_no_watch, begin, end),
		cmocka_unit_test_setup_teardown(test_ports, begin, end),
		cmocka_unit_test_setup_teardown(test_one_port, begin, end),
		cmocka_unit_test_setup_teardown(test_agent_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_not_confined, begin, end),
		cmocka_unit_test_setup_teardown(test_no_keeper, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
