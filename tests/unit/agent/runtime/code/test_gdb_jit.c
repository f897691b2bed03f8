/* SPDX-License-Identifier: Apache-2.0 */
/* Registered code: found, told by its tokens, with rows and names; what nobody registered, and memory that makes no sense.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/agent/runtime/code/fake_gdb_jit.h"
#include "tests/unit/agent/runtime/code/reader_dump.h"

static struct fake fake;
static struct gdb_jit reader;

static struct code_memory memory_of(void)
{
	return (struct code_memory){ .read = fake_read,
				     .arg = &fake,
				     .reads_left = CODE_MAX_READS,
				     .bytes_left = CODE_MAX_BYTES,
				     .end_ns = UINT64_MAX };
}

static int open_reader(void)
{
	struct code_memory m = memory_of();

	memset(&reader, 0, sizeof(reader));
	return code_gdb_jit.open(&reader, &m, &fake.facts, FAKE_BASE);
}

static int make(void **state)
{
	(void)state;
	fake_make(&fake);
	assert_int_equal(open_reader(), 0);
	return 0;
}

/* Without a symbol the variable is found in the data, wherever it is there, once something is registered. */
static void test_look(void **state)
{
	enum { DATA_BYTES = 200 };
	const uint64_t found = FAKE_BASE + FAKE_DESCRIPTOR;
	uint8_t first[8], zero[8] = { 0 };

	(void)state;
	fake.facts.fact[GDB_JIT_FACT_DESCRIPTOR] = 0;
	fake.facts.fact[GDB_JIT_FACT_DATA] = 0;
	fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = DATA_BYTES;
	assert_int_equal(open_reader(), 0);
	assert_int_equal(reader.descriptor, found);
	fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = FAKE_DESCRIPTOR + 23; /* the last byte of it is behind the data */
	assert_int_equal(open_reader(), -EAGAIN);
	fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = FAKE_DESCRIPTOR + 24;
	assert_int_equal(open_reader(), 0);
	fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = 1ull << 40; /* more than a file has */
	assert_int_equal(open_reader(), -ENOTSUP);
	fake.facts.fact[GDB_JIT_FACT_DATA_BYTES] = DATA_BYTES;
	memcpy(first, fake.bytes + FAKE_DESCRIPTOR + 16, sizeof(first));
	fake_copy(&fake, FAKE_BASE + FAKE_DESCRIPTOR + 16, zero, sizeof(zero));
	assert_int_equal(open_reader(), -EAGAIN); /* nothing is registered */
	fake_copy(&fake, FAKE_BASE + FAKE_DESCRIPTOR + 16, first, sizeof(first));
	fake_copy(&fake, FAKE_BASE + FAKE_FILE + 0x1000ul * (FAKE_FILES - 1), zero, 4);
	assert_int_equal(open_reader(), -EAGAIN); /* what it leads to is no ELF file */
	fake_make(&fake);
	assert_int_equal(open_reader(), 0);
}

static struct code_block block_at(uint64_t pc)
{
	struct code_memory m = memory_of();
	struct code_block b = { 0 };

	assert_int_equal(code_gdb_jit.block(&reader, &m, pc, &b), 0);
	assert_true(b.start <= pc && pc < b.end);
	return b;
}

static struct row row_at(uint64_t pc)
{
	struct code_block b = block_at(pc);
	struct code_memory m = memory_of();
	struct row *rows, found = { .cfa = ROW_CFA_NONE };
	size_t count;

