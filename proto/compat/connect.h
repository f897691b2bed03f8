/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of Connect's unary calls (connectrpc.com, "The Connect Protocol"), each of which comes and goes as protobuf or as
 * protobuf's JSON: requests read by a table of their fields, answers written by one sequence of calls for both. Stateless;
 * any thread.
 */
#ifndef HEARTH_PROTO_COMPAT_CONNECT_H
#define HEARTH_PROTO_COMPAT_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/json.h"

enum connect_kind {
	CONNECT_TEXT,	 /* string, also repeated */
	CONNECT_INT64,	 /* int64 */
	CONNECT_ENUM,	 /* by number or, in JSON, also by name */
	CONNECT_DOUBLE,	 /* double */
	CONNECT_MESSAGE, /* one that nobody reads: its bytes as they came */
};

struct connect_field {
	uint32_t number;
	const char *name; /* in the schema; JSON knows it, too */
	const char *json; /* in JSON */
	enum connect_kind kind;
	const char *use; /* the caller's own word for it, or NULL */
};

struct connect_value {
	const char *text; /* of texts, of names of enumerations, of messages: borrowed, not ended by a NUL; else NULL */
	size_t len;
	int64_t integer;
	double real;
};

/*
 * Calls @fn for each value of @data's that is of one of @fields; others are passed over, as protobuf has it. 0; -EBADMSG: it
 * is no such message; -ENOMEM; what @fn returned when that was not 0.
 */
int connect_read(const struct connect_field *fields, size_t field_count, bool is_json, const void *data, size_t len,
		 int (*fn)(void *arg, const struct connect_field *field, const struct connect_value *value), void *arg);

enum { CONNECT_DEPTH = 6 };

struct connect_writer {
	bool is_json;
	struct json json;
	struct buf parts[CONNECT_DEPTH]; /* messages that are not complete, the outermost first */
	uint32_t fields[CONNECT_DEPTH];	 /* what each is called in the one around it */
	unsigned depth;
	struct buf *out; /* borrowed; a failure sticks in it */
};

/* Begins a message that goes to @out (appended); connect_writer_end() ends it and frees what the writer has. */
void connect_writer_begin(struct connect_writer *w, bool is_json, struct buf *out);
void connect_writer_end(struct connect_writer *w);

/* A field, or, with a @json of NULL, an element of the list begun last. */
void connect_text(struct connect_writer *w, uint32_t field, const char *json, const char *text);
void connect_int64(struct connect_writer *w, uint32_t field, const char *json, int64_t value);
void connect_double(struct connect_writer *w, uint32_t field, const char *json, double value);
void connect_int64s(struct connect_writer *w, uint32_t field, const char *json, const int64_t *values, size_t count);
void connect_message_begin(struct connect_writer *w, uint32_t field, const char *json);
void connect_message_end(struct connect_writer *w);

/* Called before and after the elements of a repeated field. */
void connect_list_begin(struct connect_writer *w, const char *json);
void connect_list_end(struct connect_writer *w);

#endif
