/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes an index. Function steps and line steps become one run of steps, each with what changes there; what steps refer to
 * (inlined calls, places in source files) is kept once and numbered by how often it is used, so that most references take
 * one or two bytes. For that the steps are encoded twice: the first pass only counts. Everything is put together in memory;
 * a writer lives for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/varint.h"
#include "symbols/code/names_parts.h"
#include "symbols/index/format.h"
#include "symbols/index/numbered.h"

/* A table's rows while their fields' widths are not known. */
struct table {
	struct buf values; /* u64 each */
	uint32_t rows;
	unsigned int fields;
	uint64_t greatest[INDEX_MAX_FIELDS];
};

/* The state of the encoder after the last step. */
struct stand {
	uint32_t in_block; /* steps in this block */
	uint64_t addr;
	uint64_t start;			 /* of the range of chain[0] */
	uint32_t chain[INDEX_MAX_DEPTH]; /* nodes, the outermost first */
	uint32_t depth;
	uint32_t place_plus_1;
};

struct writer {
	const struct code_names *names;
	struct code_names_parts parts;
	uint32_t *functions, *files; /* their numbers in the file, by those in @names; CODE_NONE: not used */
	uint32_t function_count, file_count;
	uint32_t *calls;  /* numbers of nodes' calls, + 1; 0: not known yet */
	uint32_t *places; /* the same of the line steps' places */
	struct numbered call_numbers, place_numbers;
	struct table tables[TABLE_MAX];
	struct buf streams[STREAM_MAX];
	struct stand stand;
	uint64_t first;
	uint32_t steps;
};

/* --- small things --- */

static void add_row(struct table *t, const uint64_t *values, unsigned int fields)
{
	t->fields = fields;
	t->rows++;
	for (unsigned int i = 0; i < fields; i++)
		t->greatest[i] |= values[i];
	buf_append(&t->values, values, fields * sizeof(*values));
}

/* --- texts --- */

struct text {
	const char *data;
	size_t len;
	uint32_t id; /* in the struct code_names */
};

static int compare_texts(const void *a, const void *b)
{
	const struct text *x = a, *y = b;
	int r = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	if (r == 0)
		r = (x->len > y->len) - (x->len < y->len);
	return r ? r : (x->id > y->id) - (x->id < y->id);
}

/* Writes sorted texts, each as what it has more than its neighbour before it, anew at the start of each group. */
static void put_texts(const struct text *texts, uint32_t count, struct buf *stream, struct table *groups)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct text *t = &texts[i];
		size_t shared = 0;

		if (i % INDEX_TEXTS_A_BLOCK == 0) {
			add_row(groups, &(uint64_t){ stream->len }, 1);
		} else {
			const struct text *before = &texts[i - 1];

			while (shared < before->len && shared < t->len && before->data[shared] == t->data[shared])
				shared++;
		}
		varint_append(stream, shared);
		varint_append(stream, t->len - shared);
		buf_append(stream, t->data + shared, t->len - shared);
	}
	add_row(groups, &(uint64_t){ stream->len }, 1);
}

typedef const char *(*text_fn)(const struct code_names *c, uint32_t id, size_t *len_ret);

/* Sorts those of @ids' @count texts that are used (not CODE_NONE), writes them, and puts their numbers into @ids. */
static int number_texts(struct writer *w, uint32_t *ids, uint32_t count, text_fn text, enum index_stream stream,
			enum index_table groups, uint32_t *count_ret)
{
	AUTO_FREE struct text *texts = malloc((count + 1ull) * sizeof(*texts));
	uint32_t used = 0;

	if (!texts)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (ids[i] == CODE_NONE)
			continue;
		texts[used].data = text(w->names, i, &texts[used].len);
		texts[used++].id = i;
	}
	qsort(texts, used, sizeof(*texts), compare_texts);
	for (uint32_t i = 0; i < used; i++) {
		ids[texts[i].id] = i;
		if (groups == TABLE_NAMES)
			add_row(&w->tables[TABLE_LINES], &(uint64_t){ code_names_decl_line(w->names, texts[i].id) }, 1);
	}
	put_texts(texts, used, &w->streams[stream], &w->tables[groups]);
	*count_ret = used;
	return 0;
}

/* Marks (0) the functions and files that an address leads to. */
static void mark_used(struct writer *w)
{
	const struct code_names_parts *p = &w->parts;

	for (size_t i = 0; i < p->functions->count; i++) {
		uint32_t node = p->functions->data[i].value;

		/* The nodes above a marked node were marked with it. */
		while (node != CODE_NONE && !w->calls[node]) {
			const struct code_node *n = &p->nodes[node];

			w->calls[node] = 1;
			w->functions[n->function] = 0;
			if (n->parent != CODE_NONE && n->call_file != CODE_NONE)
				w->files[n->call_file] = 0;
			node = n->parent;
		}
	}
	memset(w->calls, 0, p->node_count * sizeof(*w->calls));
	for (size_t i = 0; i < p->lines->count; i++) {
		if (p->lines->data[i].value != CODE_NONE)
			w->files[p->rows[p->lines->data[i].value].file] = 0;
	}
}

