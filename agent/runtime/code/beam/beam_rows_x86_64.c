/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of BEAM's code. It has Erlang's stack as its own: frames lie between return addresses, and their sizes are in no
 * table, but in the instructions, which change rsp by constants. To call the emulator's C functions code goes to the
 * scheduler's stack (lea rsp, [rbx + N]) and comes back from there: Erlang's stack pointer is meanwhile in rbp, or in the
 * process's structure (mov rsp, rbp; mov rsp, [r13 + N]); which of them, the way back tells
 * (erts/emulator/beam/jit/x86/beam_asm.hpp, emit_enter_runtime).
 *
 * An instruction's place is told by the paths that lead to it from the function's start, else by those that lead from it to
 * the function's end, where the return address is at rsp: a return, or a jump to another function. Where neither tells how
 * far the return address is, it is the next word with a code address's tag (ROW_CFA_TAGGED): no term has that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/insn_x86_64.h"
#include "agent/runtime/code/beam/beam_state.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { MAX_PASSES = 64, NOWHERE = UINT32_MAX };

enum op {
	OP_PLAIN,
	OP_MOVE,    /* rsp += value */
	OP_LEAVE,   /* to the scheduler's stack */
	OP_BACK,    /* from it: to the stack pointer in rbp ... */
	OP_BACK_OF, /* ... or in the process */
	OP_RETURN,
	OP_JUMP,   /* to target; NOWHERE: to another function, when the frame has gone */
	OP_BRANCH, /* to target, or on */
	OP_LABEL,  /* on; target is handed to somebody who may go on there */
	OP_END,	   /* the path ends, nobody knows how */
	OP_ALIGN,  /* and rsp, -N: the scheduler's loop begins */
};

/* The stack that code is on, and the rule by which Erlang's is found. */
enum side { SIDE_NONE, SIDE_ERLANG, SIDE_C };
enum back { BACK_NONE, BACK_RBP, BACK_PROCESS };

struct insn {
	uint32_t at; /* offset in the block */
	uint8_t len, op, side, back;
	bool is_deep;  /* the return address is depth bytes above Erlang's stack pointer before the instruction */
	int32_t value; /* OP_MOVE */
	int32_t depth;
	uint32_t target; /* number of the instruction that it jumps to */
};

struct flow {
	const struct beam *s;
	const struct code_block *b;
	uint64_t module, module_end;
	struct insn *insns; /* owned */
	uint32_t count, cap;
	bool has_labels; /* paths go on at labels, too */
};

/* --- decoding --- */

static bool is_reg(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

static bool is_memory_at(const ZydisDecodedOperand *op, ZydisRegister base)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == base && op->mem.index == ZYDIS_REGISTER_NONE;
}

static bool is_plain_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base != ZYDIS_REGISTER_RIP &&
	       op->mem.index == ZYDIS_REGISTER_NONE;
}

/* An instruction that writes rsp. */
static void decode_rsp(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, struct insn *i)
{
	int64_t number = ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? ops[1].imm.value.s : 0;

	if (z->mnemonic == ZYDIS_MNEMONIC_SUB || z->mnemonic == ZYDIS_MNEMONIC_ADD) {
		i->op = OP_MOVE;
		i->value = (int32_t)(z->mnemonic == ZYDIS_MNEMONIC_SUB ? -number : number);
	} else if (z->mnemonic == ZYDIS_MNEMONIC_AND) {
		i->op = OP_ALIGN;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_LEA && is_memory_at(&ops[1], ZYDIS_REGISTER_RBX)) {
		i->op = OP_LEAVE;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_LEA && is_memory_at(&ops[1], ZYDIS_REGISTER_RSP)) {
		i->op = OP_MOVE;
		i->value = (int32_t)ops[1].mem.disp.value;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_MOV && is_reg(&ops[1], ZYDIS_REGISTER_RBP)) {
		i->op = OP_BACK;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_MOV && is_memory_at(&ops[1], ZYDIS_REGISTER_R13)) {
		i->op = OP_BACK_OF;
	} else {
		i->op = OP_END;
	}
}

/* The place at this distance from the end of @i, which names it so. */
static uint64_t named_place(const struct flow *f, const struct insn *i, int64_t distance)
{
	return f->b->start + i->at + i->len + (uint64_t)distance;
}

/* The place that a jump names, relative to the block. A jump to another function leaves the frame behind: one to a module's
 * function, or through a function's table of addresses (indexed by r12, or not at all). One through a table of this
 * function's places, or to code that all modules share, says nothing. */
