/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of system calls: a child takes one and tries what is and what is not allowed; refusals are counted, or end it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <seccomp.h>

#include "base/buf.h"
#include "base/calls.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/sanitizer.h"
#include "base/thread.h"

#define EXPECT(condition)                                             \
	do {                                                          \
		if (!(condition))                                     \
			_exit(__LINE__ & 0xff ? __LINE__ & 0xff : 1); \
	} while (0)

static bool is_refused(long result)
{
	return result == -1 && errno == EPERM;
}

static void *refused_in_thread(void *arg)
{
	*(bool *)arg = is_refused(getpgid(0));
	return NULL;
}

static void take(const struct calls *calls)
{
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !calls_filter(calls));
}

/* Each runs in a child and ends it with 0, or with the number of the line that failed. */

static void least(void)
{
	struct metrics *m = metrics_new();
	struct buf out = BUF_EMPTY;
	bool refused = false;
	pthread_t thread;
	int pair[2];

	take(&(struct calls){ 0 });
	calls_tell(m, "agent");
	EXPECT(is_refused(fork()));
	EXPECT(is_refused(socket(AF_INET, SOCK_STREAM, 0)));
	EXPECT(is_refused(kill(getppid(), 0)));
	EXPECT(is_refused(execl("/bin/true", "true", NULL)));
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !kill(getpid(), 0));
	EXPECT(!thread_start(&thread, "refused", refused_in_thread, &refused) && !pthread_join(thread, NULL) && refused);
	metrics_write(m, &out);
	EXPECT(strstr(buf_text(&out), "hearth_refused_system_calls_total{process=\"agent\"} 6\n"));
	_exit(0);
}

static void more(void)
{
	static const int numbers[] = { SCMP_SYS(getpgid), SCMP_SYS(wait4) };
	int status = 0;
	pid_t child;

	take(&(struct calls){ .more = numbers, .more_count = ARRAY_LEN(numbers), .network = true, .forks = true });
	EXPECT(getpgid(0) >= 0); /* 0: a group of another PID namespace */
	EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0 && is_refused(socket(AF_PACKET, SOCK_RAW, 0)));
	child = fork();
	if (!child)
		_exit(is_refused(execl("/bin/true", "true", NULL)) ? 0 : 1);
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status);
	EXPECT(is_refused(kill(child, SIGKILL)));
	_exit(0);
}

static void counts_of_children(void)
{
	struct metrics *m = metrics_new();
	struct buf out = BUF_EMPTY;
	pid_t child;

	calls_count_here();
	calls_tell(m, "backend");
	child = fork();
	if (!child) {
		take(&(struct calls){ 0 });
		_exit(!is_refused(getpgid(0)));
	}
	EXPECT(waitpid(child, NULL, 0) == child);
	metrics_write(m, &out);
	EXPECT(strstr(buf_text(&out), "hearth_refused_system_calls_total{process=\"backend\"} 1\n"));
	_exit(0);
}

static void is_ended(void)
{
	setenv("HEARTH_REFUSED_CALLS", "kill", 1);
	take(&(struct calls){ 0 });
	(void)getpgid(0);
	_exit(0);
}

static int in_child(void (*fn)(void))
{
	pid_t pid;
	int status;

	if (HAS_SANITIZER)
		skip(); /* a sanitizer's reports take system calls that are refused */
	unsetenv("HEARTH_REFUSED_CALLS");
	pid = fork();
	if (!pid)
		fn();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_least(void **state)
{
	(void)state;
	assert_int_equal(in_child(least), 0);
}

static void test_more(void **state)
{
	(void)state;
	assert_int_equal(in_child(more), 0);
}

static void test_counts_of_children(void **state)
{
	(void)state;
	assert_int_equal(in_child(counts_of_children), 0);
}

static void test_is_ended(void **state)
{
	int status = in_child(is_ended);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_least), cmocka_unit_test(test_more),
					    cmocka_unit_test(test_counts_of_children), cmocka_unit_test(test_is_ended) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