/* --- steps --- */

static uint32_t number_of_place(struct writer *w, uint32_t file, uint32_t line, uint32_t column)
{
	return numbered_add(&w->place_numbers, file == CODE_NONE ? 0 : w->files[file] + 1, line, column);
}

/* The number of the inlined call of @node, a row of TABLE_CALLS. */
static uint32_t use_call(struct writer *w, uint32_t node)
{
	const struct code_node *n = &w->parts.nodes[node];
	uint32_t place_plus_1 = 0;

	if (!w->calls[node]) {
		if (n->call_file != CODE_NONE || n->call_line)
			place_plus_1 = number_of_place(w, n->call_file, n->call_line, n->call_column) + 1;
		w->calls[node] = numbered_add(&w->call_numbers, w->functions[n->function], place_plus_1, 0) + 1;
	}
	return numbered_use(&w->call_numbers, w->calls[node] - 1) - 1;
}

/* The number of the place of line step @i, a row of TABLE_PLACES + 1; 0: none. */
static uint32_t use_place(struct writer *w, size_t i)
{
	const struct code_step *step = &w->parts.lines->data[i];

	if (step->value == CODE_NONE)
		return 0;
	if (!w->places[i]) {
		const struct code_row *row = &w->parts.rows[step->value];

		w->places[i] = number_of_place(w, row->file, row->line, row->column) + 1;
	}
	return numbered_use(&w->place_numbers, w->places[i] - 1);
}

/* The chain of @node, outermost first; its length. */
static uint32_t find_chain(const struct writer *w, uint32_t node, uint32_t *chain)
{
	uint32_t depth = node == CODE_NONE ? 0 : w->parts.nodes[node].depth + 1u;

	for (uint32_t i = depth; i > 0; i--) {
		chain[i - 1] = node;
		node = w->parts.nodes[node].parent;
	}
	return depth;
}

/* Writes at *@p what has to happen to the chain for @node to be its end, at @addr; the flags of what that was. */
static int put_chain(struct writer *w, uint8_t **p, uint64_t addr, uint32_t node, uint64_t start)
{
	struct stand *s = &w->stand;
	uint32_t chain[INDEX_MAX_DEPTH], depth = find_chain(w, node, chain), common = 0;
	int flags = 0;

	if (depth && s->depth && start == s->start)
		while (common < depth && common < s->depth && chain[common] == s->chain[common])
			common++;
	if (common == depth && common == s->depth)
		return 0;
	if (!common) {
		uint64_t root = depth ? (uint64_t)w->functions[w->parts.nodes[chain[0]].function] << ROOT_FUNCTION_SHIFT |
						(uint64_t)w->parts.nodes[chain[0]].source << ROOT_SOURCE_SHIFT
				      : 0;

		flags = STEP_ROOT;
		*p = varint_write(*p, root | (depth && addr > start ? ROOT_HAS_BACK : 0));
		if (depth && addr > start)
			*p = varint_write(*p, addr - start);
		common = depth ? 1 : 0;
	} else if (common < s->depth) {
		flags = STEP_POP;
		*p = varint_write(*p, s->depth - common);
	}
	if (common < depth) {
		flags |= STEP_PUSH;
		*p = varint_write(*p, depth - common);
		for (uint32_t i = common; i < depth; i++)
			*p = varint_write(*p, use_call(w, chain[i]));
	}
	memcpy(s->chain, chain, depth * sizeof(*chain));
	s->depth = depth;
	s->start = start;
	return flags;
}

