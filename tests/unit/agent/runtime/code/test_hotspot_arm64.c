/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of HotSpot's code on arm64: methods, adapters, stubs and the interpreter's codelets, of a made-up process and of
 * instructions as the virtual machine makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "tests/unit/agent/runtime/code/asked_hotspot.h"

enum { X9 = 9, X12 = 12, X13 = 13, X19 = 19, X20 = 20, X22 = 22 };

static void check_reg_row(const struct row *rows, size_t count, uint64_t addr, uint8_t reg, int32_t off, int32_t ra,
			  int32_t fp)
{
	const struct row *r = row_at(rows, count, addr);

	assert_non_null(r);
	assert_int_equal(r->cfa, ROW_CFA_REG);
	assert_int_equal(r->cfa_reg, reg);
	assert_int_equal(r->cfa_off, off);
	assert_int_equal(r->saved[SAVED_RA], ra);
	assert_int_equal(r->saved[SAVED_FP], fp);
}

/* A frame that is whole: the caller's sp stands in it, and its function is told by two of its words. */
static void check_whole(const struct row *rows, size_t count, uint64_t addr)
{
	const struct row *r = row_at(rows, count, addr);

	assert_non_null(r);
	assert_int_equal(r->cfa, ROW_CFA_DEREF);
	assert_int_equal(r->cfa_reg, REG_FP);
	assert_int_equal(r->cfa_off, -8);
	assert_int_equal(r->saved[SAVED_RA], ROW_AT_FP + 8);
	assert_int_equal(r->saved[SAVED_FP], ROW_AT_FP);
	assert_int_equal(r->capture, CAPTURE_FRAME);
}

static void check_hole(const struct row *rows, size_t count, uint64_t addr)
{
	const struct row *r = row_at(rows, count, addr);

	assert_true(!r || r->cfa == ROW_CFA_NONE);
}

static void rows_at(uint64_t addr, struct code_block *b, struct row **rows, size_t *count)
{
	assert_int_equal(code_hotspot.block(hotspot, &memory, addr, b), 0);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, b, rows, count), 0);
}

static void put_code(uint64_t addr, const uint32_t *code, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fake_put(&fake, addr + 4 * i, code[i], 4);
}

/* --- methods --- */

static void test_method(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	(void)state;
	rows_at(fake.code + 8, &b, &rows, &count);
	assert_int_equal(b.start, fake.code);
	check_reg_row(rows, count, fake.code, REG_SP, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, fake.code + 8, REG_SP, 32, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, fake.code + 12, REG_SP, 32, -8, -16);
	check_reg_row(rows, count, fake.call_end - 1, REG_SP, 32, -8, -16);
	check_reg_row(rows, count, fake.code + 32, REG_SP, 32, -8, -16); /* the words stay where they were read */
	check_reg_row(rows, count, fake.code + 36, REG_SP, 0, ROW_SAME, ROW_SAME);
}

/* The call of the trap never returns: nothing it leads to may stand in the way of what a branch tells. */
static void test_no_return(void **state)
{
	static const uint32_t code[] = {
		0xd503201f, 0xb4000060, 0xd10083ff, 0x94000000, 0xd10083ff, 0xa9017bfd, 0x94000000
	}; /* cbz over a frame and the trap's call */
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	(void)state;
	put_code(fake.code, code, ARRAY_LEN(code));
	fake_call(&fake, fake.code + 16, fake.stub + 128);
	rows_at(fake.code, &b, &rows, &count);
	check_reg_row(rows, count, fake.code + 16, REG_SP, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, fake.code + 24, REG_SP, 32, -8, -16);
}

/* The same, where the call does not reach so far and goes by a trampoline. */
static void test_trampoline(void **state)
{
	static const uint32_t code[] = { 0xd503201f, 0xb4000060, 0xd10083ff, 0x94000005, 0xd10083ff,
					 0xa9017bfd, 0x94000000, 0xd4200000, 0x58000048, 0xd61f0100 };
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	(void)state;
	put_code(fake.code, code, ARRAY_LEN(code));
	fake_put(&fake, fake.code + 40, fake.stub + 128, 8);
	assert_true(hotspot_trampoline_target(fake_at(&fake, fake.code + 32), 16) == fake.stub + 128);
	assert_true(hotspot_trampoline_target(fake_at(&fake, fake.code + 32), 15) == 0);
	rows_at(fake.code, &b, &rows, &count);
	check_reg_row(rows, count, fake.code + 16, REG_SP, 0, ROW_SAME, ROW_SAME);
}

