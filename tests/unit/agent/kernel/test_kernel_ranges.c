/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the kernel's functions in lists as kernels have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/kernel/kernel_ranges.h"
#include "base/cleanup.h"

static struct kernel_ranges read_text(const char *text)
{
	AUTO_FCLOSE FILE *f = fmemopen((void *)text, strlen(text), "r");
	struct kernel_ranges ranges;

	assert_non_null(f);
	kernel_ranges_read(f, &ranges);
	return ranges;
}

/* The entries of exceptions stand before those of interrupts, in one section; an exception's is none of an interrupt. */
static void test_x86(void **state)
{
	const struct kernel_ranges r = read_text("ffffffff81000300 T __irqentry_text_start\n"
						 "ffffffff81000340 T asm_exc_page_fault\n"
						 "ffffffff81000400 T asm_common_interrupt\n"
						 "ffffffff81000440 T asm_spurious_interrupt\n"
						 "ffffffff81000480 T asm_sysvec_apic_timer_interrupt\n"
						 "ffffffff810004c0 T asm_sysvec_irq_work\n"
						 "ffffffff81000500 t common_interrupt_return\n"
						 "ffffffff81000600 T __irqentry_text_end\n"
						 "ffffffff81010000 T try_to_wake_up\n"
						 "ffffffff81010600 T wake_up_process\n"
						 "ffffffff82000000 T __sched_text_start\n"
						 "ffffffff82000100 t __schedule\n"
						 "ffffffff82000900 T __sched_text_end\n"
						 "ffffffffc0000000 t asm_sysvec_mine\t[module]\n");

	(void)state;
	assert_true(kernel_ranges_is_irq(&r, 0xffffffff81000400) && kernel_ranges_is_irq(&r, 0xffffffff810004ff));
	assert_false(kernel_ranges_is_irq(&r, 0xffffffff81000340));
	assert_false(kernel_ranges_is_irq(&r, 0xffffffff81000500));
	assert_false(kernel_ranges_is_irq(&r, 0));
	assert_true(code_range_has(&r.scheduler, 0xffffffff82000100) && !code_range_has(&r.scheduler, 0xffffffff82000900));
	assert_true(code_range_has(&r.waking, 0xffffffff810105ff) && !code_range_has(&r.waking, 0xffffffff81010600));
}

/* With FRED all interrupts come in by one function; the others are there, too. */
static void test_fred(void **state)
{
	const struct kernel_ranges r = read_text("ffffffff81000400 T asm_common_interrupt\n"
						 "ffffffff81000500 t common_interrupt_return\n"
						 "ffffffff81e00000 t fred_extint\n"
						 "ffffffff81e00100 t fred_intx\n");

	(void)state;
	assert_true(kernel_ranges_is_irq(&r, 0xffffffff81e00010) && kernel_ranges_is_irq(&r, 0xffffffff81000400));
	assert_false(kernel_ranges_is_irq(&r, 0xffffffff81e00100));
}

static void test_arm64(void **state)
{
	const struct kernel_ranges r = read_text("ffff800080010000 T __irqentry_text_start\n"
						 "ffff800080010000 t gic_handle_irq\n"
						 "ffff800080010100 T __irqentry_text_end\n"
						 "ffff800080011000 t el1h_64_irq\n");

	(void)state;
	assert_true(kernel_ranges_is_irq(&r, 0xffff800080010020) && !kernel_ranges_is_irq(&r, 0xffff800080011000));
}

/* A list with addresses hidden, or of something else, has no ranges. */
static void test_none(void **state)
{
	static const char *const texts[] = {
		"\n",
		"0000000000000000 T __sched_text_start\n0000000000000000 T __sched_text_end\n"
		"0000000000000000 T asm_common_interrupt\n0000000000000000 T try_to_wake_up\n"
		"0000000000000000 T other\n",
		"ffffffff82000000 T __sched_text_start\nffffffff82000100 T asm_sysvec_irq_work\n", "words that are none\n"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const struct kernel_ranges r = read_text(texts[i]);

		for (uint64_t addr = 0; addr < 3; addr++)
			assert_false(kernel_ranges_is_irq(&r, addr) || code_range_has(&r.scheduler, addr) ||
				     code_range_has(&r.waking, addr));
		assert_false(kernel_ranges_is_irq(&r, 0xffffffff82000100));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_x86), cmocka_unit_test(test_fred),
						   cmocka_unit_test(test_arm64), cmocka_unit_test(test_none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
