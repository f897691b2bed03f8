/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's frames on arm64. The table says how far sp stands below the caller's, so that is the CFA; a frame keeps lr at its
 * lowest place and x29 below that, where the next one begins, and has x29 point there. A function without a frame leaves
 * both alone. Assembly may do anything else, so what a function saves is read off its code where the frame opens. Functions
 * that set sp to something else (they go over to another stack) cannot be told by sp; those that keep x29 are told by it,
 * the others by what the scheduler noted about their goroutine.
 */
#include <string.h>

#include "agent/rows/go_frame.h"
#include "base/cleanup.h"
#include "bpf/event.h"

enum {
	INSN_BYTES = 4,
	MAX_SWITCH_BYTES = 512, /* of a function that switches stacks; they have about 200 */
	PREEMPT_BYTES = 16,	/* what the runtime makes room for when it makes a function call asyncPreempt */
};

/* The things that one function does with its frame. */
struct frame {
	int32_t size;	       /* of it, once it is open */
	int32_t extra;	       /* between its end and the caller's sp */
	uint64_t lr_from;      /* lr stands in the frame from here on; UINT64_MAX: never */
	uint64_t fp_from;      /* x29 does */
	uint64_t pointer_from; /* x29 points there */
	uint64_t moved_from;   /* sp is on another stack from here on and x29 tells */
	struct go_turns turns;
};

static uint32_t insn_at(const struct gopclntab *t, uint64_t addr)
{
	const uint8_t *code = gopclntab_code(t, addr, INSN_BYTES);
	uint32_t insn = 0;

	if (code)
		memcpy(&insn, code, sizeof(insn));
	return insn;
}

/*
 * The frame is open from @addr on. A small one: str x30, [sp, #-size]!; stur x29, [sp, #-8]; sub x29, sp, #8. A large one:
 * stp x29, x30, [x20, #-8]; mov sp, x20; sub x29, sp, #8. asyncPreempt writes lr where sp will be: stur x30, [sp, #-size];
 * sub sp, sp, #size, with as many instructions as the size needs; then as a small one.
 */
static void read_prologue(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t addr, struct frame *f)
{
	bool is_preempt = go_is_named(fn, "runtime.asyncPreempt");

	if (insn_at(t, addr - 2 * INSN_BYTES) == 0xa93ffa9d && insn_at(t, addr - INSN_BYTES) == 0x9100029f) {
		f->lr_from = f->fp_from = addr;
	} else if ((insn_at(t, addr - INSN_BYTES) & 0xffe00fff) == 0xf8000ffe || is_preempt) {
		f->lr_from = addr;
		if (insn_at(t, addr) == 0xf81f83fd)
			f->fp_from = addr += INSN_BYTES;
	}
	if (f->fp_from != UINT64_MAX && insn_at(t, addr) == 0xd10023fd)
		f->pointer_from = addr + INSN_BYTES;
	f->extra = is_preempt ? PREEMPT_BYTES : 0;
}

/*
 * The turns of the switch @fn: each move to sp leads away from its stack, which then is where @away says, or back.
 * asmcgocall makes room on the other stack first (in x13), and keeps there the depth of its own one (from x4). It has a
 * second way, for callers on the system stack already: it makes the same room, with the old sp in x2 and then on the stack.
 */
static void read_turns(const struct gopclntab *t, const struct gopclntab_function *fn, struct go_turn away, struct frame *f)
{
	const struct go_turn back = { .cfa = ROW_CFA_NONE };
	bool is_away = false;

	for (uint64_t at = fn->entry; at < fn->end && at - fn->entry < MAX_SWITCH_BYTES; at += INSN_BYTES) {
		uint32_t insn = insn_at(t, at);
		uint64_t next = at + INSN_BYTES;
		bool is_room = insn == 0x910001bf; /* mov sp, x13 */

		if (is_room && !is_away) {
			is_away = true;
			go_turns_add(&f->turns, next, (struct go_turn){ .cfa = ROW_CFA_REG, .reg = 2, .off = f->size });
		} else if (!is_room && (insn & 0xfffffc1f) == 0x9100001f) { /* mov sp, reg */
			is_away = !is_away;
			go_turns_add(&f->turns, next, is_away ? away : back);
		} else if (is_away && insn == 0xf90007e4) { /* str x4, [sp, #8] */
			go_turns_add(&f->turns, next,
				     (struct go_turn){ .cfa = ROW_CFA_SCHED, .reg = SCHED_RETURNS_DEPTH, .off = 8 });
		} else if (is_away && insn == 0xf90007e2) { /* str x2, [sp, #8] */
			go_turns_add(&f->turns, next,
				     (struct go_turn){ .cfa = ROW_CFA_DEREF, .reg = REG_SP, .off = 8, .off2 = f->size });
		}
	}
}

