/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's thread runs its loop until it is told to end, by work posted to it; everything of the server is made before
 * the thread starts and freed after it ended, on the main thread. Words to the agent go the other way, as work posted to its
 * loop.
 */
#include "cmd/setup/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "backend/api/api.h"
#include "backend/grpc/grpc.h"
#include "backend/ingest/ingest.h"
#include "backend/api/query_thread.h"
#include "backend/routes/routes.h"
#include "backend/http/server.h"
#include "backend/signals/signals.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/thread.h"
#include "base/usage.h"
#include "cmd/options/config.h"
#include "cmd/files/exports.h"
#include "cmd/setup/guard.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/session.h"
#include "cmd/setup/workloads_of.h"
#include "sinks/sinks.h"

enum { MAX_QUESTIONS = 256, PORTS_TO_TRY = 20, MAX_CONNECTIONS = 256 };

struct page {
	struct session *session;
	struct loop *loop;
	struct guard guard;
	struct sink *received; /* where OTLP that comes in goes, the session's or ... */
	struct sink *writer;   /* ... ours; nowhere without a store, as then nobody receives any */
	struct ingest *ingest;
	struct query_thread *queries;
	struct server *server;	 /* NULL: there is none to show profiles */
	struct server *receiver; /* where it is not the same; NULL: none */
	struct grpc *grpc;	 /* NULL: none */
	struct server *metrics;	 /* of /metrics alone; NULL: none */
	struct server *rest;	 /* of /workloads alone; NULL: none */
	struct server *pprof;	 /* of hearth's own profile alone; NULL: none */
	struct buf url;
	pthread_t thread;
	bool is_running;
	struct loop_work stop;
	uint64_t stop_deadline_ns;
};

static bool is_off(const char *address)
{
	return address && strcmp(address, "off") == 0;
}

bool page_is_wanted(const struct session *s)
{
	return s->store && !is_off(s->config->page_address);
}

void page_warn_of_nothing(const struct session *s)
{
	if (s->config->page_address && !is_off(s->config->page_address) && !s->store)
		log_warn("no page at %s: profiles are not kept here, which --store does", s->config->page_address);
}

int page_signals(struct session *s, bool is_read_only)
{
	struct signals_config config = { .bytes = s->config->signals_bytes,
					 .age_ns = s->config->signals_age_ns,
					 .read_only = is_read_only };
	struct store_status status = { 0 };
	int err;

	if (!page_is_wanted(s) || (!config.bytes && !is_read_only) || s->signals)
		return 0;
	(void)s->store->read->status(s->store, &status); /* the folder is there also when it fails */
	config.folder = status.folder;
	config.store = s->store->records ? s->store : NULL;
	err = signals_new(&config, s->metrics, &s->signals);
	if (err)
		log_error("cannot keep spans and logs: %s", strerror(-err));
	return err;
}

int page_queries(struct session *s, struct loop *loop, bool is_live, struct query_thread **ret)
{
	const struct api_config config = {
		.store = s->store,
		.metrics = s->metrics,
		.exports = &exports,
		.signals = s->signals,
		.is_live = is_live,
		.trace_url = s->config->trace_url,
		.is_page_alone = s->config->page_address,
	};
	struct api *api = NULL;
	int err = api_new(&config, &api);

	if (!err)
		err = query_thread_new(api, loop, MAX_QUESTIONS, ret);
	if (err)
		log_error("cannot start answering questions: %s", strerror(-err));
	return err;
}

/* --- windows: from the server's thread to the agent's --- */

struct window {
	struct loop_work work;
	struct session *session;
	uint64_t end_ns;
};

static void ask_agent(struct loop_work *work)
{
	struct window *w = (struct window *)work;

	if (w->session->agent) {
		own_profiles_look(w->session, w->end_ns);
		(void)agent_report_at(w->session->agent, w->end_ns); /* else the next report brings it */
	} else if (w->session->report_at) {
		w->session->report_at(w->session->report_arg, w->end_ns);
	}
	free(w);
}

static void on_window(void *arg, uint64_t at_ns)
{
	struct page *page = arg;
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return;
	w->work.fn = ask_agent;
	w->session = page->session;
	w->end_ns = at_ns;
	loop_post(page->session->loop, &w->work);
}

/* --- the server --- */

static void *page_main(void *arg)
{
	struct page *page = arg;

	(void)loop_run(page->loop);
	return NULL;
}

static void stop_serving(struct loop_work *work)
{
	struct page *page = (struct page *)((char *)work - offsetof(struct page, stop));

	if (page->grpc)
		grpc_quiesce(page->grpc);
	if (page->receiver)
		server_stop(page->receiver, page->stop_deadline_ns);
	if (page->grpc)
		grpc_stop(page->grpc, page->stop_deadline_ns);
	if (page->rest)
		server_stop(page->rest, page->stop_deadline_ns);
	if (page->pprof)
		server_stop(page->pprof, page->stop_deadline_ns);
	if (page->server)
		server_stop(page->server, page->stop_deadline_ns);
	if (page->metrics)
		server_stop(page->metrics, page->stop_deadline_ns);
	loop_stop(page->loop);
}

