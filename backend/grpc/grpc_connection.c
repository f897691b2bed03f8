/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection: bytes between its socket and its session, its times, its end. It is freed in one place, the end of
 * grpc_connection_settle(), so nobody who holds one on the stack may use it after that; callbacks of the session never reach
 * it.
 *
 * A connection ends when the session has nothing more to say or hear (GOAWAY was sent, or came, and no call is left), or
 * when the connection is dead. In the first case it lingers: a socket closed while the client still sends would be reset,
 * and the client would not read why.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/grpc/grpc_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"

enum {
	READS_A_TURN = 8,	/* before others have their turn */
	WRITE_BYTES = 64 << 10, /* gathered for one write */
	OPENING_S = 10,		/* for the preface and SETTINGS */
	STUCK_S = 30,		/* for a client to read what waits for it */
	PING_AFTER_S = 60,	/* of silence */
	PING_ANSWER_S = 20,
	DRAIN_NOTICE_S = 1,
	LINGER_S = 1,
	SILENT_S = 1, /* while others wait for room: after that ... */
	ROOM_S = 2,   /* a message is to have begun, at ... */
	ROOM_BYTES_PER_S = 16 << 10,
};

static void enter(struct grpc_connection *c, enum grpc_phase phase)
{
	c->phase = phase;
	c->since_ns = clock_mono_ns();
}

/* --- out --- */

/* Gathers what the session has to send, in c->server->out. */
static void gather(struct grpc_connection *c)
{
	struct buf *out = &c->server->out;
	const uint8_t *data;
	ssize_t len = 0;

	c->is_held = true;
	while (out->len < WRITE_BYTES && (len = nghttp2_session_mem_send(c->session, &data)) > 0)
		buf_append(out, data, (size_t)len);
	c->is_held = false;
	if (len < 0 || out->failed)
		c->is_dead = true;
}