static void decode_jump(const struct flow *f, const ZydisDecodedOperand *op, struct insn *i, uint64_t *target)
{
	bool is_module = f->module_end != 0;

	*target = 0;
	i->op = OP_END;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*target = named_place(f, i, op->imm.value.s);
		if (*target >= f->b->start && *target < f->b->end)
			i->op = OP_JUMP;
		else if (is_module && *target >= f->module && *target < f->module_end)
			i->op = OP_RETURN;
	} else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_R12) {
		i->op = OP_RETURN;
	} else if (is_module && (op->type == ZYDIS_OPERAND_TYPE_REGISTER || is_plain_memory(op))) {
		i->op = OP_RETURN;
	}
}

/* Some fragments look for who handles an error, by the place that called them, and do not return there
 * (erts/emulator/beam/jit/x86/beam_asm_global.hpp.pl lists their names). */
static bool is_no_return(const struct flow *f, uint64_t target)
{
	const struct beam_fragment *called = beam_fragment_at(f->s, target);

	return called &&
	       (strstr(called->name, "raise_") || strstr(called->name, "_error") || strstr(called->name, "func_info"));
}

static void decode_other(const struct flow *f, const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops,
			 struct insn *i, uint64_t *target)
{
	if (z->mnemonic == ZYDIS_MNEMONIC_RET) {
		i->op = OP_RETURN;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_PUSH || z->mnemonic == ZYDIS_MNEMONIC_POP) {
		i->op = OP_MOVE;
		i->value = z->mnemonic == ZYDIS_MNEMONIC_PUSH ? -8 : 8;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_JMP) {
		decode_jump(f, &ops[0], i, target);
	} else if (z->meta.category == ZYDIS_CATEGORY_COND_BR && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		i->op = OP_BRANCH;
		*target = named_place(f, i, ops[0].imm.value.s);
	} else if (z->mnemonic == ZYDIS_MNEMONIC_UD2 || z->mnemonic == ZYDIS_MNEMONIC_HLT ||
		   z->mnemonic == ZYDIS_MNEMONIC_INT3) {
		i->op = OP_END;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_CALL && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		i->op = is_no_return(f, named_place(f, i, ops[0].imm.value.s)) ? OP_END : OP_PLAIN;
	} else if (z->mnemonic == ZYDIS_MNEMONIC_LEA && ops[1].mem.base == ZYDIS_REGISTER_RIP) {
		i->op = OP_LABEL;
		*target = named_place(f, i, ops[1].mem.disp.value);
	}
}

/* Decodes one instruction of @code. False: there is none. */
static bool decode(const struct flow *f, const uint8_t *code, size_t len, uint32_t at, struct insn *i, uint64_t *target)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(insn_decoder(), code + at, len - at, &z, ops)))
		return false;
	*target = 0;
	*i = (struct insn){ .at = at, .len = z.length, .target = NOWHERE };
	if (z.operand_count_visible && is_reg(&ops[0], ZYDIS_REGISTER_RSP) &&
	    ops[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		decode_rsp(&z, ops, i);
	else
		decode_other(f, &z, ops, i, target);
	return true;
}

static uint32_t find_insn(const struct flow *f, uint64_t addr)
{
	uint32_t from = 0, to = f->count, at = (uint32_t)(addr - f->b->start);

	if (addr < f->b->start || addr >= f->b->end)
		return NOWHERE;
	if (f->b->kind == BEAM_FUNCTION && at == BEAM_CODE_INFO_BYTES) /* the jump over the place for breakpoints */
		return 0;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (f->insns[middle].at > at)
			to = middle;
		else
			from = middle + 1;
	}
	return from && f->insns[from - 1].at == at ? from - 1 : NOWHERE;
}

/* Decodes the block from @from on. Bytes that are no instruction are passed over one by one. */
static int decode_all(struct flow *f, const uint8_t *code, size_t len, uint32_t from)
{
	AUTO_FREE uint64_t *targets = calloc(len + 1, sizeof(*targets)); /* parallel to insns */
	struct insn insn;

	if (!targets)
		return -ENOMEM;
	for (uint32_t at = from; at < len;) {
		if (!decode(f, code, len, at, &insn, &targets[f->count])) {
			at++;
			continue;
		}
		if (vec_reach(&f->insns, &f->cap, f->count))
			return -ENOMEM;
		f->insns[f->count++] = insn;
		at += insn.len;
	}
	for (uint32_t i = 0; i < f->count; i++)
		if (targets[i])
			f->insns[i].target = find_insn(f, targets[i]);
	return 0;
}

/* --- following --- */

static bool goes_on(const struct insn *i)
{
	return i->op != OP_RETURN && i->op != OP_JUMP && i->op != OP_END;
}

