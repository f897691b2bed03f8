/* SPDX-License-Identifier: Apache-2.0 */
/* The root row of start code that no table covers: the builder alone, and in files made of a few lines of assembly. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/row_builder.h"
#include "agent/rows/rows.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

/* --- the builder --- */

static const struct {
	const char *name;
	uint64_t entry, gap, start, end;
	uint64_t root_start, root_end; /* equal: there is none */
} cases[] = {
	{ "all of the gap", 0x1010, 0x30, 0x1000, 0x1100, 0x1010, 0x1040 },
	{ "not more than 128 bytes", 0x1010, 0x100, 0x1000, 0x1100, 0x1010, 0x1090 },
	{ "cut at the end", 0x1010, 0x100, 0x1000, 0x1020, 0x1010, 0x1020 },
	{ "cut at the start", 0x1010, 0x100, 0x1020, 0x1100, 0x1020, 0x1090 },
	{ "one byte", 0x1010, 0x100, 0x1010, 0x1011, 0x1010, 0x1011 },
	{ "before", 0x1010, 0x100, 0x1000, 0x1010, 0, 0 },
	{ "behind", 0x1010, 0x30, 0x1040, 0x1100, 0, 0 },
	{ "nothing asked", 0x1010, 0x30, 0x1010, 0x1010, 0, 0 },
};

static void test_builder(void **state)
{
	struct row_image image = { .entry = 0x1000 };
	void *opened;

	(void)state;
	assert_int_equal(rows_entry.open(&image, &opened), -ENODATA); /* covered by another builder */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool has_root = cases[i].root_end > cases[i].root_start;
		struct row row;
		size_t count;

		print_message("%s\n", cases[i].name);
		image.entry = cases[i].entry;
		image.entry_gap = cases[i].gap;
		assert_int_equal(rows_entry.open(&image, &opened), 0);
		assert_int_equal(rows_entry.build(opened, cases[i].start, cases[i].end, &row, 1, &count), 0);
		assert_int_equal(count, has_root);
		if (has_root)
			assert_true(row.cfa == ROW_CFA_ROOT && row.start == cases[i].root_start &&
				    row.end == cases[i].root_end);
		assert_int_equal(rows_entry.build(opened, cases[i].start, cases[i].end, &row, 0, &count),
				 has_root ? -ENOSPC : 0);
		rows_entry.close(opened);
	}
}

/* --- files --- */

/* Links @assembly alone into a program. Returns it, opened; *@entry_ret is where it starts. */
static int link_program(const char *assembly, uint64_t *entry_ret)
{
	char path[] = "/tmp/rows_entry_XXXXXX", command[256];
	Elf64_Ehdr head;
	FILE *gcc;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "gcc -nostdlib -static -o %s -x assembler -", path);
	gcc = popen(command, "w");
	assert_non_null(gcc);
	fputs(assembly, gcc);
	assert_int_equal(pclose(gcc), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	*entry_ret = head.e_entry;
	return fd;
}

#define START	 ".globl _start\n_start:\n.skip 20, 0x90\n"
#define FUNCTION ".cfi_startproc\n.skip 16, 0x90\n.cfi_endproc\n"

/* The first gap is the start code; the code behind the next function is not. */
static void test_gap(void **state)
{
	struct row_source *src;
	uint64_t entry;
	AUTO_CLOSE int fd = link_program(START FUNCTION ".skip 40, 0x90\n", &entry);
	struct row rows[4];
	struct row_regs in = { 0 }, out;
	size_t count;

	(void)state;
	assert_int_equal(row_source_new(fd, &src), 0);
	assert_int_equal(rows_build(src, entry & ~255ull, (entry & ~255ull) + 256, rows, ARRAY_LEN(rows), &count), 0);
	assert_int_equal(count, 2);
	assert_true(rows[0].cfa == ROW_CFA_ROOT && rows[0].start == entry && rows[0].end == entry + 20);
	assert_true(rows[1].cfa == ROW_CFA_REG && rows[1].start == entry + 20 && rows[1].end == entry + 36);
	assert_int_equal(row_eval(src, entry + 19, &in, NULL, NULL, &out), 1);
	assert_int_equal(row_eval(src, entry + 36, &in, NULL, NULL, &out), -ENOENT);
	row_source_free(src);
}

/* Where a table covers the entry point, the uncovered code behind it is something else. */
static void test_covered(void **state)
{
	struct row_source *src;
	uint64_t entry;
	AUTO_CLOSE int fd = link_program(".globl _start\n_start:\n" FUNCTION ".skip 40, 0x90\n", &entry);
	struct row rows[4];
	size_t count;

	(void)state;
	assert_int_equal(row_source_new(fd, &src), 0);
	assert_int_equal(rows_build(src, entry, entry + 40, rows, ARRAY_LEN(rows), &count), 0);
	assert_true(count == 1 && rows[0].cfa == ROW_CFA_REG && rows[0].end == entry + 16);
	row_source_free(src);
}

/* A file without any table, whose code is only guessed at: what it starts with is known. */
static void test_no_tables(void **state)
{
	struct row_source *src;
	uint64_t entry;
	AUTO_CLOSE int fd = link_program(START, &entry);
	struct row row;
	size_t count;

	(void)state;
	assert_int_equal(row_source_new(fd, &src), 0);
	assert_int_equal(rows_build(src, entry, entry + 20, &row, 1, &count), 0);
	assert_true(count == 1 && row.cfa == ROW_CFA_ROOT && !row.is_guess && row.end == entry + 20);
	row_source_free(src);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builder),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_covered),
		cmocka_unit_test(test_no_tables),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
