/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that all modules share, by the JIT's own tables of it: an unordered_map from a number to an address, and a map
 * from the number to its name, as libstdc++ lays them out (bits/hashtable_policy.h, bits/stl_tree.h). Where they are of
 * another form such code has no names.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/beam/beam_state.h"

enum {
	HASH_BUCKETS = 8, /* in the unordered_map: how many buckets there are, at least one for each node */
	HASH_FIRST = 16,  /* its first node */
	HASH_COUNT = 24,
	HASH_LOAD = 32, /* the most nodes for each bucket, a float: 1 */
	HASH_BYTES = 48,
	OBJECT_BYTES = 4096, /* of the object that has the map, at most: some 1,200 of release 25 to 29 */
	HASH_KEY = 8,	     /* in a node, which begins with the next one's address */
	HASH_VALUE = 16,
	TREE_ROOT = 16, /* in the map: its root */
	TREE_LEFT = 16, /* in a node */
	TREE_RIGHT = 24,
	TREE_KEY = 32,
	TREE_TEXT = 40, /* std::string: its text, and the length behind that */
	MAX_DEPTH = 64,
};

static int by_start(const void *a, const void *b)
{
	const struct beam_fragment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void read_name(struct code_memory *m, uint64_t node, struct beam_fragment *f)
{
	uint64_t len = code_read_u64(m, node + TREE_TEXT + 8);
	const uint64_t max = sizeof(f->name) - 1;

	memset(f->name, 0, sizeof(f->name));
	if (code_read(m, code_read_u64(m, node + TREE_TEXT), f->name, len < max ? len : max))
		f->name[0] = '\0';
}

/* Visits the tree's nodes and puts the name of each to all fragments that have its number as name so far. */
static void read_names(struct beam *s, struct code_memory *m, uint64_t tree)
{
	uint64_t nodes[MAX_DEPTH] = { code_read_u64(m, tree + TREE_ROOT) };
	uint32_t depth = 1, left = BEAM_MAX_FRAGMENTS;

	while (depth && left--) {
		uint64_t node = nodes[--depth];
		uint32_t key = code_read_u32(m, node + TREE_KEY);

		for (uint32_t i = 0; i < s->fragment_cnt; i++)
			if (s->fragments[i].number == key)
				read_name(m, node, &s->fragments[i]);
		for (uint32_t side = TREE_LEFT; side <= TREE_RIGHT; side += TREE_RIGHT - TREE_LEFT) {
			uint64_t child = code_read_u64(m, node + side);

			if (child && depth < MAX_DEPTH)
				nodes[depth++] = child;
		}
	}
}

/* Is the code at @addr as near to code of the emulator's own as calls between pieces of code need? */
static bool is_near_code(const struct beam *s, uint64_t addr)
{
	return addr - s->normal_exit + INT32_MAX <= 2ull * INT32_MAX;
}

/* Is a map from numbers to addresses of code at @addr? */
static bool is_map(const struct beam *s, struct code_memory *m, uint64_t addr)
{
	static const float load = 1;
	const uint64_t count = code_read_u64(m, addr + HASH_COUNT);
	uint64_t node = code_read_u64(m, addr + HASH_FIRST), i;
	const uint32_t bits = code_read_u32(m, addr + HASH_LOAD);

	if (memcmp(&bits, &load, sizeof(load)) || !count || count > BEAM_MAX_FRAGMENTS ||
	    code_read_u64(m, addr + HASH_BUCKETS) < count)
		return false;
	for (i = 0; node && i < count && is_near_code(s, code_read_u64(m, node + HASH_VALUE)); i++)
		node = code_read_u64(m, node);
	return i == count && !node;
}

uint64_t beam_fragments_find(const struct beam *s, struct code_memory *m, uint64_t object)
{
	for (uint64_t at = object; at <= object + OBJECT_BYTES - HASH_BYTES; at += sizeof(uint64_t))
		if (is_map(s, m, at))
			return at;
	return 0;
}

void beam_fragments_read(struct beam *s, struct code_memory *m, uint64_t addresses, uint64_t names)
{
	uint64_t count = code_read_u64(m, addresses + HASH_COUNT), node = code_read_u64(m, addresses + HASH_FIRST);

	s->fragment_cnt = 0;
	for (uint64_t i = 0; node && i < count && i < BEAM_MAX_FRAGMENTS; i++) {
		struct beam_fragment *f = &s->fragments[s->fragment_cnt++];

		f->number = code_read_u32(m, node + HASH_KEY);
		f->start = code_read_u64(m, node + HASH_VALUE);
		node = code_read_u64(m, node);
	}
	if (names)
		read_names(s, m, names);
	qsort(s->fragments, s->fragment_cnt, sizeof(*s->fragments), by_start);
}

const struct beam_fragment *beam_fragment_at(const struct beam *s, uint64_t addr)
{
	const struct beam_fragment key = { .start = addr };

	return s ? bsearch(&key, s->fragments, s->fragment_cnt, sizeof(*s->fragments), by_start) : NULL;
}
