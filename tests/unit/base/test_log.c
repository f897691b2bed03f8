/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: stderr is a datagram socket here, so each write(2) arrives as one piece and a line written in two would show. A
 * pseudo terminal stands in for the colour test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/unit/descriptors.h"

static int saved_stderr, other_end = -1;
static char received[8192];

static int redirect(void **state)
{
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	dup2(pair[0], STDERR_FILENO);
	close(pair[0]);
	other_end = pair[1];
	log_set_level(LOG_INFO);
	return 0;
}

static int restore(void **state)
{
	(void)state;
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(other_end);
	return 0;
}

/* What one write carried; "" when nothing was written. */
static const char *one_write(void)
{
	ssize_t n = recv(other_end, received, sizeof(received) - 1, MSG_DONTWAIT);

	received[n > 0 ? n : 0] = '\0';
	return received;
}

/* A message as one object or one run of pairs, whatever is in it. */
static void test_formats(void **state)
{
	int hour, parsed;

	(void)state;
	log_set_format(LOG_AS_JSON);
	log_warn("cannot open \"%s\": \\ %c%s", "a\n", 0xff, "");
	parsed = sscanf(one_write(), "{\"time\":\"%*4d-%*2d-%*2dT%2d:", &hour);
	assert_int_equal(parsed, 1);
	assert_non_null(strstr(received, "Z\",\"level\":\"warning\",\"message\":\"cannot open \\\"a?\\\": \\\\ ?\"}\n"));
	log_set_format(LOG_AS_LOGFMT);
	log_info("a b");
	assert_int_equal(strncmp(one_write(), "time=2", 6), 0);
	assert_non_null(strstr(received, " level=info msg=\"a b\"\n"));
	log_set_format(LOG_AS_TEXT);
	log_info("a b");
	assert_string_equal(one_write(), "hearth: a b\n");
}

static void test_levels(void **state)
{
	(void)state;
	log_error("cannot open %s: %s", "/x", "no such file");
	assert_string_equal(one_write(), "hearth: error: cannot open /x: no such file\n");
	log_warn("slow");
	assert_string_equal(one_write(), "hearth: warning: slow\n");
	log_info("up %d", 5);
	assert_string_equal(one_write(), "hearth: up 5\n");
	log_debug("hidden");
	assert_string_equal(one_write(), "");
	log_set_level(LOG_DEBUG);
	log_debug("shown");
	assert_string_equal(one_write(), "hearth: debug: shown\n");
	log_set_level(LOG_ERROR);
	log_warn("hidden");
	assert_string_equal(one_write(), "");
	assert_true(log_is_enabled(LOG_ERROR));
	assert_false(log_is_enabled(LOG_WARN));
}

static void test_one_safe_line(void **state)
{
	(void)state;
	log_info("comm '%s'", "a\nb\033[2Jc\177\303\251");
	assert_string_equal(one_write(), "hearth: comm 'a?b?[2Jc?\303\251'\n");
	assert_string_equal(one_write(), "");
}

