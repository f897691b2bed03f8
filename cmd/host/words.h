/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc cut into words and numbers. Each function cuts what it returns off the front of a text; false: there is no
 * more, or it is no such thing. */
#ifndef HEARTH_CMD_HOST_WORDS_H
#define HEARTH_CMD_HOST_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/profiles.h"

/* The next line, without its end. */
bool words_line(struct str *text, struct str *line);

/* The next word: what stands between blanks and tabs. */
bool words_next(struct str *line, struct str *word);

/* The next word as a decimal number below 2^64. */
bool words_u64(struct str *line, uint64_t *ret);

/* The same with or without a fraction: "0.25". */
bool words_real(struct str *line, double *ret);

/* Takes the next @count words as numbers. How many there were: fewer where the line ends or a word is no number. */
unsigned words_numbers(struct str *line, uint64_t *ret, unsigned count);

/* @from less @part, at least 0. */
static inline uint64_t words_without(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

#endif
