/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder that stands for / to what is included behind this header: a module's .c with the paths it knows (/proc, /sys,
 * /boot). The headers that the module needs of the C library go before it.
 */
#ifndef HEARTH_TESTS_OTHER_ROOT_H
#define HEARTH_TESTS_OTHER_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static char other_root[64];

/* Valid until the next call. */
static inline const char *below_root(const char *path)
{
	static char full[4096];

	snprintf(full, sizeof(full), "%s%s", other_root, path);
	return full;
}

static inline FILE *fopen_below(const char *path, const char *mode)
{
	return fopen(below_root(path), mode);
}

static inline int access_below(const char *path, int mode)
{
	return access(below_root(path), mode);
}

static inline int stat_below(const char *path, struct stat *st)
{
	return stat(below_root(path), st);
}

/* An empty one, in place of the last. */
static inline void other_root_new(void)
{
	char command[128];

	if (other_root[0]) {
		snprintf(command, sizeof(command), "rm -rf %s", other_root);
		assert_int_equal(system(command), 0);
	}
	strcpy(other_root, "/tmp/hearth-root-XXXXXX");
	assert_non_null(mkdtemp(other_root));
}

static inline void other_root_free(void)
{
	other_root_new();
	assert_int_equal(rmdir(other_root), 0);
	other_root[0] = '\0';
}

/* A file with @text, and the folders above it. */
static inline void other_root_file(const char *path, const char *text)
{
	char full[4096];
	FILE *f;

	snprintf(full, sizeof(full), "%s", below_root(path));
	for (char *slash = full + strlen(other_root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

#define fopen(path, mode)		   fopen_below(path, mode)
#define access(path, mode)		   access_below(path, mode)
#define stat(path, st)			   stat_below(path, st)
#define io_read_file(path, max_bytes, out) io_read_file(below_root(path), max_bytes, out)

#endif
