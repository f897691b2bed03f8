/* SPDX-License-Identifier: Apache-2.0 */
/* Plain instructions of x86-64: whatever is taken for one does to a state what it does if Zydis decodes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/plain_x86_64.h"
#include "agent/rows/code/state_x86_64.h"
#include "base/cleanup.h"

enum { BYTES = 24, ADDR = 0x400000, STATES = 32 };

static struct code_state states[STATES];

/* A value that a register may have in a state. */
static int32_t some_value(void)
{
	static const int32_t marks[] = { CODE_UNKNOWN, CODE_ENTRY, CODE_OUTMOST, CODE_RETURN, CODE_RESULT };

	switch (rand() % 4) {
	case 0:
		return -8 * (rand() % 32);
	case 1:
		return CODE_ALIGNED - 8 * (rand() % 32);
	default:
		return marks[(size_t)rand() % ARRAY_LEN(marks)];
	}
}

static int make_states(void **state)
{
	(void)state;
	srand(1);
	states[0] = code_state_entry;
	states[1] = *code_state_in_frame;
	for (int i = 2; i < STATES; i++) {
		struct code_state *s = &states[i];

		*s = code_state_entry;
		for (int r = 0; r < CODE_REGS; r++)
			s->reg[r] = some_value();
		for (int r = 0; r < CODE_SAVED; r++)
			s->slot[r] = some_value();
		s->cfa_slot = some_value();
		s->return_slot = some_value();
		s->kept_rsp = some_value();
		s->has_syscall = rand() % 2;
		s->has_pushed = rand() % 2;
		s->may_be_popped = rand() % 2;
		s->makes_room = rand() % 2;
		s->no_return = rand() % 2;
		s->compared = rand() % 4 ? NO_REG : rand() % CODE_REGS;
	}
	return 0;
}

static void differs(const uint8_t *code, const char *what)
{
	char text[3 * BYTES + 1];

	for (int i = 0; i < 15; i++)
		snprintf(text + 3 * i, 4, "%02x ", code[i]);
	fail_msg("%s: %s", text, what);
}

/* Both ways from some state. Returns whether the instruction is plain. */
static bool check(const uint8_t *code)
{
	static uint32_t turn;
	const struct code_state *from = &states[turn++ % STATES];
	struct code_state by_zydis = *from, ours = *from;
	struct code_step step, our_step;
	struct plain p;

	if (!plain_decode(code, BYTES, &p))
		return false;
	memset(&step, 0, sizeof(step));
	memset(&our_step, 0, sizeof(our_step));
	if (state_step_by_zydis(code, BYTES, ADDR, &by_zydis, &step))
		differs(code, "this is no instruction");
	if (code_state_step(code, BYTES, ADDR, &ours, &our_step))
		differs(code, "refused");
	if (p.length_bytes != step.length_bytes)
		differs(code, "another length");
	if (our_step.length_bytes != step.length_bytes || our_step.goes_on != step.goes_on ||
	    our_step.is_call != step.is_call || our_step.is_indirect_jump != step.is_indirect_jump ||
	    our_step.is_trap != step.is_trap || our_step.equals_rsp != step.equals_rsp ||
	    our_step.is_contradiction != step.is_contradiction || our_step.is_in_frame != step.is_in_frame ||
	    our_step.gives_up_frame != step.gives_up_frame || our_step.has_target != step.has_target ||
	    (step.has_target && our_step.target != step.target) ||
	    (step.is_call && our_step.call_target != step.call_target))
		differs(code, "another step");
	if (memcmp(&ours, &by_zydis, sizeof(ours)) != 0)
		differs(code, "another state");
	if (plain_decode(code, p.length_bytes - 1u, &p))
		differs(code, "it is cut");
	return true;
}

