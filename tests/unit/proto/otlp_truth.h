/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that otlp_truth.py makes, over Google's protobuf, and its judgement. They lie in a folder of the test's own. */
#ifndef HEARTH_TESTS_OTLP_TRUTH_H
#define HEARTH_TESTS_OTLP_TRUTH_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"

static char truth_folder[] = "/tmp/hearth-truth-XXXXXX";

static int truth(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* 0 when otlp_truth.py @fmt... is content; says why on stderr when not. */
static int truth(const char *fmt, ...)
{
	AUTO_FREE char *args = NULL, *command = NULL;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&args, fmt, ap) > 0);
	va_end(ap);
	assert_true(asprintf(&command, "PATH=/usr/bin:$PATH python3 -B %s/unit/proto/otlp_truth.py %s", TEST_DATA, args) >
		    0);
	return system(command);
}

/* For the end of a group of tests. */
static int truth_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", truth_folder);
	return system(command);
}

static struct buf truth_read(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The file of the folder that is called @fmt...; the caller's. */
static struct buf truth_read(const char *fmt, ...)
{
	AUTO_FREE char *name = NULL, *path = NULL;
	struct buf b = BUF_EMPTY;
	va_list ap;
	FILE *f;
	size_t n;

	va_start(ap, fmt);
	assert_true(vasprintf(&name, fmt, ap) > 0);
	va_end(ap);
	assert_true(asprintf(&path, "%s/%s", truth_folder, name) > 0);
	f = fopen(path, "rb");
	assert_non_null(f);
	do {
		assert_int_equal(buf_reserve(&b, 65536), 0);
		n = fread(b.data + b.len, 1, 65536, f);
		b.len += n;
	} while (n);
	fclose(f);
	return b;
}

#endif
