/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's life and its place in the caller's loop. libmicrohttpd runs without threads of its own: its epoll descriptor
 * is watched by ours, so every callback (request.c) happens on the loop's thread, inside pump(). The listening socket is
 * ours until libmicrohttpd takes it, and again after server_stop() took it back.
 */
#include "backend/http/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backend/http/http.h"
#include "backend/http/tls.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"

enum {
	DEFAULT_CONNECTIONS = 1000,
	DEFAULT_REQUEST_TIMEOUT_S = 60,
	DEFAULT_IDLE_TIMEOUT_S = 75,
	/* Headers and read buffer of one connection. With more than 32 KB libmicrohttpd maps it (memorypool.c), so that only
	 * pages that are used count; smaller, they come from the heap, where most were used before. */
	CONNECTION_MEMORY_BYTES = 36 << 10,
	PUMP_ROUNDS = 16, /* before the loop's other watches have their turn */
	SWEEPS_PER_TIMEOUT = 60,
};

static void arm_again(struct server *s, uint64_t after_ns)
{
	if (!s->again || (after_ns == 0 && !s->again_armed)) /* it is being freed, or there is nothing to disarm */
		return;
	loop_set_timer(s->again, after_ns, 0);
	s->again_armed = after_ns != 0;
}

void server_wake(struct server *s)
{
	s->run_again = true; /* when it is working right now */
	arm_again(s, 1);
}

/* Lets libmicrohttpd work; one round moves each ready connection one step. */
static void pump(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;
	bool has_timeout = false;
	for (int round = 0; round < PUMP_ROUNDS; round++) {
		s->run_again = false;
		MHD_run(s->mhd);
		has_timeout = MHD_get_timeout(s->mhd, &wait_ms) == MHD_YES;
		if (!s->run_again && (!has_timeout || wait_ms > 0))
			break;
	}
	if (!has_timeout)
		arm_again(s, 0);
	else
		arm_again(s, wait_ms ? wait_ms * NSEC_PER_MSEC : 1);
}

static void on_ready(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	pump(arg);
}

static void on_again(void *arg)
{
	struct server *s = arg;
	s->again_armed = false;
	pump(s);
}

static uint64_t sweep_interval_ns(const struct server *s)
{
	return s->request_timeout_ns / SWEEPS_PER_TIMEOUT + 1;
}

static void on_sweep(void *arg)
{
	struct server *s = arg;
	uint64_t now_ns = clock_mono_ns();
	uint64_t late_ns = now_ns - s->swept_ns;

	/* A sweep that comes much too late means that we were held up (stopped, swapped out, suspended): that time is not
	 * held against the clients. */
	if (late_ns > 3 * sweep_interval_ns(s))
		for (struct connection *c = s->connections; c; c = c->next)
			c->since_ns += late_ns - sweep_interval_ns(s);
	s->swept_ns = now_ns;
	connections_sweep(s, now_ns);
	if (s->tls)
		tls_refresh(s->tls);
}

static struct MHD_Daemon *start_daemon(struct server *s, int listen_fd)
{
	const struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)connection_certificate },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (s->tls ? MHD_USE_TLS : 0);

	return MHD_start_daemon(flags, 0, NULL, NULL, request_step, s, /* */
				MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, s->max_connections,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, /* as the RFCs have it: a Host, no bare line feeds */
				MHD_OPTION_URI_LOG_CALLBACK, request_start, s, MHD_OPTION_NOTIFY_COMPLETED, request_end, s,
				MHD_OPTION_NOTIFY_CONNECTION, connection_change, s, MHD_OPTION_ARRAY, s->tls ? tls : none,
				MHD_OPTION_END);
}

static int join_loop(struct server *s)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOTSUP;
	int ret = loop_add_fd(s->loop, info->epoll_fd, EPOLLIN, on_ready, s, &s->ready);
	if (!ret)
		ret = loop_add_timer(s->loop, on_again, s, &s->again);
	if (!ret)
		ret = loop_add_timer(s->loop, on_sweep, s, &s->sweep);
	s->swept_ns = clock_mono_ns();
	return ret ? ret : loop_set_timer(s->sweep, sweep_interval_ns(s), sweep_interval_ns(s));
}

static int fail(struct server *s, int error, struct server_error *err)
{
	server_free(s);
	snprintf(err->message, sizeof(err->message), "cannot start the HTTP server: %s", strerror(-error));
	return error;
}

int server_new(const struct server_config *config, struct loop *loop, struct metrics *metrics, struct ingest *ingest,
	       struct server **ret, struct server_error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return fail(NULL, -ENOMEM, err);
	s->loop = loop;
	s->metrics = metrics;
	s->ingest = ingest;
	s->routes = config->routes;
	s->tls = config->tls;
	s->tokens = config->tokens;
	s->cors_origins = config->cors_origins;
	s->page_names = config->page_names;
	s->users = config->users;
	s->asks_clients = config->asks_clients;
	s->is_loopback = is_loopback_address(config->http_address);
	s->pages = config->pages;
	s->workloads = config->workloads;
	s->queries = config->queries;
	s->own = config->own;
	s->window_ends = config->window_ends;
	s->window_arg = config->window_arg;
	s->is_ready = config->is_ready;
	s->ready_arg = config->ready_arg;
	s->request_timeout_ns = config->request_timeout_ns ? config->request_timeout_ns
							   : DEFAULT_REQUEST_TIMEOUT_S * NSEC_PER_SEC;
	s->idle_timeout_ns = config->idle_timeout_ns ? config->idle_timeout_ns : DEFAULT_IDLE_TIMEOUT_S * NSEC_PER_SEC;
	s->max_connections = config->max_connections ? config->max_connections : DEFAULT_CONNECTIONS;
	server_stats_init(&s->stats, metrics);
	int fd = listen_on(config->http_address, &s->port, err);
	if (fd < 0) {
		server_free(s);
		return fd;
	}
	s->mhd = start_daemon(s, fd);
	if (!s->mhd) {
		close(fd);
		return fail(s, -ENOMEM, err);
	}
	int error = join_loop(s);
	if (error)
		return fail(s, error, err);
	*ret = s;
	return 0;
}

uint16_t server_http_port(const struct server *s)
{
	return s->port;
}

void server_stop(struct server *s, uint64_t deadline_ns)
{
	enum { LOOK_AGAIN_MS = 20 }; /* overdue connections, and the deadline */
	if (s->stopping)
		return;
	s->stopping = true;
	int listen_fd = MHD_quiesce_daemon(s->mhd);
	if (listen_fd >= 0)
		close(listen_fd);

	while (s->open_requests && clock_mono_ns() < deadline_ns) {
		if (loop_step(s->loop, s->again_armed ? 0 : LOOK_AGAIN_MS))
			break;
		on_sweep(s);
	}
}

void server_free(struct server *s)
{
	if (!s)
		return;
	loop_remove(s->ready);
	loop_remove(MOVE(s->again));
	loop_remove(s->sweep);
	/* libmicrohttpd cannot end suspended connections. */
	for (struct connection *c = s->connections; c; c = c->next)
		if (c->request)
			request_abort(c->request);
	if (s->mhd)
		MHD_stop_daemon(s->mhd); /* ends requests and connections, which free what they hold */
	sessions_fini(&s->sessions);
	free(s);
}
