/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of a script: its name, its file, and which line each place in it belongs to, as plain bytes. Made from what a
 * runtime's reader found in a process, so nothing in it is believed. No state.
 */
#ifndef HEARTH_SYMBOLS_SCRIPT_SCRIPT_H
#define HEARTH_SYMBOLS_SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* How the table of lines is written. */
enum script_lines {
	SCRIPT_LINES_NONE,	/* the place is the line; 0: not known */
	SCRIPT_LINES_LNOTAB,	/* CPython until 3.9: pairs of bytes, place and (signed) line differences;
				   Objects/lnotab_notes.txt */
	SCRIPT_LINES_LINETABLE, /* CPython 3.10: pairs, -128 for no line */
	SCRIPT_LINES_LOCATIONS, /* CPython 3.11 on; Objects/locations.md, InternalDocs/code_objects.md */
	SCRIPT_LINES_PAIRS,	/* struct script_line_pair, by rising place; before the first one there is no line. The word
				   before the first     instruction is taken for that */
};

/* The line from a place on; 0: none. */
struct script_line_pair {
	uint32_t place, line;
};

struct script_head {
	uint32_t first_line; /* where the function is declared; 0: not known */
	uint32_t name_bytes, file_bytes, line_bytes;
	uint32_t lines;	      /* enum script_lines */
	uint32_t code_offset; /* what is taken off a place ... */
	uint32_t scale;	      /* ... and by what it is multiplied, before its line is looked up */
	uint32_t is_cut;      /* not 0: the table of lines is not whole. A place behind its end has no line */
};

struct script {
	struct script_head head;
	const char *name, *file; /* borrowed; not terminated */
	const uint8_t *line_table;
};

/* Takes the @len bytes @content apart (borrowed). 0 or -EBADMSG. */
int script_open(const void *content, size_t len, struct script *ret);

/* Writes @s as bytes behind the content of @out; @out->failed says whether there was no memory. */
void script_write(const struct script *s, struct buf *out);

/* The line of @place; 0: not known. */
uint32_t script_line(const struct script *s, uint32_t place);

/* Appends @len bytes of characters of @width bytes each (1: Latin-1 or ASCII, 2, 4) as UTF-8; what is no character becomes
 * U+FFFD, control characters become '?'. */
void script_text(const void *bytes, size_t len, unsigned width, struct buf *out);

/* Appends @len bytes that may be UTF-8, with the same two replacements. */
void script_utf8(const void *bytes, size_t len, struct buf *out);

#endif
