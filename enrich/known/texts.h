/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strings of one object behind each other in one block, each with a NUL, so that an object is freed at once and what it
 * takes is known. A string is its offset; offset 0 is "". Not shared between threads.
 */
#ifndef HEARTH_ENRICH_KNOWN_TEXTS_H
#define HEARTH_ENRICH_KNOWN_TEXTS_H

#include <stdint.h>

#include "base/buf.h"

enum {
	TEXT_MAX_BYTES = 1024,	   /* a longer string is cut */
	TEXTS_MAX_BYTES = 48 << 10 /* an object whose strings are longer has the first of them only */
};

/* Adds @len bytes, cleaned to UTF-8 and cut. Returns the offset; 0 for an empty string, and where there is no room. */
uint32_t texts_add(struct buf *texts, const char *data, size_t len);

/* The string at @offset, until the next texts_add(). */
const char *texts_at(const struct buf *texts, uint32_t offset);

#endif
