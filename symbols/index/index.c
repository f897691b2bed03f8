/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an index in place. Every byte is fetched through view(), which looks at the bounds and, the first time, at the
 * checksum of the chunk it is in; a file whose checksums are right may still be made to harm, so lengths, numbers and depths
 * are checked where they are used. The only thing that changes after opening is which chunks have been checked, so several
 * threads may ask at once.
 */
#include "symbols/index/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/varint.h"
#include "symbols/index/format.h"

enum {
	/* More than any block takes: 16 steps that each put 255 calls of 5 bytes onto the chain; 8 texts of 65,535 bytes.
	 */
	MAX_CODE_BLOCK_BYTES = 32 << 10,
	MAX_TEXT_BLOCK_BYTES = 1 << 20,
};

static const uint8_t table_fields[TABLE_MAX] = {
	[TABLE_BLOCKS] = 2, [TABLE_CALLS] = 2, [TABLE_PLACES] = 3, [TABLE_NAMES] = 1, [TABLE_PATHS] = 1, [TABLE_LINES] = 1,
};

struct symbol_index {
	const uint8_t *bytes; /* borrowed */
	struct index_header header;
	uint32_t row_bytes[TABLE_MAX];
	struct symbol_index_head head;
	uint8_t *is_checked; /* one a chunk; atomic */
};

uint64_t index_head_hash(const void *head, size_t len)
{
	enum { SKIPPED = offsetof(struct index_header, hash) };
	uint64_t before = XXH3_64bits(head, SKIPPED);

	return XXH3_64bits_withSeed((const uint8_t *)head + SKIPPED + sizeof(uint64_t), len - SKIPPED - sizeof(uint64_t),
				    before);
}

/* Reads a varint at *@p and goes behind it. */
static inline bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *behind = varint_read(*p, end, ret);

	*p = behind ? behind : *p;
	return behind;
}

/* --- bytes --- */

static bool check_chunk(const struct symbol_index *x, uint64_t chunk)
{
	const struct index_header *h = &x->header;
	uint64_t from = h->data + (chunk << INDEX_CHUNK_SHIFT), rest = h->len_bytes - from, hash;

	memcpy(&hash, x->bytes + sizeof(*h) + 8 * chunk, sizeof(hash));
	if (XXH3_64bits(x->bytes + from, rest < INDEX_CHUNK_BYTES ? rest : INDEX_CHUNK_BYTES) != hash)
		return false;
	__atomic_store_n(&x->is_checked[chunk], 1, __ATOMIC_RELAXED);
	return true;
}

/* @len bytes at @offset of the file, checked; NULL: they are not there, or broken. */
static inline const uint8_t *view(const struct symbol_index *x, uint64_t offset, uint64_t len)
{
	const struct index_header *h = &x->header;
	uint64_t chunk, last;

	if (offset < h->data || offset > h->len_bytes || len > h->len_bytes - offset)
		return NULL;
	chunk = (offset - h->data) >> INDEX_CHUNK_SHIFT;
	last = len ? (offset - h->data + len - 1) >> INDEX_CHUNK_SHIFT : chunk;
	for (; len && chunk <= last; chunk++) {
		if (!__atomic_load_n(&x->is_checked[chunk], __ATOMIC_RELAXED) && !check_chunk(x, chunk))
			return NULL;
	}
	return x->bytes + offset;
}

/* A number of @width bytes at @p, behind which the file goes on for @rest. */
static inline uint64_t get_number(const uint8_t *p, unsigned int width, uint64_t rest)
{
	uint64_t value = 0;

	if (rest < sizeof(value)) {
		for (unsigned int i = 0; i < width; i++)
			value |= (uint64_t)p[i] << (8 * i);
		return value;
	}
	memcpy(&value, p, sizeof(value));
	return width < sizeof(value) ? value & ((1ull << (8 * width)) - 1) : value;
}

/* Bytes [@from, @to) of a stream, at most @max. */
static const uint8_t *view_stream(const struct symbol_index *x, enum index_stream stream, uint64_t from, uint64_t to,
				  uint64_t max)
{
	const struct index_stream_head *s = &x->header.streams[stream];

	return from <= to && to <= s->len_bytes && to - from <= max ? view(x, s->offset + from, to - from) : NULL;
}

/* The fields of a table's row, as many as it has. */
static inline bool get_row(const struct symbol_index *x, enum index_table table, uint64_t row,
			   uint64_t fields[INDEX_MAX_FIELDS])
{
	const struct index_table_head *t = &x->header.tables[table];
	uint64_t offset = t->offset + row * x->row_bytes[table];
	const uint8_t *p = row < t->rows ? view(x, offset, x->row_bytes[table]) : NULL;

	for (unsigned int f = 0; p && f < table_fields[table]; f++) {
		fields[f] = get_number(p, t->widths[f], x->header.len_bytes - offset);
		p += t->widths[f];
		offset += t->widths[f];
	}
	return p;
}

