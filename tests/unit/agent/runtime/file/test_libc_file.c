/* SPDX-License-Identifier: Apache-2.0 */
/* Where C libraries keep the values of a thread's keys: musl, and programs that a library is linked into, stripped. This
 * process's own library is looked at in test_runtime_file.c. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"

enum { PATH_BYTES = 512 };

static char folder[] = "/tmp/test_libc_file.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	char command[PATH_BYTES];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Builds, with @compiler (a command), a stripped program that says whether the way that it is told, by the library and the
 * offset, leads to the values of its keys. False where there is no such compiler. */
static bool build(const char *compiler, char *path)
{
	char command[4 * PATH_BYTES];
	FILE *f;

	snprintf(path, PATH_BYTES, "%s/program", folder);
	snprintf(command, sizeof(command), "%s/program.c", folder);
	f = fopen(command, "w");
	assert_non_null(f);
	fputs("#include <pthread.h>\n"
	      "#include <stdio.h>\n"
	      "#include <stdlib.h>\n"
	      "int main(int argc, char **argv)\n"
	      "{\n"
	      "	int musl = argc > 1 && atoi(argv[1]), offset = argc > 2 ? atoi(argv[2]) : 0, same = 0;\n"
	      "	for (int i = 0; i < 40; i++) {\n"
	      "		pthread_key_t key;\n"
	      "		char **values;\n"
	      "		pthread_key_create(&key, 0);\n"
	      "		pthread_setspecific(key, &key);\n"
	      "		values = (char **)((char *)__builtin_thread_pointer() + offset);\n"
	      "		same += pthread_getspecific(key) == &key &&\n"
	      "			(musl ? ((void **)*values)[key] : *(void **)(values[key / 32] + key % 32 * 16 + 8)) == "
	      "&key;\n"
	      "	}\n"
	      "	puts(same == 40 ? \"same\" : \"other\");\n"
	      "}\n",
	      f);
	fclose(f);
	snprintf(command, sizeof(command), "%s -O2 -s -static -o %s %s.c 2>%s/error", compiler, path, path, folder);
	return !system(command);
}

static void check_static(const char *compiler, uint16_t libc)
{
	char path[PATH_BYTES], command[2 * PATH_BYTES], line[16] = "";
	struct thread_locator way = { .place = THREAD_KEY, .addr = 0x1234 };
	struct symbol_image image = { 0 };
	AUTO_CLOSE int fd = -1;
	struct elf_image im;
	FILE *f;

	if (!build(compiler, path)) {
		print_message("%s cannot link a static program here\n", compiler);
		skip();
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && !symbol_image_map(fd, &image));
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	libc_static_read(&im, &way);
	assert_true(way.place == THREAD_KEY && way.addr == 0x1234 && way.libc == libc && way.offset);
	snprintf(command, sizeof(command), "%s %d %d", path, libc == THREAD_MUSL, way.offset);
	f = popen(command, "r");
	assert_true(f && fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	assert_string_equal(line, "same\n");
	symbol_image_unmap(&image);
}

static void test_static_musl(void **state)
{
	(void)state;
	check_static("musl-gcc", THREAD_MUSL);
}

static void test_static_glibc(void **state)
{
	(void)state;
#ifndef __x86_64__
	skip(); /* the offset there depends on the version */
#endif
	check_static("cc", THREAD_GLIBC);
}

static void test_musl(void **state)
{
	static const char path[] = "/lib/ld-musl-x86_64.so.1";
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_image image = { 0 };
	struct runtime_file found = { 0 };
	struct thread_locator way = { 0 };
	struct elf_image im;

	(void)state;
	if (fd < 0) {
		print_message("%s is missing\n", path);
		skip();
	}
	assert_int_equal(symbol_image_map(fd, &image), 0);
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	runtime_file_read(&im, &found);
	assert_int_equal(found.kind, RUNTIME_FILE_LIBC);
	assert_int_equal(found.state.thread.place, THREAD_KEY);
	assert_int_equal(found.state.thread.libc, THREAD_MUSL);
	assert_int_equal(found.state.thread.offset, 128);
	libc_static_read(&im, &way); /* nobody asks that of a library */
	symbol_image_unmap(&image);
}

/* A program that needs a library has none of its own. */
static void test_dynamic(void **state)
{
	AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct thread_locator way = { .place = THREAD_KEY };
	struct symbol_image image = { 0 };
	struct elf_image im;

	(void)state;
	assert_true(fd >= 0 && !symbol_image_map(fd, &image));
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	libc_static_read(&im, &way);
	assert_true(!way.offset && !way.libc);
	symbol_image_unmap(&image);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_static_musl),
		cmocka_unit_test(test_static_glibc),
		cmocka_unit_test(test_musl),
		cmocka_unit_test(test_dynamic),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
