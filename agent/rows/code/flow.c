/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a function's paths to a fixed point: each instruction keeps the one state that all paths to it agree on, and a
 * path is followed again from where that state lost something. States only ever lose, so it ends; a bound on the number of
 * instructions makes it end soon. A call may never return, and what stands behind it is another path's then: where the stack
 * would have two depths, the call before is taken for such, and all is followed once more without going on behind it. All
 * memory is the call's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/rows/code/state.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum {
	MAX_INSNS = 16384,
	MAX_MADE_INSNS = 1 << 17,
	STEPS_AN_INSN = 4,  /* an instruction may be passed again */
	MAX_DEAD_ENDS = 64, /* calls taken for such that never return */
};

/* An instruction that was reached. */
struct visit {
	uint32_t off;
	uint32_t next_todo; /* index of visit + 1 */
	uint32_t call;	    /* offset + 1 of the call before it, while no other way is known to lead here; else 0 */
	uint8_t length_bytes;
	bool is_todo;
	bool is_settled; /* other paths do not change it any more */
	struct code_state state;
};

struct flow {
	const uint8_t *code;
	uint32_t len;
	uint64_t addr;
	uint32_t *at; /* by offset: index of its visit + 1 */
	struct visit *visits;
	uint32_t count, room;
	uint32_t todo; /* list by next_todo */
	uint32_t steps, max_insns;
	uint32_t reached_end;		   /* of the last instruction, by address, that was reached */
	uint32_t dead_ends[MAX_DEAD_ENDS]; /* offsets of calls that never return */
	uint32_t dead_end_cnt;
	bool is_to_repeat; /* one was found */
	bool is_all_its, is_by_look, is_contradicted;
	bool is_in_frame;	      /* an instruction used a frame that was not made */
	bool gives_up_frame;	      /* one gave such a frame up */
	bool makes_frame;	      /* one of its own */
	unsigned elsewhere_frame;     /* how much of a frame is there; 0: nothing is known */
	struct code_state elsewhere;  /* what all indirect jumps and calls agree on */
	bool is_part;		      /* only entries are followed; nothing is known of other paths */
	const struct code_made *made; /* NULL: not that */
	uint64_t low, high;	      /* jumps into here are noted */
	struct code_entry *exits;
	size_t exit_count, max_exits;
};

static struct visit *visit_at(struct flow *f, uint32_t off)
{
	return f->at[off] ? &f->visits[f->at[off] - 1] : NULL;
}

static bool is_dead_end(const struct flow *f, uint32_t off)
{
	for (uint32_t i = 0; i < f->dead_end_cnt; i++)
		if (f->dead_ends[i] == off)
			return true;
	return false;
}

/* The call at offset @call - 1 is one that never returns. False when that cannot be kept. */
static bool note_dead_end(struct flow *f, uint32_t call)
{
	if (f->dead_end_cnt == MAX_DEAD_ENDS)
		return false;
	f->dead_ends[f->dead_end_cnt++] = call - 1;
	f->is_to_repeat = true;
	return true;
}

static int add_visit(struct flow *f, uint32_t off, const struct code_state *state, struct visit **ret)
{
	if (f->count == f->max_insns)
		return -E2BIG;
	if (vec_reach(&f->visits, &f->room, f->count))
		return -ENOMEM;
	*ret = &f->visits[f->count++];
	**ret = (struct visit){ .off = off, .state = *state };
	f->at[off] = f->count;
	return 0;
}

/* Notes that a path with @state arrives at @addr, from the call before it (offset @call - 1) or some other way (0). 0; 1:
 * nothing new there; or -errno. */
static int arrive(struct flow *f, uint64_t addr, const struct code_state *state, uint32_t call, struct visit **ret)
{
	uint64_t off = addr - f->addr;
	struct visit *v;
	int r;

	if (off >= f->len)
		return 1; /* another function's business */
	v = *ret = visit_at(f, (uint32_t)off);
	if (!v) {
		r = add_visit(f, (uint32_t)off, state, ret);
		if (!r)
			(*ret)->call = call;
		return r;
	}
	if (v->is_settled)
		return 1;
	if (v->call != call && code_state_depths_differ(&v->state, state) && note_dead_end(f, v->call ? v->call : call))
		return 1;
	v->call = call ? v->call : 0;
	return code_state_meet(&v->state, state) ? 0 : 1;
}

