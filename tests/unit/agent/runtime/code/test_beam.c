/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/event.h"
#include "tests/unit/agent/runtime/code/fake_beam.h"
#include "tests/unit/agent/runtime/code/reader_dump.h"

static struct fake fake;
static struct beam beam;

static struct code_memory memory_of(void)
{
	return (struct code_memory){ .read = fake_read,
				     .arg = &fake,
				     .reads_left = CODE_MAX_READS,
				     .bytes_left = CODE_MAX_BYTES,
				     .end_ns = UINT64_MAX };
}

static int open_beam(void)
{
	struct code_range ranges[CODE_RANGES] = { { FAKE_BASE + FAKE_CODE, FAKE_BASE + FAKE_CODE + FAKE_CODE_BYTES } };
	struct code_memory m = memory_of();
	int error;

	memset(&beam, 0, sizeof(beam));
	error = code_beam.open(&beam, &m, &fake.facts, FAKE_BASE);
	if (!error)
		assert_int_equal(code_beam.ranges(&beam, &m, 1, ranges), 1);
	return error;
}

static int make(void **state)
{
	(void)state;
	fake_make(&fake);
	assert_int_equal(open_beam(), 0);
	return 0;
}

static struct code_block block_at(uint64_t pc)
{
	struct code_memory m = memory_of();
	struct code_block b;

	assert_int_equal(code_beam.block(&beam, &m, pc, &b), 0);
	assert_true(b.start <= pc && pc < b.end);
	return b;
}

static int block_error(uint64_t pc)
{
	struct code_memory m = memory_of();
	struct code_block b;

	return code_beam.block(&beam, &m, pc, &b);
}

/* The row at @pc; one of kind ROW_CFA_NONE where there is none. */
static struct row row_at(uint64_t pc)
{
	struct code_block b = block_at(pc);
	struct code_memory m = memory_of();
	struct row *rows, found = { .cfa = ROW_CFA_NONE };
	size_t count;