/* Not to be entered any more: behind the jump at its entry the method goes on without a frame. */
static void test_patched(void **state)
{
	static const uint32_t jumps[] = { 0x14000100, 0xd4bbd5a1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
		AUTO_FREE struct row *rows = NULL;
		struct code_block b;
		size_t count;

		fake_put(&fake, fake.code, jumps[i], 4);
		rows_at(fake.code, &b, &rows, &count);
		check_reg_row(rows, count, fake.code + 4, REG_SP, 0, ROW_SAME, ROW_SAME);
		check_reg_row(rows, count, fake.code + 12, REG_SP, 32, -8, -16);
	}
}

static void test_calls(void **state)
{
	static const uint32_t code[] = { 0xd503201f, 0x97ffffff, 0xd63f0100, 0xd61f0100 }; /* nop; bl 0; blr x8; br x8 */
	const uint8_t *bytes = (const uint8_t *)code;
	uint64_t target;

	(void)state;
	assert_int_equal(hotspot_call_bytes(bytes, 0, 0x1000, &target), 0);
	assert_int_equal(hotspot_call_bytes(bytes, 4, 0x1000, &target), 0);
	assert_int_equal(hotspot_call_bytes(bytes, 8, 0x1000, &target), 4);
	assert_int_equal(target, 0x1000);
	assert_int_equal(hotspot_call_bytes(bytes, 10, 0x1000, &target), 0);
	assert_int_equal(hotspot_call_bytes(bytes, 12, 0x1000, &target), 4);
	assert_int_equal(target, 0);
	assert_int_equal(hotspot_call_bytes(bytes, 16, 0x1000, &target), 0);
}

static void test_names(void **state)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];
	struct code_block b;

	(void)state;
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &b), 0);
	assert_int_equal(code_hotspot.names(hotspot, &memory, &b, names), 0);
	assert_int_equal(block_names_write(names, &bytes), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, FAKE_CALL_END - 1, true, l), 2);
	check_name(&l[0], "com.acme.Inner$In.twice", "Inner.java", 51);
	check_name(&l[1], "com.acme.Outer$$Lambda.run", "Outer.java", 30);
}

/* --- adapters and stubs --- */

/* ldr x8, [x12, 64]; sub x9, sp, 32; and sp, x9, -16; br x8; then, from compiled code: mov x13, sp; sub sp, sp, 32; br x8 */
static void test_adapter(void **state)
{
	static const uint32_t code[] = {
		0xf9402188, 0xd10083e9, 0x927ced3f, 0xd61f0100, 0x910003ed, 0xd10083ff, 0xd61f0100
	};
	uint64_t blob = fake_blob(&fake, 0x1800, "I2C/C2I adapters", 256, 128, (const uint8_t *)code, sizeof(code), 0);
	AUTO_FREE struct row *rows = NULL;
	uint64_t at = blob + 128;
	struct code_block b;
	size_t count;

	(void)state;
	rows_at(at, &b, &rows, &count);
	for (int i = 0; i < 4; i++)
		check_reg_row(rows, count, at + 4 * (uint64_t)i, X13, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, at + 16, REG_SP, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, at + 24, REG_SP, 32, ROW_SAME, ROW_SAME);
	((struct hotspot *)hotspot)->major = 21; /* another register has it then */
	free(rows);
	rows = NULL;
	rows_at(at, &b, &rows, &count);
	check_reg_row(rows, count, at, X19, 0, ROW_SAME, ROW_SAME);
}

/* Entered with another stub's frame in place, whose return address it replaces: ldr x3, [x29, 8]; str x3, [x29, 8]; blr x8;
 * mov sp, x29; ldp x29, x30, [sp], 16; ret. */
static void test_in_frame(void **state)
{
	static const uint32_t code[] = { 0xf94007a3, 0xf90007a3, 0xd63f0100, 0x910003bf, 0xa8c17bfd, 0xd65f03c0 };
	static const uint32_t own[] = { 0xa9bf7bfd, 0x910003fd, 0xf94007a3, 0xd65f03c0 }; /* makes a frame of its own */
	uint64_t blob = fake_blob(&fake, 0x1800, "forward_exception Runtime1 stub", 256, 128, (const uint8_t *)code,
				  sizeof(code), 64);
	AUTO_FREE struct row *rows = NULL;
	uint64_t at = blob + 128;
	struct code_block b;
	size_t count;

	(void)state;
	rows_at(at, &b, &rows, &count);
	for (uint64_t i = 0; i < 5; i++)
		check_reg_row(rows, count, at + 4 * i, REG_FP, 16, -8, -16);
	check_reg_row(rows, count, at + 20, REG_SP, 0, ROW_SAME, ROW_SAME);
	assert_true(hotspot_begins_in_frame((const uint8_t *)code, sizeof(code)));
	assert_false(hotspot_begins_in_frame((const uint8_t *)own, sizeof(own)));
	assert_false(hotspot_begins_in_frame((const uint8_t *)code, 3));
}

