/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weight of a question's samples by the type of the function that took it (OTLP's frame types), and how much of it has
 * no name. Both are counted over all stacks, before a picture or a table is cut. Belongs to the thread that asks.
 */
#ifndef HEARTH_BACKEND_QUERY_SHARES_H
#define HEARTH_BACKEND_QUERY_SHARES_H

#include <stdbool.h>

#include "backend/query/functions.h"
#include "backend/store/stacks.h"
#include "base/text/json.h"

struct shares;

/* @no_inline: an inlined call is part of the function it is in. NULL when out of memory. */
struct shares *shares_new(struct functions *functions, bool no_inline);
void shares_free(struct shares *s);

/* Adds the self weights of @stacks (after stacks_add_up()), both sides. 0, -ENOMEM or an error of the store. */
int shares_add(struct shares *s, const struct stacks *stacks);

/* Writes the member "types" of the object that @j is in, heaviest first; @two_sides adds self2 and unnamed2.
 * Nothing can be added after it. */
void shares_write(struct shares *s, bool two_sides, struct json *j);

#endif
