/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a struct pprof, shared by the file that fills it (proto/formats/pprof.c) and the one that writes it
 * (proto/formats/pprof_write.c). The tables are interned by content; ids are indices + 1, texts are indices of @strings.
 * Where nothing but the writer asks for a row, its content is the message as it is written, less the id, which is the
 * smallest form that it has. A sample's key is its stack and its labels; its values stand in columns.
 */
#ifndef HEARTH_PROTO_FORMATS_PPROF_TABLES_H
#define HEARTH_PROTO_FORMATS_PPROF_TABLES_H

#include "base/buf.h"
#include "base/intern.h"
#include "base/varint.h"
#include "proto/formats/pprof.h"
#include "proto/wire.h"

enum { PPROF_MAX_COLUMNS = 8 };

/* Keys of tables: no padding. */
struct pprof_mapping {
	uint64_t start, limit, offset;
	uint32_t filename, build_id;
};

struct pprof_column {
	uint32_t type, unit;
};

/* Values by sample; those beyond are 0. Owned. */
struct pprof_values {
	int64_t *items;
	uint32_t cap;
};

/* The ids that the parts of the current dictionary got; 0: not asked yet. Owned. */
struct pprof_known {
	uint32_t *strings, *functions, *mappings, *locations, *stacks, *labels;
};

struct pprof {
	struct intern *strings, *mappings, *columns;
	struct intern *functions, *locations, *labels; /* messages */
	struct intern *stacks;			       /* ids of locations, as varints */
	struct intern *samples;			       /* varints: the stack's index, ids of labels */
	struct intern *comments;		       /* uint32_t: a string */
	uint32_t drop_frames, keep_frames, doc_url;
	uint32_t program; /* the path of what all samples are of; 0: none yet, not said, or several */
	bool has_program, has_several;
	struct pprof_values values[PPROF_MAX_COLUMNS];
	struct pprof_known known;
	/* In the making: a location; a function, line or label; a sample or its stack; a text. */
	struct buf location, part, sample, text;
	uint64_t start_ns, end_ns;
	struct pprof_column period_type;
	int64_t period;
	struct pprof_losses losses;
	int error; /* the first */
};

/* Appends a field of a message; a number that is 0 is none. */
static inline void pprof_put_number(struct buf *out, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	varint_append(out, field << 3 | WIRE_VARINT);
	varint_append(out, value);
}

static inline void pprof_put_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	varint_append(out, field << 3 | WIRE_BYTES);
	varint_append(out, len);
	buf_append(out, data, len);
}

/* Appends what was put together, and empties it. */
static inline void pprof_put_part(struct buf *out, uint32_t field, struct buf *part)
{
	out->failed |= part->failed;
	pprof_put_bytes(out, field, part->data, part->len);
	buf_reset(part);
}

#endif
