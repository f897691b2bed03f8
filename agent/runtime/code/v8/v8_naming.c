/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/v8/v8_function.h"
#include "agent/runtime/code/v8/v8_naming.h"
#include "agent/runtime/code/v8/v8_positions.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum {
	WRAPPER_SHARED = 8, /* SharedFunctionInfoWrapper::shared_info */
	MAX_TABLE_BYTES = 4 << 20,
	MAX_BYTECODE_BYTES = 16 << 20,
	MAX_INLINED = 65535,
};

/* A function in the making of names. */
struct named {
	uint16_t function; /* its number; BLOCK_NAMES_NONE: nobody knows it */
	bool is_read, has_script;
	struct v8_script script;
};

struct naming {
	struct v8_heap *heap;
	struct v8_marks *marks;
	struct block_names *names;
	struct v8_windows windows;
	struct named root;
	/* Optimized code: */
	struct buf inlined; /* its inlined calls (positions.h) */
	uint64_t literals;
	struct named *calls; /* parallel to them; owned */
	uint32_t call_cnt;
};

static void naming_begin(struct naming *g, struct v8_heap *h, struct v8_marks *marks, struct block_names *n)
{
	*g = (struct naming){ .heap = h, .marks = marks, .names = n, .inlined = BUF_EMPTY };
}

static void naming_end(struct naming *g)
{
	v8_windows_fini(&g->windows);
	free(g->calls);
	buf_fini(&g->inlined);
}

/* --- functions and lines --- */

/* The line of @position in the script of @f; 0: not known. */
static uint32_t line_of(struct naming *g, const struct named *f, int64_t position)
{
	uint32_t line, column;

	if (!f->has_script || position < 0 || position > UINT32_MAX ||
	    v8_script_line(g->heap, g->marks, &g->windows, &f->script, (uint32_t)position, &line, &column))
		return 0;
	return line;
}

/* Paths of modules are URLs; the others are paths already. */
static void cut_scheme(struct buf *file, const char **text, size_t *len)
{
	static const char scheme[] = "file://";
	size_t n = sizeof(scheme) - 1;

	*text = buf_text(file);
	*len = file->len;
	if (file->len > n && !memcmp(*text, scheme, n)) {
		*text += n;
		*len -= n;
	}
}

/* Tells the names of the function @shared. */
static int add_function(struct naming *g, uint64_t shared, struct named *ret)
{
	struct buf name = BUF_EMPTY, file = BUF_EMPTY;
	struct v8_function f;
	int error = v8_function_read(g->heap, shared, &f);
	const char *path;
	size_t path_len;

	*ret = (struct named){ .function = BLOCK_NAMES_NONE, .is_read = true };
	if (error)
		return error;
	ret->has_script = f.script && !v8_script_open(g->heap, f.script, &ret->script);
	if (f.name)
		error = v8_string(g->heap, f.name, &name);
	if (error) {
		buf_fini(&name);
		return error;
	}
	if (!name.len)
		buf_puts(&name, "(anonymous)"); /* the word of --cpu-prof */
	if (ret->has_script && v8_string(g->heap, ret->script.name, &file))
		buf_reset(&file);
	cut_scheme(&file, &path, &path_len);
	ret->function = block_names_function(g->names, buf_text(&name), name.len, path, path_len,
					     line_of(g, ret, ret->has_script ? (int64_t)f.start : -1));
	error = name.failed || file.failed ? -ENOMEM : g->heap->memory->is_spent ? -EDQUOT : 0;
	buf_fini(&name);
	buf_fini(&file);
	return error;
}

/* --- optimized code --- */

/* The SharedFunctionInfo that @word is, or that its wrapper holds. */
static int unwrap(struct v8_heap *h, uint64_t word, uint64_t *ret)
{
	*ret = word;
	if (h->layout->type.shared_wrapper && v8_type(h, word) == h->layout->type.shared_wrapper)
		return v8_field(h, word, WRAPPER_SHARED, ret);
	return 0;
}

static const struct named *function_at(struct naming *g, int32_t inlined, const struct v8_inlined *call)
{
	struct named *f = &g->calls[inlined];
	uint64_t literal, shared;

	if (f->is_read)
		return f;
	*f = (struct named){ .function = BLOCK_NAMES_NONE, .is_read = true };
	if (call->function >= 0 && !v8_element(g->heap, g->literals, (uint32_t)call->function, &literal) &&
	    !unwrap(g->heap, literal, &shared))
		(void)add_function(g, shared, f);
	return f;
}

