/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of HotSpot on a made-up process (fake_hotspot.h): where code is, its rows and names; code that goes; memory
 * that lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "tests/unit/agent/runtime/code/asked_hotspot.h"
#include "tests/unit/agent/runtime/code/reader_dump.h"

#ifdef __x86_64__
static void check_sp_row(const struct row *rows, size_t count, uint64_t addr, int32_t depth, int32_t fp)
{
	const struct row *r = row_at(rows, count, addr);

	assert_non_null(r);
	assert_int_equal(r->cfa, ROW_CFA_REG);
	assert_int_equal(r->cfa_reg, REG_SP);
	assert_int_equal(r->cfa_off, depth);
	assert_int_equal(r->saved[SAVED_FP], fp);
	assert_int_equal(r->saved[SAVED_RA], -8);
}

static void test_ranges(void **state)
{
	struct code_range ranges[CODE_RANGES];

	(void)state;
	assert_int_equal(code_hotspot.ranges(hotspot, &memory, 0, ranges), 1);
	assert_int_equal(ranges[0].start, FAKE_BASE + FAKE_HEAP);
	assert_int_equal(ranges[0].end, FAKE_BASE + FAKE_HEAP + FAKE_HEAP_BYTES);
}

static void test_method_rows(void **state)
{
	struct code_block b;
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code + 9, &b), 0);
	assert_int_equal(b.start, fake.code);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, &b, &rows, &count), 0);
	check_sp_row(rows, count, fake.code, 8, ROW_SAME);
	check_sp_row(rows, count, fake.code + 1, 16, -16);
	check_sp_row(rows, count, fake.code + 5, 32, -16);
	check_sp_row(rows, count, fake.call_end - 1, 32, -16);
	check_sp_row(rows, count, fake.call_end + 5, 16, -16);
	check_sp_row(rows, count, fake.call_end + 6, 8, ROW_SAME);
}

/* The call of the trap never returns: nothing it leads to may stand in the way of what a branch tells. */
static void test_no_return(void **state)
{
	static const uint8_t bare[] = { 0x74, 0x05, 0xe8 }; /* a branch over the trap's call, before the frame is made */
	struct code_block b;
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	memmove(fake_at(&fake, fake.code + 3), fake_at(&fake, fake.code + 7), 5); /* trap: call at 2 */
	memcpy(fake_at(&fake, fake.code), bare, sizeof(bare));
	fake_put(&fake, fake.code + 3, (uint32_t)(fake.stub + 128 - (fake.code + 7)), 4);
	memcpy(fake_at(&fake, fake.code + 7), "\x55\x48\x83\xec\x10\xe8", 6);
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &b), 0);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, &b, &rows, &count), 0);
	check_sp_row(rows, count, fake.code + 7, 8, ROW_SAME);
	check_sp_row(rows, count, fake.code + 12, 32, -16);
}

/* --- virtual threads --- */

/* pop rcx; call; mov rsp, rbx; sub rsp, 16; pop rbp; ret: the way on to another carrier. From BARRIER on mov rsp, [r15 +
 * 0x618]; push rax; call; pop rax; sub rsp, rbx; call; mov rsp, rbx; pop rbp; ret: the return barrier. */
static const uint8_t thaw_code[] = { 0x59, 0xe8, 0,    1,    0,	   0,	 0x48, 0x89, 0xdc, 0x48, 0x83, 0xec, 0x10, 0x5d,
				     0xc3, 0x49, 0x8b, 0xa7, 0x18, 0x06, 0,    0,    0x50, 0xe8, 0,    1,    0,	   0,
				     0x58, 0x48, 0x29, 0xdc, 0xe8, 0,	 1,    0,    0,	   0x48, 0x89, 0xdc, 0x5d, 0xc3 };
enum { BARRIER = 15, DEPTH_OF_21 = 64 + 16 };

/* The stubs of a virtual machine of @major whose table says that a carrier's record has @entry_bytes (0: it says nothing).
 */
static uint64_t thaw_stubs(uint32_t major, uint32_t entry_bytes, struct code_block *b, struct row **rows, size_t *count)
{
	struct hotspot *s = hotspot;
	uint64_t blob = fake_blob(&fake, 0x1800, "StubRoutines (continuationstubs)", 256, 128, thaw_code, sizeof(thaw_code),
				  0);

	s->major = major;
	s->type_bytes[T_CONTINUATION_ENTRY] = entry_bytes;
	assert_int_equal(code_hotspot.block(hotspot, &memory, blob + 128, b), 0);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, b, rows, count), 0);
	return blob + 128;
}

