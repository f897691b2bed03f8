/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code while they are put together. A source's ranges and line rows are taken as they come; where the next source
 * begins they are settled: sorted and flattened into steps (symbols/code/steps.h), which fill what the earlier sources left
 * open. Names and paths are interned; everything else is an array of small records, which are the memory of it all: every
 * byte is counted against CODE_NAMES_MAX_BYTES. Invariant: a node's parent stands before the node and is less deep.
 */
#include "symbols/code/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "symbols/code/names_parts.h"
#include "symbols/code/rename.h"

enum {
	MAX_NAME_BYTES = 65535, /* of a name or path; the rest of a longer one is cut off */
	MAX_DEPTH = 255,	/* calls inlined deeper count as part of their caller */
};

/* The sequence of line rows that is coming in. If only some addresses are wanted, a row is kept when one of them lies
 * between it and the next row. */
struct sequence {
	size_t first_row;
	uint64_t start;
	uint32_t count;
	bool is_sorted;
	bool has_pending;
	struct code_row pending; /* the last row, not kept yet */
};

struct code_names {
	struct code_budget budget;
	struct intern *files, *functions; /* a function's key: u32 decl_line, then its name */
	struct buf key;
	int failed;

	bool has_wanted; /* else everything is */
	uint64_t *open;	 /* the wanted addresses that no source names yet; sorted */
	size_t open_count;
	uint32_t *open_index; /* for each 1 << open_shift of addresses from open[0] on: the first of @open there or behind */
	unsigned int open_shift;

	struct code_node *nodes;
	size_t node_count, node_cap;
	struct code_row *rows;
	size_t row_count, row_cap;
	enum code_source source;	     /* that adds just now */
	bool has_symbols;		     /* a symbol table was among the sources */
	struct code_steps ranges, sequences; /* of the source that adds just now; @extra: bytes, and rows */
	struct sequence sequence;

	struct code_steps functions_at, lines_at; /* settled: nodes, rows */
};

/* --- life --- */

static int index_open(struct code_names *c);

struct code_names *code_names_new(const uint64_t *wanted, size_t count)
{
	struct code_names *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->budget.max_bytes = CODE_NAMES_MAX_BYTES;
	c->files = intern_new();
	c->functions = intern_new();
	if (wanted) {
		c->has_wanted = true;
		c->open = malloc((count ? count : 1) * sizeof(*c->open));
		if (c->open && count)
			memcpy(c->open, wanted, count * sizeof(*wanted));
		c->open_count = count;
	}
	if (!c->files || !c->functions || (wanted && (!c->open || index_open(c)))) {
		code_names_free(c);
		return NULL;
	}
	return c;
}

void code_names_free(struct code_names *c)
{
	if (!c)
		return;
	intern_free(c->files);
	intern_free(c->functions);
	buf_fini(&c->key);
	free(c->open);
	free(c->open_index);
	free(c->nodes);
	free(c->rows);
	code_steps_fini(&c->ranges, &c->budget);
	code_steps_fini(&c->sequences, &c->budget);
	code_steps_fini(&c->functions_at, &c->budget);
	code_steps_fini(&c->lines_at, &c->budget);
	free(c);
}

static void fail(struct code_names *c, int r)
{
	if (r && !c->failed)
		c->failed = r;
}

void code_names_lack_memory(struct code_names *c)
{
	fail(c, -ENOMEM);
}

/* --- what is wanted --- */

/* About one piece of addresses for each wanted one, so that a question costs no search. */
static int index_open(struct code_names *c)
{
	uint64_t span = c->open_count ? c->open[c->open_count - 1] - c->open[0] : 0;
	size_t pieces, at = 0;

	free(c->open_index);
	for (c->open_shift = 0; span >> c->open_shift > c->open_count; c->open_shift++)
		;
	pieces = (size_t)(span >> c->open_shift) + 1;
	c->open_index = malloc(pieces * sizeof(*c->open_index));
	if (!c->open_index) {
		c->open_count = 0; /* nothing is asked for any more: this has failed */
		return -ENOMEM;
	}
	for (size_t p = 0; p < pieces && c->open_count; p++) {
		while (at < c->open_count && (c->open[at] - c->open[0]) >> c->open_shift < p)
			at++;
		c->open_index[p] = (uint32_t)at;
	}
	return 0;
}

bool code_names_wants(const struct code_names *c, uint64_t start, uint64_t end)
{
	size_t i;

	if (!c->has_wanted)
		return start < end;
	if (!c->open_count || start >= end || start > c->open[c->open_count - 1] || end <= c->open[0])
		return false;
	i = start > c->open[0] ? c->open_index[(start - c->open[0]) >> c->open_shift] : 0;
	while (c->open[i] < start) /* the last is not */
		i++;
	return c->open[i] < end;
}

