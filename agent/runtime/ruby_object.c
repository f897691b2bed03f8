/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ruby's code (iseqs) and methods that are written in C, as the kernel copied them. Names are those of Ruby 3.4's own
 * backtraces, for all versions: Class#method, Class.method, block in Class#method, <main>, <class:Class>.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/object.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "bpf/runtime/ruby_state.h"

/* --- names --- */

/* How many bytes the method's name has. */
static uint32_t name_bytes(const struct object_record *r)
{
	return r->part_state[RUBY_PART_NAME] & ~RUBY_IS_SINGLETON;
}

/* Is the @len bytes' @name that of code outside of methods, such as <main> or <class:Class>? Operators are not. */
static bool is_outside(const uint8_t *name, uint32_t len)
{
	return len > 2 && name[0] == '<' && name[1] >= 'a' && name[1] <= 'z';
}

/* The label of code outside of methods, where the kernel could not read it but knows its length: it is part of the program,
 * not of the script (iseq.c), and in pages that a forked child has not touched. NULL: it is none of these. */
static const char *outside_label(const struct object_record *r)
{
	static const char *const labels[] = { "<main>", "<top (required)>", "<compiled>" };

	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (r->is_cut >> RUBY_PART_NAME & 1 && !r->part_bytes[RUBY_PART_NAME] && r->part_bytes[RUBY_PART_FILE] &&
		    name_bytes(r) == strlen(labels[i]) && !r->part_bytes[RUBY_PART_CLASS])
			return labels[i];
	return NULL;
}

/* Is the @len bytes' @name that of a constant? What is not, such as #<Class:0x...>, is for now, or no class's name at all.
 */
static bool is_constant(const uint8_t *name, uint32_t len)
{
	return len && ((name[0] >= 'A' && name[0] <= 'Z') || name[0] >= 0x80);
}

/* Are the last @method of @len bytes of @label a word of its own, the name of a method? */
static bool ends_with_method(const uint8_t *label, uint32_t len, uint32_t method)
{
	return method && method <= len && (method == len || label[len - method - 1] == ' ') &&
	       !is_outside(label + len - method, method);
}

/* The label says in front what part of the method it is; the method's name alone gets its class. */
static void add_name(const struct object_record *r, const uint8_t *const *parts, struct buf *text)
{
	const uint8_t *label = parts[RUBY_PART_NAME];
	uint32_t len = r->part_bytes[RUBY_PART_NAME], method = name_bytes(r);
	bool has_class = is_constant(parts[RUBY_PART_CLASS], r->part_bytes[RUBY_PART_CLASS]) &&
			 !(r->is_cut >> RUBY_PART_NAME & 1) && ends_with_method(label, len, method);

	if (!has_class) {
		script_utf8(label, len, text);
		if (outside_label(r))
			buf_puts(text, outside_label(r));
		return;
	}
	script_utf8(label, len - method, text);
	script_utf8(parts[RUBY_PART_CLASS], r->part_bytes[RUBY_PART_CLASS], text);
	buf_putc(text, r->part_state[RUBY_PART_NAME] & RUBY_IS_SINGLETON ? '.' : '#');
	script_utf8(label + len - method, method, text);
}

/* --- lines --- */

struct lines {
	const uint8_t *index, *entries;
	uint32_t index_bytes, entry_cnt, entry_bytes;
	bool has_places; /* an entry begins with its place */
};

/* How many entries begin at @place or before: iseq.c, succ_index_lookup(). The first words have seven bits each of their
 * number, nine in a word; a block has the number before it, those before each of its eight words but the first (nine bits
 * each), and a bit for each place. UINT32_MAX: the index ends before. */
static uint32_t entries_up_to(const struct lines *l, uint32_t place)
{
	enum { A_WORD = 9, NUMBER_BITS = 7, RANK_BITS = 9, BLOCK_RANKS = 8, BLOCK_BITS = 16 };
	uint32_t block, bit, word, sum;
	const uint8_t *at;

	if (l->index_bytes < RUBY_INDEX_BYTES)
		return UINT32_MAX;
	if (place < RUBY_INDEX_WORDS)
		return bytes_u64(l->index + place / A_WORD * 8) >> place % A_WORD * NUMBER_BITS & 0x7f;
	block = (place - RUBY_INDEX_WORDS) / RUBY_INDEX_BLOCK_WORDS;
	bit = (place - RUBY_INDEX_WORDS) % RUBY_INDEX_BLOCK_WORDS;
	if ((l->index_bytes - RUBY_INDEX_BYTES) / RUBY_INDEX_BLOCK_BYTES <= block)
		return UINT32_MAX;
	at = l->index + RUBY_INDEX_BYTES + block * RUBY_INDEX_BLOCK_BYTES;
	word = bit / 64;
	sum = bytes_u32(at) + (uint32_t)__builtin_popcountll(bytes_u64(at + BLOCK_BITS + word * 8) << (63 - bit % 64));
	return word ? sum + (uint32_t)(bytes_u64(at + BLOCK_RANKS) >> (word - 1) * RANK_BITS & 0x1ff) : sum;
}

