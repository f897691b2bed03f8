/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of .NET's code. The unwind information has the form of Windows (UNWIND_INFO of "x64 exception handling"), with one
 * code more (UWOP_SET_FPREG_LARGE of clrnt.h): all that the prologue does, but nothing of epilogues. So paths are followed
 * from the entry's first instruction, and the frame that the codes tell stands wherever no path leads. The two must agree
 * where the prologue ends; else only the codes count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"

enum {
	PUSH_NONVOL,
	ALLOC_LARGE,
	ALLOC_SMALL,
	SET_FPREG,
	SAVE_NONVOL,
	SAVE_NONVOL_FAR,
	EPILOG,
	SPARE,
	SAVE_XMM128,
	SAVE_XMM128_FAR,
	PUSH_MACHFRAME,
	SET_FPREG_LARGE,
};

enum {
	RBX = 3,
	RBP = 5,
	R12 = 12,
	MAX_CODES = 255,
	HEAD_BYTES = 4,
	MAX_FRAME_BYTES = 1 << 27,
	MAX_STUBS = 256,
	MAX_STUB_BYTES = 4096 + 64, /* of those in a heap up to an address, and its instruction */
};

static const uint8_t saved_of[CODE_REGS] = { [RBX] = SAVED_RBX + 1, [RBP] = SAVED_FP + 1, [R12] = SAVED_R12 + 1,
					     [13] = SAVED_R13 + 1,  [14] = SAVED_R14 + 1, [15] = SAVED_R15 + 1 };

struct frame {
	uint32_t prologue_bytes;
	bool has_frame_pointer;
	struct code_state entry; /* a method that goes on in another's frame (on-stack replacement) begins with that */
	struct code_state state; /* behind the prologue */
};

struct codes {
	uint8_t head[HEAD_BYTES], slots[MAX_CODES * 2];
	uint8_t at[MAX_CODES]; /* slots where a code begins */
	uint32_t count;
};

static void save(struct code_state *s, uint32_t reg, int32_t at)
{
	if (saved_of[reg])
		s->slot[saved_of[reg] - 1] = at;
	s->reg[reg] = CODE_UNKNOWN;
}

/* Slots of 2 bytes that a code takes. */
static uint32_t slots_of(uint32_t op, uint32_t info)
{
	switch (op) {
	case ALLOC_LARGE:
		return info ? 3 : 2;
	case SAVE_NONVOL:
	case SAVE_XMM128:
		return 2;
	case SAVE_NONVOL_FAR:
	case SAVE_XMM128_FAR:
	case SET_FPREG_LARGE:
		return 3;
	default:
		return 1;
	}
}

static uint32_t number_at(const uint8_t *slot, uint32_t slots)
{
	uint16_t low, high = 0;

	memcpy(&low, slot + 2, sizeof(low));
	if (slots == 3)
		memcpy(&high, slot + 4, sizeof(high));
	return low | (uint32_t)high << 16;
}

/* Applies one code to @s. False: it is none that a frame is made of. */
static bool apply(struct code_state *s, const uint8_t *slot, const uint8_t head[static HEAD_BYTES])
{
	uint32_t op = slot[1] & 15, info = slot[1] >> 4, slots = slots_of(op, info), reg = head[3] & 15;
	uint32_t number = slots > 1 ? number_at(slot, slots) : 0;
	int32_t *sp = &s->reg[CODE_SP];

	if (number > MAX_FRAME_BYTES / 16 || *sp < -MAX_FRAME_BYTES)
		return false;
	switch (op) {
	case PUSH_NONVOL:
		*sp -= 8;
		save(s, info, *sp);
		return true;
	case ALLOC_LARGE:
		*sp -= (int32_t)(info ? number : number * 8);
		return true;
	case ALLOC_SMALL:
		*sp -= (int32_t)(info * 8 + 8);
		return true;
	case SET_FPREG:
	case SET_FPREG_LARGE:
		s->reg[reg] = *sp + (int32_t)(op == SET_FPREG ? (head[3] >> 4) * 16u : number * 16);
		return true;
	case SAVE_NONVOL:
	case SAVE_NONVOL_FAR:
	case SAVE_XMM128:
	case SAVE_XMM128_FAR:
		return true; /* places from the stack pointer behind the prologue: save_moved() */
	default:
		return false;
	}
}