/* The return address in another register while a function is called: mov x19, x30; stp x8, x12, [sp, -16]!; blr x8; ldp x8,
 * x12, [sp], 16; mov x30, x19; mov x19, x0; br x19. */
static void test_return_in_register(void **state)
{
	static const uint32_t code[] = {
		0xaa1e03f3, 0xa9bf33e8, 0xd63f0100, 0xa8c133e8, 0xaa1303fe, 0xaa0003f3, 0xd61f0260
	};
	uint64_t blob = fake_blob(&fake, 0x1800, "StubRoutines (1)", 256, 128, (const uint8_t *)code, sizeof(code), 0);
	AUTO_FREE struct row *rows = NULL;
	uint64_t at = blob + 128;
	struct code_block b;
	size_t count;

	(void)state;
	rows_at(at, &b, &rows, &count);
	check_reg_row(rows, count, at, REG_SP, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, at + 8, REG_SP, 16, ROW_IN_REG + X19, ROW_SAME);
	check_reg_row(rows, count, at + 12, REG_SP, 16, ROW_IN_REG + X19, ROW_SAME);
	check_reg_row(rows, count, at + 20, REG_SP, 0, ROW_IN_REG + X19, ROW_SAME);
	check_reg_row(rows, count, at + 24, REG_SP, 0, ROW_SAME, ROW_SAME);
}

/*
 * A native method's wrapper with a frame inside of its own, for a barrier: nop; stp x29, x30, [sp, -16]!; mov x29, sp; sub
 * sp, sp, 16; stp x29, x30, [sp, -16]!; mov x29, sp; blr x8; mov sp, x29; ldp x29, x30, [sp], 16; mov sp, x29; ldp x29, x30,
 * [sp], 16; ret.
 */
static void test_frame_in_frame(void **state)
{
	static const uint32_t code[] = { 0xd503201f, 0xa9bf7bfd, 0x910003fd, 0xd10043ff, 0xa9bf7bfd, 0x910003fd,
					 0xd63f0100, 0x910003bf, 0xa8c17bfd, 0x910003bf, 0xa8c17bfd, 0xd65f03c0 };
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	(void)state;
	put_code(fake.code, code, ARRAY_LEN(code));
	rows_at(fake.code, &b, &rows, &count);
	check_reg_row(rows, count, fake.code + 12, REG_FP, 16, -8, -16);
	check_reg_row(rows, count, fake.code + 24, REG_SP, 48, -8, -16);
	check_reg_row(rows, count, fake.code + 32, REG_SP, 48, -8, -16);
	check_reg_row(rows, count, fake.code + 36, REG_FP, 16, -8, -16); /* given back */
	check_reg_row(rows, count, fake.code + 40, REG_FP, 16, -8, -16);
	check_reg_row(rows, count, fake.code + 44, REG_SP, 0, ROW_SAME, ROW_SAME);
}

/* --- the interpreter --- */

static void codelet_rows(uint64_t addr, struct row **rows, size_t *count)
{
	struct code_block b;

	rows_at(addr, &b, rows, count);
	assert_int_equal(b.start, addr);
}

static void test_entry(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	uint64_t at = fake.entry_codelet;
	size_t count;

	(void)state;
	codelet_rows(at, &rows, &count);
	for (uint64_t i = 0; i < 5; i++) {
		check_reg_row(rows, count, at + 4 * i, X13, 0, ROW_SAME, ROW_SAME);
		assert_int_equal(row_at(rows, count, at + 4 * i)->capture, CAPTURE_ENTRY);
	}
	check_reg_row(rows, count, at + 20, X13, 0, ROW_AT_FP + 8, ROW_AT_FP);
	check_whole(rows, count, at + 24);
	check_whole(rows, count, at + 28);
}

static void test_exit(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	uint64_t at = fake.frame_codelet;
	size_t count;

	(void)state;
	codelet_rows(at, &rows, &count);
	for (uint64_t i = 0; i < 5; i++)
		check_whole(rows, count, at + 4 * i);
	check_reg_row(rows, count, at + 20, X20, 0, ROW_SAME, ROW_SAME);
	assert_int_equal(row_at(rows, count, at + 20)->capture, 0);
	check_reg_row(rows, count, at + 24, X20, 0, ROW_SAME, ROW_SAME);
}

static void made_rows(uint32_t major, bool is_entry, const uint32_t *code, size_t bytes, struct row **rows, size_t *count)
{
	static struct hotspot s;

	s.major = major;
	assert_int_equal(hotspot_interpreter_rows(&s, (const uint8_t *)code, bytes, 0, is_entry, rows, count), 0);
}