/* Writes a step at @addr: @node, of a function whose range starts at @start, and @place_plus_1. */
static void put_step(struct writer *w, uint64_t addr, uint32_t node, uint64_t start, uint32_t place_plus_1)
{
	enum { MAX_STEP_BYTES = 64 + 5 * INDEX_MAX_DEPTH };
	struct stand *s = &w->stand;
	struct buf *out = &w->streams[STREAM_CODE];
	bool is_first = s->in_block == 0;
	uint64_t delta = is_first ? 0 : addr - s->addr;
	uint8_t *first, *p;
	int flags;

	if (buf_reserve(out, MAX_STEP_BYTES))
		return;
	first = out->data + out->len;
	p = first + 1;
	if (delta > STEP_DELTA)
		p = varint_write(p, delta);
	flags = put_chain(w, &p, addr, node, start);
	if (place_plus_1 != s->place_plus_1) {
		flags |= STEP_LINE;
		p = varint_write(p, place_plus_1);
	}
	if (!flags && !is_first)
		return;
	*first = (uint8_t)(flags | (delta <= STEP_DELTA ? (int)delta : 0));
	if (is_first)
		add_row(&w->tables[TABLE_BLOCKS], (uint64_t[]){ addr - w->first, out->len }, 2);
	out->len += (size_t)(p - first);
	s->addr = addr;
	s->place_plus_1 = place_plus_1;
	w->steps++;
	if (++s->in_block == INDEX_STEPS_A_BLOCK)
		*s = (struct stand){ 0 };
}

/* All steps: wherever the functions or the lines have one. 0 or -ENOMEM: not all that they refer to has a number. */
static int put_steps(struct writer *w)
{
	const struct code_steps *functions = w->parts.functions, *lines = w->parts.lines;
	uint32_t node = CODE_NONE, place_plus_1 = 0;
	uint64_t start = 0, addr = 0;
	size_t i = 0, k = 0;

	buf_reset(&w->streams[STREAM_CODE]);
	buf_reset(&w->tables[TABLE_BLOCKS].values);
	w->tables[TABLE_BLOCKS].rows = 0;
	w->stand = (struct stand){ 0 };
	w->steps = 0;
	while (i < functions->count || k < lines->count) {
		bool is_function = k == lines->count ||
				   (i < functions->count && functions->data[i].addr <= lines->data[k].addr);

		addr = is_function ? functions->data[i].addr : lines->data[k].addr;
		if (i == 0 && k == 0)
			w->first = addr;
		if (i < functions->count && functions->data[i].addr == addr) {
			start = addr - functions->data[i].extra;
			node = functions->data[i++].value;
		}
		if (k < lines->count && lines->data[k].addr == addr)
			place_plus_1 = use_place(w, k++);
		put_step(w, addr, node, start, place_plus_1);
	}
	add_row(&w->tables[TABLE_BLOCKS], (uint64_t[]){ addr - w->first, w->streams[STREAM_CODE].len }, 2);
	return w->streams[STREAM_CODE].failed ? -ENOMEM : 0;
}

/* The tables of what the steps refer to. */
static int put_referred(struct writer *w)
{
	AUTO_FREE struct numbered_entry *calls = numbered_in_order(&w->call_numbers);
	AUTO_FREE struct numbered_entry *places = numbered_in_order(&w->place_numbers);

	if (!calls || !places)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->call_numbers.count; i++) {
		uint64_t place = calls[i].key[1] ? w->place_numbers.final[calls[i].key[1] - 1] + 1ull : 0;

		add_row(&w->tables[TABLE_CALLS], (uint64_t[]){ calls[i].key[0], place }, 2);
	}
	for (uint32_t i = 0; i < w->place_numbers.count; i++) {
		const uint32_t *key = places[i].key;

		add_row(&w->tables[TABLE_PLACES], (uint64_t[]){ key[0], key[1], key[2] }, 3);
	}
	return 0;
}

/* --- the file --- */

/* Decides on the widths of a table's fields; its bytes. */
static size_t size_table(const struct table *t, struct index_table_head *head)
{
	size_t row_bytes = 0;

	head->rows = t->rows;
	for (unsigned int f = 0; f < t->fields; f++) {
		head->widths[f] = t->greatest[f] ? (uint8_t)((64 - __builtin_clzll(t->greatest[f]) + 7) / 8) : 0;
		row_bytes += head->widths[f];
	}
	return t->rows * row_bytes;
}

static void append_table(const struct table *t, const struct index_table_head *head, struct buf *out)
{
	const uint64_t *value = (const uint64_t *)t->values.data;

	for (uint32_t row = 0; row < t->rows; row++) {
		for (unsigned int f = 0; f < t->fields; f++, value++) {
			memcpy(out->data + out->len, value, head->widths[f]);
			out->len += head->widths[f];
		}
	}
}

/* Places the parts behind each other; whether all of them are whole. */
static bool lay_out(const struct writer *w, struct index_header *h)
{
	bool failed = w->call_numbers.failed || w->place_numbers.failed;
	uint64_t len = 0;

	for (int t = 0; t < TABLE_MAX; t++) {
		h->tables[t].offset = len;
		len += size_table(&w->tables[t], &h->tables[t]);
		failed |= w->tables[t].values.failed;
	}
	for (int s = 0; s < STREAM_MAX; s++) {
		h->streams[s] = (struct index_stream_head){ .offset = len, .len_bytes = w->streams[s].len };
		len += w->streams[s].len;
		failed |= w->streams[s].failed;
	}
	h->data = sizeof(*h) + 8 * ((len + INDEX_CHUNK_BYTES - 1) / INDEX_CHUNK_BYTES);
	h->len_bytes = h->data + len;
	for (int t = 0; t < TABLE_MAX; t++)
		h->tables[t].offset += h->data;
	for (int s = 0; s < STREAM_MAX; s++)
		h->streams[s].offset += h->data;
	return !failed;
}

