/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files whose threads say what they work on: libraries that the compiler makes here are opened, and the way that their files
 * tell leads to the variable that they have in this very thread. A Go program, where there is a Go. Damaged copies.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"

enum { COMMAND_BYTES = 1024, TURNED = 2000 };

static char folder[] = "/tmp/hearth-context-XXXXXX";

/* Runs @compile, a command that makes the file $OUT, for the file @name in the folder. */
static bool make(const char *compile, const char *name)
{
	char command[COMMAND_BYTES];

	snprintf(command, sizeof(command), "OUT=%s/%s; { %s; } >/dev/null 2>&1", folder, name, compile);
	return system(command) == 0; /* NOLINT(cert-env33-c): the compiler of the person who tests */
}

static bool read_file(const char *name, struct symbol_image *image, struct runtime_file *ret)
{
	struct elf_image im;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || symbol_image_map(fd, image))
		return false;
	assert_int_equal(elf_image_open(image->data, image->len_bytes, &im), 0);
	runtime_file_read(&im, ret);
	assert_true(runtime_file_is_sound(ret));
	return true;
}

#ifdef __x86_64__
/* Files of which a bit is another, or that end early, lead nowhere else than to nothing. */
static void damage(const struct symbol_image *image)
{
	AUTO_FREE uint8_t *copy = malloc(image->len_bytes);
	struct runtime_file found;
	struct elf_image im;

	assert_non_null(copy);
	srand(1);
	for (int i = 0; i < TURNED; i++) {
		size_t at = (size_t)rand() % image->len_bytes, len = i % 4 ? image->len_bytes : at;

		memcpy(copy, image->data, image->len_bytes);
		copy[at] ^= (uint8_t)(1u << i % 8);
		if (!elf_image_open(copy, len, &im))
			runtime_file_read(&im, &found);
	}
}

static uint64_t word(uint64_t at)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)at, sizeof(value));
	return value;
}

/* What the kernel's half does. */
static uint64_t follow(const struct thread_locator *l, uint64_t bias)
{
	uint64_t tp = (uintptr_t)__builtin_thread_pointer(), index = l->addr + bias;

	if (l->place == THREAD_TLS_SLOT)
		return tp + word(index);
	if (l->place == THREAD_TLS_DESC) {
		index = word(index + 8);
		if ((int64_t)index == (int32_t)index)
			return tp + index;
	}
	return word(word(tp + 8) + word(index) * 16) + word(index + 8);
}

static void check_library(const char *options, uint16_t place)
{
	struct symbol_image image = { 0 };
	char compile[COMMAND_BYTES], path[128];
	struct runtime_file found;
	struct link_map *map;
	void *library;

	snprintf(compile, sizeof(compile), "${CC:-cc} -o $OUT -O2 -fPIC -shared %s " TEST_DATA "/context/context.c",
		 options);
	if (!make(compile, "lib.so")) {
		print_message("no compiler that can do that: %s\n", options);
		skip();
	}
	assert_true(read_file("lib.so", &image, &found));
	assert_int_equal(found.context.runtime, CONTEXT_ID);
	assert_int_equal(found.context.style, CONTEXT_RECORD);
	assert_int_equal(found.context.thread.place, place);
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	((void (*)(int, int, uint64_t))(uintptr_t)dlsym(library, "context_enter"))(3, 1, 7); /* has the thread have it */
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	assert_true(follow(&found.context.thread, map->l_addr) == (uintptr_t)dlsym(library, "otel_thread_ctx_v1"));
	damage(&image);
	dlclose(library);
	symbol_image_unmap(&image);
}

static void test_descriptors(void **state)
{
	(void)state;
	check_library("-mtls-dialect=gnu2", THREAD_TLS_DESC);
}

static void test_general(void **state)
{
	(void)state;
	check_library("-mtls-dialect=gnu", THREAD_TLS_INDEX);
}

static void test_initial(void **state)
{
	(void)state;
	check_library("-ftls-model=initial-exec", THREAD_TLS_SLOT);
}
#endif

/* A program's variable stands at a place that its program header tells: as it says itself. */
static void test_program(void **state)
{
	struct symbol_image image = { 0 };
	struct runtime_file found;

	(void)state;
	if (!make("${CC:-cc} -o $OUT -O2 " TEST_DATA "/context/spans.c " TEST_DATA
		  "/context/context.c -pthread -Wl,--export-dynamic",
		  "program"))
		skip();
	assert_true(read_file("program", &image, &found));
	assert_int_equal(found.context.runtime, CONTEXT_ID);
	assert_int_equal(found.context.thread.place, THREAD_TLS);
#ifdef __x86_64__
	assert_true(found.context.thread.offset < 0 && found.context.thread.offset > -4096);
#endif
	symbol_image_unmap(&image);
}

static void test_go(void **state)
{
	struct symbol_image image = { 0 };
	struct runtime_file found;

	(void)state;
	if (!make("CGO_ENABLED=0 GO111MODULE=off go build -ldflags=-s -o $OUT " TEST_DATA "/context/spans.go", "go")) {
		print_message("no Go here\n");
		skip();
	}
	assert_true(read_file("go", &image, &found));
	assert_int_equal(found.context.runtime, CONTEXT_ID);
	assert_true(found.context.style == CONTEXT_GO_LIST || found.context.style == CONTEXT_GO_MAP);
	assert_true(found.context.offset[CONTEXT_GO_LABELS] >= 256);
	assert_true(found.context.offset[CONTEXT_GO_ID] == 152 || found.context.offset[CONTEXT_GO_ID] == 160);
	assert_int_equal(found.context.offset[CONTEXT_GO_PLACE], 0);
	symbol_image_unmap(&image);
}

/* Most files are nothing of the kind. */
static void test_others(void **state)
{
	static const char *const paths[] = { "/bin/true", "/proc/self/exe" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_CLOSE int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct symbol_image image = { 0 };
		struct runtime_file found;
		struct elf_image im;

		assert_true(fd >= 0 && !symbol_image_map(fd, &image));
		assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
		runtime_file_read(&im, &found);
		assert_int_equal(found.context.runtime, 0);
		symbol_image_unmap(&image);
	}
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command); /* NOLINT(cert-env33-c): of our own folder */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_general), cmocka_unit_test(test_initial),
#endif
		cmocka_unit_test(test_program),	    cmocka_unit_test(test_go),	    cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
