/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files found in this process, over programs that gcc, objcopy, strip and dwz make: in every place below a root, by
 * build id, by link and checksum; others of the same name are not believed, and no link leads out of the root.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "symbols/find/symbol_files.h"

#define BUILD_ID "feedc0de00000001"

static char folder[] = "/tmp/test_symbol_files.XXXXXX";

/* In the folder; "root" there is the root in which programs live in /bin. */
static int try_run(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	return system(line);
}

static void run(const char *command)
{
	assert_int_equal(try_run(command), 0);
}

static void open_program(const char *name, struct symbol_files *ret)
{
	char root[128], path[256];
	AUTO_CLOSE int fd = -1;

	snprintf(root, sizeof(root), "%s/root", folder);
	snprintf(path, sizeof(path), "%s/bin/%s", root, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(symbol_files_open(fd, path + strlen(root), root, NULL, ret), 0);
	assert_non_null(ret->program.data);
}

/* Is @image what the file @name holds? NULL: is there none? */
static void assert_is(const struct symbol_image *image, const char *name)
{
	AUTO_FREE uint8_t *bytes = malloc(image->len_bytes + 1);
	AUTO_CLOSE int fd = -1;
	char path[256];

	assert_non_null(bytes);
	if (!name) {
		assert_null(image->data);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_non_null(image->data);
	assert_int_equal(read(fd, bytes, image->len_bytes + 1), image->len_bytes);
	assert_memory_equal(image->data, bytes, image->len_bytes);
}

/* With the file @from at @place (NULL: nowhere) of the root, @program's debug file is @debug. */
static void check_debug(const char *program, const char *place, const char *from, const char *debug)
{
	struct symbol_files files;
	char command[512];

	if (place) {
		snprintf(command, sizeof(command), "mkdir -p $(dirname root/%s) && cp %s root/%s", place, from, place);
		run(command);
	}
	open_program(program, &files);
	assert_is(&files.debug, debug);
	assert_is(&files.common, NULL);
	symbol_files_close(&files);
	if (place) {
		snprintf(command, sizeof(command), "rm root/%s", place);
		run(command);
	}
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	run("mkdir -p root/bin && echo 'struct one { int a, b; }; int main(int c, char **v) { struct one o = { c, 1 }; "
	    "(void)v; "
	    "return o.a; }' >a.c && gcc -g -Wl,--build-id=0x" BUILD_ID
	    " -o whole a.c && objcopy --only-keep-debug whole debug");
	run("strip -o root/bin/stripped whole && cp debug linked.debug && cp whole root/bin/whole && "
	    "objcopy --add-gnu-debuglink=linked.debug root/bin/stripped root/bin/linked");
	run("gcc -g -Wl,--build-id=none -o no_id a.c && objcopy --only-keep-debug no_id no_id.debug && "
	    "objcopy --strip-all --add-gnu-debuglink=no_id.debug no_id root/bin/link_only");
	run("cp no_id.debug wrong && printf x >>wrong && "
	    "gcc -g -Wl,--build-id=0xfeedc0de00000002 -o other a.c && objcopy --only-keep-debug other other.debug");
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	run("rm -r \"$PWD\"");
	return 0;
}

static void test_build_id(void **state)
{
	static const char place[] = "usr/lib/debug/.build-id/fe/edc0de00000001.debug";

	(void)state;
	check_debug("stripped", NULL, NULL, NULL);
	check_debug("stripped", place, "debug", "debug");
	check_debug("stripped", place, "other.debug", NULL);
	check_debug("stripped", place, "a.c", NULL);
	check_debug("stripped", place, "/dev/null", NULL);
	check_debug("whole", place, "debug", NULL); /* needs none */
	check_debug("linked", place, "debug", "debug");
}

static void test_link(void **state)
{
	static const char *const places[] = { "bin/no_id.debug", "bin/.debug/no_id.debug", "usr/lib/debug/bin/no_id.debug" };

	(void)state;
	check_debug("link_only", NULL, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		check_debug("link_only", places[i], "no_id.debug", "no_id.debug");
		check_debug("link_only", places[i], "wrong", NULL);
	}
	check_debug("linked", "bin/linked.debug", "debug", "debug");
	check_debug("linked", "bin/linked.debug", "other.debug", NULL);
	/* one that does not fit does not hide the next */
	run("cp wrong root/bin/no_id.debug");
	check_debug("link_only", "usr/lib/debug/bin/no_id.debug", "no_id.debug", "no_id.debug");
	run("rm root/bin/no_id.debug");
}

/* A link is followed inside the root alone. */
static void test_root(void **state)
{
	AUTO_CLOSE int root_fd = -1, program_fd = -1;
	struct symbol_files files;

	(void)state;
	run("ln -s \"$PWD\"/no_id.debug root/bin/no_id.debug");
	open_program("link_only", &files);
	assert_is(&files.debug, NULL);
	symbol_files_close(&files);
	run("ln -sf /no_id.debug root/bin/ && cp no_id.debug root/");
	open_program("link_only", &files);
	assert_is(&files.debug, "no_id.debug");
	symbol_files_close(&files);
	run("rm root/bin/no_id.debug root/no_id.debug && mkfifo root/bin/no_id.debug");
	open_program("link_only", &files);
	assert_is(&files.debug, NULL);
	symbol_files_close(&files);
	root_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(debug_place_open(root_fd, "root/bin/no_id.debug", program_fd, false), -EACCES);
	run("rm root/bin/no_id.debug");
}

static void test_package(void **state)
{
	struct symbol_files files;

	(void)state;
	run("gcc -g -gdwarf-5 -gsplit-dwarf -Wl,--build-id=0x" BUILD_ID
	    " -o root/bin/split a.c && cp a.c root/bin/split.dwp");
	open_program("split", &files);
	assert_is(&files.debug, NULL);
	assert_is(&files.package, "a.c"); /* its reader will tell */
	symbol_files_close(&files);
	run("objcopy --only-keep-debug root/bin/split split.debug && strip root/bin/split && mv root/bin/split.dwp . && "
	    "mkdir -p root/usr/lib/debug/.build-id/fe && cp split.debug "
	    "root/usr/lib/debug/.build-id/fe/edc0de00000001.debug && "
	    "cp a.c root/usr/lib/debug/.build-id/fe/edc0de00000001.debug.dwp");
	open_program("split", &files);
	assert_is(&files.debug, "split.debug");
	assert_is(&files.package, "a.c");
	symbol_files_close(&files);
	run("rm -r root/usr");
	run("cp a.c root/bin/whole.dwp"); /* not asked for */
	open_program("whole", &files);
	assert_is(&files.package, NULL);
	symbol_files_close(&files);
}

static void test_common(void **state)
{
	static const char *const places[] = { "root/usr/lib/debug/.dwz", "root/usr/lib/debug/.build-id/fe" };
	struct symbol_files files;

	(void)state;
	if (system("command -v dwz >/dev/null"))
		skip();
	run("cp debug one && cp other.debug two && dwz -m common -M /usr/lib/debug/.dwz/common one two");
	run("mkdir -p root/usr/lib/debug/.build-id/fe && cp one root/usr/lib/debug/.build-id/fe/edc0de00000001.debug");
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char command[256];

		open_program("stripped", &files);
		assert_is(&files.debug, "one");
		assert_is(&files.common, NULL);
		symbol_files_close(&files);
		snprintf(command, sizeof(command), "mkdir -p %s && cp common %s", places[i], places[i]);
		run(command);
		open_program("stripped", &files);
		assert_is(&files.common, "common");
		symbol_files_close(&files);
		snprintf(command, sizeof(command), "cp two %s/common", places[i]); /* another build id */
		run(command);
		open_program("stripped", &files);
		assert_is(&files.common, NULL);
		symbol_files_close(&files);
		snprintf(command, sizeof(command), "rm %s/common", places[i]);
		run(command);
	}
	run("rm -r root/usr");
}

static void test_sound_needs(void **state)
{
	static const struct {
		struct debug_need need;
		bool is_sound;
	} cases[] = {
		{ { DEBUG_NEED_BUILD_ID, "abcdef" }, true }, { { DEBUG_NEED_BUILD_ID, "../../etc" }, false },
		{ { DEBUG_NEED_BUILD_ID, "ab" }, false },    { { DEBUG_NEED_BUILD_ID, "ABCDEF" }, false },
		{ { DEBUG_NEED_LINK, "a.debug" }, true },    { { DEBUG_NEED_LINK, "a/b" }, false },
		{ { DEBUG_NEED_LINK, ".." }, false },	     { { DEBUG_NEED_LINK, "" }, false },
		{ { DEBUG_NEED_LINK, "..." }, true },	     { { DEBUG_NEED_COMMON, "x86_64-linux-gnu/a.debug" }, true },
		{ { DEBUG_NEED_COMMON, "a/../b" }, false },  { { DEBUG_NEED_COMMON, "/a" }, false },
		{ { DEBUG_NEED_COMMON, "a/" }, false },	     { { DEBUG_NEED_COMMON, "" }, false },
		{ { DEBUG_NEED_PACKAGE, "" }, true },	     { { DEBUG_NEED_PACKAGE, "a" }, false },
		{ { DEBUG_NEED_MAX, "a" }, false },
	};
	struct debug_need endless = { .kind = DEBUG_NEED_LINK };
	char path[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(debug_need_is_sound(&cases[i].need), cases[i].is_sound);
		assert_int_equal(debug_place_path(&cases[i].need, "/bin/a", NULL, 0, path, sizeof(path)),
				 cases[i].is_sound ? 0 : -EINVAL);
	}
	memset(endless.name, 'a', sizeof(endless.name));
	assert_false(debug_need_is_sound(&endless));
	assert_int_equal(debug_place_path(&cases[4].need, "bin/a", NULL, 0, path, sizeof(path)), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_id), cmocka_unit_test(test_link),	cmocka_unit_test(test_root),
		cmocka_unit_test(test_package),	 cmocka_unit_test(test_common), cmocka_unit_test(test_sound_needs),
	};

	return cmocka_run_group_tests(tests, make, destroy);
}