/* @address with another port. */
static void with_port(const char *address, unsigned port, struct buf *out)
{
	const char *colon = strrchr(address, ':');

	buf_printf(out, "%.*s:%u", colon ? (int)(colon - address) : (int)strlen(address), address, port);
}

/* Sampling has begun: here, or in the other half, which tells of itself each second. */
static bool is_ready(void *arg)
{
	const struct session *s = ((struct page *)arg)->session;

	if (s->agent)
		return __atomic_load_n(&s->start_ns, __ATOMIC_RELAXED);
	return !s->report_at || usage_of_other().pid;
}

/* Whether there is an agent, here or in the other half. */
static bool samples(const struct session *s)
{
	return s->agent || s->report_at;
}

static int serve_on(struct page *page, enum server_pages pages, const char *address, struct server **ret,
		    struct server_error *error)
{
	const struct server_config config = {
		.routes = &http_routes,
		.http_address = address,
		.pages = pages,
		.max_connections = MAX_CONNECTIONS,
		.tls = page->guard.tls,
		.tokens = page->guard.tokens,
		.users = &page->guard.users,
		.asks_clients = page->guard.asks_clients,
		.page_names = (const char *const *)page->session->config->page_names.items,
		.workloads = pages == PAGES_WORKLOADS ? workloads_here() : NULL,
		.queries = pages != PAGES_PPROF || samples(page->session) ? page->queries : NULL,
		.own = pages == PAGES_PPROF && samples(page->session) ? own_profiles_here() : NULL,
		.window_ends = on_window,
		.window_arg = page,
		.is_ready = is_ready,
		.ready_arg = page,
	};

	return server_new(&config, page->loop, page->session->metrics, page->ingest, ret, error);
}

/* The port that was asked for, or one of the next ones where somebody has it. */
static int find_port(struct page *page, enum server_pages pages, const char *address, struct server **ret, struct buf *url)
{
	const char *colon = strrchr(address, ':'), *what = pages == PAGES_RECEIVER ? "the receiver" : "the page";
	unsigned first = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0, port = first;
	struct server_error error = { "" };
	int err = serve_on(page, pages, address, ret, &error);

	while (err == -EADDRINUSE && first && ++port < first + PORTS_TO_TRY && port <= UINT16_MAX) {
		AUTO(buf_fini) struct buf next = BUF_EMPTY;

		with_port(address, port, &next);
		err = serve_on(page, pages, buf_text(&next), ret, &error);
	}
	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	if (port != first && first)
		log_warn("%s is taken by another program; %s has port %u", address, what, port);
	guard_url(&page->guard, "http", address, server_http_port(*ret), url);
	return 0;
}

/* Serves @pages alone; NULL: nobody asks for it. A user who asks for a port for it wants exactly that port. */
static int listen_alone(struct page *page, enum server_pages pages, const char *address, const char *what,
			struct server **ret)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	struct server_error error = { "" };
	int err = address && !is_off(address) ? serve_on(page, pages, address, ret, &error) : 0;

	if (err)
		log_error("%s", error.message[0] ? error.message : strerror(-err));
	if (err || !*ret)
		return err;
	guard_url(&page->guard, "http", address, server_http_port(*ret), &url);
	log_info("listening on %s for %s", buf_text(&url), what);
	return 0;
}

static int listen_on_grpc(struct page *page)
{
	const struct grpc_config config = {
		.address = page->session->config->grpc_address,
		.tls = page->guard.tls,
		.tokens = page->guard.tokens,
		.max_connections = MAX_CONNECTIONS,
	};
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	struct server_error error = { "" };
	int err = is_off(config.address)
			  ? 0
			  : grpc_new(&config, page->loop, page->session->metrics, page->ingest, &page->grpc, &error);

	if (err)
		log_error("%s", error.message[0] ? error.message : strerror(-err));
	if (err || !page->grpc)
		return err;
	guard_url(&page->guard, "grpc", config.address, grpc_port(page->grpc), &url);
	log_info("listening on %s for OTLP/gRPC", buf_text(&url));
	return 0;
}

/* A receiver of a file's pipelines: over HTTP, where the page is not at that address, and over gRPC. */
static int listen_for_otlp(struct page *page)
{
	const char *address = page->session->config->http_address;
	int err = page->receiver || page->server ? 0
						 : listen_alone(page, PAGES_RECEIVER, address, "OTLP/HTTP", &page->receiver);

	return err ? err : listen_on_grpc(page);
}

