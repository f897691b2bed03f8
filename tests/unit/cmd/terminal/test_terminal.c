/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal, the pager and the browser, each tried by a process with a terminal of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/terminal/browser.h"
#include "cmd/terminal/pager.h"
#include "cmd/terminal/terminal.h"
#include "tests/unit/descriptors.h"

#define LEAVE "\033[?7h\033[?25h\033[?1049l"

enum { ROWS = 10 };

/* --- a process with a terminal --- */

struct seen {
	char text[8192];     /* on the terminal */
	int status;	     /* of wait() */
	struct termios mode; /* at the end */
};

static _Noreturn void run_child(const char *name, int (*fn)(void))
{
	int slave;

	setsid();
	slave = open(name, O_RDWR | O_CLOEXEC); /* which becomes the controlling terminal */
	if (slave < 0 || dup2(slave, STDIN_FILENO) < 0 || dup2(slave, STDOUT_FILENO) < 0)
		_exit(99);
	_exit(fn());
}

/* Has @fn, whose result is the exit status, run on a terminal with ROWS rows. */
static struct seen on_terminal(int (*fn)(void))
{
	const struct winsize size = { .ws_row = ROWS, .ws_col = 40 };
	struct seen ret = { .text = "" };
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	AUTO_CLOSE int kept = -1; /* or nothing can be read once the child has ended */
	size_t len = 0;
	char name[64];
	ssize_t n;
	pid_t pid;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof(name)), 0);
	kept = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(kept >= 0);
	assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run_child(name, fn);
	assert_int_equal(waitpid(pid, &ret.status, 0), pid); /* it writes less than a terminal holds */
	assert_int_equal(tcgetattr(master, &ret.mode), 0);
	assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
	while (len + 1 < sizeof(ret.text) && (n = read(master, ret.text + len, sizeof(ret.text) - len - 1)) > 0)
		len += (size_t)n;
	close(master);
	return ret;
}

static int status_of(int (*fn)(void))
{
	struct seen seen = on_terminal(fn);

	assert_true(WIFEXITED(seen.status));
	return WEXITSTATUS(seen.status);
}

/* --- the terminal --- */

static int tell_keys(void)
{
	return terminal_has_keys();
}

static int tell_keys_without_input(void)
{
	return dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO) < 0 ? 99 : terminal_has_keys();
}

static int tell_keys_in_background(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		_exit(terminal_has_keys());
	}
	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 99;
}

static void test_who_has_keys(void **state)
{
	(void)state;
	assert_int_equal(status_of(tell_keys), 1);
	assert_int_equal(status_of(tell_keys_without_input), 0);
	assert_int_equal(status_of(tell_keys_in_background), 0);
}

static int enter(void)
{
	struct termios before, raw;

	if (tcgetattr(0, &before) || terminal_enter() || terminal_enter() || tcgetattr(0, &raw))
		return 1;
	if (raw.c_lflag & (ICANON | ECHO) || raw.c_cc[VMIN] != 1 || raw.c_cc[VTIME] != 0)
		return 2;
	if (!(raw.c_lflag & ISIG) || raw.c_iflag != before.c_iflag || raw.c_oflag != before.c_oflag)
		return 3;
	return 0;
}

/* Keys come one by one, unseen; Ctrl-C stays a signal. */
static void test_entered(void **state)
{
	(void)state;
	assert_int_equal(status_of(enter), 0);
}

static int enter_and_restore(void)
{
	struct termios before, after;

	if (tcgetattr(0, &before) || terminal_enter())
		return 1;
	terminal_restore(false);
	terminal_restore(false);
	if (tcgetattr(0, &after) || memcmp(&before, &after, sizeof(before)) != 0)
		return 2;
	return terminal_enter() ? 3 : (terminal_restore(false), 0);
}

static void test_restored(void **state)
{
	struct seen seen = on_terminal(enter_and_restore);

	(void)state;
	assert_int_equal(WEXITSTATUS(seen.status), 0);
	assert_string_equal(seen.text, "");
	assert_true(seen.mode.c_lflag & ICANON);
}

static int leave_screen(void)
{
	terminal_restore(true); /* though nobody took it */
	return 0;
}

static void test_screen_is_left(void **state)
{
	(void)state;
	assert_string_equal(on_terminal(leave_screen).text, LEAVE);
}

static int enter_without_input(void)
{
	return dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO) < 0 ? 99 : -terminal_enter();
}

static void test_no_terminal(void **state)
{
	(void)state;
	assert_int_equal(status_of(enter_without_input), ENOTTY);
}

static int enter_and_die(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	if (terminal_enter())
		return 1;
	raise(SIGQUIT);
	return 2;
}

/* Who is killed leaves the terminal as it was, and dies of the same signal. */
static void test_killed(void **state)
{
	struct seen seen = on_terminal(enter_and_die);

	(void)state;
	assert_true(WIFSIGNALED(seen.status));
	assert_int_equal(WTERMSIG(seen.status), SIGQUIT);
	assert_string_equal(seen.text, LEAVE);
	assert_true(seen.mode.c_lflag & ICANON);
	assert_true(seen.mode.c_lflag & ECHO);
}

