/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as Erlang and Elixir write them: module:function/arity, Module.function/arity. Functions that the compiler made of
 * funs and comprehensions are named after the function they stand in: -f/1-fun-0- is f/1-fun-0. Lines are from the module's
 * table of lines, which has an entry for each place that may fail or call (erts/emulator/beam/beam_code.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/beam/beam_state.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum {
	MAX_LINES = 1 << 16,	  /* of a function */
	LINES_FUNCTIONS = 24,	  /* in a table of lines: where the functions' places begin; before these ... */
	LINES_LOCATION_BYTES = 8, /* ... how many bytes a location has, and where they are */
	LINES_LOCATIONS = 16,
	LOCATION_FILE_SHIFT = 24,
};

static const char elixir[] = "Elixir.";

/* --- names --- */

static void append_text(struct buf *out, const char *text, size_t len)
{
	buf_append(out, text, len);
}

static void append_arity(struct buf *out, uint64_t arity)
{
	char text[16];

	append_text(out, text, (size_t)snprintf(text, sizeof(text), "/%u", (unsigned)arity));
}

/* The name in front of a function's own, and the mark between them. */
static void append_module(struct buf *out, const char *module, size_t len)
{
	const size_t prefix = sizeof(elixir) - 1;
	bool is_elixir = len > prefix && !memcmp(module, elixir, prefix);

	append_text(out, module + (is_elixir ? prefix : 0), len - (is_elixir ? prefix : 0));
	append_text(out, is_elixir ? "." : ":", 1);
}

/* A name that the compiler made begins and ends with '-'; "lc$^0" is one of a comprehension. */
static void append_function(struct buf *out, const char *name, size_t len)
{
	if (len > 2 && name[0] == '-' && name[len - 1] == '-') {
		name++;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '$' && i + 1 < len && name[i + 1] == '^')
			append_text(out, "-", 1), i++;
		else
			append_text(out, &name[i], 1);
	}
}

static int print_name(const struct beam *s, struct code_memory *m, const struct code_block *b, struct buf *out)
{
	char text[BEAM_MAX_ATOM];
	int len = beam_atom(s, m, b->own[BEAM_OWN_MODULE], text);

	if (len < 0)
		return len;
	append_module(out, text, (size_t)len);
	if (b->kind == BEAM_HEADER) {
		append_text(out, "(module)", 8);
		return out->failed ? -ENOMEM : 0;
	}
	len = beam_atom(s, m, b->own[BEAM_OWN_FUNCTION], text);
	if (len < 0)
		return len;
	append_function(out, text, (size_t)len);
	append_arity(out, b->own[BEAM_OWN_ARITY]);
	return out->failed ? -ENOMEM : 0;
}

/* --- lines --- */

struct lines {
	uint64_t table;	     /* address; 0: there is none */
	uint64_t *places;    /* where each begins; owned */
	uint32_t *locations; /* file << 24 | line; 0: not told; owned */
	uint32_t count;
};

static int read_locations(struct code_memory *m, struct lines *l, uint64_t first)
{
	uint64_t from = code_read_u64(m, l->table + LINES_LOCATIONS);
	uint32_t bytes = code_read_u32(m, l->table + LINES_LOCATION_BYTES);
	AUTO_FREE uint16_t *shorts = bytes == 2 ? calloc(l->count, sizeof(*shorts)) : NULL;

	if (bytes == 4)
		return code_read(m, from + 4 * first, l->locations, l->count * sizeof(*l->locations));
	if (bytes != 2)
		return -EBADMSG;
	if (!shorts)
		return -ENOMEM;
	if (code_read(m, from + 2 * first, shorts, l->count * sizeof(*shorts)))
		return -EFAULT;
	for (uint32_t i = 0; i < l->count; i++)
		l->locations[i] = shorts[i];
	return 0;
}

/* Reads the lines of the function @b; without any @l has none. */
static int read_lines(struct code_memory *m, const struct code_block *b, struct lines *l)
{
	uint64_t header = b->own[BEAM_OWN_HEADER], at, first, from, to;

	l->table = header ? code_read_u64(m, header + BEAM_LINE_TABLE) : 0;
	if (!l->table)
		return 0;
	at = l->table + LINES_FUNCTIONS;
	first = code_read_u64(m, at);
	from = code_read_u64(m, at + 8 * b->own[BEAM_OWN_INDEX]);
	to = code_read_u64(m, at + 8 * b->own[BEAM_OWN_INDEX] + 8);
	if (!first || from < first || to < from || (to - from) / 8 > MAX_LINES || (from - first) / 8 > UINT32_MAX)
		return -EBADMSG;
	l->count = (uint32_t)((to - from) / 8);
	l->places = calloc(l->count + 1ul, sizeof(*l->places));
	l->locations = calloc(l->count + 1ul, sizeof(*l->locations));
	if (!l->places || !l->locations)
		return -ENOMEM;
	if (l->count && code_read(m, from, l->places, l->count * sizeof(*l->places)))
		return -EFAULT;
	return l->count ? read_locations(m, l, (from - first) / 8) : 0;
}

