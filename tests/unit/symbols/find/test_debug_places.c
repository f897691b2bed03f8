/* SPDX-License-Identifier: Apache-2.0 */
/* The places of debug files, in GDB's order, and that nothing is opened that leads out of the root or is no plain file of
 * the owner's to read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/find/debug_places.h"
#include "tests/unit/descriptors.h"

static struct debug_need need_of(enum debug_need_kind kind, const char *name)
{
	struct debug_need ret = { .kind = kind };

	snprintf(ret.name, sizeof(ret.name), "%s", name);
	return ret;
}

/* The places of @need, up to where there are no more, are these. */
static void places(struct debug_need need, const char *program, const char *debug, const char *const *wanted)
{
	unsigned index = 0;
	char path[PATH_MAX];

	for (; wanted[index]; index++) {
		assert_int_equal(debug_place_path(&need, program, debug, index, path, sizeof(path)), 0);
		assert_string_equal(path, wanted[index]);
	}
	assert_int_equal(debug_place_path(&need, program, debug, index, path, sizeof(path)), -ERANGE);
	assert_int_equal(debug_place_path(&need, program, debug, index + 1, path, sizeof(path)), -ERANGE);
}

#define PLACES(need, program, debug, ...) places(need, program, debug, (const char *const[]){ __VA_ARGS__, NULL })

static void test_by_build_id(void **state)
{
	const struct debug_need need = need_of(DEBUG_NEED_BUILD_ID, "abcdef0123456789");

	(void)state;
	PLACES(need, "/bin/a", NULL, "/usr/lib/debug/.build-id/ab/cdef0123456789.debug");
	PLACES(need, "a", NULL, "/usr/lib/debug/.build-id/ab/cdef0123456789.debug"); /* the program may be anywhere */
}

static void test_by_link(void **state)
{
	(void)state;
	PLACES(need_of(DEBUG_NEED_LINK, "a.debug"), "/usr/bin/a", NULL, "/usr/bin/a.debug", "/usr/bin/.debug/a.debug",
	       "/usr/lib/debug/usr/bin/a.debug");
	PLACES(need_of(DEBUG_NEED_LINK, "a.debug"), "/a", NULL, "/a.debug", "/.debug/a.debug", "/usr/lib/debug/a.debug");
}

/* What several debug files have in common: beside the debug file, where that is known. */
static void test_in_common(void **state)
{
	(void)state;
	PLACES(need_of(DEBUG_NEED_COMMON, "x86/a.debug"), "/usr/bin/a", NULL, "/usr/lib/debug/.dwz/x86/a.debug",
	       "/usr/bin/x86/a.debug");
	PLACES(need_of(DEBUG_NEED_COMMON, "a.debug"), "/usr/bin/a", "/srv/debug/b", "/usr/lib/debug/.dwz/a.debug",
	       "/srv/debug/a.debug");
}

static void test_packages(void **state)
{
	(void)state;
	PLACES(need_of(DEBUG_NEED_PACKAGE, ""), "/usr/bin/a", NULL, "/usr/bin/a.dwp");
	PLACES(need_of(DEBUG_NEED_PACKAGE, ""), "/usr/bin/a", "/d/a.debug", "/usr/bin/a.dwp", "/d/a.debug.dwp");
}

/* What a server has is in no place here. */
static void test_served(void **state)
{
	const struct debug_need served = need_of(DEBUG_NEED_SERVED, "abcdef0123456789"),
				common = need_of(DEBUG_NEED_COMMON_SERVED, "abcdef0123456789");
	char path[64];

	(void)state;
	assert_int_equal(debug_place_path(&served, "/bin/a", NULL, 0, path, sizeof(path)), -ERANGE);
	assert_int_equal(debug_place_path(&common, "/bin/a", NULL, 0, path, sizeof(path)), -ERANGE);
}

static void test_paths_that_are_not_absolute(void **state)
{
	const struct debug_need link = need_of(DEBUG_NEED_LINK, "a.debug");
	char path[64];

	(void)state;
	assert_int_equal(debug_place_path(&link, "bin/a", NULL, 0, path, sizeof(path)), -EINVAL);
	assert_int_equal(debug_place_path(&link, "/bin/a", "d/a", 0, path, sizeof(path)), -EINVAL);
	assert_int_equal(debug_place_path(&link, "", NULL, 0, path, sizeof(path)), -EINVAL);
}

