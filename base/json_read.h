/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON reader over bytes that lie in memory: the caller asks for what it expects, value by value, and nothing is kept of
 * what it has passed. Strict grammar (RFC 8259), but for strings that are not UTF-8, which are the caller's to judge.
 *
 * Every function returns false when the text is not what was asked for; then @error says what is wrong at @p, and the reader
 * is of no more use. Recursion, and so its bound, is the caller's.
 */
#ifndef HEARTH_BASE_JSON_READ_H
#define HEARTH_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json_reader {
	const uint8_t *p, *end; /* what is still to be read; borrowed */
	const char *error;	/* NULL so far; "memory is used up" is no fault of the text */
	struct buf text;	/* the last string that had escapes; json_reader_fini() frees it */
};

/* Bytes inside the reader's text or its buffer: valid until the next string is read. */
struct json_text {
	const char *data;
	size_t len;
};

void json_reader_init(struct json_reader *r, const void *data, size_t len);
void json_reader_fini(struct json_reader *r);

/* The first byte of the next value or bracket, behind white space; 0 at the end. Reads nothing. */
uint8_t json_peek(struct json_reader *r);

/* Reads the bracket that opens an array or object, '[' or '{'. */
bool json_open(struct json_reader *r, char bracket);

/* Inside an array or object, before each item: true when one comes. False with no @error: the closing @bracket was read.
 * @first is true before the first item and is the caller's, one a nesting level. */
bool json_next(struct json_reader *r, char bracket, bool *first);

/* A key and the colon behind it. */
bool json_read_key(struct json_reader *r, struct json_text *ret);

bool json_read_string(struct json_reader *r, struct json_text *ret);
bool json_read_bool(struct json_reader *r, bool *ret);
/* The text of a number. */
bool json_read_number(struct json_reader *r, struct json_text *ret);

/* True and read when null is next; false leaves everything as it was. */
bool json_read_null(struct json_reader *r);

/* Passes over one value of any kind, at most 128 levels deep. */
bool json_skip(struct json_reader *r);

/* Whether nothing but white space is left. */
bool json_at_end(struct json_reader *r);

/* What is behind the escape whose backslash was before @p, appended to @out as UTF-8; half a surrogate pair becomes U+FFFD.
 * NULL: there is no such escape. */
const uint8_t *json_unescape(const uint8_t *p, const uint8_t *end, struct buf *out);

#endif