/* All operands behind the @at bytes of @code that are there. Returns how many of them are plain. */
static uint32_t check_operands(uint8_t *code, size_t at)
{
	enum { SIBS = 12 };
	uint32_t plain = 0;

	for (int modrm = 0; modrm < 256; modrm++) {
		int more = (modrm & 7) == 4 && modrm < 0xc0 ? SIBS : 1;

		code[at] = (uint8_t)modrm;
		for (int i = 0; i < more; i++) {
			for (size_t k = at + 1; k < BYTES; k++)
				code[k] = (uint8_t)rand();
			if (i < 4) /* without a base, or without an index */
				code[at + 1] = (uint8_t)((code[at + 1] & (i & 1 ? 0xc7 : 0xf8)) | (i & 1 ? 0x20 : 5));
			plain += check(code);
		}
	}
	return plain;
}

static uint32_t check_all(bool is_second)
{
	uint32_t plain = 0;

	for (int rex = 0x3f; rex < 0x50; rex++) {
		for (int op = 0; op < 256; op++) {
			uint8_t code[BYTES] = { 0 };
			size_t at = 0;

			if (rex >= 0x40)
				code[at++] = (uint8_t)rex;
			if (is_second)
				code[at++] = 0x0f;
			code[at++] = (uint8_t)op;
			plain += check_operands(code, at);
		}
	}
	return plain;
}

static void test_first_map(void **state)
{
	(void)state;
	assert_in_range(check_all(false), 400000, 1500000);
}

static void test_second_map(void **state)
{
	(void)state;
	assert_in_range(check_all(true), 200000, 1500000);
}

/* Instructions that compilers make all the time are plain; such as tell where rsp is are not. */
static void test_which(void **state)
{
	static const struct {
		uint8_t code[8];
		uint8_t length; /* 0: it is not plain */
	} cases[] = {
		{ { 0x48, 0x89, 0xc3 }, 3 },			     /* mov rbx, rax */
		{ { 0x8b, 0x44, 0x24, 0x10 }, 4 },		     /* mov eax, [rsp+16] */
		{ { 0x48, 0x8d, 0x05, 1, 2, 3, 4 }, 7 },	     /* lea rax, [rip+...] */
		{ { 0x41, 0x83, 0xc0, 1 }, 4 },			     /* add r8d, 1 */
		{ { 0x85, 0xc0 }, 2 },				     /* test eax, eax */
		{ { 0x0f, 0x84, 1, 2, 3, 4 }, 6 },		     /* je */
		{ { 0xeb, 0xfe }, 2 },				     /* jmp */
		{ { 0xe8, 1, 2, 3, 4 }, 5 },			     /* call */
		{ { 0x0f, 0xb6, 0xc0 }, 3 },			     /* movzx eax, al */
		{ { 0x0f, 0x1f, 0x44, 0, 0 }, 5 },		     /* nop */
		{ { 0x48, 0x83, 0xec, 0x20 }, 0 },		     /* sub rsp, 32 */
		{ { 0x48, 0x89, 0xe5 }, 0 },			     /* mov rbp, rsp */
		{ { 0x48, 0x89, 0x20 }, 0 },			     /* mov [rax], rsp */
		{ { 0x48, 0x39, 0xe0 }, 0 },			     /* cmp rax, rsp */
		{ { 0x31, 0xed }, 0 },				     /* xor ebp, ebp */
		{ { 0x55 }, 0 },				     /* push rbp */
		{ { 0xc3 }, 0 },				     /* ret */
		{ { 0xf0, 0x48, 0x0f, 0xb1, 0x0e }, 0 },	     /* lock cmpxchg */
		{ { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0 }, 0 }, /* mov rax, fs:... */
		{ { 0xff, 0xd0 }, 0 },				     /* call rax */
	};
	struct plain p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_plain = plain_decode(cases[i].code, sizeof(cases[i].code), &p);

		assert_int_equal(is_plain ? p.length_bytes : 0, cases[i].length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_map),
		cmocka_unit_test(test_second_map),
		cmocka_unit_test(test_which),
	};

	return cmocka_run_group_tests(tests, make_states, NULL);
}
