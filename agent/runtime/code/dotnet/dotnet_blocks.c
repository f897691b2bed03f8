/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the entry of a compiled method from an address. Whatever is found is believed only where its parts agree: a section
 * holds the address, and so does the entry.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "agent/runtime/file/dotnet_facts.h"
#include "base/cleanup.h"

enum {
	STUB_KINDS = 16,  /* a method's header word below is that of a stub */
	HEADER_DEBUG = 0, /* RealCodeHeader */
	HEADER_METHOD = 24,
	HEADER_COUNT = 32,
	HEADER_ENTRIES = 36,
	MAX_ENTRIES = 4096, /* of a method */
	UNIT_SHIFT = 8,	    /* code that a word of the nibble map stands for */
	UNIT_WORDS = 512,   /* read at once */
	MAX_UNITS = CODE_BLOCK_MAX_BYTES >> UNIT_SHIFT,
	MAX_BACK = 512, /* entries of an image from a handler to its method */
	MAX_PROBES = 64,
	BUCKET_SLOTS = 4,
	PAGE_BYTES = 4096,
	MAX_INSN_BYTES = 15,
	RANGE_SHIFT = 31,
};

/* CodeHeapListNode, from its third word on. */
struct heap {
	uint64_t start, end, base, map;
};

/* RUNTIME_FUNCTION. */
struct entry {
	uint32_t begin, end, unwind;
};

/* --- heaps of compiled code --- */

/*
 * A word of the map stands for 256 bytes, in 8 nibbles, the first one highest: 0, or that a method begins (nibble - 1) * 4
 * bytes into these 32. From .NET 10 on a word may be an offset from the heap's base instead, of the method that all 256
 * bytes belong to, with its low bits, plus 9, in the last nibble (nibblemapmacros.h).
 */
static uint64_t start_in_unit(uint64_t base, uint64_t unit, uint32_t word, uint32_t bytes)
{
	if ((word & 15) > 8)
		return base + (word & ~15u) + 4 * ((word & 15) - 9);
	for (int i = (int)(bytes / 32); i >= 0; i--) {
		uint32_t nibble = word >> (28 - 4 * i) & 15, off = 32 * (uint32_t)i + 4 * (nibble - 1);

		if (nibble && off <= bytes)
			return base + (unit << UNIT_SHIFT) + off;
	}
	return 0;
}

/* Where the last method that begins at or before @pc does; 0: there is none near. */
static uint64_t find_start(struct code_memory *m, const struct heap *h, uint64_t pc)
{
	uint64_t unit = (pc - h->base) >> UNIT_SHIFT, last = unit > MAX_UNITS ? unit - MAX_UNITS : 0, start;
	uint32_t words[UNIT_WORDS], bytes = (pc - h->base) & ((1 << UNIT_SHIFT) - 1);

	start = start_in_unit(h->base, unit, code_read_u32(m, h->map + 4 * unit), bytes);
	while (!start && unit > last) {
		uint64_t count = unit - last < UNIT_WORDS ? unit - last : UNIT_WORDS;

		if (count > 8 && unit % 8)
			count = 8; /* mostly near: a page that is kept anyway */
		if (code_read(m, h->map + 4 * (unit - count), words, count * sizeof(*words)))
			return 0;
		for (uint64_t i = count; !start && i-- > 0;)
			start = start_in_unit(h->base, unit - count + i, words[i], (1 << UNIT_SHIFT) - 1);
		unit -= count;
	}
	return start;
}

static int make_stub(struct code_memory *m, uint64_t start, uint64_t end, struct code_block *ret)
{
	ret->start = start;
	ret->end = end;
	ret->kind = DOTNET_STUB;
	ret->tokens[0] = code_token_at(m, start);
	return dotnet_unreadable(m, 0);
}

