/* SPDX-License-Identifier: Apache-2.0 */
/* perf's data by way of a `perf` that is a script of this test: what it prints is taken, how it fails is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/files/perf_data.h"
#include "tests/unit/descriptors.h"

static char folder[64], perf[96];

static int setup(void **state)
{
	char path[128];

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/hearth-perf-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(perf, sizeof(perf), "%s/perf", folder);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", folder);
	return setenv("PATH", path, 1);
}

static int teardown(void **state)
{
	(void)state;
	unlink(perf);
	return rmdir(folder);
}

static void write_perf(const char *script)
{
	FILE *f;

	unlink(perf);
	f = fopen(perf, "we");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(perf, 0755), 0);
}

static void test_read(void **state)
{
	static const struct {
		const char *script, *out, *error;
		int err;
	} cases[] = {
		{ "echo \"$*\"; cat", "script -i some.data -F +pid --ns\n", "", 0 }, /* its standard input is empty */
		{ "echo noise >&2; printf 'a\\nb'", "a\nb", "", 0 },
		{ "exit 0", "", "", 0 },
		{ "echo part; echo first >&2; printf 'last line\\n\\n \\n' >&2; exit 3", "part\n",
		  "perf script cannot read some.data: last line", -EBADMSG },
		{ "printf 'only one' >&2; exit 1", "", "perf script cannot read some.data: only one", -EBADMSG },
		{ "exit 1", "", "perf script cannot read some.data: ", -EBADMSG },
		{ "kill -KILL $$", "", "perf script cannot read some.data: ", -EBADMSG },
	};
	const int open_files = open_descriptors();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

		write_perf(cases[i].script);
		assert_int_equal(perf_data_read("some.data", &out, &error), cases[i].err);
		assert_string_equal(out.len ? buf_text(&out) : "", cases[i].out);
		assert_string_equal(error.len ? buf_text(&error) : "", cases[i].error);
	}
	assert_int_equal(open_descriptors(), open_files);
}

/* More than a pipe holds, and more than one read takes. */
static void test_much(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;

	(void)state;
	write_perf("head -c 3000000 /dev/zero; printf end");
	assert_int_equal(perf_data_read("some.data", &out, &error), 0);
	assert_int_equal(out.len, 3000003);
	assert_memory_equal(out.data + 3000000, "end", 3);
}

static void test_no_perf(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY, error = BUF_EMPTY;
	const int open_files = open_descriptors();

	(void)state;
	unlink(perf);
	setenv("PATH", folder, 1);
	assert_int_equal(perf_data_read("some.data", &out, &error), -ENOENT);
	assert_non_null(strstr(buf_text(&error), "some.data is perf's data"));
	assert_non_null(strstr(buf_text(&error), "perf cannot be run: No such file or directory"));
	assert_int_equal(open_descriptors(), open_files);
}

static void test_is(void **state)
{
	static const uint8_t data[] = "PERFILE2";

	(void)state;
	assert_true(perf_data_is(data, 8));
	assert_true(perf_data_is(data, 9));
	assert_false(perf_data_is(data, 7));
	assert_false(perf_data_is((const uint8_t *)"PERFILE1", 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_much, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_perf, setup, teardown),
		cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
