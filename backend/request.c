/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and requests as libmicrohttpd reports them, on the loop's thread. A connection is made when it is accepted and
 * lives in its socket context; a request is made when its first line is there (so its time counts from then) and lives until
 * libmicrohttpd says that it ended, whatever the end was.
 *
 * libmicrohttpd cannot answer in the middle of an upload. A refusal that is known early is therefore kept, the rest of the
 * body swallowed unread, and the answer sent at its end, on a connection that lives on. Three exceptions: a body announced
 * to be too large and a client that waits for 100 Continue are answered before the body, and who sends four times the limit
 * is cut off.
 *
 * Time limits are ours, for libmicrohttpd's own sees only silence: the sweep shuts the socket down and libmicrohttpd then
 * ends request and connection as it does for a client that went away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "backend/http.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"

enum {
	SWALLOW_FACTOR = 4, /* times max_receive_bytes of a body without announced length */
	GRACE_DIVISOR = 6,  /* of the request's time before the least rate counts: 10 s of 60 */
	LEAST_BYTES_PER_S = 1024,
};

const char *request_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

/* --- requests --- */

void *request_start(void *arg, const char *uri, struct MHD_Connection *mhd)
{
	struct server *s = arg;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info ? info->socket_context : NULL;
	struct request *r = c ? calloc(1, sizeof(*r)) : NULL;
	(void)uri;
	if (!r)
		return NULL; /* request_step then cuts the connection */

	r->server = s;
	r->connection = c;
	r->receiving = true;
	body_init(&r->body, &s->bodies);
	c->request = r;
	c->since_ns = clock_mono_ns();
	s->open_requests++;
	return r;
}

void request_end(void *arg, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode how)
{
	struct server *s = arg;
	struct request *r = *context;
	(void)mhd;
	(void)how;
	if (!r)
		return;
	*context = NULL;
	if (!r->reply.status)
		metric_add(s->stats.rejected[r->too_slow ? REJECTED_SLOW : REJECTED_INCOMPLETE], 1);
	r->connection->request = NULL;
	r->connection->since_ns = clock_mono_ns();
	s->open_requests--;
	body_fini(&r->body);
	buf_fini(&r->reply.body);
	free(r);
}

static void refuse_too_large(struct request *r)
{
	body_fini(&r->body);
	reply_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE,
		     "request body is larger than %zu bytes: send smaller batches, or raise the limit",
		     r->server->max_receive_bytes);
}

/* What becomes of a body that did not fit. */
static void refuse_body(struct request *r, int error)
{
	if (error == -EFBIG) {
		refuse_too_large(r);
		return;
	}
	body_fini(&r->body);
	reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY, "too many large requests at once: try again");
}

