/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a span or a log line to the samples that it was: exactly, by links, or by the process and the time, which is said.
 * The query thread.
 */
#ifndef HEARTH_BACKEND_API_API_JOIN_H
#define HEARTH_BACKEND_API_API_JOIN_H

#include "backend/api/api_call.h"
#include "backend/signals/signals.h"

enum api_joined { JOINED_NONE, JOINED_LINK, JOINED_TIME };

/* "none", "link", "time". */
const char *api_joined_name(enum api_joined joined);

struct api_join {
	enum api_joined joined;
	struct buf query;	 /* a selector; owned */
	uint64_t from_ns, to_ns; /* 0, 0: all time */
};

void api_join_fini(struct api_join *join);

/* A process, and a thread of it where @thread_id is not -1 or @thread_name is not "", in a range: the samples of the first
 * of what may name it that has any. @join is all zeros. 0 or -errno. */
int api_join_by_time(struct api_call *call, const struct kept_resource *r, int64_t thread_id, const char *thread_name,
		     uint64_t from_ns, uint64_t to_ns, struct api_join *join);

/* Span @id, of 16 hexadecimal digits. @from_ns and @to_ns 0: of any time. @join is all zeros. 0 or -errno. */
int api_join_span(struct api_call *call, const char *id, uint64_t from_ns, uint64_t to_ns, struct api_join *join);

/* Answers "/api/v1/span/ID/where" and "/api/v1/log/ID/where". */
int api_where_span(struct api_call *call, const char *id);
int api_where_log(struct api_call *call, const char *id);

/* A struct query_context's name_spans. @arg is the call. */
int api_name_spans(void *arg, const struct store_matcher *m, uint64_t from_ns, uint64_t to_ns, struct buf *ids,
		   struct buf *error);

#endif
