/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth serve`: the backend alone. Receives OTLP and passes it to the sinks; printing when none is named. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>

#include "backend/ingest.h"
#include "backend/server.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/config.h"
#include "cmd/session.h"
#include "cmd/sinks_of.h"

enum { KEPT_MEMORY_BYTES = 16 << 20 };

/* Whether only this machine reaches @address, HOST:PORT. */
static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strncmp(address, "[::1]:", 6) || !strncmp(address, "localhost:", 10);
}

static void free_server(struct server **server)
{
	server_free(*server);
}

static void free_ingest(struct ingest **ingest)
{
	ingest_free(*ingest);
}

static void stop_server(void *arg, uint64_t deadline_ns)
{
	server_stop(arg, deadline_ns);
}

/* "127.0.0.1:0" with the port that was taken. */
static void print_address(const char *address, uint16_t port, struct buf *out)
{
	const char *colon = strrchr(address, ':');
	int host_len = colon ? (int)(colon - address) : (int)strlen(address);

	buf_printf(out, "http://%.*s:%u", host_len, address, port);
}

static int listen_and_serve(struct session *s, const char *names)
{
	const struct config *config = s->config;
	const struct ingest_config ingest_config = {
		.max_receive_bytes = config->max_receive_bytes,
		.receive_memory = config->receive_memory,
	};
	const struct server_config server_config = {
		.http_address = config->http_address,
		.max_connections = (unsigned)config->max_connections,
	};
	AUTO(buf_fini) struct buf address = BUF_EMPTY;
	AUTO(free_ingest) struct ingest *ingest = NULL;
	AUTO(free_server) struct server *server = NULL;
	struct server_error error = { "" };
	int run_err, err = ingest_new(&ingest_config, s->loop, s->metrics, s->sink, &ingest);

	if (!err)
		err = server_new(&server_config, s->loop, s->metrics, ingest, &server, &error);
	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	print_address(config->http_address, server_http_port(server), &address);
	log_info("listening on %s for OTLP/HTTP (POST /v1development/profiles), /metrics and /healthz; profiles go to %s",
		 buf_text(&address), names);
	if (!is_loopback(config->http_address))
		log_warn("%s is reachable from other machines, without TLS or a password", buf_text(&address));
	run_err = session_run(s);
	err = session_drain(s, stop_server, server);
	session_log_undelivered(s, err);
	return run_err ? run_err : err;
}

static int run_serve(const struct config *config)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(session_close) struct session s = { 0 };
	struct config with_default = *config; /* its lists stay @config's */
	int err;

	/* Bodies and decoded requests of some MB stay mapped, or each request would fault its pages in again. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY_BYTES);
	with_default.print |= !sinks_are_named(config);
	if (session_open(&s, &with_default) || session_end_on_signals(&s))
		return STATUS_FAILED;
	if (sinks_use_stdout(&with_default))
		session_end_on_closed_stdout(&s);
	err = sinks_of(&with_default, s.metrics, &s.sink, &names, &error);
	if (err) {
		log_error("%s", buf_text(&error));
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	}
	return listen_and_serve(&s, buf_text(&names)) ? STATUS_FAILED : STATUS_DONE;
}

const struct cmd cmd_serve = {
	.name = "serve",
	.bit = ON_SERVE,
	.summary = "receive profiles over OTLP/HTTP and print or forward them",
	.operands = "",
	.description = "The backend alone: receives OTLP profiles over HTTP and passes them to the sinks; prints them when "
		       "none is named. "
		       "/metrics and /healthz are on the same port. Needs no root.",
	.example = "hearth serve --print",
	.run = run_serve,
};
