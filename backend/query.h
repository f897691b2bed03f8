/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to the store as people write it, the parameters of an API request, and as the store understands it. Belongs to
 * the thread that asks.
 */
#ifndef HEARTH_BACKEND_QUERY_H
#define HEARTH_BACKEND_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/selector.h"
#include "backend/store.h"
#include "base/buf.h"

struct functions;

struct query_param {
	const char *key, *value;
};

struct query_params {
	const struct query_param *items;
	size_t count;
};

/* The value of the first parameter @key, NULL when there is none. */
const char *query_param(const struct query_params *params, const char *key);

/* A whole number between @least and @most, or @preset when there is none; -EINVAL with @error filled. */
int query_number(const struct query_params *params, const char *key, uint64_t preset, uint64_t least, uint64_t most,
		 uint64_t *ret, struct buf *error);

struct query {
	struct store_selection sel;
	struct selector selector;
	struct store_kind about; /* of that kind; its strings are owned */
	bool no_inline;
	uint64_t *stacks; /* owned; what sel.stacks points to */
};

struct query_context {
	struct store *store;
	struct functions *functions;
	uint64_t now_ns;      /* Unix */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};

/*
 * Reads from, to, query, kind, focus, ignore and inline of @params, each with @suffix behind its name where there is such a
 * one ("from2"). 0; -EINVAL with @error filled; or what the store said. query_fini() in any case; a query begins all zeros.
 */
int query_read(struct query *q, const struct query_context *ctx, const struct query_params *params, const char *suffix,
	       struct buf *error);
void query_fini(struct query *q);

/* What one unit of weight is in nanoseconds of time, 0 where it is none. */
uint64_t query_weight_ns(const struct query *q);

/*
 * A point in time as people write it: "now", "now-15m", "first", "last", Unix seconds with a fraction, RFC 3339. @status
 * says what first and last are. 0 or -EINVAL.
 */
int query_time(const char *text, uint64_t now_ns, const struct store_status *status, uint64_t *ns_ret);

#endif
