/* SPDX-License-Identifier: Apache-2.0 */
/* jitdumps: every kind of record, dumps that grow, other clocks, V8's line tables, and broken ones of every kind. */
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
#include "symbols/jit/jitdump.h"
#include "tests/unit/symbols/jitdump_bytes.h"

enum { NOW = 2000000000, PID = 42, MACHINE = 62 };

static const uint8_t some_code[4096];

struct fixture {
	int fd;
	FILE *out;
	struct jitdump dump;
	struct jit_code *code;
};

static struct fixture open_fixture(void)
{
	struct fixture f = { .fd = memfd_create("dump", MFD_CLOEXEC), .code = jit_code_new() };

	f.out = fdopen(dup(f.fd), "w");
	assert_true(f.fd >= 0 && f.code && f.out);
	return f;
}

static void close_fixture(struct fixture *f)
{
	fclose(f->out);
	close(f->fd);
	jitdump_fini(&f->dump);
	jit_code_free(f->code);
}

static int read_it(struct fixture *f)
{
	fflush(f->out);
	return jitdump_read(&f->dump, f->fd, NOW, UINT64_MAX, f->code);
}

static void load(struct fixture *f, uint64_t time_ns, uint64_t addr, size_t size, const char *name)
{
	jitdump_load(f->out, PID, time_ns, addr, some_code, size, 0, name);
}

static void expect(const struct fixture *f, uint64_t addr, uint64_t time_ns, const char *name, uint32_t line,
		   const char *file)
{
	struct jit_answer a;
	int status = jit_code_find(f->code, addr, time_ns, &a);

	if (!name) {
		assert_int_equal(status, -ENOENT);
		return;
	}
	assert_int_equal(status, 0);
	if (a.name_len != strlen(name) || memcmp(a.name, name, a.name_len))
		fail_msg("%.*s, not %s", (int)a.name_len, a.name, name);
	assert_int_equal(a.line, line);
	assert_int_equal(a.file_len, strlen(file));
	assert_memory_equal(a.file, file, a.file_len);
}

static void test_records(void **state)
{
	static const struct jitdump_line lines[] = {
		{ 0x1000, 7, "/src/a.c" }, { 0x1008, 8, "\xff" }, { 0x1010, 90, "b.h" }, { 0x1020, 9, "/src/a.c" }
	};
	struct fixture f = open_fixture();

	(void)state;
	assert_int_equal(read_it(&f), 0); /* nothing there yet */
	jitdump_header(f.out, MACHINE, PID, 1, 0);
	jitdump_lines(f.out, 100, 0x1000, lines, ARRAY_LEN(lines));
	load(&f, 100, 0x1000, 0x40, "one");
	jitdump_prefix(f.out, 4, 24 + 100, 100); /* unwind tables */
	fwrite(some_code, 124, 1, f.out);
	load(&f, 200, 0x2000, 0x40, "two");
	load(&f, 300, 0x1000, 0x20, "three"); /* over the first half of "one" */
	jitdump_move(f.out, PID, 400, 0x2000, 0x5000, 0x40, 1);
	jitdump_prefix(f.out, 77, 8, 400); /* of some later version */
	jitdump_u64(f.out, 0);
	jitdump_close(f.out, 500);
	assert_int_equal(read_it(&f), 0);
	expect(&f, 0x1000, 150, "one", 7, "/src/a.c");
	expect(&f, 0x100f, 150, "one", 8, "/src/a.c");
	expect(&f, 0x1010, 299, "one", 90, "b.h");
	expect(&f, 0x103f, UINT64_MAX, "one", 9, "/src/a.c");
	expect(&f, 0x1010, 300, "three", 0, "");
	expect(&f, 0x2010, UINT64_MAX, "two", 0, "");
	expect(&f, 0x503f, 400, "two", 0, "");
	expect(&f, 0x5040, 400, NULL, 0, NULL);
	assert_int_equal(f.dump.records, 8);
	assert_int_equal(f.dump.malformed, 0);
	close_fixture(&f);
}

