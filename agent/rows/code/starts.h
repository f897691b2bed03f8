/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where the functions of a file's code start: by its symbols and, where these say nothing, by the ends of neighbours
 * and the targets of calls. Used by agent/rows/code/code.c.
 */
#ifndef HEARTH_AGENT_ROWS_CODE_STARTS_H
#define HEARTH_AGENT_ROWS_CODE_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row_builder.h"

struct code_starts;

/* Reads no symbols yet. -ENODATA: no executable code; -ENOMEM. @image must outlive it. */
int code_starts_new(const struct row_image *image, struct code_starts **ret);
void code_starts_free(struct code_starts *s);

/* Forgets what was read; it is read again when it is needed. */
void code_starts_forget(struct code_starts *s);

/* The code at [@addr, @addr + @len_bytes), or NULL where there is none. */
const uint8_t *code_starts_bytes(const struct code_starts *s, uint64_t addr, uint64_t len_bytes);

/* A function that may be entered at its start. */
struct code_function {
	uint64_t start, end;
	const uint8_t *code; /* of start, in the image */
	bool is_all_its;     /* nothing in the range belongs to another function */
	bool is_by_look;     /* nothing but the bytes tells its borders: another one may begin where no path leads */
};

/*
 * The first function that reaches beyond @addr and starts below @limit. 0; -ENOENT: none is known; -ENOMEM. The first call
 * reads the symbols, one that they do not answer looks for calls.
 */
int code_starts_find(struct code_starts *s, uint64_t addr, uint64_t limit, struct code_function *ret);

/* Cuts @f, which may be many functions, to the one at @addr by the look of the code, or to its first one. False: there is
 * none near. */
bool code_starts_narrow(const struct code_starts *s, uint64_t addr, struct code_function *f);

/* Makes @f begin at the place before it where a function begins by the look of the code. False: there is none near. */
bool code_starts_widen(const struct code_starts *s, struct code_function *f);

/* Is all of [@addr, @end) padding between functions? Reads nothing but these bytes. */
bool code_starts_is_padding(const struct code_starts *s, uint64_t addr, uint64_t end);

/*
 * Finds code that belongs to no known function and is not padding: the rest of one that compilers placed elsewhere, with a
 * symbol of its own (main.cold), and code between functions. The first such range that reaches beyond @addr and starts below
 * @limit. Same errors.
 */
int code_starts_find_part(struct code_starts *s, uint64_t addr, uint64_t limit, struct code_function *ret);

/* The segment of code number @i with its address and length, or NULL. */
const uint8_t *code_starts_segment(const struct code_starts *s, uint32_t i, uint64_t *addr, uint64_t *len_bytes);

#endif
