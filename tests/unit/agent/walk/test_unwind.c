/* SPDX-License-Identifier: Apache-2.0 */
/* The step of bpf/unwind.h on hand-made frames: each rule, each end, and the place of the registers in a signal frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/event.h"
#include "tests/unit/agent/stack_memory.h"
#include "tests/unit/descriptors.h"

enum { STACK = 0x7000, WORDS = 16 };

#define DEREF_OFFSETS(a, b) ((uint32_t)(uint16_t)(a) | (uint32_t)(uint16_t)(b) << 16)

/* All begin at pc 0x1234, fp 0x7040, on a stack whose word i is 0x100 + i, but for word 0, which leads to 0x7038, and word
 * 15, which is 0. After a step that ends the walk the registers are as before. */
static const struct {
	const char *name;
	uint64_t row, sp;
	uint32_t end; /* END_NONE: the walk goes on */
	uint64_t pc, caller_sp, fp;
} steps[] = {
	{ "entry of a function", ROW(0, RULE_CFA, BASE_SP, 0, 8), 0x7008, END_NONE, 0x101, 0x7010, 0x7040 },
	{ "with a frame", ROW(0, RULE_CFA, BASE_SP, 0, 0x30), 0x7010, END_NONE, 0x107, 0x7040, 0x7040 },
	{ "start does not matter", ROW(200, RULE_CFA, BASE_SP, 0, 0x30), 0x7010, END_NONE, 0x107, 0x7040, 0x7040 },
	{ "saved rbp", ROW(0, RULE_CFA, BASE_SP, -2, 0x30), 0x7010, END_NONE, 0x107, 0x7040, 0x106 },
	{ "saved rbp further down", ROW(0, RULE_CFA, BASE_SP, -6, 0x30), 0x7010, END_NONE, 0x107, 0x7040, 0x102 },
	{ "saved rbp above", ROW(0, RULE_CFA, BASE_SP, 3, 0x30), 0x7010, END_NONE, 0x107, 0x7040, 0x10b },
	{ "from rbp", ROW(0, RULE_CFA, BASE_FP, -2, 16), 0x7010, END_NONE, 0x109, 0x7050, 0x108 },
	{ "from rbp, down", ROW(0, RULE_CFA, BASE_FP, 0, -0x10), 0x7010, END_NONE, 0x105, 0x7030, 0x7040 },
	{ "frame pointer", ROW(0, RULE_FP, 0, -2, 0), 0x7010, END_NONE, 0x109, 0x7050, 0x108 },
	{ "realigned stack", ROW(0, RULE_DEREF, BASE_FP, 0, DEREF_OFFSETS(-0x40, 0x10)), 0x7010, END_NONE, 0x108, 0x7048,
	  0x7040 },
	{ "realigned, down", ROW(0, RULE_DEREF, BASE_FP, -3, DEREF_OFFSETS(-0x40, -8)), 0x7010, END_NONE, 0x105, 0x7030,
	  0x103 },
	{ "realigned, rbp where it points", ROW(0, RULE_DEREF, BASE_FP, ROW_FP_AT_FP, DEREF_OFFSETS(-0x40, 0x10)), 0x7010,
	  END_NONE, 0x108, 0x7048, 0x108 },
	{ "realigned, from rsp", ROW(0, RULE_DEREF, BASE_SP, 0, DEREF_OFFSETS(-8, 0)), 0x7008, END_NONE, 0x106, 0x7038,
	  0x7040 },
	{ "stub, pushed", ROW(0, RULE_PLT, 0, 0, 4), 0x7010, END_NONE, 0x103, 0x7020, 0x7040 },
	{ "stub, not yet pushed", ROW(0, RULE_PLT, 0, 0, 5), 0x7010, END_NONE, 0x102, 0x7018, 0x7040 },
	{ "last word", ROW(0, RULE_CFA, BASE_SP, 0, 0x70), 0x7010, END_ROOT, 0, 0, 0 },
	{ "beyond the stack", ROW(0, RULE_CFA, BASE_SP, 0, 0x78), 0x7010, END_BAD_MEMORY, 0, 0, 0 },
	{ "below the stack", ROW(0, RULE_CFA, BASE_SP, 0, 8), 0x6ff0, END_BAD_MEMORY, 0, 0, 0 },
	{ "rbp not readable", ROW(0, RULE_CFA, BASE_SP, 9, 0x30), 0x7010, END_BAD_MEMORY, 0, 0, 0 },
	{ "pointer to the frame not readable", ROW(0, RULE_DEREF, BASE_FP, 0, DEREF_OFFSETS(-0x48, 0)), 0x7010,
	  END_BAD_MEMORY, 0, 0, 0 },
	{ "from rbp, on a stack below", ROW(0, RULE_CFA, BASE_FP, -2, -0x10), 0x7048, END_NONE, 0x105, 0x7030, 0x104 },
	{ "realigned, on a stack below", ROW(0, RULE_DEREF, BASE_FP, 0, DEREF_OFFSETS(-0x40, 0x10)), 0x7060, END_NONE, 0x108,
	  0x7048, 0x7040 },
	{ "the goroutine resumes", ROW(0, RULE_SCHED, SCHED_RESUMES, 0, 0), 0x7060, END_NONE, 0x999, 0x7020, 0x7028 },
	{ "the goroutine called", ROW(0, RULE_SCHED, SCHED_RETURNS, 0, 8), 0x7060, END_NONE, 0x104, 0x7028, 0x7028 },
	{ "the goroutine called, its depth", ROW(0, RULE_SCHED, SCHED_RETURNS_DEPTH, 0, 0x10), 0x7060, END_NONE, 0x106,
	  0x7038, 0x7040 },
	{ "depth not readable", ROW(0, RULE_SCHED, SCHED_RETURNS_DEPTH, 0, 0x20), 0x7060, END_BAD_MEMORY, 0, 0, 0 },
	{ "frame pointer below", ROW(0, RULE_FP, 0, -2, 0), 0x7050, END_NO_PROGRESS, 0, 0, 0 },
	{ "one byte is progress", ROW(0, RULE_FP, 0, -2, 0), 0x704f, END_NONE, 0x109, 0x7050, 0x108 },
	{ "root", ROW(0, RULE_ROOT, 0, 0, 0), 0x7010, END_ROOT, 0, 0, 0 },
	{ "root of returns, run", ROW(0, RULE_ROOT, ROOT_OF_RETURNS, 0, 0), 0x7010, END_USER_RULE, 0, 0, 0 },
	{ "no table", ROW(0, RULE_NONE, 0, 0, 0), 0x7010, END_NO_RULE, 0, 0, 0 },
	{ "for user space", ROW(0, RULE_USER, 0, 0, 0), 0x7010, END_USER_RULE, 0, 0, 0 },
	{ "a rule of tomorrow", ROW(0, 15, 0, 0, 0), 0x7010, END_NO_RULE, 0, 0, 0 },
	{ "signal frame cut off", ROW(0, RULE_SIGNAL, 0, 0, 0), 0x7010, END_BAD_MEMORY, 0, 0, 0 },
};