/* Forgets those of the wanted that have their name now; those that DWARF named, once symbols had their say. */
static int narrow_wanted(struct code_names *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->open_count; i++) {
		const struct code_step *step = code_steps_find(&c->functions_at, c->open[i]);

		if (!step || (c->nodes[step->value].source == CODE_SOURCE_DWARF && !c->has_symbols))
			c->open[kept++] = c->open[i];
	}
	c->open_count = kept;
	return index_open(c);
}

/* --- adders --- */

static uint32_t intern_text(struct code_names *c, struct intern *t, const void *text, size_t len)
{
	size_t before = intern_memory_bytes(t), more;
	uint32_t index;
	int r = intern_add(t, text, len, &index);

	if (r < 0) {
		fail(c, r);
		return CODE_NONE;
	}
	more = intern_memory_bytes(t) - before;
	c->budget.held_bytes += more;
	if (c->budget.held_bytes > c->budget.max_bytes) {
		c->budget.held_bytes -= more;
		fail(c, -E2BIG);
		return CODE_NONE;
	}
	return index;
}

uint32_t code_names_file(struct code_names *c, const char *path, size_t len_bytes)
{
	if (c->failed || !len_bytes)
		return CODE_NONE;
	return intern_text(c, c->files, path, len_bytes < MAX_NAME_BYTES ? len_bytes : MAX_NAME_BYTES);
}

uint32_t code_names_function(struct code_names *c, const char *name, size_t len_bytes, uint32_t decl_line)
{
	if (c->failed || !len_bytes)
		return CODE_NONE;
	buf_reset(&c->key);
	buf_append(&c->key, &decl_line, sizeof(decl_line));
	buf_append(&c->key, name, len_bytes < MAX_NAME_BYTES ? len_bytes : MAX_NAME_BYTES);
	if (c->key.failed) {
		fail(c, -ENOMEM);
		return CODE_NONE;
	}
	return intern_text(c, c->functions, c->key.data, c->key.len);
}

static uint32_t add_node(struct code_names *c, struct code_node node)
{
	int r = code_grow((void **)&c->nodes, &c->node_cap, c->node_count + 1, sizeof(*c->nodes), &c->budget);

	if (r || c->node_count >= CODE_NONE) {
		fail(c, r ? r : -E2BIG);
		return CODE_NONE;
	}
	c->nodes[c->node_count] = node;
	return (uint32_t)c->node_count++;
}

uint32_t code_names_node(struct code_names *c, uint32_t parent, uint32_t function, uint32_t call_file, uint32_t call_line,
			 uint32_t call_column)
{
	struct code_node node = { .parent = parent,
				  .function = function,
				  .call_file = call_file,
				  .call_line = call_line,
				  .source = (uint8_t)c->source };

	/* A column in no line of no file is nothing. */
	if ((call_file != CODE_NONE || call_line) && call_column <= UINT16_MAX)
		node.call_column = (uint16_t)call_column;
	if (c->failed)
		return CODE_NONE;
	if (function == CODE_NONE || (parent != CODE_NONE && c->nodes[parent].depth == MAX_DEPTH))
		return parent;
	if (parent != CODE_NONE)
		node.depth = (uint8_t)(c->nodes[parent].depth + 1);
	return add_node(c, node);
}

uint32_t code_names_copy(struct code_names *c, uint32_t node, uint32_t parent, uint32_t function)
{
	struct code_node copy = c->nodes[node];

	copy.parent = parent;
	copy.function = function;
	return c->failed ? CODE_NONE : add_node(c, copy);
}

void code_names_range(struct code_names *c, uint64_t start, uint64_t end, uint32_t node)
{
	struct code_steps *ranges = &c->ranges;
	struct code_step range = { .addr = start, .value = node };
	int r;

	if (c->failed || node == CODE_NONE || !code_names_wants(c, start, end))
		return;
	range.extra = end - start > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - start);
	r = code_grow((void **)&ranges->data, &ranges->cap, ranges->count + 1, sizeof(*ranges->data), &c->budget);
	if (r)
		fail(c, r);
	else
		ranges->data[ranges->count++] = range;
}

static void keep_row(struct code_names *c, struct code_row row)
{
	struct sequence *s = &c->sequence;
	int r = code_grow((void **)&c->rows, &c->row_cap, c->row_count + 1, sizeof(*c->rows), &c->budget);

	if (r || c->row_count >= CODE_NONE) {
		fail(c, r ? r : -E2BIG);
		return;
	}
	if (s->count == 0) {
		s->first_row = c->row_count;
		s->start = row.addr;
		s->is_sorted = true;
	} else if (row.addr < c->rows[c->row_count - 1].addr) {
		s->is_sorted = false;
	}
	if (row.addr < s->start)
		s->start = row.addr;
	s->count++;
	c->rows[c->row_count++] = row;
}