	assert_int_equal(code_beam.rows(&beam, &m, &b, &rows, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (pc >= rows[i].start && pc < rows[i].end)
			found = rows[i];
	free(rows);
	return found;
}

static void assert_row(uint64_t pc, uint8_t cfa, uint8_t reg, int32_t off)
{
	struct row row = row_at(pc);

	assert_int_equal(row.cfa, cfa);
	assert_int_equal(row.cfa_reg, reg);
	assert_int_equal(row.cfa_off, off);
}

/* The name, path and line at @pc. */
static const char *name_at(uint64_t pc, bool is_return)
{
	static char text[2048];
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct block_names *n = block_names_new();
	struct code_block b = block_at(pc);
	struct code_memory m = memory_of();
	struct buf out = BUF_EMPTY;

	assert_int_equal(code_beam.names(&beam, &m, &b, n), 0);
	assert_int_equal(block_names_write(n, &out), 0);
	assert_true(block_names_are_sound(out.data, out.len));
	assert_int_equal(block_names_find(out.data, out.len, (uint32_t)(pc - b.start), is_return, lines), 1);
	snprintf(text, sizeof(text), "%.*s %.*s:%u", lines[0].name_bytes, lines[0].name, lines[0].file_bytes, lines[0].file,
		 lines[0].line);
	buf_fini(&out);
	block_names_free(n);
	return text;
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(name_at(fake_code(&fake, 0) + 1, false), "shop:sell/2 shop.erl:10");
	assert_string_equal(name_at(fake_code(&fake, 0) + 9, true), "shop:sell/2 shop.erl:12");
	assert_string_equal(name_at(fake_code(&fake, 1), false), "shop:sell/2-fun-0/1 lib/till.erl:7");
	assert_string_equal(name_at(fake_code(&fake, 2), false), "shop:count/0 :0");
	assert_string_equal(name_at(FAKE_BASE + FAKE_MODULE + 8, false), "shop:(module) :0");
	assert_string_equal(name_at(fake.exit + 50, false), "erts_beamasm:normal_exit/0 :0");
}

/* Paths as lists of characters, behind that of the module's own file. */
static void test_listed_path(void **state)
{
	uint64_t files, cells = fake_take(&fake, 48), list = cells + 1;

	(void)state;
	memcpy(&files, fake_at(&fake, fake.lines), sizeof(files));
	for (int i = 0; i < 2; i++) {
		fake_put(&fake, cells + 16 * i, (uint64_t) "ab"[i] << 4 | 15, 8);
		fake_put(&fake, cells + 16 * i + 8, i ? 0x3b : cells + 16 + 1, 8);
	}
	fake_put(&fake, files, list, 8);
	fake_put(&fake, files + 8, list, 8);
	assert_string_equal(name_at(fake_code(&fake, 1), false), "shop:sell/2-fun-0/1 ab:7");
	fake_put(&fake, cells + 24, list, 8); /* endless */
	assert_non_null(name_at(fake_code(&fake, 1), false));
}

static void rename_atom(uint32_t number, const char *text)
{
	uint64_t entry;

	memcpy(&entry, fake_at(&fake, fake.atoms + 8ul * number), sizeof(entry));
	fake_put(&fake, entry + 24, strlen(text), 2);
	memcpy(&entry, fake_at(&fake, entry + 32), sizeof(entry));
	memcpy(fake_at(&fake, entry), text, strlen(text));
}

/* From release 29 on the text of an atom is a binary: with its bytes, or part of another. */
static void test_atoms_of_binaries(void **state)
{
	enum { BOXED = 2, LITERAL = 4, BYTES = 0x20, PART = 0x24, FLAGS = 3 };

	(void)state;
	for (uint32_t i = 0; i < fake.atom_cnt; i++) {
		uint64_t entry, text, len = 0, binary;
		bool is_part = i % 3 == 1;

		memcpy(&entry, fake_at(&fake, fake.atoms + 8ul * i), sizeof(entry));
		memcpy(&text, fake_at(&fake, entry + 32), sizeof(text));
		memcpy(&len, fake_at(&fake, entry + 24), 2);
		binary = fake_take(&fake, 24 + (uint32_t)len);
		fake_put(&fake, binary, (is_part ? PART : BYTES) | 5 << 6, 8);
		fake_put(&fake, binary + 8, is_part ? ((text - 2) & ~3ull) | FLAGS : 8 * len, 8);
		if (is_part)
			fake_put(&fake, binary + 16, 8 * (text - ((text - 2) & ~3ull)), 8);
		else
			memcpy(fake_at(&fake, binary + 16), fake_at(&fake, text), len);
		memset(fake_at(&fake, text), 0, is_part ? 0 : len);
		fake_put(&fake, entry + 32, binary | BOXED | (i % 2 ? LITERAL : 0), 8);
	}
	assert_int_equal(open_beam(), 0);
	test_names(NULL);
}

/* Up to release 28 texts stand at any address, also at one that looks like a binary's. */
static void test_atoms_at_any_address(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < fake.atom_cnt; i++) {
		const uint64_t at = fake_take(&fake, 64) + 2 + i % 3;
		uint64_t entry, text, len = 0;

		memcpy(&entry, fake_at(&fake, fake.atoms + 8ul * i), sizeof(entry));
		memcpy(&text, fake_at(&fake, entry + 32), sizeof(text));
		memcpy(&len, fake_at(&fake, entry + 24), 2);
		memcpy(fake_at(&fake, at), fake_at(&fake, text), len);
		fake_put(&fake, entry + 32, at, 8);
	}
	assert_int_equal(open_beam(), 0);
	test_names(NULL);
}

static void test_elixir(void **state)
{
	(void)state;
	rename_atom(3, "-b/1-lc$^0/1-0-"); /* that of a fun is long enough */
	rename_atom(1, "Elixir.Foo");
	assert_string_equal(name_at(fake_code(&fake, 1), false), "Foo.b/1-lc-0/1-0/1 lib/till.erl:7");
}

static void test_frame(void **state)
{
	uint64_t code = fake_code(&fake, 0);

	(void)state;
	assert_row(fake.function[0] + BEAM_CODE_INFO_BYTES, ROW_CFA_REG, REG_SP, 8); /* the place for breakpoints */
	assert_row(code, ROW_CFA_REG, REG_SP, 8);
	assert_row(code + 4, ROW_CFA_REG, REG_SP, 24);
	assert_row(code + 8, ROW_CFA_REG, REG_SP, 24); /* the return address of the call, less 1 */
	assert_row(code + 14, ROW_CFA_REG, REG_SP, 8);
}

static void test_calls_of_c(void **state)
{
	uint64_t saved = fake_code(&fake, 1), looks = fake_code(&fake, 2);

	(void)state;
	assert_row(saved + 3, ROW_CFA_REG, REG_SP, 8);
	assert_row(saved + 7, ROW_CFA_REG, REG_FP, 8);
	assert_row(saved + 11, ROW_CFA_REG, REG_FP, 8);
	assert_row(saved + 15, ROW_CFA_REG, REG_SP, 8);
	assert_row(looks + 8, ROW_CFA_SCHED, SCHED_RETURNS, 16);
	assert_row(looks + 17, ROW_CFA_REG, REG_SP, 16);
	assert_row(looks + 22, ROW_CFA_REG, REG_SP, 40); /* by the way to the return alone */
	assert_row(looks + 27, ROW_CFA_TAGGED, REG_SP, 0);
}

static void test_root(void **state)
{
	(void)state;
	assert_row(fake.exit + 41, ROW_CFA_ROOT, 0, 0);
}

/* A shared piece of code ends where a function begins that the emulator made by hand, and does not hold it. */
static void test_end_of_fragment(void **state)
{
	const uint64_t start = FAKE_BASE + FAKE_CODE + 0x10;
	struct code_block b;

	(void)state;
	beam.fragments[0] = (struct beam_fragment){ .start = start };
	beam.fragment_cnt = 1;
	b = block_at(start + 9);
	assert_int_equal(b.kind, BEAM_FRAGMENT);
	assert_int_equal(b.start, start);
	assert_int_equal(b.end, fake.exit);
	assert_int_equal(block_at(fake.exit + 41).kind, BEAM_ROOT);
}

static void test_purged(void **state)
{
	uint64_t modules;

	(void)state;
	memcpy(&modules, fake_at(&fake, fake.table), sizeof(modules));
	assert_int_equal(block_error(fake_code(&fake, 0)), 0);
	fake_put(&fake, modules + 16 * (FAKE_MODULES - 1) + 8, FAKE_BASE + FAKE_MODULE, 8);
	fake_put(&fake, fake.function[0] + 16, 0, 8);
	assert_int_not_equal(block_error(fake_code(&fake, 0)), 0);
	assert_int_equal(block_error(FAKE_BASE), -ENOENT);
}

/* Do the tokens of @b hold? */
static bool holds(const struct code_block *b)
{
	for (int i = 0; i < CODE_TOKENS; i++) {
		uint64_t value = 0;

		(void)fake_read(&fake, b->tokens[i].addr, &value, b->tokens[i].mask ? sizeof(value) : 0);
		if (b->tokens[i].mask && (value & b->tokens[i].mask) != b->tokens[i].value)
			return false;
	}
	return true;
}

static void test_tokens(void **state)
{
	struct code_block b = block_at(fake_code(&fake, 0));

	(void)state;
	for (uint32_t off = 16; off <= 32; off += 8) { /* module, function, arity */
		assert_true(holds(&b));
		((uint8_t *)fake_at(&fake, b.start + off))[0] ^= 64;
		assert_false(holds(&b));
		((uint8_t *)fake_at(&fake, b.start + off))[0] ^= 64;
	}
	fake_put(&fake, FAKE_BASE + FAKE_MODULE + BEAM_LINE_TABLE, 0, 8); /* loaded anew */
	assert_false(holds(&b));
}

static void test_refusals(void **state)
{
	(void)state;
	fake_put(&fake, FAKE_BASE + 0x20, 1, 4); /* frame pointers */
	assert_int_equal(open_beam(), -ENOTSUP);
	fake_make(&fake);
	fake_put(&fake, FAKE_BASE + 0x10, 0, 8); /* it has not begun */
	assert_int_equal(open_beam(), -EAGAIN);
	fake_make(&fake);
	rename_atom(0, "wrong");
	assert_int_equal(open_beam(), -EAGAIN);
	fake_make(&fake);
	assert_int_equal(open_beam(), 0);
	fake_put(&fake, fake.table, 0, 8);
	assert_int_equal(block_error(fake_code(&fake, 0)), -EAGAIN);
}

/* Modules, shared code and what is between them. */
static void all_is_as_written(void **state)
{
	static struct dumped what;

	(void)state;
	what = (struct dumped){ .reader = &code_beam,
				.facts = &fake.facts,
				.bias = FAKE_BASE,
				.from = FAKE_BASE + FAKE_CODE,
				.to = FAKE_BASE + FAKE_CODE + 0xb00,
				.memory = { FAKE_BASE + FAKE_CODE, FAKE_BASE + FAKE_CODE + FAKE_CODE_BYTES },
				.read = fake_read,
				.arg = &fake };
	reader_is_as_written(&what, "code_beam.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_is_as_written, make),
		cmocka_unit_test_setup(test_names, make),
		cmocka_unit_test_setup(test_listed_path, make),
		cmocka_unit_test_setup(test_atoms_of_binaries, make),
		cmocka_unit_test_setup(test_atoms_at_any_address, make),
		cmocka_unit_test_setup(test_elixir, make),
		cmocka_unit_test_setup(test_frame, make),
		cmocka_unit_test_setup(test_calls_of_c, make),
		cmocka_unit_test_setup(test_root, make),
		cmocka_unit_test_setup(test_purged, make),
		cmocka_unit_test_setup(test_end_of_fragment, make),
		cmocka_unit_test_setup(test_tokens, make),
		cmocka_unit_test_setup(test_refusals, make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
