/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a request, on the loop's thread: libmicrohttpd says what came, the sweep (connection.c) what did not, and this
 * file alone decides what becomes of it. It calls headers.c, guard.c, cors.c, login.c, the route, and reply.c in turn; they
 * judge, refuse and answer, but the state is written here. A request is made when its first line is there (so its time
 * counts from then) and stays until libmicrohttpd says that it ended, whatever the end was.
 *
 * While a request waits (for memory for its body, or for the sinks) its connection is suspended: libmicrohttpd then neither
 * reads nor calls, and calls again with the same arguments once it is resumed. A suspended connection is not ended by its
 * client's going away; the sweep has request_look() look after it.
 *
 * libmicrohttpd cannot answer in the middle of an upload. A refusal that is known early is therefore kept, the rest of the
 * body swallowed unread, and the answer sent at its end, on a connection that lives on. Exceptions: a body announced to be
 * too large, one whose end is not clear, and a client that waits for 100 Continue are answered before the body, and a client
 * that sends four times the limit is cut off.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/http/http.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/parse.h"

enum {
	SWALLOW_FACTOR = 4, /* times max_receive_bytes of a body that nobody wants */
	GRACE_DIVISOR = 6,  /* of the request's time before the least rate counts: 10 s of 60 */
	WAIT_DIVISOR = 12,  /* of its time that it may wait for memory: senders wait for an answer for 5 s and more */
	LEAST_BYTES_PER_S = 1024,
	UPLOAD_FACTOR = 10, /* more time for files */
};

const char *request_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

static size_t max_bytes(const struct request *r)
{
	return r->route && r->route->max_bytes ? r->route->max_bytes : ingest_max_bytes(r->server->ingest);
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
	r->connection->since_ns += clock_mono_ns() - r->suspended_ns; /* the time is not held against the client */
	MHD_resume_connection(r->connection->mhd);
	server_wake(r->server);
}

static void cancel(struct request *r)
{
	if (r->route && r->route->cancel)
		r->route->cancel(r);
}

void request_abort(struct request *r)
{
	r->state = REQUEST_GONE;
	cancel(r);
	ingest_cancel(&r->ingest);
	body_fini(&r->ingest.body);
	request_resume(r);
}

static bool is_receiving(const struct request *r)
{
	return r->state < REQUEST_TAKEN;
}

bool request_needs_client(const struct request *r)
{
	return is_receiving(r) || r->api || r->own;
}

bool request_may_give_way(const struct request *r, uint64_t age_ns)
{
	const uint64_t least_ns = r->state == REQUEST_NEW ? CONNECTION_LEAST_NS
							  : r->server->request_timeout_ns / GRACE_DIVISOR;

	return !r->suspended && is_receiving(r) && age_ns >= least_ns;
}

/* The bytes that a request must have brought after @age_ns: always a few; when others wait for memory that it holds, so many
 * that it ends in time. */
static uint64_t least_bytes(const struct request *r, uint64_t age_ns)
{
	uint64_t least = LEAST_BYTES_PER_S * age_ns / NSEC_PER_SEC;
	double part = (double)age_ns / (double)r->server->request_timeout_ns;

	if (budget_has_waiters(ingest_budget(r->server->ingest)) && part * (double)r->ingest.body.cap > (double)least)
		return (uint64_t)(part * (double)r->ingest.body.cap);
	return least;
}

bool request_is_overdue(struct request *r, uint64_t age_ns)
{
	const uint64_t most_ns = r->server->request_timeout_ns;
	bool is_overdue = age_ns > most_ns * (r->upload ? UPLOAD_FACTOR : 1) ||
			  (is_receiving(r) && age_ns > most_ns / GRACE_DIVISOR &&
			   r->received_bytes < least_bytes(r, age_ns));

	r->too_slow |= is_overdue;
	return is_overdue;
}

void request_look(struct request *r, bool is_gone, uint64_t now_ns)
{
	const uint64_t waited_ns = now_ns > r->suspended_ns ? now_ns - r->suspended_ns : 0;
	const uint64_t most_ns = r->server->request_timeout_ns / (r->state == REQUEST_TAKEN ? 1 : WAIT_DIVISOR);

	if (is_gone) {
		request_abort(r);
		return;
	}
	if (r->api || r->own || waited_ns < most_ns) /* a question has its own time limit */
		return;
	if (r->state == REQUEST_TAKEN) {
		ingest_cancel(&r->ingest);
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_BUSY,
			     "what came could not be kept in time: it may be kept all the same, try again");
	} else {
		body_fini(&r->ingest.body);
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY, "too many large requests at once: try again");
	}
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
	r->target = uri;
	r->target_end = uri + strlen(uri);
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
	cancel(r);
	if (r->route && r->route->end)
		r->route->end(r);
	ingest_cancel(&r->ingest);
	body_fini(&r->ingest.body);
	reply_fini(&r->reply);
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

