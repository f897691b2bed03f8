/* SPDX-License-Identifier: Apache-2.0 */
/* Running the command to record: its status, its signals, its user, and that it does not run before it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "cmd/setup/child.h"

static int run(const char *const *argv, bool as_root)
{
	struct child child = CHILD_NONE;
	int err = child_fork((char *const *)(uintptr_t)argv, as_root, &child), status;

	if (!err)
		err = child_release(&child);
	assert_true(!err || err == -ECHILD);
	status = child_wait(&child);
	assert_true(!err || status);
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

/* A command that is not there, or may not be executed, is told before it is let go, and by the same rules as execvp's. */
static void test_found_before_release(void **state)
{
	static const struct {
		const char *path, *name;
		int fork_err, status;
	} cases[] = {
		{ "/usr/bin:/bin", "true", 0, 0 },
		{ "/hearth/none::/usr/bin:/bin", "true", 0, 0 },
		{ "/hearth/none", "true", -ECHILD, 127 },
		{ NULL, "true", 0, 0 },
		{ "/usr/bin:/bin", "", -ECHILD, 127 },
		{ "/etc:/usr/bin:/bin", "passwd-no", -ECHILD, 127 },
		{ "/hearth/none:/etc", "passwd", -ECHILD, 126 },
		{ "/etc:/usr/bin:/bin", "passwd", 0, -1 }, /* /etc's cannot be executed, another can */
		{ "/usr/bin:/bin", "/etc", -ECHILD, 126 },
	};
	char *before = strdup(getenv("PATH"));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const argv[] = { cases[i].name, cases[i].status < 0 ? "--help" : NULL, NULL };
		struct child child = CHILD_NONE;
		int err, status;

		if (cases[i].path)
			setenv("PATH", cases[i].path, 1);
		else
			unsetenv("PATH");
		err = child_fork((char *const *)(uintptr_t)argv, true, &child);
		if (err != cases[i].fork_err)
			fail_msg("%s in %s: %d", cases[i].name, cases[i].path, err);
		if (!err)
			assert_int_equal(child_release(&child), 0);
		status = child_wait(&child);
		if (cases[i].status >= 0)
			assert_int_equal(status, cases[i].status);
		child_fini(&child);
	}
	setenv("PATH", before, 1);
	free(before);
}

/* A file that is there and executable may still not run; execve(2) alone knows. */
static void test_interpreter_is_missing(void **state)
{
	char path[] = "/tmp/hearth-test-child-XXXXXX";
	const char *const argv[] = { path, NULL };
	struct child child = CHILD_NONE;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "#!/hearth/has/no/such/shell\n"), 28);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, true, &child), 0);
	assert_int_equal(child_release(&child), -ECHILD);
	assert_int_equal(child_wait(&child), 127);
	child_fini(&child);
	unlink(path);
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

static void heed(int signal)
{
	(void)signal;
}

/* Signals that have a handler do not keep us from the command's status. */
static void test_wait_goes_on_after_signals(void **state)
{
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	const char *const argv[] = { "sh", "-c", "sleep 0.2; exit 9", NULL };
	const struct sigaction heeding = { .sa_handler = heed };
	struct child child = CHILD_NONE;
	struct sigaction before;

	(void)state;
	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, true, &child), 0);
	assert_int_equal(child_release(&child), 0);
	assert_int_equal(sigaction(SIGALRM, &heeding, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(child_wait(&child), 9);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	child_fini(&child);
}

/* Does the file @name of the process have a line with @text? */
static bool proc_has(pid_t pid, const char *name, const char *text)
{
	AUTO_FREE char *line = NULL;
	char path[64];
	size_t cap = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &cap, f) > 0)
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* It has its libraries and has done nothing; nobody traces it; then it does all that it would do. */
static void test_stops_at_entry(void **state)
{
	static const char *const argv[] = { "sh", "-c", "kill -USR1 $$; exit 7", NULL }, *const trapped[] = {
		"sh", "-c", "trap 'exit 8' USR1; kill -USR1 $$; exit 7", NULL
	};
	const char *const *const commands[] = { argv, trapped };
	const int status[] = { 128 + SIGUSR1, 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct child child = CHILD_NONE;

		assert_int_equal(child_fork((char *const *)(uintptr_t)commands[i], true, &child), 0);
		assert_int_equal(child_stop_at_entry(&child), 0);
		assert_true(child.is_stopped);
		assert_true(proc_has(child.pid, "status", "State:\tT (stopped)"));
		assert_true(proc_has(child.pid, "status", "TracerPid:\t0"));
		assert_true(proc_has(child.pid, "maps", "/libc.so"));
		assert_int_equal(child_release(&child), 0);
		assert_int_equal(child_wait(&child), status[i]);
		child_fini(&child);
	}
}

static void test_ends_before_entry(void **state)
{
	static const char *const argv[] = { "sleep", "1000", NULL };
	char path[] = "/tmp/hearth-test-child-XXXXXX";
	const char *const script[] = { path, NULL };
	struct child child = CHILD_NONE;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(child_fork((char *const *)(uintptr_t)argv, true, &child), 0);
	assert_int_equal(child_stop_at_entry(&child), 0);
	child_fini(&child); /* never released */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_true(fd >= 0 && dprintf(fd, "#!/hearth/has/no/interpreter\n") > 0 && !fchmod(fd, 0755));
	close(fd);
	assert_int_equal(child_fork((char *const *)(uintptr_t)script, true, &child), 0);
	assert_int_equal(child_stop_at_entry(&child), -ECHILD);
	assert_int_equal(child_wait(&child), 127);
	child_fini(&child);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_signals_are_reset),
		cmocka_unit_test(test_not_before_release),
		cmocka_unit_test(test_found_before_release),
		cmocka_unit_test(test_stops_at_entry),
		cmocka_unit_test(test_ends_before_entry),
		cmocka_unit_test(test_interpreter_is_missing),
		cmocka_unit_test(test_runs_as_invoking_user),
		cmocka_unit_test(test_signal_is_passed_on),
		cmocka_unit_test(test_wait_goes_on_after_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
