/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's reader. Compiled code is found from an address in it. Frames of bytecode, and of baseline code, tell their function
 * by the closure in the frame: objects move, so a closure is believed only if it leads to the very bytecode that the frame
 * has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/code/v8/v8_code.h"
#include "agent/runtime/code/v8/v8_code_rows.h"
#include "agent/runtime/code/v8/v8_function.h"
#include "agent/runtime/code/v8/v8_naming.h"
#include "agent/runtime/code/v8/v8_wasm.h"
#include "base/cleanup.h"

struct state {
	struct v8_layout layout;
	uint64_t stream_map; /* see v8_code_find */
	struct v8_marks marks;
	uint8_t lengths[V8_SCALES * V8_MAX_BYTECODES]; /* of bytecodes */
};

_Static_assert(sizeof(struct state) <= CODE_STATE_BYTES, "a state is bounded");
_Static_assert(sizeof(struct v8_layout) <= sizeof(((struct code_facts *)0)->fact), "facts hold a layout");

#define JUMP_TOKEN_MASK 0xffull /* whither it jumps may change */

/* The numbers of captures, less 1, and their words. */
enum { INTERPRETED, BASELINE };
enum { BYTECODE, CLOSURE, OFFSET };

/* The offset in the bytecode is a Smi at -40: here its upper half, as the register has it. */
enum { FRAME_CLOSURE = -16, FRAME_BYTECODE = -32, FRAME_OFFSET = -36, OFFSET_REG = 9 };

/* Words of a block. */
enum { OWN_STREAM, OWN_WORD, OWN_DEOPT, OWN_POSITIONS };

static struct v8_heap *open_heap(struct state *s, struct code_memory *m)
{
	return v8_heap_new(&s->layout, m);
}

static const char *v8_lacks(const struct code_facts *facts)
{
	struct v8_layout l;

	memcpy(&l, facts->fact, sizeof(l));
	if (!v8_layout_is_sound(&l))
		return "this version is not known";
	return l.handlers.start
		       ? NULL
		       : "the file does not tell where its interpreter is, so that compiled functions alone are known";
}

static int v8_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	struct state *s = state;

	memcpy(&s->layout, facts->fact, sizeof(s->layout));
	if (!v8_layout_is_sound(&s->layout))
		return -ENOTSUP;
	if (s->layout.bytecode_lengths &&
	    code_read(m, s->layout.bytecode_lengths + bias, s->lengths, (size_t)V8_SCALES * s->layout.bytecode_cnt))
		s->layout.bytecode_cnt = 0; /* baseline code has no lines */
	return 0;
}

/* New code comes at any place of a space that is reserved for it, 128 MB or more: windows of memory around the pieces given
 * are taken, so that few pieces that come later are outside of them. */
static int v8_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	const uint64_t window = 64 << 20, user_end = 1ull << CPU_USER_BITS;
	uint32_t n = 0;

	(void)state;
	(void)m;
	for (uint32_t i = 0; i < given; i++) {
		struct code_range r = { ranges[i].start / window * window, (ranges[i].end + window - 1) / window * window };
		uint32_t k = 0;

		if (r.start >= r.end || r.end > user_end)
			continue;
		while (k < n && (r.start > ranges[k].end || r.end < ranges[k].start))
			k++;
		if (k == n) {
			ranges[n++] = r;
			continue;
		}
		ranges[k].start = r.start < ranges[k].start ? r.start : ranges[k].start;
		ranges[k].end = r.end > ranges[k].end ? r.end : ranges[k].end;
	}
	return (int)n;
}

/* Closures move and die soon, their SharedFunctionInfo hardly ever does: it goes with the sample. */
static void v8_captures(const void *state, const struct code_facts *facts,
			struct code_capture captures[static CODE_CAPTURES])
{
	struct v8_layout l;
	struct code_capture_word closure = { FRAME_CLOSURE, -1, 0 };

	(void)state;
	memcpy(&l, facts->fact, sizeof(l));
	if (!v8_layout_is_sound(&l))
		return;
	closure.follow = (int16_t)(l.offset.function_shared - 1);
	captures[INTERPRETED] = (struct code_capture){
		3,
		{ [BYTECODE] = { FRAME_BYTECODE, -1, 0 }, [CLOSURE] = closure, [OFFSET] = { FRAME_OFFSET, OFFSET_REG, 0 } }
	};
	captures[BASELINE] = (struct code_capture){ 2, { [BYTECODE] = { FRAME_BYTECODE, -1, 0 }, [CLOSURE] = closure } };
}

