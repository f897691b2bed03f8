/* SPDX-License-Identifier: Apache-2.0 */
/* A file in /tmp with tokens, a test's own; included after cmocka. */
#ifndef HEARTH_TESTS_TOKEN_FILE_H
#define HEARTH_TESTS_TOKEN_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/hearth-token-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

#endif