/* Who returns to the barrier, and who runs there, is called by the caller of Continuation.enterSpecial. */
static void test_barrier_rows(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;
	uint64_t code = thaw_stubs(21, 0, &b, &rows, &count);

	(void)state;
	check_sp_row(rows, count, code + BARRIER - 1, DEPTH_OF_21, -16);
	check_sp_row(rows, count, code + BARRIER, DEPTH_OF_21, -16);
	check_sp_row(rows, count, code + BARRIER + 7, DEPTH_OF_21, -16);
	check_sp_row(rows, count, code + BARRIER + 8, DEPTH_OF_21 + 8, -16);
	check_sp_row(rows, count, code + BARRIER + 14, DEPTH_OF_21, -16);
	assert_null(row_at(rows, count, code + BARRIER + 17)); /* nobody knows how much room was made */
}

/* On its way to another carrier a virtual thread does not return to who called the stub; the frame pointer is the caller's.
 */
static void test_thaw_rows(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;
	uint64_t code = thaw_stubs(21, 0, &b, &rows, &count);
	const struct row *moved = row_at(rows, count, code + 9);

	(void)state;
	check_sp_row(rows, count, code, 8, ROW_SAME);
	assert_non_null(moved);
	assert_int_equal(moved->cfa, ROW_CFA_REG);
	assert_int_equal(moved->cfa_reg, REG_FP);
	assert_int_equal(moved->cfa_off, 16);
	assert_int_equal(moved->saved[SAVED_FP], -16);
}

/* The record's size is the table's, rounded up as the stack is; versions without virtual threads have no barrier. */
static void test_record_sizes(void **state)
{
	static const struct {
		uint32_t major, bytes;
		int32_t depth; /* 0: it has none */
	} cases[] = { { 21, 0, 80 }, { 26, 56, 80 }, { 25, 64, 80 }, { 27, 72, 96 }, { 17, 0, 0 }, { 20, 0, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE struct row *rows = NULL;
		struct code_block b;
		size_t count;
		uint64_t code = thaw_stubs(cases[i].major, cases[i].bytes, &b, &rows, &count);
		const struct row *r = row_at(rows, count, code + BARRIER - 1);

		if (cases[i].depth)
			check_sp_row(rows, count, code + BARRIER - 1, cases[i].depth, -16);
		else
			assert_true(!r || r->cfa_off != DEPTH_OF_21);
	}
}

/* From 27 on a variable leads to the barrier: it begins a block, with the byte by which returns to it are looked up. */
static void test_known_barrier(void **state)
{
	struct hotspot *s = hotspot;
	AUTO_FREE struct row *before = NULL, *rows = NULL;
	struct code_block b;
	size_t count;
	uint64_t code = thaw_stubs(27, 56, &b, &before, &count);

	(void)state;
	s->stub_var_cnt = 1;
	s->stubs[0].variable = fake_variable(&fake, code + BARRIER);
	s->stubs[0].bytes_before = 1;
	assert_int_equal(code_hotspot.block(hotspot, &memory, code, &b), 0);
	assert_int_equal(b.end, code + BARRIER - 1);
	assert_int_equal(code_hotspot.block(hotspot, &memory, code + BARRIER - 1, &b), 0);
	assert_int_equal(b.start, code + BARRIER - 1);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, &b, &rows, &count), 0);
	check_sp_row(rows, count, code + BARRIER - 1, DEPTH_OF_21, -16);
	check_sp_row(rows, count, code + BARRIER + 8, DEPTH_OF_21 + 8, -16);
}

static void test_barrier_names(void **state)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count;

	(void)state;
	thaw_stubs(21, 0, &b, &rows, &count);
	assert_int_equal(code_hotspot.names(hotspot, &memory, &b, names), 0);
	assert_int_equal(block_names_write(names, &bytes), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, BARRIER - 1, true, l), 1);
	check_name(&l[0], "[frames in the heap]", "", 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, BARRIER + 12, true, l), 1);
	check_name(&l[0], "[frames in the heap]", "", 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 5, true, l), 1);
	check_name(&l[0], "StubRoutines (continuationstubs)", "", 0);
}