static uint32_t line_of(const struct lines *l, uint32_t entry)
{
	return bytes_u32(l->entries + (uint64_t)entry * l->entry_bytes + (l->has_places ? 4 : 0));
}

/* Adds a pair, if it is news. */
static void add_pair(struct buf *out, uint32_t place, uint32_t line, uint32_t *last)
{
	struct script_line_pair pair = { place, line };

	if (out->len && *last == line)
		return;
	buf_append(out, &pair, sizeof(pair));
	*last = line;
}

/* Entries with places: 2.5. */
static uint32_t add_placed(const struct lines *l, struct buf *out, uint32_t *last)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < l->entry_cnt; i++) {
		uint32_t next = bytes_u32(l->entries + (uint64_t)i * l->entry_bytes);

		if (i && next <= place)
			break;
		place = next;
		add_pair(out, place, line_of(l, i), last);
	}
	return UINT32_MAX;
}

/* Entries whose places are in the index. Returns where they end: behind the last place that the index and the entries have.
 */
static uint32_t add_indexed(const struct lines *l, uint32_t words, struct buf *out, uint32_t *last)
{
	uint32_t place = 0;

	for (; place < words; place++) {
		uint32_t entry = entries_up_to(l, place);

		if (!entry || entry > l->entry_cnt)
			break;
		add_pair(out, place, line_of(l, entry - 1), last);
	}
	return place;
}

/* Makes pairs of the table of lines of @r. */
static void add_lines(const struct object_record *r, const uint8_t *bytes, const struct chain_state *layout, struct buf *out)
{
	uint32_t len = r->part_bytes[RUBY_PART_LINES], words = r->part_state[RUBY_PART_LINES], end, last = 0;
	struct lines l = { .entry_bytes = layout->offset[RUBY_LINE_BYTES], .has_places = !layout->offset[RUBY_LINES_INDEX] };
	uint64_t index_bytes = RUBY_INDEX_BYTES;

	if (l.entry_bytes < 8)
		return;
	if (words > RUBY_INDEX_WORDS)
		index_bytes += ((uint64_t)words - RUBY_INDEX_WORDS + RUBY_INDEX_BLOCK_WORDS - 1) / RUBY_INDEX_BLOCK_WORDS *
			       RUBY_INDEX_BLOCK_BYTES;
	if (index_bytes > RUBY_INDEX_MAX)
		index_bytes = RUBY_INDEX_MAX;
	if (!l.has_places && len != l.entry_bytes) { /* one entry has no index */
		l.index = bytes;
		l.index_bytes = (uint32_t)index_bytes;
	}
	if (len < l.index_bytes)
		return;
	l.entries = bytes + l.index_bytes;
	l.entry_cnt = (len - l.index_bytes) / l.entry_bytes;
	if (!l.entry_cnt)
		return;
	if (l.has_places) {
		end = add_placed(&l, out, &last);
	} else if (!l.index_bytes) {
		add_pair(out, 0, line_of(&l, 0), &last);
		end = words;
	} else {
		end = add_indexed(&l, words, out, &last);
	}
	add_pair(out, end < words ? end : words, 0, &last);
}

int ruby_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint8_t *parts[OBJECT_PARTS];
	struct script s = { 0 };
	struct buf text = BUF_EMPTY, lines = BUF_EMPTY;
	uint32_t bytes;

	if (object_parts(r, parts))
		return -EBADMSG;
	add_name(r, parts, &text);
	bytes = (uint32_t)text.len;
	script_utf8(parts[RUBY_PART_FILE], r->part_bytes[RUBY_PART_FILE], &text);
	add_lines(r, parts[RUBY_PART_LINES], layout, &lines);
	s.head = (struct script_head){
		.first_line = r->part_state[RUBY_PART_FILE],
		.name_bytes = bytes,
		.file_bytes = (uint32_t)text.len - bytes,
		.line_bytes = (uint32_t)lines.len,
		.lines = SCRIPT_LINES_PAIRS,
		.code_offset = r->part_state[RUBY_PART_CLASS],
		.scale = 1,
	};
	s.name = buf_text(&text); /* not NULL, if empty */
	s.file = s.name + bytes;
	s.line_table = lines.data;
	if (!text.failed && !lines.failed)
		script_write(&s, out);
	out->failed |= text.failed || lines.failed;
	buf_fini(&text);
	buf_fini(&lines);
	return out->failed ? -ENOMEM : 0;
}
