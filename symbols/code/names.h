/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one file's code while they are collected: functions, the tree of their inlined calls, the ranges of addresses
 * each covers, and line rows. The sources (symbols/code/source.h) fill it one after another, the best first: where two name
 * an address, the earlier source keeps it; only what DWARF describes is called as the first symbol table calls it
 * (symbols/code/rename.h). After code_names_finish it answers questions itself and is what an index is written from
 * (symbols/index/index.h). Leaf module: returns errors, never logs. Not shared between threads.
 */
#ifndef HEARTH_SYMBOLS_CODE_NAMES_H
#define HEARTH_SYMBOLS_CODE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses are ELF virtual addresses of the file everywhere. */

enum { CODE_NONE = UINT32_MAX }; /* no function, no file, no node */

enum code_source {
	CODE_SOURCE_NONE,
	CODE_SOURCE_GO,	    /* Go's own table */
	CODE_SOURCE_DWARF,  /* functions with inlined calls and lines */
	CODE_SOURCE_SYMTAB, /* also the one in .gnu_debugdata */
	CODE_SOURCE_DYNSYM, /* exported names only */
	CODE_SOURCE_PLT,    /* stubs: name@plt */
	CODE_SOURCE_V8,	    /* V8's own tables of the functions that it is built with */
	CODE_SOURCE_UNWIND, /* no name: where a function begins and ends; it is called by its length, "+d80" */
	CODE_SOURCE_MAX,
};

/* "dwarf", "symtab", ... as users see it; "none". */
const char *code_source_name(enum code_source source);

struct code_names;

/*
 * Keeps only names of @wanted, @count sorted addresses; NULL: all names. Sources look at it to skip what nobody asks for. A
 * wanted address that has its name asks no later source, not for its line either. NULL without memory.
 */
struct code_names *code_names_new(const uint64_t *wanted, size_t count);
void code_names_free(struct code_names *c);

/* Does anybody ask for an address in [start, end) that no earlier source has named? */
bool code_names_wants(const struct code_names *c, uint64_t start, uint64_t end);

/* Names added from now on belong to @source, which ranks behind all earlier ones. */
void code_names_begin(struct code_names *c, enum code_source source);

/*
 * Adders. Running out of memory, or of the limit on it, sticks: they return CODE_NONE and code_names_finish says why. Texts
 * are copied. A function's @name is as in the file (mangled); code without a name has no function. @decl_line 0: unknown.
 * Equal files and functions are kept once.
 */
uint32_t code_names_file(struct code_names *c, const char *path, size_t len_bytes);
uint32_t code_names_function(struct code_names *c, const char *name, size_t len_bytes, uint32_t decl_line);

/* A function (@parent CODE_NONE), or one inlined into @parent by the call at @call_file:@call_line:@call_column. Without a
 * function, or inlined more than 255 deep, it counts as part of its caller: the answer is @parent. */
uint32_t code_names_node(struct code_names *c, uint32_t parent, uint32_t function, uint32_t call_file, uint32_t call_line,
			 uint32_t call_column);

/* [start, end) belongs to @node, or to a node inlined there: of overlapping ranges of one source, that of the deeper node
 * wins, then that of the node added later. Nothing happens for @node CODE_NONE. */
void code_names_range(struct code_names *c, uint64_t start, uint64_t end, uint32_t node);

/* From @addr on, to the next row, code comes from @file:@line:@column; @file CODE_NONE ends the sequence of rows, each of
 * which has such an end. Sequences in any order, rows too; of rows at one address of one sequence the last counts. Of
 * overlapping sequences the one that starts first counts, so far as it reaches. */
void code_names_line(struct code_names *c, uint64_t addr, uint32_t file, uint32_t line, uint32_t column);

/* Memory was wanting for something that should have been added: code_names_finish() says -ENOMEM. */
void code_names_lack_memory(struct code_names *c);

/* Sorts, and decides which source names each address. Called once, before the functions below. 0; -ENOMEM; -E2BIG: more than
 * CODE_NAMES_MAX_BYTES of memory. */
enum { CODE_NAMES_MAX_BYTES = 512 << 20 };
int code_names_finish(struct code_names *c);

/* --- answers --- */

/* One frame of an answer. */
struct code_frame {
	uint32_t function; /* for code_names_name */
	uint32_t file;	   /* for code_names_path; CODE_NONE: unknown */
	uint32_t line;	   /* 0: unknown */
	uint32_t column;   /* 0: unknown */
};

enum { CODE_MAX_FRAMES = 64 }; /* inlined calls beyond this many are left out, from the outer end; the outermost stays */

struct code_answer {
	uint64_t start;	     /* of the function that the code at the address is part of (of the range that names it) */
	uint64_t size_bytes; /* of the function from @start on, where that alone is known of it; else 0 */
	enum code_source source;
	uint32_t decl_line; /* of the innermost function */
	uint32_t frame_count;
	struct code_frame frames[CODE_MAX_FRAMES]; /* innermost first */
};

/* 0, or -ENOENT: no source names the code at @addr; where its line is known all the same, there is one frame, with function
 * CODE_NONE, else none; where its function's range is known, @start and @size_bytes say it. */
int code_names_find(const struct code_names *c, uint64_t addr, struct code_answer *ret);

/* The length of a range, from its name under CODE_SOURCE_UNWIND, the @len bytes at @name; 0: no such name. */
uint64_t code_range_bytes(const char *name, size_t len);

/* The function's name as in the file, or the file's path: @len_ret bytes without a NUL behind them, of at most 65,535. They
 * live as long as @c. */
const char *code_names_name(const struct code_names *c, uint32_t function, size_t *len_ret);
const char *code_names_path(const struct code_names *c, uint32_t file, size_t *len_ret);

#endif
