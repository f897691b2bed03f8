/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as libmicrohttpd reports them, on the loop's thread. A request is made when its first line is there (so its time
 * counts from then) and lives until libmicrohttpd says that it ended, whatever the end was.
 *
 * What it has to wait for (memory for its body, the sinks) it waits for with its connection suspended: libmicrohttpd then
 * neither reads nor calls, and calls again with the same arguments once it is resumed. A suspended connection is not ended
 * by its client's going away; the sweep (connection.c) looks after it.
 *
 * libmicrohttpd cannot answer in the middle of an upload. A refusal that is known early is therefore kept, the rest of the
 * body swallowed unread, and the answer sent at its end, on a connection that lives on. Three exceptions: a body announced
 * to be too large and a client that waits for 100 Continue are answered before the body, and who sends four times the limit
 * is cut off.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api.h"
#include "backend/http.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"

enum { SWALLOW_FACTOR = 4 }; /* times max_receive_bytes of a body that nobody wants */

const char *request_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

static size_t max_bytes(const struct request *r)
{
	return r->route && r->route->write ? API_SYMBOLS_MAX_BYTES : ingest_max_bytes(r->server->ingest);
}

/* Is its body collected in memory, for ingest? */
static bool is_collected(const struct request *r)
{
	return r->route && r->route->begin && !r->route->write;
}

/* --- waiting --- */

static void request_suspend(struct request *r, enum request_state state)
{
	r->state = state;
	r->suspended = true;
	r->suspended_ns = clock_mono_ns();
	MHD_suspend_connection(r->connection->mhd);
}

void request_resume(struct request *r)
{
	if (!r->suspended)
		return;
	r->suspended = false;
	r->connection->since_ns += clock_mono_ns() - r->suspended_ns; /* that time is not held against the client */
	MHD_resume_connection(r->connection->mhd);
	server_wake(r->server);
}

void request_abort(struct request *r)
{
	r->gone = true;
	page_api_cancel(r);
	ingest_cancel(&r->ingest);
	body_fini(&r->ingest.body);
	request_resume(r);
}

static void on_room(struct claim *claim)
{
	struct ingest_request *ingest = (struct ingest_request *)((char *)body_of_claim(claim) -
								  offsetof(struct ingest_request, body));
	request_resume((struct request *)((char *)ingest - offsetof(struct request, ingest)));
}

/* --- requests begin and end --- */

void *request_start(void *arg, const char *uri, struct MHD_Connection *mhd)
{
	struct server *s = arg;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info ? info->socket_context : NULL;
	struct request *r = c ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL; /* request_step then cuts the connection */

	r->server = s;
	r->connection = c;
	r->receiving = true;
	r->has_nul = strstr(uri, "%00"); /* libmicrohttpd's string of the path ends there */
	body_init(&r->ingest.body, ingest_budget(s->ingest), on_room);
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
	page_api_cancel(r);
	page_symbols_end(r);
	ingest_cancel(&r->ingest);
	body_fini(&r->ingest.body);
	buf_fini(&r->reply.body);
	free(r);
}

/* --- the body's memory --- */

static void refuse_too_large(struct request *r)
{
	body_fini(&r->ingest.body);
	reply_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE, "request body is larger than %zu bytes%s",
		     max_bytes(r), is_collected(r) ? ": send smaller batches, or raise the limit" : "");
}

/* Asks for room for @cap bytes; when that takes a while, suspends in @state. */
static void make_room(struct request *r, size_t cap, enum request_state state)
{
	switch (body_room(&r->ingest.body, cap)) {
	case 0:
		r->state = REQUEST_BODY;
		break;
	case -EINPROGRESS:
		request_suspend(r, state);
		break;
	default:
		body_fini(&r->ingest.body);
		r->state = REQUEST_BODY;
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY, "no memory for the body now: try again");
	}
}

static void make_first_room(struct request *r)
{
	bool known = r->announced_bytes != UINT64_MAX;

	if (!known || r->ingest.encoding != ENCODING_IDENTITY)
		claim_open(&r->ingest.body.claim);
	make_room(r, known ? (size_t)r->announced_bytes : body_next_cap(&r->ingest.body, max_bytes(r)), REQUEST_WAITING);
}

/* --- headers --- */