/*
 * Finds the rule by which a function that changes stacks returns. systemstack and asmcgocall return to their goroutine, but
 * may take the other stack's x29. morestack lets the scheduler go on with its caller. mcall and gogo leave for good: what
 * they call is the beginning of a stack, as in the runtime's own view. The others keep x29.
 */
static void read_stack_switch(const struct gopclntab *t, const struct gopclntab_function *fn, struct frame *f)
{
	if (go_is_named(fn, "runtime.morestack"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_SCHED, .reg = SCHED_RESUMES }, f);
	else if (go_is_named(fn, "runtime.mcall") || go_is_named(fn, "gogo"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_ROOT }, f);
	else if (go_is_named(fn, "runtime.systemstack") || go_is_named(fn, "runtime.asmcgocall"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_SCHED, .reg = SCHED_RETURNS, .off = f->size }, f);
	else if (f->pointer_from != UINT64_MAX)
		f->moved_from = f->pointer_from;
	else
		go_turns_add(&f->turns, fn->entry, (struct go_turn){ .cfa = ROW_CFA_EXPR });
}

static void read_frame(const struct gopclntab *t, const struct gopclntab_function *fn, struct frame *f)
{
	struct gopclntab_values it;
	uint64_t start, end;
	int32_t value;

	*f = (struct frame){
		.lr_from = UINT64_MAX, .fp_from = UINT64_MAX, .pointer_from = UINT64_MAX, .moved_from = UINT64_MAX
	};
	gopclntab_values_init(t, fn, fn->sp_values, &it);
	while (gopclntab_values_next(&it, &start, &end, &value) && start < fn->end) {
		if (value > 0) {
			f->size = value;
			read_prologue(t, fn, start, f);
			break;
		}
	}
	if (fn->flags & GOPCLNTAB_SP_WRITE)
		read_stack_switch(t, fn, f);
}

/* The row at @at within a range where sp stands @depth below the caller's; *@end is cut to where it changes. */
static struct row make_row(const struct frame *f, uint64_t at, uint64_t *end, int32_t depth)
{
	const uint64_t places[] = { f->lr_from, f->fp_from, f->moved_from };
	bool is_moved = at >= f->moved_from && depth;
	const struct go_turn *turn = go_turns_find(&f->turns, at, end);
	struct row row = { .start = at, .cfa = ROW_CFA_REG };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (at < places[i] && places[i] < *end)
			*end = places[i];
	row.end = *end;
	if (depth < 0 || depth > INT32_MAX / 2 || depth % 8 || f->size % 8 || f->size > INT32_MAX / 2 ||
	    (turn && turn->cfa == ROW_CFA_EXPR))
		row.cfa = ROW_CFA_NONE;
	else if (turn)
		row.cfa = (uint8_t)turn->cfa;
	if (row.cfa == ROW_CFA_NONE || row.cfa == ROW_CFA_ROOT)
		return row;
	row.cfa_reg = turn ? turn->reg : is_moved ? REG_FP : REG_SP;
	row.cfa_off = turn ? turn->off : (is_moved ? f->size + 8 : depth) + f->extra;
	row.cfa_off2 = turn ? turn->off2 : 0;
	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = ROW_SAME;
	if (depth && at >= f->lr_from)
		row.saved[SAVED_RA] = -f->size - f->extra;
	if (depth && at >= f->fp_from)
		row.saved[SAVED_FP] = -f->size - f->extra - 8;
	return row;
}

/* The kernel's own signal return is used: agent/rows/sigreturn.c. */
uint64_t go_frame_trampoline(const struct gopclntab *t, const struct gopclntab_function *fn)
{
	(void)t;
	(void)fn;
	return UINT64_MAX;
}

bool go_frame_is_entry(const struct gopclntab_function *fn)
{
	return go_is_named(fn, "_rt0_arm64_linux");
}

int go_frame_rows(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t stop, struct go_rows *out)
{
	struct gopclntab_values it;
	uint64_t start, end;
	struct frame f;
	int32_t depth;
	int r = 0;

	read_frame(t, fn, &f);
	gopclntab_values_init(t, fn, fn->sp_values, &it);
	while (r == 0 && gopclntab_values_next(&it, &start, &end, &depth) && start < stop && start < out->end) {
		if (end > stop)
			end = stop;
		for (uint64_t at = start, to; at < end && r == 0; at = to) {
			to = end;
			r = go_rows_add(out, make_row(&f, at, &to, depth));
		}
	}
	return r;
}
