/* SPDX-License-Identifier: Apache-2.0 */
/* Long readable names of C++ and Rust made shorter, by what stands between '<' and '>' first. Stateless. */
#ifndef HEARTH_SYMBOLS_SHORTEN_H
#define HEARTH_SYMBOLS_SHORTEN_H

#include <stddef.h>

struct buf;

/*
 * Appends the @len bytes of @name (UTF-8) to @out with template arguments that stand within more than @max_depth others as
 * "...", and with as many of them so as it takes to get at most @max_bytes. Where that does not do, the middle of the
 * whole is left out instead. @max_bytes >= 16.
 */
void name_shorten(const char *name, size_t len, unsigned max_depth, size_t max_bytes, struct buf *out);

#endif