/* The instruction that runs behind number @i, by the first (@way 0) or the second way; NULL: none. */
static struct insn *next_of(const struct flow *f, uint32_t i, int way)
{
	struct insn *insn = &f->insns[i];
	bool has_next = i + 1 < f->count && f->insns[i + 1].at == insn->at + insn->len;

	if (way == 0)
		return goes_on(insn) && has_next ? insn + 1 : NULL;
	return (insn->op == OP_JUMP || insn->op == OP_BRANCH) && insn->target != NOWHERE ? &f->insns[insn->target] : NULL;
}

/* How code comes back from the scheduler's stack, by the next place where it does so. */
static bool tell_back(struct flow *f, uint32_t i)
{
	struct insn *insn = &f->insns[i];

	if (insn->back || insn->op == OP_LEAVE)
		return false;
	if (insn->op == OP_BACK || insn->op == OP_BACK_OF)
		insn->back = insn->op == OP_BACK ? BACK_RBP : BACK_PROCESS;
	for (int way = 0; way < 2 && !insn->back; way++) {
		const struct insn *next = next_of(f, i, way);

		insn->back = next ? next->back : BACK_NONE;
	}
	return insn->back;
}

static bool tell(struct insn *insn, uint8_t side, const struct insn *from, int32_t moved)
{
	if (insn->side)
		return false;
	insn->side = side;
	insn->is_deep = from->is_deep;
	insn->depth = from->depth - moved;
	return true;
}

/* What is known of an instruction's place is known of those behind it, and of a label that it takes: a process that waits,
 * or whose turn ends, goes on there with the same frame. */
static bool tell_next(struct flow *f, uint32_t i)
{
	const struct insn *insn = &f->insns[i];
	uint8_t side = insn->op == OP_LEAVE			       ? SIDE_C
		       : insn->op == OP_BACK || insn->op == OP_BACK_OF ? SIDE_ERLANG
								       : insn->side;
	bool has_told = false;

	if (!insn->side || insn->op == OP_ALIGN)
		return false;
	for (int way = 0; way < 2; way++) {
		struct insn *next = next_of(f, i, way);

		if (next)
			has_told |= tell(next, side, insn, insn->op == OP_MOVE ? insn->value : 0);
	}
	if (f->has_labels && insn->op == OP_LABEL && insn->target != NOWHERE)
		has_told |= tell(&f->insns[insn->target], SIDE_ERLANG, insn, 0);
	return has_told;
}

/* What is known of the instructions behind one tells of it. @guess: at an end of a path that says nothing the code is on
 * Erlang's stack, at an unknown depth. */
static bool tell_before(struct flow *f, uint32_t i, bool guess)
{
	struct insn *insn = &f->insns[i];
	const struct insn *next = NULL;

	if (insn->side)
		return false;
	if (insn->op == OP_RETURN || (insn->op == OP_END && guess)) {
		insn->side = SIDE_ERLANG;
		insn->is_deep = insn->op == OP_RETURN;
		return true;
	}
	for (int way = 0; way < 2 && !(next && next->side); way++)
		next = next_of(f, i, way);
	if (!next || !next->side || insn->op == OP_ALIGN)
		return false;
	insn->side = insn->op == OP_LEAVE			     ? SIDE_ERLANG
		     : insn->op == OP_BACK || insn->op == OP_BACK_OF ? SIDE_C
								     : next->side;
	insn->is_deep = next->is_deep;
	insn->depth = next->depth + (insn->op == OP_MOVE ? insn->value : 0);
	return true;
}

/* Repeats one of them, from the block's end or from its start, until nothing changes. */
static void follow(struct flow *f, bool is_back, bool guess)
{
	bool has_changed = true;

	for (uint32_t pass = 0; pass < MAX_PASSES && has_changed; pass++) {
		has_changed = false;
		for (uint32_t i = f->count; i-- > 0;)
			has_changed |= is_back ? tell_back(f, i) : tell_before(f, i, guess);
		for (uint32_t i = 0; i < f->count && !is_back; i++)
			has_changed |= tell_next(f, i);
	}
}

/* From the function's first instruction on: a call led there. */
static void follow_start(struct flow *f)
{
	bool has_changed = f->count;

	if (has_changed) {
		f->insns[0].side = SIDE_ERLANG;
		f->insns[0].is_deep = true;
	}
	for (uint32_t pass = 0; pass < MAX_PASSES && has_changed; pass++) {
		has_changed = false;
		for (uint32_t i = 0; i < f->count; i++)
			has_changed |= tell_next(f, i);
	}
}

/* --- rows --- */