	assert_int_equal(code_gdb_jit.rows(&reader, &m, &b, &rows, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (pc >= rows[i].start && pc < rows[i].end)
			found = rows[i];
	free(rows);
	return found;
}

/* The name at @pc; "": there is none. */
static const char *name_at(uint64_t pc)
{
	static char text[2048];
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct block_names *n = block_names_new();
	struct code_block b = block_at(pc);
	struct code_memory m = memory_of();
	struct buf out = BUF_EMPTY;

	text[0] = '\0';
	if (!code_gdb_jit.names(&reader, &m, &b, n) && !block_names_write(n, &out)) {
		assert_true(block_names_are_sound(out.data, out.len));
		if (block_names_find(out.data, out.len, (uint32_t)(pc - b.start), false, lines))
			snprintf(text, sizeof(text), "%.*s", lines[0].name_bytes, lines[0].name);
	}
	buf_fini(&out);
	block_names_free(n);
	return text;
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(name_at(fake_code(0)), "first");
	assert_string_equal(name_at(fake_code(1) + FAKE_CODE_BYTES / 2 - 1), "shop::sell"); /* without Numba's tags */
	assert_string_equal(name_at(fake_code(1) + FAKE_CODE_BYTES / 2), "");
}

static void test_rows(void **state)
{
	struct row row = row_at(fake_code(0));

	(void)state;
	assert_int_equal(row.cfa, ROW_CFA_REG);
	assert_int_equal(row.cfa_off, 8);
	for (int i = 0; i < FAKE_FILES; i++)
		assert_int_equal(row_at(fake_code(i) + 1).cfa_off, 16);
	assert_int_equal(row_at(fake_code(0) + FAKE_CODE_BYTES - 1).cfa, ROW_CFA_NONE); /* no table tells */
}

static void test_ranges(void **state)
{
	struct code_range ranges[CODE_RANGES];
	struct code_memory m = memory_of();

	(void)state;
	assert_int_equal(code_gdb_jit.ranges(&reader, &m, 0, ranges), 1);
	assert_true(ranges[0].start <= fake_code(0) && ranges[0].end >= fake_code(1) + FAKE_CODE_BYTES);
	fake_link(&fake, 0);
	assert_int_equal(code_gdb_jit.ranges(&reader, &m, 0, ranges), 0);
	assert_int_equal(open_reader(), -EAGAIN);
}

/* Others may keep code between what is registered. */
static void test_nobodys(void **state)
{
	uint64_t between = fake_code(0) + FAKE_CODE_BYTES;
	struct code_block b = block_at(between + 8);

	(void)state;
	assert_int_equal(b.start, between);
	assert_int_equal(b.end, fake_code(1));
	assert_int_equal(row_at(between + 8).cfa_reg, REG_FP);
	assert_string_equal(name_at(between + 8), "");
	assert_true(tokens_hold(memory_of(), &b));
	fake_link(&fake, 1);
	assert_false(tokens_hold(memory_of(), &b));
}

/* A piece is one function's code, or what lies behind it. */
static void test_borders(void **state)
{
	const uint64_t code = fake_code(0), end = code + FAKE_CODE_BYTES / 2;
	struct code_block b = block_at(code);

	(void)state;
	assert_true(b.start == code && b.end == end);
	b = block_at(end - 1);
	assert_true(b.start == code && b.end == end);
	b = block_at(end);
	assert_true(b.start == end && b.end == code + FAKE_CODE_BYTES);
	assert_string_equal(name_at(end - 1), "first");
	assert_string_equal(name_at(end), "");
}

static void test_comes_and_goes(void **state)
{
	struct code_block first, second;

	(void)state;
	fake_link(&fake, 1);
	first = block_at(fake_code(0));
	assert_int_equal(block_at(fake_code(1)).kind, GDB_JIT_NONE);
	fake_link(&fake, 2);
	second = block_at(fake_code(1));
	assert_int_equal(second.kind, GDB_JIT_CODE);
	assert_true(tokens_hold(memory_of(), &second));
	fake_link(&fake, 1);
	assert_false(tokens_hold(memory_of(), &second));
	assert_int_equal(block_at(fake_code(1)).kind, GDB_JIT_NONE); /* although it was known */
	first = block_at(fake_code(0));
	assert_int_equal(first.kind, GDB_JIT_CODE);
	assert_true(tokens_hold(memory_of(), &first));
}

/* Another file of the same length at the same place, with another name alone; or with its code elsewhere. */
static void test_another_in_place(void **state)
{
	struct code_block b = block_at(fake_code(1));
	Elf64_Shdr *text;

	(void)state;
	assert_true(tokens_hold(memory_of(), &b));
	fake_file(&fake, 1, "_ZN4shop4sellB2v1B8c9tJTIeFEi");
	assert_true(tokens_hold(memory_of(), &b)); /* the end of the name is the same */
	fake_file(&fake, 1, "_ZN4shop4sellB2v1B8c8tJTIeGEi");
	assert_false(tokens_hold(memory_of(), &b));
	text = (Elf64_Shdr *)(void *)(fake.bytes + FAKE_FILE + 0x1000 + 64) + 1;
	text->sh_addr += 0x1000;
	assert_int_equal(block_at(fake_code(1)).kind, GDB_JIT_NONE);
	assert_int_equal(block_at(fake_code(1) + 0x1000).kind, GDB_JIT_CODE);
}

/* Code that is longer than a block is told in pieces. */
static void test_large(void **state)
{
	Elf64_Shdr *text = (Elf64_Shdr *)(void *)(fake.bytes + FAKE_FILE + 64) + 1;
	struct code_block b;

	(void)state;
	text->sh_size = 8ull * GDB_JIT_BLOCK_BYTES;
	fake_link(&fake, 1);
	b = block_at(fake_code(0));
	assert_true(b.end - b.start <= GDB_JIT_BLOCK_BYTES);
	assert_string_equal(name_at(fake_code(0)), "first");
	assert_true(block_at(fake_code(0) + 5ull * GDB_JIT_BLOCK_BYTES).start > b.start);
}

static void test_nonsense(void **state)
{
	struct code_memory m = memory_of();
	struct code_range ranges[CODE_RANGES];
	struct gdb_jit_entry loop = { fake_entry(1), fake_entry(1), FAKE_BASE + FAKE_FILE, FAKE_FILE_BYTES };

	(void)state;
	fake_copy(&fake, fake_entry(1), &loop, sizeof(loop)); /* a list without end */
	assert_int_equal(block_at(fake_code(1)).kind, GDB_JIT_NONE);
	memset(fake.bytes + FAKE_FILE, 0xff, FAKE_FILE_BYTES);
	assert_int_equal(block_at(fake_code(0)).kind, GDB_JIT_NONE);
	assert_int_equal(code_gdb_jit.ranges(&reader, &m, 0, ranges), 0);
	memset(fake.bytes + FAKE_DESCRIPTOR, 7, 24);
	assert_int_equal(open_reader(), -ENOTSUP);
}

static void all_is_as_written(void **state)
{
	static struct dumped what;

	(void)state;
	what = (struct dumped){ .reader = &code_gdb_jit,
				.facts = &fake.facts,
				.bias = FAKE_BASE,
				.from = fake_code(0),
				.to = fake_code(FAKE_FILES) + 16,
				.memory = { fake_code(0) & ~4095ull, (fake_code(0) & ~4095ull) + 0x4000 },
				.read = fake_read,
				.arg = &fake };
	reader_is_as_written(&what, "code_gdb_jit.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_is_as_written, make),   cmocka_unit_test_setup(test_look, make),
		cmocka_unit_test_setup(test_names, make),	   cmocka_unit_test_setup(test_rows, make),
		cmocka_unit_test_setup(test_ranges, make),	   cmocka_unit_test_setup(test_nobodys, make),
		cmocka_unit_test_setup(test_comes_and_goes, make), cmocka_unit_test_setup(test_another_in_place, make),
		cmocka_unit_test_setup(test_borders, make),	   cmocka_unit_test_setup(test_large, make),
		cmocka_unit_test_setup(test_nonsense, make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
