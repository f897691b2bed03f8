/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the series that a question is about: `{service.name="shop", comm=~"go.*"}`, PromQL's syntax, into a store's
 * matchers; and a word beside it, `{service.name="shop"} java`, which backend/query/query_word.c looks up.
 */
#ifndef HEARTH_BACKEND_QUERY_SELECTOR_H
#define HEARTH_BACKEND_QUERY_SELECTOR_H

#include <stddef.h>

#include "backend/store/store_read.h"
#include "base/buf.h"

struct selector {
	struct store_matcher *items; /* owned, as are their strings */
	size_t count;
	char *word; /* owned; NULL: none */
};

/*
 * Parses @text ("" and "{}" match all) into @ret (empty before). Labels may be written with `_` for `.` and by the short
 * names of selector_label(). A word, in quotes where it has spaces, may stand before the labels or behind them. 0; -EINVAL
 * with what is wrong, and at which character, in @error; -ENOMEM.
 */
int selector_parse(const char *text, struct selector *ret, struct buf *error);
void selector_fini(struct selector *s);

/*
 * The attribute's key that @label stands for: "pid" is "process.pid". NULL when it is none of the short names and has
 * nothing to do with them: it is then the key itself. A label with underscores and without a dot, such as `service_name`,
 * gets dots if the key with dots is one of OTLP's well-known ones.
 */
const char *selector_label(const char *label);

/* The short name of the attribute's key @key, or @key where it has none. */
const char *selector_short_label(const char *key);

#endif