static int arrive_later(struct flow *f, uint64_t addr, const struct code_state *state)
{
	struct visit *v;
	int r;

	if (addr - f->low < f->high - f->low) {
		if (f->exit_count == f->max_exits)
			return -E2BIG;
		f->exits[f->exit_count++] = (struct code_entry){ addr, *state };
	}
	r = arrive(f, addr, state, 0, &v);
	if (r == 0 && !v->is_todo) {
		v->is_todo = true;
		v->next_todo = f->todo;
		f->todo = (uint32_t)(v - f->visits) + 1;
	}
	return r < 0 ? r : 0;
}

/* Is the stack as it was when the function was entered? */
static bool is_bare(const struct code_state *state)
{
	return state->reg[CODE_SP] == code_state_entry.reg[CODE_SP];
}

/*
 * With @state the function goes elsewhere, and may come back from there to code that no known path reaches. A state with
 * less of a frame than others does not count: a jump there is a last call.
 */
static void leave(struct flow *f, const struct code_state *state)
{
	enum { BARE = 1, STACK, POINTER } frame = BARE;

	if (code_state_has_frame(state))
		frame = POINTER;
	else if (!is_bare(state))
		frame = STACK;
	if (frame == f->elsewhere_frame)
		code_state_meet(&f->elsewhere, state);
	if (frame <= f->elsewhere_frame)
		return;
	f->elsewhere = *state;
	f->elsewhere_frame = frame;
}

/* Is @begin, where perhaps no path leads, the function's all the same? A function of its own there would jump into the
 * middle of this one, or return while its frame stands. */
static bool is_part_of(struct flow *f, uint32_t begin)
{
	enum { MOST = 256 };
	struct code_state state = code_state_entry;
	uint64_t off = begin;

	for (int i = 0; i < MOST && off < f->len; i++) {
		struct code_step step;
		uint64_t to;

		if (code_state_step(f->code + off, f->len - off, f->addr + off, &state, &step))
			return false;
		to = step.target - f->addr;
		if (step.is_contradiction || step.is_in_frame ||
		    (step.has_target && to && to < f->len && (to < begin || visit_at(f, (uint32_t)to))))
			return true;
		if (!step.goes_on && !step.is_trap && !(step.has_target && to > off))
			return false;
		off = step.goes_on || step.is_trap ? off + step.length_bytes : to;
		code_state_go_on(&state, &step);
	}
	return false;
}

/* Would a straight way from @off on, with @state, return or make a frame while one stands? */
static bool contradicts(const struct flow *f, uint32_t off, struct code_state state)
{
	enum { MOST = 64 };

	for (int i = 0; i < MOST && off < f->len; i++) {
		struct code_step step;
		struct row frame;

		if (code_prologue_bytes(f->code + off, f->len - off, &frame))
			return !is_bare(&state);
		if (code_state_step(f->code + off, f->len - off, f->addr + off, &state, &step))
			return false;
		if (!step.goes_on)
			return step.is_contradiction;
		off += step.length_bytes;
		code_state_go_on(&state, &step);
	}
	return false;
}

static bool is_known_end(const struct flow *f, const struct code_step *step)
{
	return f->made && step->call_target && f->made->never_returns(f->made->arg, step->call_target);
}

/* Does the call at @call, with @next behind it and @state there, never return? If only the look of the code tells functions
 * apart, another one may begin there. */
static bool ends_with_call(struct flow *f, uint32_t call, uint32_t next, const struct code_state *state)
{
	return is_dead_end(f, call) || (f->is_by_look && (f->addr + next) % CODE_FUNCTION_ALIGN == 0 && next < f->len &&
					!visit_at(f, next) && contradicts(f, next, *state) && !is_part_of(f, next));
}

