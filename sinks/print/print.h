/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the print sink. */
#ifndef HEARTH_SINKS_PRINT_PRINT_H
#define HEARTH_SINKS_PRINT_PRINT_H

#include "base/buf.h"
#include "sinks/sinks.h"

struct printer {
	const struct profiles *p;
	const struct print_options *options;
	struct buf *out;
	struct buf scratch; /* a frame type that is not a string */
};

/* Escapes the control bytes of the text from @start on, unless they are to stay. */
void print_escape(struct printer *pr, size_t start);

/* "  key: value", with the value's type in the typed form. */
void print_attribute(struct printer *pr, struct str key, const struct any_value *v);

/* 2025-09-23 04:55:35.51787723 +0000 UTC: the fraction loses its trailing zeros. */
void print_time(struct buf *out, uint64_t unix_ns, bool local);

#endif
