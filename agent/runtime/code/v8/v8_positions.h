/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of V8 that lead from code to source, as bytes: nothing in them is believed. Leaf module, no state. */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_POSITIONS_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a script, as V8 packs it into 64 bits (SourcePosition). */
struct v8_position {
	int32_t offset;	 /* in the script; -1: not known */
	int32_t inlined; /* index among the inlined calls; -1: the code's own function */
};

struct v8_position v8_position_of(int64_t raw);

/* A source position table, of code or of bytecode: pairs of numbers (7 bits a byte) that say how much further the next entry
 * is in the code, with flags, and, zigzag, in the source. */
struct v8_positions {
	const uint8_t *at, *end;
	uint32_t flags;		     /* bits below the first number; 0: it is zigzag, the sign is a flag */
	int64_t code;		     /* offset in the code of the entry */
	int64_t raw;		     /* packed position from there on */
	struct v8_position position; /* the same */
};

/* Before the first entry. @flags: struct v8_layout's position_flags. */
struct v8_positions v8_positions_begin(const uint8_t *bytes, size_t len, uint32_t flags);

/* Goes to the next entry. False: there is none, or the table is broken there. */
bool v8_positions_next(struct v8_positions *p);

/* One inlined call: PodArray<InliningPosition>, 16 bytes each. False: there is none with this index. */
struct v8_inlined {
	struct v8_position call; /* where it was called */
	int32_t function;	 /* index among the literals; -1: none */
};

bool v8_inlined_at(const uint8_t *bytes, size_t len, int32_t index, struct v8_inlined *ret);

/*
 * The bytecode offset table of baseline code: by how much further the code of each bytecode ends, one number (7 bits a byte)
 * for each; the first one is the prologue's end.
 */
struct v8_baseline {
	const uint8_t *at, *end;
	const uint8_t *bytecode, *bytecode_end;
	const uint8_t *lengths; /* of bytecodes, @length_cnt for each scale */
	uint32_t length_cnt;
	uint32_t code;	 /* where the code of the bytecode begins */
	uint32_t offset; /* of the bytecode; what comes first has that of the first bytecode */
	bool has_begun;
};

/* Goes to the next bytecode. False: there is none, or it has no length. */
bool v8_baseline_next(struct v8_baseline *b);

#endif
