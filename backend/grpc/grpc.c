/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gRPC server's life: the listening socket, the list of connections, and one timer for all that is due in them. The
 * timer is set to the earliest time that anybody has named; when it fires, every connection is looked at and names the next.
 * Loop's thread only.
 */
#include "backend/grpc/grpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/grpc/grpc_internal.h"
#include "backend/http/http.h"
#include "backend/http/server.h"
#include "backend/http/tls.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"

enum {
	DEFAULT_CONNECTIONS = 1000,
	DEFAULT_REQUEST_TIMEOUT_S = 60,
	DEFAULT_IDLE_TIMEOUT_S = 300,
	ACCEPTS_A_TURN = 64,
	LOOK_MS = 20,	    /* how often grpc_stop() looks at the clock */
	LEAST_WAIT_MS = 5,  /* between two looks at all connections */
	LATE_MS = 1000,	    /* then we were held up: stopped, swapped out, suspended */
	ROOM_AGAIN_S = 1,   /* when nobody's connection could be closed */
	ACCEPT_AGAIN_S = 1, /* after descriptors or memory ran out */
};

/* --- time --- */

void grpc_schedule(struct grpc *g, uint64_t due_ns)
{
	uint64_t now_ns, least_ns = LEAST_WAIT_MS * NSEC_PER_MSEC;

	if (due_ns >= g->due_ns)
		return;
	g->due_ns = due_ns;
	now_ns = clock_mono_ns();
	loop_set_timer(g->timer, due_ns > now_ns + least_ns ? due_ns - now_ns : least_ns, 0);
}

static void on_timer(void *arg)
{
	struct grpc *g = arg;
	uint64_t now_ns = clock_mono_ns(), late_ns = now_ns > g->due_ns ? now_ns - g->due_ns : 0, due_ns = UINT64_MAX;

	g->due_ns = UINT64_MAX;
	for (struct grpc_connection *c = g->connections, *next; c; c = next) {
		next = c->next;
		if (late_ns > LATE_MS * NSEC_PER_MSEC)
			grpc_connection_shift(c, late_ns);
		uint64_t check_ns = grpc_connection_check(c, now_ns);
		due_ns = check_ns < due_ns ? check_ns : due_ns;
	}
	grpc_accept_again(g);
	if (due_ns != UINT64_MAX)
		grpc_schedule(g, due_ns);
}

/* --- connections come --- */

static void stop_accepting(struct grpc *g)
{
	loop_remove(g->listener);
	g->listener = NULL;
}

/* Where not, it is looked for again. */
static bool has_room(struct grpc *g)
{
	const uint64_t now_ns = clock_mono_ns();

	if (g->connection_count < g->max_connections || grpc_connection_make_room(g, now_ns))
		return true;
	grpc_schedule(g, now_ns + ROOM_AGAIN_S * NSEC_PER_SEC);
	return false;
}

static void on_listener(void *arg, int fd, uint32_t events)
{
	struct grpc *g = arg;
	(void)events;

	if (g->tls)
		tls_refresh(g->tls);
	for (int i = 0; i < ACCEPTS_A_TURN && g->listener; i++) {
		if (i && g->connection_count >= g->max_connections)
			return; /* nobody may wait any more: there is a next turn */
		if (!has_room(g)) {
			stop_accepting(g);
			return;
		}
		int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client >= 0) {
			grpc_connection_new(g, client);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			stop_accepting(g);
			grpc_schedule(g, clock_mono_ns() + ACCEPT_AGAIN_S * NSEC_PER_SEC);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

void grpc_accept_again(struct grpc *g)
{
	if (g->listener || g->listen_fd < 0 || g->connection_count > g->max_connections)
		return;
	if (loop_add_fd(g->loop, g->listen_fd, EPOLLIN, on_listener, g, &g->listener))
		grpc_schedule(g, clock_mono_ns() + ACCEPT_AGAIN_S * NSEC_PER_SEC);
}

/* --- its life --- */

static int fail(struct grpc *g, int error, struct server_error *err)
{
	grpc_free(g);
	snprintf(err->message, sizeof(err->message), "cannot start the gRPC server: %s", strerror(-error));
	return error;
}

static int set_up(struct grpc *g)
{
	g->in = malloc(GRPC_READ_BYTES);
	if (!g->in)
		return -ENOMEM;
	int ret = grpc_session_setup(g);
	if (!ret)
		ret = loop_add_timer(g->loop, on_timer, g, &g->timer);
	if (!ret)
		ret = loop_add_fd(g->loop, g->listen_fd, EPOLLIN, on_listener, g, &g->listener);
	return ret;
}

int grpc_new(const struct grpc_config *config, struct loop *loop, struct metrics *metrics, struct ingest *ingest,
	     struct grpc **ret, struct server_error *err)
{
	struct grpc *g = calloc(1, sizeof(*g));

	if (!g)
		return fail(NULL, -ENOMEM, err);
	g->loop = loop;
	g->ingest = ingest;
	g->tls = config->tls;
	g->tokens = config->tokens;
	g->due_ns = UINT64_MAX;
	g->max_connections = config->max_connections ? config->max_connections : DEFAULT_CONNECTIONS;
	g->request_timeout_ns = config->request_timeout_ns ? config->request_timeout_ns
							   : DEFAULT_REQUEST_TIMEOUT_S * NSEC_PER_SEC;
	g->idle_timeout_ns = config->idle_timeout_ns ? config->idle_timeout_ns : DEFAULT_IDLE_TIMEOUT_S * NSEC_PER_SEC;
	grpc_stats_init(&g->stats, metrics);
	g->listen_fd = listen_on(config->address, &g->port, err);
	if (g->listen_fd < 0) {
		int error = g->listen_fd;
		grpc_free(g);
		return error;
	}
	int error = set_up(g);
	if (error)
		return fail(g, error, err);
	*ret = g;
	return 0;
}

uint16_t grpc_port(const struct grpc *g)
{
	return g->port;
}

static void close_listener(struct grpc *g)
{
	stop_accepting(g);
	if (g->listen_fd >= 0)
		close(g->listen_fd);
	g->listen_fd = -1;
}

void grpc_quiesce(struct grpc *g)
{
	if (g->stopping)
		return;
	g->stopping = true;
	close_listener(g);
	for (struct grpc_connection *c = g->connections, *next; c; c = next) {
		next = c->next;
		for (struct grpc_call *call = c->calls; call; call = call->next)
			if (call->phase == GRPC_CALL_WATCHING)
				grpc_health_tell(call);
		grpc_connection_drain(c);
		grpc_connection_settle(c);
	}
}

bool grpc_is_quiet(const struct grpc *g)
{
	for (const struct grpc_connection *c = g->connections; c; c = c->next)
		if (c->phase == GRPC_OPEN || c->calls)
			return false;
	return true;
}

void grpc_stop(struct grpc *g, uint64_t deadline_ns)
{
	grpc_quiesce(g);
	while (!grpc_is_quiet(g) && clock_mono_ns() < deadline_ns)
		loop_step(g->loop, LOOK_MS);
}

void grpc_free(struct grpc *g)
{
	if (!g)
		return;
	close_listener(g);
	while (g->connections)
		grpc_connection_free(g->connections);
	loop_remove(g->timer);
	nghttp2_session_callbacks_del(g->callbacks);
	nghttp2_option_del(g->option);
	buf_fini(&g->out);
	free(g->in);
	free(g);
}
