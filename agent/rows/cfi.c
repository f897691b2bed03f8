/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns call frame rules into rows, for .eh_frame and .debug_frame alike. libdw finds the function and runs its program up
 * to the address; this file reads the resulting rules and sorts them into the few kinds the walk knows. Nothing in a table
 * is trusted: a rule that does not fit is ROW_CFA_EXPR or ROW_OTHER, and ranges are cut to what was asked. No state of its
 * own; libdw's handle remembers each function it was asked about. One thread.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/dwarf_expr.h"
#include "agent/rows/cfi.h"
#include "base/cleanup.h"
#include "base/search.h"

/* --- reading rules --- */

/* @op pushes register + offset. */
static bool is_breg(const Dwarf_Op *op, uint8_t *reg, int32_t *off)
{
	uint64_t number;
	int64_t value;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		number = op->atom - DW_OP_breg0;
		value = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx) {
		number = op->number;
		value = (int64_t)op->number2;
	} else {
		return false;
	}
	if (number >= USER_REGS || number == REG_PC || value < -INT32_MAX || value > INT32_MAX)
		return false;
	*reg = (uint8_t)number;
	*off = (int32_t)value;
	return true;
}

/* rsp + 8 + ((rip & 15) >= N) << 3: how binutils describes x86's stubs of .plt, where N is the offset of the instruction
 * that comes after the push. */
static bool is_plt(const Dwarf_Op *ops, size_t count, int32_t *off)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0 /* literal */,
					 DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,	 DW_OP_plus };

	if (count != ARRAY_LEN(atoms))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	}
	if (ops[0].number != 8 || ops[1].number != 0 || ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit15)
		return false;
	*off = ops[4].atom - DW_OP_lit0;
	return true;
}

static void read_cfa(const Dwarf_Op *ops, size_t count, struct row *row)
{
	row->cfa = ROW_CFA_EXPR;
	if (count == 1 && is_breg(&ops[0], &row->cfa_reg, &row->cfa_off)) {
		row->cfa = ROW_CFA_REG;
	} else if ((count == 2 || (count == 3 && ops[2].atom == DW_OP_plus_uconst && ops[2].number <= INT32_MAX)) &&
		   ops[1].atom == DW_OP_deref && is_breg(&ops[0], &row->cfa_reg, &row->cfa_off)) {
		row->cfa = ROW_CFA_DEREF;
		row->cfa_off2 = count == 3 ? (int32_t)ops[2].number : 0;
	} else if (is_plt(ops, count, &row->cfa_off)) {
		row->cfa = ROW_CFA_PLT;
	}
}

/* Register @reg stands at *(sp + off), as in the signal frame of the kernel. */
static bool is_at_sp(Dwarf_Frame *frame, int reg, uint64_t off)
{
	Dwarf_Op mem[3], *ops;
	size_t count;

	return dwarf_frame_register(frame, reg, mem, &ops, &count) == 0 && count == 2 &&
	       ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_breg0 + REG_SP && ops[1].number == off;
}

static bool is_sigreturn(Dwarf_Frame *frame, const struct row *row)
{
	return row->is_signal_frame && row->cfa == ROW_CFA_DEREF && row->cfa_reg == REG_SP && row->cfa_off == SIGNAL_SP &&
	       row->cfa_off2 == 0 && is_at_sp(frame, REG_PC, SIGNAL_PC) && is_at_sp(frame, REG_FP, SIGNAL_FP);
}

/* libdw says "undefined" by no operations in our memory, "same value" by no operations at all. */
static bool is_undefined(const Dwarf_Op *ops, const Dwarf_Op *mem, size_t count)
{
	return count == 0 && ops == mem;
}

/* The caller's stack pointer is the CFA, as always but in hand-written code (longjmp). */
static bool is_sp_at_cfa(Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *ops;
	size_t count;

	return dwarf_frame_register(frame, REG_SP, mem, &ops, &count) == 0 && count == 2 &&
	       ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_stack_value;
}

/* The place where @ops, the @count operations of a register's rule, say that it was saved, in the form of row.saved: by its
 * distance from the CFA, or from this frame's frame pointer. */
static int32_t read_place(const Dwarf_Op *ops, size_t count)
{
	int64_t off;

	if (count == 0)
		return ROW_SAME;
	if (ops[0].atom != DW_OP_call_frame_cfa || count > 2)
		return ROW_OTHER;
	off = count == 2 ? (int64_t)ops[1].number : 0;
	if (count == 2 && ops[1].atom == DW_OP_breg0 + REG_FP)
		return off >= -ROW_AT_FP_REACH && off <= ROW_AT_FP_REACH ? ROW_AT_FP + (int32_t)off : ROW_OTHER;
	if (count == 2 && ops[1].atom != DW_OP_plus_uconst)
		return ROW_OTHER;
	return off > ROW_AT_FP + ROW_AT_FP_REACH && off <= INT32_MAX ? (int32_t)off : ROW_OTHER;
}

