/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions, on PCRE2: Perl's syntax, of which what people know from grep -E, Prometheus and Go is a part.
 * Compiling and matching are bounded in time and memory, so that expressions may come over the network; the C library's are
 * not ("a++++..." takes all memory there is). Used by one thread at a time.
 */
#ifndef HEARTH_BASE_PATTERN_H
#define HEARTH_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

enum pattern_flags { PATTERN_WHOLE = 1 /* it must match the whole text, as Prometheus has it */ };

struct pattern_error {
	char message[160]; /* what is wrong, and at which character */
};

/* 0; -EINVAL with @err filled: no regular expression, or too large a one; -ENOMEM. */
int pattern_new(const char *expression, unsigned flags, struct pattern **ret, struct pattern_error *err);
void pattern_free(struct pattern *p);

/* False also when it cannot be told within the bounds. */
bool pattern_matches(const struct pattern *p, const char *text, size_t len);

#endif
