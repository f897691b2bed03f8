/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of memory with .NET's code, by address (RangeSection of codeman.h). From .NET 8 on a tree leads to them, before
 * that they are a list by falling address. A section is believed only if it holds the address. No state.
 */
#include <errno.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "agent/runtime/file/dotnet_facts.h"

enum {
	LEVEL_BITS = 8, /* of the tree, which has 5 levels */
	TOP_SHIFT = 49,
	LAST_SHIFT = 17,
	MAX_FRAGMENTS = 64,   /* sections that share 128 KB */
	MAX_SECTIONS = 32768, /* of a list: each image has one, and each dynamic method that may be collected */
	PAGE_BYTES = 4096,
	LINK_HEAP = 2, /* flags of a list's sections */
	LINK_IMAGE = 4,
};

/* RangeSectionFragment. */
struct fragment {
	uint64_t next, start, end, section;
};

/* RangeSection of a list. */
struct link {
	uint64_t start, end, manager, next, last_used, flags, owner;
};

/* --- the tree --- */

static uint64_t plain(uint64_t pointer)
{
	return pointer & ~1ull; /* bit 0: of code that may be unloaded */
}

static int find_in_tree(const struct dotnet *s, struct code_memory *m, uint64_t pc, struct dotnet_section *ret)
{
	uint64_t at = s->map;
	struct fragment f;

	for (int shift = TOP_SHIFT; at && shift >= LAST_SHIFT; shift -= LEVEL_BITS)
		at = plain(code_read_u64(m, at + 8 * (pc >> shift & ((1 << LEVEL_BITS) - 1))));
	for (int i = 0; at && i < MAX_FRAGMENTS; i++) {
		if (code_read(m, at, &f, sizeof(f)))
			break;
		at = plain(f.next);
		if (pc < f.start || pc >= f.end)
			continue;
		if (code_read(m, f.section, ret, sizeof(*ret)))
			break;
		ret->flags &= UINT32_MAX;
		if (pc < ret->start || pc >= ret->end)
			return -EBADMSG;
		return 0;
	}
	return dotnet_unreadable(m, -ENOENT);
}

/* --- the list --- */

/* The first section that does not lie behind @last. 0; -ENOENT: all do, or the list goes on and on. */
static int find_link(const struct dotnet *s, struct code_memory *m, uint64_t last, struct link *ret)
{
	uint64_t at = code_read_u64(m, s->map);

	for (int i = 0; at && i < MAX_SECTIONS; i++) {
		if (code_read(m, at, ret, sizeof(*ret)))
			break;
		if (ret->start <= last)
			return 0;
		at = ret->next;
	}
	return dotnet_unreadable(m, -ENOENT);
}

static int find_in_list(const struct dotnet *s, struct code_memory *m, uint64_t pc, struct dotnet_section *ret)
{
	struct link l;
	int error = find_link(s, m, pc, &l);

	if (error || pc >= l.end)
		return error ? error : -ENOENT;
	*ret = (struct dotnet_section){ .start = l.start, .end = l.end, .manager = l.manager };
	if (l.flags & LINK_HEAP) {
		ret->flags = DOTNET_SECTION_HEAP;
		ret->heap = l.owner;
	} else if (l.flags & LINK_IMAGE) {
		ret->module = l.owner;
	} /* else: an image of an older form (NGEN), which the SDK does not make */
	return 0;
}

/* --- both --- */

int dotnet_sections_open(const struct dotnet_layout *l, struct code_memory *m, const struct code_facts *facts, uint64_t bias,
			 uint64_t *ret)
{
	/* They are the first of the runtime's variables, in the list's time as an offset in the file. */
	uint64_t at = facts->fact[DOTNET_FACT_VARIABLES] + bias;
	uint32_t offset = l->has_list ? code_read_u32(m, at) : 0;

	*ret = !l->has_list ? code_read_u64(m, at) : offset ? bias + offset : 0;
	return dotnet_unreadable(m, 0);
}

int dotnet_section_find(const struct dotnet *s, struct code_memory *m, uint64_t pc, struct dotnet_section *ret)
{
	return dotnet_layout_of(s)->has_list ? find_in_list(s, m, pc, ret) : find_in_tree(s, m, pc, ret);
}

bool dotnet_section_is_in(const struct dotnet *s, struct code_memory *m, const struct code_range *r)
{
	struct dotnet_section section;
	struct link l;

	if (dotnet_layout_of(s)->has_list)
		return r->end > r->start && !find_link(s, m, r->end - 1, &l) && l.end > r->start;
	for (uint64_t at = r->start; at < r->end && !m->is_spent; at += PAGE_BYTES)
		if (!find_in_tree(s, m, at + PAGE_BYTES / 2, &section))
			return true;
	return false;
}
