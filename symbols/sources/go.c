/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names, lines and inlined calls out of the table that Go's runtime has for itself. A function's values (its file,
 * line and inlined call at each instruction) are unpacked no further than its code reaches, so the time is that of the
 * code's size, whatever the table says. An inlined call names the instruction of its caller where it stood; that one's
 * values say where it was called, and in which call that in turn was inlined: always one with a smaller number, so there are
 * no circles.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/sources/gopclntab.h"
#include "symbols/code/source.h"

enum { MAX_INLINED = 1 << 20 /* calls of one function; the runtime's own limit */ };

/* A run of code with one value, from @start to the next run's start. */
struct run {
	uint64_t start;
	int32_t value;
};

struct runs {
	struct run *all; /* owned; sorted, without gaps */
	size_t count, cap;
	uint64_t end; /* of the last */
};

struct reader {
	struct gopclntab table;
	struct code_names *names;
	struct gopclntab_function fn;
	uint32_t root; /* node of @fn */
	struct runs files, lines, calls;
	uint32_t *nodes; /* of inlined calls of @fn, by number; CODE_NONE: not made yet. Owned */
	size_t nodes_cap;
	/* the file asked for last */
	uint32_t unit, file_id;
	int32_t file;
	bool is_without_places; /* of @fn: see find_places */
	bool is_broken;
};

static void reader_fini(struct reader *r)
{
	free(r->files.all);
	free(r->lines.all);
	free(r->calls.all);
	free(r->nodes);
}

/* --- values --- */

static int add_run(struct runs *r, uint64_t start, int32_t value)
{
	if (vec_reach(&r->all, &r->cap, r->count))
		return -ENOMEM;
	r->all[r->count++] = (struct run){ start, value };
	return 0;
}

static int read_runs(struct reader *r, uint32_t values, struct runs *runs)
{
	struct gopclntab_values it;
	uint64_t start, end;
	int32_t value;

	runs->count = 0;
	runs->end = r->fn.entry;
	gopclntab_values_init(&r->table, &r->fn, values, &it);
	while (runs->end < r->fn.end && gopclntab_values_next(&it, &start, &end, &value)) {
		runs->end = end < r->fn.end ? end : r->fn.end;
		if (add_run(runs, start, value))
			return -ENOMEM;
	}
	return 0;
}

/* The value at @addr; -1: none. */
static int32_t value_at(const struct runs *r, uint64_t addr)
{
	if (!r->count || addr < r->all[0].start || addr >= r->end)
		return -1;
	return r->all[search_first(at, r->count, r->all[at].start > addr) - 1].value;
}

/* --- lines --- */

static uint32_t file_id(struct reader *r, int32_t file)
{
	const char *path;
	size_t len;

	if (file < 0)
		return CODE_NONE;
	if (r->file != file || r->unit != r->fn.unit) {
		path = gopclntab_path(&r->table, &r->fn, file, &len);
		r->file_id = path ? code_names_file(r->names, path, len) : CODE_NONE;
		r->file = file;
		r->unit = r->fn.unit;
	}
	return r->file_id;
}

static void add_line(struct reader *r, uint64_t addr, int32_t file, int32_t line)
{
	uint32_t id = line >= 0 ? file_id(r, file) : CODE_NONE;

	code_names_line(r->names, addr, id, id == CODE_NONE ? 0 : (uint32_t)line, 0);
}

/* A row where the file or the line changes. */
static void add_lines(struct reader *r)
{
	const struct runs *files = &r->files, *lines = &r->lines;
	uint64_t end = files->end < lines->end ? files->end : lines->end;
	size_t f = 0, l = 0;

	if (!files->count || !lines->count)
		return;
	for (uint64_t addr = r->fn.entry; addr < end;) {
		uint64_t next_file = f + 1 < files->count ? files->all[f + 1].start : end;
		uint64_t next_line = l + 1 < lines->count ? lines->all[l + 1].start : end;

		add_line(r, addr, files->all[f].value, lines->all[l].value);
		addr = next_file < next_line ? next_file : next_line;
		f += next_file == addr;
		l += next_line == addr;
	}
	code_names_line(r->names, end, CODE_NONE, 0, 0);
}

/* --- inlined calls --- */