/* The body's announced length; UINT64_MAX: unknown. */
static uint64_t announced_bytes(const struct request *r)
{
	const char *text = request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t len = 0;
	if (request_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return UINT64_MAX;
	/* libmicrohttpd refused what is no number; too large a number is too large a body. */
	return !text ? 0 : parse_u64(text, &len) || len == UINT64_MAX ? UINT64_MAX - 1 : len;
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

struct framing {
	unsigned lengths, codings;
};

static enum MHD_Result count_framing(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct framing *f = arg;
	(void)kind;
	(void)value;
	f->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	f->codings += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
	return MHD_YES;
}

/* Whether all would agree on where the body ends: RFC 9112, 6.3. */
static bool is_framed_once(const struct request *r)
{
	struct framing f = { 0 };
	MHD_get_connection_values(r->connection->mhd, MHD_HEADER_KIND, count_framing, &f);
	return f.lengths + f.codings <= 1;
}

static void judge(struct request *r, const char *path, const char *method)
{
	r->announced_bytes = announced_bytes(r);
	r->path = path;
	r->route = r->has_nul ? NULL : route_find(path);
	if (r->route && !route_is_on(r->route, r->server->pages))
		r->route = NULL;
	if (is_collected(r))
		receiver_speaks(r);
	if (!is_framed_once(r)) {
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_INCOMPLETE,
			     "more than one Content-Length or Transfer-Encoding: where the body ends is not clear");
	} else if (!r->route) {
		metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
		reply_text(r, MHD_HTTP_NOT_FOUND, "404 not found");
	} else if (cors_is_preflight(r, method)) {
		reply_body(r, MHD_HTTP_NO_CONTENT, NULL);
	} else if (!page_guard(r) || !request_admit(r, method)) {
		return;
	} else if (!route_has_method(r->route, method)) {
		refuse_method(r);
	} else if (r->route->begin) {
		r->route->begin(r);
	}
}

/* The headers are there; or the memory that the body waited for, or a refusal because there was none for too long. */
static enum MHD_Result request_begin(struct request *r, const char *path, const char *method)
{
	bool unread = false; /* its body cannot or will not be read */

	if (r->state == REQUEST_NEW) {
		judge(r, path, method);
		bool too_large = r->announced_bytes != UINT64_MAX && r->announced_bytes > max_bytes(r);
		if (too_large && !r->reply.status)
			refuse_too_large(r);
		unread = too_large || !is_framed_once(r);
	}
	if (r->reply.status && (unread || expects_continue(r))) {
		r->receiving = false;
		return reply_send(r, true);
	}

	r->state = REQUEST_BODY;
	if (!r->reply.status && is_collected(r) && r->announced_bytes)
		make_first_room(r);
	return MHD_YES;
}

/* --- the body --- */

/* Takes what there is room for; suspended when there will be more later. */
static size_t collect(struct request *r, const char *data, size_t len)
{
	struct body *b = &r->ingest.body;
	size_t taken = body_append(b, data, len);

	while (taken < len && !r->reply.status && !r->suspended) {
		size_t cap = body_next_cap(b, max_bytes(r));
		if (cap == b->cap)
			refuse_too_large(r);
		else
			make_room(r, cap, REQUEST_GROWING);
		if (!r->reply.status && !r->suspended)
			taken += body_append(b, data + taken, len - taken);
	}
	return r->reply.status ? len : taken;
}

/* @len becomes what is left of it. */
static enum MHD_Result request_data(struct request *r, const char *data, size_t *len)
{
	size_t taken = *len, most;

	if (!r->reply.status && is_collected(r))
		taken = collect(r, data, *len);
	else if (!r->reply.status && r->route->write)
		r->route->write(r, data, *len);
	r->received_bytes += taken;
	if (is_collected(r))
		metric_add(r->server->stats.received_bytes, taken);
	*len -= taken;
	/* A refused body, or one to a page, is nobody's: it is swallowed, up to a bound. */
	most = r->reply.status && !r->upload ? ingest_max_bytes(r->server->ingest) : max_bytes(r);
	return r->received_bytes / SWALLOW_FACTOR > most ? MHD_NO : MHD_YES;
}

/* All is there. */
static enum MHD_Result request_whole(struct request *r)
{
	r->receiving = false;
	if (r->state != REQUEST_TAKEN && !r->reply.status) {
		r->state = REQUEST_TAKEN;
		r->route->handle(r);
		if (!r->reply.status) {
			request_suspend(r, REQUEST_TAKEN);
			return MHD_YES;
		}
	}
	return reply_send(r, r->server->stopping);
}

enum MHD_Result request_step(void *arg, struct MHD_Connection *mhd, const char *path, const char *method,
			     const char *version, const char *data, size_t *len, void **context)
{
	struct request *r = *context;
	(void)arg;
	(void)mhd;
	(void)version;
	if (!r || r->gone)
		return MHD_NO;
	if (r->state == REQUEST_NEW || r->state == REQUEST_WAITING)
		return request_begin(r, path, method);
	if (r->state == REQUEST_GROWING)
		r->state = REQUEST_BODY;
	return *len ? request_data(r, data, len) : request_whole(r);
}
