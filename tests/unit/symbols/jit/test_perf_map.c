/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of perf maps, good and bad; maps that grow, shrink, are written anew, and are too large. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/jit/perf_map.h"
#include "tests/unit/large_files.h"

static const struct {
	const char *line;
	int error;
	uint64_t start, end;
	const char *name;
} lines[] = {
	{ "7f0000001000 20 foo", 0, 0x7f0000001000, 0x7f0000001020, "foo" },
	{ "0x7f0000001000 0x20 foo bar(int, char)", 0, 0x7f0000001000, 0x7f0000001020, "foo bar(int, char)" },
	{ "7F00 aB  Lcom/foo/Bar;::baz\r", 0, 0x7f00, 0x7fab, "Lcom/foo/Bar;::baz" },
	{ "0 1 x", 0, 0, 1, "x" },
	{ "1ffffffffffffff 10 last", 0, 0x1ffffffffffffff, 0x20000000000000f, "last" },
	{ "1000 20 tab\there", 0, 0x1000, 0x1020, "tab\there" },
	{ "1000 20 \xff\xfe", 0, 0x1000, 0x1020, "\xff\xfe" }, /* made UTF-8 when it is kept */
	{ "", -EBADMSG, 0, 0, NULL },
	{ "1000", -EBADMSG, 0, 0, NULL },
	{ "1000 20", -EBADMSG, 0, 0, NULL },
	{ "1000 20 ", -EBADMSG, 0, 0, NULL },
	{ "1000 0 nothing", -EBADMSG, 0, 0, NULL },
	{ "1000 -20 foo", -EBADMSG, 0, 0, NULL },
	{ "g000 20 foo", -EBADMSG, 0, 0, NULL },
	{ "1000 20g foo", -EBADMSG, 0, 0, NULL },
	{ "0x 20 foo", -EBADMSG, 0, 0, NULL },
	{ "10000000000000000 20 foo", -EBADMSG, 0, 0, NULL },  /* 17 digits */
	{ "ffffffff81000000 20 foo", -EBADMSG, 0, 0, NULL },   /* the kernel's */
	{ "1000 ffffffffffffffff foo", -EBADMSG, 0, 0, NULL }, /* would wrap */
	{ "1000 4000001 foo", -EBADMSG, 0, 0, NULL },	       /* larger than any function */
	{ "1000 20 fo\001o", -EBADMSG, 0, 0, NULL },
	{ "\177ELF\002\001\001", -EBADMSG, 0, 0, NULL },
};

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		size_t len = strlen(lines[i].line);
		AUTO_FREE char *copy = malloc(len ? len : 1); /* reading behind it would be seen */
		struct jit_function f;

		memcpy(copy, lines[i].line, len);
		if (perf_map_parse_line(copy, len, &f) != lines[i].error)
			fail_msg("'%s'", lines[i].line);
		if (lines[i].error)
			continue;
		assert_int_equal(f.start, lines[i].start);
		assert_int_equal(f.end, lines[i].end);
		assert_int_equal(f.name_len, strlen(lines[i].name));
		assert_memory_equal(f.name, lines[i].name, f.name_len);
	}
}

struct fixture {
	int fd;
	struct perf_map map;
	struct jit_code *code;
};

static struct fixture open_fixture(void)
{
	struct fixture f = { .fd = memfd_create("map", MFD_CLOEXEC), .code = jit_code_new() };

	assert_true(f.fd >= 0 && f.code);
	return f;
}

static void close_fixture(struct fixture *f)
{
	close(f->fd);
	jit_code_free(f->code);
}

static void put(struct fixture *f, const char *text)
{
	assert_int_equal(write(f->fd, text, strlen(text)), strlen(text));
}

static int read_it(struct fixture *f, uint64_t time_ns)
{
	return perf_map_read(&f->map, f->fd, time_ns, UINT64_MAX, f->code);
}

static void expect(const struct fixture *f, uint64_t addr, uint64_t time_ns, const char *name)
{
	struct jit_answer a;
	int status = jit_code_find(f->code, addr, time_ns, &a);

	if (!name) {
		assert_int_equal(status, -ENOENT);
		return;
	}
	assert_int_equal(status, 0);
	assert_int_equal(a.name_len, strlen(name));
	assert_memory_equal(a.name, name, a.name_len);
}

