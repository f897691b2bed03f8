/* SPDX-License-Identifier: Apache-2.0 */
/* Running the command to record: its status, its signals, its user, and that it does not run before it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "cmd/child.h"

static int run(const char *const *argv, bool as_root)
{
	struct child child = CHILD_NONE;
	int status;

	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, as_root, &child), 0);
	assert_int_equal(child_release(&child), 0);
	status = child_wait(&child);
	child_fini(&child);
	return status;
}

static int run_shell(const char *script, bool as_root)
{
	const char *const argv[] = { "sh", "-c", script, NULL };

	return run(argv, as_root);
}

static void test_status(void **state)
{
	static const struct {
		const char *argv[4];
		int status;
	} cases[] = {
		{ { "true" }, 0 },
		{ { "false" }, 1 },
		{ { "sh", "-c", "exit 7" }, 7 },
		{ { "sh", "-c", "kill -TERM $$" }, 128 + SIGTERM },
		{ { "sh", "-c", "kill -KILL $$" }, 128 + SIGKILL },
		{ { "hearth-has-no-such-command" }, 127 },
		{ { "/hearth/has/no/such/command" }, 127 },
		{ { "/etc/passwd" }, 126 },
		{ { "/etc" }, 126 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = run(cases[i].argv, true);

		if (status != cases[i].status)
			fail_msg("%s %s: %d, not %d", cases[i].argv[0], cases[i].argv[2] ? cases[i].argv[2] : "", status,
				 cases[i].status);
	}
}

/* The command gets the dispositions a program expects, not ours. */
static void test_signals_are_reset(void **state)
{
	sighandler_t before = signal(SIGPIPE, SIG_IGN);

	(void)state;
	/* SigIgn is a mask in hex; SIGPIPE is bit 12 (0x1000), which this pattern finds unset in its digit. */
	assert_int_equal(run_shell("grep -Eq '^SigIgn:.*[02468ace][0-9a-f]{3}$' /proc/self/status", true), 0);
	signal(SIGPIPE, before);
}

static void test_not_before_release(void **state)
{
	char path[] = "/tmp/hearth-test-child-XXXXXX";
	const char *const argv[] = { "rm", path, NULL };
	struct child child = CHILD_NONE;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, true, &child), 0);
	child_fini(&child);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	assert_int_equal(access(path, F_OK), 0);	  /* and it removed nothing */
	assert_int_equal(run(argv, true), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_runs_as_invoking_user(void **state)
{
	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	(void)state;
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(run_shell("test $(id -u) = 65534 && test $(id -g) = 65534 && test \"$(id -G)\" = 65534", false), 0);
	assert_int_equal(run_shell("test $USER = nobody && test $LOGNAME = nobody", false), 0);
	assert_int_equal(run_shell("test $HOME = $(getent passwd 65534 | cut -d: -f6)", false), 0);
	assert_int_equal(run_shell("test $(id -u) = 0", true), 0);
	setenv("SUDO_UID", "0", 1);
	assert_int_equal(run_shell("test $(id -u) = 0", false), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void stop(void *arg)
{
	loop_stop(arg);
}

/* A signal sent to us alone reaches the command, and its end ends the loop. */
static void test_signal_is_passed_on(void **state)
{
	char script[128];
	const char *argv[] = { "sh", "-c", script, NULL };
	struct child child = CHILD_NONE;
	sigset_t before;
	struct loop *loop;
	int ready[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	snprintf(script, sizeof(script), "trap 'exit 33' TERM; echo >&%d; while :; do sleep 0.02; done", ready[1]);
	sigprocmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, true, &child), 0);
	assert_int_equal(child_watch(&child, loop, stop, loop), 0);
	assert_int_equal(child_release(&child), 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(child_wait(&child), 33);
	loop_free(loop);
	child_fini(&child);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_signals_are_reset),
		cmocka_unit_test(test_not_before_release),
		cmocka_unit_test(test_runs_as_invoking_user),
		cmocka_unit_test(test_signal_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
