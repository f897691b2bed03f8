/* SPDX-License-Identifier: Apache-2.0 */
/* Files and sockets that were opened before privileges were given up: found by the user's name, shown by it, and taken once.
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/handed.h"

/* The list lives as long as the process: these stand in it for all tests, the second one's number begins with the first's.
 */
enum { STORE_FD = 7, SPOOL_FD = 77 };

static const char *store_path, *spool_path;

static int setup(void **state)
{
	const char *path = NULL;

	(void)state;
	if (handed_path("/srv/store") == NULL || strcmp(handed_path("/srv/store"), "/srv/store") != 0)
		return -1;
	return handed_add(STORE_FD, "/srv/store", &store_path) || handed_add(SPOOL_FD, "spool", &spool_path) ||
	       handed_add(78, "", &path);
}

static void test_paths(void **state)
{
	(void)state;
	assert_string_equal(store_path, "/proc/self/fd/7");
	assert_string_equal(spool_path, "/proc/self/fd/77");
	assert_string_equal(handed_path("/srv/store"), "/proc/self/fd/7");
	assert_string_equal(handed_path("spool"), "/proc/self/fd/77");
	assert_string_equal(handed_path("/srv/stor"), "/srv/stor");
	assert_string_equal(handed_path("/srv/store/x"), "/srv/store/x");
	assert_null(handed_path(NULL));
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(handed_name("/proc/self/fd/7"), "/srv/store");
	assert_string_equal(handed_name("/proc/self/fd/77"), "spool");
	assert_string_equal(handed_name("/proc/self/fd/9"), "/proc/self/fd/9");
	assert_null(handed_name(NULL));
}

/* A descriptor of one's own, which no child gets, for the same file. */
static void test_open(void **state)
{
	char name[] = "/tmp/hearth-handed-XXXXXX";
	AUTO_CLOSE int fd = mkstemp(name), own = -1;
	const char *path = NULL;
	struct stat a, b;

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(handed_open("the file"), -1);
	assert_int_equal(handed_add(fd, "the file", &path), 0);
	own = handed_open("the file");
	assert_true(own >= 0 && own != fd);
	assert_true(fcntl(own, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(fd, &a) || fstat(own, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
}

/* The line @before reads @after with the users' names; it has room for @size bytes. */
static void rewrites(const char *before, size_t size, const char *after)
{
	char line[128];
	size_t len = strlen(before);

	memset(line, '#', sizeof(line));
	memcpy(line, before, len);
	len = handed_rewrite(line, len, size);
	assert_int_equal(len, strlen(after));
	assert_memory_equal(line, after, len);
	assert_true(size >= sizeof(line) || line[size] == '#' || size < strlen(before));
}

static void test_rewritten(void **state)
{
	(void)state;
	rewrites("cannot write /proc/self/fd/7/a.db: no room", 128, "cannot write /srv/store/a.db: no room");
	rewrites("/proc/self/fd/7", 128, "/srv/store");
	rewrites("/proc/self/fd/77", 128, "spool");
	rewrites("/proc/self/fd/7 /proc/self/fd/77 /proc/self/fd/7", 128, "/srv/store spool /srv/store");
	rewrites("x/proc/self/fd/7x", 128, "x/srv/storex");
	rewrites("/proc/self/fd/78!", 128, "!");
}

static void test_not_rewritten(void **state)
{
	(void)state;
	rewrites("", 128, "");
	rewrites("/proc/self/fd/9", 128, "/proc/self/fd/9");
	rewrites("/proc/self/fd/70", 128, "/proc/self/fd/70");
	rewrites("/proc/self/fd/", 128, "/proc/self/fd/");
	rewrites("/srv/store", 128, "/srv/store");
}

/* A longer name than there is room for leaves the path as it was. */
static void test_no_room(void **state)
{
	static const char shown[] = "/a/name/that/is/longer/than/the/path";
	const char *path = NULL;
	char before[32];

	(void)state;
	assert_int_equal(handed_add(500, shown, &path), 0);
	snprintf(before, sizeof(before), "%s", path);
	rewrites(before, strlen(shown), shown);
	rewrites(before, strlen(shown) - 1, before);
}

/* Each is taken once, in the order in which those of one address came. */
static void test_sockets(void **state)
{
	unsigned port = 0;

	(void)state;
	assert_int_equal(handed_take_socket("127.0.0.1:0", &port), -1);
	assert_int_equal(handed_add_socket(300, "127.0.0.1:0", 4318), 0);
	assert_int_equal(handed_add_socket(301, "[::1]:0", 4319), 0);
	assert_int_equal(handed_add_socket(302, "127.0.0.1:0", 4320), 0);
	assert_int_equal(handed_take_socket("127.0.0.1:1", &port), -1);
	assert_int_equal(port, 0);
	assert_int_equal(handed_take_socket("127.0.0.1:0", &port), 300);
	assert_int_equal(port, 4318);
	assert_int_equal(handed_take_socket("127.0.0.1:0", &port), 302);
	assert_int_equal(port, 4320);
	assert_int_equal(handed_take_socket("127.0.0.1:0", &port), -1);
	assert_int_equal(handed_take_socket("[::1]:0", &port), 301);
	assert_int_equal(port, 4319);
}

/* The last one: the list is full, and then refuses. */
static void test_full(void **state)
{
	const char *path = NULL;
	unsigned paths = 0, sockets = 0;

	(void)state;
	while (!handed_add(400, "more", &path) && paths < 1000)
		paths++;
	assert_int_equal(handed_add(400, "more", &path), -ENOSPC);
	assert_in_range(paths, 64 - 10, 64);
	while (!handed_add_socket(400, "more", 1) && sockets < 1000)
		sockets++;
	assert_int_equal(handed_add_socket(400, "more", 1), -ENOSPC);
	assert_int_equal(sockets, 64 - 3);
	assert_string_equal(handed_path("/srv/store"), store_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	  cmocka_unit_test(test_names),		cmocka_unit_test(test_open),
		cmocka_unit_test(test_rewritten), cmocka_unit_test(test_not_rewritten), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_sockets),	  cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