/* The scope at @p: the function inlined there, in the one that it was inlined into, and so on. */
static uint16_t scope_at(struct naming *g, struct v8_position p)
{
	struct v8_position chain[BLOCK_NAMES_MAX_DEPTH];
	struct v8_inlined call;
	uint16_t scope;
	uint32_t n = 0;

	while (p.inlined >= 0) {
		if (n == ARRAY_LEN(chain) || !v8_inlined_at(g->inlined.data, g->inlined.len, p.inlined, &call))
			return BLOCK_NAMES_NONE;
		chain[n++] = p;
		p = call.call;
	}
	scope = block_names_scope(g->names, BLOCK_NAMES_NONE, g->root.function, line_of(g, &g->root, p.offset));
	while (n-- && scope != BLOCK_NAMES_NONE) {
		const struct named *f;

		if (!v8_inlined_at(g->inlined.data, g->inlined.len, chain[n].inlined, &call))
			return BLOCK_NAMES_NONE;
		f = function_at(g, chain[n].inlined, &call);
		scope = block_names_scope(g->names, scope, f->function, line_of(g, f, chain[n].offset));
	}
	return scope;
}

/* Maglev's code has no table in V8 13.6.233.8 to .10 (node 24.0 to 24.11): then the code's own function is all that is
 * known, and nobody can tell where which of the inlined ones runs. */
static void add_places(struct naming *g, const struct buf *table)
{
	struct v8_positions p = v8_positions_begin(table->data, table->len, g->heap->layout->position_flags);
	bool has_begun = false;

	while (v8_positions_next(&p) && p.code <= UINT32_MAX && !g->heap->memory->is_spent) {
		if (!has_begun && p.code > 0) /* the code before the first position is the function's own */
			block_names_place(g->names, 0, scope_at(g, (struct v8_position){ -1, -1 }), 0);
		has_begun = true;
		block_names_place(g->names, (uint32_t)p.code, scope_at(g, p.position), 0);
	}
	if (!has_begun)
		block_names_place(g->names, 0, scope_at(g, (struct v8_position){ -1, -1 }),
				  g->call_cnt ? BLOCK_PLACE_INEXACT : 0);
}

static int open_optimized(struct naming *g, const struct v8_code *code)
{
	const struct v8_offsets *o = &g->heap->layout->offset;
	uint64_t shared, inlined;
	int error = v8_element(g->heap, code->deopt, o->deopt_shared, &shared);

	if (!error)
		error = v8_element(g->heap, code->deopt, o->deopt_inlined, &inlined);
	if (!error)
		error = v8_element(g->heap, code->deopt, o->deopt_literals, &g->literals);
	if (!error)
		error = unwrap(g->heap, shared, &shared);
	if (!error)
		error = v8_bytes(g->heap, inlined, MAX_TABLE_BYTES, &g->inlined);
	if (error)
		return error;
	g->call_cnt = (uint32_t)(g->inlined.len / 16);
	if (g->call_cnt > MAX_INLINED)
		return -EBADMSG;
	g->calls = calloc(g->call_cnt + 1, sizeof(*g->calls));
	return g->calls ? add_function(g, shared, &g->root) : -ENOMEM;
}

int v8_name_optimized(struct v8_heap *h, struct v8_marks *marks, const struct v8_code *code, struct block_names *n)
{
	struct buf table = BUF_EMPTY;
	struct naming g;
	int error;

	naming_begin(&g, h, marks, n);
	error = open_optimized(&g, code);
	if (!error)
		error = v8_bytes(h, code->positions, MAX_TABLE_BYTES, &table);
	if (!error)
		add_places(&g, &table);
	if (!error && h->memory->is_spent)
		error = -EDQUOT;
	buf_fini(&table);
	naming_end(&g);
	return error;
}

/* --- bytecode --- */