/* Follows a path from the visit @v until it ends or brings nothing new. */
static int follow(struct flow *f, struct visit *v)
{
	int r = 0;

	while (r == 0 && !f->is_to_repeat) {
		struct code_state state = v->state;
		uint64_t addr = f->addr + v->off;
		struct code_step step;

		if (++f->steps > STEPS_AN_INSN * f->max_insns)
			return -E2BIG;
		if (code_state_step(f->code + v->off, f->len - v->off, addr, &state, &step))
			return 0;
		v->length_bytes = step.length_bytes;
		if (v->off + step.length_bytes > f->reached_end)
			f->reached_end = v->off + step.length_bytes;
		f->is_contradicted |= step.is_contradiction;
		f->is_in_frame |= step.is_in_frame;
		f->gives_up_frame |= step.gives_up_frame;
		f->makes_frame |= code_state_has_frame(&state);
		if (step.is_indirect_jump || step.is_call)
			leave(f, &state);
		if (step.has_target)
			r = arrive_later(f, step.target, &state);
		if (step.is_call && is_known_end(f, &step))
			return r;
		if (r || !step.goes_on || (step.is_call && ends_with_call(f, v->off, v->off + step.length_bytes, &state)))
			return r;
		code_state_go_on(&state, &step);
		r = arrive(f, addr + step.length_bytes, &state, step.is_call ? v->off + 1 : 0, &v);
	}
	return r < 0 ? r : 0;
}

static int follow_all(struct flow *f)
{
	int r = 0;

	while (!r && f->todo && !f->is_to_repeat) {
		struct visit *v = &f->visits[f->todo - 1];

		f->todo = v->next_todo;
		v->is_todo = false;
		r = follow(f, v);
	}
	return r;
}

/* Does another function begin at @off, where no path leads? One as short as can be ends with a jump elsewhere. */
static bool is_another(struct flow *f, uint32_t off, bool starts_bare)
{
	enum { MOST = 4 };
	struct code_state state = code_state_entry;
	struct code_step step = { .goes_on = true };
	uint32_t at = off;

	if (!f->is_by_look || (f->addr + off) % CODE_FUNCTION_ALIGN || is_part_of(f, off))
		return false;
	for (int i = 0; i < MOST && step.goes_on && at < f->len && !starts_bare; i++) {
		if (code_state_step(f->code + at, f->len - at, f->addr + at, &state, &step))
			return false;
		at += step.length_bytes;
	}
	return starts_bare || (!step.goes_on && step.has_target && step.target - f->addr >= f->len);
}

/* Where a jump at @off leads that no path reaches, as compilers leave some; NULL: no jump is there, or it leads elsewhere.
 */
static const struct visit *target_of_jump(struct flow *f, uint32_t off)
{
	struct code_state state = code_state_entry;
	struct code_step step;

	if (code_state_step(f->code + off, f->len - off, f->addr + off, &state, &step) || step.goes_on || step.is_trap ||
	    !step.has_target || step.target - f->addr >= f->len)
		return NULL;
	return visit_at(f, (uint32_t)(step.target - f->addr));
}

/*
 * Targets of jump tables and landing pads of exceptions: code behind the end of a path that no path reaches. The frame there
 * is the same as wherever the function jumps indirectly or calls, if it is the same in all those places; code that makes a
 * frame or returns at once has none, and a jump the one of where it leads. Code behind all that was reached is the
 * function's only if its size is known.
 */
static int follow_unreached(struct flow *f)
{
	const struct visit *behind;

	struct code_state elsewhere = f->elsewhere, framed = code_state_entry;
	bool has_elsewhere = f->elsewhere_frame, is_padded = false;
	uint32_t off = 0;
	int r = 0;

	framed.reg[CODE_SP] -= 8;
	while (!r && off < (f->is_all_its ? f->len : f->reached_end) && !f->is_to_repeat) {
		const struct visit *v = visit_at(f, off);
		uint32_t padding = v ? 0 : code_padding_bytes(f->code + off, f->len - off);
		uint32_t trap = v || padding ? 0 : code_trap_bytes(f->code + off, f->len - off);
		bool starts_bare;

		if (v && !v->length_bytes)
			break;
		if (v || padding || trap) {
			is_padded = padding;
			off += v ? v->length_bytes : padding + trap;
			continue;
		}
		behind = target_of_jump(f, off);
		if (behind) {
			const struct code_state there = behind->state;

			r = arrive_later(f, f->addr + off, &there);
			if (!r)
				r = follow_all(f);
			continue;
		}
		starts_bare = contradicts(f, off, has_elsewhere ? elsewhere : framed);
		if (!is_padded && is_another(f, off, starts_bare))
			break;
		if (!starts_bare && !has_elsewhere)
			break;
		elsewhere.may_be_popped |= elsewhere.reg[CODE_SP] == CODE_UNKNOWN; /* who knows better is right */
		r = arrive_later(f, f->addr + off, starts_bare ? &code_state_entry : &elsewhere);
		if (!r)
			r = follow_all(f);
		if (!has_elsewhere)
			elsewhere = f->elsewhere;
		has_elsewhere = f->elsewhere_frame;
	}
	return r;
}

