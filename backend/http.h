/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the backend's HTTP side: the server, a connection, a request on its way from headers to answer, and the table of
 * routes. Everything here belongs to the loop's thread.
 */
#ifndef HEARTH_BACKEND_HTTP_H
#define HEARTH_BACKEND_HTTP_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/body.h"
#include "backend/stats.h"
#include "base/buf.h"
#include "proto/sink.h"

struct lazy_counters;
struct loop;
struct loop_watch;
struct metrics;
struct server_error;

struct server {
	struct loop *loop; /* borrowed, as are metrics and out */
	struct metrics *metrics;
	struct sink *out;
	struct MHD_Daemon *mhd;
	struct loop_watch *ready; /* libmicrohttpd's epoll descriptor */
	struct loop_watch *again; /* its timer: work left over, or a time it asked for */
	struct loop_watch *sweep; /* looks for overdue connections */
	bool again_armed;
	bool run_again; /* a connection closed: libmicrohttpd takes up listening at its limit only in its next run */
	uint16_t port;
	bool stopping;
	size_t max_receive_bytes;
	uint64_t request_timeout_ns;
	uint64_t idle_timeout_ns;
	uint64_t swept_ns;
	struct body_budget bodies;
	struct connection *connections;
	unsigned open_requests;
	struct server_stats stats;
	struct lazy_counters *lazy;
};

struct connection {
	struct connection *next, **link; /* in server.connections */
	struct MHD_Connection *mhd;
	struct request *request; /* NULL between requests */
	uint64_t since_ns;	 /* when the request, or the wait for one, began */
};

struct reply {
	unsigned status; /* 0: not decided yet */
	const char *content_type;
	unsigned retry_after_s; /* 0: no such header */
	struct buf body;
};

struct request {
	struct server *server;
	struct connection *connection;
	const struct route *route; /* NULL: no such path */
	bool begun;		   /* its headers were looked at */
	bool receiving;		   /* its headers or body are still coming */
	bool too_slow;		   /* we cut it */
	bool gzip;
	const char *content_type; /* of an OTLP request and so of its answer; NULL: none that we speak */
	uint64_t received_bytes;
	struct body body;
	struct reply reply;
};

struct route {
	const char *method; /* "GET" serves HEAD too */
	const char *path;
	enum otlp_signal signal;	   /* of the receiver's other signals */
	void (*begin)(struct request *r);  /* optional: judges the headers before the body comes, may decide the reply */
	void (*handle)(struct request *r); /* the whole body is there; decides the reply */
};

/* request.c: what libmicrohttpd calls; @server is the struct server. */
enum MHD_Result request_step(void *server, struct MHD_Connection *mhd, const char *path, const char *method,
			     const char *version, const char *data, size_t *len, void **context);
void *request_start(void *server, const char *uri, struct MHD_Connection *mhd);
void request_end(void *server, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode how);
void connection_change(void *server, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what);

/* Cuts every connection that is over its time, below the least rate, or whose client has gone. */
void connections_sweep(struct server *s, uint64_t now_ns);

/* The route of @path whatever the method, or NULL.. */
const struct route *route_find(const char *path);
size_t route_index(const struct route *route);
bool route_has_method(const struct route *route, const char *method);
/* "POST" or "GET, HEAD", for Allow. */
const char *route_allow(const struct route *route);

/* A request header's first value, or NULL. */
const char *request_header(const struct request *r, const char *name);

/* The reply is r->reply.body as it stands. */
void reply_body(struct request *r, unsigned status, const char *content_type);
void reply_text(struct request *r, unsigned status, const char *text);
/* Refuses, and counts @why: google.rpc.Status in the request's content type, or text where it has none that we speak. */
void reply_refuse(struct request *r, unsigned status, enum rejection why, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Hands the decided reply to libmicrohttpd. */
enum MHD_Result reply_send(struct request *r, bool close);

/* The pages. */
void receiver_begin(struct request *r);
void receiver_profiles(struct request *r);
void receiver_other(struct request *r);
void page_metrics(struct request *r);
void page_health(struct request *r);

/* listen.c: a listening socket for "host:port"; fills *@port_ret with the port it has. The socket or -errno with @err
 * filled. */
int listen_on(const char *address, uint16_t *port_ret, struct server_error *err);

#endif