/* The entry of the method at @start that holds @pc. */
static int block_of_method(struct code_memory *m, const struct dotnet_section *section, uint64_t start, uint64_t header,
			   uint64_t pc, struct code_block *ret)
{
	uint32_t count = code_read_u32(m, header + HEADER_COUNT);
	struct entry e;

	for (uint32_t i = 0; i < count && i < MAX_ENTRIES; i++) {
		uint64_t at = header + HEADER_ENTRIES + i * sizeof(e);

		if (code_read(m, at, &e, sizeof(e)))
			return dotnet_unreadable(m, -EFAULT);
		if (pc < section->start + e.begin || pc >= section->start + e.end)
			continue;
		ret->start = section->start + e.begin;
		ret->end = section->start + e.end;
		ret->kind = DOTNET_METHOD;
		ret->own[DOTNET_OWN_METHOD] = code_read_u64(m, header + HEADER_METHOD);
		ret->own[DOTNET_OWN_UNWIND] = section->start + e.unwind;
		ret->own[DOTNET_OWN_CODE] = start;
		ret->own[DOTNET_OWN_DEBUG] = code_read_u64(m, header + HEADER_DEBUG);
		ret->tokens[0] = code_token_at(m, start - 8);
		ret->tokens[1] = code_token_at(m, header + HEADER_METHOD);
		ret->tokens[2] = code_token_at(m, at);
		return dotnet_unreadable(m, 0);
	}
	return dotnet_unreadable(m, -ENOENT);
}

static int block_in_heap(struct code_memory *m, const struct dotnet_section *section, uint64_t pc, struct code_block *ret)
{
	uint64_t start, end, header;
	struct heap h;

	if (code_read(m, section->heap + 16, &h, sizeof(h)))
		return dotnet_unreadable(m, -EFAULT);
	if (pc < h.base || pc >= section->end)
		return -EBADMSG;
	start = find_start(m, &h, pc);
	if (start < section->start || start > pc)
		return dotnet_unreadable(m, -ENOENT);
	header = code_read_u64(m, start - 8);
	if (header >= STUB_KINDS)
		return block_of_method(m, section, start, header, pc, ret);
	end = ((pc + MAX_INSN_BYTES) | 31) + 1; /* the whole instruction is in it */
	if (h.end > pc && h.end < end)
		end = h.end;
	return pc - start < PAGE_BYTES ? make_stub(m, start, end < section->end ? end : section->end, ret) : -ENOENT;
}

/* --- images --- */

/* The method that begins at @addr, by the image's map (HashMap of hash.cpp: buckets of 4 keys and 4 halved values); 0: none
 * that ever ran. */
static uint64_t method_at(struct code_memory *m, uint64_t buckets, uint64_t addr)
{
	uint32_t count = (uint32_t)code_read_u64(m, buckets), seed = (uint32_t)(addr >> 2);
	uint32_t step = count > 1 ? 1 + (((uint32_t)(addr >> 5) + 1) % (count - 1)) : 1;
	uint64_t words[2 * BUCKET_SLOTS];

	for (uint32_t i = 0; i < MAX_PROBES && i < count; i++, seed += step) {
		if (code_read(m, buckets + (1 + (uint64_t)(seed % count)) * sizeof(words), words, sizeof(words)))
			return 0;
		for (int slot = 0; slot < BUCKET_SLOTS; slot++)
			if (words[slot] == addr)
				return words[BUCKET_SLOTS + slot] << 1;
		if (!(words[BUCKET_SLOTS] >> 63)) /* no entry went on from here */
			return 0;
	}
	return 0;
}

/* The last of the @count entries at @table that begins at or before @rva; its number, or @count. */
static uint32_t find_entry(struct code_memory *m, uint64_t table, uint32_t count, uint64_t rva)
{
	uint32_t from = 0, to = count;

	while (from < to && !m->is_spent) {
		uint32_t middle = from + (to - from) / 2;

		if (code_read_u32(m, table + middle * sizeof(struct entry)) > rva)
			to = middle;
		else
			from = middle + 1;
	}
	return from ? from - 1 : count;
}

static int block_in_image(const struct dotnet *s, struct code_memory *m, const struct dotnet_section *section, uint64_t pc,
			  struct code_block *ret)
{
	const struct dotnet_layout *l = dotnet_layout_of(s);
	uint64_t base = l->module_base ? code_read_u64(m, section->module + l->module_base) : section->start;
	uint64_t ready = code_read_u64(m, section->module + l->module_ready);
	uint64_t table = code_read_u64(m, ready + l->ready_functions), buckets = code_read_u64(m, ready + l->ready_methods);
	uint32_t count = code_read_u32(m, ready + l->ready_functions + 8), i;
	uint64_t method = 0, begin;
	struct entry e;