static void judge(struct request *r, const char *path, const char *method, const char *version)
{
	const char *fault;

	r->announced_bytes = announced_bytes(r);
	r->path = path;
	r->route = r->has_nul ? NULL : route_find(r->server->routes, path);
	if (r->route && !route_is_on(r->route, r->server->pages))
		r->route = NULL;
	if (is_collected(r))
		request_speaks(r);
	fault = headers_fault(r, method, version, &r->has_framing);
	if (fault) {
		r->reply.close = true;
		reply_refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_HEADERS, "%s", fault);
	} else if (!r->route) {
		metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
		reply_text(r, MHD_HTTP_NOT_FOUND,
			   r->server->pages == PAGES_PPROF ? r->server->routes->instead : "404 not found");
	} else if (!request_guard(r)) {
		return;
	} else if (cors_is_preflight(r, method)) {
		reply_body(r, MHD_HTTP_NO_CONTENT, NULL);
	} else if (!request_admit(r, method)) {
		return;
	} else if (!route_has_method(r->route, method)) {
		refuse_method(r);
	} else if (r->route->begin && !r->has_framing) {
		/* The client may have sent a body all the same, which would be taken for the next request. */
		r->reply.close = true;
		reply_refuse(r, MHD_HTTP_LENGTH_REQUIRED, REJECTED_HEADERS,
			     "the body's length is not said: send Content-Length, or Transfer-Encoding: chunked");
	} else if (request_judge_params(r) && r->route->begin) {
		r->route->begin(r);
	}
}

/* Sends the reply that was decided; with @close nothing more is read of its connection. */
static enum MHD_Result answer(struct request *r, bool close)
{
	r->state = REQUEST_ANSWERED;
	return reply_send(r, close);
}

/* Called when the headers are there, and again when the body got the memory that it waited for, or was refused because it
 * waited too long. */
static enum MHD_Result request_begin(struct request *r, const char *path, const char *method, const char *version)
{
	bool unread = false; /* its body cannot or will not be read */

	if (r->state == REQUEST_NEW) {
		judge(r, path, method, version);
		bool too_large = r->announced_bytes != UINT64_MAX && r->announced_bytes > max_bytes(r);
		if (too_large && !r->reply.status)
			refuse_too_large(r);
		unread = too_large || r->reply.close;
	}
	if (r->reply.status && (unread || expects_continue(r)))
		return answer(r, true);

	r->state = REQUEST_BODY;
	if (!r->reply.status && is_collected(r) && r->announced_bytes)
		make_first_room(r);
	return MHD_YES;
}

/* --- the body --- */

/* Takes as many bytes as there is room for; suspends the request when there will be more room later. */
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
	/* A refused body, or one to a page, is read and thrown away, up to a bound. */
	most = r->reply.status && !r->upload ? ingest_max_bytes(r->server->ingest) : max_bytes(r);
	return r->received_bytes / SWALLOW_FACTOR > most ? MHD_NO : MHD_YES;
}

/* The whole request is there. */
static enum MHD_Result request_whole(struct request *r)
{
	if (r->state != REQUEST_TAKEN && !r->reply.status) {
		r->state = REQUEST_TAKEN;
		r->route->handle(r);
		if (!r->reply.status) {
			request_suspend(r, REQUEST_TAKEN);
			return MHD_YES;
		}
	}
	return answer(r, r->server->stopping);
}

enum MHD_Result request_step(void *arg, struct MHD_Connection *mhd, const char *path, const char *method,
			     const char *version, const char *data, size_t *len, void **context)
{
	struct request *r = *context;
	(void)arg;
	(void)mhd;
	if (!r || r->state == REQUEST_GONE)
		return MHD_NO;
	if (r->state == REQUEST_NEW || r->state == REQUEST_WAITING)
		return request_begin(r, path, method, version);
	if (r->state == REQUEST_GROWING)
		r->state = REQUEST_BODY;
	return *len ? request_data(r, data, len) : request_whole(r);
}
