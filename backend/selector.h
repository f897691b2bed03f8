/* SPDX-License-Identifier: Apache-2.0 */
/* Which series a question is about: `{service.name="shop", comm=~"go.*"}`, PromQL's syntax, into a store's matchers. */
#ifndef HEARTH_BACKEND_SELECTOR_H
#define HEARTH_BACKEND_SELECTOR_H

#include <stddef.h>

#include "backend/store.h"
#include "base/buf.h"

struct selector {
	struct store_matcher *items; /* owned, as are their strings */
	size_t count;
};

/*
 * Parses @text ("" and "{}" match all) into @ret (empty before). Labels may be written with `_` for `.` and by the short
 * names of selector_label(). 0; -EINVAL with what is wrong, and at which character, in @error; -ENOMEM.
 */
int selector_parse(const char *text, struct selector *ret, struct buf *error);
void selector_fini(struct selector *s);

/*
 * The attribute's key that @label stands for: "pid" is "process.pid". NULL when it is none of the short names and has
 * nothing to do with them: it is then the key itself. Which of `service_name` and `service.name` is meant is decided so:
 * what has no dot but underscores gets dots where the key with dots is one of OTLP's well-known ones.
 */
const char *selector_label(const char *label);

#endif