/* Reads the rules of @frame into all of @row but its range. */
static void read_rules(Dwarf_Frame *frame, struct row *row)
{
	Dwarf_Op mem[3], *ops;
	int32_t ra = ROW_OTHER;
	size_t count;

	if (dwarf_frame_register(frame, REG_RA, mem, &ops, &count) == 0) {
		if (is_undefined(ops, mem, count)) {
			row->cfa = ROW_CFA_ROOT;
			return;
		}
		ra = read_place(ops, count);
	}
	if (dwarf_frame_cfa(frame, &ops, &count) || count == 0)
		return;
	read_cfa(ops, count, row);
	if (is_sigreturn(frame, row))
		row->cfa = ROW_CFA_SIGNAL;
	else if (!is_sp_at_cfa(frame))
		row->cfa = ROW_CFA_EXPR;
	if (row->cfa == ROW_CFA_SIGNAL || row->cfa == ROW_CFA_EXPR) {
		row->cfa_reg = 0;
		row->cfa_off = row->cfa_off2 = 0;
		return;
	}
	for (int i = 0; i < SAVED_RA; i++)
		row->saved[i] = dwarf_frame_register(frame, row_saved_regs[i], mem, &ops, &count) ? ROW_OTHER
												  : read_place(ops, count);
	row->saved[SAVED_RA] = ra;
}

/* The row at @addr, with the range the tables give it; ROW_CFA_NONE where they say nothing of use. -ENOENT: they know no
 * function there. */
static int read_row(Dwarf_CFI *cfi, uint64_t addr, struct row *row)
{
	AUTO_FREE Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;

	*row = (struct row){ .start = addr };
	if (dwarf_cfi_addrframe(cfi, addr, &frame))
		return -ENOENT;
	if (dwarf_frame_info(frame, &start, &end, &row->is_signal_frame) < 0)
		return -ENOENT;
	row->end = end > addr ? end : addr + 1;
	read_rules(frame, row);
	return 0;
}

/* --- errors in tables --- */

/*
 * When gcc realigns the stack it saves registers around its rbp and says so in rules relative to rbp (ROW_AT_FP). It leaves
 * these rules standing to the end of the function, though the epilogue (pop rbx; pop r10; pop rbp; lea -8(r10), rsp; ret)
 * gives rbp back before its last two instructions. There all registers are the caller's again.
 */
static bool take_back(struct row *row)
{
	for (int i = 0; i < SAVED_RA; i++) {
		if (row->saved[i] == ROW_OTHER)
			return false;
		if (row_is_at_fp(row->saved[i]))
			row->saved[i] = ROW_SAME;
	}
	return true;
}

static bool is_at_return(const struct row *row)
{
	return row->cfa == ROW_CFA_REG && row->cfa_reg == REG_SP && row->cfa_off == 8;
}

/*
 * arm64's glibc describes _dl_runtime_resolve as if the 16 bytes that the first stub of .plt pushed belonged to its caller:
 * the return address stands above the CFA.
 */
enum { STUB_BYTES = 16 };

static bool is_above(const struct row *row)
{
	return row->cfa == ROW_CFA_REG && row->saved[SAVED_RA] >= 0 && row->saved[SAVED_RA] < STUB_BYTES;
}

static bool count_stub(Dwarf_CFI *cfi, struct row *row)
{
	struct row next;

	if (!CPU_HAS_LR || row->cfa != ROW_CFA_REG)
		return false;
	if (row->cfa_off == 0 && row->saved[SAVED_RA] == ROW_SAME) { /* its first instruction, where lr is still good */
		if (read_row(cfi, row->end, &next) || !is_above(&next))
			return false;
	} else if (!is_above(row)) {
		return false;
	}
	row->cfa_off += STUB_BYTES;
	for (int i = 0; i < SAVED_MAX; i++)
		if (row->saved[i] != ROW_SAME && row->saved[i] != ROW_OTHER && !row_is_at_fp(row->saved[i]))
			row->saved[i] -= STUB_BYTES;
	return true;
}

/* Corrects these errors in @row, the row of @addr; may cut its end. True when it changed a rule. */
static bool correct_row(Dwarf_CFI *cfi, uint64_t addr, struct row *row)
{
	enum { LEA_BYTES = 4 };
	struct row next;

	if (count_stub(cfi, row))
		return true;
	if (row->cfa != ROW_CFA_REG || !row_is_at_fp(row->saved[SAVED_FP]))
		return false;
	if (!is_at_return(row)) { /* in the epilogue the CFA is in r10 or another register, until the lea */
		if (row->cfa_reg == REG_FP || row->cfa_off != 0 || read_row(cfi, row->end, &next) || !is_at_return(&next))
			return false;
		if (row->end - addr > LEA_BYTES) {
			row->end -= LEA_BYTES;
			return false;
		}
	}
	return take_back(row);
}

/* --- a range --- */

