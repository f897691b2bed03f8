/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the query API: one call, its handlers, and what they share. */
#ifndef HEARTH_BACKEND_API_API_CALL_H
#define HEARTH_BACKEND_API_API_CALL_H

#include "backend/api/api.h"
#include "backend/query/shares.h"
#include "backend/store/stacks.h"
#include "base/metrics.h"
#include "base/text/json.h"

struct api {
	struct api_config config;
	struct store *own_store; /* of a second one; NULL */
	uint64_t first_version;	 /* names_version of the first one's store when this one was made */
	struct functions *functions;
	uint64_t start_ns;				/* Unix */
	struct metric *too_long, *too_large, *unwanted; /* questions that were given up */
	struct bare_names *names;			/* NULL: this store takes no symbols */
	char *folder;					/* where files lie that are received or made; or NULL */
};

struct api_call {
	struct api *api;
	struct query_context ctx;
	const struct query_params *params;
	struct json json; /* over answer->body */
	struct api_answer *answer;
	struct buf error; /* the asker's mistake */
	bool hides_addresses;
	const char *joined; /* how a question about a span found its samples; NULL: it is about no span */
};

/* Names of parameters, as api_params() has them: those that query_read() reads, without a selector and with one; and those
 * of the handlers that answer on several paths. */
#define API_RANGE    "from to kind focus ignore idle inline"
#define API_SELECTED "query " API_RANGE
#define API_OF_GRAPH " by lines max_nodes"
#define API_OF_TOP   " by sort limit strip"

/* Each writes one JSON object to call->json (or a file to call->answer). 0; -EINVAL with call->error filled; -ENOENT: there
 * is no such thing (error filled); -ETIMEDOUT; another -errno. */
int api_flamegraph(struct api_call *call);
int api_tree(struct api_call *call);
int api_sandwich(struct api_call *call);
int api_top(struct api_call *call);
int api_diff(struct api_call *call);
int api_diff_top(struct api_call *call); /* diff as a table */
int api_timeline(struct api_call *call);
int api_heatmap(struct api_call *call);
int api_labels(struct api_call *call);
int api_values(struct api_call *call);
int api_series(struct api_call *call);
int api_executables(struct api_call *call);
int api_truth(struct api_call *call);
int api_status(struct api_call *call);
int api_inside(struct api_call *call);
int api_export(struct api_call *call);
int api_pprof(struct api_call *call);
int api_traces(struct api_call *call);
int api_logs(struct api_call *call);
int api_exemplars(struct api_call *call);

/* api_trace.c: as api_params(), of a path about a trace, a span or a log line, with its id in it. And its answer. */
const char *api_trace_params(const char *path);
int api_trace_path(struct api_call *call, const char *path);

/* api_symbols.c: names for frames that came as bare addresses, out of files that were sent, also for frames that came later.
 */
int api_symbols_init(struct api *api);
void api_symbols_fini(struct api *api);
void api_symbols_update(struct api *api);

/* 0, or -ENOMEM when @bytes are more than a question may take. */
int api_within(const struct api_call *call, uint64_t bytes);

/* Writes an answer that says what went wrong. */
void api_write_error(struct api_answer *answer, unsigned status, const char *text);

/* The label that parameter @key names, NULL when it is absent. */
const char *api_label(const struct api_call *call, const char *key);

/* query_read() of the call's parameters with @suffix, and query_cover(). */
int api_read(struct api_call *call, struct query *q, const char *suffix);

/* Writes the members "kind", "weight_ns", "from", "to" and "word" of @q, and how much of the time is covered, where that is
 * known. */
void api_write_about(struct api_call *call, const struct query *q);

/* Writes "covered_seconds", "covered_from" and "covered_to" of @q, each with @suffix. */
void api_write_covered(struct api_call *call, const struct query *q, const char *suffix);

/* Writes "word": what the selector's word of @q was taken for, with @suffix; nothing where there is none. */
void api_write_word(struct api_call *call, const struct query *q, const char *suffix);

/* Writes "nearest" with @suffix: values there are, near to those that @q asks for; nothing where @q has @events. 0 or
 * -errno. */
int api_write_nearest(struct api_call *call, const struct query *q, const char *suffix, uint64_t events);

/* A point in time as the API has it: Unix seconds with a fraction. */
void api_write_time(struct json *j, const char *key, uint64_t unix_ns);

void api_write_number(struct json *j, const char *key, int64_t value);
void api_write_text(struct json *j, const char *key, const char *text);

/* Writes an object of one list, @key, whose elements @list writes of what the parameters select. */
int api_write_list(struct api_call *call, const char *key,
		   int (*list)(struct api_call *call, const struct store_selection *sel));

/* Stacks that a question is about, on their way to where they are placed. */
struct api_fill {
	const struct query *sides[2]; /* [1]: NULL with one selection */
	const char *by;		      /* label; NULL: none */
	/* Called once for each value of the label, with the stacks that have it, or once with @group NULL; see
	 * stacks_add_up(). */
	int (*place)(struct api_fill *fill, struct stacks *stacks, const char *group);
	void *arg;
	struct shares *shares; /* all stacks are added to it, before they are placed; NULL: not wanted */
	/* Filled in, the first by @place: what it keeps of what it was called with. */
	uint64_t kept_bytes;
	int64_t total[2];
	uint64_t events[2];
	double squares[2]; /* of what each event weighs */
};

/* 0, what the store said, what @place returned when that was not 0, or -ENOMEM beyond what a question may take. */
int api_fill(struct api_call *call, struct api_fill *fill);

/* Shares for what @q selects: 0 or -ENOMEM; shares_free() in any case. */
int api_shares(const struct api_call *call, const struct query *q, struct shares **ret);

static inline void api_shares_free(struct shares **s)
{
	shares_free(*s);
}

/* Tells @fn the weight of each function in @fill's first selection, by itself and with all it calls; place and arg of @fill
 * are used, the rest is filled in when @fn is first called. Returns 0, an error as api_fill(), or what @fn returned when
 * that was not 0. */
int api_sum_functions(struct api_call *call, struct api_fill *fill,
		      int (*fn)(void *arg, uint32_t function, int64_t self, int64_t total), void *arg);

/* A struct api_fill's place() that places all in the struct graph @arg. */
int api_place(struct api_fill *fill, struct stacks *stacks, const char *group);

#endif
