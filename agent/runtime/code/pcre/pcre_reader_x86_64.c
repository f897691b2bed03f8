/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of code that PCRE2 makes of regular expressions, by sljit, its compiler. Such code lies in chunks of 64 KB and
 * multiples of that (sljitExecAllocator.c of PCRE2 10.42). A chunk is blocks, one behind the other, each with a head of two
 * words: its size (0: it is free, and its size is the third word behind the head; 1: it is the chunk's end) and the size of
 * the block before it. A block in use is the function of one expression.
 *
 * The code has no frame pointer. It pushes registers, moves rsp once, and stays there but for calls within itself: what is
 * called takes the return address off the stack at once, and pushes it again to return (sljit_emit_fast_enter). So the state
 * behind the prologue holds wherever no other is known. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/state.h"
#include "agent/runtime/code/code_reader.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum {
	PAGE_BYTES = 4096,
	HEAD_BYTES = 16,
	LEAST_BLOCK_BYTES = 32,
	MOST_BLOCK_BYTES = 1 << 20,
	MAX_BLOCKS = 4096, /* looked at in a chunk */
	MAX_PROLOGUE_INSNS = 24,
	END_MARK = 1,
};

struct pcre {
	struct code_range range[CODE_RANGES]; /* memory with chunks */
	uint32_t range_cnt;
};

/* The head of a block, and, of a free one, what stands behind it. */
struct head {
	uint64_t size, size_before;
	uint64_t free_next, free_before, free_size;
};

/* --- chunks --- */

/* Reads the head at @at; *@size_ret is the block's. False: it is none, or the chunk's end. */
static bool read_head(struct code_memory *m, uint64_t at, uint64_t size_before, struct head *h, uint64_t *size_ret)
{
	if (code_read(m, at, h, HEAD_BYTES) || h->size_before != size_before || h->size == END_MARK)
		return false;
	*size_ret = h->size;
	if (!h->size)
		*size_ret = code_read_u64(m, at + offsetof(struct head, free_size));
	return *size_ret >= LEAST_BLOCK_BYTES && !(*size_ret % sizeof(uint64_t)) && *size_ret <= MOST_BLOCK_BYTES;
}

/* Does a chunk begin at @at in the range @r: behind another one's end, or where memory begins? */
static bool is_chunk(struct code_memory *m, const struct code_range *r, uint64_t at)
{
	struct head h;
	uint64_t mark, size;

	if (at > r->start && !code_read(m, at - HEAD_BYTES, &mark, sizeof(mark)) && mark != END_MARK)
		return false;
	return read_head(m, at, 0, &h, &size) && size <= r->end - at;
}

/* The beginning of the chunk that @pc is in; 0: there is none. */
static uint64_t chunk_of(struct code_memory *m, const struct code_range *r, uint64_t pc)
{
	uint64_t at = pc - (pc - r->start) % PAGE_BYTES;

	for (; !is_chunk(m, r, at); at -= PAGE_BYTES)
		if (at - r->start < PAGE_BYTES || pc - at > MOST_BLOCK_BYTES || m->is_spent)
			return 0;
	return at;
}

/* Is there a chunk near the beginning of @r? Pieces of memory that are near to each other come as one. */
static bool has_chunk(struct code_memory *m, const struct code_range *r)
{
	for (uint64_t at = r->start; at < r->end && at - r->start <= MOST_BLOCK_BYTES && !m->is_spent; at += PAGE_BYTES)
		if (is_chunk(m, r, at))
			return true;
	return false;
}

/* --- the process --- */

static int pcre_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	(void)state;
	(void)m;
	(void)facts;
	(void)bias;
	return 0;
}

static int pcre_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	struct pcre *s = state;

	s->range_cnt = 0;
	for (uint32_t i = 0; i < given && i < CODE_RANGES; i++)
		if (has_chunk(m, &ranges[i]))
			s->range[s->range_cnt++] = ranges[i];
	memcpy(ranges, s->range, s->range_cnt * sizeof(*ranges));
	return m->is_spent ? -EDQUOT : (int)s->range_cnt;
}

static int block_in(struct code_memory *m, const struct code_range *r, uint64_t pc, struct code_block *ret)
{
	uint64_t at = chunk_of(m, r, pc), size_before = 0, size;
	struct head h;

	for (uint32_t i = 0; at && i < MAX_BLOCKS && read_head(m, at, size_before, &h, &size); i++) {
		if (size > r->end - at)
			return -EBADMSG;
		if (pc < at + size) {
			ret->start = at + HEAD_BYTES;
			ret->end = at + size;
			if (!h.size || pc < ret->start)
				return -ENOENT;
			ret->tokens[0] = code_token_at(m, at);
			ret->tokens[1] = code_token_at(m, ret->start + sizeof(uint64_t)); /* the frame's size, mostly */
			ret->tokens[2] = code_token_at(m, ret->start + size / 2 / sizeof(uint64_t) * sizeof(uint64_t));
			return 0;
		}
		at += size;
		size_before = size;
	}
	return -ENOENT;
}

static int pcre_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	const struct pcre *s = state;
	int error = -ENOENT;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < s->range_cnt; i++)
		if (pc >= s->range[i].start && pc < s->range[i].end)
			error = block_in(m, &s->range[i], pc, ret);
	return m->is_spent ? -EDQUOT : error;
}

/* --- rows --- */