/* --- opening --- */

static bool accept_layout(struct symbol_index *x)
{
	const struct index_header *h = &x->header;

	for (int t = 0; t < TABLE_MAX; t++) {
		const struct index_table_head *table = &h->tables[t];

		for (int f = 0; f < INDEX_MAX_FIELDS; f++) {
			if (table->widths[f] > 8)
				return false;
			x->row_bytes[t] += table->widths[f];
		}
		if (table->offset < h->data || table->offset > h->len_bytes ||
		    (uint64_t)table->rows * x->row_bytes[t] > h->len_bytes - table->offset)
			return false;
	}
	for (int s = 0; s < STREAM_MAX; s++) {
		const struct index_stream_head *stream = &h->streams[s];

		if (stream->offset < h->data || stream->offset > h->len_bytes ||
		    stream->len_bytes > h->len_bytes - stream->offset)
			return false;
	}
	return h->best < CODE_SOURCE_MAX;
}

static int accept_header(struct symbol_index *x, size_t len_bytes)
{
	const struct index_header *h = &x->header;
	uint64_t chunks;

	if (len_bytes < sizeof(*h))
		return -EBADMSG;
	memcpy(&x->header, x->bytes, sizeof(*h));
	if (memcmp(h->magic, index_magic, sizeof(h->magic)) != 0)
		return -EBADMSG;
	if (h->version != SYMBOL_INDEX_VERSION)
		return -EPROTONOSUPPORT;
	if (h->len_bytes != len_bytes || h->data < sizeof(*h) || h->data > len_bytes)
		return -EBADMSG;
	chunks = (len_bytes - h->data + INDEX_CHUNK_BYTES - 1) / INDEX_CHUNK_BYTES;
	if (h->data != sizeof(*h) + 8 * chunks || index_head_hash(x->bytes, h->data) != h->hash || !accept_layout(x))
		return -EBADMSG;
	x->is_checked = calloc(chunks + 1, 1);
	return x->is_checked ? 0 : -ENOMEM;
}

int symbol_index_open(const void *data, size_t len_bytes, struct symbol_index **ret)
{
	struct symbol_index *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	x->bytes = data;
	r = accept_header(x, len_bytes);
	if (r) {
		symbol_index_close(x);
		return r;
	}
	memcpy(x->head.build_id, x->header.build_id, sizeof(x->header.build_id));
	x->head.best = (enum code_source)x->header.best;
	x->head.is_broken = x->header.flags & INDEX_IS_BROKEN;
	x->head.had_debug = x->header.flags & INDEX_HAD_DEBUG;
	x->head.had_common = x->header.flags & INDEX_HAD_COMMON;
	x->head.had_package = x->header.flags & INDEX_HAD_PACKAGE;
	x->head.has_ranges = x->header.flags & INDEX_HAS_RANGES;
	*ret = x;
	return 0;
}

void symbol_index_close(struct symbol_index *x)
{
	if (!x)
		return;
	free(x->is_checked);
	free(x);
}

size_t symbol_index_memory_bytes(const struct symbol_index *x)
{
	return sizeof(*x) + ((x->header.len_bytes - x->header.data) >> INDEX_CHUNK_SHIFT) + 1;
}

const struct symbol_index_head *symbol_index_head(const struct symbol_index *x)
{
	return &x->head;
}

/* Names are sorted. */
static uint64_t count_ranges(const struct symbol_index *x)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	uint64_t count = 0;

	for (uint32_t i = 0; x->head.has_ranges && i < x->header.functions; i++) {
		buf_reset(&text);
		if (symbol_index_name(x, i, &text) || (text.len && text.data[0] > '+'))
			break;
		count += code_range_bytes(buf_text(&text), text.len) != 0;
	}
	return count;
}

struct symbol_index_sizes symbol_index_sizes(const struct symbol_index *x)
{
	const struct index_header *h = &x->header;
	struct symbol_index_sizes sizes = {
		.steps = h->steps,
		.functions = h->functions,
		.files = h->files,
		.calls = h->tables[TABLE_CALLS].rows,
		.places = h->tables[TABLE_PLACES].rows,
		.code_bytes = h->streams[STREAM_CODE].len_bytes,
		.name_bytes = h->streams[STREAM_NAMES].len_bytes,
		.path_bytes = h->streams[STREAM_PATHS].len_bytes,
		.all_bytes = h->len_bytes,
	};

	for (int t = 0; t < TABLE_MAX; t++)
		sizes.table_bytes += (uint64_t)h->tables[t].rows * x->row_bytes[t];
	sizes.functions -= count_ranges(x);
	return sizes;
}