/* Page and receiver. */
static int listen_for_profiles(struct page *page)
{
	const struct config *config = page->session->config;
	const char *shown = config->page_address ? config->page_address : config->http_address;
	AUTO(buf_fini) struct buf received = BUF_EMPTY;
	int err = 0;

	if (!is_off(shown))
		err = find_port(page, config->page_address ? PAGES_PAGE : PAGES_ALL, shown, &page->server, &page->url);
	if (page->server)
		buf_putc(&page->url, '/');
	if (err || !config->page_address || is_off(config->http_address))
		return err;
	err = find_port(page, PAGES_RECEIVER, config->http_address, &page->receiver, &received);
	if (!err)
		log_info("listening on %s for OTLP/HTTP", buf_text(&received));
	return err;
}

static bool serves_profiles(const struct session *s)
{
	const struct config *config = s->config;

	return s->store && (!is_off(config->http_address) || (config->page_address && !is_off(config->page_address)));
}

/* The ports that serve one thing alone. */
static int listen_for_each(struct page *page)
{
	const struct config *config = page->session->config;
	int err = 0;

	if (workloads_here())
		err = listen_alone(page, PAGES_WORKLOADS, config->rest_address, "/workloads alone", &page->rest);
	if (!err)
		err = listen_alone(page, PAGES_PPROF, config->pprof_address, "hearth's own profile (/debug/pprof/) alone",
				   &page->pprof);
	return err ? err : listen_alone(page, PAGES_METRICS, config->metrics_address, "/metrics alone", &page->metrics);
}

static int make(struct page *page)
{
	const struct config *config = page->session->config;
	struct ingest_config ingest_config = {
		.max_receive_bytes = config->max_receive_bytes,
		.receive_memory = config->receive_memory,
	};
	struct store *store = page->session->store;
	int err = guard_init(&page->guard, config, page->session->metrics);

	if (err)
		return err;
	page->received = page->session->received;
	err = loop_new(&page->loop);
	if (!err)
		err = page_signals(page->session, false);
	ingest_config.signals = page->session->signals;
	if (!err && !page->received) {
		err = store ? store->write->writer(store, &page->writer) : sink_null_new(&page->writer);
		page->received = page->writer;
	}
	if (!err)
		err = ingest_new(&ingest_config, page->loop, page->session->metrics, page->received, &page->ingest);
	if (err) {
		log_error("cannot start the page: %s", strerror(-err));
		return err;
	}
	if (serves_profiles(page->session) || (store && config->pprof_address))
		err = page_queries(page->session, page->loop, samples(page->session), &page->queries);
	if (!err && serves_profiles(page->session))
		err = listen_for_profiles(page);
	if (!err && page->session->received)
		err = listen_for_otlp(page);
	return err ? err : listen_for_each(page);
}

int page_start(struct session *s, struct page **ret)
{
	struct page *page;
	int err;

	if (!serves_profiles(s) && !s->config->metrics_address && !s->config->pprof_address && !s->received &&
	    !workloads_here())
		return 0;
	page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	page->session = s;
	page->stop.fn = stop_serving;
	err = make(page);
	if (!err) {
		err = thread_start(&page->thread, "page", page_main, page);
		page->is_running = !err;
		if (err)
			log_error("cannot start the page: %s", strerror(-err));
	}
	if (err) {
		page_free(page);
		return err;
	}
	*ret = page;
	return 0;
}

const char *page_url(const struct page *page)
{
	return page && page->server ? buf_text((struct buf *)&page->url) : NULL;
}

static uint16_t port_of(const struct server *server)
{
	return server ? server_http_port(server) : 0;
}

void page_ports(const struct page *page, uint16_t ports[static PAGE_PORTS])
{
	memset(ports, 0, PAGE_PORTS * sizeof(*ports));
	if (!page)
		return;
	ports[PAGE_PORT_SHOWN] = port_of(page->server);
	ports[PAGE_PORT_RECEIVER] = port_of(page->receiver);
	ports[PAGE_PORT_METRICS] = port_of(page->metrics);
	ports[PAGE_PORT_GRPC] = page->grpc ? grpc_port(page->grpc) : 0;
	ports[PAGE_PORT_REST] = port_of(page->rest);
	ports[PAGE_PORT_PPROF] = port_of(page->pprof);
}

void page_write_url(const struct config *config, uint16_t port, struct buf *out)
{
	const char *address = config->page_address ? config->page_address : config->http_address;

	buf_puts(out, config->tls_cert ? "https://" : "http://");
	with_port(address, port, out);
	buf_putc(out, '/');
}

void page_stop(void *arg, uint64_t deadline_ns)
{
	struct page *page = arg;

	if (!page || !page->is_running)
		return;
	page->stop_deadline_ns = deadline_ns;
	loop_post(page->loop, &page->stop);
	pthread_join(page->thread, NULL);
	page->is_running = false;
}

void page_free(struct page *page)
{
	if (!page)
		return;
	page_stop(page, 0);
	grpc_free(page->grpc);
	server_free(page->rest);
	server_free(page->pprof);
	server_free(page->metrics);
	server_free(page->receiver);
	server_free(page->server);
	ingest_free(page->ingest);
	query_thread_free(page->queries);
	sink_free(page->writer);
	loop_free(page->loop);
	guard_fini(&page->guard);
	buf_fini(&page->url);
	free(page);
}
