/* SPDX-License-Identifier: Apache-2.0 */
/* struct store_names, for the two files that make it up. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_NAMES_PARTS_H
#define HEARTH_BACKEND_STORE_SQLITE_NAMES_PARTS_H

#include "backend/store_sqlite_names.h"
#include "base/map.h"

enum name_statement {
	NAME_STRINGS,
	NAME_FUNCTIONS,
	NAME_MAPPINGS,
	NAME_FRAMES,
	NAME_NODES,
	NAME_TEXT,
	NAME_SETS,
	NAME_ATTRIBUTES,
	NAME_SERIES,
	NAME_ORIGIN,
	NAME_NODE_LAST,
	NAME_LINK,
	NAME_GIVEN,
	NAME_STATEMENTS,
};

enum { TEXT_CHUNK_BYTES = 64 * 1024, NODE_RUNS = 128, LIST_RUNS = 4, FRAME_TYPES = 64 };

struct text_chunk {
	struct text_chunk *next;
	size_t size, used;
	char data[];
};

/* Nodes of one row. */
struct node_run {
	uint32_t first, count; /* count 0: free */
	uint64_t used;
	struct node_row *rows;
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
	const char **strings;
	struct name_function *functions;
	struct name_mapping *mappings;
	struct frame_row *frames;
	size_t string_count, function_count, mapping_count, frame_count; /* one more than the largest number loaded */
	size_t string_cap, function_cap, mapping_cap, frame_cap;
	struct map given;		  /* frame -> struct given_name */
	uint64_t given_version;		  /* the store's names_version of those */
	struct map sets, series, origins; /* number + 1 -> struct name_set *, ... */
	struct node_run node_runs[NODE_RUNS];
	size_t last_run;			 /* the one used last */
	struct list_run list_runs[3][LIST_RUNS]; /* attributes, sets, series */
	uint64_t uses;
	const char *frame_types[FRAME_TYPES]; /* profile.frame.type has few values */
};

/* The prepared statement with @value bound; NULL with *@err set. */
sqlite3_stmt *names_statement(struct store_names *n, enum name_statement which, int64_t value, int *err);

void names_caches_clear(struct store_names *n);

#endif
