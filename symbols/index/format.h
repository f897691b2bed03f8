/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an index, as docs/symbols.md describes them: for its writer and its reader, nobody else. */
#ifndef HEARTH_SYMBOLS_INDEX_FORMAT_H
#define HEARTH_SYMBOLS_INDEX_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/index/index.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "an index is written and read in the CPU's byte order, which is little-endian"
#endif

/* Tables: rows of equal length, each field as many bytes as its greatest value takes. */
enum index_table {
	TABLE_BLOCKS, /* of code: address less the first block's, offset in STREAM_CODE; one more row at the end */
	TABLE_CALLS,  /* function, place + 1 */
	TABLE_PLACES, /* file + 1, line, column */
	TABLE_NAMES,  /* offset in STREAM_NAMES of each INDEX_TEXTS_A_BLOCK names; one more row at the end */
	TABLE_PATHS,  /* the same for paths */
	TABLE_LINES,  /* of each function: the line where it is declared */
	TABLE_MAX,
};

enum index_stream { STREAM_CODE, STREAM_NAMES, STREAM_PATHS, STREAM_MAX };

enum {
	INDEX_MAX_FIELDS = 3,
	INDEX_CHUNK_SHIFT = 14, /* a checksum for each 16 KB of what follows the header */
	INDEX_CHUNK_BYTES = 1 << INDEX_CHUNK_SHIFT,
	INDEX_STEPS_A_BLOCK = 16,
	INDEX_TEXTS_A_BLOCK = 8,
	INDEX_MAX_DEPTH = 256,
};

struct index_table_head {
	uint64_t offset; /* from the start of the file */
	uint32_t rows;
	uint8_t widths[INDEX_MAX_FIELDS]; /* in bytes, 0 to 8; 0: the field is 0 everywhere */
	uint8_t unused;
};

struct index_stream_head {
	uint64_t offset, len_bytes;
};

enum index_flag {
	INDEX_IS_BROKEN = 1,
	INDEX_HAD_DEBUG = 2,
	INDEX_HAD_COMMON = 4,
	INDEX_HAD_PACKAGE = 8,
	INDEX_HAS_RANGES = 16
};

struct index_header {
	char magic[8];
	uint32_t version;
	uint32_t best;	    /* enum code_source */
	uint64_t hash;	    /* index_head_hash of this header and the chunks' checksums */
	uint64_t len_bytes; /* of the whole file */
	uint64_t data;	    /* where the chunks begin: behind this header and their checksums, 8 bytes each */
	uint64_t first;	    /* address of the first block */
	uint32_t flags;	    /* enum index_flag */
	uint32_t functions; /* how many names */
	uint32_t files;	    /* how many paths */
	uint32_t steps;	    /* in all blocks */
	char build_id[SYMBOL_INDEX_ID_BYTES];
	struct index_table_head tables[TABLE_MAX];
	struct index_stream_head streams[STREAM_MAX];
};

_Static_assert(sizeof(struct index_header) == 272, "no padding, and a new version where it changes");

static const char index_magic[8] = { 'h', 'e', 'a', 'r', 't', 'h', 'S', 'I' };

/* A step's first byte: what follows, and in the low four bits how many bytes of code it is behind the last (0: a varint
 * says). */
enum index_step {
	STEP_DELTA = 0x0f,
	STEP_ROOT = 0x10, /* varint: 0: nothing is here; else function << 4 | source << 1 | whether a varint with how far
			     behind the start of the function's range this is follows */
	STEP_POP = 0x20,  /* varint: how many inlined calls end */
	STEP_PUSH = 0x40, /* varint: how many begin, then each one's varint, a row of TABLE_CALLS */
	STEP_LINE = 0x80, /* varint: 0: no line is known, else a row of TABLE_PLACES + 1 */
};

enum { ROOT_HAS_BACK = 1, ROOT_SOURCE_SHIFT = 1, ROOT_SOURCE_MASK = 7, ROOT_FUNCTION_SHIFT = 4 };

_Static_assert(CODE_SOURCE_MAX <= ROOT_SOURCE_MASK + 1, "a source fits into its bits");

/* The hash of a head of @len bytes, but for its field of the hash. */
uint64_t index_head_hash(const void *head, size_t len);

#endif