/* One of the two words of entry @i. */
static uint64_t table_word(const struct cfi_starts *starts, size_t i, int word)
{
	int32_t value;

	memcpy(&value, starts->table + i * CFI_START_BYTES + (size_t)word * sizeof(value), sizeof(value));
	return starts->base + (uint64_t)(int64_t)value;
}

/* Returns how many functions begin at @addr or before. */
static size_t starts_until(const struct cfi_starts *starts, uint64_t addr)
{
	return search_first(at, starts->count, table_word(starts, at, 0) > addr);
}

/* The first function behind @addr, which none covers; without a table the next byte. */
static uint64_t next_start(const struct cfi_starts *starts, uint64_t addr)
{
	size_t i = starts_until(starts, addr);

	return i < starts->count ? table_word(starts, i, 0) : starts->count ? UINT64_MAX : addr + 1;
}

/* The rows of the function of @addr up to its end, if its entry is of the common kind. -ENODATA: @addr is in a gap between
 * functions. To ask libdw would make it read the whole section where a linker, such as gold, puts .eh_frame before its
 * table. */
static int read_function(const struct cfi_starts *starts, uint64_t addr, uint64_t end, struct row *rows, size_t max,
			 size_t *count, uint64_t *stop)
{
	size_t i = starts->frame.data ? starts_until(starts, addr) : 0;

	if (!i)
		return starts->frame.data && starts->count ? -ENODATA : -ENOENT;
	return cfi_program_rows(&starts->frame, table_word(starts, i - 1, 1), table_word(starts, i - 1, 0), addr, end, rows,
				max, count, stop);
}

int rows_cfi_build(Dwarf_CFI *cfi, const struct cfi_starts *starts, uint64_t start, uint64_t end, struct row *rows,
		   size_t max, size_t *count_ret)
{
	uint64_t addr = start;

	*count_ret = 0;
	while (addr < end) {
		uint64_t stop;
		struct row row;
		size_t count;
		int r = read_function(starts, addr, end, rows + *count_ret, max - *count_ret, &count, &stop);

		if (r == -ENOSPC)
			return r;
		if (!r) {
			*count_ret += count;
			addr = stop;
			continue;
		}
		if (r == -ENODATA || read_row(cfi, addr, &row)) {
			addr = next_start(starts, addr);
			continue;
		}
		correct_row(cfi, addr, &row);
		if (row.end > end)
			row.end = end;
		addr = row.end;
		if (row.cfa == ROW_CFA_NONE)
			continue;
		if (*count_ret == max)
			return -ENOSPC;
		rows[(*count_ret)++] = row;
	}
	return 0;
}

/* --- one frame, exactly --- */

/* Finds the caller's value of @reg. -ENODATA when the tables say that it is lost. */
static int eval_register(Dwarf_Frame *frame, const struct dwarf_expr_frame *expr, int reg, uint64_t *ret)
{
	Dwarf_Op mem[3], *ops;
	bool is_value;
	size_t count;
	int r;

	if (dwarf_frame_register(frame, reg, mem, &ops, &count))
		return -ENOTSUP;
	if (count == 0) {
		if (is_undefined(ops, mem, count) || !(expr->regs->known >> reg & 1))
			return -ENODATA;
		*ret = expr->regs->value[reg];
		return 0;
	}
	r = dwarf_expr_eval(expr, ops, count, ret, &is_value);
	if (r == 0 && !is_value && expr->read(expr->arg, *ret, ret, sizeof(*ret)))
		r = -EFAULT;
	return r;
}

int rows_cfi_eval(Dwarf_CFI *cfi, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
		  struct row_regs *out)
{
	struct dwarf_expr_frame expr = { .regs = in, .read = read, .arg = arg };
	AUTO_FREE Dwarf_Frame *frame = NULL;
	Dwarf_Op mem[3], *ops;
	struct row row;
	bool is_value;
	size_t count;
	int r;

	if (!read_row(cfi, addr, &row) && correct_row(cfi, addr, &row))
		return row_apply(&row, in, read, arg, out);
	*out = (struct row_regs){ 0 };
	if (dwarf_cfi_addrframe(cfi, addr, &frame) || dwarf_frame_info(frame, NULL, NULL, &out->is_exact) < 0)
		return -ENOENT;
	if (dwarf_frame_register(frame, REG_RA, mem, &ops, &count) == 0 && is_undefined(ops, mem, count))
		return 1;
	if (dwarf_frame_cfa(frame, &ops, &count) || count == 0)
		return -ENOENT;
	r = dwarf_expr_eval(&expr, ops, count, &expr.cfa, &is_value);
	if (r)
		return r;
	expr.has_cfa = true;
	for (int reg = 0; reg < USER_REGS; reg++) {
		int error = CPU_HAS_LR && reg == REG_PC ? -ENODATA : eval_register(frame, &expr, reg, &out->value[reg]);

		if (error == 0)
			out->known |= REG_BIT(reg);
		if (reg == REG_RA)
			r = error;
	}
	row_return(out);
	return r; /* another register may be lost as long as nobody needs it */
}
