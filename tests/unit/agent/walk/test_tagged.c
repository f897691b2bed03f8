/* SPDX-License-Identifier: Apache-2.0 */
/* Return addresses that are told by a tag among the words of a stack: which words are believed, and what is known behind
 * them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/walk/tagged.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { CODE = 0x10000, PLAIN = 0x20000, NOTHING = 0x30000, STACK = 0x7000, FAR_STACK = 0x9000 };

static struct file code_file = { .id = 1, .fd = -1 }, plain_file = { .id = 2, .fd = -1 };
static struct address_space *as;
static uint64_t words[8], far_words[2];
static struct stack_area areas[2] = {
	{ STACK, sizeof(words), (const uint8_t *)words },
	{ FAR_STACK, sizeof(far_words), (const uint8_t *)far_words },
};
static struct sample_regs regs;
static struct pending_sample sample = { .regs = &regs, .areas = areas, .area_cnt = 2 };

static int setup(void **state)
{
	(void)state;
	code_file.code = (void *)&code_file; /* that there is any is all that is asked */
	as = address_space_new();
	code_file.refs = plain_file.refs = 1;
	return !as || address_space_map(&as, CODE, CODE + 0x1000, 0, &code_file) < 0 ||
	       address_space_map(&as, PLAIN, PLAIN + 0x1000, 0, &plain_file) < 0;
}

static int teardown(void **state)
{
	(void)state;
	address_space_put(as);
	return 0;
}

/* Puts @count words on the stack, zeros behind them. */
static void put(size_t count, const uint64_t *these)
{
	memset(words, 0, sizeof(words));
	if (count)
		memcpy(words, these, count * sizeof(*these));
}

static void the_first_tagged_word_behind_code_counts(void **state)
{
	uint64_t behind, pc;

	(void)state;
	put(6, (uint64_t[]){ 0, NOTHING + 4, PLAIN + 4, (CODE + 8) | 1, CODE + 0x10, CODE + 0x20 });
	assert_int_equal(tagged_find(as, &sample, STACK, &behind, &pc), 0);
	assert_int_equal(pc, CODE + 0x10);
	assert_int_equal(behind, STACK + 5 * 8);
	/* the very first word may have another tag */
	assert_int_equal(tagged_find(as, &sample, STACK + 3 * 8, &behind, &pc), 0);
	assert_int_equal(pc, (CODE + 8) | 1);
	assert_int_equal(behind, STACK + 4 * 8);
	/* a call may end the code, and none ends where it begins */
	put(3, (uint64_t[]){ 0, CODE, CODE + 0x1000 });
	assert_int_equal(tagged_find(as, &sample, STACK, &behind, &pc), 0);
	assert_int_equal(pc, CODE + 0x1000);
	put(2, (uint64_t[]){ 0, CODE + 0x1004 });
	assert_int_equal(tagged_find(as, &sample, STACK, &behind, &pc), -EFAULT);
	/* the kernel's addresses are nobody's here, wherever they would be without their upper bits */
	put(2, (uint64_t[]){ 0, 1ull << CPU_USER_BITS | (CODE + 8) });
	assert_int_equal(tagged_find(as, &sample, STACK, &behind, &pc), -EFAULT);
}

static void the_copy_ends_the_search(void **state)
{
	uint64_t behind, pc;

	(void)state;
	put(0, NULL);
	far_words[0] = CODE + 0x10; /* in another piece: what lies between is not known */
	assert_int_equal(tagged_find(as, &sample, STACK, &behind, &pc), -EFAULT);
	assert_int_equal(tagged_find(as, &sample, FAR_STACK, &behind, &pc), 0);
	assert_int_equal(behind, FAR_STACK + 8);
	words[7] = CODE + 0x30;
	assert_int_equal(tagged_find(as, &sample, STACK + 7 * 8, &behind, &pc), 0);
	assert_int_equal(behind, STACK + 8 * 8);
	assert_int_equal(tagged_find(as, &sample, STACK + 7 * 8 + 1, &behind, &pc), -EFAULT);
}

/* What a callee saves is the caller's; the rest is not known any more, and the address is one behind a call. */
static void a_row_is_applied(void **state)
{
	const struct row row = { .cfa = ROW_CFA_TAGGED, .cfa_reg = REG_SP },
			 at_start = { .cfa = ROW_CFA_TAGGED, .cfa_reg = REG_PC };
	struct row_regs in = { .is_exact = true, .known = UINT32_MAX }, out;

	(void)state;
	for (int i = 0; i < USER_REGS; i++)
		in.value[i] = 1000 + (uint64_t)i;
	in.value[REG_SP] = STACK + 8;
	put(5, (uint64_t[]){ CODE + 0x40, 0, CODE + 0x11, 0, CODE + 0x10 });
	assert_int_equal(tagged_apply(as, &sample, &row, &in, &out), 0);
	assert_int_equal(out.value[REG_PC], CODE + 0x10);
	assert_int_equal(out.value[REG_SP], STACK + 5 * 8);
	assert_int_equal(out.value[REG_FP], 1000 + REG_FP);
	assert_int_equal(out.known, CPU_CALLEE_SAVED);
	assert_false(out.is_exact);
	/* where the register is not the stack pointer any more, but the scheduler's stays */
	regs.sched.sp = STACK;
	assert_int_equal(tagged_apply(as, &sample, &at_start, &in, &out), 0);
	assert_int_equal(out.value[REG_PC], CODE + 0x40);
	assert_int_equal(out.value[REG_SP], STACK + 8);
	in.value[REG_SP] = 0x5000;
	assert_int_equal(tagged_apply(as, &sample, &row, &in, &out), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_tagged_word_behind_code_counts),
		cmocka_unit_test(the_copy_ends_the_search),
		cmocka_unit_test(a_row_is_applied),
	};

	return run_group_of_descriptors(tests, setup, teardown);
}
