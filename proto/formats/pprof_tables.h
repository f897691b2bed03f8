/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a struct pprof, shared by the file that fills it (proto/formats/pprof.c) and the one that writes it
 * (proto/formats/pprof_write.c). The tables are interned by content; ids are indices + 1, texts are indices of @strings. A
 * sample's key is its stack and its labels; its values stand in a row of columns.
 */
#ifndef HEARTH_PROTO_FORMATS_PPROF_TABLES_H
#define HEARTH_PROTO_FORMATS_PPROF_TABLES_H

#include "base/buf.h"
#include "base/intern.h"
#include "proto/formats/pprof.h"

enum { PPROF_MAX_COLUMNS = 8 };

/* Keys of the tables: no padding. */
struct pprof_label {
	uint32_t key, is_number;
	uint32_t text, unit;
	int64_t number;
};

struct pprof_function {
	uint32_t name, system_name, filename, pad;
	int64_t start_line;
};

struct pprof_mapping {
	uint64_t start, limit, offset;
	uint32_t filename, build_id;
};

struct pprof_line {
	uint32_t function, pad; /* id */
	int64_t line, column;
};

struct pprof_location { /* lines follow */
	uint64_t address;
	uint32_t mapping, line_count; /* id, 0: none */
	uint32_t is_folded, pad;
};

struct pprof_column {
	uint32_t type, unit;
};

struct pprof_row {
	int64_t values[PPROF_MAX_COLUMNS];
};

/* The ids that the parts of the current dictionary got; 0: not asked yet. Owned. */
struct pprof_known {
	uint32_t *strings, *functions, *mappings, *locations, *stacks, *labels;
};

struct pprof {
	struct intern *strings, *functions, *mappings, *locations, *stacks, *labels, *samples, *columns;
	struct intern *comments; /* uint32_t: a string */
	uint32_t drop_frames, keep_frames, doc_url;
	uint32_t program; /* the path of what all samples are of; 0: none yet, not said, or several */
	bool has_program, has_several;
	struct pprof_row *rows; /* parallel to samples; owned */
	uint32_t row_cap;
	struct pprof_known known;
	struct buf key, sample_key, text;
	uint64_t start_ns, end_ns;
	struct pprof_column period_type;
	int64_t period;
	struct pprof_losses losses;
	int error; /* the first */
};

#endif
