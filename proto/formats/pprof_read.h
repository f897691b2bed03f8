/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the pprof reader: the message and its tables; the samples; the use of labels. */
#ifndef HEARTH_PROTO_FORMATS_PPROF_READ_H
#define HEARTH_PROTO_FORMATS_PPROF_READ_H

#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "proto/profiles_builder.h"
#include "proto/formats/formats.h"

struct slice {
	const uint8_t *at, *end;
};

struct slices {
	struct buf list; /* struct slice */
};

static inline uint32_t slice_count(const struct slices *s)
{
	return (uint32_t)(s->list.len / sizeof(struct slice));
}

static inline struct slice slice_at(const struct slices *s, uint32_t i)
{
	return ((const struct slice *)(const void *)s->list.data)[i];
}

/* A mapping, function or location that was read. */
struct pprof_entry {
	int32_t index;	       /* of the builder */
	struct str name, file; /* a mapping's file is its name */
	bool is_bare;	       /* a function of which only the name is said */
};

/* The use of a label of a sample. */
enum label_place { LABEL_SAMPLE, LABEL_RESOURCE, LABEL_TRACE, LABEL_SPAN, LABEL_NOTHING };

struct label {
	struct str key, text;
	int64_t number;
	bool is_number;
	enum label_place place;
	int32_t unit, attribute;
};

struct pprof_reader {
	const uint8_t *start;
	struct otlp_error *error;
	int err; /* the first */
	struct builder *b;
	struct slices strings, types, samples, mappings, locations, functions;
	struct map mapping_of, location_of, function_of; /* id -> place in @entries + 1 */
	struct buf entries;				 /* struct pprof_entry */
	struct buf comments;				 /* uint64_t: strings */
	uint64_t drop_frames, keep_frames, doc_url, default_type, time_ns, duration_ns;
	struct slice period_type;
	int64_t period;
	struct intern *label_bytes; /* a label's message -> its place in @labels */
	struct buf labels;	    /* struct label */
	struct buf numbers, values, lines, attributes, key_values, items;
	struct slices sample_labels;
	struct pprof_columns *columns; /* of pprof_read_samples.c; the builder needs them up to the end */
};

enum { PPROF_MAX_LABELS = 256 }; /* of a sample */

/* One field of a message. */
struct field {
	uint32_t number;
	bool is_bytes;
	uint64_t value;	    /* when not is_bytes */
	struct slice bytes; /* when is_bytes */
	const uint8_t *at;
};

/* Steps *@s over its next field. False at the end, or after an error. */
bool pprof_next(struct pprof_reader *r, struct slice *s, struct field *f);

/* Reports -EBADMSG at @at; false. */
bool pprof_bad(struct pprof_reader *r, const uint8_t *at, const char *what) __attribute__((cold));

/* The entry of @id. NULL: there is none for the id 0, and any other is refused. */
const struct pprof_entry *pprof_find(struct pprof_reader *r, const struct map *ids, const uint8_t *at, uint64_t id);

/* A list of numbers, packed or one at a time, appended to @out as uint64_t. */
void pprof_numbers(struct pprof_reader *r, const struct field *f, struct buf *out);

/* The columns, which stand in @r from then on, and the samples, when the tables are read. False after an error. */
bool pprof_read_samples(struct pprof_reader *r);

void pprof_columns_free(struct pprof_columns *c);

/* String @index of the file. */
struct str pprof_text(struct pprof_reader *r, const uint8_t *at, uint64_t index);

/*
 * The labels of a sample, whose messages are @labels: @r->attributes is then its attributes, *@resource its resource and
 * *@link its link.
 */
bool pprof_read_labels(struct pprof_reader *r, const struct slices *labels, uint32_t *resource, int32_t *link);

#endif