/* The body's announced length; 0 when there is none. */
static uint64_t announced_bytes(const struct request *r)
{
	const char *text = request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t len = 0;
	if (!text || request_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return 0;
	/* libmicrohttpd refused what is no number; too large a number is too large a body. */
	return parse_u64(text, &len) ? UINT64_MAX : len;
}

static bool expects_continue(const struct request *r)
{
	const char *expect = request_header(r, MHD_HTTP_HEADER_EXPECT);
	return expect && strcasecmp(expect, "100-continue") == 0;
}

static void refuse_method(struct request *r)
{
	char text[128];
	snprintf(text, sizeof(text), "405 method not allowed, supported: [%s]", route_allow(r->route));
	metric_add(r->server->stats.rejected[REJECTED_METHOD], 1);
	reply_text(r, MHD_HTTP_METHOD_NOT_ALLOWED, text);
}

/* The headers are there. */
static enum MHD_Result request_begin(struct request *r, const char *path, const char *method)
{
	r->begun = true;
	r->route = route_find(path);
	if (!r->route) {
		metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
		reply_text(r, MHD_HTTP_NOT_FOUND, "404 not found");
	} else if (!route_has_method(r->route, method)) {
		refuse_method(r);
	} else if (r->route->begin) {
		r->route->begin(r);
	}

	uint64_t len = announced_bytes(r);
	bool too_large = len > r->server->max_receive_bytes;
	if (too_large && !r->reply.status)
		refuse_too_large(r);
	if (!r->reply.status) {
		int ret = body_expect(&r->body, len, r->server->max_receive_bytes);
		if (ret)
			refuse_body(r, ret);
	}
	if (r->reply.status && (too_large || expects_continue(r))) {
		r->receiving = false;
		return reply_send(r, true);
	}
	return MHD_YES;
}

static enum MHD_Result request_data(struct request *r, const char *data, size_t len)
{
	struct server *s = r->server;
	r->received_bytes += len;
	if (r->route && r->route->begin)
		metric_add(s->stats.received_bytes, len);

	if (!r->reply.status) {
		int ret = body_append(&r->body, data, len, s->max_receive_bytes);
		if (ret)
			refuse_body(r, ret);
	} else if (r->received_bytes / SWALLOW_FACTOR > s->max_receive_bytes) {
		return MHD_NO;
	}
	return MHD_YES;
}

enum MHD_Result request_step(void *arg, struct MHD_Connection *mhd, const char *path, const char *method,
			     const char *version, const char *data, size_t *len, void **context)
{
	struct server *s = arg;
	struct request *r = *context;
	(void)mhd;
	(void)version;
	if (!r)
		return MHD_NO;
	if (!r->begun)
		return request_begin(r, path, method);
	if (*len) {
		enum MHD_Result ret = request_data(r, data, *len);
		*len = 0;
		return ret;
	}

	r->receiving = false;
	if (!r->reply.status)
		r->route->handle(r);
	return reply_send(r, s->stopping);
}

/* --- connections --- */

static void connection_open(struct server *s, struct MHD_Connection *mhd, int fd, void **context)
{
	struct connection *c = calloc(1, sizeof(*c));
	if (!c) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	c->mhd = mhd;
	c->since_ns = clock_mono_ns();
	c->next = s->connections;
	c->link = &s->connections;
	if (c->next)
		c->next->link = &c->next;
	s->connections = c;
	metric_set(s->stats.connections, metric_get(s->stats.connections) + 1);
	*context = c;
}

static void connection_close(struct server *s, struct connection *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	metric_set(s->stats.connections, metric_get(s->stats.connections) - 1);
	s->run_again = true;
	free(c);
}

static int connection_fd(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

void connection_change(void *arg, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what)
{
	struct server *s = arg;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		connection_open(s, mhd, connection_fd(mhd), context);
	} else if (*context) {
		connection_close(s, *context);
		*context = NULL;
	}
}

static bool is_overdue(const struct server *s, const struct connection *c, uint64_t now_ns)
{
	const struct request *r = c->request;
	uint64_t age_ns = now_ns > c->since_ns ? now_ns - c->since_ns : 0;
	if (!r)
		return age_ns > s->idle_timeout_ns;
	if (age_ns > s->request_timeout_ns)
		return true;
	return r->receiving && age_ns > s->request_timeout_ns / GRACE_DIVISOR &&
	       r->received_bytes < LEAST_BYTES_PER_S * age_ns / NSEC_PER_SEC;
}

/* libmicrohttpd waits for edges and takes a short read for the last: an end of stream that came together with data escapes
 * it. */
static bool is_gone(const struct connection *c)
{
	char byte;
	return (!c->request || c->request->receiving) && recv(connection_fd(c->mhd), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connections_sweep(struct server *s, uint64_t now_ns)
{
	for (struct connection *c = s->connections; c; c = c->next) {
		bool overdue = is_overdue(s, c, now_ns);
		/* With work left over libmicrohttpd may hold bytes that it read before the end of the stream. */
		if (!overdue && (s->again_armed || !is_gone(c)))
			continue;
		if (c->request)
			c->request->too_slow = overdue;
		shutdown(connection_fd(c->mhd), SHUT_RDWR);
	}
}