/* Fills in the checksums of a whole file. */
static void put_hashes(uint8_t *file, const struct index_header *h)
{
	uint64_t hash;

	for (uint64_t at = h->data, chunk = 0; at < h->len_bytes; at += INDEX_CHUNK_BYTES, chunk++) {
		uint64_t rest = h->len_bytes - at;

		hash = XXH3_64bits(file + at, rest < INDEX_CHUNK_BYTES ? rest : INDEX_CHUNK_BYTES);
		memcpy(file + sizeof(*h) + 8 * chunk, &hash, sizeof(hash));
	}
	hash = index_head_hash(file, h->data);
	memcpy(file + offsetof(struct index_header, hash), &hash, sizeof(hash));
}

static int put_file(const struct writer *w, const struct symbol_index_head *head, struct buf *out)
{
	struct index_header h = { .version = SYMBOL_INDEX_VERSION,
				  .best = head->best,
				  .first = w->first,
				  .functions = w->function_count,
				  .files = w->file_count,
				  .steps = w->steps };
	size_t start = out->len;

	memcpy(h.magic, index_magic, sizeof(h.magic));
	memcpy(h.build_id, head->build_id, strnlen(head->build_id, sizeof(h.build_id)));
	h.flags = (head->is_broken ? INDEX_IS_BROKEN : 0) | (head->had_debug ? INDEX_HAD_DEBUG : 0) |
		  (head->had_common ? INDEX_HAD_COMMON : 0) | (head->had_package ? INDEX_HAD_PACKAGE : 0) |
		  (head->has_ranges ? INDEX_HAS_RANGES : 0);
	if (!lay_out(w, &h) || buf_reserve(out, h.len_bytes))
		return -ENOMEM;
	buf_append(out, &h, sizeof(h));
	out->len = start + h.data; /* the checksums come last */
	for (int t = 0; t < TABLE_MAX; t++)
		append_table(&w->tables[t], &h.tables[t], out);
	for (int s = 0; s < STREAM_MAX; s++)
		buf_append(out, w->streams[s].data, w->streams[s].len);
	put_hashes(out->data + start, &h);
	return 0;
}

static int write_index(struct writer *w, const struct symbol_index_head *head, struct buf *out)
{
	const struct code_names_parts *p = &w->parts;
	int r;

	memset(w->functions, 0xff, p->function_count * sizeof(*w->functions));
	memset(w->files, 0xff, p->file_count * sizeof(*w->files));
	mark_used(w);
	r = number_texts(w, w->functions, p->function_count, code_names_name, STREAM_NAMES, TABLE_NAMES, &w->function_count);
	if (r == 0)
		r = number_texts(w, w->files, p->file_count, code_names_path, STREAM_PATHS, TABLE_PATHS, &w->file_count);
	if (r == 0)
		r = put_steps(w);
	if (r == 0)
		r = numbered_finish(&w->call_numbers);
	if (r == 0)
		r = numbered_finish(&w->place_numbers);
	if (r == 0)
		r = put_steps(w);
	if (r == 0)
		r = put_referred(w);
	return r ? r : put_file(w, head, out);
}

int symbol_index_write(const struct code_names *names, const struct symbol_index_head *head, struct buf *out)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (!w)
		return -ENOMEM;
	w->names = names;
	w->parts = code_names_parts(names);
	w->functions = malloc((w->parts.function_count + 1ull) * sizeof(*w->functions));
	w->files = malloc((w->parts.file_count + 1ull) * sizeof(*w->files));
	w->calls = calloc(w->parts.node_count + 1ull, sizeof(*w->calls));
	w->places = calloc(w->parts.lines->count + 1, sizeof(*w->places));
	if (w->functions && w->files && w->calls && w->places)
		r = write_index(w, head, out);
	free(w->functions);
	free(w->files);
	free(w->calls);
	free(w->places);
	numbered_fini(&w->call_numbers);
	numbered_fini(&w->place_numbers);
	for (int t = 0; t < TABLE_MAX; t++)
		buf_fini(&w->tables[t].values);
	for (int s = 0; s < STREAM_MAX; s++)
		buf_fini(&w->streams[s]);
	free(w);
	return r;
}