static void test_long_message(void **state)
{
	static char text[6000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	log_error("%s", text);
	assert_int_equal(strlen(one_write()), 4095);
	assert_memory_equal(received, "hearth: error: xxx", 18);
	assert_string_equal(received + 4092, "xx\n");
	assert_string_equal(one_write(), "");
}

static void test_errno(void **state)
{
	(void)state;
	errno = ENOENT;
	log_info("why: %m");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(one_write(), "hearth: why: No such file or directory\n");
}

static void test_limited(void **state)
{
	struct log_limit limit = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		log_limited(&limit, 3600 * NSEC_PER_SEC, LOG_WARN, "drop %d", i);
	assert_string_equal(one_write(), "hearth: warning: drop 0\n");
	assert_string_equal(one_write(), "");
	limit.last_ns = 1; /* as if the interval had passed */
	log_limited(&limit, 1, LOG_WARN, "drop %d", 4);
	assert_string_equal(one_write(), "hearth: warning: drop 4 (3 like it held back)\n");
	limit.last_ns = 1;
	log_limited(&limit, 1, LOG_WARN, "drop %d", 5);
	assert_string_equal(one_write(), "hearth: warning: drop 5\n");
	log_set_level(LOG_ERROR);
	limit.last_ns = 1;
	log_limited(&limit, 1, LOG_WARN, "below the level");
	assert_string_equal(one_write(), "");
	assert_int_equal(limit.held_back, 0);
}

static void test_held(void **state)
{
	(void)state;
	log_hold(true);
	log_warn("one");
	log_warn("two");
	assert_string_equal(one_write(), "");
	log_write_held(); /* as before a death: they stay */
	assert_string_equal(one_write(), "hearth: warning: one\nhearth: warning: two\n");
	log_hold(true);
	log_hold(false);
	assert_string_equal(one_write(), "hearth: warning: one\nhearth: warning: two\n");
	log_hold(false);
	assert_string_equal(one_write(), "");
	log_warn("three");
	assert_string_equal(one_write(), "hearth: warning: three\n");
}

/* More than fits: the number of the others is told. */
static void test_held_too_many(void **state)
{
	(void)state;
	log_hold(true);
	for (int i = 0; i < 70; i++)
		log_warn("%01000d", i);
	assert_string_equal(one_write(), "");
	log_hold(false);
	assert_memory_equal(one_write(), "hearth: warning: 0000", 21);
	assert_string_equal(one_write(),
			    "hearth: warning: 6 more messages came while the screen was drawn on, and are left out\n");
}

static void test_recent(void **state)
{
	static struct log_message kept[200];
	char longest[400];

	(void)state;
	for (int i = 0; i < 150; i++) {
		log_warn("message %d", i);
		one_write();
	}
	log_debug("below the level");
	size_t n = log_recent(kept, 200);
	assert_int_equal(n, 100);
	assert_string_equal(kept[0].text, "message 50");
	assert_string_equal(kept[99].text, "message 149");
	assert_string_equal(log_level_name(kept[99].level), "warning");
	assert_true(clock_unix_ns() - kept[99].unix_ns < 60 * NSEC_PER_SEC);
	assert_int_equal(log_recent(kept, 2), 2);
	assert_string_equal(kept[0].text, "message 148");

	/* What is too long ends between two characters. */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + 242, "\u20ac", sizeof("\u20ac"));
	log_error("%s", longest);
	one_write();
	assert_int_equal(log_recent(kept, 1), 1);
	assert_int_equal(strlen(kept[0].text), 242);
}

static void test_colour_on_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	char line[256] = "";

	(void)state;
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	dup2(slave, STDERR_FILENO);
	close(slave);
	unsetenv("NO_COLOR");
	log_error("red");
	assert_true(read(master, line, sizeof(line) - 1) > 0);
	assert_string_equal(line, "hearth: \033[1;31merror:\033[0m red\r\n");
	setenv("NO_COLOR", "1", 1);
	log_error("plain");
	memset(line, 0, sizeof(line));
	assert_true(read(master, line, sizeof(line) - 1) > 0);
	assert_string_equal(line, "hearth: error: plain\r\n");
	unsetenv("NO_COLOR");
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_formats, redirect, restore),
		cmocka_unit_test_setup_teardown(test_levels, redirect, restore),
		cmocka_unit_test_setup_teardown(test_one_safe_line, redirect, restore),
		cmocka_unit_test_setup_teardown(test_long_message, redirect, restore),
		cmocka_unit_test_setup_teardown(test_errno, redirect, restore),
		cmocka_unit_test_setup_teardown(test_limited, redirect, restore),
		cmocka_unit_test_setup_teardown(test_held, redirect, restore),
		cmocka_unit_test_setup_teardown(test_held_too_many, redirect, restore),
		cmocka_unit_test_setup_teardown(test_recent, redirect, restore),
		cmocka_unit_test_setup_teardown(test_colour_on_terminal, redirect, restore),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
