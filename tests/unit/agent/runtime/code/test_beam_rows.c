/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Erlang's code, an instruction's form at a time: how far the return address is, and on whose stack. Code of a
 * function begins behind its name and the place for breakpoints; code of a fragment at once, and nobody knows who came
 * there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "agent/runtime/code/beam/beam_state.h"
#include "base/cleanup.h"
#include "bpf/event.h"

#include <errno.h>
#include <string.h>

#define START 0x7f0000001000ull

enum {
	HEAD = BEAM_CODE_INFO_BYTES + BEAM_PROLOGUE_BYTES,
	ROOM = 256,
	/* The module that blocks are of, in offsets from START. */
	MODULE = -0x800,
	MODULE_END = 0x800,
};

/* SP(n): the return address is n bytes above rsp; and so on. */
#define SP(n)                                \
	{                                    \
		ROW_CFA_REG, REG_SP, (n) + 8 \
	}
#define FP(n)                                \
	{                                    \
		ROW_CFA_REG, REG_FP, (n) + 8 \
	}
#define PROCESS(n)                                    \
	{                                             \
		ROW_CFA_SCHED, SCHED_RETURNS, (n) + 8 \
	}
#define SEARCHED                          \
	{                                 \
		ROW_CFA_TAGGED, REG_SP, 0 \
	}
#define ROOT                       \
	{                          \
		ROW_CFA_ROOT, 0, 0 \
	}
#define NONE                       \
	{                          \
		ROW_CFA_NONE, 0, 0 \
	}

struct rule {
	uint8_t cfa, reg;
	int32_t off;
};

struct expected {
	uint32_t at; /* offset of an instruction from the first one */
	struct rule rule;
};

static uint8_t memory[HEAD + ROOM];
static struct beam beam; /* what the reader knows: fragments */

static int read_memory(void *arg, uint64_t addr, void *dst, size_t len)
{
	const uint64_t off = addr - START;

	(void)arg;
	if (off > sizeof(memory) || len > sizeof(memory) - off)
		return -EFAULT;
	memcpy(dst, memory + off, len);
	return 0;
}

static int rows_of(const struct code_block *b, struct row **rows, size_t *count)
{
	struct code_memory m = {
		.read = read_memory, .reads_left = CODE_MAX_READS, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};

	return beam_rows(&beam, &m, b, rows, count);
}

/* A block of @kind with these instructions. */
static struct code_block block_of(enum beam_kind kind, const uint8_t *code, size_t len)
{
	const uint32_t head = kind == BEAM_FUNCTION ? HEAD : 0;
	struct code_block b = { .start = START, .end = START + head + len, .kind = kind };

	memset(memory, 0xcc, sizeof(memory));
	memcpy(memory + head, code, len);
	b.own[BEAM_OWN_HEADER] = START + MODULE;
	b.own[BEAM_OWN_MODULE_END] = START + MODULE_END;
	return b;
}

static void check_block(const struct code_block *b, const struct expected *expected, size_t count)
{
	const uint64_t head = b->kind == BEAM_FUNCTION ? HEAD : 0;
	AUTO_FREE struct row *rows = NULL;
	size_t row_count;

	assert_int_equal(rows_of(b, &rows, &row_count), 0);
	for (size_t i = 0; i < count; i++) {
		const uint64_t pc = START + head + expected[i].at;
		struct rule found = NONE;

		for (size_t k = 0; k < row_count; k++)
			if (pc >= rows[k].start && pc < rows[k].end)
				found = (struct rule){ rows[k].cfa, rows[k].cfa_reg, rows[k].cfa_off };
		if (found.cfa != expected[i].rule.cfa || found.reg != expected[i].rule.reg ||
		    found.off != expected[i].rule.off)
			fail_msg("at %u: %u, register %u, offset %d", expected[i].at, found.cfa, found.reg, found.off);
	}
}

#define CODE(...)	 ((const uint8_t[]){ __VA_ARGS__ })
#define BLOCK(kind, ...) block_of(kind, CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)))
#define EXPECT(block, ...)                                                                             \
	do {                                                                                           \
		const struct code_block expect_block = block;                                          \
		const struct expected expect_rows[] = { __VA_ARGS__ };                                 \
                                                                                                       \
		check_block(&expect_block, expect_rows, sizeof(expect_rows) / sizeof(expect_rows[0])); \
	} while (0)