/* Writes to the socket; returns how many bytes it took. */
static size_t put(struct grpc_connection *c, const uint8_t *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = grpc_socket_write(&c->socket, data + done, len - done);

		if (n < 0 && n != -EAGAIN)
			c->is_dead = true;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

/* Sends the bytes that did not fit into the socket before. */
static void flush_rest(struct grpc_connection *c)
{
	size_t done = put(c, c->out.data + c->out_at, c->out.len - c->out_at);

	c->out_at += done;
	if (done)
		c->stuck_ns = clock_mono_ns();
	if (c->out_at < c->out.len)
		return;
	buf_fini(&c->out);
	c->out_at = 0;
	c->stuck_ns = 0;
}

static void flush_session(struct grpc_connection *c)
{
	struct buf *out = &c->server->out;

	/* Not before we know that the client speaks HTTP/2. */
	while (!c->is_dead && c->out.len == 0 && c->read_bytes >= NGHTTP2_CLIENT_MAGIC_LEN) {
		gather(c);
		size_t done = c->is_dead ? 0 : put(c, out->data, out->len);
		if (done < out->len && !c->is_dead) {
			buf_append(&c->out, out->data + done, out->len - done);
			c->is_dead = c->out.failed;
			c->stuck_ns = clock_mono_ns();
			grpc_schedule(c->server, c->stuck_ns + STUCK_S * NSEC_PER_SEC);
		}
		bool is_all = out->len == 0;
		buf_reset(out);
		if (is_all)
			break;
	}
}

static void flush(struct grpc_connection *c)
{
	if (c->out.len)
		flush_rest(c);
	flush_session(c);
}

/* --- its end --- */

void grpc_connection_free(struct grpc_connection *c)
{
	struct grpc *g = c->server;

	loop_remove(c->watch);
	while (c->calls)
		grpc_call_free(c->calls);
	nghttp2_session_del(c->session);
	buf_fini(&c->out);
	grpc_socket_close(&c->socket);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	g->connection_count--;
	metric_set(g->stats.connections, g->connection_count);
	free(c);
	grpc_accept_again(g);
}

static void linger(struct grpc_connection *c)
{
	while (c->calls) { /* of a doomed connection */
		nghttp2_session_set_stream_user_data(c->session, c->calls->stream_id, NULL);
		grpc_call_free(c->calls);
	}
	grpc_socket_shut(&c->socket);
	enter(c, GRPC_LINGERING);
	grpc_schedule(c->server, c->since_ns + LINGER_S * NSEC_PER_SEC);
}

static void watch(struct grpc_connection *c, uint32_t events)
{
	if (events == c->events)
		return;
	if (loop_change_fd(c->watch, events))
		c->is_dead = true;
	c->events = events;
}

/* The answer to clients of HTTP/1.1: most that come to the wrong port speak it. */
static const char foreign[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
			      "This port speaks gRPC, over HTTP/2 from the first byte; OTLP/HTTP has a port of its own.\n";

/* There is no session to speak of yet. */
static void settle_handshake(struct grpc_connection *c)
{
	if (!c->is_dead)
		watch(c, EPOLLIN | EPOLLRDHUP | (grpc_socket_waits_to_write(&c->socket) ? EPOLLOUT : 0));
	if (c->is_dead)
		grpc_connection_free(c);
}

void grpc_connection_settle(struct grpc_connection *c)
{
	if (c->is_held)
		return;
	if (!c->socket.is_shaken) {
		settle_handshake(c);
		return;
	}
	if (c->is_foreign && c->phase != GRPC_LINGERING) {
		put(c, (const uint8_t *)foreign, sizeof(foreign) - 1);
		linger(c);
	}
	if (c->phase != GRPC_LINGERING && !c->is_dead) {
		flush(c);
		bool is_over = !nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session);
		if (!c->is_dead && is_over && c->out.len == 0)
			linger(c);
	}
	if (!c->is_dead)
		watch(c, EPOLLIN | EPOLLRDHUP | (c->out.len ? EPOLLOUT : 0));
	if (c->is_dead)
		grpc_connection_free(c);
}

/* --- in --- */

static void take(struct grpc_connection *c, const uint8_t *data, size_t len)
{
	if (c->phase == GRPC_LINGERING)
		return;
	c->heard_ns = clock_mono_ns();
	grpc_session_feed(c, data, len);
}

static void receive(struct grpc_connection *c)
{
	for (int i = 0; i < READS_A_TURN && !c->is_dead; i++) {
		ssize_t n = grpc_socket_read(&c->socket, c->server->in, GRPC_READ_BYTES);

		if (n == -EAGAIN)
			break;
		if (n <= 0)
			c->is_dead = true;
		else
			take(c, c->server->in, (size_t)n);
		if (n < GRPC_READ_BYTES && !c->socket.tls) /* no more is there to read */
			break;
	}
}

static void shake(struct grpc_connection *c)
{
	int ret = grpc_socket_shake(&c->socket);

	if (ret && ret != -EAGAIN) {
		metric_add(c->server->stats.cut[GRPC_CUT_PROTOCOL], 1);
		c->is_dead = true;
	}
}

static void on_ready(void *arg, int fd, uint32_t events)
{
	struct grpc_connection *c = arg;
	(void)fd;

	shake(c);
	if (c->socket.is_shaken && !c->is_dead && (events & ~(uint32_t)EPOLLOUT))
		receive(c);
	grpc_connection_settle(c);
}

/* --- its times --- */

void grpc_connection_drain(struct grpc_connection *c)
{
	int ret = 0;

	if (c->phase == GRPC_LINGERING || c->is_doomed)
		return;
	if (c->drain == GRPC_SERVING) {
		/* First the announcement: calls that are on their way to us while it is on its way to them still count. */
		ret = nghttp2_submit_shutdown_notice(c->session);
		if (!ret)
			ret = nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
		c->drain = GRPC_NOTICED;
		c->drained_ns = clock_mono_ns();
		grpc_schedule(c->server, c->drained_ns + DRAIN_NOTICE_S * NSEC_PER_SEC);
	} else if (c->drain == GRPC_NOTICED) {
		ret = nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
					    nghttp2_session_get_last_proc_stream_id(c->session), NGHTTP2_NO_ERROR, NULL, 0);
		c->drain = GRPC_DRAINED;
	}
	c->is_dead |= ret != 0;
}

