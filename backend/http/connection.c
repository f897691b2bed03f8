/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, from accept to close, and the sweep over them. A connection is kept in libmicrohttpd's socket context.
 *
 * Clients that say nothing, or a byte now and then, must not keep others out: while there are as many connections as there
 * may be, one goes for each that comes, the one that kept us waiting longest.
 *
 * Time limits are ours, for libmicrohttpd's own sees only silence: the sweep shuts the socket down and libmicrohttpd then
 * ends request and connection as it does for a client that went away. Each request judges its own time (request.c). Loop's
 * thread.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "backend/http/http.h"
#include "backend/http/tls.h"
#include "base/clock.h"
#include "base/metrics.h"

static int connection_fd(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* --- room for others --- */

static bool may_give_way(const struct connection *c, uint64_t age_ns)
{
	if (c->is_displaced)
		return false;
	return c->request ? request_may_give_way(c->request, age_ns) : age_ns >= CONNECTION_LEAST_NS;
}

static void make_room(struct server *s, uint64_t now_ns)
{
	struct connection *oldest = NULL;

	if (s->connection_count - s->displaced_count < s->max_connections)
		return;
	for (struct connection *c = s->connections; c; c = c->next)
		if (now_ns > c->since_ns && may_give_way(c, now_ns - c->since_ns) &&
		    (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	if (!oldest)
		return;
	oldest->is_displaced = true;
	s->displaced_count++;
	metric_add(s->stats.displaced, 1);
	shutdown(connection_fd(oldest->mhd), SHUT_RDWR);
}

/* --- from accept to close --- */

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
	metric_set(s->stats.connections, ++s->connection_count);
	*context = c;
	const union MHD_ConnectionInfo *tls = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (tls && tls->tls_session)
		tls_read_whole(tls->tls_session);
	make_room(s, c->since_ns);
}

static void connection_close(struct server *s, struct connection *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	metric_set(s->stats.connections, --s->connection_count);
	s->displaced_count -= c->is_displaced;
	s->run_again = true;
	tls_keys_put(c->keys);
	free(c);
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

static bool is_overdue(const struct server *s, const struct connection *c, uint64_t now_ns)
{
	uint64_t age_ns = now_ns > c->since_ns ? now_ns - c->since_ns : 0;

	return c->request ? request_is_overdue(c->request, age_ns) : age_ns > s->idle_timeout_ns;
}

/* libmicrohttpd waits for edges and takes a short read for the last: an end of stream that came together with data escapes
 * it. */
static bool is_gone(const struct connection *c)
{
	char byte;
	return (!c->request || request_needs_client(c->request)) &&
	       recv(connection_fd(c->mhd), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connections_sweep(struct server *s, uint64_t now_ns)
{
	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->request && c->request->suspended) {
			request_look(c->request, is_gone(c), now_ns);
			continue;
		}
		/* When work is left over, libmicrohttpd may hold bytes that it read before the end of the stream. */
		if (is_overdue(s, c, now_ns) || (!s->again_armed && is_gone(c)))
			shutdown(connection_fd(c->mhd), SHUT_RDWR);
	}
	make_room(s, now_ns);
}