/* What an earlier process of this pid wrote is not its own; a child may have its parent's dump. */
static void test_older(void **state)
{
	static const struct {
		uint32_t own_pid;
		uint64_t flags, older;
	} cases[] = { { PID, 0, 2 }, { PID + 1, 0, 0 }, { PID, 1 /* another clock */, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f = open_fixture();

		f.dump.own_pid = cases[i].own_pid;
		f.dump.start_ns = 200;
		jitdump_header(f.out, MACHINE, PID, 1, cases[i].flags);
		load(&f, 100, 0x1000, 0x40, "old");
		load(&f, 199, 0x2000, 0x40, "old");
		load(&f, 200, 0x3000, 0x40, "new");
		assert_int_equal(read_it(&f), 0);
		assert_int_equal(f.dump.older, cases[i].older);
		expect(&f, 0x1000, UINT64_MAX, cases[i].older ? NULL : "old", 0, "");
		expect(&f, 0x3000, UINT64_MAX, "new", 0, "");
		close_fixture(&f);
	}
}

/* Byte by byte: at every length the reader takes exactly the whole records. */
static void test_growing(void **state)
{
	struct fixture whole = open_fixture(), f = open_fixture();
	uint8_t bytes[4096];
	ssize_t len;

	(void)state;
	jitdump_header(whole.out, MACHINE, PID, 1, 0);
	load(&whole, 100, 0x1000, 0x40, "one");
	load(&whole, 200, 0x1000, 0x40, "two");
	fflush(whole.out);
	len = pread(whole.fd, bytes, sizeof(bytes), 0);
	for (ssize_t i = 0; i < len; i++) {
		assert_int_equal(write(f.fd, bytes + i, 1), 1);
		assert_int_equal(read_it(&f), 0);
		assert_int_equal(f.dump.records, i + 1 == len ? 2 : i + 1 >= 40 + (len - 40) / 2);
	}
	expect(&f, 0x1000, UINT64_MAX, "two", 0, "");
	close_fixture(&f);
	close_fixture(&whole);
}

/* Clocks other than CLOCK_MONOTONIC: the later record wins at once. */
static void test_clocks(void **state)
{
	(void)state;
	for (int by_flag = 0; by_flag < 2; by_flag++) {
		struct fixture f = open_fixture();

		jitdump_header(f.out, MACHINE, PID, 1, by_flag);
		load(&f, by_flag ? 100 : NOW * 1000ull, 0x1000, 0x40, "one");
		load(&f, by_flag ? 200 : NOW * 1000ull + 1, 0x1000, 0x40, "two");
		assert_int_equal(read_it(&f), 0);
		expect(&f, 0x1000, 1, "two", 0, "");
		assert_false(jit_code_has_replaced(f.code));
		close_fixture(&f);
	}
}

/* V8 moves its addresses by 64 bytes, counts unoptimized code in bytecode, and writes nonsense for some files' names. */
static void test_v8(void **state)
{
	static const struct jitdump_line good[] = { { 0x1040, 3, "/a.js" }, { 0x1060, 4, "/a.js" } };
	static const struct jitdump_line bad[] = { { 0x2040, 3, "\xbc\xe6\x01" }, { 0x2060, 4, "/a.js" } };
	static const struct jitdump_line bytecode[] = { { 0x3040, 3, "/a.js" }, { 0x3060, 4, "/a.js" } };
	struct fixture f = open_fixture();

	(void)state;
	jitdump_header(f.out, MACHINE, PID, 1, 0);
	jitdump_lines(f.out, 1, 0x1000, good, 2);
	load(&f, 1, 0x1000, 0x40, "JS:*fast /a.js:2:1");
	jitdump_lines(f.out, 1, 0x2000, bad, 2);
	load(&f, 1, 0x2000, 0x40, "JS:*broken /a.js:2:1");
	jitdump_lines(f.out, 1, 0x3000, bytecode, 2);
	load(&f, 1, 0x3000, 0x40, "JS:^slow /a.js:2:1");
	assert_int_equal(read_it(&f), 0);
	expect(&f, 0x1000, 1, "JS:*fast /a.js:2:1", 3, "/a.js");
	expect(&f, 0x1021, 1, "JS:*fast /a.js:2:1", 4, "/a.js");
	expect(&f, 0x2021, 1, "JS:*broken /a.js:2:1", 0, "");
	expect(&f, 0x3021, 1, "JS:^slow /a.js:2:1", 0, "");
	assert_int_equal(f.dump.malformed, 1);
	close_fixture(&f);
}

static void test_bad_headers(void **state)
{
	static const struct {
		uint32_t fields[4];
		int error;
	} headers[] = {
		{ { 0x4A695444, 1, 40, MACHINE }, 0 },
		{ { 0x4A695444, 2, 40, MACHINE }, -EPROTONOSUPPORT },
		{ { 0x4454694A, 1, 40, MACHINE }, -EPROTONOSUPPORT }, /* the other byte order */
		{ { 0x464c457f, 1, 40, MACHINE }, -EBADMSG },
		{ { 0x4A695444, 1, 39, MACHINE }, -EBADMSG },
		{ { 0x4A695444, 1, UINT32_MAX, MACHINE }, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		struct fixture f = open_fixture();

		fwrite(headers[i].fields, sizeof(headers[i].fields), 1, f.out);
		fwrite(some_code, 24, 1, f.out);
		assert_int_equal(read_it(&f), headers[i].error);
		close_fixture(&f);
	}
}

/* Each breaks one record; the good one behind it is read all the same. */
static void test_bad_records(void **state)
{
	enum { KINDS = 12 };
	static const struct jitdump_line outside[] = { { 0x900, 3, "a" } },
					 backwards[] = { { 0x1008, 3, "a" }, { 0x1004, 3, "a" } },
					 nameless[] = { { 0x1000, 3, "" } }, first[] = { { 0x1000, 3, "\xff" } };

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		struct fixture f = open_fixture();

		jitdump_header(f.out, MACHINE, PID, 1, 0);
		if (kind == 0)
			jitdump_prefix(f.out, 0, 0, 1); /* without a body */
		else if (kind == 1)
			load(&f, 1, 0x1000, 0, "no size");
		else if (kind == 2)
			load(&f, 1, UINT64_MAX, 8, "wraps");
		else if (kind == 3)
			load(&f, 1, 0x1000, 8, "");
		else if (kind == 4)
			jitdump_move(f.out, PID, 1, 0x7000, 0x8000, 8, 1); /* of what is not known */
		else if (kind == 5)
			jitdump_prefix(f.out, 2, 0, 1);
		else if (kind == 6)
			jitdump_lines(f.out, 1, 0x2000, outside, 1);
		else if (kind == 7)
			jitdump_lines(f.out, 1, 0x2000, backwards, 2);
		else if (kind == 8)
			jitdump_lines(f.out, 1, 0x2000, nameless, 1);
		else if (kind == 9)
			jitdump_lines(f.out, 1, 0x2000, first, 1);
		else if (kind == 10) { /* more entries than bytes */
			jitdump_prefix(f.out, 2, 16, 1);
			jitdump_u64(f.out, 0x2000);
			jitdump_u64(f.out, UINT64_MAX);
		} else if (kind == 11) { /* a name that takes the room of the second entry */
			jitdump_prefix(f.out, 2, 16 + 16 + 20, 1);
			jitdump_u64(f.out, 0x2000);
			jitdump_u64(f.out, 2);
			jitdump_u64(f.out, 0x2000);
			jitdump_u32(f.out, 3);
			jitdump_u32(f.out, 0);
			fwrite("a name of 19 bytes!", 20, 1, f.out);
		}
		load(&f, 1, 0x2000, 0x40, "good");
		assert_int_equal(read_it(&f), 0);
		expect(&f, 0x2010, 1, "good", 0, "");
		if (f.dump.malformed != 1)
			fail_msg("kind %d: %d malformed", kind, (int)f.dump.malformed);
		close_fixture(&f);
	}
}

/* What cannot be passed over, what is longer than the file, a name that never ends, a line table too large. */
static void test_ends(void **state)
{
	struct fixture f = open_fixture();
	AUTO_FREE char *name = malloc(100001);

	(void)state;
	memset(name, 'n', 100000);
	name[100000] = '\0';
	jitdump_header(f.out, MACHINE, PID, 1, 0);
	load(&f, 1, 0x1000, 0x40, name);
	jitdump_prefix(f.out, 2, JITDUMP_MAX_LINES_BYTES + 1, 1);
	fflush(f.out);
	assert_int_equal(ftruncate(f.fd, lseek(f.fd, 0, SEEK_END) + JITDUMP_MAX_LINES_BYTES + 1), 0);
	fseek(f.out, 0, SEEK_END);
	load(&f, 1, 0x2000, 0x40, "good");
	jitdump_prefix(f.out, 0, 1 << 20, 1);
	assert_int_equal(read_it(&f), 0); /* waits for the rest */
	assert_int_equal(f.dump.records, 3);
	assert_int_equal(f.dump.malformed, 1);
	name[JIT_CODE_MAX_NAME_BYTES] = '\0';
	expect(&f, 0x1000, 1, name, 0, "");
	expect(&f, 0x2000, 1, "good", 0, "");
	fseek(f.out, -16, SEEK_END);
	jitdump_u32(f.out, 0);
	jitdump_u32(f.out, 15);
	assert_int_equal(read_it(&f), -EBADMSG);
	close_fixture(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),	    cmocka_unit_test(test_older), cmocka_unit_test(test_growing),
		cmocka_unit_test(test_clocks),	    cmocka_unit_test(test_v8),	  cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_bad_records), cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
