/* SPDX-License-Identifier: Apache-2.0 */
/* The stack machine for call frame expressions: each operation, its bounds and its ways to fail. */
#include <dwarf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rows/dwarf_expr.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

/* Memory that holds its own address. */
static int read_address(void *arg, uint64_t addr, void *dst, size_t len)
{
	(void)arg;
	if (addr == 0)
		return -1;
	memcpy(dst, &addr, len);
	return 0;
}

#define OP(name)                     \
	{                            \
		.atom = DW_OP_##name \
	}
#define OPN(name, n)                                            \
	{                                                       \
		.atom = DW_OP_##name, .number = (Dwarf_Word)(n) \
	}
#define AT(op_offset, name, n)                                                         \
	{                                                                              \
		.atom = DW_OP_##name, .number = (Dwarf_Word)(n), .offset = (op_offset) \
	}

static void test_expressions(void **state)
{
	static const struct {
		int ret;
		uint64_t value;
		Dwarf_Op ops[8];
	} cases[] = {
		{ 0, 12, { OP(lit5), OP(lit7), OP(plus) } },
		{ 0, (uint64_t)-2, { OP(lit5), OP(lit7), OP(minus) } },
		{ 0, 35, { OP(lit5), OP(lit7), OP(mul) } },
		{ 0, (uint64_t)-3, { OPN(const1s, -7), OP(lit2), OP(div) } },
		{ 0, 1ull << 63, { OPN(const8u, 1ull << 63), OPN(const1s, -1), OP(div) } },
		{ -ENOTSUP, 0, { OP(lit5), OP(lit0), OP(div) } },
		{ -ENOTSUP, 0, { OP(lit5), OP(lit0), OP(mod) } },
		{ 0, 2, { OPN(const1u, 17), OP(lit5), OP(mod) } },
		{ 0, 40, { OP(lit5), OP(lit3), OP(shl) } },
		{ 0, 0, { OP(lit5), OPN(const1u, 64), OP(shl) } },
		{ 0, (uint64_t)-1, { OPN(const1s, -16), OPN(const1u, 200), OP(shra) } },
		{ 0, 1, { OPN(const8u, 1ull << 63), OPN(const1u, 63), OP(shr) } },
		{ 0, 1, { OPN(const1s, -1), OP(lit0), OP(lt) } },
		{ 0, 0, { OPN(const1s, -1), OP(lit0), OP(ge) } },
		{ 0, 3, { OP(lit1), OP(lit2), OP(lit3), OP(rot), OP(drop), OP(drop), OP(drop), OP(lit3) } },
		{ 0, 2, { OP(lit1), OP(lit2), OP(lit3), OP(rot) } }, /* 3 1 2, top right */
		{ 0, 1, { OP(lit1), OP(lit2), OP(lit3), OP(rot), OP(drop) } },
		{ 0, 1, { OP(lit1), OP(lit2), OP(swap) } },
		{ 0, 1, { OP(lit1), OP(lit2), OP(over) } },
		{ 0, 4, { OP(lit4), OP(lit1), OP(lit2), OPN(pick, 2) } },
		{ -ENOTSUP, 0, { OP(lit4), OP(lit1), OP(lit2), OPN(pick, 3) } },
		{ -ENOTSUP, 0, { OP(plus) } },
		{ -ENOTSUP, 0, { OP(drop) } },
		{ -ENOTSUP, 0, { OP(lit1), OP(drop) } },
		{ -ENOTSUP, 0, { OPN(addr, 1) } },
		{ 0, 0xf0, { OPN(const1u, 0xff), OPN(const1u, 0x0f), OP(xor) } },
		{ 0, 7, { OPN(const1s, -7), OP(abs) } },
		{ 0, 105, { OPN(breg9, 5) } },
		{ -ENODATA, 0, { OPN(breg8, 5) } },
		{ -ENODATA, 0, { OPN(regx, 99) } },
		{ 0, 1000, { OP(call_frame_cfa) } },
		{ 0, 0x1234, { OPN(const2u, 0x1234), OP(deref) } },
		{ 0, 0x34, { OPN(const2u, 0x1234), OPN(deref_size, 1) } },
		{ -ENOTSUP, 0, { OPN(const2u, 0x1234), OPN(deref_size, 9) } },
		{ -EFAULT, 0, { OP(lit0), OP(deref) } },
		/* 0: lit1; 1: bra +1 (to 5); 4: lit7 (skipped); 5: lit9 */
		{ 0, 9, { AT(0, lit1, 0), AT(1, bra, 1), AT(4, lit7, 0), AT(5, lit9, 0) } },
		{ 0, 7, { AT(0, lit0, 0), AT(1, bra, 1), AT(4, lit7, 0), AT(5, nop, 0) } },
		{ -ENOTSUP, 0, { AT(0, lit0, 0), AT(1, skip, -4) } },  /* for ever, until the stack is full */
		{ -ENOTSUP, 0, { AT(0, skip, -3), AT(3, lit0, 0) } },  /* for ever */
		{ -ENOTSUP, 0, { AT(0, lit0, 0), AT(1, skip, 100) } }, /* beyond the end */
	};
	struct row_regs regs = { .known = 1ull << 9, .value[9] = 100 };
	struct dwarf_expr_frame frame = { .regs = &regs, .read = read_address, .cfa = 1000, .has_cfa = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t value = 0;
		bool is_value;
		size_t count = 0;

		while (count < ARRAY_LEN(cases[i].ops) && cases[i].ops[count].atom)
			count++;
		assert_int_equal(dwarf_expr_eval(&frame, cases[i].ops, count, &value, &is_value), cases[i].ret);
		if (cases[i].ret == 0 && value != cases[i].value)
			fail_msg("case %zu: %llx, not %llx", i, (unsigned long long)value,
				 (unsigned long long)cases[i].value);
	}
}

/* A register and DW_OP_stack_value name the value itself, everything else the place where it stands. */
static void test_value_or_place(void **state)
{
	static const struct {
		bool is_value;
		Dwarf_Op ops[2];
	} cases[] = {
		{ false, { OPN(breg9, 8) } },
		{ false, { OP(call_frame_cfa), OPN(plus_uconst, -16) } },
		{ true, { OP(call_frame_cfa), OP(stack_value) } },
		{ true, { OP(reg9) } },
		{ true, { OPN(regx, 9) } },
	};
	struct row_regs regs = { .known = 1ull << 9, .value[9] = 100 };
	struct dwarf_expr_frame frame = { .regs = &regs, .read = read_address, .cfa = 1000, .has_cfa = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t value;
		bool is_value = !cases[i].is_value;

		assert_int_equal(dwarf_expr_eval(&frame, cases[i].ops, cases[i].ops[1].atom ? 2 : 1, &value, &is_value), 0);
		assert_int_equal(is_value, cases[i].is_value);
	}
	frame.has_cfa = false;
	assert_int_equal(dwarf_expr_eval(&frame, cases[2].ops, 2, &(uint64_t){ 0 }, &(bool){ false }), -ENOTSUP);
	assert_int_equal(dwarf_expr_eval(&frame, NULL, 0, &(uint64_t){ 0 }, &(bool){ false }), -ENOTSUP);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_value_or_place),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
