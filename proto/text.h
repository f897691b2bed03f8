/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: names that fit their column and cannot steer a terminal, numbers and times that can be read. */
#ifndef HEARTH_PROTO_TEXT_H
#define HEARTH_PROTO_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* How many columns @name takes (one a character). */
unsigned text_columns(const char *name);

/*
 * Appends @name, cut in its middle with an ellipsis when it takes more than @max_columns (0: never cut). Control characters
 * and bytes that are not UTF-8 become '?'. Returns the columns written.
 */
unsigned text_name(struct buf *out, const char *name, unsigned max_columns);

/* Does the same as text_name, but cuts at the end; @max_columns is at least 1. */
void text_line(struct buf *out, const char *line, unsigned max_columns);

/* Does the same as text_name, and fills up with spaces to @columns. */
void text_padded(struct buf *out, const char *name, unsigned columns);

/* "1,234,567" */
void text_count(struct buf *out, uint64_t n);

/* "120 ms", "12.3 s", "5 m 07 s", "3 h 02 m" */
void text_duration(struct buf *out, uint64_t ns);

/* How a terminal shows what follows; TONE_PLAIN ends it. Nothing where @colour is false. */
enum text_tone { TONE_PLAIN, TONE_HEAD, TONE_HOT, TONE_WARM, TONE_FAINT, TONE_KERNEL, TONE_MORE, TONE_LESS };
void text_tone(struct buf *out, bool colour, enum text_tone tone);
/* The tone of a number that is @percent of everything. */
enum text_tone text_heat(double percent);

/* @part of @whole in percent, 0 when @whole is 0. */
double text_percent(uint64_t part, uint64_t whole);

#endif