#define SUB(n)	    0x48, 0x83, 0xec, n
#define ADD(n)	    0x48, 0x83, 0xc4, n
#define RET	    0xc3
#define UD2	    0x0f, 0x0b
#define CALL	    0xe8, 0, 0, 0, 0
#define TO_C	    0x48, 0x8d, 0x63, 0x80 /* lea rsp, [rbx - 0x80] */
#define KEEP	    0x48, 0x89, 0xe5	   /* mov rbp, rsp */
#define BACK	    0x48, 0x89, 0xec	   /* mov rsp, rbp */
#define BACK_OF	    0x49, 0x8b, 0x65, 0x58 /* mov rsp, [r13 + 0x58] */
#define JUMP(n)	    0xeb, n
#define LABEL(n)    0x48, 0x8d, 0x35, (n)&0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff
#define JUMP_FAR(n) 0xe9, (n)&0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff

/* --- depths --- */

static void test_push_and_pop(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, 0x50, 0x90, 0x58, RET), { 0, SP(0) }, { 1, SP(8) }, { 2, SP(8) }, { 3, SP(0) });
}

static void test_lea(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, 0x48, 0x8d, 0x64, 0x24, 0xf8, 0x90, 0x48, 0x8d, 0x64, 0x24, 0x08, RET), { 0, SP(0) },
	       { 5, SP(8) }, { 6, SP(8) }, { 11, SP(0) });
}

static void test_both_ways_of_a_branch(void **state)
{
	/* je over the first end to a second one */
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0x74, 0x05, ADD(8), RET, UD2), { 4, SP(8) }, { 6, SP(8) }, { 10, SP(0) },
	       { 11, SP(8) });
}

static void test_jump_inside(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), JUMP(2), UD2, ADD(16), UD2), { 4, SP(8) }, { 6, SEARCHED }, { 8, SP(8) },
	       { 12, SEARCHED } /* -8: it makes no sense */);
}

/* A process that waits goes on at a label that was taken before, with the same frame. */
static void test_label(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(16), LABEL(5), ADD(16), RET, 0x90, UD2), { 4, SP(16) }, { 16, SP(16) },
	       { 17, SP(16) });
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(16), KEEP, TO_C, LABEL(8), BACK, ADD(16), RET, 0x90, UD2), { 11, FP(16) },
	       { 26, SP(16) });
	/* what a jump leads to is known by that */
	EXPECT(BLOCK(BEAM_FUNCTION, LABEL(7), SUB(16), 0x74, 0x01, 0x90, 0x90, UD2), { 14, SP(16) }, { 15, SP(16) });
	EXPECT(BLOCK(BEAM_FUNCTION, LABEL(0x7fffff), RET, UD2), { 0, SP(0) }, { 8, SEARCHED }); /* of other code */
}

/* Code in front of a call that raises an error says nothing of the code behind it. */
static void test_call_without_return(void **state)
{
	enum { AT = 0x400, CALL_END = 9 };
	const int32_t off = AT - (HEAD + CALL_END);
	const uint8_t code[] = { 0x75, 7, RET, 0x90, 0xe8, off & 0xff, off >> 8 & 0xff, 0, 0, RET };
	const struct code_block b = block_of(BEAM_FUNCTION, code, sizeof(code));

	(void)state;
	beam.fragments[0] = (struct beam_fragment){ START + AT - 8, 1, "call_bif_shared" };
	beam.fragments[1] = (struct beam_fragment){ START + AT, 2, "raise_exception_shared" };
	beam.fragment_cnt = 2;
	check_block(&b, (const struct expected[]){ { 2, SP(0) }, { 3, SEARCHED }, { 4, SEARCHED }, { 9, SP(0) } }, 4);
	strcpy(beam.fragments[1].name, "call_light_bif_shared");
	check_block(&b, (const struct expected[]){ { 2, SP(0) }, { 3, SP(0) }, { 4, SP(0) }, { 9, SP(0) } }, 4);
	beam.fragment_cnt = 0;
}

/* A loop: what leads back is known as what it leads to. */
static void test_jump_back(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0x90, JUMP(0xfd)), { 4, SP(8) }, { 5, SP(8) });
}

/* A jump into the middle of an instruction leads nowhere. */
static void test_jump_between(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), JUMP(1), ADD(8), RET), { 4, SP(8) }, { 6, SP(8) }, { 10, SP(0) });
}

static void test_the_deepest_frame(void **state)
{
	/* sub rsp, 0x100000 - 1 and sub rsp, 0x100000 */
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, 0x48, 0x81, 0xec, 0xff, 0xff, 0x0f, 0x00, UD2), { 7, SP(0xfffff) });
	EXPECT(BLOCK(BEAM_FUNCTION, 0x48, 0x81, 0xec, 0x00, 0x00, 0x10, 0x00, UD2), { 0, SP(0) }, { 7, SEARCHED });
}

/* rsp from elsewhere ends what is known. */
static void test_rsp_from_elsewhere(void **state)
{
	/* mov rsp, rax */
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0x48, 0x89, 0xc4, 0x90, UD2), { 4, SP(8) }, { 7, SEARCHED });
}