struct walk {
	const struct code_block *block;
	const uint8_t *code;
	size_t len;
	struct code_state frame, called; /* behind the prologue; the same at the first instruction of what is called */
	uint8_t *is_called;		 /* owned; by offset */
	struct row *rows;		 /* owned */
	size_t count, cap;
};

static bool has_frame(const struct code_state *state)
{
	return state->slot[SAVED_RBX] != CODE_UNKNOWN && state->reg[CODE_SP] < state->slot[SAVED_RBX];
}

static int step(const struct walk *w, size_t at, struct code_state *state, struct code_step *step)
{
	int error = code_state_step(w->code + at, w->len - at, w->block->start + at, state, step);

	return error || !step->length_bytes || step->length_bytes > w->len - at ? -EINVAL : 0;
}

/* Follows the prologue, which ends where rsp is moved for local variables. False: it looks otherwise. */
static bool read_prologue(struct walk *w)
{
	struct code_state state = code_state_entry;
	struct code_step s;
	size_t at = 0;

	for (int i = 0; i < MAX_PROLOGUE_INSNS && at < w->len; i++, at += s.length_bytes) {
		int32_t sp = state.reg[CODE_SP];
		bool has_pushed;

		if (step(w, at, &state, &s) || !s.goes_on || s.is_call)
			return false;
		has_pushed = state.has_pushed;
		code_state_go_on(&state, &s);
		if (state.reg[CODE_SP] == sp || has_pushed)
			continue;
		w->frame = state;
		for (int reg = 0; reg < CODE_REGS; reg++)
			if (reg != CODE_SP && w->frame.reg[reg] != CODE_ENTRY)
				w->frame.reg[reg] = CODE_UNKNOWN;
		w->called = w->frame;
		w->called.reg[CODE_SP] = code_shifted(w->frame.reg[CODE_SP], -(int64_t)sizeof(uint64_t));
		return has_frame(&w->frame);
	}
	return false;
}

/* Notes all places of the block that its own calls lead to. */
static void find_called(struct walk *w)
{
	struct code_step s;

	for (size_t at = 0; at < w->len; at += s.length_bytes) {
		struct code_state state = w->frame;

		if (step(w, at, &state, &s))
			return;
		if (s.is_call && s.call_target >= w->block->start && s.call_target - w->block->start < w->len)
			w->is_called[s.call_target - w->block->start] = true;
	}
}

static int add_row(struct walk *w, uint64_t start, uint64_t end, const struct code_state *state)
{
	struct row *last = w->count ? &w->rows[w->count - 1] : NULL, row = { 0 };

	if (!code_state_row(state, false, &row))
		return 0;
	row.start = start;
	row.end = end;
	if (last && last->end == start && row_is_alike(last, &row)) {
		last->end = end;
		return 0;
	}
	if (w->count == CODE_BLOCK_MAX_ROWS)
		return -EBADMSG;
	if (vec_reach(&w->rows, &w->cap, w->count))
		return -ENOMEM;
	w->rows[w->count++] = row;
	return 0;
}

/* One instruction behind the other: the code is in one piece, without data. */
static int make_rows(struct walk *w)
{
	struct code_state state = code_state_entry;
	struct code_step s;
	int error = 0;

	for (size_t at = 0; at < w->len && !error; at += s.length_bytes) {
		struct code_state here;

		if (w->is_called[at])
			state = w->called;
		here = state;
		if (step(w, at, &state, &s))
			break; /* what is behind the code */
		error = add_row(w, w->block->start + at, w->block->start + at + s.length_bytes, &here);
		if (s.goes_on)
			code_state_go_on(&state, &s);
		else
			state = w->frame;
	}
	return error;
}

static void walk_fini(struct walk *w)
{
	free(w->is_called);
	free(w->rows);
}

static int pcre_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	AUTO(walk_fini) struct walk w = { .block = b, .len = b->end - b->start };
	AUTO_FREE uint8_t *code = NULL;
	int error;

	(void)state;
	*ret = NULL;
	*count_ret = 0;
	if (b->end <= b->start || w.len > MOST_BLOCK_BYTES)
		return -EBADMSG;
	code = malloc(w.len);
	w.is_called = calloc(1, w.len);
	if (!code || !w.is_called)
		return -ENOMEM;
	error = code_read(m, b->start, code, w.len);
	w.code = code;
	if (!error && !read_prologue(&w))
		error = -EBADMSG;
	if (error)
		return error;
	find_called(&w);
	error = make_rows(&w);
	if (error)
		return error;
	*ret = MOVE(w.rows);
	*count_ret = w.count;
	return 0;
}

/* --- names --- */

static int pcre_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n)
{
	static const char name[] = "(regexp)";
	uint16_t function = block_names_function(n, name, sizeof(name) - 1, "", 0, 0);

	(void)state;
	(void)m;
	(void)b;
	block_names_place(n, 0, block_names_scope(n, BLOCK_NAMES_NONE, function, 0), 0);
	return 0;
}

const struct code_reader code_pcre = {
	.name = "pcre",
	.frame_type = "native",
	.needs_memory = true,
	.state_bytes = sizeof(struct pcre),
	.open = pcre_open,
	.ranges = pcre_ranges,
	.block = pcre_block,
	.rows = pcre_rows,
	.names = pcre_names,
};

_Static_assert(sizeof(struct pcre) <= CODE_STATE_BYTES, "there is room for the state");
