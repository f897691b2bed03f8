/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own counters and the figures of the process. */
#ifndef HEARTH_BACKEND_HTTP_STATS_H
#define HEARTH_BACKEND_HTTP_STATS_H

#include <stddef.h>
#include <stdint.h>

struct metric;
struct metrics;

/* Why a request was not taken. */
enum rejection {
	REJECTED_PATH,
	REJECTED_METHOD,
	REJECTED_TOKEN,
	REJECTED_CONTENT_TYPE,
	REJECTED_ENCODING,
	REJECTED_VERSION,
	REJECTED_TOO_LARGE,
	REJECTED_MEMORY,
	REJECTED_MALFORMED,
	REJECTED_ORIGIN,     /* a page of elsewhere, or a name that is not ours */
	REJECTED_BUSY,	     /* the sink is full */
	REJECTED_SINK,	     /* the sink failed */
	REJECTED_SLOW,	     /* cut by us */
	REJECTED_DEADLINE,   /* its client's own */
	REJECTED_HEADERS,    /* of HTTP; that can be read in two ways */
	REJECTED_PARAMETER,  /* of a URL; that its path does not take */
	REJECTED_CALLS,	     /* too many at once, of one connection or of all: gRPC's */
	REJECTED_INCOMPLETE, /* the client went away, or what it sent was not HTTP */
	REJECTION_COUNT,
};

enum { STATS_PATHS_MAX = 24, STATS_CODES_MAX = 16 };

struct server_stats {
	struct metrics *metrics;
	struct metric *received_bytes;
	struct metric *connections, *displaced;
	struct metric *rejected[REJECTION_COUNT];
	struct metric *requests[STATS_PATHS_MAX + 1][STATS_CODES_MAX]; /* made at first use */
	struct metric *cpu_ns, *process_cpu_ns; /* the same under hearth's own name and under that of client libraries */
	struct metric *resident_bytes;
	struct metric *virtual_bytes;
	struct metric *open_fds;
	struct metric *max_fds;
	struct metric *start_time_s;
};

/* The counters of requests that were not taken, one for each reason. */
void stats_init_rejected(struct metric *rejected[REJECTION_COUNT], struct metrics *metrics);

void server_stats_init(struct server_stats *s, struct metrics *metrics);

/* @path_index STATS_PATHS_MAX: a path outside the table. */
void server_stats_answered(struct server_stats *s, size_t path_index, const char *path, unsigned status);

/* Reads CPU time, memory and descriptors of the process anew. */
void server_stats_refresh_process(struct server_stats *s);

#endif