/* --- the pager --- */

static struct {
	const char *own, *other; /* HEARTH_PAGER, PAGER; NULL: not set */
	int lines;
	bool direct;
} page;

static void set_variable(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static int write_page(void)
{
	struct buf text = BUF_EMPTY;

	set_variable("HEARTH_PAGER", page.own);
	set_variable("PAGER", page.other);
	for (int i = 0; i < page.lines; i++)
		buf_puts(&text, "x\n");
	return pager_write(&text, page.direct);
}

/* How many lines of the text are seen: those of the pager, which puts a P before each, if @paged. */
static void page_shows(int lines, bool paged)
{
	struct seen seen = on_terminal(write_page);
	int count = 0;

	assert_true(WIFEXITED(seen.status));
	assert_int_equal(WEXITSTATUS(seen.status), STATUS_DONE);
	for (const char *at = seen.text; *at; at = strchr(at, '\n') + 1) {
		assert_memory_equal(at, paged ? "Px\r\n" : "x\r\n", paged ? 4 : 3);
		count++;
	}
	assert_int_equal(count, lines);
}

#define MARKING "sed s/^/P/"

/* What leaves a row for the prompt fits. */
static void test_what_fits_is_not_paged(void **state)
{
	(void)state;
	page.own = MARKING;
	page.direct = false;
	page.lines = ROWS - 1;
	page_shows(ROWS - 1, false);
	page.lines = ROWS;
	page_shows(ROWS, true);
	page.direct = true;
	page_shows(ROWS, false);
}

static void test_which_pager(void **state)
{
	(void)state;
	page.lines = 30;
	page.direct = false;
	page.own = NULL;
	page.other = MARKING;
	page_shows(30, true);
	page.own = "cat";
	page_shows(30, false);
	page.own = "";
	page_shows(30, false);
	page.own = MARKING;
	page.other = "false";
	page_shows(30, true);
}

/* There is no such pager: the text stands there all the same. One that ends early has seen enough. */
static void test_pagers_that_are_none(void **state)
{
	(void)state;
	page.lines = 30;
	page.direct = false;
	page.own = "no-such-pager-xyzzy 2>/dev/null";
	page_shows(30, false);
	page.own = "false";
	page_shows(0, false);
	page.own = "head -n 2 | " MARKING;
	page_shows(2, true);
}

/* --- the browser --- */

static char folder[64];

static int new_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/hearth-browser-XXXXXX");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unsetenv("SUDO_USER");
	return !mkdtemp(folder);
}

static int free_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "PATH=/usr/bin:/bin rm -rf %s", folder);
	return system(command);
}

/* Puts a program named xdg-open into the folder, which writes what it is given to the file "told" there. */
static void install(mode_t mode)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/xdg-open", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\necho \"$# $1\" >%s/half && /bin/mv %s/half %s/told\n", folder, folder, folder);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static const char *last_message(uint64_t *count)
{
	static struct log_message messages[8];
	size_t n = log_since(count, messages, 8);

	return n ? messages[n - 1].text : "";
}

static void open_with_path(const char *path, const char *wanted)
{
	AUTO_FREE char *before = strdup(getenv("PATH"));
	uint64_t seen = 0;

	last_message(&seen);
	setenv("PATH", path, 1);
	browser_open("http://127.0.0.1:4318/#a b");
	setenv("PATH", before, 1);
	if (*wanted)
		assert_non_null(strstr(last_message(&seen), wanted));
	else
		assert_string_equal(last_message(&seen), "");
}

static void test_browser(void **state)
{
	char path[128], line[64] = "", places[256];
	FILE *f = NULL;

	(void)state;
	install(0755);
	snprintf(places, sizeof(places), "/no/such/folder::%s", folder);
	open_with_path(places, "");
	snprintf(path, sizeof(path), "%s/told", folder);
	for (int i = 0; !f && i < 20000; i++) {
		f = fopen(path, "r");
		if (!f)
			usleep(1000);
	}
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_string_equal(line, "1 http://127.0.0.1:4318/#a b\n");
}

static void test_no_browser(void **state)
{
	(void)state;
	open_with_path(folder, "there is no xdg-open");
	open_with_path("", "there is no xdg-open");
}

#define BROWSER_TEST(name) cmocka_unit_test_setup_teardown(name, new_folder, free_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_has_keys),
		cmocka_unit_test(test_entered),
		cmocka_unit_test(test_restored),
		cmocka_unit_test(test_screen_is_left),
		cmocka_unit_test(test_no_terminal),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_what_fits_is_not_paged),
		cmocka_unit_test(test_which_pager),
		cmocka_unit_test(test_pagers_that_are_none),
		BROWSER_TEST(test_browser),
		BROWSER_TEST(test_no_browser),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
