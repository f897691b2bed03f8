/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether bytes are UTF-8 (by Unicode: no overlong forms, no surrogates, nothing above U+10FFFF). Stateless. */
#ifndef HEARTH_BASE_TEXT_UTF8_H
#define HEARTH_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * The length of the UTF-8 sequence at @data, which has at least one byte. 0: there is no such sequence; then *@skip_ret
 * bytes (1 or more) are the beginning of a sequence that breaks off there.
 */
size_t utf8_sequence(const void *data, size_t len, size_t *skip_ret);

bool utf8_is_valid(const void *data, size_t len);

/* How many of @data's bytes to keep so that they are at most @max and end with a whole sequence; @data is UTF-8. */
size_t utf8_cut(const void *data, size_t len, size_t max);

/* Appends @data with U+FFFD for each beginning of a sequence that breaks off. Memory failures stick in @out. */
void utf8_append_clean(struct buf *out, const void *data, size_t len);

#endif
