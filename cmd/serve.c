/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth serve`: the backend alone. Receives OTLP and passes it to the sinks; into the store when none is named. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "backend/grpc/grpc.h"
#include "backend/ingest/ingest.h"
#include "backend/api/query_thread.h"
#include "backend/routes/routes.h"
#include "backend/http/server.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "cmd/halves/as_owner.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/guard.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/store_of.h"
#include "cmd/setup/workloads_of.h"
#include "proto/arena.h"

enum {
	ARENAS = 2,		      /* of the allocator: the receiver's, and one of all other threads */
	KEPT_MEMORY_BYTES = 16 << 20, /* by each of them */
	SPARE_BYTES = 4 << 20,	      /* by both, longer than ... */
	GIVE_BACK_S = 5,
};

/* Bursts of several threads come one after another, and what each takes would stay: more than they ever need at once. */
static void give_back(void *arg)
{
	(void)arg;
	arenas_give_back();
	memory_give_back_above(SPARE_BYTES);
}

static void start_giving_back(struct session *s)
{
	struct loop_watch *timer;
	int err = loop_add_timer(s->loop, give_back, NULL, &timer);

	err = err ? err : loop_set_timer(timer, GIVE_BACK_S * NSEC_PER_SEC, GIVE_BACK_S * NSEC_PER_SEC);
	if (err)
		log_warn("memory that was freed is not given back to the system: %s", strerror(-err));
}

static void free_ingest(struct ingest **ingest)
{
	ingest_free(*ingest);
}

static void free_queries(struct query_thread **queries)
{
	query_thread_free(*queries);
}

struct receivers {
	struct server *http;
	struct grpc *grpc;			      /* NULL: off */
	struct server *page, *rest, *pprof, *metrics; /* ports of their own for some of the pages; NULL: none */
	struct workloads *workloads;		      /* NULL: not kept */
};

static void receivers_fini(struct receivers *r)
{
	grpc_free(r->grpc);
	server_free(r->http);
	server_free(r->page);
	server_free(r->rest);
	server_free(r->pprof);
	server_free(r->metrics);
}

static void stop_receivers(void *arg, uint64_t deadline_ns)
{
	struct receivers *r = arg;

	if (r->grpc)
		grpc_quiesce(r->grpc);
	server_stop(r->http, deadline_ns);
	if (r->grpc)
		grpc_stop(r->grpc, deadline_ns);
	if (r->page)
		server_stop(r->page, deadline_ns);
	if (r->rest)
		server_stop(r->rest, deadline_ns);
	if (r->pprof)
		server_stop(r->pprof, deadline_ns);
	if (r->metrics)
		server_stop(r->metrics, deadline_ns);
}

/* One server for @pages, on @address; NULL: it is not wanted. */
static int listen_on_http(struct session *s, const struct guard *guard, enum server_pages pages, const char *address,
			  struct ingest *ingest, struct query_thread *queries, struct workloads *workloads,
			  struct server **ret, struct server_error *error)
{
	const struct server_config config = {
		.routes = &http_routes,
		.http_address = address,
		.pages = pages,
		.workloads = workloads,
		.tls = guard->tls,
		.tokens = guard->tokens,
		.users = &guard->users,
		.asks_clients = guard->asks_clients,
		.cors_origins = (const char *const *)s->config->cors_origins.items,
		.page_names = (const char *const *)s->config->page_names.items,
		.queries = queries,
		.max_connections = (unsigned)s->config->max_connections,
	};

	return address ? server_new(&config, s->loop, s->metrics, ingest, ret, error) : 0;
}

static int listen_on_grpc(struct session *s, const struct guard *guard, struct ingest *ingest, struct grpc **ret,
			  struct server_error *error)
{
	const struct grpc_config config = {
		.address = s->config->grpc_address,
		.tls = guard->tls,
		.tokens = guard->tokens,
		.max_connections = (unsigned)s->config->max_connections,
	};

	return strcmp(config.address, "off") == 0 ? 0 : grpc_new(&config, s->loop, s->metrics, ingest, ret, error);
}

static void tell_further(const struct guard *guard, const char *address, const struct server *server, const char *what)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;

	if (!server)
		return;
	guard_url(guard, "http", address, server_http_port(server), &url);
	log_info("listening on %s for %s", buf_text(&url), what);
}

static void tell_addresses(const struct session *s, const struct guard *guard, const struct receivers *r, const char *names)
{
	AUTO(buf_fini) struct buf http = BUF_EMPTY, grpc = BUF_EMPTY, page = BUF_EMPTY;

	guard_url(guard, "http", s->config->http_address, server_http_port(r->http), &http);
	if (r->grpc)
		guard_url(guard, "grpc", s->config->grpc_address, grpc_port(r->grpc), &grpc);
	log_info("listening on %s for OTLP/HTTP (POST /v1development/profiles), /metrics and /healthz%s%s%s; profiles go to "
		 "%s",
		 buf_text(&http), r->grpc ? ", on " : "", buf_text(&grpc), r->grpc ? " for OTLP/gRPC" : "", names);
	if (r->page)
		guard_url(guard, "http", s->config->page_address, server_http_port(r->page), &page);
	page_warn_of_nothing(s);
	if (page_is_wanted(s))
		log_info("page at %s/", buf_text(r->page ? &page : &http));
	tell_further(guard, s->config->metrics_address, r->metrics, "/metrics alone");
	tell_further(guard, s->config->rest_address, r->rest, "/workloads alone");
	tell_further(guard, s->config->pprof_address, r->pprof, "hearth's own profile (/debug/pprof/) alone");
	if (r->pprof)
		log_warn(
			"--pprof-address has no profile to show: 'hearth serve' samples nothing, also not itself; a 'hearth "
			"run' with --pprof-address does");
}

static int listen_on_all(struct session *s, const struct guard *guard, struct ingest *ingest, struct query_thread *queries,
			 struct receivers *r, struct server_error *error)
{
	const struct config *config = s->config;
	const char *page = page_is_wanted(s) ? config->page_address : NULL;
	int err = listen_on_http(s, guard, config->page_address ? PAGES_RECEIVER : PAGES_ALL, config->http_address, ingest,
				 queries, r->workloads, &r->http, error);

	if (!err)
		err = listen_on_http(s, guard, PAGES_PAGE, page, ingest, queries, NULL, &r->page, error);
	if (!err)
		err = listen_on_grpc(s, guard, ingest, &r->grpc, error);
	if (!err)
		err = listen_on_http(s, guard, PAGES_METRICS, config->metrics_address, ingest, NULL, NULL, &r->metrics,
				     error);
	if (!err)
		err = listen_on_http(s, guard, PAGES_WORKLOADS, config->rest_address, ingest, NULL, r->workloads, &r->rest,
				     error);
	if (!err)
		err = listen_on_http(s, guard, PAGES_PPROF, config->pprof_address, ingest, NULL, NULL, &r->pprof, error);
	return err;
}

/* Both protocols may have as many connections as --max-connections says. */
static void raise_file_limit(uint64_t max_connections)
{
	enum { OTHER_FILES = 200 };
	uint64_t wanted = 2 * max_connections + OTHER_FILES;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= wanted)
		return;
	files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < wanted)
		log_warn("only %" PRIu64
			 " files may be open, which is less than --max-connections takes: raise 'ulimit -Hn' to "
			 "%" PRIu64,
			 (uint64_t)files.rlim_cur, wanted);
}

static int listen_and_serve(struct session *s, const char *names)
{
	AUTO(guard_fini) struct guard guard = { 0 };
	struct ingest_config ingest_config = {
		.max_receive_bytes = s->config->max_receive_bytes,
		.receive_memory = s->config->receive_memory,
	};
	AUTO(free_queries) struct query_thread *queries = NULL;
	AUTO(free_ingest) struct ingest *ingest = NULL;
	AUTO(receivers_fini) struct receivers receivers = { 0 };
	struct server_error error = { "" };
	int run_err, err = guard_init(&guard, s->config, s->metrics);

	err = err ? err : page_signals(s, false);
	if (err)
		return err;
	ingest_config.signals = s->signals;
	if (page_is_wanted(s))
		err = page_queries(s, s->loop, false, &queries);
	if (err)
		return err;
	raise_file_limit(s->config->max_connections);
	err = workloads_wrap(s->config, s->metrics, &s->sink);
	if (!err)
		err = ingest_new(&ingest_config, s->loop, s->metrics, s->sink, &ingest);
	receivers.workloads = workloads_here();
	if (!err)
		err = listen_on_all(s, &guard, ingest, queries, &receivers, &error);
	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	start_giving_back(s);
	tell_addresses(s, &guard, &receivers, names);
	run_err = session_run(s);
	err = session_drain(s, stop_receivers, &receivers);
	session_log_undelivered(s, err);
	return run_err ? run_err : err;
}

static int run_serve(const struct config *config)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(session_close) struct session s = { 0 };
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct config with_default = *config; /* its lists stay @config's */
	bool is_default;
	int err;

	/* Bodies and decoded requests of some MB stay mapped, or each request would fault its pages in again. */
	mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY_BYTES);
	mallopt(M_ARENA_MAX, ARENAS);
	if (config->pipelines && pipelines_have_source(config->pipelines, SOURCE_AGENT)) {
		log_error("the file has a receiver that samples this machine, which 'hearth run --config FILE' does, not "
			  "'hearth serve'");
		return STATUS_USAGE;
	}
	if (config->pipelines)
		pipelines_say(config);
	is_default = !sinks_are_named(config);
	if (is_default) {
		with_default.print = true;
		if (store_default_folder(&folder))
			log_warn("profiles are printed but not kept: HOME is not set; say where with --store");
		else
			with_default.store = (char *)(uintptr_t)buf_text(&folder);
	}
	if (as_owner_serve(&with_default) || session_open(&s, &with_default) || session_end_on_signals(&s))
		return STATUS_FAILED;
	s.current = config;
	s.is_service = true;
	if (sinks_use_stdout(&with_default))
		session_end_on_closed_stdout(&s);
	err = sinks_of(&with_default, s.metrics, &s.sink, &s.store, &names, &error);
	if (err && is_default && with_default.store) { /* nobody asked for the store */
		log_warn("profiles are printed but not kept: %s", buf_text(&error));
		buf_reset(&error);
		buf_reset(&names);
		with_default.store = NULL;
		err = sinks_of(&with_default, s.metrics, &s.sink, &s.store, &names, &error);
	}
	if (err) {
		log_error("%s", buf_text(&error));
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	}
	return listen_and_serve(&s, buf_text(&names)) ? STATUS_FAILED : STATUS_DONE;
}

const struct cmd cmd_serve = {
	.name = "serve",
	.bit = ON_SERVE,
	.summary = "receive profiles over OTLP and keep, print or forward them",
	.operands = "",
	.description = "The backend alone: receives OTLP profiles over HTTP and gRPC and passes them to the sinks; "
		       "prints them and keeps them in the store when none is named. "
		       "/metrics and /healthz are on the port of HTTP. Needs no root.",
	.example = "hearth serve --print",
	.run = run_serve,
};
