/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls are kept as a tree: a stop holds its innermost call, and what it was called by hangs from that, whatever came later.
 * Returns of frames older than the stretch are kept in order; a stop's own are those that came after it, in its segment.
 */
#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/cleanup.h"
#include "tests/judge/truth.h"

enum { MAX_INSN_BYTES = 15, SHORTEST_CALL = 2, LONGEST_CALL = 8, RESTORER_BYTES = 8 };

enum {
	CONTEXT_RIP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
	CONTEXT_RSP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
};

/* A frame that began while we watched. */
struct truth_call {
	const struct truth_call *caller;
	struct truth_call *next_made; /* all of them, to be freed */
	uint64_t slot;		      /* where the return address stands */
	uint64_t pc;		      /* it; with FRAME_EXACT: where a signal came */
	uint64_t interrupted_sp;      /* of such */
	bool is_data;		      /* a call only to learn its own address: popped, never returned from */
};

/* What returned but was called before we watched. */
struct returned {
	uint64_t slot, pc;
};

struct segment {
	uint32_t first, count; /* of returned[] */
	bool is_first;
};

/* The instruction to be executed next. */
struct next_insn {
	bool is_known;
	bool is_call, is_return, is_syscall, is_sigreturn, is_pop, goes_elsewhere;
	uint64_t pc, sp, behind;
};

struct truth {
	struct memory *memory;
	ZydisDecoder decoder;
	struct truth_call *calls, *made;
	struct returned *returned;
	uint32_t returned_cnt, returned_room;
	struct segment *segments;
	uint32_t segment_cnt, segment_room;
	struct next_insn next;
};

struct truth *truth_new(struct memory *m)
{
	struct truth *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->memory = m;
	ZydisDecoderInit(&t->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return t;
}

static void free_calls(struct truth *t)
{
	while (t->made) {
		struct truth_call *next = t->made->next_made;

		free(t->made);
		t->made = next;
	}
	t->calls = NULL;
}

void truth_free(struct truth *t)
{
	if (!t)
		return;
	free_calls(t);
	free(t->returned);
	free(t->segments);
	free(t);
}

/* Room for one more of an array's elements. */
static void *grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	if (count == *room) {
		*room = *room ? *room * 2 : 256;
		array = reallocarray(array, *room, size);
		if (!array)
			abort();
	}
	return array;
}

static void begin_segment(struct truth *t, bool is_first)
{
	t->segments = grow(t->segments, t->segment_cnt, &t->segment_room, sizeof(*t->segments));
	t->segments[t->segment_cnt++] = (struct segment){ .first = t->returned_cnt, .is_first = is_first };
	t->calls = NULL;
}

void truth_begin(struct truth *t, bool is_first)
{
	free_calls(t);
	t->returned_cnt = t->segment_cnt = 0;
	begin_segment(t, is_first);
}

struct truth_mark truth_here(const struct truth *t)
{
	return (struct truth_mark){ .innermost = t->calls, .segment = t->segment_cnt - 1, .returned = t->returned_cnt };
}

static void push_call(struct truth *t, uint64_t slot, uint64_t pc, uint64_t interrupted_sp)
{
	struct truth_call *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	*c = (struct truth_call){ t->calls, t->made, slot, pc, interrupted_sp, false };
	t->made = t->calls = c;
}

static void pop_call(struct truth *t)
{
	t->calls = (struct truth_call *)(uintptr_t)t->calls->caller;
}

static bool is_call_before(struct truth *t, uint64_t pc)
{
	uint8_t code[LONGEST_CALL];

	if (memory_read(t->memory, pc - LONGEST_CALL, code, sizeof(code)))
		return false;
	for (size_t n = SHORTEST_CALL; n <= LONGEST_CALL; n++) {
		ZydisDecodedInstruction insn;

		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&t->decoder, NULL, &code[LONGEST_CALL - n], n, &insn)) &&
		    insn.length == n && insn.meta.category == ZYDIS_CATEGORY_CALL)
			return true;
	}
	return false;
}

/* rsp is set to something that is not where this stack was: it may be another one, or an outer frame of this. */
static bool leaves_stack(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	bool is_move = insn->mnemonic == ZYDIS_MNEMONIC_MOV || insn->mnemonic == ZYDIS_MNEMONIC_XCHG ||
		       insn->mnemonic == ZYDIS_MNEMONIC_POP;

	for (uint8_t i = 0; i < insn->operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &ops[i];

		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || op->reg.value != ZYDIS_REGISTER_RSP ||
		    !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		return is_move && !(ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[1].reg.value == ZYDIS_REGISTER_RBP);
	}
	return false;
}

