/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The things that a Go function does with its frame, by CPU: go_frame_x86_64.c, go_frame_arm64.c. Used by agent/rows/go.c,
 * which knows the table.
 */
#ifndef HEARTH_AGENT_ROWS_GO_FRAME_H
#define HEARTH_AGENT_ROWS_GO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/rows.h"
#include "symbols/sources/gopclntab.h"

/* Rows being collected. */
struct go_rows {
	uint64_t start, end; /* what is still asked for */
	struct row *rows;
	size_t max, count;
};

/* Adds @row, cut to what is asked for, so that rows stay sorted whatever the table says. 0 or -ENOSPC. */
int go_rows_add(struct go_rows *out, struct row row);

/* Is the code at @addr these bytes? */
bool go_is_code(const struct gopclntab *t, uint64_t addr, const void *bytes, size_t len_bytes);

/* Is @fn called @name, maybe with the calling convention's name behind, which some versions write? */
bool go_is_named(const struct gopclntab_function *fn, const char *name);

/* From @at on, a function that changes the stack pointer finds its CFA so; ROW_CFA_NONE: as the table says, its stack is its
 * own. */
struct go_turn {
	uint64_t at;
	enum row_cfa cfa;
	uint8_t reg;
	int32_t off, off2;
};

enum { GO_MAX_TURNS = 8 };

/* The turns of a function, by rising address. */
struct go_turns {
	unsigned count;
	struct go_turn turns[GO_MAX_TURNS];
};

/* Adds @turn at @at; those beyond GO_MAX_TURNS are left out. */
void go_turns_add(struct go_turns *t, uint64_t at, struct go_turn turn);

/* The turn that stands at @at, NULL when there is none; *@end is cut to where the next one is. */
const struct go_turn *go_turns_find(const struct go_turns *t, uint64_t at, uint64_t *end);

/* --- one for each CPU --- */

/* The address where the row of the runtime's own signal return begins, if @fn is that; else UINT64_MAX. */
uint64_t go_frame_trampoline(const struct gopclntab *t, const struct gopclntab_function *fn);

/* The name of the program's entry point, of which there may be two, is no function that the runtime marks; @fn is it. */
bool go_frame_is_entry(const struct gopclntab_function *fn);

/* The rows of @fn, any other function, up to @stop. 0 or -ENOSPC. */
int go_frame_rows(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t stop, struct go_rows *out);

#endif