/* Reads the source position table of @bytecode; an empty one where there is none. */
static int bytecode_table(struct v8_heap *h, uint64_t bytecode, struct buf *table)
{
	uint64_t positions;
	int error = v8_field(h, bytecode, h->layout->offset.bytecode_positions, &positions);

	if (!error)
		error = v8_bytes(h, positions, MAX_TABLE_BYTES, table);
	return error == -EBADMSG ? 0 : error;
}

static uint16_t plain_scope(struct naming *g, int64_t position)
{
	return block_names_scope(g->names, BLOCK_NAMES_NONE, g->root.function, line_of(g, &g->root, position));
}

int v8_name_bytecode(struct v8_heap *h, struct v8_marks *marks, uint64_t shared, uint64_t bytecode, struct block_names *n)
{
	struct buf table = BUF_EMPTY;
	struct v8_positions p;
	struct naming g;
	int error;

	naming_begin(&g, h, marks, n);
	error = add_function(&g, shared, &g.root);
	if (!error)
		error = bytecode_table(h, bytecode, &table);
	if (!error) {
		block_names_place(n, 0, plain_scope(&g, -1), 0);
		p = v8_positions_begin(table.data, table.len, h->layout->position_flags);
		while (v8_positions_next(&p) && p.code <= UINT32_MAX && !h->memory->is_spent)
			block_names_place(n, (uint32_t)p.code, plain_scope(&g, p.position.offset), 0);
	}
	if (!error && h->memory->is_spent)
		error = -EDQUOT;
	buf_fini(&table);
	naming_end(&g);
	return error;
}

/* Goes over code and positions of the bytecode at once: @offsets leads from one to the other. */
static void add_baseline_places(struct naming *g, struct v8_baseline *b, const struct buf *table)
{
	struct v8_positions next = v8_positions_begin(table->data, table->len, g->heap->layout->position_flags);
	bool has_next = v8_positions_next(&next);
	int64_t position = -1;

	block_names_place(g->names, 0, plain_scope(g, -1), 0);
	while (v8_baseline_next(b) && !g->heap->memory->is_spent) {
		while (has_next && next.code <= b->offset) {
			position = next.position.offset;
			has_next = v8_positions_next(&next);
		}
		block_names_place(g->names, b->code, plain_scope(g, position), 0);
	}
}

/* Reads the bytecodes of @bytecode. */
static int read_bytecode(struct v8_heap *h, uint64_t bytecode, struct buf *ret)
{
	uint64_t length;
	int error = v8_field(h, bytecode, 8, &length);

	if (error)
		return error;
	if (v8_type(h, bytecode) != h->layout->type.bytecode || !v8_is_smi(length) || v8_smi(length) <= 0 ||
	    v8_smi(length) > MAX_BYTECODE_BYTES)
		return -EBADMSG;
	if (buf_reserve(ret, (size_t)v8_smi(length)))
		return -ENOMEM;
	error = v8_copy(h, v8_address(bytecode) + h->layout->offset.bytecode_data, ret->data, (size_t)v8_smi(length));
	ret->len = error ? 0 : (size_t)v8_smi(length);
	return error;
}

int v8_name_baseline(struct v8_heap *h, struct v8_marks *marks, uint64_t shared, const struct v8_code *code,
		     const uint8_t *lengths, uint32_t count, struct block_names *n)
{
	struct buf table = BUF_EMPTY, offsets = BUF_EMPTY, bytecode = BUF_EMPTY;
	struct naming g;
	int error;

	naming_begin(&g, h, marks, n);
	error = add_function(&g, shared, &g.root);
	if (!error)
		error = bytecode_table(h, code->deopt, &table);
	if (!error)
		error = v8_bytes(h, code->positions, MAX_TABLE_BYTES, &offsets);
	if (!error)
		error = read_bytecode(h, code->deopt, &bytecode);
	if (!error) {
		struct v8_baseline b = { .at = offsets.data,
					 .end = offsets.len ? offsets.data + offsets.len : offsets.data,
					 .bytecode = bytecode.data,
					 .bytecode_end = bytecode.data + bytecode.len,
					 .lengths = lengths,
					 .length_cnt = count };

		add_baseline_places(&g, &b, &table);
	}
	if (!error && h->memory->is_spent)
		error = -EDQUOT;
	buf_fini(&table);
	buf_fini(&offsets);
	buf_fini(&bytecode);
	naming_end(&g);
	return error;
}
