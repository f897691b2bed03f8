/* SPDX-License-Identifier: Apache-2.0 */
/* Shortens long readable names of C++ and Rust, first between '<' and '>'. Stateless. */
#ifndef HEARTH_SYMBOLS_SHORTEN_H
#define HEARTH_SYMBOLS_SHORTEN_H

#include <stddef.h>

struct buf;

/*
 * Appends the @len bytes of @name (UTF-8) to @out with template arguments that stand within more than @max_depth others as
 * "...", and with as many of them so as it takes to get at most @max_bytes. If that is not enough, the middle of the whole
 * is left out instead. @max_bytes >= 16.
 */
void shorten_name(const char *name, size_t len, unsigned max_depth, size_t max_bytes, struct buf *out);

#endif
