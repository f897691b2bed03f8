/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON writer over a buffer. The writer sets the commas, colons and escapes; assert checks the nesting. Text is written as
 * UTF-8; bytes that are not UTF-8 become U+FFFD.
 */
#ifndef HEARTH_BASE_TEXT_JSON_H
#define HEARTH_BASE_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { JSON_MAX_DEPTH = 4095 }; /* a call tree has two levels a call */

struct json {
	struct buf *out;			       /* borrowed */
	unsigned depth;				       /* <= JSON_MAX_DEPTH */
	uint64_t has_items[(JSON_MAX_DEPTH + 1) / 64]; /* bit d: something was written at depth d, a comma comes first */
	uint64_t is_object[(JSON_MAX_DEPTH + 1) / 64]; /* bit d: the container at depth d is an object */
	bool after_key;
	unsigned indent; /* spaces a level; 0: compact */
	bool html_safe;	 /* false after json_init(); true: < > & and U+2028, U+2029 are escaped */
};

void json_init(struct json *j, struct buf *out, unsigned indent);
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_key_n(struct json *j, const char *key, size_t len);
void json_string(struct json *j, const char *s);
void json_string_n(struct json *j, const char *s, size_t len);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
/* The fewest digits of %g that read back the same; NaN and infinities become null. */
void json_double(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* Writes a value that is JSON text already. */
void json_raw(struct json *j, const char *value);

/*
 * Appends the text of one value, for callers that write the commas themselves; json_append_double() takes finite ones only.
 */
void json_append_string(struct buf *out, const char *s, size_t len);
void json_append_double(struct buf *out, double v);

#endif