/* A path that just fits, with its NUL, and one that does not. */
static void test_room(void **state)
{
	const struct debug_need link = need_of(DEBUG_NEED_LINK, "a.debug");
	char path[64];

	(void)state;
	assert_int_equal(debug_place_path(&link, "/bin/a", NULL, 0, path, strlen("/bin/a.debug") + 1), 0);
	assert_string_equal(path, "/bin/a.debug");
	assert_int_equal(debug_place_path(&link, "/bin/a", NULL, 0, path, strlen("/bin/a.debug")), -ENAMETOOLONG);
}

/* --- opening --- */

static char folder[64];
static int root = -1, program = -1;

static void make_file(const char *name, mode_t mode)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(name, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/hearth-places-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	make_file("program", 0755);
	program = openat(root, "program", O_RDONLY | O_CLOEXEC);
	return root < 0 || program < 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	close(root);
	close(program);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* Opening the file @path ends with @wanted, or gives the file with this @text. */
static void opens(const char *path, int wanted, const char *text)
{
	char read_text[32] = "";
	int fd = debug_place_open(root, path, program, false);

	if (!text) {
		assert_int_equal(fd, wanted);
		return;
	}
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(read(fd, read_text, sizeof(read_text) - 1) > 0);
	assert_string_equal(read_text, text);
	close(fd);
}

/* A path that leads into another mount, as /proc is. */
static void test_one_mount(void **state)
{
	AUTO_CLOSE int all = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(debug_place_open(all, "proc/version", program, true), -EXDEV);
	assert_int_not_equal(debug_place_open(all, "proc/no-such-file", program, false), -EXDEV);
}

static void test_plain_files(void **state)
{
	(void)state;
	make_file("debug", 0644);
	opens("debug", 0, "debug");
	opens("/debug", 0, "debug");
	opens("nothing", -ENOENT, NULL);
	opens("program", -ENOENT, NULL); /* it is no debug file of itself */
	assert_int_equal(linkat(root, "program", root, "again", 0), 0);
	opens("again", -ENOENT, NULL);
}

/* Links lead where they lead below the root. */
static void test_links(void **state)
{
	(void)state;
	make_file("debug", 0644);
	assert_int_equal(symlinkat("/debug", root, "absolute"), 0);
	assert_int_equal(symlinkat("../../../../debug", root, "above"), 0);
	assert_int_equal(symlinkat("/etc/passwd", root, "outside"), 0);
	assert_int_equal(symlinkat("/proc/self/exe", root, "magic"), 0);
	opens("absolute", 0, "debug");
	opens("above", 0, "debug");
	opens("../../debug", 0, "debug");
	opens("outside", -ENOENT, NULL);
	opens("magic", -ENOENT, NULL);
}

static void test_what_is_no_plain_file(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(root, "folder", 0755), 0);
	assert_int_equal(mkfifoat(root, "pipe", 0644), 0);
	opens("folder", -EACCES, NULL);
	opens("pipe", -EACCES, NULL);
	opens(".", -EACCES, NULL);
}

/* The owner of the program must be able to read the file; root reads all. */
static void test_owners(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	make_file("own", 0600);
	make_file("others", 0640);
	make_file("everybodys", 0604);
	assert_int_equal(fchown(program, 1234, 1234), 0);
	assert_int_equal(fchownat(root, "own", 1234, 0, 0), 0);
	opens("own", 0, "own");
	opens("others", -EACCES, NULL);
	opens("everybodys", 0, "everybodys");
	assert_int_equal(fchown(program, 0, 0), 0);
	opens("own", 0, "own");
	opens("others", 0, "others");
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_build_id),
		cmocka_unit_test(test_by_link),
		cmocka_unit_test(test_in_common),
		cmocka_unit_test(test_packages),
		cmocka_unit_test(test_served),
		cmocka_unit_test(test_paths_that_are_not_absolute),
		cmocka_unit_test(test_room),
		PLACE_TEST(test_one_mount),
		PLACE_TEST(test_plain_files),
		PLACE_TEST(test_links),
		PLACE_TEST(test_what_is_no_plain_file),
		PLACE_TEST(test_owners),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