/* Appends the text that the list @list of characters is. */
static void append_list(struct code_memory *m, uint64_t list, struct buf *out)
{
	enum { TAG = 7, IS_LIST = 1, TAG_BITS = 2, CHARACTER = 15, CHARACTER_BITS = 4, MAX_CHARACTERS = 1024 };

	for (int i = 0; i < MAX_CHARACTERS && (list & ((1 << TAG_BITS) - 1)) == IS_LIST; i++) {
		uint64_t cell[2];
		char c;

		if (code_read(m, list & ~(uint64_t)TAG, cell, sizeof(cell)) ||
		    (cell[0] & ((1 << CHARACTER_BITS) - 1)) != CHARACTER)
			return;
		c = cell[0] >> CHARACTER_BITS < 128 ? (char)(cell[0] >> CHARACTER_BITS) : '?';
		append_text(out, &c, 1);
		list = cell[1];
	}
}

/* Puts the path of file number @file into @out: number 0 is the module's own. */
static void print_file(const struct beam *s, struct code_memory *m, const struct lines *l, const struct code_block *b,
		       uint32_t file, struct buf *out)
{
	char text[BEAM_MAX_ATOM];
	uint64_t path;
	int len;

	buf_reset(out);
	if (!file) {
		len = beam_atom(s, m, b->own[BEAM_OWN_MODULE], text);
		if (len < 0)
			return;
		append_text(out, text, (size_t)len);
		append_text(out, ".erl", 4);
		return;
	}
	/* lists, of which the first is the module's own file; atoms without that in some releases */
	path = code_read_u64(m, code_read_u64(m, l->table) + 8ull * (file - 1));
	len = beam_atom(s, m, path, text);
	if (len > 0)
		append_text(out, text, (size_t)len);
	else
		append_list(m, code_read_u64(m, code_read_u64(m, l->table) + 8ull * file), out);
}

static void place_lines(const struct beam *s, struct code_memory *m, const struct code_block *b, const struct lines *l,
			const struct buf *name, struct block_names *n)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	uint32_t file = UINT32_MAX;
	uint16_t function = BLOCK_NAMES_NONE;

	for (uint32_t i = 0; i < l->count; i++) {
		uint32_t location = l->locations[i], at_file = location >> LOCATION_FILE_SHIFT;

		if (l->places[i] >= b->end || !location)
			continue;
		if (at_file != file) {
			print_file(s, m, l, b, at_file, &path);
			function = block_names_function(n, (const char *)name->data, name->len, (const char *)path.data,
							path.len, 0);
			file = at_file;
		}
		location &= (1u << LOCATION_FILE_SHIFT) - 1;
		/* the first place is that of the function's head, which begins a few bytes before its name */
		block_names_place(n, l->places[i] < b->start ? 0 : (uint32_t)(l->places[i] - b->start),
				  block_names_scope(n, BLOCK_NAMES_NONE, function, location), 0);
	}
}

int beam_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n)
{
	const struct beam *s = state;
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	struct lines l = { 0 };
	int error = 0;

	if (b->kind == BEAM_FRAGMENT) {
		const char *text = s->fragments[b->own[BEAM_OWN_FRAGMENT] % BEAM_MAX_FRAGMENTS].name;

		append_text(&name, "global::", 8);
		append_text(&name, text, strnlen(text, BEAM_FRAGMENT_NAME));
	} else {
		error = print_name(s, m, b, &name);
	}
	if (error || name.failed)
		return error ? error : -ENOMEM;
	block_names_place(n, 0,
			  block_names_scope(n, BLOCK_NAMES_NONE,
					    block_names_function(n, (const char *)name.data, name.len, "", 0, 0), 0),
			  0);
	if (b->kind == BEAM_FUNCTION && !read_lines(m, b, &l))
		place_lines(s, m, b, &l, &name, n);
	free(l.places);
	free(l.locations);
	return m->is_spent ? -EDQUOT : 0;
}