	if (!base || !table || pc < base || count > UINT32_MAX / sizeof(e))
		return dotnet_unreadable(m, -EBADMSG);
	i = find_entry(m, table, count, pc - base);
	if (i == count || code_read(m, table + i * sizeof(e), &e, sizeof(e)) || pc - base < e.begin || pc - base >= e.end)
		return dotnet_unreadable(m, -ENOENT);
	ret->start = base + e.begin;
	ret->end = base + e.end;
	ret->own[DOTNET_OWN_UNWIND] = base + e.unwind;
	ret->tokens[0] = code_token_at(m, table + i * sizeof(e));
	for (uint32_t back = 0; !method && back <= i && back < MAX_BACK; back++) {
		begin = base + code_read_u32(m, table + (i - back) * sizeof(e));
		method = method_at(m, buckets, begin);
		ret->own[DOTNET_OWN_CODE] = begin;
		ret->own[DOTNET_OWN_ENTRY] = i - back;
	}
	ret->own[DOTNET_OWN_IMAGE] = base;
	ret->own[DOTNET_OWN_METHOD] = method;
	ret->kind = method ? DOTNET_METHOD : DOTNET_NO_NAME;
	return dotnet_unreadable(m, 0);
}

/* --- blocks --- */

static bool is_given(const struct dotnet *s, uint64_t pc)
{
	for (uint32_t i = 0; i < s->given_cnt; i++)
		if (pc >= s->given[i].start && pc < s->given[i].end)
			return true;
	return false;
}

int dotnet_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	struct dotnet *s = state;
	struct dotnet_section section;
	int error = dotnet_section_find(s, m, pc, &section);
	uint64_t page = pc & ~(uint64_t)(PAGE_BYTES - 1);

	memset(ret, 0, sizeof(*ret));
	if (error == -ENOENT && is_given(s, pc)) /* copies of helpers (barriers), in no section */
		return make_stub(m, page, page + PAGE_BYTES, ret);
	if (error)
		return error;
	if (section.flags & DOTNET_SECTION_HEAP)
		return block_in_heap(m, &section, pc, ret);
	if (section.flags & DOTNET_SECTION_STUBS)
		return make_stub(m, page > section.start ? page : section.start,
				 page + PAGE_BYTES < section.end ? page + PAGE_BYTES : section.end, ret);
	return section.module ? block_in_image(s, m, &section, pc, ret) : -ENOENT;
}

/* --- the process --- */

static const char *dotnet_lacks(const struct code_facts *facts)
{
	return dotnet_layout_find(facts) >= 0 ? NULL : "this version is not known";
}

static int dotnet_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	struct dotnet *s = state;
	int i = dotnet_layout_find(facts), error;

	if (i < 0)
		return i;
	s->layout = (uint32_t)i;
	error = dotnet_sections_open(dotnet_layout_of(s), m, facts, bias, &s->map);
	return s->map && code_read_u64(m, s->map) ? error : dotnet_unreadable(m, -EAGAIN);
}

/* Code heaps and images lie close together, so that they can call each other; around them is one range. */
static int dotnet_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	struct dotnet *s = state;
	int n = 0;

	memcpy(s->given, ranges, given * sizeof(*ranges));
	s->given_cnt = given;
	for (uint32_t i = 0; i < given && n < CODE_RANGES; i++) {
		uint64_t start = s->given[i].start >> RANGE_SHIFT << RANGE_SHIFT;
		bool has_code = dotnet_section_is_in(s, m, &s->given[i]), is_known = false;

		for (int k = 0; k < n; k++)
			is_known |= ranges[k].start == start;
		if (has_code && !is_known)
			ranges[n++] = (struct code_range){ start, start + (1ull << RANGE_SHIFT) };
	}
	return m->is_spent ? -EDQUOT : n;
}

const struct code_reader code_dotnet = {
	.name = "dotnet",
	.frame_type = "dotnet",
	.state_bytes = sizeof(struct dotnet),
	.lacks = dotnet_lacks,
	.open = dotnet_open,
	.ranges = dotnet_ranges,
	.block = dotnet_block,
	.rows = dotnet_rows,
	.names = dotnet_names,
};
