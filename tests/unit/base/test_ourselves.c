/* SPDX-License-Identifier: Apache-2.0 */
/* Who hearth's processes are: children of children, of any thread, by a real /proc; and what is remembered of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ourselves.h"

/* A child that has a child, which tells its pid; both end with this process. */
static pid_t fork_two(pid_t *grandchild_ret)
{
	int pair[2];
	pid_t child;

	assert_int_equal(pipe(pair), 0);
	child = fork();
	if (!child) {
		pid_t own;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			own = getpid();
			(void)!write(pair[1], &own, sizeof(own));
		}
		for (;;)
			pause();
	}
	assert_true(child > 0);
	assert_int_equal(read(pair[0], grandchild_ret, sizeof(*grandchild_ret)), sizeof(*grandchild_ret));
	close(pair[0]);
	close(pair[1]);
	return child;
}

static void end(pid_t child, pid_t grandchild)
{
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

struct forked {
	pid_t child, grandchild;
	int done[2]; /* the thread lives until it is closed: children are listed by the thread that forked them */
};

static void *fork_in_thread(void *arg)
{
	struct forked *f = arg;
	char byte = 0;

	f->child = fork_two(&f->grandchild);
	(void)!write(f->done[1], &byte, 1);
	(void)!read(f->done[1], &byte, 1);
	return NULL;
}

static void test_read(void **state)
{
	struct ourselves us, other;
	pid_t grandchild, child;

	(void)state;
	if (access("/proc/self/task", F_OK) || access("/proc/thread-self/children", F_OK))
		skip(); /* a kernel without lists of children */
	child = fork_two(&grandchild);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_int_equal(us.pids[0], getpid());
	assert_true(ourselves_has(&us, (uint32_t)child));
	assert_true(ourselves_has(&us, (uint32_t)grandchild));
	assert_int_equal(us.count, 3);
	assert_false(ourselves_has(&us, (uint32_t)getppid()));
	ourselves_read("/proc", (uint32_t)child, &other);
	assert_int_equal(other.count, 2);
	end(child, grandchild);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_int_equal(us.count, 1);
	ourselves_read("/nowhere", (uint32_t)getpid(), &us); /* without lists it is that process alone */
	assert_int_equal(us.count, 1);
}

static void test_read_of_threads(void **state)
{
	struct forked f;
	struct ourselves us;
	pthread_t thread;
	char byte;

	(void)state;
	if (access("/proc/thread-self/children", F_OK))
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f.done), 0);
	assert_int_equal(pthread_create(&thread, NULL, fork_in_thread, &f), 0);
	assert_int_equal(read(f.done[0], &byte, 1), 1);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_true(ourselves_has(&us, (uint32_t)f.child));
	assert_true(ourselves_has(&us, (uint32_t)f.grandchild));
	end(f.child, f.grandchild);
	close(f.done[0]);
	pthread_join(thread, NULL);
	close(f.done[1]);
}

/* What was seen stays, once, and the oldest goes where there is no more room. */
static void test_known(void **state)
{
	struct ourselves known, one = { .count = 1 };

	(void)state;
	ourselves_known(&known);
	assert_int_equal(known.count, 1);
	assert_int_equal(known.pids[0], getpid());
	for (uint32_t i = 0; i < OURSELVES_MAX; i++) {
		one.pids[0] = 4100000 + i;
		ourselves_saw(&one);
		ourselves_saw(&one);
	}
	ourselves_known(&known);
	assert_int_equal(known.count, OURSELVES_MAX);
	assert_true(ourselves_has(&known, (uint32_t)getpid()));
	assert_true(ourselves_has(&known, 4100000));
	one.pids[0] = 4200000;
	ourselves_saw(&one);
	ourselves_known(&known);
	assert_false(ourselves_has(&known, 4100000));
	assert_true(ourselves_has(&known, 4200000));
}

static void test_name(void **state)
{
	(void)state;
	assert_string_equal(ourselves_name(), "test_ourselves");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_of_threads),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