/* Makes room to remember the nodes of calls up to number @most. */
static int forget_nodes(struct reader *r, int32_t most)
{
	size_t count = (size_t)most + 1;

	if (vec_reserve(&r->nodes, &r->nodes_cap, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		r->nodes[i] = CODE_NONE;
	return 0;
}

/* Go's linker leaves the places of calls in package initializers at zero, the first instruction, which there belongs to an
 * inlined call itself. Then it is not known where a call was, nor in which other call. */
static bool has_call_addr(const struct reader *r, const struct gopclntab_inlined *inlined)
{
	return inlined->call_addr != r->fn.entry || !r->is_without_places;
}

static void find_places(struct reader *r)
{
	int32_t first = value_at(&r->calls, r->fn.entry);
	struct gopclntab_inlined inlined;

	r->is_without_places = first >= 0 && !gopclntab_inlined(&r->table, &r->fn, (uint32_t)first, &inlined) &&
			       inlined.call_addr == r->fn.entry;
}

/* The node of call number @call, once that of its caller is known. */
static uint32_t make_node(struct reader *r, const struct gopclntab_inlined *inlined, uint32_t parent)
{
	uint32_t function = code_names_function(r->names, inlined->name, inlined->name_len, inlined->start_line);
	int32_t line = has_call_addr(r, inlined) ? value_at(&r->lines, inlined->call_addr) : -1;
	uint32_t file = line >= 0 ? file_id(r, value_at(&r->files, inlined->call_addr)) : CODE_NONE;

	return code_names_node(r->names, parent, function, file, file == CODE_NONE ? 0 : (uint32_t)line, 0);
}

/* The node of call number @call: goes out to the first caller that has a node, then back in. */
static uint32_t node_of(struct reader *r, int32_t call)
{
	enum { MAX_DEPTH = 255 };
	struct gopclntab_inlined chain[MAX_DEPTH];
	int32_t numbers[MAX_DEPTH];
	uint32_t node = r->root;
	int depth = 0;

	while (call >= 0 && r->nodes[call] == CODE_NONE) {
		if (depth == MAX_DEPTH || gopclntab_inlined(&r->table, &r->fn, (uint32_t)call, &chain[depth])) {
			r->is_broken = true;
			break;
		}
		numbers[depth] = call;
		call = has_call_addr(r, &chain[depth]) ? value_at(&r->calls, chain[depth].call_addr) : -1;
		depth++;
	}
	if (call >= 0 && r->nodes[call] != CODE_NONE)
		node = r->nodes[call];
	while (depth--)
		r->nodes[numbers[depth]] = node = make_node(r, &chain[depth], node);
	return node;
}

static int add_inlined(struct reader *r)
{
	const struct runs *calls = &r->calls;
	int32_t most = -1;

	for (size_t i = 0; i < calls->count; i++)
		if (calls->all[i].value > most)
			most = calls->all[i].value;
	if (most < 0)
		return 0;
	if (most >= MAX_INLINED) {
		r->is_broken = true;
		return 0;
	}
	if (forget_nodes(r, most))
		return -ENOMEM;
	find_places(r);
	for (size_t i = 0; i < calls->count; i++) {
		uint64_t end = i + 1 < calls->count ? calls->all[i + 1].start : calls->end;

		if (calls->all[i].value >= 0)
			code_names_range(r->names, calls->all[i].start, end, node_of(r, calls->all[i].value));
	}
	return 0;
}

/* --- functions --- */

static int add_function(struct reader *r, uint32_t index)
{
	struct gopclntab_function *fn = &r->fn;
	uint32_t function;

	if (gopclntab_function(&r->table, index, fn)) {
		r->is_broken = true;
		return 0;
	}
	if (!code_names_wants(r->names, fn->entry, fn->end))
		return 0;
	function = code_names_function(r->names, fn->name, fn->name_len, fn->start_line);
	r->root = code_names_node(r->names, CODE_NONE, function, CODE_NONE, 0, 0);
	if (read_runs(r, fn->file_values, &r->files) || read_runs(r, fn->line_values, &r->lines) ||
	    read_runs(r, r->table.inlined ? fn->inlined_values : 0, &r->calls))
		return -ENOMEM;
	/* Up to the next function there may be padding, which has no line. */
	code_names_range(r->names, fn->entry, r->lines.count ? r->lines.end : fn->end, r->root);
	add_lines(r);
	return add_inlined(r);
}

int source_go(const struct symbol_files *files, struct code_names *names)
{
	AUTO(reader_fini) struct reader r = { .names = names, .file = -1 };
	int error = 0;

	if (!files->program.data || gopclntab_open(files->program.data, files->program.len_bytes, &r.table))
		return -ENODATA;
	r.is_broken = gopclntab_open_inlined(&r.table) != 0;
	code_names_begin(names, CODE_SOURCE_GO);
	for (uint32_t i = 0; i < r.table.function_count && !error; i++)
		error = add_function(&r, i);
	return error ? error : r.is_broken ? -EBADMSG : 0;
}
