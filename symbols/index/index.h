/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of one file's code as one block of bytes: written once from a struct code_names, kept on disk by build id
 * (symbols/index/cache.h), mapped and asked in place. docs/symbols.md has the format. A reader trusts nothing in it: a
 * checksum guards against accidents, every offset is looked at against malice. Leaf module: returns errors, never logs. An
 * open index may be asked by several threads.
 */
#ifndef HEARTH_SYMBOLS_INDEX_INDEX_H
#define HEARTH_SYMBOLS_INDEX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/code/names.h"

struct buf;
struct symbol_files;

enum { SYMBOL_INDEX_VERSION = 2, SYMBOL_INDEX_ID_BYTES = 64 };

/* The head of an index, beside its tables. */
struct symbol_index_head {
	char build_id[SYMBOL_INDEX_ID_BYTES + 1]; /* whose names these are: lower-case hex */
	enum code_source best;			  /* the best source there was when it was written */
	bool is_broken;				  /* a source was: names may be missing */
	/* The files read beside the program itself: its separate debug file, the file that dwz made, the .dwp file. When one
	 * that was missing is there now, a new index may know more. */
	bool had_debug, had_common, had_package;
	bool has_ranges; /* of code that nothing names, too */
};

/* Appends @names, which are finished, to @out. 0, -ENOMEM, -E2BIG. */
int symbol_index_write(const struct code_names *names, const struct symbol_index_head *head, struct buf *out);

/* Reads all sources of @files and appends the index of what they know. 0; -E2BIG: too much for CODE_NAMES_MAX_BYTES;
 * -ENOMEM. */
int symbol_index_build(const struct symbol_files *files, const char *build_id, struct buf *out);

/* Is there a file now that was not there when the index with this @head was made? */
bool symbol_index_is_behind(const struct symbol_index_head *head, const struct symbol_files *files);

struct symbol_index;

/* Opens the @len_bytes at @data (borrowed until it is closed). The head is checked at once, the rest where it is first used,
 * so that what nobody asks for is not read from disk. 0; -EPROTONOSUPPORT: another version; -EBADMSG: broken; -ENOMEM. */
int symbol_index_open(const void *data, size_t len_bytes, struct symbol_index **ret);
void symbol_index_close(struct symbol_index *x);

/* Bytes of memory held beside @data. */
size_t symbol_index_memory_bytes(const struct symbol_index *x);

const struct symbol_index_head *symbol_index_head(const struct symbol_index *x);

/* The counts of an index's entries, and their sizes in bytes. */
struct symbol_index_sizes {
	uint64_t steps, functions, files, calls, places; /* functions: those with a name */
	uint64_t code_bytes, name_bytes, path_bytes, table_bytes, all_bytes;
};
struct symbol_index_sizes symbol_index_sizes(const struct symbol_index *x);

/* Checks the whole index now. 0 or -EBADMSG. */
int symbol_index_check(const struct symbol_index *x);

/* Answers like code_names_find. Also -EBADMSG. */
int symbol_index_find(const struct symbol_index *x, uint64_t addr, struct code_answer *ret);

/* Appends the name of @function as in the file, or the path of @file, to @out. 0, -EBADMSG, -ENOMEM. */
int symbol_index_name(const struct symbol_index *x, uint32_t function, struct buf *out);
int symbol_index_path(const struct symbol_index *x, uint32_t file, struct buf *out);

/* The line that declares @function; 0: unknown. */
uint32_t symbol_index_decl_line(const struct symbol_index *x, uint32_t function);

#endif
