/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's frames on x86-64. The table says how far rsp stands below the return address, so the CFA is rsp + that + 8. It does
 * not say where rbp is saved; Go has two prologues, and which one a function has is read off its code where the frame opens.
 * Functions that set rsp to something else (they go over to another stack) cannot be told by rsp; those with a frame pointer
 * are told by it, as they never touch it in between, the others by what the scheduler noted about their goroutine.
 */
#include <string.h>

#include "agent/rows/go_frame.h"
#include "base/cleanup.h"
#include "bpf/event.h"

enum {
	RA_OFFSET = -8,
	RBP_OFFSET = -16,
	MAX_SWITCH_BYTES = 256, /* of a function that switches stacks; they have about 140 */
};

/* The things that one function does with its frame. */
struct frame {
	bool saves_rbp;
	uint64_t saved_from;   /* rbp stands in the frame from here on ... */
	uint64_t pointer_from; /* ... and points at its place in it */
	uint64_t moved_from;   /* rsp is on another stack from here on and rbp tells; UINT64_MAX: never */
	struct go_turns turns; /* of the functions without rbp */
};

/* Length of the instruction "mov/lea with rbp and @disp(%rsp)" at @addr, 0 when it is another one. */
static unsigned sp_operand(const struct gopclntab *t, uint64_t addr, uint8_t opcode, int32_t disp)
{
	const uint8_t none[] = { 0x48, opcode, 0x2c, 0x24 };
	const uint8_t near[] = { 0x48, opcode, 0x6c, 0x24, (uint8_t)disp };
	uint8_t far[8] = { 0x48, opcode, 0xac, 0x24 };

	memcpy(far + 4, &disp, 4);
	if (disp == 0 && go_is_code(t, addr, none, sizeof(none)))
		return sizeof(none);
	if (disp <= INT8_MAX && go_is_code(t, addr, near, sizeof(near)))
		return sizeof(near);
	return go_is_code(t, addr, far, sizeof(far)) ? sizeof(far) : 0;
}

/*
 * The frame opens at @addr and has @size bytes. 1.21 and newer: push %rbp; mov %rsp,%rbp, then room for the rest. Before:
 * room for all; mov %rbp,size-8(%rsp); lea size-8(%rsp),%rbp. Assembly may do anything else and leaves rbp alone.
 */
static void read_prologue(const struct gopclntab *t, uint64_t addr, int32_t size, struct frame *f)
{
	unsigned save;

	if (go_is_code(t, addr - 1, "\x55\x48\x89\xe5", 4)) {
		f->saves_rbp = true;
		f->saved_from = addr;
		f->pointer_from = addr + 3;
		return;
	}
	save = sp_operand(t, addr, 0x89, size - 8);
	f->saves_rbp = save > 0;
	f->saved_from = addr + save;
	f->pointer_from = addr + save + sp_operand(t, addr + save, 0x8d, size - 8);
}

/* Length of an instruction at @code that puts another stack into rsp: mov (reg),%rsp, mov disp8(reg),%rsp, mov reg,%rsp. */
static unsigned move_to_rsp(const uint8_t *code)
{
	if ((code[0] & 0xfe) == 0x48 && code[1] == 0x8b && (code[2] & 0xb8) == 0x20 && (code[2] & 7) != 4)
		return code[2] & 0x40 ? 4 : 3;
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x89 && (code[2] & 0xc7) == 0xc4 ? 3 : 0;
}

/*
 * The turns of the switch @fn: each move to rsp leads away from its stack, which then is where @away says, or back.
 * asmcgocall keeps the depth of its stack (in rdi first, after the goroutine) on the other one. It has a second way, for
 * callers on the system stack already: it aligns rsp, with the old one in rdx and then on the stack.
 */
static void read_turns(const struct gopclntab *t, const struct gopclntab_function *fn, struct go_turn away, struct frame *f)
{
	const struct go_turn back = { .cfa = ROW_CFA_NONE };
	bool is_away = false;
	int rdi_stores = 0;

	for (uint64_t at = fn->entry; at < fn->end && at - fn->entry < MAX_SWITCH_BYTES; at++) {
		const uint8_t *code = gopclntab_code(t, at, 5);
		unsigned len = code ? move_to_rsp(code) : 0;

		if (!code)
			break;
		if (len) {
			is_away = !is_away;
			go_turns_add(&f->turns, at + len, is_away ? away : back);
			at += len - 1;
		} else if (!is_away && memcmp(code, "\x48\x83\xe4\xf0", 4) == 0) { /* and $-16,%rsp */
			is_away = true;
			go_turns_add(&f->turns, at, (struct go_turn){ .cfa = ROW_CFA_REG, .reg = DWARF_RDX, .off = 8 });
		} else if (is_away && memcmp(code, "\x48\x89\x7c\x24", 4) == 0 &&
			   rdi_stores++ == 1) { /* mov %rdi,disp8(%rsp) */
			go_turns_add(&f->turns, at + 5,
				     (struct go_turn){
					     .cfa = ROW_CFA_SCHED, .reg = SCHED_RETURNS_DEPTH, .off = (int8_t)code[4] });
		} else if (is_away && memcmp(code, "\x48\x89\x54\x24", 4) == 0) { /* mov %rdx,disp8(%rsp) */
			go_turns_add(
				&f->turns, at + 5,
				(struct go_turn){ .cfa = ROW_CFA_DEREF, .reg = REG_SP, .off = (int8_t)code[4], .off2 = 8 });
		}
	}
}

