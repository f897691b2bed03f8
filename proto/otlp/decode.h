/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the decoder: how a message of the schema maps onto a struct of the model. A message is an array of
 * fields indexed by field number (kind 0: not ours, skipped); numbers are below 16, so that a tag is one byte.
 */
#ifndef HEARTH_PROTO_OTLP_DECODE_H
#define HEARTH_PROTO_OTLP_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/otlp/otlp.h"

enum { OTLP_MAX_NESTING = 32 };

enum otlp_kind {
	KIND_NONE,
	KIND_INDEX,  /* int32_t into a table; all int32 fields of the schema are that */
	KIND_UINT32, /* also an enum */
	KIND_INT64,  /* int64_t or uint64_t */
	KIND_BOOL,
	KIND_FIXED64, /* uint64_t or double */
	KIND_FIXED32, /* uint32_t */
	KIND_SINT32,  /* int32_t */
	KIND_STRING,  /* struct str; UTF-8 */
	KIND_BYTES,   /* struct str */
	KIND_MESSAGE, /* embedded struct; a second occurrence merges into it */
	/* repeated: a pointer and a uint32_t count */
	KIND_INDICES,
	KIND_INT64S,
	KIND_FIXED64S,
	KIND_STRINGS, /* UTF-8 */
	KIND_MESSAGES,
};

/* How a value stands in OTLP/JSON where its kind does not say. */
enum otlp_json {
	JSON_BY_KIND,
	JSON_UNSIGNED, /* KIND_INT64: a uint64 */
	JSON_DOUBLE,   /* KIND_FIXED64, KIND_FIXED64S */
	JSON_SIGNED,   /* KIND_FIXED64: an sfixed64 */
	JSON_HEX,      /* KIND_BYTES: not base64 */
};

struct otlp_field {
	const char *name;
	union {
		const struct otlp_message *sub; /* KIND_MESSAGE(S) */
		const char *const *names;	/* KIND_UINT32: of an enum's numbers, from 0 on, NULL-terminated; or NULL */
	};
	uint8_t kind;
	uint8_t table;	  /* KIND_INDEX, KIND_INDICES: field number of the table in ProfilesDictionary */
	uint8_t variant;  /* member of AnyValue's oneof: its enum value_kind */
	uint8_t json;	  /* enum otlp_json */
	uint8_t id_bytes; /* KIND_BYTES: an id of that length, or empty; 0: any */
	bool has;	  /* of one value: a bool at @count tells that it was there */
	uint16_t offset;
	uint16_t count; /* repeated: offset of the count */
};

_Static_assert(sizeof(struct otlp_field) == 32, "the decoder's tables stay small");

struct otlp_decoder;

struct otlp_message {
	const char *name;
	const struct otlp_field *fields;
	uint16_t field_count; /* highest number + 1 */
	uint16_t size;	      /* of the struct */
	bool has_strings;     /* members that must not stay NULL, here or in an embedded struct */
	bool nests;	      /* counts against OTLP_MAX_NESTING */
	/* Reads what is usual without a look at @fields, and returns where the rest begins. Only of elements of lists. */
	const uint8_t *(*usual)(struct otlp_decoder *d, void *base, const uint8_t *p, const uint8_t *end);
	/* Called after each occurrence; false: refused, reported. */
	bool (*done)(struct otlp_decoder *d, const void *base);
};

enum { OTLP_TABLES = 8 }; /* tables are numbered 1 to 7, as in ProfilesDictionary */

struct otlp_decoder {
	const uint8_t *start;
	size_t len;
	struct profiles *profiles; /* whose arena is used */
	bool own_data;
	bool is_json;
	bool forgets_references; /* into a dictionary: the signal has none */
	int error;		 /* 0 or -errno */
	struct otlp_error *text;
	unsigned nesting;
	uint32_t max_index[OTLP_TABLES]; /* largest index seen into each table */
	bool continues;			 /* a stream: indices other than 0 count from shift[] on */
	uint32_t shift[OTLP_TABLES];
	bool lacks_table; /* one had to be made up */
	uint64_t items;	  /* log records, spans, data points */
	/* Hints that the layout is another release's. */
	bool whole;		    /* all fields could be read */
	uint64_t shaped_samples;    /* with values, timestamps or no attributes */
	uint64_t shapeless_samples; /* the others, which make no sense */
	bool has_current;	    /* a sample has a link or values where 1.10 has them */
	bool twins;		    /* a sample has the same attribute twice */
	bool odd;		    /* unknown fields or unpacked lists */
};