static void test_method_names(void **state)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];
	struct code_block b;

	(void)state;
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &b), 0);
	assert_int_equal(code_hotspot.names(hotspot, &memory, &b, names), 0);
	assert_int_equal(block_names_write(names, &bytes), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 16, true, l), 2); /* the second call */
	check_name(&l[0], "com.acme.Inner$In.twice", "Inner.java", 51);
	check_name(&l[1], "com.acme.Outer$$Lambda.run", "Outer.java", 30);
	assert_int_equal(l[1].start_line, 30);
	assert_false(l[0].is_approximate);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 13, false, l), 2);
	assert_true(l[0].is_approximate);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 22, false, l), 1); /* behind all descriptions */
	check_name(&l[0], "com.acme.Outer$$Lambda.run", "Outer.java", 0);
}

/* Freed, the block's header says so; used again, the method has another number. */
static void test_death(void **state)
{
	struct code_block b, again;

	(void)state;
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &b), 0);
	assert_true(holds(b.tokens));
	fake_put(&fake, fake.nmethod - 8, 0, 1);
	assert_false(holds(b.tokens));
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &again), -ENOENT);
	fake_put(&fake, fake.nmethod - 8, 1, 1);
	fake_put(&fake, fake.nmethod + 304, 78, 4);
	assert_false(holds(b.tokens));
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &again), 0);
	assert_true(holds(again.tokens));
}

static void interpreter_rows(uint64_t addr, struct row **rows, size_t *count)
{
	struct code_block b;

	assert_int_equal(code_hotspot.block(hotspot, &memory, addr, &b), 0);
	assert_int_equal(b.start, addr);
	assert_int_equal(code_hotspot.rows(hotspot, &memory, &b, rows, count), 0);
}

/* A method that is entered: the caller's sp is in r13, the return address on the stack, in rax, on the stack, at rbp + 8. */
static void test_interpreter_entry(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	const struct row *r;
	size_t count;

	(void)state;
	interpreter_rows(fake.entry_codelet, &rows, &count);
	r = row_at(rows, count, fake.entry_codelet);
	assert_int_equal(r->cfa, ROW_CFA_REG);
	assert_int_equal(r->cfa_reg, 13);
	assert_int_equal(r->cfa_off, 0);
	assert_int_equal(r->saved[SAVED_RA], ROW_AT_SP);
	assert_int_equal(r->saved[SAVED_FP], ROW_SAME);
	assert_int_not_equal(r->capture, 0);
	r = row_at(rows, count, fake.entry_codelet + 1); /* popped */
	assert_int_equal(r->saved[SAVED_RA], ROW_IN_REG + 0);
	r = row_at(rows, count, fake.entry_codelet + 3); /* pushed, and rbp */
	assert_int_equal(r->saved[SAVED_RA], ROW_AT_SP + 8);
	assert_int_equal(r->saved[SAVED_FP], ROW_SAME);
	r = row_at(rows, count,
		   fake.entry_codelet + 6); /* rbp points to the frame; where the caller's sp will be is not written */
	assert_int_equal(r->cfa_reg, 13);
	assert_int_equal(r->saved[SAVED_RA], ROW_AT_FP + 8);
	assert_int_equal(r->saved[SAVED_FP], ROW_AT_FP);
	r = row_at(rows, count, fake.entry_codelet + 8);
	assert_int_equal(r->cfa, ROW_CFA_DEREF);
	assert_int_equal(r->cfa_reg, REG_FP);
	assert_int_equal(r->cfa_off, -8);
	r = row_at(rows, count, fake.entry_codelet + 11); /* whole: the method is in the frame */
	assert_int_equal(r->cfa, ROW_CFA_DEREF);
	assert_int_equal(r->capture, 1);
}

static void test_interpreter_exit(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	const struct row *r;
	size_t count;

	(void)state;
	interpreter_rows(fake.frame_codelet, &rows, &count);
	r = row_at(rows, count, fake.frame_codelet + 5); /* leave */
	assert_int_equal(r->cfa, ROW_CFA_DEREF);
	r = row_at(rows, count, fake.frame_codelet + 6);
	assert_int_equal(r->cfa_reg, DWARF_RBX);
	assert_int_equal(r->saved[SAVED_RA], ROW_AT_SP);
	assert_int_equal(r->saved[SAVED_FP], ROW_SAME);
	r = row_at(rows, count, fake.frame_codelet + 10);
	assert_int_equal(r->cfa_reg, DWARF_RBX);
	assert_int_equal(r->saved[SAVED_RA], ROW_IN_REG + 5); /* rdi */
}