/*
 * Finds the rule by which a function that changes stacks returns. systemstack and asmcgocall return to their goroutine;
 * since 1.21 they have a frame pointer, before that only the scheduler knows. morestack lets the scheduler go on with its
 * caller. mcall, gogo and a new thread in clone leave for good: what they call is the beginning of a stack, as in the
 * runtime's own view. The rest: no rule.
 */
static void read_stack_switch(const struct gopclntab *t, const struct gopclntab_function *fn, struct frame *f)
{
	if (go_is_named(fn, "runtime.morestack"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_SCHED, .reg = SCHED_RESUMES }, f);
	else if (go_is_named(fn, "runtime.mcall") || go_is_named(fn, "gogo") || go_is_named(fn, "runtime.clone"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_ROOT }, f);
	else if (f->saves_rbp)
		f->moved_from = f->pointer_from;
	else if (go_is_named(fn, "runtime.systemstack") || go_is_named(fn, "runtime.asmcgocall"))
		read_turns(t, fn, (struct go_turn){ .cfa = ROW_CFA_SCHED, .reg = SCHED_RETURNS, .off = 8 }, f);
	else if (!go_is_named(fn,
			      "runtime.cgocallback")) /* it writes rsp such that its frame stays valid, says the runtime */
		go_turns_add(&f->turns, fn->entry, (struct go_turn){ .cfa = ROW_CFA_EXPR });
}

static void read_frame(const struct gopclntab *t, const struct gopclntab_function *fn, struct frame *f)
{
	struct gopclntab_values it;
	uint64_t start, end;
	int32_t value;

	*f = (struct frame){ .moved_from = UINT64_MAX };
	gopclntab_values_init(t, fn, fn->sp_values, &it);
	while (gopclntab_values_next(&it, &start, &end, &value) && start < fn->end) {
		if (value > 0) {
			read_prologue(t, start, value, f);
			break;
		}
	}
	if (fn->flags & GOPCLNTAB_SP_WRITE)
		read_stack_switch(t, fn, f);
}

/*
 * Before 1.21 a frame of @size bytes closes by mov size-8(%rsp),%rbp; add $imm8,%rsp, which ends a range at @end: at its
 * last instruction rsp is back in the frame and rbp is the caller's.
 */
static uint64_t find_restored(const struct gopclntab *t, uint64_t end, int32_t size)
{
	uint64_t last = end - 4;

	if (!go_is_code(t, last, "\x48\x83\xc4", 3))
		return end;
	for (unsigned len = 4; len <= 8; len++)
		if (sp_operand(t, last - len, 0x8b, size - 8) == len)
			return last;
	return end;
}

/*
 * The row at @at within a range where rsp stands @depth below the return address, up to @restored if rsp was elsewhere;
 * *@end is cut to where it changes.
 */
static struct row make_row(const struct frame *f, uint64_t at, uint64_t *end, int32_t depth, uint64_t restored)
{
	uint64_t places[] = { f->moved_from, restored, f->saves_rbp && depth ? f->saved_from : at };
	bool is_moved = at >= f->moved_from && at < restored && depth;
	const struct go_turn *turn = go_turns_find(&f->turns, at, end);
	struct row row = { .start = at, .cfa = ROW_CFA_REG };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (at < places[i] && places[i] < *end)
			*end = places[i];
	row.end = *end;
	if (depth < 0 || depth > INT32_MAX - 8 || depth % 8 || (turn && turn->cfa == ROW_CFA_EXPR))
		row.cfa = ROW_CFA_NONE;
	else if (turn)
		row.cfa = (uint8_t)turn->cfa;
	if (row.cfa == ROW_CFA_NONE || row.cfa == ROW_CFA_ROOT)
		return row;
	row.cfa_reg = turn ? turn->reg : is_moved ? REG_FP : REG_SP;
	row.cfa_off = turn ? turn->off : is_moved ? 16 : depth + 8;
	row.cfa_off2 = turn ? turn->off2 : 0;
	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = ROW_SAME;
	row.saved[SAVED_RA] = RA_OFFSET;
	if (!turn && f->saves_rbp && depth && at >= f->saved_from)
		row.saved[SAVED_FP] = RBP_OFFSET;
	return row;
}

/* The runtime's own signal return: mov $15,%rax; syscall. */
static bool is_trampoline(const struct gopclntab *t, const struct gopclntab_function *fn)
{
	return go_is_code(t, fn->entry, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
}

/*
 * Nobody calls the trampoline: it is found as a return address, so the byte before it is looked up. If that is padding, the
 * trampoline's row begins with it.
 */
static uint64_t trampoline_start(const struct gopclntab *t, const struct gopclntab_function *fn)
{
	return go_is_code(t, fn->entry - 1, "\xcc", 1) ? fn->entry - 1 : fn->entry;
}

uint64_t go_frame_trampoline(const struct gopclntab *t, const struct gopclntab_function *fn)
{
	return is_trampoline(t, fn) ? trampoline_start(t, fn) : UINT64_MAX;
}

bool go_frame_is_entry(const struct gopclntab_function *fn)
{
	return go_is_named(fn, "_rt0_amd64_linux") || go_is_named(fn, "_rt0_amd64");
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
		uint64_t restored = f.moved_from != UINT64_MAX && depth > 0 ? find_restored(t, end, depth) : end;

		if (end > stop)
			end = stop;
		for (uint64_t at = start, to; at < end && r == 0; at = to) {
			to = end;
			r = go_rows_add(out, make_row(&f, at, &to, depth, restored));
		}
	}
	return r;
}
