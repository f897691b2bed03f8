/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64: packed rows and the step over them, with lr, signed return addresses and frames known by their pointer alone; and
 * rows from instructions, of functions whose frames are told here by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/walk/blocks.h"
#include "agent/rows/code/flow.h"
#include "base/cleanup.h"
#include "tests/unit/agent/stack_memory.h"

enum { STACK = 0x7000, WORDS = 16 };

/* --- rows and steps --- */

static struct row a_row(uint8_t reg, int32_t cfa, int32_t fp, int32_t ra)
{
	struct row row = { .cfa = ROW_CFA_REG, .cfa_reg = reg, .cfa_off = cfa };

	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = ROW_SAME;
	row.saved[SAVED_FP] = fp;
	row.saved[SAVED_RA] = ra;
	return row;
}

static void test_packing(void **state)
{
	static const struct {
		uint8_t reg;
		int32_t cfa, fp, ra;
		uint32_t rule;
	} cases[] = {
		{ REG_SP, 0, ROW_SAME, ROW_SAME, RULE_CFA },
		{ REG_SP, 32, -32, -24, RULE_CFA },
		{ REG_FP, 48, -48, -40, RULE_CFA },
		{ REG_SP, 262136, ROW_SAME, -262136, RULE_CFA },
		{ REG_SP, 262144, ROW_SAME, -16, RULE_USER },
		{ REG_SP, 32, -32, -262152, RULE_USER },
		{ REG_SP, 20, ROW_SAME, ROW_SAME, RULE_USER },
		{ 9, 32, -32, -24, RULE_USER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct row row = a_row(cases[i].reg, cases[i].cfa, cases[i].fp, cases[i].ra);
		uint64_t packed = block_pack_row(&row, 7);

		assert_int_equal(ROW_RULE(packed), cases[i].rule);
		assert_int_equal(ROW_START(packed), 7);
		if (cases[i].rule != RULE_CFA)
			continue;
		assert_int_equal(ROW_CFA(packed), cases[i].cfa);
		assert_int_equal(ROW_RA_IN_LR(packed), cases[i].ra == ROW_SAME);
		if (cases[i].ra != ROW_SAME)
			assert_int_equal(ROW_RA(packed), cases[i].ra);
	}
}

static uint64_t packed_row(uint8_t reg, int32_t cfa, int32_t fp, int32_t ra)
{
	struct row row = a_row(reg, cfa, fp, ra);

	return block_pack_row(&row, 0);
}

static void test_steps(void **state)
{
	uint64_t words[WORDS] = { [2] = 0x7060, [3] = 0x0055aaaa00001234, [12] = 0, [13] = 0xaaaa00005678 };
	struct unwind_memory memory = { words, STACK, sizeof(words), { 0 } };
	struct unwind_state s = { .pc = 0x1000, .sp = STACK, .fp = 0x7010, .lr = 0x007faaaa00004444, .exact = 1 };

	(void)state;
	/* a leaf without a frame: lr, without its signature; sp may stand still, and is no fall */
	assert_int_equal(unwind_step(&s, packed_row(REG_SP, 0, ROW_SAME, ROW_SAME), &memory), 0);
	assert_true(s.pc == 0xaaaa00004444 && s.sp == STACK && s.fp == 0x7010 && !s.lr && !s.exact && !s.falls);
	/* lr says nothing any more */
	assert_int_equal(unwind_step(&s, packed_row(REG_SP, 0, ROW_SAME, ROW_SAME), &memory), 1);
	assert_int_equal(s.end, END_NO_RULE);
	/* by the frame pointer alone: sp is only a lower bound, and the next frame's comes from the record that fp points at
	 */
	assert_int_equal(unwind_step(&s, ROW_FRAME_POINTER, &memory), 0);
	assert_true(s.pc == 0xaaaa00001234 && s.fp == 0x7060 && s.lost_sp);
	assert_int_equal(unwind_step(&s, packed_row(REG_SP, 16, ROW_SAME, -8), &memory), 1);
	assert_int_equal(s.end, END_NO_RULE);
	assert_int_equal(unwind_step(&s, packed_row(REG_SP, 0x30, -0x20, -0x18), &memory), 0);
	assert_true(s.pc == 0xaaaa00005678 && s.sp == 0x7080 && s.fp == 0 && !s.lost_sp);
	/* a thread's first frame */
	s = (struct unwind_state){ .pc = 0x1000, .sp = STACK, .exact = 1 };
	assert_int_equal(unwind_step(&s, packed_row(REG_SP, 0, ROW_SAME, ROW_SAME), &memory), 1);
	assert_int_equal(s.end, END_ROOT);
}

/* A frame of a runtime, whose record fp points at, and the caller's sp below it: lr says nothing of it. */
static void test_frame_of_runtime(void **state)
{
	uint64_t words[WORDS] = { [3] = 0x7070, [4] = 0x7080, [5] = 0x007faaaa00001234 };
	struct unwind_memory memory = { words, STACK, sizeof(words), { 0 } };
	struct unwind_state s = { .pc = 0x1000, .sp = STACK, .fp = 0x7020, .lr = 0xaaaa00004444, .exact = 1 };
	struct row row = a_row(REG_FP, -8, ROW_AT_FP, ROW_AT_FP + 8);
	uint64_t packed;

	(void)state;
	row.cfa = ROW_CFA_DEREF;
	row.capture = 3;
	packed = block_pack_row(&row, 0);
	assert_int_equal(ROW_RULE(packed), RULE_FRAME);
	assert_int_equal(ROW_BASE(packed), FRAME_DEREF);
	assert_int_equal(ROW_FP(packed), 3);
	assert_int_equal(unwind_step(&s, packed, &memory), 0);
	assert_true(s.pc == 0xaaaa00001234 && s.sp == 0x7070 && s.fp == 0x7080 && !s.lr && !s.lost_sp && !s.exact &&
		    !s.falls);
	s = (struct unwind_state){ .pc = 0x1000, .sp = STACK, .fp = 0x7020, .lost_sp = 1 }; /* nor does a lost sp matter */
	assert_int_equal(unwind_step(&s, packed, &memory), 0);
	assert_true(s.pc == 0xaaaa00001234 && s.sp == 0x7070 && !s.lost_sp);
	s = (struct unwind_state){ .pc = 0x1000, .sp = STACK, .fp = 0x7000 }; /* no return address: the first frame */
	words[1] = 0;
	words[0] = 0x7070;
	row.cfa_off = 24;
	assert_int_equal(unwind_step(&s, block_pack_row(&row, 0), &memory), 1);
	assert_int_equal(s.end, END_ROOT);
}

static void test_signal(void **state)
{
	uint64_t words[(SIGNAL_PC + 8) / 8] = {
		[SIGNAL_FP / 8] = 1, [SIGNAL_LR / 8] = 2, [SIGNAL_SP / 8] = 3, [SIGNAL_PC / 8] = 4
	};
	struct unwind_memory memory = { words, STACK, sizeof(words), { 0 } };
	struct unwind_state s = { .pc = 0x1000, .sp = STACK };

	(void)state;
	assert_int_equal(unwind_step(&s, ROW(0, RULE_SIGNAL, 0, 0, 0), &memory), 0);
	assert_true(s.pc == 4 && s.sp == 3 && s.fp == 1 && s.lr == 2 && s.exact);
}

/* --- instructions --- */

static const uint32_t framed[] = {
	0xd503233f, /* paciasp */
	0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
	0x910003fd, /* mov x29, sp */
	0xf9000bf3, /* str x19, [sp, #16] */
	0x94000064, /* bl elsewhere */
	0xf9400bf3, /* ldr x19, [sp, #16] */
	0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
	0xd50323bf, /* autiasp */
	0xd65f03c0, /* ret */
};
static const uint32_t plain[] = {
	0xd10083ff, /* sub sp, sp, #32 */
	0xf9000ffe, /* str x30, [sp, #24] */
	0xa90077f3, /* stp x19, x29, [sp] */
	0xd282471d, /* mov x29, #0x1238: no pointer */
	0x94000064, /* bl elsewhere */
	0xa94077f3, /* ldp x19, x29, [sp] */
	0xf9400ffe, /* ldr x30, [sp, #24] */
	0x910083ff, /* add sp, sp, #32 */
	0xd65f03c0, /* ret */
};

/* At each instruction: the CFA's register and offset, where lr and x29 are. */
struct truth {
	uint8_t reg;
	int32_t cfa, ra, fp;
};

static const struct truth framed_truth[] = {
	{ REG_SP, 0, ROW_SAME, ROW_SAME }, { REG_SP, 0, ROW_SAME, ROW_SAME }, { REG_SP, 32, -24, -32 },
	{ REG_FP, 32, -24, -32 },	   { REG_FP, 32, -24, -32 },	      { REG_FP, 32, -24, -32 },
	{ REG_FP, 32, -24, -32 },	   { REG_SP, 0, ROW_SAME, ROW_SAME }, { REG_SP, 0, ROW_SAME, ROW_SAME },
};
static const struct truth plain_truth[] = {
	{ REG_SP, 0, ROW_SAME, ROW_SAME }, { REG_SP, 32, ROW_SAME, ROW_SAME },
	{ REG_SP, 32, -8, ROW_SAME },	   { REG_SP, 32, -8, -24 },
	{ REG_SP, 32, -8, -24 },	   { REG_SP, 32, -8, -24 },
	{ REG_SP, 32, -8, -24 },	   { REG_SP, 32, -8, -24 },
	{ REG_SP, 0, ROW_SAME, ROW_SAME },
};

static void check_function(const uint32_t *insns, size_t count, const struct truth *truth)
{
	const struct code_function f = { 0x1000, 0x1000 + 4 * count, (const uint8_t *)insns, true, false };
	AUTO_FREE struct row *rows = NULL;
	size_t n;

	assert_int_equal(code_flow_rows(&f, &rows, &n, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		const struct row *row = NULL;

		for (size_t r = 0; r < n; r++)
			if (0x1000 + 4 * i >= rows[r].start && 0x1000 + 4 * i < rows[r].end)
				row = &rows[r];
		if (!row || row->cfa != ROW_CFA_REG || row->cfa_reg != truth[i].reg || row->cfa_off != truth[i].cfa)
			fail_msg("instruction %zu: another CFA", i);
		/* what has been given back may be told by either place until sp moves */
		if (row->saved[SAVED_RA] != truth[i].ra && !(row->saved[SAVED_RA] == ROW_SAME && i > count / 2))
			fail_msg("instruction %zu: lr at %d", i, row->saved[SAVED_RA]);
		if (row->saved[SAVED_FP] != truth[i].fp && !(row->saved[SAVED_FP] == ROW_SAME && i > count / 2))
			fail_msg("instruction %zu: x29 at %d", i, row->saved[SAVED_FP]);
	}
}

static void test_instructions(void **state)
{
	(void)state;
	check_function(framed, ARRAY_LEN(framed), framed_truth);
	check_function(plain, ARRAY_LEN(plain), plain_truth);
}

static void test_calls(void **state)
{
	static const uint32_t calls[] = { 0x94000064, 0xd63f0000, 0xd73f0801 }; /* bl, blr x0, blraa x0, x1 */
	static const uint32_t others[] = { 0x14000064, 0xd61f0220, 0xd65f03c0, 0xd503201f, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		assert_true(code_is_call((const uint8_t *)&calls[i], 4));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(code_is_call((const uint8_t *)&others[i], 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packing),		 cmocka_unit_test(test_steps),	      cmocka_unit_test(test_signal),
		cmocka_unit_test(test_frame_of_runtime), cmocka_unit_test(test_instructions), cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