static void test_growing(void **state)
{
	struct fixture f = open_fixture();

	(void)state;
	assert_int_equal(read_it(&f, 0), 0);
	put(&f, "1000 20 one\n2000 20 tw");
	assert_int_equal(read_it(&f, 10), 0);
	expect(&f, 0x1010, UINT64_MAX, "one");
	expect(&f, 0x2010, UINT64_MAX, NULL); /* half a line is none */
	assert_int_equal(read_it(&f, 20), 0);
	put(&f, "o\n\n1000 10 again\n");
	assert_int_equal(read_it(&f, 30), 0);
	expect(&f, 0x2010, UINT64_MAX, "two");
	expect(&f, 0x100f, UINT64_MAX, "again"); /* the later line wins, where it is */
	expect(&f, 0x1010, UINT64_MAX, "one");
	expect(&f, 0x100f, 29, "one"); /* ... and when */
	assert_int_equal(f.map.lines, 3);
	assert_int_equal(f.map.malformed, 0);
	close_fixture(&f);
}

static void test_written_anew(void **state)
{
	struct fixture f = open_fixture();

	(void)state;
	put(&f, "1000 20 one\n2000 20 two\n");
	assert_int_equal(read_it(&f, 0), 0);
	assert_int_equal(ftruncate(f.fd, 0), 0); /* shorter */
	lseek(f.fd, 0, SEEK_SET);
	put(&f, "3000 20 three\n");
	assert_int_equal(read_it(&f, 0), 0);
	expect(&f, 0x3000, UINT64_MAX, "three");
	assert_int_equal(ftruncate(f.fd, 0), 0); /* longer: seen by what stands before the place we were at */
	lseek(f.fd, 0, SEEK_SET);
	put(&f, "4000 20 four\n5000 20 five\n6000 20 six\n");
	assert_int_equal(read_it(&f, 0), 0);
	expect(&f, 0x4000, UINT64_MAX, "four");
	expect(&f, 0x6000, UINT64_MAX, "six");
	close_fixture(&f);
}

/* A line longer than any: passed over, also across blocks; what follows it counts. */
static void test_junk(void **state)
{
	enum { LONG = 300000 };
	struct fixture f = open_fixture();
	AUTO_FREE char *junk = malloc(LONG + 1);

	(void)state;
	memset(junk, 'a', LONG);
	junk[LONG] = '\0';
	put(&f, "1000 20 one\n2000 20 ");
	put(&f, junk);
	assert_int_equal(read_it(&f, 0), 0);
	put(&f, junk);
	put(&f, "\n\001\002\n3000 20 three\n");
	assert_int_equal(read_it(&f, 0), 0);
	expect(&f, 0x1000, UINT64_MAX, "one");
	expect(&f, 0x2000, UINT64_MAX, NULL);
	expect(&f, 0x3000, UINT64_MAX, "three");
	assert_int_equal(f.map.lines, 4);
	assert_int_equal(f.map.malformed, 2);
	close_fixture(&f);
}

/* In pieces of bounded size; and no further than the limit, even where there is only a hole. */
static void test_large(void **state)
{
	enum { LINES = 100000 };
	struct fixture f = open_fixture();
	AUTO_FCLOSE FILE *out = fdopen(dup(f.fd), "w");
	int reads = 1, status;

	(void)state;
	for (unsigned i = 0; i < LINES; i++)
		fprintf(out, "%x 10 function_%u\n", 0x10000 + i * 16, i);
	fflush(out);
	while ((status = perf_map_read(&f.map, f.fd, 0, 200000, f.code)) == 1)
		reads++;
	assert_int_equal(status, 0);
	assert_true(reads >= 8 && reads < 20);
	assert_int_equal(f.map.lines, LINES);
	expect(&f, 0x10000 + 16 * (LINES - 1) + 15, UINT64_MAX, "function_99999");
	allow_large_files();
	assert_int_equal(ftruncate(f.fd, 1ll << 40), 0);
	assert_int_equal(read_it(&f, 0), -EFBIG);
	assert_int_equal(read_it(&f, 0), -EFBIG);
	assert_true(f.map.offset < PERF_MAP_MAX_BYTES + (1 << 20));
	close_fixture(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_growing), cmocka_unit_test(test_written_anew),
		cmocka_unit_test(test_junk),  cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