static void settle(struct flow *f, uint32_t *settled)
{
	while (*settled < f->count)
		f->visits[(*settled)++].is_settled = true;
}

/* Follows what no path reached so far with the state that is said of it. Zeros are what is left of numbers in instructions
 * that were written over. */
static int follow_rest(struct flow *f)
{
	uint32_t off = 0, settled = 0;
	int r = 0;

	while (!r && off < f->len && !f->is_to_repeat) {
		const struct visit *v = visit_at(f, off);
		uint32_t skip = v ? v->length_bytes : code_padding_bytes(f->code + off, f->len - off);

		if (!skip && !v)
			skip = code_trap_bytes(f->code + off, f->len - off);
		if (!skip && !v)
			skip = off && !f->code[off] && !f->code[off - 1];
		if (skip || v) {
			off += skip ? skip : 1;
			continue;
		}
		settle(f, &settled);
		r = arrive_later(f, f->addr + off, f->made->rest);
		if (!r)
			r = follow_all(f);
	}
	return r;
}

static int enter(struct flow *f, const struct code_entry *entries, size_t count)
{
	size_t first = f->made ? f->made->first_cnt : count;
	uint32_t settled = 0;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		if (i == first)
			r = follow_all(f);
		if (i >= first)
			settle(f, &settled);
		if (!r)
			r = arrive_later(f, entries[i].addr, &entries[i].state);
		if (!r && i >= first)
			r = follow_all(f);
	}
	return r ? r : follow_all(f);
}

static int run(struct flow *f, const struct code_entry *entries, size_t count)
{
	int r = 0;

	do {
		memset(f->at, 0, f->len * sizeof(*f->at));
		f->count = f->todo = f->reached_end = 0;
		f->is_to_repeat = f->is_contradicted = f->is_in_frame = f->gives_up_frame = f->makes_frame = false;
		f->elsewhere_frame = 0;
		f->exit_count = 0;
		r = enter(f, entries, count);
		if (!r && !f->is_to_repeat && !f->is_part)
			r = follow_unreached(f);
		if (!r && !f->is_to_repeat && f->made && f->made->rest)
			r = follow_rest(f);
	} while (!r && f->is_to_repeat);
	return r;
}

/* The rows of what was reached, into @rows, which has room for each visit. Returns their number. */
static size_t collect(struct flow *f, struct row *rows)
{
	size_t n = 0;

	for (uint32_t off = 0; off < f->len; off++) {
		const struct visit *v = visit_at(f, off);
		struct row row;

		if (!v || !v->length_bytes)
			continue;
		if (n && rows[n - 1].end > f->addr + off) /* a jump into an instruction: behind its lock prefix */
			rows[n - 1].end = f->addr + off;
		if (!code_state_row(&v->state, f->is_contradicted && !f->made, &row))
			continue;
		if (f->made) /* no thread begins there: what looks like a system call is data among the instructions */
			row.is_behind_syscall = false;
		row.start = f->addr + off;
		row.end = row.start + v->length_bytes;
		if (n && rows[n - 1].end == row.start && row_is_alike(&rows[n - 1], &row))
			rows[n - 1].end = row.end;
		else
			rows[n++] = row;
	}
	return n;
}

