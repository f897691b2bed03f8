/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of USDT's notes and of calls: which register or memory they mean, and what no number can be had of. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/probe/probe_args.h"
#include "base/cleanup.h"

#ifdef __x86_64__
enum { FIRST = 112 /* rdi */, SECOND = 104 /* rsi */, RETURNED = 80 /* rax */, BASE = 32 /* rbp */, INDEX = 80, SP = 152 };
static const char all[] = "-4@%edi 8@-12(%rbp) 1@$5 2@-8(%rbp,%rax,4) 8@%r10 4@(%rsp) -8@$-7";
static const char *const strange[] = { "8f@%xmm0",   "4@counter(%rip)", "3@%rdi",  "8@",
				       "8@%nothing", "8@4(%rbp",	"16@%rdi", "8@%rdi+1" };
#else
enum { FIRST = 0, SECOND = 8, RETURNED = 0, BASE = 29 * 8, SP = 31 * 8 };
static const char all[] = "-4@w0 8@[x29, -12] 1@5";
static const char *const strange[] = { "8f@d0", "4@[counter]", "3@x0", "8@", "8@nothing", "8@[sp, 4", "16@x0" };
#endif

static struct probe_arg note(uint32_t number)
{
	struct probe_arg arg;

	assert_int_equal(probe_arg_of_note(all, number, &arg), 0);
	return arg;
}

static void test_notes(void **state)
{
	struct probe_arg arg = note(0);

	(void)state;
	assert_true(arg.kind == PROBE_ARG_REGISTER && arg.bytes == -4 && arg.reg == FIRST);
	arg = note(1);
	assert_true(arg.kind == PROBE_ARG_MEMORY && arg.bytes == 8 && arg.reg == BASE && arg.value == -12);
	assert_int_equal(arg.index, PROBE_NO_REGISTER);
	arg = note(2);
	assert_true(arg.kind == PROBE_ARG_CONSTANT && arg.bytes == 1 && arg.value == 5);
#ifdef __x86_64__
	arg = note(3);
	assert_true(arg.kind == PROBE_ARG_MEMORY && arg.bytes == 2 && arg.reg == BASE && arg.value == -8);
	assert_true(arg.index == INDEX && arg.scale == 2);
	assert_true(note(4).reg == 56 && note(5).reg == SP && note(5).kind == PROBE_ARG_MEMORY && !note(5).value);
	assert_true(note(6).value == -7 && note(6).bytes == -8);
	assert_int_equal(probe_arg_of_note(all, 7, &arg), -ENOENT);
	for (uint8_t scale = 0; scale < 4; scale++) {
		char text[32];

		snprintf(text, sizeof(text), "4@(%%rbp,%%rax,%d)", 1 << scale);
		assert_int_equal(probe_arg_of_note(text, 0, &arg), 0);
		assert_int_equal(arg.scale, scale);
	}
#endif
	assert_int_equal(probe_arg_of_note("", 0, &arg), -ENOENT);
	assert_int_equal(probe_arg_of_note(all, 200, &arg), -ENOENT);
	for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
		print_message("%s\n", strange[i]);
		assert_int_equal(probe_arg_of_note(strange[i], 0, &arg), -ENOTSUP);
	}
}

static void test_calls(void **state)
{
	struct probe_arg arg;

	(void)state;
	assert_int_equal(probe_arg_of_call(0, &arg), 0);
	assert_true(arg.kind == PROBE_ARG_REGISTER && arg.reg == FIRST);
	assert_int_equal(probe_arg_of_call(1, &arg), 0);
	assert_int_equal(arg.reg, SECOND);
	assert_int_equal(probe_arg_of_call(PROBE_ARG_RETURN, &arg), 0);
	assert_int_equal(arg.reg, RETURNED);
	assert_int_equal(probe_arg_of_call(9, &arg), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