static void test_function(void **state)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	uint64_t words[CODE_CAPTURE_WORDS] = { fake.inlined, 0 };
	AUTO(buf_fini) struct buf bytes = BUF_EMPTY;
	struct block_line l[BLOCK_NAMES_MAX_DEPTH];
	struct captured_function f;

	(void)state;
	assert_int_equal(code_hotspot.function(hotspot, &memory, 1, words, &f, names), 0);
	assert_true(holds(f.tokens));
	assert_int_equal(f.bytes, 20);
	assert_int_equal(block_names_write(names, &bytes), 0);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 0, false, l), 1);
	check_name(&l[0], "com.acme.Inner$In.twice", "Inner.java", 50);
	assert_int_equal(block_names_find(bytes.data, bytes.len, 9, false, l), 1);
	check_name(&l[0], "com.acme.Inner$In.twice", "Inner.java", 51);
	words[0] = FAKE_BASE + 17; /* no method */
	assert_int_not_equal(code_hotspot.function(hotspot, &memory, 1, words, &f, names), 0);
	words[0] = 0;
	assert_int_not_equal(code_hotspot.function(hotspot, &memory, 1, words, &f, names), 0);
}

/* A field's bytes up to the last one that was read, signed or not; no byte more, and no field that the version lacks. */
static void test_fields(void **state)
{
	static struct hotspot s;
	const uint8_t bytes[] = { 0xaa, 0xfe, 0xff, 0xff, 0xff };
	static const struct {
		struct hotspot_field_place place;
		size_t len;
		uint64_t value;
	} cases[] = {
		{ { 1, 4, true }, 5, (uint64_t)-2 },
		{ { 1, 4, false }, 5, 0xfffffffe },
		{ { 1, 4, false }, 4, 0 },
		{ { 1, 2, true }, 3, (uint64_t)-2 },
		{ { 1, 2, true }, 2, 0 },
		{ { 0, 1, false }, 1, 0xaa },
		{ { 0, 1, false }, 0, 0 },
		{ { 5, 1, false }, 5, 0 },
		{ { NO_FIELD, 4, false }, 5, 0 },
		{ { NO_FIELD, 1, false }, 1 << 17, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		s.field[F_BLOB_SIZE] = cases[i].place;
		assert_true(hotspot_get(&s, F_BLOB_SIZE, bytes, cases[i].len) == cases[i].value);
	}
	s.field[F_BLOB_SIZE] = (struct hotspot_field_place){ NO_FIELD, 4, false };
	assert_true(hotspot_read(&s, &memory, F_BLOB_SIZE, FAKE_BASE) == 0);
	s.field[F_BLOB_SIZE] = (struct hotspot_field_place){ 0, 4, false };
	assert_true(hotspot_read(&s, &memory, F_BLOB_SIZE, FAKE_BASE + FAKE_BYTES - 3) ==
		    0); /* its last byte is not there */
	fake.bytes[FAKE_BYTES - 4] = 7;
	assert_true(hotspot_read(&s, &memory, F_BLOB_SIZE, FAKE_BASE + FAKE_BYTES - 4) == 7);
}

static void test_budget(void **state)
{
	struct code_block b;

	(void)state;
	memory.reads_left = 3;
	assert_int_equal(code_hotspot.block(hotspot, &memory, fake.code, &b), -EDQUOT);
	assert_true(memory.is_spent);
}

static void all_is_as_written(void **state)
{
	static struct dumped what;

	(void)state;
	what = (struct dumped){ .reader = &code_hotspot,
				.facts = &fake.facts,
				.bias = FAKE_BASE,
				.from = FAKE_BASE + FAKE_HEAP,
				.to = FAKE_BASE + FAKE_HEAP + FAKE_HEAP_BYTES,
				.captured = { { 1, { fake.inlined } }, { 1, { fake.method } }, { 1, { FAKE_BASE + 17 } } },
				.read = fake_read,
				.arg = &fake };
	reader_is_as_written(&what, "code_hotspot.txt");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_is_as_written),     TEST(test_ranges),	      TEST(test_method_rows),  TEST(test_no_return),
		TEST(test_barrier_rows),     TEST(test_thaw_rows),    TEST(test_record_sizes), TEST(test_known_barrier),
		TEST(test_barrier_names),    TEST(test_method_names), TEST(test_death),	       TEST(test_interpreter_entry),
		TEST(test_interpreter_exit), TEST(test_function),     TEST(test_lies),	       TEST(test_fields),
		TEST(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
