/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the reader of BEAM's JIT, for its own files. Modules are pieces of memory that begin with a header
 * (erts/emulator/beam/beam_code.h); each function begins with its name (ErtsCodeInfo). The table of modules (beam_ranges.c)
 * leads from an address to a header. Between modules is code that all of them call: fragments. Erlang's release 25 to 29.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_BEAM_STATE_H
#define HEARTH_AGENT_RUNTIME_CODE_BEAM_STATE_H

#include "agent/runtime/code/code_reader.h"

enum {
	BEAM_ATOM_BITS = 6,
	BEAM_ATOM_TAG = 0x0b,
	BEAM_MAX_ARITY = 255,
	BEAM_MAX_FUNCTIONS = 1 << 17, /* of a module */
	BEAM_MAX_MODULES = 1 << 17,
	BEAM_CODE_INFO_BYTES = 40, /* in front of a function's code: two words, then module, function, arity */
	BEAM_CODE_INFO_NAME = 16,
	BEAM_PROLOGUE_BYTES = 8, /* the first instruction of each function jumps over a place for breakpoints */
	BEAM_LINE_TABLE = 72,	 /* in a module's header, behind nine words, in all releases */
	BEAM_INDEXES = 3,	 /* tables of modules, one of which is active (ERTS_NUM_CODE_IX) */
	BEAM_MAX_FRAGMENTS = 640,
	BEAM_FRAGMENT_NAME = 44, /* bytes kept of one */
	BEAM_MAX_ATOM = 1020,	 /* bytes: 255 characters */
};

enum beam_kind { BEAM_FUNCTION, BEAM_HEADER, BEAM_FRAGMENT, BEAM_ROOT };

/* Words of a block. */
enum {
	BEAM_OWN_HEADER,
	BEAM_OWN_INDEX,
	BEAM_OWN_MODULE,
	BEAM_OWN_FUNCTION,
	BEAM_OWN_ARITY,
	BEAM_OWN_FRAGMENT,
	BEAM_OWN_MODULE_END
};

struct beam_fragment {
	uint64_t start;
	uint32_t number; /* the JIT's own */
	char name[BEAM_FRAGMENT_NAME];
};

struct beam {
	uint64_t active_code;	 /* address of the number of the active table */
	uint64_t tables;	 /* address of the tables of modules; 0: not found yet */
	uint64_t data, data_end; /* the emulator's variables */
	uint64_t normal_exit;	 /* the code that the outermost frame of a process returns to */
	uint64_t atoms;		 /* address of the table of atoms' segments */
	uint32_t atom_text;	 /* where an atom has the address of its text; its length stands 8 bytes before */
	bool has_binaries;	 /* it has a binary there, with the text */
	uint32_t functions;	 /* where a module's header has its functions' addresses; 0: not found yet */
	struct code_range range[CODE_RANGES]; /* where code is */
	uint32_t range_cnt;
	uint32_t fragment_cnt;
	struct beam_fragment fragments[BEAM_MAX_FRAGMENTS]; /* by address */
};

/* The address of the map of addresses in the JIT's object at @object; 0: there is none. s->normal_exit is known. */
uint64_t beam_fragments_find(const struct beam *s, struct code_memory *m, uint64_t object);

/* Fills s->fragments from the map at @addresses, and their names from the one at @names (0: they have none). */
void beam_fragments_read(struct beam *s, struct code_memory *m, uint64_t addresses, uint64_t names);

/* The fragment that begins at @addr; NULL: none. @s may be NULL. */
const struct beam_fragment *beam_fragment_at(const struct beam *s, uint64_t addr);

/* Puts the text of @atom into @text. Its length, or -errno. */
int beam_atom(const struct beam *s, struct code_memory *m, uint64_t atom, char text[static BEAM_MAX_ATOM]);

/* Is @addr in memory for code? */
bool beam_is_code(const struct beam *s, uint64_t addr);

static inline bool beam_is_atom(uint64_t word)
{
	return (word & ((1 << BEAM_ATOM_BITS) - 1)) == BEAM_ATOM_TAG && word >> 32 == 0;
}

int beam_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret);
int beam_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret);
int beam_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);

#endif