/* Keeps the pending row if somebody asks for what lies between it and @next; else only that the row before it ends there. */
static void decide_pending(struct code_names *c, uint64_t next)
{
	struct sequence *s = &c->sequence;

	if (!s->has_pending)
		return;
	s->has_pending = false;
	if (next >= s->pending.addr && !code_names_wants(c, s->pending.addr, next)) {
		if (!s->count || c->rows[c->row_count - 1].file == CODE_NONE)
			return;
		s->pending.file = CODE_NONE;
	}
	keep_row(c, s->pending);
}

/* Sorts the rows of a sequence that does not ascend; equal addresses keep their order. */
static int sort_rows(struct code_names *c, const struct sequence *s)
{
	struct code_steps order = { 0 };
	AUTO_FREE struct code_row *copy = malloc(s->count * sizeof(*copy));
	struct code_row *rows = c->rows + s->first_row;
	int r = copy ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < s->count; i++) {
		r = code_grow((void **)&order.data, &order.cap, order.count + 1, sizeof(*order.data), &c->budget);
		if (r == 0)
			order.data[order.count++] = (struct code_step){ .addr = rows[i].addr, .value = i };
	}
	if (r == 0)
		r = code_steps_sort(&order, &c->budget);
	if (r == 0) {
		memcpy(copy, rows, s->count * sizeof(*copy));
		for (uint32_t i = 0; i < s->count; i++)
			rows[i] = copy[order.data[i].value];
	}
	code_steps_fini(&order, &c->budget);
	return r;
}

static void close_sequence(struct code_names *c)
{
	struct sequence *s = &c->sequence;
	struct code_step step = { .addr = s->start, .value = (uint32_t)s->first_row, .extra = s->count };
	struct code_steps *all = &c->sequences;
	int r = 0;

	if (s->count && !s->is_sorted)
		r = sort_rows(c, s);
	if (r == 0 && s->count > 1)
		r = code_grow((void **)&all->data, &all->cap, all->count + 1, sizeof(*all->data), &c->budget);
	if (r == 0 && s->count > 1)
		all->data[all->count++] = step;
	fail(c, r);
	*s = (struct sequence){ 0 };
}

void code_names_line(struct code_names *c, uint64_t addr, uint32_t file, uint32_t line, uint32_t column)
{
	struct code_row row = { .addr = addr, .file = file, .line = line, .column = column };

	if (c->failed)
		return;
	if (!c->has_wanted) {
		keep_row(c, row);
	} else {
		decide_pending(c, addr);
		if (file != CODE_NONE) {
			c->sequence.pending = row;
			c->sequence.has_pending = true;
		} else if (c->sequence.count) {
			keep_row(c, row);
		}
	}
	if (file == CODE_NONE)
		close_sequence(c);
}

/* --- settling --- */

static uint32_t rank_node(const void *ctx, uint32_t node, uint32_t *root_ret)
{
	const struct code_node *nodes = ctx;
	uint32_t root = node;

	while (nodes[root].parent != CODE_NONE)
		root = nodes[root].parent;
	*root_ret = root;
	return nodes[node].depth;
}

static bool rows_equal(const struct code_row *a, const struct code_row *b)
{
	return a->file == b->file && a->line == b->line && a->column == b->column;
}

/* Adds what of a sequence is behind @from, which is moved to its end. */
static int add_sequence(struct code_names *c, const struct code_step *sequence, uint64_t *from, struct code_steps *out)
{
	const struct code_row *rows = c->rows + sequence->value;
	uint32_t last = sequence->extra - 1;
	int r = 0;

	if (rows[last].addr <= *from)
		return 0;
	for (uint32_t i = 0; r == 0 && i <= last; i++) {
		struct code_step step = { .addr = rows[i].addr < *from ? *from : rows[i].addr,
					  .value = sequence->value + i };
		const struct code_step *before = out->count ? &out->data[out->count - 1] : NULL;

		if (i == last || rows[i].file == CODE_NONE)
			step.value = CODE_NONE;
		else if (before && before->value != CODE_NONE && before->addr != step.addr &&
			 rows_equal(&rows[i], &c->rows[before->value])) {
			step.value = before->value; /* goes on */
			step.extra = before->extra + (uint32_t)(step.addr - before->addr);
		}
		r = code_steps_add(out, step, &c->budget);
	}
	*from = rows[last].addr;
	return r;
}

static int settle_lines(struct code_names *c)
{
	struct code_steps out = { 0 };
	uint64_t from = 0;
	int r;

	if (c->sequence.has_pending)
		decide_pending(c, c->sequence.pending.addr);
	close_sequence(c);
	r = code_steps_sort(&c->sequences, &c->budget);
	for (size_t i = 0; r == 0 && i < c->sequences.count; i++)
		r = add_sequence(c, &c->sequences.data[i], &from, &out);
	code_steps_fini(&c->sequences, &c->budget);
	if (r == 0)
		return code_steps_fill(&c->lines_at, &out, NULL, NULL, &c->budget);
	code_steps_fini(&out, &c->budget);
	return r;
}