void grpc_connection_shift(struct grpc_connection *c, uint64_t late_ns)
{
	c->since_ns += late_ns;
	c->heard_ns += late_ns;
	c->stuck_ns += c->stuck_ns ? late_ns : 0;
	c->pinged_ns += c->pinged_ns ? late_ns : 0;
	for (struct grpc_call *call = c->calls; call; call = call->next) {
		call->since_ns += late_ns;
		call->reading_ns += late_ns;
	}
}

static void cut(struct grpc_connection *c, enum grpc_cut why)
{
	metric_add(c->server->stats.cut[why], 1);
	c->is_dead = true;
}

/* Each of these looks at one limit: passed, it acts; when to look again otherwise. */

static uint64_t check_silence(struct grpc_connection *c, uint64_t now_ns)
{
	bool waits = c->pinged_ns > c->heard_ns;
	uint64_t due_ns = waits ? c->pinged_ns + PING_ANSWER_S * NSEC_PER_SEC : c->heard_ns + PING_AFTER_S * NSEC_PER_SEC;

	if (now_ns < due_ns)
		return due_ns;
	if (waits) {
		cut(c, GRPC_CUT_DEAD);
		return UINT64_MAX;
	}
	c->is_dead |= nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL) != 0;
	c->pinged_ns = now_ns;
	return now_ns + PING_ANSWER_S * NSEC_PER_SEC;
}

static uint64_t check_idle(struct grpc_connection *c, uint64_t now_ns)
{
	uint64_t due_ns = c->since_ns + c->server->idle_timeout_ns;

	if (c->drain == GRPC_NOTICED) {
		due_ns = c->drained_ns + DRAIN_NOTICE_S * NSEC_PER_SEC;
		if (now_ns >= due_ns)
			grpc_connection_drain(c);
	} else if (c->drain == GRPC_SERVING && !c->calls && now_ns >= due_ns) {
		grpc_connection_drain(c);
		due_ns = now_ns + DRAIN_NOTICE_S * NSEC_PER_SEC;
	}
	return now_ns < due_ns ? due_ns : UINT64_MAX;
}

static uint64_t check_stuck(struct grpc_connection *c, uint64_t now_ns)
{
	uint64_t due_ns = c->stuck_ns ? c->stuck_ns + STUCK_S * NSEC_PER_SEC : UINT64_MAX;

	if (now_ns >= due_ns)
		cut(c, GRPC_CUT_SLOW);
	return due_ns;
}

static uint64_t check_calls(struct grpc_connection *c, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (struct grpc_call *call = c->calls, *next; call; call = next) {
		next = call->next;
		uint64_t call_ns = grpc_call_check(call, now_ns);
		due_ns = call_ns < due_ns ? call_ns : due_ns;
	}
	return due_ns;
}

static uint64_t check_phase(struct grpc_connection *c, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	if (c->phase == GRPC_OPENING) {
		due_ns = c->since_ns + OPENING_S * NSEC_PER_SEC;
		if (now_ns >= due_ns)
			cut(c, GRPC_CUT_SLOW);
	} else if (c->phase == GRPC_LINGERING) {
		due_ns = c->since_ns + LINGER_S * NSEC_PER_SEC;
		c->is_dead |= now_ns >= due_ns;
	}
	return due_ns;
}