/* The word of the object @word at @offset, which is @value, dies with what it tells. */
static struct code_token token_at(uint64_t word, uint32_t offset, uint64_t value)
{
	return (struct code_token){ v8_address(word) + offset, value, UINT64_MAX };
}

/* The kind of code without a head, by the type of its frames (0: it has none). Some that begin alike are copies of what V8
 * is built with, as node makes where it finds no /proc. */
static uint32_t kind_by_frame(const struct v8_layout *l, uint32_t type)
{
	if (!type)
		return V8_CODE_WASM_JUMP;
	if (type == l->frame_wasm)
		return V8_CODE_WASM;
	return !l->wasm_frames || l->wasm_frames >> type & 1 ? V8_CODE_WASM_WRAPPER : V8_CODE_OTHER;
}

/* Such code has no head that dies with it: its own first words do. Behind the prologue they have the function's length, in
 * the jump from the check of the stack's limit. */
static int wasm_block(const struct state *s, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	struct v8_wasm w;
	int error = v8_wasm_find(m, pc, &w);

	if (error)
		return error;
	ret->start = w.start;
	ret->end = w.end;
	ret->kind = kind_by_frame(&s->layout, w.frame);
	for (uint32_t i = 0; i < CODE_TOKENS && (w.frame || !i); i++) {
		uint64_t at = w.start + i * sizeof(uint64_t), mask = w.frame ? UINT64_MAX : JUMP_TOKEN_MASK;

		ret->tokens[i] = (struct code_token){ at, code_read_u64(m, at) & mask, mask };
	}
	return m->is_spent ? -EDQUOT : 0;
}

static int v8_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	struct state *s = state;
	const struct v8_offsets *o = &s->layout.offset;
	AUTO_FREE struct v8_heap *h = open_heap(s, m);
	struct v8_code c = { 0 };
	int error = h ? v8_code_find(h, pc, &s->stream_map, &c) : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	if (error == -ENOENT && !c.start) /* no code of the heap is before it either */
		return wasm_block(s, m, pc, ret);
	if (error)
		return error;
	ret->start = c.start;
	ret->end = c.start + c.size;
	ret->kind = c.kind;
	ret->own[OWN_STREAM] = c.stream;
	ret->own[OWN_WORD] = c.word;
	ret->own[OWN_DEOPT] = c.deopt;
	ret->own[OWN_POSITIONS] = c.positions;
	ret->tokens[0] = token_at(c.stream, o->stream_code, o->stream_code ? c.word : s->stream_map);
	ret->tokens[1] = token_at(c.word, o->code_deopt, c.deopt);
	ret->tokens[2] = token_at(c.word, o->code_positions, c.positions);
	return 0;
}

static struct v8_code code_of(const struct code_block *b)
{
	return (struct v8_code){ .stream = b->own[OWN_STREAM],
				 .word = b->own[OWN_WORD],
				 .start = b->start,
				 .size = b->end - b->start,
				 .kind = (enum v8_code_kind)b->kind,
				 .deopt = b->own[OWN_DEOPT],
				 .positions = b->own[OWN_POSITIONS] };
}

static int v8_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	size_t len = b->end - b->start;
	AUTO_FREE uint8_t *bytes = NULL;
	int error;

	(void)state;
	*ret = NULL;
	*count_ret = 0;
	if (b->end <= b->start || len > CODE_BLOCK_MAX_BYTES)
		return -EBADMSG;
	bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	error = code_read(m, b->start, bytes, len);
	return error ? error
		     : v8_code_rows(b->start, bytes, len, b->kind == V8_CODE_BASELINE ? BASELINE + 1 : 0, ret, count_ret);
}

/* Names of code that has no name of its own in memory; NULL: @kind has, or is nothing. */
static const char *name_of_kind(uint32_t kind)
{
	switch (kind) {
	case V8_CODE_REGEXP:
		return "(regexp)";
	case V8_CODE_WASM:
		return "(wasm)";
	case V8_CODE_WASM_WRAPPER:
		return "(wasm wrapper)";
	case V8_CODE_WASM_JUMP:
		return "(wasm jump)";
	default:
		return NULL;
	}
}

