/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the query API: one call, its handlers, and what they share. */
#ifndef HEARTH_BACKEND_API_CALL_H
#define HEARTH_BACKEND_API_CALL_H

#include "backend/api.h"
#include "backend/stacks.h"
#include "base/json.h"
#include "base/metrics.h"

struct api {
	struct api_config config;
	struct functions *functions;
	uint64_t start_ns;		     /* Unix */
	struct metric *too_long, *too_large; /* questions that were given up */
	struct bare_names *names;	     /* NULL: this store takes no symbols */
	char *folder;			     /* where files with symbols lie while they are read */
};

struct api_call {
	struct api *api;
	struct query_context ctx;
	const struct query_params *params;
	struct json json; /* over answer->body */
	struct api_answer *answer;
	struct buf error; /* what the asker did wrong */
};

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
int api_export(struct api_call *call);
int api_pprof(struct api_call *call);

/* api_pyroscope.c: these write the message of Connect's that parameter "codec" says. */
int api_profile_types(struct api_call *call);
int api_label_names(struct api_call *call);
int api_label_values(struct api_call *call);
int api_series_labels(struct api_call *call);
int api_select_series(struct api_call *call);
int api_select_stacktraces(struct api_call *call);

/* api_symbols.c: names for what came as bare addresses, out of files that were sent; and what came since they were. */
int api_symbols_init(struct api *api);
void api_symbols_fini(struct api *api);
void api_symbols_update(struct api *api);

/* 0, or -ENOMEM when @bytes are more than a question may take. */
int api_within(const struct api_call *call, uint64_t bytes);

/* Writes an answer that says what went wrong. */
void api_write_error(struct api_answer *answer, unsigned status, const char *text);

/* The label that parameter @key names, NULL when it is absent. */
const char *api_label(const struct api_call *call, const char *key);

/* Writes the members "kind", "weight_ns", "from" and "to" of @q. */
void api_write_about(struct api_call *call, const struct query *q);

/* A point in time as the API has it: Unix seconds with a fraction. */
void api_write_time(struct json *j, const char *key, uint64_t unix_ns);

void api_write_number(struct json *j, const char *key, int64_t value);
void api_write_text(struct json *j, const char *key, const char *text);

/* Appends a label's value as text. */
struct any_value;
void api_value_text(const struct any_value *v, struct buf *out);

/* Writes an object of one list, @key, whose elements @list writes of what the parameters select. */
int api_write_list(struct api_call *call, const char *key,
		   int (*list)(struct api_call *call, const struct store_selection *sel));

/* Stacks that a question is about, on their way to where they are placed. */
struct api_fill {
	const struct query *sides[2]; /* [1]: NULL with one selection */
	const char *by;		      /* label; NULL: none */
	/* Called once for each value of the label, with what has it, or once with @group NULL; see stacks_add_up(). */
	int (*place)(struct api_fill *fill, struct stacks *stacks, const char *group);
	void *arg;
	/* Filled in, the first by @place: what it keeps of what it was called with. */
	uint64_t kept_bytes;
	int64_t total[2];
	uint64_t events[2];
};

/* 0, what the store said, what @place returned when that was not 0, or -ENOMEM beyond what a question may take. */
int api_fill(struct api_call *call, struct api_fill *fill);

/* A struct api_fill's place() that places all in the struct graph @arg. */
int api_place(struct api_fill *fill, struct stacks *stacks, const char *group);

#endif