/* A function too big to follow that keeps a frame pointer: one row but at its returns, where the frame is gone already. */
static int frame_pointer_rows(const struct flow *f, struct row **ret, size_t *count_ret)
{
	struct row *rows, frame;
	size_t from = code_prologue_bytes(f->code, f->len, &frame), n = 1;

	for (size_t i = from; from && i + 1 < f->len; i++)
		n += code_ends_frame(&f->code[i]);
	rows = calloc(n, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	n = 0;
	for (size_t i = from, start = from; from && i < f->len; i++) {
		bool is_last = i + 1 == f->len;

		if (!is_last && !code_ends_frame(&f->code[i]))
			continue;
		rows[n] = frame;
		rows[n].start = f->addr + start;
		rows[n].end = f->addr + i + 1;
		n += rows[n].end > rows[n].start;
		start = ++i + 1;
	}
	*ret = rows;
	*count_ret = n;
	return 0;
}

/* The caller frees everything behind @f. 0, -E2BIG, -ENOMEM. */
static int start(struct flow *f, const struct code_function *function, const struct code_entry *entries, size_t count)
{
	struct row frame;

	f->code = function->code;
	f->addr = function->start;
	f->is_all_its = function->is_all_its;
	f->is_by_look = function->is_by_look;
	f->len = function->end - function->start < UINT32_MAX ? (uint32_t)(function->end - function->start) : UINT32_MAX;
	if (f->len > CODE_FLOW_MAX_BYTES && f->is_by_look && !code_prologue_bytes(f->code, f->len, &frame))
		f->len = CODE_FLOW_MAX_BYTES; /* it is hardly as long as it looks */
	f->max_insns = f->made ? MAX_MADE_INSNS : MAX_INSNS;
	if (f->len > (f->made ? CODE_FLOW_MAX_MADE_BYTES : CODE_FLOW_MAX_BYTES))
		return -E2BIG;
	f->at = calloc(f->len + 1, sizeof(*f->at));
	return f->at ? run(f, entries, count) : -ENOMEM;
}

static void finish(struct flow *f)
{
	free(f->visits);
	free(f->at);
}

static int rows_of(struct flow *f, const struct code_function *function, const struct code_entry *entries, size_t count,
		   struct row **ret, size_t *count_ret)
{
	int r = start(f, function, entries, count);

	if (r == -E2BIG) {
		r = frame_pointer_rows(f, ret, count_ret);
	} else if (!r) {
		*ret = calloc(f->count + 1, sizeof(**ret));
		r = *ret ? 0 : -ENOMEM;
		if (!r)
			*count_ret = collect(f, *ret);
	}
	finish(f);
	return r;
}

int code_flow_part_rows(const struct code_function *function, const struct code_entry *entries, size_t entry_count,
			struct row **ret, size_t *count_ret)
{
	struct flow f = { .is_part = true };

	return rows_of(&f, function, entries, entry_count, ret, count_ret);
}

int code_flow_made_rows(const struct code_function *function, const struct code_entry *entries, size_t entry_count,
			const struct code_made *made, struct row **ret, size_t *count_ret)
{
	struct flow f = { .is_part = true, .made = made };

	return rows_of(&f, function, entries, entry_count, ret, count_ret);
}

int code_flow_rows(const struct code_function *function, struct row **ret, size_t *count_ret, bool *is_misplaced)
{
	struct code_entry entry = { function->start, code_state_entry };
	struct flow f = { 0 };
	int r = rows_of(&f, function, &entry, 1, ret, count_ret);

	if (!r && f.is_all_its && f.gives_up_frame && !f.makes_frame) { /* the end of functions that jump here */
		free(*ret);
		entry.state = *code_state_in_frame;
		f = (struct flow){ 0 };
		r = rows_of(&f, function, &entry, 1, ret, count_ret);
	}
	if (is_misplaced)
		*is_misplaced = f.is_in_frame;
	return r;
}

int code_flow_exits(const struct code_function *function, uint64_t low, uint64_t high, struct code_entry *exits, size_t max)
{
	struct code_entry entry = { function->start, code_state_entry };
	struct flow f = { .low = low, .high = high, .exits = exits, .max_exits = max };
	int r = start(&f, function, &entry, 1);

	finish(&f);
	if (r == -ENOMEM)
		return r;
	return r || f.is_contradicted ? 0 : (int)f.exit_count;
}
