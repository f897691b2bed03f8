/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a function that DWARF describes the name of its symbol, which tells compiler-made copies apart (f.cold, f.isra.0:
 * DWARF calls all of them f) and has the whole mangled name. For code_names only.
 */
#ifndef HEARTH_SYMBOLS_CODE_RENAME_H
#define HEARTH_SYMBOLS_CODE_RENAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct code_names;

struct code_rename {
	struct code_names *names; /* borrowed */
	struct map copies;	  /* (node, function of its root) -> the copy, plus one */
	/* the answer before */
	uint32_t root, symbol;
	uint32_t function; /* the new one of @root; CODE_NONE: it is called so already */
	bool has_answer;
};

void code_rename_fini(struct code_rename *r);

/* A code_pick_fn: @node of DWARF, or a copy whose outermost function is called like @symbol's; other nodes stay. */
uint32_t code_rename(void *rename, uint32_t node, uint32_t symbol);

#endif
