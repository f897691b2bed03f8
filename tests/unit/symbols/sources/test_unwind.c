/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of functions out of .eh_frame against readelf: programs without a symbol have all of them, and nothing has a name.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/index/index.h"

static char folder[] = "/tmp/test_source_unwind.XXXXXX";

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	run("printf 'static __attribute__((noinline)) int f(int n) { return n * 3 %% 7; }\n"
	    "__attribute__((noinline)) int g(int n) { return f(n) + f(n + 1); }\n"
	    "int main(int argc, char **argv) { (void)argv; return g(argc); }\n' >a.c");
	run("gcc -O1 -o whole a.c && strip -o bare whole && gcc -O1 -no-pie -static -o static a.c && strip static");
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command);
}

/* The index of @path with all its sources, and ranges. */
static void make_index(const char *path, bool with_ranges, struct buf *bytes, struct symbol_index **ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_files files = { .with_ranges = with_ranges };

	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	assert_int_equal(symbol_index_build(&files, "ab", bytes), 0);
	symbol_image_unmap(&files.program);
	assert_int_equal(symbol_index_open(bytes->data, bytes->len, ret), 0);
	assert_int_equal(symbol_index_head(*ret)->has_ranges, with_ranges);
}

/* Every function that readelf shows, asked about at its first, middle and last byte: it has a name, or that range. */
static unsigned compare(const char *path, const struct symbol_index *x)
{
	AUTO(buf_fini) struct buf command = BUF_EMPTY;
	unsigned ranges = 0, all = 0;
	char line[512];
	FILE *f;

	buf_printf(&command, "readelf -wF %s", path);
	f = popen(buf_text(&command), "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
		uint64_t start, end;
		struct code_answer a;

		if (!pc || sscanf(pc, "pc=%" SCNx64 "..%" SCNx64, &start, &end) != 2 || end == start)
			continue;
		all++;
		for (int i = 0; i < 3; i++) {
			int r = symbol_index_find(x, i == 2 ? end - 1 : start + (end - start) / 2 * (unsigned)i, &a);

			assert_true(r == 0 || r == -ENOENT);
			if (!r)
				continue;
			assert_int_equal(a.frame_count, 0);
			assert_int_equal(a.start, start);
			assert_int_equal(a.size_bytes, end - start);
			ranges += i == 0;
		}
	}
	pclose(f);
	assert_true(all > 4);
	return ranges;
}

static void test_ranges(void **state)
{
	static const struct {
		const char *path;
		unsigned least;
	} files[] = { { "bare", 3 }, { "static", 500 }, { "whole", 0 }, { "/bin/sh", 50 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO(buf_fini) struct buf bytes = BUF_EMPTY, without = BUF_EMPTY;
		struct symbol_index *x, *y;

		make_index(files[i].path, true, &bytes, &x);
		make_index(files[i].path, false, &without, &y);
		assert_true(compare(files[i].path, x) >= files[i].least);
		assert_int_equal(symbol_index_sizes(x).functions, symbol_index_sizes(y).functions);
		assert_int_equal(symbol_index_head(x)->best, symbol_index_head(y)->best);
		symbol_index_close(x);
		symbol_index_close(y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ranges) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
