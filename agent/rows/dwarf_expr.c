/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack machine for DWARF expressions as libdw decodes them. Both the stack and the number of steps are bounded, so that a
 * hostile file can waste neither memory nor time. Nothing is allocated. Any thread, on its own frame.
 */
#include <dwarf.h>
#include <errno.h>

#include "agent/rows/dwarf_expr.h"

enum { STACK_WORDS = 64, MAX_STEPS = 1024 };

struct machine {
	const struct dwarf_expr_frame *frame;
	const Dwarf_Op *ops;
	size_t count;
	size_t next; /* index of the operation to run next */
	size_t depth;
	bool is_value;
	uint64_t stack[STACK_WORDS];
};

static int push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_WORDS)
		return -ENOTSUP;
	m->stack[m->depth++] = value;
	return 0;
}

static int push_reg(struct machine *m, uint64_t reg, uint64_t offset)
{
	const struct row_regs *regs = m->frame->regs;

	if (reg >= USER_REGS || !(regs->known >> reg & 1))
		return -ENODATA;
	return push(m, regs->value[reg] + offset);
}

static int push_memory(struct machine *m, uint64_t addr, uint64_t len_bytes)
{
	uint64_t value = 0;

	if (len_bytes == 0 || len_bytes > sizeof(value))
		return -ENOTSUP;
	if (m->frame->read(m->frame->arg, addr, &value, len_bytes))
		return -EFAULT;
	return push(m, value);
}

/* Jumps are relative to the end of the operation (1 byte and a 2-byte operand); libdw keeps each operation's place. */
static int jump(struct machine *m, const Dwarf_Op *op)
{
	uint64_t target = op->offset + 3 + (uint64_t)(int16_t)op->number;

	for (size_t i = 0; i < m->count; i++) {
		if (m->ops[i].offset == target && m->ops[i].atom != DW_OP_call_frame_cfa) {
			m->next = i;
			return 0;
		}
	}
	return -ENOTSUP;
}

static bool compare(uint8_t atom, int64_t a, int64_t b)
{
	switch (atom) {
	case DW_OP_eq:
		return a == b;
	case DW_OP_ge:
		return a >= b;
	case DW_OP_gt:
		return a > b;
	case DW_OP_le:
		return a <= b;
	case DW_OP_lt:
		return a < b;
	default:
		return a != b;
	}
}

/* Operations that put the @a below and the @b on top of the stack together. */
static int binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (atom) {
	case DW_OP_and:
		*ret = a & b;
		return 0;
	case DW_OP_or:
		*ret = a | b;
		return 0;
	case DW_OP_xor:
		*ret = a ^ b;
		return 0;
	case DW_OP_plus:
		*ret = a + b;
		return 0;
	case DW_OP_minus:
		*ret = a - b;
		return 0;
	case DW_OP_mul:
		*ret = a * b;
		return 0;
	case DW_OP_div:
		if (!b)
			return -ENOTSUP;
		*ret = sb == -1 ? 0 - a : (uint64_t)(sa / sb); /* INT64_MIN / -1 traps */
		return 0;
	case DW_OP_mod:
		if (!b)
			return -ENOTSUP;
		*ret = a % b;
		return 0;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return 0;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return 0;
	case DW_OP_shra:
		*ret = (uint64_t)(sa >> (b < 64 ? b : 63));
		return 0;
	case DW_OP_eq ... DW_OP_ne:
		*ret = compare(atom, sa, sb);
		return 0;
	}
	return -ENOTSUP;
}

/* Operations that push and take nothing from the stack. */
static int step_push(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_lit0 ... DW_OP_lit31:
		return push(m, op->atom - DW_OP_lit0);
	case DW_OP_const1u ... DW_OP_consts: /* libdw has widened them, with their sign */
		return push(m, op->number);
	case DW_OP_breg0 ... DW_OP_breg31:
		return push_reg(m, op->atom - DW_OP_breg0, op->number);
	case DW_OP_bregx:
		return push_reg(m, op->number, op->number2);
	case DW_OP_reg0 ... DW_OP_reg31:
		m->is_value = true;
		return push_reg(m, op->atom - DW_OP_reg0, 0);
	case DW_OP_regx:
		m->is_value = true;
		return push_reg(m, op->number, 0);
	case DW_OP_call_frame_cfa:
		return m->frame->has_cfa ? push(m, m->frame->cfa) : -ENOTSUP;
	}
	return -ENOTSUP;
}