/* Bytes that are no instruction have no row, and nothing leads over them. */
static void test_no_instruction(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0x06, UD2), { 0, SP(0) }, { 4, NONE }, { 5, SEARCHED });
}

static void test_ends(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), UD2, 0x90, RET), { 4, SP(8) }, { 6, SP(0) } /* by the return alone */);
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0xf4, 0x90, RET), { 4, SP(8) }, { 5, SP(0) });
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), 0xcc, 0x90, RET), { 4, SP(8) }, { 5, SP(0) });
}

/* --- code that is known by its end alone --- */

static void test_fragment_by_its_return(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FRAGMENT, 0x90, ADD(16), RET), { 0, SP(16) }, { 1, SP(16) }, { 5, SP(0) });
	EXPECT(BLOCK(BEAM_FRAGMENT, SUB(8), 0x90, UD2), { 0, SEARCHED }, { 4, SEARCHED }, { 5, SEARCHED });
}

/* A jump to a function of the module is an end with nothing of the frame left. */
static void test_jumps_to_the_module(void **state)
{
	enum { AT = 4, LEN = 5, END = AT + LEN };

	(void)state;
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(0x400 - END)), { 0, SP(8) }, { 4, SP(0) });
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(MODULE - END)), { 0, SP(8) }, { 4, SP(0) });
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(MODULE_END - 1 - END)), { 0, SP(8) }, { 4, SP(0) });
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(0)), { 0, SP(8) }, { 4, SP(0) }); /* right behind */
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(MODULE - 1 - END)), { 0, SEARCHED }, { 4, SEARCHED });
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), JUMP_FAR(MODULE_END - END)), { 0, SEARCHED }, { 4, SEARCHED });
}

/* Jumps whose target stands in a register or in memory: those through a table of the function's own places say nothing. */
static void test_jumps_to_what_is_told(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), 0xff, 0xe0), { 0, SP(8) });				/* rax */
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), 0xff, 0x20), { 0, SP(8) });				/* [rax] */
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), 0x42, 0xff, 0x24, 0xe5, 0, 0, 0, 0), { 0, SP(8) }); /* [r12 * 8] */
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), 0xff, 0x24, 0xc8), { 0, SEARCHED });		/* [rax + rcx * 8] */
	EXPECT(BLOCK(BEAM_FRAGMENT, ADD(8), 0xff, 0x25, 0, 0, 0, 0), { 0, SEARCHED });		/* [rip] */
}

/* Code of no module jumps anywhere: only a function's table of addresses is one that it is called by. */
static void test_jumps_of_no_module(void **state)
{
	static const uint8_t by_register[] = { ADD(8), 0xff, 0xe0 }, near[] = { ADD(8), JUMP_FAR(0x100) },
			     by_table[] = { ADD(8), 0x42, 0xff, 0x24, 0xe5, 0, 0, 0, 0 };
	static const struct expected searched = { 0, SEARCHED }, known = { 0, SP(8) };
	struct code_block b = block_of(BEAM_FRAGMENT, by_register, sizeof(by_register));

	(void)state;
	b.own[BEAM_OWN_HEADER] = b.own[BEAM_OWN_MODULE_END] = 0;
	check_block(&b, &searched, 1);
	b = block_of(BEAM_FRAGMENT, near, sizeof(near));
	b.own[BEAM_OWN_HEADER] = b.own[BEAM_OWN_MODULE_END] = 0;
	check_block(&b, &searched, 1);
	b = block_of(BEAM_FRAGMENT, by_table, sizeof(by_table));
	b.own[BEAM_OWN_HEADER] = b.own[BEAM_OWN_MODULE_END] = 0;
	check_block(&b, &known, 1);
}

/* --- the scheduler's stack --- */

static void test_there_and_back_by_rbp(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), KEEP, TO_C, CALL, BACK, ADD(8), RET), { 4, SP(8) }, { 7, SP(8) }, { 11, FP(8) },
	       { 16, FP(8) }, { 19, SP(8) }, { 23, SP(0) });
}

static void test_there_and_back_by_the_process(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, SUB(8), TO_C, CALL, BACK_OF, ADD(8), RET), { 4, SP(8) }, { 8, PROCESS(8) },
	       { 13, PROCESS(8) }, { 17, SP(8) }, { 21, SP(0) });
}

/* Two ways there, each with its own way back. */
static void test_two_ways_back(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, KEEP, TO_C, CALL, BACK, TO_C, CALL, BACK_OF, RET), { 7, FP(0) }, { 12, FP(0) },
	       { 15, SP(0) }, { 19, PROCESS(0) }, { 24, PROCESS(0) }, { 28, SP(0) });
}

