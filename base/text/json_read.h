/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON reader over bytes that lie in memory: the caller asks for the values that it expects, one by one, and the reader
 * keeps nothing of those it has passed. The grammar is strict (RFC 8259), but the caller must check that strings are UTF-8.
 *
 * Every function returns false when the text is not what was asked for; then @error says what is wrong at @p, and the reader
 * must not be used any more. The caller recurses, so the caller bounds the recursion.
 */
#ifndef HEARTH_BASE_TEXT_JSON_READ_H
#define HEARTH_BASE_TEXT_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json_reader {
	const uint8_t *p, *end; /* what is still to be read; borrowed */
	const char *error;	/* NULL: none yet; "memory is used up" is no fault of the text */
	struct buf text;	/* the last string that had escapes; json_reader_fini() frees it */
};

/* Bytes inside the reader's text or its buffer: valid until the next string is read. */
struct json_text {
	const char *data;
	size_t len;
};

void json_reader_init(struct json_reader *r, const void *data, size_t len);
void json_reader_fini(struct json_reader *r);

/* The first byte of the next value or bracket, behind white space; 0 at the end. The reader does not move. */
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

/* Reads null and returns true if it is next; else leaves everything as it was. */
bool json_read_null(struct json_reader *r);

/* Passes over one value of any kind, at most 128 levels deep. */
bool json_skip(struct json_reader *r);

/* Whether nothing but white space is left. */
bool json_at_end(struct json_reader *r);

/* Appends the character of the escape whose backslash was before @p to @out as UTF-8; half a surrogate pair becomes U+FFFD.
 * Returns the place behind the escape; NULL: there is no such escape. */
const uint8_t *json_unescape(const uint8_t *p, const uint8_t *end, struct buf *out);

#endif