static void test_steps(void **state)
{
	uint64_t words[WORDS];
	struct unwind_memory memory = {
		words, STACK, sizeof(words), { .pc = 0x999, .sp = 0x7020, .fp = 0x7028, .stack_hi = 0x7060 }
	};

	(void)state;
	for (uint64_t i = 0; i < WORDS; i++)
		words[i] = 0x100 + i;
	words[0] = 0x7038;
	words[14] = 0x30;
	words[WORDS - 1] = 0;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		bool ends = steps[i].end != END_NONE;
		struct unwind_state s = { .pc = 0x1234, .sp = steps[i].sp, .fp = 0x7040, .exact = 1 };

		print_message("%s\n", steps[i].name);
		assert_int_equal(unwind_step(&s, steps[i].row, &memory), ends);
		assert_int_equal(s.end, steps[i].end);
		assert_int_equal(s.pc, ends ? 0x1234 : steps[i].pc);
		assert_int_equal(s.sp, ends ? steps[i].sp : steps[i].caller_sp);
		assert_int_equal(s.fp, ends ? 0x7040 : steps[i].fp);
		assert_int_equal(s.exact, ends);
	}
}

static void test_root_of_returns(void **state)
{
	struct unwind_memory memory = { 0 };
	struct unwind_state s = { .pc = 0x1234, .sp = 0x7010 };

	(void)state;
	assert_int_equal(unwind_step(&s, ROW(0, RULE_ROOT, ROOT_OF_RETURNS, 0, 0), &memory), 1);
	assert_int_equal(s.end, END_ROOT);
}

/* Every frame pointer saved with a return address beside it: the chain of three, then the zero that ends it. */
static void test_chain(void **state)
{
	uint64_t words[WORDS] = { [2] = 0x7028, 0xa1, [5] = 0x7060, 0xa2, [12] = 0, 0 };
	struct unwind_memory memory = { words, STACK, sizeof(words), { 0 } };
	struct unwind_state s = { .pc = 0xa0, .sp = STACK, .fp = STACK + 16, .exact = 1 };
	uint64_t row = ROW(0, RULE_FP, 0, -2, 0), pcs[4], count = 0;

	(void)state;
	do
		pcs[count++] = s.pc;
	while (count < ARRAY_LEN(pcs) && !unwind_step(&s, row, &memory));
	assert_int_equal(count, 3);
	assert_true(pcs[0] == 0xa0 && pcs[1] == 0xa1 && pcs[2] == 0xa2);
	assert_true(s.end == END_ROOT && s.sp == STACK + 0x38 && s.fp == STACK + 0x60);
}