/* Who never comes back is somewhere that no rule leads from. */
static void test_no_way_back(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FUNCTION, TO_C, CALL, UD2), { 0, SP(0) }, { 4, NONE }, { 9, NONE });
}

/* In a fragment that ends with a return both stacks are known from there back. */
static void test_fragment_on_both_stacks(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FRAGMENT, TO_C, CALL, BACK, RET), { 0, SP(0) }, { 4, FP(0) }, { 9, FP(0) }, { 12, SP(0) });
	EXPECT(BLOCK(BEAM_FRAGMENT, CALL, BACK_OF, UD2), { 0, { ROW_CFA_TAGGED, REG_PC, 0 } },
	       { 5, { ROW_CFA_TAGGED, REG_PC, 0 } }, { 9, SEARCHED });
	EXPECT(BLOCK(BEAM_FRAGMENT, CALL, BACK, UD2), { 0, { ROW_CFA_TAGGED, REG_FP, 0 } },
	       { 5, { ROW_CFA_TAGGED, REG_FP, 0 } }, { 8, SEARCHED });
}

/* and rsp, -16: the scheduler's loop is at the root until it goes to a process. */
static void test_the_schedulers_loop(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_FRAGMENT, 0x90, 0x48, 0x83, 0xe4, 0xf0, CALL, BACK_OF, RET), { 1, ROOT }, { 5, ROOT },
	       { 10, ROOT }, { 14, SP(0) });
}

/* --- the block --- */

static void test_root(void **state)
{
	(void)state;
	EXPECT(BLOCK(BEAM_ROOT, 0x06, SUB(8)), { 0, ROOT }, { 4, ROOT });
}

/* Neighbours of one rule are one row; the name of a function has none, the place for breakpoints has the rule of a call. */
static void test_rows_are_joined(void **state)
{
	struct code_block b = BLOCK(BEAM_FUNCTION, 0x50, 0x90, 0x90, 0x58, RET);
	AUTO_FREE struct row *rows = NULL;
	size_t count;

	(void)state;
	assert_int_equal(rows_of(&b, &rows, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(rows[0].start, START + BEAM_CODE_INFO_BYTES);
	assert_int_equal(rows[0].end, START + HEAD + 1);
	assert_int_equal(rows[1].start, START + HEAD + 1);
	assert_int_equal(rows[1].end, START + HEAD + 4);
	assert_int_equal(rows[2].start, START + HEAD + 4);
	assert_int_equal(rows[2].end, b.end);
	for (size_t i = 0; i < count; i++)
		for (int k = 0; k < SAVED_MAX; k++)
			assert_int_equal(rows[i].saved[k], k == SAVED_RA ? -8 : ROW_SAME);
}

static void test_no_block(void **state)
{
	struct code_block b = BLOCK(BEAM_FUNCTION, RET);
	struct row *rows = (struct row *)&b;
	size_t count = 7;

	(void)state;
	b.end = b.start;
	assert_int_equal(rows_of(&b, &rows, &count), -EBADMSG);
	assert_null(rows);
	assert_int_equal(count, 0);
	b.end = b.start - 1;
	assert_int_equal(rows_of(&b, &rows, &count), -EBADMSG);
	b.end = b.start + HEAD; /* no code */
	assert_int_equal(rows_of(&b, &rows, &count), -EBADMSG);
	b.end = b.start + HEAD + ROOM + 1; /* more than can be read */
	assert_int_equal(rows_of(&b, &rows, &count), -EFAULT);
	b.end = b.start + CODE_BLOCK_MAX_BYTES + 1;
	assert_int_equal(rows_of(&b, &rows, &count), -EBADMSG);
	assert_null(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_and_pop),
		cmocka_unit_test(test_lea),
		cmocka_unit_test(test_both_ways_of_a_branch),
		cmocka_unit_test(test_jump_inside),
		cmocka_unit_test(test_jump_back),
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_call_without_return),
		cmocka_unit_test(test_jump_between),
		cmocka_unit_test(test_the_deepest_frame),
		cmocka_unit_test(test_rsp_from_elsewhere),
		cmocka_unit_test(test_no_instruction),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_fragment_by_its_return),
		cmocka_unit_test(test_jumps_to_the_module),
		cmocka_unit_test(test_jumps_to_what_is_told),
		cmocka_unit_test(test_jumps_of_no_module),
		cmocka_unit_test(test_there_and_back_by_rbp),
		cmocka_unit_test(test_there_and_back_by_the_process),
		cmocka_unit_test(test_two_ways_back),
		cmocka_unit_test(test_no_way_back),
		cmocka_unit_test(test_fragment_on_both_stacks),
		cmocka_unit_test(test_the_schedulers_loop),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_rows_are_joined),
		cmocka_unit_test(test_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
