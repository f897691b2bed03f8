/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question to the store as people write it, the parameters of an API request, and as the store understands it. Belongs to
 * the thread that asks.
 */
#ifndef HEARTH_BACKEND_QUERY_SELECTED_H
#define HEARTH_BACKEND_QUERY_SELECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/store/coverage.h"
#include "backend/query/selector.h"
#include "backend/store/store_read.h"
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

/* The label in which the selector's word was found, and its values. */
struct query_word {
	const char *as; /* the label's short name, or "function"; NULL: there is no word */
	char **values;	/* owned: values of the label that have it, heaviest first, WORD_MAX_VALUES at most */
	size_t count;
};

enum { WORD_MAX_VALUES = 10 };

struct query {
	struct store_selection sel;
	struct selector selector; /* with a matcher for the word where that was found in a label */
	struct query_word word;
	struct store_kind about; /* of that kind; its strings are owned */
	bool no_inline;
	bool is_covered; /* @covered is known */
	struct coverage covered;
	uint64_t *stacks; /* owned; what sel.stacks points to */
};

struct query_context {
	struct store *store;
	struct functions *functions;
	uint64_t now_ns;		 /* Unix */
	uint64_t deadline_ns;		 /* CLOCK_MONOTONIC */
	const _Atomic bool *is_unwanted; /* as in the selection */
	/* Appends the ids of the spans of a range whose name meets @m, `|` between them; NULL: no names of spans are known.
	 * 0; -EINVAL with @error filled; -errno. */
	int (*name_spans)(void *arg, const struct store_matcher *m, uint64_t from_ns, uint64_t to_ns, struct buf *ids,
			  struct buf *error);
	void *name_arg;
};

/* The name of a sample's span, where that came in itself (backend/signals): a label for matchers alone. */
#define QUERY_SPAN_NAME "span_name"

/*
 * Reads from, to, query, kind, focus, ignore, idle and inline of @params, each with @suffix behind its name where there is
 * such a one ("from2"). 0; -EINVAL with @error filled; or what the store said. query_fini() in any case; a query begins all
 * zeros.
 */
int query_read(struct query *q, const struct query_context *ctx, const struct query_params *params, const char *suffix,
	       struct buf *error);
void query_fini(struct query *q);

/*
 * Looks for the word of @q's selector in what selections know of names of executables, threads, services and containers
 * from @from_ns on and before @to_ns: the first of these labels with a value that contains it becomes a matcher; where none
 * has, the word is for function names. Case does not count. q->sel is read up to its kind. 0, -EINVAL with @error filled, or
 * what the store said.
 */
int query_find_word(struct query *q, const struct query_context *ctx, uint64_t from_ns, uint64_t to_ns, struct buf *error);

/*
 * For a selection that has nothing: calls @fn for up to 3 values there are that are near to the one that @q asks for, for
 * each label that is asked for by =, and for the word: values that contain it, then those a few letters away. Looks at @q's
 * range and kind, without its selector. 0, what @fn returned, or what the store said.
 */
int query_nearest(const struct query *q, const struct query_context *ctx,
		  int (*fn)(void *arg, const char *label, const char *value, const char *instead_of), void *arg);

/* Fills in q->covered. 0 or an error of the store. */
int query_cover(struct query *q, const struct query_context *ctx);

/* One unit of weight in nanoseconds of time, 0 when the weight is no time. */
uint64_t query_weight_ns(const struct query *q);

/*
 * A point in time as people write it: "now", "now-15m", "first", "last", Unix seconds with a fraction, RFC 3339. @status
 * says what first and last are. 0; or -EINVAL, with *@ns_ret as it was. ("recent" is no point: it is looked for by
 * query_read().)
 */
int query_time(const char *text, uint64_t now_ns, const struct store_status *status, uint64_t *ns_ret);

#endif
