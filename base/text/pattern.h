/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions, on PCRE2. The syntax is Perl's, which contains that of grep -E, Prometheus and Go. Compiling and
 * matching are bounded in time and memory, so that expressions may come over the network; the C library does not bound them
 * ("a++++..." takes all memory there is). One thread at a time uses a pattern.
 */
#ifndef HEARTH_BASE_TEXT_PATTERN_H
#define HEARTH_BASE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

enum pattern_flags { PATTERN_WHOLE = 1 /* it must match the whole text, as in Prometheus */ };

struct pattern_error {
	char message[160]; /* the mistake, and at which character it is */
};

/* Returns 0; -EINVAL with @err filled: no regular expression, or too large a one; -ENOMEM. */
int pattern_new(const char *expression, unsigned flags, struct pattern **ret, struct pattern_error *err);
void pattern_free(struct pattern *p);

/* Does @p match? False also when matching exceeds the bounds (some 1.5 ms): pattern_gave_up() is true from then on. */
bool pattern_matches(struct pattern *p, const char *text, size_t len);
bool pattern_gave_up(const struct pattern *p);

#endif