int symbol_index_check(const struct symbol_index *x)
{
	return view(x, x->header.data, x->header.len_bytes - x->header.data) ? 0 : -EBADMSG;
}

/* --- steps --- */

/* The state at an address: see enum index_step. */
struct stand {
	uint64_t addr;
	uint64_t start;
	uint64_t root; /* 0: no function */
	uint64_t place_plus_1;
	uint32_t depth; /* of @calls */
	uint64_t calls[INDEX_MAX_DEPTH];
};

/* Takes in one step; @flags is its first byte, the rest is at @p. */
static bool take_step(struct stand *s, uint8_t flags, const uint8_t **p, const uint8_t *end)
{
	uint64_t count, back = 0;

	if (flags & STEP_ROOT) {
		if (!take_varint(p, end, &s->root) || ((s->root & ROOT_HAS_BACK) && !take_varint(p, end, &back)) ||
		    back > s->addr)
			return false;
		s->start = s->addr - back;
		s->depth = 0;
	}
	if (flags & STEP_POP) {
		if (!take_varint(p, end, &count) || count > s->depth)
			return false;
		s->depth -= (uint32_t)count;
	}
	if (flags & STEP_PUSH) {
		if (!take_varint(p, end, &count) || count > INDEX_MAX_DEPTH - s->depth || !s->root)
			return false;
		for (; count > 0; count--)
			if (!take_varint(p, end, &s->calls[s->depth++]))
				return false;
	}
	return !(flags & STEP_LINE) || take_varint(p, end, &s->place_plus_1);
}

/* Follows the steps at [@p, @end), the first of which is at @s->addr, as far as @addr. */
static int follow(struct stand *s, const uint8_t *p, const uint8_t *end, uint64_t addr)
{
	for (bool is_first = true; p < end; is_first = false) {
		uint8_t flags = *p++;
		uint64_t delta = flags & STEP_DELTA;

		if (!is_first && !delta && !take_varint(&p, end, &delta))
			return -EBADMSG;
		if (delta > addr - s->addr)
			return 0;
		s->addr += delta;
		if (!take_step(s, flags, &p, end))
			return -EBADMSG;
	}
	return 0;
}

/* The block around @addr - 0, -ENOENT, -EBADMSG - and its bytes. */
static int find_block(const struct symbol_index *x, uint64_t addr, struct stand *s, const uint8_t **p, const uint8_t **end)
{
	uint64_t low = 0, high = x->header.tables[TABLE_BLOCKS].rows, row[INDEX_MAX_FIELDS], next[INDEX_MAX_FIELDS];

	if (addr < x->header.first)
		return -ENOENT;
	while (low < high) { /* blocks below @low start at or before @addr, those from @high on behind it */
		uint64_t middle = low + (high - low) / 2;

		if (!get_row(x, TABLE_BLOCKS, middle, row))
			return -EBADMSG;
		if (row[0] <= addr - x->header.first)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low == x->header.tables[TABLE_BLOCKS].rows)
		return -ENOENT; /* the last row is the end of all */
	if (!get_row(x, TABLE_BLOCKS, low - 1, row) || !get_row(x, TABLE_BLOCKS, low, next) ||
	    row[0] > addr - x->header.first)
		return -EBADMSG;
	*p = view_stream(x, STREAM_CODE, row[1], next[1], MAX_CODE_BLOCK_BYTES);
	if (!*p)
		return -EBADMSG;
	*end = *p + (next[1] - row[1]);
	s->addr = x->header.first + row[0];
	return 0;
}

/* --- texts --- */

/* Appends text @index of a stream, whose groups @table has. */
static int append_text(const struct symbol_index *x, enum index_stream stream, enum index_table table, uint32_t index,
		       struct buf *out)
{
	uint64_t row[INDEX_MAX_FIELDS], next[INDEX_MAX_FIELDS], shared, more;
	size_t start = out->len;
	const uint8_t *p, *end;

	if (!get_row(x, table, index / INDEX_TEXTS_A_BLOCK, row) ||
	    !get_row(x, table, index / INDEX_TEXTS_A_BLOCK + 1ull, next))
		return -EBADMSG;
	p = view_stream(x, stream, row[0], next[0], MAX_TEXT_BLOCK_BYTES);
	if (!p)
		return -EBADMSG;
	end = p + (next[0] - row[0]);
	for (uint32_t i = 0; !out->failed && i <= index % INDEX_TEXTS_A_BLOCK; i++) {
		if (!take_varint(&p, end, &shared) || !take_varint(&p, end, &more) || shared > out->len - start ||
		    more > (uint64_t)(end - p)) {
			out->len = start;
			return -EBADMSG;
		}
		out->len = start + shared;
		buf_append(out, p, more);
		p += more;
	}
	if (!out->failed)
		return 0;
	out->len = start;
	return -ENOMEM;
}

