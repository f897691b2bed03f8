/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a piece of code that a program made while it ran, as plain bytes: for each place in it the function that runs
 * there and those that it was inlined into, with their files and lines. Made when the code is first met and kept, so that
 * names survive the code. A place is an offset from the code's start; for functions that are interpreted it is whatever the
 * runtime counts them by. Nothing in the bytes is believed. No state.
 */
#ifndef HEARTH_SYMBOLS_SCRIPT_BLOCK_NAMES_H
#define HEARTH_SYMBOLS_SCRIPT_BLOCK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	BLOCK_NAMES_MAX = 65535, /* functions, and scopes, of one piece of code */
	BLOCK_NAMES_MAX_PLACES = 1 << 20,
	BLOCK_NAMES_MAX_DEPTH = 64,  /* functions at one place that are told */
	BLOCK_NAMES_NONE = 65535,    /* no scope */
	BLOCK_NAMES_MAX_TEXT = 1023, /* bytes of a name or path; the rest is cut off */
};

/* --- reading --- */

/* One function at a place, innermost first. Texts are borrowed from the content, not terminated. */
struct block_line {
	const char *name, *file; /* @file: "" is not known */
	uint16_t name_bytes, file_bytes;
	uint32_t line;	     /* 0: not known */
	uint32_t start_line; /* where the function is declared; 0: not known */
	bool is_approximate; /* the line, and which inlined functions there are, are those of the nearest place told */
};

/* Tells the functions at @place, innermost first, in @lines, which has room for BLOCK_NAMES_MAX_DEPTH. @is_return: the place
 * is the last byte of a call that has not returned. Returns their number; 0: nothing is known, or @content makes no sense.
 */
uint32_t block_names_find(const void *content, size_t len_bytes, uint32_t place, bool is_return,
			  struct block_line lines[static BLOCK_NAMES_MAX_DEPTH]);

/* Is it what block_names_write() may have written? */
bool block_names_are_sound(const void *content, size_t len_bytes);

/* --- making --- */

struct block_names; /* one piece of code's, in the making */

/* NULL: no memory. */
struct block_names *block_names_new(void);
void block_names_free(struct block_names *n); /* accepts NULL */

static inline void block_names_free_at(struct block_names **n)
{
	block_names_free(*n);
}

/* A function; the same texts and line give the same number again. @file may be empty. Texts are bytes that may be UTF-8:
 * what is none, and control characters, are replaced. BLOCK_NAMES_NONE: there are too many, or no memory. */
uint16_t block_names_function(struct block_names *n, const char *name, size_t name_bytes, const char *file,
			      size_t file_bytes, uint32_t start_line);

/* The function @function at @line, inlined into @parent (BLOCK_NAMES_NONE: it is the code's own function). The same three
 * give the same number again. BLOCK_NAMES_NONE: as above, also where @function or a wanted parent is that. */
uint16_t block_names_scope(struct block_names *n, uint16_t parent, uint16_t function, uint32_t line);

enum block_place_flags {
	BLOCK_PLACE_INEXACT = 1, /* the scope is a nearby place's */
	BLOCK_PLACE_EXACT_CALLS =
		2, /* ... but is exact for calls that have not returned and end where the next place begins */
};

/* From @place on up to the next one told, code is in @scope (BLOCK_NAMES_NONE: nothing is known). Places come by rising
 * order. */
void block_names_place(struct block_names *n, uint32_t place, uint16_t scope, uint32_t flags);

/* Puts @scope, inexact, to all places told so far that have none. */
void block_names_fill(struct block_names *n, uint16_t scope);

/* Appends the bytes. 0 or -ENOMEM (now, or in a call above); -ENODATA: there is no function. */
int block_names_write(const struct block_names *n, struct buf *out);

#endif
