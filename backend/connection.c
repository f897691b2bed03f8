/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, from accept to close, and the sweep over them. A connection lives in its socket context of libmicrohttpd.
 *
 * Time limits are ours, for libmicrohttpd's own sees only silence: the sweep shuts the socket down and libmicrohttpd then
 * ends request and connection as it does for a client that went away. A suspended one is resumed for that. Loop's thread.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "backend/http.h"
#include "backend/tls.h"
#include "base/clock.h"
#include "base/metrics.h"

enum {
	GRACE_DIVISOR = 6, /* of the request's time before the least rate counts: 10 s of 60 */
	WAIT_DIVISOR =
		12, /* of the request's time that it may wait for memory: senders wait for an answer for 5 s and more */
	LEAST_BYTES_PER_S = 1024,
	UPLOAD_FACTOR = 10, /* more time for files */
};

static void connection_open(struct server *s, struct MHD_Connection *mhd, int fd, void **context)
{
	struct connection *c = calloc(1, sizeof(*c));
	if (!c) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	c->server = s;
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
	tls_keys_put(c->keys);
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

/* --- TLS --- */

static struct connection *connection_of_session(gnutls_session_t session)
{
	struct MHD_Connection *mhd = gnutls_session_get_ptr(session); /* libmicrohttpd sets it */
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static int verify_client(gnutls_session_t session)
{
	const struct connection *c = connection_of_session(session);
	return c && c->keys ? tls_keys_verify(c->keys, session) : GNUTLS_E_CERTIFICATE_ERROR;
}

int connection_certificate(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
			   const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **certs_ret,
			   unsigned *count_ret, gnutls_privkey_t *key_ret)
{
	struct connection *c = connection_of_session(session);
	(void)ca_names;
	(void)ca_count;
	(void)algorithms;
	(void)algorithm_count;
	if (!c)
		return -1;
	if (!c->keys)
		c->keys = tls_keys_get(c->server->tls);
	/* The handshake has not come to the client's certificate yet. */
	if (tls_keys_ask_clients(c->keys)) {
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
		gnutls_session_set_verify_function(session, verify_client);
	}
	tls_keys_chain(c->keys, certs_ret, count_ret, key_ret);
	return 0;
}

/* --- the sweep --- */

/* What a request must have brought after @age_ns: a little always; when others wait for memory that it holds, as much as
 * ends it in time. */
static uint64_t least_bytes(const struct server *s, const struct request *r, uint64_t age_ns)
{
	uint64_t least = LEAST_BYTES_PER_S * age_ns / NSEC_PER_SEC;
	double part = (double)age_ns / (double)s->request_timeout_ns;

	if (budget_has_waiters(ingest_budget(s->ingest)) && part * (double)r->ingest.body.cap > (double)least)
		return (uint64_t)(part * (double)r->ingest.body.cap);
	return least;
}

static bool is_overdue(const struct server *s, const struct connection *c, uint64_t now_ns)
{
	const struct request *r = c->request;
	uint64_t age_ns = now_ns > c->since_ns ? now_ns - c->since_ns : 0;
	if (!r)
		return age_ns > s->idle_timeout_ns;
	if (age_ns > s->request_timeout_ns * (r->upload ? UPLOAD_FACTOR : 1))
		return true;
	return r->receiving && age_ns > s->request_timeout_ns / GRACE_DIVISOR &&
	       r->received_bytes < least_bytes(s, r, age_ns);
}

/* libmicrohttpd waits for edges and takes a short read for the last: an end of stream that came together with data escapes
 * it. */
static bool is_gone(const struct connection *c)
{
	char byte;
	return (!c->request || c->request->receiving || c->request->api) &&
	       recv(connection_fd(c->mhd), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Answers a suspended request whose wait has no end in sight, and forgets one whose client has gone. */
static void look_at_suspended(struct server *s, struct request *r, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns > r->suspended_ns ? now_ns - r->suspended_ns : 0;

	if (r->api) {
		if (is_gone(r->connection))
			request_abort(r);
		return; /* a question has its own time limit */
	}
	if (r->state == REQUEST_TAKEN) {
		if (waited_ns < s->request_timeout_ns)
			return;
		ingest_cancel(&r->ingest);
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_BUSY,
			     "what came could not be kept in time: it may be kept all the same, try again");
	} else if (is_gone(r->connection)) {
		request_abort(r);
		return;
	} else if (waited_ns < s->request_timeout_ns / WAIT_DIVISOR) {
		return;
	} else {
		body_fini(&r->ingest.body);
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY, "too many large requests at once: try again");
	}
	request_resume(r);
}

void connections_sweep(struct server *s, uint64_t now_ns)
{
	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->request && c->request->suspended) {
			look_at_suspended(s, c->request, now_ns);
			continue;
		}
		bool overdue = is_overdue(s, c, now_ns);
		/* With work left over libmicrohttpd may hold bytes that it read before the end of the stream. */
		if (!overdue && (s->again_armed || !is_gone(c)))
			continue;
		if (c->request)
			c->request->too_slow = overdue;
		shutdown(connection_fd(c->mhd), SHUT_RDWR);
	}
}
