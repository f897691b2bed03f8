/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the template interpreter's codelets. Frames there have a frame pointer, and beside the return address and the
 * caller's frame pointer a third word: the caller's sp (sender_sp), as arguments are popped with the frame.
 *
 * Codelets that methods are entered by begin without a frame: the caller's sp is in a register. Codelets that leave a method
 * give the frame up first: the caller's sp is in the register that it was read into. So the state of an instruction is where
 * these words are; here it is followed along all paths, and hotspot_interpreter_CPU.c says how an instruction changes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"

struct walk {
	const struct hotspot *hotspot;
	const uint8_t *code;
	size_t len;
	uint64_t addr;
	struct codelet_state *states; /* by offset */
	uint8_t *lengths;	      /* of the instruction there; 0: no path led there */
	uint32_t *todo; /* places where paths go on, from the front; those about which nothing is known from the back */
	size_t todo_cnt, later_cnt, todo_cap;
};

static void arrive(struct walk *w, uint64_t off, const struct codelet_state *state)
{
	if (off >= w->len || w->lengths[off] || w->todo_cnt + w->later_cnt == w->todo_cap)
		return;
	if (state->frame == CODELET_UNKNOWN) {
		w->todo[w->todo_cap - ++w->later_cnt] = (uint32_t)off;
		return;
	}
	w->states[off] = *state;
	w->todo[w->todo_cnt++] = (uint32_t)off;
}

/* The state at a call is asked for when its function runs, too, which does not keep all registers. */
static void forget_for_return(struct codelet_state *s)
{
	if (s->frame != CODELET_WHOLE)
		s->method_reg = CODELET_NO_REG; /* no frame has it yet */
	if (s->frame == CODELET_NONE && s->sender_at != CODELET_NOWHERE)
		s->sender_reg = CODELET_NO_REG;
}

static void follow(struct walk *w, uint64_t off)
{
	struct codelet_state state = w->states[off];

	while (off < w->len && !w->lengths[off]) {
		struct codelet_step step;

		w->states[off] = state;
		if (!hotspot_codelet_step(w->code, w->len, off, &state, &step))
			return;
		if (step.is_call)
			forget_for_return(&w->states[off]);
		w->lengths[off] = (uint8_t)step.bytes;
		if (step.to != UINT64_MAX)
			arrive(w, step.to, &state);
		if (!step.goes_on)
			return;
		off += step.bytes;
		if (state.frame == CODELET_UNKNOWN && w->states[off - step.bytes].frame != CODELET_UNKNOWN) {
			arrive(w, off, &state); /* other ways there know more */
			return;
		}
	}
}

static void follow_all(struct walk *w, const struct codelet_state *first)
{
	arrive(w, 0, first);
	while (w->todo_cnt || w->later_cnt) {
		uint32_t off = w->todo_cnt ? w->todo[w->todo_cnt - 1] : w->todo[w->todo_cap - w->later_cnt];

		if (w->todo_cnt) {
			w->todo_cnt--;
		} else {
			w->later_cnt--;
			if (!w->lengths[off])
				w->states[off] = (struct codelet_state){ .frame = CODELET_UNKNOWN };
		}
		follow(w, off);
	}
}

/* --- rows --- */

static int32_t place_of_return(const struct codelet_state *s)
{
	if (s->frame != CODELET_NONE)
		return ROW_AT_FP + 8;
	if (s->ra_reg != CODELET_NO_REG && hotspot_dwarf_reg(s->ra_reg) == REG_RA)
		return ROW_SAME;
	return s->ra_at != CODELET_NOWHERE ? ROW_AT_SP + s->ra_at : ROW_IN_REG + hotspot_dwarf_reg(s->ra_reg & 31);
}

static struct row row_of(const struct codelet_state *s)
{
	struct row r = { .cfa = ROW_CFA_NONE };

	if (s->frame == CODELET_UNKNOWN || s->frame == CODELET_INNER)
		return r;
	for (int i = 0; i < SAVED_MAX; i++)
		r.saved[i] = ROW_SAME;
	r.capture = s->frame == CODELET_WHOLE ? CAPTURE_FRAME : s->method_reg != CODELET_NO_REG ? CAPTURE_ENTRY : 0;
	if (s->frame == CODELET_NONE && s->ra_at == CODELET_NOWHERE && s->ra_reg == CODELET_NO_REG)
		return r;
	r.saved[SAVED_RA] = place_of_return(s);
	if (s->frame != CODELET_NONE)
		r.saved[SAVED_FP] = ROW_AT_FP;
	if (s->frame == CODELET_WHOLE || (s->frame == CODELET_POINTER && s->has_sender)) {
		r.cfa = ROW_CFA_DEREF;
		r.cfa_reg = REG_FP;
		r.cfa_off = CODELET_SENDER_SP;
	} else if (s->sender_reg != CODELET_NO_REG) {
		r.cfa = ROW_CFA_REG;
		r.cfa_reg = hotspot_dwarf_reg(s->sender_reg);
	} else if (s->sender_at != CODELET_NOWHERE) {
		r.cfa = ROW_CFA_REG;
		r.cfa_reg = REG_SP;
		r.cfa_off = s->sender_at;
	}
	return r;
}

/* Code that no path led to runs in a frame: whoever jumps there has one. */
static size_t collect(const struct walk *w, struct row *rows)
{
	struct codelet_state whole = hotspot_codelet_begin(w->hotspot, false);
	size_t n = 0;

	for (uint64_t off = 0; off < w->len;) {
		uint64_t bytes = w->lengths[off];
		struct row r = row_of(bytes ? &w->states[off] : &whole);

		if (!bytes)
			bytes = 1;
		r.start = w->addr + off;
		r.end = r.start + bytes;
		off += bytes;
		if (n && row_is_alike(&rows[n - 1], &r))
			rows[n - 1].end = r.end;
		else
			rows[n++] = r;
	}
	return n;
}

int hotspot_interpreter_rows(const struct hotspot *s, const uint8_t *code, size_t len, uint64_t addr, bool is_entry,
			     struct row **ret, size_t *count_ret)
{
	struct walk w = { .hotspot = s, .code = code, .len = len, .addr = addr, .todo_cap = len };
	struct codelet_state first = hotspot_codelet_begin(s, is_entry);
	int error = 0;

	w.states = calloc(len + 1, sizeof(*w.states));
	w.lengths = calloc(len + 1, sizeof(*w.lengths));
	w.todo = calloc(len + 1, sizeof(*w.todo));
	*ret = calloc(len + 1, sizeof(**ret));
	if (!w.states || !w.lengths || !w.todo || !*ret) {
		free(*ret);
		error = -ENOMEM;
	} else {
		follow_all(&w, &first);
		*count_ret = collect(&w, *ret);
	}
	free(w.states);
	free(w.lengths);
	free(w.todo);
	return error;
}