/* Operations on the top word alone; it stands above the stack in @top and is gone unless pushed again. */
static int step_unary(struct machine *m, const Dwarf_Op *op, uint64_t top)
{
	switch (op->atom) {
	case DW_OP_drop:
		return 0;
	case DW_OP_deref:
		return push_memory(m, top, 8);
	case DW_OP_deref_size:
		return push_memory(m, top, op->number);
	case DW_OP_plus_uconst:
		return push(m, top + op->number);
	case DW_OP_neg:
		return push(m, 0 - top);
	case DW_OP_not:
		return push(m, ~top);
	case DW_OP_abs:
		return push(m, (int64_t)top < 0 ? 0 - top : top);
	case DW_OP_bra:
		return top ? jump(m, op) : 0;
	}
	return -ENOTSUP;
}

/* Operations that copy or move words of the stack. */
static int step_shuffle(struct machine *m, const Dwarf_Op *op)
{
	uint64_t *end = m->stack + m->depth; /* behind the top word */
	uint64_t below = op->atom == DW_OP_pick ? op->number : op->atom == DW_OP_over;
	size_t words = op->atom == DW_OP_rot ? 3 : 2;

	if (op->atom != DW_OP_swap && op->atom != DW_OP_rot)
		return below < m->depth ? push(m, end[-1 - (int64_t)below]) : -ENOTSUP;
	if (m->depth < words)
		return -ENOTSUP;
	for (uint64_t *w = end - 1; w > end - words; w--) { /* the top word goes below the other one or two */
		uint64_t word = w[0];

		w[0] = w[-1];
		w[-1] = word;
	}
	return 0;
}

static int step(struct machine *m, const Dwarf_Op *op)
{
	uint64_t result;
	int r;

	switch (op->atom) {
	case DW_OP_nop:
		return 0;
	case DW_OP_stack_value:
		m->is_value = true;
		return 0;
	case DW_OP_skip:
		return jump(m, op);
	case DW_OP_lit0 ... DW_OP_lit31:
	case DW_OP_const1u ... DW_OP_consts:
	case DW_OP_breg0 ... DW_OP_breg31:
	case DW_OP_reg0 ... DW_OP_reg31:
	case DW_OP_bregx:
	case DW_OP_regx:
	case DW_OP_call_frame_cfa:
		return step_push(m, op);
	case DW_OP_dup:
	case DW_OP_over:
	case DW_OP_pick:
	case DW_OP_swap:
	case DW_OP_rot:
		return step_shuffle(m, op);
	case DW_OP_drop:
	case DW_OP_deref:
	case DW_OP_deref_size:
	case DW_OP_plus_uconst:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_abs:
	case DW_OP_bra:
		return m->depth ? step_unary(m, op, m->stack[--m->depth]) : -ENOTSUP;
	}
	if (m->depth < 2)
		return -ENOTSUP;
	r = binary(op->atom, m->stack[m->depth - 2], m->stack[m->depth - 1], &result);
	m->depth -= 2;
	return r ? r : push(m, result);
}

int dwarf_expr_eval(const struct dwarf_expr_frame *frame, const Dwarf_Op *ops, size_t count, uint64_t *value_ret,
		    bool *is_value_ret)
{
	struct machine m;
	int r;

	m.frame = frame;
	m.ops = ops;
	m.count = count;
	m.next = 0;
	m.depth = 0;
	m.is_value = false;
	for (unsigned steps = 0; m.next < count; steps++) {
		if (steps == MAX_STEPS)
			return -ENOTSUP;
		r = step(&m, &ops[m.next++]);
		if (r)
			return r;
	}
	if (!m.depth)
		return -ENOTSUP;
	*value_ret = m.stack[m.depth - 1];
	*is_value_ret = m.is_value;
	return 0;
}
