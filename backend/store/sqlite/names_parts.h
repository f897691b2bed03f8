/* SPDX-License-Identifier: Apache-2.0 */
/* The struct store_names, for the three files that it is made of. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_NAMES_PARTS_H
#define HEARTH_BACKEND_STORE_SQLITE_NAMES_PARTS_H

#include "backend/store/sqlite/names.h"
#include "base/map.h"

enum name_statement {
	NAME_STRINGS,
	NAME_FUNCTIONS,
	NAME_MAPPINGS,
	NAME_PAGED, /* how many are in pages */
	NAME_FRAMES = NAME_PAGED,
	NAME_NODES,
	NAME_TEXT,
	NAME_SETS,
	NAME_ATTRIBUTES,
	NAME_SERIES,
	NAME_ORIGIN,
	NAME_NODE_LAST,
	NAME_LINK,
	NAME_GIVEN,
	NAME_GIVEN_ANY,
	NAME_STATEMENTS,
};

enum {
	TEXT_CHUNK_BYTES = 64 * 1024,
	PAGE_NUMBERS = 256,
	MOST_NAME_BYTES = 8 << 20, /* of pages and texts, within a question */
	NAME_BYTES_KEPT = 1 << 19, /* from one question to the next, as is what follows */
	RUNS_KEPT_BYTES = 1 << 20,
	RUNS = 256,
	LIST_RUNS = 64, /* of each kind: where many short processes ran, a set has its attributes from all over */
	FRAME_TYPES = 64,
};

struct text_chunk {
	struct text_chunk *next;
	size_t size, used;
	char data[];
};

/* The rows with numbers of one page, from its first on; zero where there is none. */
struct name_page {
	uint32_t count; /* read so far */
	_Alignas(8) char rows[];
};

/* Frames or nodes of one row of their table. */
struct run {
	uint32_t first, count;
	uint64_t used;
	void *rows;
};

struct run_cache {
	struct run runs[RUNS]; /* sorted, disjoint */
	size_t count, last;    /* last: the one used last */
	size_t rows;	       /* of all */
	uint64_t uses;
};

/* Lists of one row. */
struct list_run {
	uint32_t first, count; /* count 0: free */
	uint64_t used;
	struct lists lists;
};

struct store_names {
	struct store_sqlite *s;
	sqlite3 *const *db; /* of the reader or of the writer, as is the codec */
	struct column_codec *const *codec;
	sqlite3_stmt *statements[NAME_STATEMENTS];
	struct text_chunk *chunks;
	size_t text_bytes;		  /* of those */
	struct map pages[NAME_PAGED];	  /* number / PAGE_NUMBERS -> struct name_page */
	struct map given;		  /* frame -> struct given_name */
	uint64_t given_version;		  /* the store's names_version of those */
	struct map sets, series, origins; /* number + 1 -> struct name_set *, ... */
	struct map labels;		  /* attribute's number + 1 -> struct name_label *: of the sets */
	struct run_cache frames, nodes;
	struct list_run list_runs[3][LIST_RUNS]; /* attributes, sets, series */
	uint64_t uses;
	const char *frame_types[FRAME_TYPES]; /* profile.frame.type has few values */
};

/* The prepared statement with @value bound; NULL with *@err set. */
sqlite3_stmt *names_statement(struct store_names *n, enum name_statement which, int64_t value, int *err);

void names_caches_clear(struct store_names *n);
size_t names_caches_memory_bytes(const struct store_names *n);
void names_lists_clear(struct store_names *n);
size_t names_lists_memory_bytes(const struct store_names *n);
void names_runs_clear(struct store_names *n);
size_t names_runs_memory_bytes(const struct store_names *n);

#endif