/* A stack pointer that rises and falls for ever ends the walk; one that stands still as well. */
static void test_falls(void **state)
{
	uint64_t words[WORDS] = { [1] = 0xa1, [2] = 0x7018, [3] = 0xa2 };
	struct unwind_memory memory = { words, STACK, sizeof(words), { 0 } };
	uint64_t rows[] = { ROW(0, RULE_CFA, BASE_FP, 0, 0x10), ROW(0, RULE_CFA, BASE_FP, 0, 0x20) };
	struct unwind_state s = { .pc = 0xa0, .sp = STACK + 0x18, .fp = STACK };
	int count = 0;

	(void)state;
	while (!unwind_step(&s, rows[count % 2], &memory))
		assert_true(count++ < 100);
	assert_int_equal(s.end, END_NO_PROGRESS);
	assert_in_range(count, 2 * UNWIND_MAX_FALLS, 2 * UNWIND_MAX_FALLS + 1);
	s = (struct unwind_state){ .pc = 0xa0, .sp = STACK + 0x10, .fp = STACK };
	for (count = 0; !unwind_step(&s, rows[0], &memory); count++)
		assert_true(count < 100);
	assert_true(s.end == END_NO_PROGRESS && count == UNWIND_MAX_FALLS);

	/* who lets the scheduler go on may have let the goroutine go already; who returns must find it */
	s = (struct unwind_state){ .pc = 0xa0, .sp = STACK };
	assert_int_equal(unwind_step(&s, ROW(0, RULE_SCHED, SCHED_RESUMES, 0, 0), &memory), 1);
	assert_int_equal(s.end, END_ROOT);
	assert_int_equal(unwind_step(&s, ROW(0, RULE_SCHED, SCHED_RETURNS, 0, 8), &memory), 1);
	assert_int_equal(s.end, END_BAD_MEMORY);
	/* the depth needs the stack's end alone: gogo forgets the sp of who goes on */
	assert_int_equal(unwind_step(&s, ROW(0, RULE_SCHED, SCHED_RETURNS_DEPTH, 0, 0x20), &memory), 1);
	assert_int_equal(s.end, END_BAD_MEMORY);
	memory.sched.stack_hi = STACK + 0x40;
	words[4] = 0x28;
	s = (struct unwind_state){ .pc = 0xa0, .sp = STACK };
	assert_int_equal(unwind_step(&s, ROW(0, RULE_SCHED, SCHED_RETURNS_DEPTH, 0, 0x20), &memory), 0);
	assert_true(s.sp == STACK + 0x20 && s.pc == 0xa2);
}

/* rt_sigreturn finds the ucontext at rsp; its layout as the C library declares it. */
static void test_signal_frame(void **state)
{
	static const uint64_t row = ROW(0, RULE_SIGNAL, 0, 0, 0);
	ucontext_t context;
	struct unwind_memory memory = { &context, STACK, sizeof(context), { 0 } };
	size_t needed = offsetof(ucontext_t, uc_mcontext.gregs) + 8 * (REG_RIP + 1);

	(void)state;
	assert_int_equal(SIGNAL_FP, offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RBP);
	assert_int_equal(SIGNAL_SP, offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RSP);
	assert_int_equal(SIGNAL_PC, offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RIP);
	memset(&context, 0x11, sizeof(context));
	context.uc_mcontext.gregs[REG_RIP] = 0x5555;
	context.uc_mcontext.gregs[REG_RSP] = 0x6000; /* below: the handler had a stack of its own */
	context.uc_mcontext.gregs[REG_RBP] = 0x6010;
	for (memory.bytes = 0; memory.bytes <= sizeof(context); memory.bytes++) {
		struct unwind_state s = { .pc = 1, .sp = STACK, .fp = 2 };

		if (memory.bytes < needed) {
			assert_int_equal(unwind_step(&s, row, &memory), 1);
			assert_true(s.end == END_BAD_MEMORY && s.pc == 1 && s.sp == STACK && s.fp == 2 && !s.exact);
		} else {
			assert_int_equal(unwind_step(&s, row, &memory), 0);
			assert_true(s.pc == 0x5555 && s.sp == 0x6000 && s.fp == 0x6010 && s.exact);
		}
	}
}

/* The search of a fixed number of steps against one from the front. */
static void test_search(void **state)
{
	(void)state;
	srandom(3);
	for (int round = 0; round < 2000; round++) {
		__u64 rows[BLOCK_ROWS];
		uint32_t count = 1 + (uint32_t)random() % BLOCK_ROWS, first = (uint32_t)random() % 16;

		for (uint32_t i = 0; i < BLOCK_ROWS; i++) /* what stands behind the count must not be seen */
			rows[i] = i < count ? ROW(first + 31 * i, RULE_CFA, 0, 0, i) : 0;
		for (uint32_t offset = first; offset < CODE_BLOCK_BYTES; offset++) {
			uint32_t expected = 0;

			while (expected + 1 < count && ROW_START(rows[expected + 1]) <= offset)
				expected++;
			assert_int_equal(unwind_search(rows, count, offset), rows[expected]);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps), cmocka_unit_test(test_root_of_returns), cmocka_unit_test(test_chain),
		cmocka_unit_test(test_falls), cmocka_unit_test(test_signal_frame),    cmocka_unit_test(test_search),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