/* A method without a frame: ldr d0, [x20]; mov sp, x13; mov x19, x30; blr x8; br x19. While the function runs that it calls,
 * no register tells the caller's sp, and none the method. */
static void test_without_frame(void **state)
{
	static const uint32_t code[] = { 0xfd400280, 0x910001bf, 0xaa1e03f3, 0xd63f0100, 0xd61f0260 };
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	made_rows(17, true, code, sizeof(code), &rows, &count);
	check_reg_row(rows, count, 8, X13, 0, ROW_SAME, ROW_SAME);
	check_reg_row(rows, count, 12, REG_SP, 0, ROW_IN_REG + X19, ROW_SAME);
	assert_int_equal(row_at(rows, count, 8)->capture, CAPTURE_ENTRY);
	assert_int_equal(row_at(rows, count, 12)->capture, 0);
	check_reg_row(rows, count, 16, REG_SP, 0, ROW_IN_REG + X19, ROW_SAME);
}

/* The return address on the stack, and back: stp x0, x30, [sp, -16]!; blr x8; ldp x0, x30, [sp], 16; ret, behind mov sp,
 * x13. */
static void test_return_on_stack(void **state)
{
	static const uint32_t code[] = { 0x910001bf, 0xa9bf7be0, 0xd63f0100, 0xa8c17be0, 0xd65f03c0 };
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	made_rows(17, true, code, sizeof(code), &rows, &count);
	check_reg_row(rows, count, 12, REG_SP, 16, ROW_AT_SP + 8, ROW_SAME);
	check_reg_row(rows, count, 16, REG_SP, 0, ROW_SAME, ROW_SAME);
}

/*
 * A frame inside of the interpreter's (a barrier of G1): nobody can tell the caller's sp there, but what goes on behind it,
 * which is also reached by a branch, has the frame again: cbz x0 to the last; stp x29, x30, [sp, -16]!; mov x29, sp; cbz x1
 * to the next one; blr x8; mov sp, x29; ldp x29, x30, [sp], 16; str x0, [x29, 24].
 */
static void test_inner_frame(void **state)
{
	static const uint32_t code[] = { 0xb40000e0, 0xa9bf7bfd, 0x910003fd, 0xb4000041,
					 0xd63f0100, 0x910003bf, 0xa8c17bfd, 0xf9000fa0 };
	static const uint32_t lost[] = { 0xb4000060, 0xaa0103fd, 0xd503201f, 0xf9000fa0 }; /* mov x29, x1 */
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	made_rows(17, false, code, sizeof(code), &rows, &count);
	for (uint64_t at = 0; at < sizeof(code); at += 4) {
		if (at >= 12 && at < 28)
			check_hole(rows, count, at);
		else
			check_whole(rows, count, at);
	}
	free(rows);
	rows = NULL;
	made_rows(17, false, lost, sizeof(lost), &rows, &count);
	check_whole(rows, count, 4);
	check_hole(rows, count, 8);
	check_whole(rows, count, 12); /* by the branch */
}

/* From 19 on another register has the caller's sp; 8 has no padding in its frames. */
static void test_versions(void **state)
{
	static const uint32_t code[] = { 0xd503201f };
	struct code_capture captures[CODE_CAPTURES] = { 0 };
	static struct hotspot s;

	(void)state;
	for (uint32_t major = 8; major < 26; major++) {
		AUTO_FREE struct row *rows = NULL;
		size_t count;

		made_rows(major, true, code, sizeof(code), &rows, &count);
		check_reg_row(rows, count, 0, major < 19 ? X13 : X19, 0, ROW_SAME, ROW_SAME);
		s.major = major;
		hotspot_captures(&s, NULL, captures);
		assert_int_equal(captures[CAPTURE_FRAME - 1].words[0].offset, -24);
		assert_int_equal(captures[CAPTURE_FRAME - 1].words[1].offset, major == 8 ? -56 : -72);
		assert_int_equal(captures[CAPTURE_FRAME - 1].words[1].leaf_reg, X22);
		assert_int_equal(captures[CAPTURE_ENTRY - 1].words[0].leaf_reg, X12);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_method),
		TEST(test_no_return),
		TEST(test_trampoline),
		TEST(test_patched),
		TEST(test_calls),
		TEST(test_names),
		TEST(test_adapter),
		TEST(test_in_frame),
		TEST(test_return_in_register),
		TEST(test_frame_in_frame),
		TEST(test_entry),
		TEST(test_exit),
		TEST(test_without_frame),
		TEST(test_return_on_stack),
		TEST(test_inner_frame),
		TEST(test_versions),
		TEST(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