int symbol_index_name(const struct symbol_index *x, uint32_t function, struct buf *out)
{
	return function < x->header.functions ? append_text(x, STREAM_NAMES, TABLE_NAMES, function, out) : -EBADMSG;
}

int symbol_index_path(const struct symbol_index *x, uint32_t file, struct buf *out)
{
	return file < x->header.files ? append_text(x, STREAM_PATHS, TABLE_PATHS, file, out) : -EBADMSG;
}

/* --- answers --- */

/* Puts the source place @place_plus_1 into @frame; 0: none. */
static bool set_place(const struct symbol_index *x, uint64_t place_plus_1, struct code_frame *frame)
{
	uint64_t place[INDEX_MAX_FIELDS] = { 0 };

	if (place_plus_1 && !get_row(x, TABLE_PLACES, place_plus_1 - 1, place))
		return false;
	frame->file = place[0] && place[0] <= x->header.files ? (uint32_t)place[0] - 1 : CODE_NONE;
	frame->line = (uint32_t)place[1];
	frame->column = (uint32_t)place[2];
	return place[0] <= x->header.files;
}

uint32_t symbol_index_decl_line(const struct symbol_index *x, uint32_t function)
{
	uint64_t line[INDEX_MAX_FIELDS];

	return function < x->header.functions && get_row(x, TABLE_LINES, function, line) ? (uint32_t)line[0] : 0;
}

/* The frames of a chain, from its inner end on; see code_names_find. */
static int add_frames(const struct symbol_index *x, const struct stand *s, struct code_answer *ret)
{
	uint64_t call[INDEX_MAX_FIELDS], line[INDEX_MAX_FIELDS], function = s->root >> ROOT_FUNCTION_SHIFT;
	struct code_frame *frame = &ret->frames[0];

	if (!set_place(x, s->place_plus_1, frame))
		return -EBADMSG;
	for (uint32_t i = s->depth; i > 0; i--) {
		if (!get_row(x, TABLE_CALLS, s->calls[i - 1], call) || call[0] >= x->header.functions)
			return -EBADMSG;
		frame->function = (uint32_t)call[0];
		if (ret->frame_count < CODE_MAX_FRAMES)
			frame = &ret->frames[ret->frame_count++];
		if (!set_place(x, call[1], frame))
			return -EBADMSG;
	}
	if (function >= x->header.functions)
		return -EBADMSG;
	frame->function = (uint32_t)function;
	if (!get_row(x, TABLE_LINES, ret->frames[0].function, line))
		return -EBADMSG;
	ret->decl_line = (uint32_t)line[0];
	return 0;
}

/* Nothing names the code, but its function's range is known, whose length stands for its name. */
static int find_range(const struct symbol_index *x, const struct stand *s, struct code_answer *ret)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int r = symbol_index_name(x, (uint32_t)(s->root >> ROOT_FUNCTION_SHIFT), &text);

	if (r)
		return r;
	ret->source = CODE_SOURCE_NONE;
	ret->size_bytes = code_range_bytes((const char *)text.data, text.len);
	ret->frame_count = s->place_plus_1 != 0;
	return set_place(x, s->place_plus_1, &ret->frames[0]) ? -ENOENT : -EBADMSG;
}

int symbol_index_find(const struct symbol_index *x, uint64_t addr, struct code_answer *ret)
{
	const uint8_t *p, *end;
	struct stand s;
	int r;

	s.root = s.place_plus_1 = s.start = s.depth = 0; /* the calls are many, and none is there yet */
	ret->start = ret->size_bytes = 0;
	ret->source = CODE_SOURCE_NONE;
	ret->decl_line = 0;
	ret->frame_count = 0;
	r = find_block(x, addr, &s, &p, &end);
	if (r == 0)
		r = follow(&s, p, end, addr);
	if (r)
		return r;
	ret->frames[0] = (struct code_frame){ .function = CODE_NONE, .file = CODE_NONE };
	ret->frame_count = s.root || s.place_plus_1;
	if (!s.root)
		return set_place(x, s.place_plus_1, &ret->frames[0]) ? -ENOENT : -EBADMSG;
	ret->start = s.start;
	ret->source = (enum code_source)(s.root >> ROOT_SOURCE_SHIFT & ROOT_SOURCE_MASK);
	if (ret->source >= CODE_SOURCE_MAX)
		return -EBADMSG;
	return ret->source == CODE_SOURCE_UNWIND ? find_range(x, &s, ret) : add_frames(x, &s, ret);
}