/* May the source that adds just now say how functions are called that DWARF described? The first symbol table may. */
static bool may_rename(const struct code_names *c)
{
	return c->source == CODE_SOURCE_SYMTAB || (c->source == CODE_SOURCE_DYNSYM && !c->has_symbols);
}

static int settle_ranges(struct code_names *c)
{
	AUTO(code_rename_fini) struct code_rename rename = { .names = c };
	struct code_steps out = { 0 };
	bool has_any = c->ranges.count;
	int r = code_steps_sort(&c->ranges, &c->budget);

	if (r == 0)
		r = code_steps_flatten(&c->ranges, rank_node, c->nodes, &out, &c->budget);
	code_steps_fini(&c->ranges, &c->budget);
	if (r == 0) {
		r = code_steps_fill(&c->functions_at, &out, may_rename(c) ? code_rename : NULL, &rename, &c->budget);
		c->has_symbols |= may_rename(c) && has_any;
		return r;
	}
	code_steps_fini(&out, &c->budget);
	return r;
}

static void settle(struct code_names *c)
{
	if (!c->failed)
		fail(c, settle_lines(c));
	if (!c->failed)
		fail(c, settle_ranges(c));
	if (!c->failed && c->has_wanted)
		fail(c, narrow_wanted(c));
}

void code_names_begin(struct code_names *c, enum code_source source)
{
	if (c->source != CODE_SOURCE_NONE)
		settle(c);
	c->source = source;
}

int code_names_finish(struct code_names *c)
{
	settle(c);
	return c->failed;
}

/* --- answers --- */

uint32_t code_names_decl_line(const struct code_names *c, uint32_t function)
{
	uint32_t line;

	memcpy(&line, intern_get(c->functions, function, NULL), sizeof(line));
	return line;
}

/* The frames of @node and of the nodes around it; the innermost's line is there. */
static void add_frames(const struct code_names *c, uint32_t node, struct code_answer *ret)
{
	struct code_frame *frame = &ret->frames[0];

	for (;;) {
		const struct code_node *n = &c->nodes[node];

		frame->function = n->function;
		if (n->parent == CODE_NONE)
			break;
		node = n->parent;
		if (ret->frame_count < CODE_MAX_FRAMES)
			frame = &ret->frames[ret->frame_count++];
		*frame = (struct code_frame){ .file = n->call_file, .line = n->call_line, .column = n->call_column };
	}
}

int code_names_find(const struct code_names *c, uint64_t addr, struct code_answer *ret)
{
	const struct code_step *function = code_steps_find(&c->functions_at, addr);
	const struct code_step *line = code_steps_find(&c->lines_at, addr);
	const char *name;
	size_t len;

	ret->start = ret->size_bytes = 0;
	ret->source = CODE_SOURCE_NONE;
	ret->decl_line = 0;
	ret->frame_count = function || line;
	ret->frames[0] = (struct code_frame){ .function = CODE_NONE, .file = CODE_NONE };
	if (line) {
		const struct code_row *row = &c->rows[line->value];

		ret->frames[0].file = row->file;
		ret->frames[0].line = row->line;
		ret->frames[0].column = row->column;
	}
	if (!function)
		return -ENOENT;
	ret->start = function->addr - function->extra;
	if (c->nodes[function->value].source == CODE_SOURCE_UNWIND) {
		name = code_names_name(c, c->nodes[function->value].function, &len);
		ret->size_bytes = code_range_bytes(name, len);
		ret->frame_count = line != NULL;
		return -ENOENT;
	}
	ret->source = (enum code_source)c->nodes[function->value].source;
	ret->decl_line = code_names_decl_line(c, c->nodes[function->value].function);
	add_frames(c, function->value, ret);
	return 0;
}

const char *code_names_name(const struct code_names *c, uint32_t function, size_t *len_ret)
{
	const char *key = intern_get(c->functions, function, len_ret);

	*len_ret -= sizeof(uint32_t);
	return key + sizeof(uint32_t);
}

const char *code_names_path(const struct code_names *c, uint32_t file, size_t *len_ret)
{
	return intern_get(c->files, file, len_ret);
}

struct code_names_parts code_names_parts(const struct code_names *c)
{
	return (struct code_names_parts){
		.functions = &c->functions_at,
		.lines = &c->lines_at,
		.nodes = c->nodes,
		.rows = c->rows,
		.node_count = (uint32_t)c->node_count,
		.function_count = intern_count(c->functions),
		.file_count = intern_count(c->files),
	};
}
