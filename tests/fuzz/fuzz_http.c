/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection with any bytes on it, through libmicrohttpd into the whole server: paths, headers, bodies of every framing.
 * Afterwards nothing may be left of it: no connection, no request, no memory claimed.
 */
#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/http/http.h"
#include "backend/routes/routes.h"
#include "backend/http/server.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "proto/sink.h"

enum { MAX_BYTES = 4096, ROUNDS = 200 };

static struct loop *loop;
static struct ingest *ingest;
static struct server *server;

static int take(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink;
	(void)ack;
	return p->sample_events == 3 ? -EAGAIN : 0;
}

static const struct sink_ops ops = { .name = "fuzz", .consume = take };
static struct sink sink = { .ops = &ops };

static void start(void)
{
	static const char *const origins[] = { "http://a", NULL }, *const names[] = { "a", NULL };
	const struct ingest_config limits = { .max_receive_bytes = MAX_BYTES, .receive_memory = 4 * MAX_BYTES };
	const struct server_config config = {
		.routes = &http_routes, .http_address = "127.0.0.1:0", .cors_origins = origins, .page_names = names
	};
	struct server_error err;
	struct metrics *metrics = metrics_new();

	if (!metrics || loop_new(&loop) || ingest_new(&limits, loop, metrics, &sink, &ingest) ||
	    server_new(&config, loop, metrics, ingest, &server, &err))
		abort();
}

static void run(int fd)
{
	uint8_t answer[65536];

	for (int i = 0; i < ROUNDS && server->connections; i++) {
		server_wake(server);
		loop_step(loop, 0);
		while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
			;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fds[2], last_rounds = 0;

	if (!server)
		start();
	if (len > 100000 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return 0;
	if (MHD_add_connection(server->mhd, fds[0], (const struct sockaddr *)&address, sizeof(address)) != MHD_YES)
		abort();
	if (len && send(fds[1], data, len, MSG_NOSIGNAL) < 0)
		abort();
	shutdown(fds[1], SHUT_WR);
	run(fds[1]);
	for (int i = 0; i < 3 && server->connections; i++) { /* an end of stream that libmicrohttpd missed */
		server->again_armed = false;
		connections_sweep(server, server->swept_ns);
		run(fds[1]);
	}
	close(fds[1]);
	while (ingest_budget(ingest)->used_bytes && last_rounds++ < ROUNDS) /* freed profiles are told through the loop */
		loop_step(loop, 0);
	if (server->connections || server->open_requests || ingest_pending(ingest) || ingest_budget(ingest)->used_bytes)
		abort();
	return 0;
}