static struct row plain_row(uint8_t cfa, uint8_t reg, int32_t off)
{
	struct row row = { .cfa = cfa, .cfa_reg = reg, .cfa_off = off };

	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = i == SAVED_RA ? -8 : ROW_SAME;
	return row;
}

static struct row row_of(const struct insn *i)
{
	enum { MAX_DEPTH = 1 << 20 };
	bool is_deep = i->is_deep && i->depth >= 0 && i->depth < MAX_DEPTH;
	int32_t off = is_deep ? i->depth + 8 : 0;

	if (i->side == SIDE_ERLANG)
		return plain_row(is_deep ? ROW_CFA_REG : ROW_CFA_TAGGED, REG_SP, off);
	if (i->side == SIDE_C && i->back == BACK_RBP)
		return plain_row(is_deep ? ROW_CFA_REG : ROW_CFA_TAGGED, REG_FP, off);
	if (i->side == SIDE_C && i->back == BACK_PROCESS)
		return is_deep ? plain_row(ROW_CFA_SCHED, SCHED_RETURNS, off) : plain_row(ROW_CFA_TAGGED, REG_PC, 0);
	return plain_row(ROW_CFA_NONE, 0, 0);
}

struct rows {
	struct row *row; /* owned */
	size_t count, cap;
};

static int add_row(struct rows *rows, uint64_t start, uint64_t end, struct row row)
{
	struct row *last = rows->count ? &rows->row[rows->count - 1] : NULL;

	if (row.cfa == ROW_CFA_NONE || start >= end)
		return 0;
	row.start = start;
	row.end = end;
	if (last && last->end == start && row_is_alike(last, &row)) {
		last->end = end;
		return 0;
	}
	if (rows->count == CODE_BLOCK_MAX_ROWS)
		return -EBADMSG;
	if (vec_reach(&rows->row, &rows->cap, rows->count))
		return -ENOMEM;
	rows->row[rows->count++] = row;
	return 0;
}

/* The scheduler's loop is on the scheduler's stack from where it aligned that until it goes to a process: nobody called. */
static int make_rows(struct flow *f, struct rows *rows)
{
	bool is_loop = false;
	int error = 0;

	for (uint32_t i = 0; i < f->count && !error; i++) {
		const struct insn *insn = &f->insns[i];
		uint64_t start = f->b->start + insn->at;

		is_loop |= insn->op == OP_ALIGN;
		error = add_row(rows, start, start + insn->len, is_loop ? plain_row(ROW_CFA_ROOT, 0, 0) : row_of(insn));
		is_loop &= insn->op != OP_BACK_OF;
	}
	return error;
}

static int block_rows(struct flow *f, const uint8_t *code, size_t len, struct rows *rows)
{
	bool is_function = f->b->kind == BEAM_FUNCTION;
	uint32_t from = is_function ? BEAM_CODE_INFO_BYTES + BEAM_PROLOGUE_BYTES : 0;
	int error;

	if (len <= from)
		return -EBADMSG;
	error = decode_all(f, code, len, from);
	if (error)
		return error;
	follow(f, true, false);
	if (is_function) { /* other code may be jumped to while a frame stands, or from the scheduler's stack */
		follow_start(f);
		f->has_labels = true; /* not before: tables of jumps have labels, too, and look like code */
		follow_start(f);
	}
	follow(f, false, false);
	follow(f, false, true);
	if (is_function) /* the place for breakpoints */
		error = add_row(rows, f->b->start + BEAM_CODE_INFO_BYTES, f->b->start + from,
				plain_row(ROW_CFA_REG, REG_SP, 8));
	return error ? error : make_rows(f, rows);
}

int beam_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	struct flow f = { .s = state, .b = b };
	size_t len = b->end - b->start;
	AUTO_FREE uint8_t *code = NULL;
	struct rows rows = { 0 };
	int error;

	*ret = NULL;
	*count_ret = 0;
	if (b->end <= b->start || len > CODE_BLOCK_MAX_BYTES)
		return -EBADMSG;
	if (b->kind == BEAM_ROOT) {
		error = add_row(&rows, b->start, b->end, plain_row(ROW_CFA_ROOT, 0, 0));
	} else {
		code = malloc(len);
		error = code ? code_read(m, b->start, code, len) : -ENOMEM;
		f.module = b->own[BEAM_OWN_HEADER];
		f.module_end = b->own[BEAM_OWN_MODULE_END];
		if (!error)
			error = block_rows(&f, code, len, &rows);
		free(f.insns);
	}
	if (error) {
		free(rows.row);
		return error;
	}
	*ret = rows.row;
	*count_ret = rows.count;
	return 0;
}
