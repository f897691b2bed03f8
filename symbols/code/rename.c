/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function's code may be covered by several symbols, so nodes are copied, not changed: the root with its new function,
 * and what is inlined into it, as far as a symbol covers it. Pieces come by rising address, a symbol's mostly behind one
 * another, so the last answer is kept. Copies are counted by the nodes they are.
 */
#include "symbols/code/rename.h"

#include <string.h>

#include "symbols/code/names_parts.h"

void code_rename_fini(struct code_rename *r)
{
	map_fini(&r->copies);
}

/* The function that @root becomes by @symbol; CODE_NONE: the one it is. */
static uint32_t choose_function(struct code_rename *r, uint32_t root, uint32_t symbol)
{
	const struct code_node *nodes = code_names_parts(r->names).nodes;
	uint32_t before = nodes[root].function;
	size_t before_len, len;
	const char *before_name = code_names_name(r->names, before, &before_len);
	const char *name = code_names_name(r->names, nodes[symbol].function, &len);

	if (before_len == len && !memcmp(before_name, name, len))
		return CODE_NONE;
	return code_names_function(r->names, name, len, code_names_decl_line(r->names, before));
}

/* @node below a root of @function. */
static uint32_t copy(struct code_rename *r, uint32_t node, uint32_t function)
{
	const uint64_t key = (uint64_t)node << 32 | function;
	const struct code_node n = code_names_parts(r->names).nodes[node]; /* copying moves them */
	uint32_t made = (uint32_t)(uintptr_t)map_get(&r->copies, key);

	if (made)
		return made - 1;
	if (n.parent == CODE_NONE) {
		made = code_names_copy(r->names, node, CODE_NONE, function);
	} else {
		made = copy(r, n.parent, function); /* at most 255 deep */
		if (made != CODE_NONE)
			made = code_names_copy(r->names, node, made, n.function);
	}
	if (made != CODE_NONE)
		map_put(&r->copies, key, (void *)((uintptr_t)made + 1)); /* without memory for it: copied again */
	return made;
}

uint32_t code_rename(void *rename, uint32_t node, uint32_t symbol)
{
	const struct code_node *nodes;
	struct code_rename *r = rename;
	uint32_t root = node, made;

	nodes = code_names_parts(r->names).nodes;
	if (nodes[node].source != CODE_SOURCE_DWARF)
		return node;
	while (nodes[root].parent != CODE_NONE)
		root = nodes[root].parent;
	if (!r->has_answer || r->root != root || r->symbol != symbol) {
		r->function = choose_function(r, root, symbol);
		r->root = root;
		r->symbol = symbol;
		r->has_answer = true;
	}
	if (r->function == CODE_NONE)
		return node;
	made = copy(r, node, r->function);
	return made == CODE_NONE ? node : made;
}