/* Applies the codes that move registers, whose place counts from rsp behind the prologue. */
static void save_moved(struct code_state *s, const struct codes *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const uint8_t *slot = c->slots + 2 * c->at[i];
		uint32_t op = slot[1] & 15, slots = slots_of(op, slot[1] >> 4);

		if (op == SAVE_NONVOL || op == SAVE_NONVOL_FAR)
			save(s, slot[1] >> 4,
			     s->reg[CODE_SP] + (int32_t)(number_at(slot, slots) & (MAX_FRAME_BYTES - 1)) *
						       (op == SAVE_NONVOL ? 8 : 1));
	}
}

static int read_codes(struct code_memory *m, uint64_t unwind, struct codes *c)
{
	int error = code_read(m, unwind, c->head, sizeof(c->head));

	if (!error)
		error = code_read(m, unwind + HEAD_BYTES, c->slots, c->head[2] * 2u);
	if (error)
		return error;
	if ((c->head[0] & 7) != 1)
		return -EBADMSG;
	c->count = 0;
	for (uint32_t i = 0; i < c->head[2];) {
		c->at[c->count++] = (uint8_t)i;
		i += slots_of(c->slots[2 * i + 1] & 15, c->slots[2 * i + 1] >> 4);
		if (i > c->head[2])
			return -EBADMSG;
	}
	return 0;
}

static int read_frame(struct code_memory *m, uint64_t unwind, struct frame *f)
{
	struct codes c;
	int error = read_codes(m, unwind, &c);

	if (error)
		return error;
	f->state = f->entry = code_state_entry;
	f->prologue_bytes = c.head[1];
	for (uint32_t i = c.count; i-- > 0;) { /* the last one is done first */
		const uint8_t *slot = c.slots + 2 * c.at[i];

		if (!apply(&f->state, slot, c.head))
			return -EBADMSG;
		if (!slot[0])
			f->entry = f->state;
	}
	save_moved(&f->state, &c);
	f->has_frame_pointer = code_is_offset(f->state.reg[RBP]);
	for (int i = 0; i < CODE_REGS; i++) /* nothing is known of what the body does with the others */
		if (i != CODE_SP && f->state.reg[i] != CODE_ENTRY && !(i == RBP && f->has_frame_pointer))
			f->state.reg[i] = CODE_UNKNOWN;
	return 0;
}

/* Does code restore rsp from rbp? Then rsp may have moved meanwhile. */
static bool moves_stack(const uint8_t *code, size_t len)
{
	static const uint8_t lea[2][3] = { { 0x48, 0x8d, 0x65 }, { 0x48, 0x8d, 0xa5 } };

	return memmem(code, len, lea[0], sizeof(lea[0])) || memmem(code, len, lea[1], sizeof(lea[1]));
}

static bool never_returns(void *arg, uint64_t target)
{
	(void)arg;
	(void)target;
	return false;
}

static bool is_rule(const struct row *row, const struct row *rule)
{
	return row->cfa == rule->cfa && row->cfa_reg == rule->cfa_reg && row->cfa_off == rule->cfa_off &&
	       row->cfa_off2 == rule->cfa_off2;
}

/* Do the rows that the paths tell have the frame that the codes tell, where the prologue ends? */
static bool agrees(const struct row *rows, size_t count, uint64_t addr, const struct frame *f)
{
	struct code_state by_sp = f->state;
	struct row rule[2] = { 0 };

	if (!code_state_row(&f->state, true, &rule[0]))
		rule[0].cfa = ROW_CFA_NONE;
	if (f->has_frame_pointer)
		by_sp.reg[RBP] = CODE_UNKNOWN;
	if (!code_state_row(&by_sp, false, &rule[1]))
		rule[1].cfa = ROW_CFA_NONE;
	for (size_t i = 0; i < count; i++)
		if (addr >= rows[i].start && addr < rows[i].end)
			return is_rule(&rows[i], &rule[0]) || is_rule(&rows[i], &rule[1]);
	return false;
}

/* The frame behind the prologue, and nothing else. */
static int rows_of_codes(const struct code_block *b, const struct frame *f, struct row **ret, size_t *count_ret)
{
	struct row *row = calloc(1, sizeof(*row));

	if (!row)
		return -ENOMEM;
	*count_ret = code_state_row(&f->state, false, row);
	row->start = b->start + f->prologue_bytes;
	row->end = b->end;
	if (row->start >= row->end)
		*count_ret = 0;
	*ret = row;
	return 0;
}