static int v8_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n)
{
	struct state *s = state;
	const struct v8_code c = code_of(b);
	const char *name = name_of_kind(c.kind);
	AUTO_FREE struct v8_heap *h = NULL;

	if (name) {
		block_names_place(
			n, 0,
			block_names_scope(n, BLOCK_NAMES_NONE, block_names_function(n, name, strlen(name), "", 0, 0), 0), 0);
		return 0;
	}
	if (c.kind != V8_CODE_OPTIMIZED)
		return -ENODATA;
	h = open_heap(s, m);
	return h ? v8_name_optimized(h, &s->marks, &c, n) : -ENOMEM;
}

/* Says how the function @shared with the bytecode @bytecode is known. */
static int know(struct v8_heap *h, uint64_t shared, struct captured_function *ret)
{
	const struct v8_offsets *o = &h->layout->offset;
	uint64_t data, name, script;

	memset(ret, 0, sizeof(*ret));
	if (v8_field(h, shared, o->shared_data, &data) || v8_field(h, shared, o->shared_name, &name) ||
	    v8_field(h, shared, o->shared_script, &script))
		return v8_unreadable(h);
	ret->key = shared;
	ret->tokens[0] = token_at(shared, o->shared_data, data);
	ret->tokens[1] = token_at(shared, o->shared_name, name);
	ret->tokens[2] = token_at(shared, o->shared_script, script);
	return 0;
}

static int know_interpreted(struct state *s, struct v8_heap *h, uint64_t shared, uint64_t bytecode,
			    struct captured_function *f, struct block_names *n)
{
	uint64_t length;

	if (v8_field(h, bytecode, 8, &length))
		return v8_unreadable(h);
	f->word = OFFSET;
	f->base = s->layout.offset.bytecode_data - 1; /* offsets count from the pointer to the array, which is 1 too high */
	f->bytes = v8_is_smi(length) && v8_smi(length) > 0 ? (uint64_t)v8_smi(length) : 0;
	return v8_name_bytecode(h, &s->marks, shared, bytecode, n);
}

static int know_baseline(struct state *s, struct v8_heap *h, uint64_t shared, uint64_t bytecode, struct captured_function *f,
			 struct block_names *n)
{
	struct v8_code c;
	int error = v8_code_of_function(h, shared, &c);

	if (!error && s->layout.type.baseline_data) /* there baseline code does not tell its bytecode */
		c.deopt = bytecode;
	if (!error && (c.kind != V8_CODE_BASELINE || c.deopt != bytecode))
		error = -EBADMSG;
	if (error)
		return error;
	f->word = CODE_CAPTURE_WORDS;
	f->base = c.start;
	f->bytes = c.size;
	return v8_name_baseline(h, &s->marks, shared, &c, s->lengths, s->layout.bytecode_cnt, n);
}

/* The SharedFunctionInfo that @word is, or that the closure @word is of. */
static int shared_of(struct v8_heap *h, uint64_t word, uint64_t *ret)
{
	*ret = word;
	return v8_type(h, word) == h->layout->type.shared ? 0 : v8_function_of_closure(h, word, ret);
}

static int v8_function(void *state, struct code_memory *m, uint32_t capture, const uint64_t words[static CODE_CAPTURE_WORDS],
		       struct captured_function *ret, struct block_names *n)
{
	struct state *s = state;
	AUTO_FREE struct v8_heap *h = open_heap(s, m);
	uint64_t shared, bytecode;
	int error = h ? shared_of(h, words[CLOSURE], &shared) : -ENOMEM;

	if (!error)
		error = v8_function_bytecode(h, shared, &bytecode);
	if (!error && bytecode != words[BYTECODE])
		error = -EBADMSG;
	if (!error)
		error = know(h, shared, ret);
	if (error)
		return error;
	return capture == BASELINE + 1 ? know_baseline(s, h, shared, bytecode, ret, n)
				       : know_interpreted(s, h, shared, bytecode, ret, n);
}

const struct code_reader code_v8 = {
	.name = "v8",
	.frame_type = "v8js",
	.state_bytes = sizeof(struct state),
	.lacks = v8_lacks,
	.open = v8_open,
	.ranges = v8_ranges,
	.captures = v8_captures,
	.block = v8_block,
	.rows = v8_rows,
	.names = v8_names,
	.function = v8_function,
};
