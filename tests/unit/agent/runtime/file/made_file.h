/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for the readers of runtimes: made by gcc of a text, and read as the helper reads them. For one test each, in its
 * thread.
 */
#ifndef HEARTH_TEST_MADE_FILE_H
#define HEARTH_TEST_MADE_FILE_H

#include <fcntl.h>
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

/* What the readers tell of the file at @path. */
static struct runtime_file read_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_image image = { 0 };
	struct runtime_file ret;
	struct elf_image im;

	assert_true(fd >= 0);
	assert_int_equal(symbol_image_map(fd, &image), 0);
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	memset(&ret, 0xff, sizeof(ret));
	runtime_file_read(&im, &ret);
	symbol_image_unmap(&image);
	return ret;
}

/* Compiles the C text @source to @path with gcc's @options added. False: there is no gcc. */
static inline bool make_file(const char *path, const char *source, const char *options)
{
	char command[512];
	FILE *gcc;

	if (system("gcc --version >/dev/null 2>&1") != 0)
		return false;
	(void)snprintf(command, sizeof(command), "gcc -x c -w -O2 %s -o %s -", options, path);
	gcc = popen(command, "w");
	assert_non_null(gcc);
	assert_int_equal(fwrite(source, 1, strlen(source), gcc), strlen(source));
	assert_int_equal(pclose(gcc), 0);
	return true;
}

/* What runtime_file_read() tells of the C text @source, compiled as make_file() does. Skips the test without gcc. */
static inline struct runtime_file read_source(const char *source, const char *options)
{
	char path[] = "/tmp/made_file.XXXXXX";
	struct runtime_file file = { 0 };
	int fd = mkstemp(path);
	bool is_made;

	assert_true(fd >= 0);
	close(fd);
	is_made = make_file(path, source, options);
	if (is_made)
		file = read_file(path);
	unlink(path);
	if (!is_made)
		skip();
	return file;
}

#endif