static int rows_of_paths(const struct code_block *b, const uint8_t *code, struct frame *f, struct row **ret,
			 size_t *count_ret)
{
	const struct code_function function = { .start = b->start, .end = b->end, .code = code, .is_all_its = true };
	const struct code_entry entry = { b->start, f->entry };
	struct code_made made = { .never_returns = never_returns, .first_cnt = 1, .rest = &f->state };

	if (f->has_frame_pointer && moves_stack(code, b->end - b->start))
		f->state.reg[CODE_SP] = CODE_UNKNOWN;
	return code_flow_made_rows(&function, &entry, 1, &made, ret, count_ret);
}

/* Does a stub begin here that saves something on the stack first (virtualcallstubcpu.hpp)? One that looks for an interface's
 * method (ResolveStub): push rdx; mov r10, imm64. One that has nothing to look at yet (LookupStub): mov rax, imm64; push
 * rax. */
static bool does_push(const uint8_t *code, size_t len)
{
	enum { LOOKUP_PUSH = 10, PUSH_RAX = 0x50 };
	static const uint8_t resolve[] = { 0x52, 0x49, 0xba }, lookup[] = { 0x48, 0xb8 };

	return (len >= sizeof(resolve) && !memcmp(code, resolve, sizeof(resolve))) ||
	       (len > LOOKUP_PUSH && !memcmp(code, lookup, sizeof(lookup)) && code[LOOKUP_PUSH] == PUSH_RAX);
}

/* Says of all of @b that has no row of @rows, which are freed: there is no frame. */
static int fill_rows(const struct code_block *b, struct row *rows, size_t count, struct row **ret, size_t *count_ret)
{
	AUTO_FREE struct row *given = rows;
	struct row *all = calloc(2 * count + 1, sizeof(*all));
	uint64_t at = b->start;
	size_t n = 0;

	*ret = all;
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i <= count; i++) {
		uint64_t next = i < count ? given[i].start : b->end;

		if (at < next && code_state_row(&code_state_entry, false, &all[n])) {
			all[n].start = at;
			all[n++].end = next;
		}
		if (i < count) {
			at = given[i].end;
			all[n++] = given[i];
		}
	}
	*count_ret = n;
	return 0;
}

/* Stubs end in a jump, and have no frame, but the few above. Data stand between them (before .NET 8 everywhere, later where
 * dictionaries are looked up), so that they cannot be read one behind the other. */
static int stub_rows(struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	const struct code_made made = { .never_returns = never_returns };
	struct code_function f = { .start = b->start, .end = b->end, .is_all_its = true };
	size_t len = b->end - b->start, count = 0;
	uint8_t code[MAX_STUB_BYTES];
	struct code_entry entries[MAX_STUBS];
	int error = len > sizeof(code) ? -EBADMSG : code_read(m, b->start, code, len);

	if (error)
		return error;
	f.code = code;
	for (size_t i = 0; i < len && count < ARRAY_LEN(entries); i++)
		if (does_push(code + i, len - i))
			entries[count++] = (struct code_entry){ b->start + i, code_state_entry };
	error = code_flow_made_rows(&f, entries, count, &made, ret, count_ret);
	return error ? error : fill_rows(b, *ret, *count_ret, ret, count_ret);
}

int dotnet_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	AUTO_FREE uint8_t *code = NULL;
	struct frame f = { 0 };
	int error;

	(void)state;
	if (b->kind == DOTNET_STUB)
		return stub_rows(m, b, ret, count_ret);
	if (b->start >= b->end || b->end - b->start > CODE_BLOCK_MAX_BYTES)
		return -EBADMSG;
	code = malloc(b->end - b->start);
	if (!code)
		return -ENOMEM;
	error = code_read(m, b->start, code, b->end - b->start);
	if (!error)
		error = read_frame(m, b->own[DOTNET_OWN_UNWIND], &f);
	if (!error)
		error = rows_of_paths(b, code, &f, ret, count_ret);
	if (error || f.prologue_bytes >= b->end - b->start || agrees(*ret, *count_ret, b->start + f.prologue_bytes, &f))
		return error;
	free(*ret);
	*ret = NULL;
	*count_ret = 0;
	return rows_of_codes(b, &f, ret, count_ret);
}