uint64_t grpc_connection_check(struct grpc_connection *c, uint64_t now_ns)
{
	static uint64_t (*const checks[])(struct grpc_connection * c, uint64_t now_ns) = { check_calls, check_stuck,
											   check_idle, check_silence };
	uint64_t due_ns = check_phase(c, now_ns);

	for (size_t i = 0; i < ARRAY_LEN(checks) && c->phase == GRPC_OPEN && !c->is_dead; i++) {
		uint64_t check_ns = checks[i](c, now_ns);
		due_ns = check_ns < due_ns ? check_ns : due_ns;
	}
	grpc_connection_settle(c);
	return due_ns;
}

/* --- room for others --- */

/* Since when its client keeps us waiting; UINT64_MAX: it does not. */
static uint64_t silent_since_ns(const struct grpc_connection *c)
{
	if (c->is_held || c->calls)
		return UINT64_MAX;
	return c->phase == GRPC_OPEN ? c->heard_ns : c->since_ns;
}

/* Whether @call waits for its client alone. */
static bool waits_for_client(const struct grpc_call *call, uint64_t now_ns)
{
	const uint64_t age_ns = now_ns > call->reading_ns ? now_ns - call->reading_ns : 0;

	switch (call->phase) {
	case GRPC_CALL_HEADERS:
	case GRPC_CALL_RECEIVING:
		return !call->is_waiting && !call->has_ended && age_ns >= ROOM_S * NSEC_PER_SEC &&
		       call->received_bytes < age_ns / NSEC_PER_SEC * ROOM_BYTES_PER_S;
	case GRPC_CALL_TAKEN:
		return false;
	case GRPC_CALL_WATCHING:
	case GRPC_CALL_ANSWERED:
		break;
	}
	return true;
}

/* The same of connections with calls. */
static uint64_t waits_since_ns(const struct grpc_connection *c, uint64_t now_ns)
{
	uint64_t since_ns = 0;

	if (c->is_held || !c->calls || c->phase == GRPC_LINGERING)
		return UINT64_MAX;
	for (const struct grpc_call *call = c->calls; call; call = call->next) {
		if (!waits_for_client(call, now_ns))
			return UINT64_MAX;
		since_ns = call->reading_ns > since_ns ? call->reading_ns : since_ns;
	}
	return since_ns;
}

bool grpc_connection_make_room(struct grpc *g, uint64_t now_ns)
{
	struct grpc_connection *silent = NULL, *waiting = NULL, *last;
	uint64_t silent_ns = now_ns - SILENT_S * NSEC_PER_SEC + 1, waiting_ns = silent_ns;

	for (struct grpc_connection *c = g->connections; c; c = c->next) {
		if (silent_since_ns(c) < silent_ns) {
			silent = c;
			silent_ns = silent_since_ns(c);
		}
		if (waits_since_ns(c, now_ns) < waiting_ns) {
			waiting = c;
			waiting_ns = waits_since_ns(c, now_ns);
		}
	}
	last = silent ? silent : waiting;
	if (!last)
		return false;
	cut(last, GRPC_CUT_ROOM);
	grpc_connection_free(last);
	return true;
}

/* --- its beginning --- */

int grpc_connection_new(struct grpc *g, int fd)
{
	struct grpc_connection *c = calloc(1, sizeof(*c));
	const int on = 1;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->server = g;
	c->next = g->connections;
	c->link = &g->connections;
	if (c->next)
		c->next->link = &c->next;
	g->connections = c;
	metric_set(g->stats.connections, ++g->connection_count);
	enter(c, GRPC_OPENING);
	c->heard_ns = c->since_ns;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->events = EPOLLIN | EPOLLRDHUP;
	int ret = grpc_socket_open(&c->socket, fd, g->tls);
	if (!ret)
		ret = loop_add_fd(g->loop, fd, c->events, on_ready, c, &c->watch);
	if (!ret)
		ret = grpc_session_open(c);
	if (ret) {
		grpc_connection_free(c);
		return ret;
	}
	grpc_schedule(g, c->since_ns + OPENING_S * NSEC_PER_SEC);
	return 0;
}