extern const struct otlp_message otlp_profiles_data;
extern const struct otlp_message otlp_dictionary;
extern const struct otlp_message otlp_response;
extern const struct otlp_message otlp_status;

/* The result of decoding with otlp_response and otlp_status. */
struct otlp_answer {
	int64_t number; /* rejected profiles; a code */
	struct str message;
};

/* Decodes [p, end) into @base; false: d->error and d->text say why. */
bool otlp_decode_message(struct otlp_decoder *d, const struct otlp_message *m, void *base, const uint8_t *p,
			 const uint8_t *end);

/* Reports -EBADMSG at @at; returns NULL. */
void *otlp_decode_fail(struct otlp_decoder *d, const uint8_t *at, const struct otlp_message *m, const struct otlp_field *f,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Sets strings that no field brought to "". */
void otlp_init_strings(const struct otlp_message *m, void *base);

/* A list for @cap elements of @size bytes, that a repeated field may point at. NULL: out of memory, reported. */
void *otlp_decode_new_list(struct otlp_decoder *d, size_t cap, size_t size);

/* The place of @n further elements of @size bytes behind those that a repeated field of @base has; counts them in. NULL:
 * out of memory, reported. */
void *otlp_decode_extend(struct otlp_decoder *d, void *base, const struct otlp_field *f, size_t size, uint32_t n);

/*
 * Decodes @data, a part of a stream whose dictionaries continue one another. @before: elements of each table in the parts
 * before it, or all 0 in the first; advanced by those of this part. Strings point into @data. 0 with one reference in *@ret;
 * -EBADMSG when this cannot be read without what stands before it, is not of 1.10's layout beyond doubt, or is damaged:
 * otlp_decode() of the whole stream has the last word; -ENOMEM.
 */
int otlp_decode_part(const uint8_t *data, size_t len, uint32_t before[OTLP_TABLES], struct profiles **ret);

/* Completes the model when all fields are read: tables that were left out get their element 0, indices are checked. 0 or
 * d->error. */
int otlp_decode_finish(struct otlp_decoder *d);

/* Walks the whole model; false and a message about the first index that leads nowhere. @json: with the names of OTLP/JSON.
 */
bool otlp_check_indices(const struct profiles *p, bool json, struct otlp_error *err);

/* Whether a field that is no list is there: the member of a oneof that is set, a message that was brought, a value that says
 * something. */
bool otlp_field_is_present(const struct otlp_field *f, const void *base);

int otlp_json_encode_message(const struct otlp_message *m, const void *base, struct buf *out);

enum { OTLP_JSON_NAME_BYTES = 64 };

/* "time_unix_nano" as "timeUnixNano"; returns its length. */
size_t otlp_json_name(const char *name, char out[static OTLP_JSON_NAME_BYTES]);

/*
 * How messages of one form become the model. convert() makes it of what the tables of @root were read into, which is the
 * model itself where @size_bytes is 0. False: reported.
 */
struct otlp_layout {
	const struct otlp_message *root;
	size_t size_bytes;
	bool (*convert)(struct otlp_decoder *d, const void *root);
};

struct otlp_form;

/* One pass over the bytes by @layout, into d->profiles, which is made here; the caller lets go of it. NULL, d->error and
 * d->text say why; or the root that was read. @older_ret: the oldest form of which a name was seen; NULL: none. */
void *otlp_decode_root(struct otlp_decoder *d, const struct otlp_layout *layout);
void *otlp_json_decode_root(struct otlp_decoder *d, const struct otlp_layout *layout, const struct otlp_form **older_ret);

extern const char *const otlp_temporalities[];

#endif
