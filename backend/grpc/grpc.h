/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend's gRPC side: OTLP/gRPC for profiles, logs, metrics and traces, and gRPC's health service. HTTP/2 by nghttp2,
 * on the caller's loop, without threads.
 */
#ifndef HEARTH_BACKEND_GRPC_GRPC_H
#define HEARTH_BACKEND_GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grpc;
struct ingest;
struct loop;
struct metrics;
struct server_error;
struct tls;
struct tokens;

struct grpc_config {
	const char *address;	     /* "127.0.0.1:4317", "[::1]:0"; port 0: any, see grpc_port() */
	struct tls *tls;	     /* NULL: none; borrowed, as are the tokens */
	struct tokens *tokens;	     /* NULL: calls need no token; the health service needs none ever */
	unsigned max_connections;    /* 1000 when 0 */
	uint64_t request_timeout_ns; /* first header of a call to the end of its answer; 60 s when 0 */
	uint64_t idle_timeout_ns;    /* a connection without a call; 300 s when 0 */
};

/* Listens. @ingest takes what is received (borrowed, as is @metrics). 0 or -errno with @err filled. */
int grpc_new(const struct grpc_config *config, struct loop *loop, struct metrics *metrics, struct ingest *ingest,
	     struct grpc **ret, struct server_error *err);
uint16_t grpc_port(const struct grpc *g);

/* Stops accepting, says GOAWAY on every connection and NOT_SERVING to clients that ask; calls under way go on. */
void grpc_quiesce(struct grpc *g);
/* Whether no call is open any more. */
bool grpc_is_quiet(const struct grpc *g);

/* Quiesces, then steps the loop, on its thread, until it is quiet or @deadline_ns (CLOCK_MONOTONIC) has come. */
void grpc_stop(struct grpc *g, uint64_t deadline_ns);

/* Closes what is still open. Before ingest_free(). Accepts NULL. */
void grpc_free(struct grpc *g);

#endif