void truth_before(struct truth *t, const struct user_regs_struct *regs)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	uint8_t code[MAX_INSN_BYTES];
	size_t len = memory_copy(t->memory, regs->rip, code, sizeof(code));
	struct next_insn *n = &t->next;

	*n = (struct next_insn){ .pc = regs->rip, .sp = regs->rsp };
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&t->decoder, code, len, &insn, ops)))
		return;
	n->is_known = true;
	n->behind = regs->rip + insn.length;
	n->is_call = insn.meta.category == ZYDIS_CATEGORY_CALL;
	n->is_return = insn.meta.category == ZYDIS_CATEGORY_RET;
	n->is_syscall = insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
	n->is_sigreturn = n->is_syscall && regs->rax == SYS_rt_sigreturn;
	n->is_pop = insn.mnemonic == ZYDIS_MNEMONIC_POP;
	n->goes_elsewhere = leaves_stack(&insn, ops);
}

/* The kernel built a signal frame: its layout is that of struct rt_sigframe, a return address and then the ucontext. */
static void enter_handler(struct truth *t, const struct user_regs_struct *regs)
{
	uint64_t restorer, pc, sp, context = regs->rsp + RESTORER_BYTES;

	if (memory_read(t->memory, regs->rsp, &restorer, 8) || memory_read(t->memory, context + CONTEXT_RIP, &pc, 8) ||
	    memory_read(t->memory, context + CONTEXT_RSP, &sp, 8) || sp != t->next.sp) {
		begin_segment(t, false);
		return;
	}
	push_call(t, context, pc | FRAME_EXACT, sp);
	push_call(t, regs->rsp, restorer, 0);
}

static void leave_handler(struct truth *t, const struct user_regs_struct *regs)
{
	while (t->calls && !(t->calls->pc & FRAME_EXACT))
		pop_call(t);
	if (t->calls && (t->calls->pc & ~FRAME_EXACT) == regs->rip && t->calls->interrupted_sp == regs->rsp)
		pop_call(t);
	else
		begin_segment(t, false);
}

/* The last frame known to have returned, if the segment has one. */
static uint64_t outermost_slot(const struct truth *t)
{
	const struct segment *s = &t->segments[t->segment_cnt - 1];

	return s->count ? t->returned[t->returned_cnt - 1].slot : 0;
}

static void add_returned(struct truth *t, uint64_t slot, uint64_t pc)
{
	t->returned = grow(t->returned, t->returned_cnt, &t->returned_room, sizeof(*t->returned));
	t->returned[t->returned_cnt++] = (struct returned){ slot, pc };
	t->segments[t->segment_cnt - 1].count++;
}

static void return_from(struct truth *t, uint64_t slot, uint64_t pc)
{
	if (t->calls && t->calls->slot == slot && t->calls->pc == pc)
		pop_call(t);
	else if (slot < (t->calls ? t->calls->slot : outermost_slot(t)))
		return; /* a jump to an address that was pushed */
	else if (t->calls || !is_call_before(t, pc))
		begin_segment(t, false);
	else
		add_returned(t, slot, pc);
}

/* Frames whose return address is no longer on the stack. */
static void drop_calls(struct truth *t, uint64_t sp)
{
	if (!t->calls || t->calls->pc & FRAME_EXACT || t->calls->slot >= sp)
		return;
	if (t->next.is_pop && t->calls->slot == t->next.sp) {
		t->calls->is_data = true;
		pop_call(t);
	} else {
		begin_segment(t, false);
	}
}

bool truth_after(struct truth *t, const struct user_regs_struct *regs, int signal)
{
	const struct next_insn *n = &t->next;
	uint64_t word;

	if (signal && regs->rip != n->behind && regs->rsp < n->sp - 128) {
		enter_handler(t, regs);
		return false;
	}
	if (!n->is_known || n->goes_elsewhere)
		begin_segment(t, false);
	else if (n->is_sigreturn)
		leave_handler(t, regs);
	else if (n->is_return && regs->rip != n->pc)
		return_from(t, n->sp, regs->rip);
	else if (n->is_call && regs->rsp == n->sp - 8 && !memory_read(t->memory, regs->rsp, &word, 8) && word == n->behind)
		push_call(t, regs->rsp, word, 0);
	else
		drop_calls(t, regs->rsp);
	return n->is_syscall;
}

bool truth_returned(struct truth *t, uint64_t pc, uint64_t sp, uint64_t last_sp)
{
	uint64_t slot = sp - 8, word, outermost = outermost_slot(t);

	if (slot < last_sp) /* a call made since */
		return false;
	for (const struct truth_call *c = t->calls; c; c = c->caller)
		outermost = c->slot > outermost ? c->slot : outermost;
	if (slot <= outermost || memory_read(t->memory, slot, &word, 8) || word != pc || !is_call_before(t, pc))
		return false;
	t->calls = NULL;
	add_returned(t, slot, pc);
	return true;
}

uint32_t truth_callers(const struct truth *t, const struct truth_mark *mark, uint64_t *pcs, uint32_t max, bool *is_all_ret)
{
	const struct segment *s = &t->segments[mark->segment];
	uint32_t n = 0;

	for (const struct truth_call *c = mark->innermost; c && n < max; c = c->caller)
		if (!c->is_data)
			pcs[n++] = c->pc;
	*is_all_ret = s->is_first && n < max;
	for (uint32_t i = mark->returned; i < s->first + s->count && n < max; i++)
		pcs[n++] = t->returned[i].pc;
	return n;
}
