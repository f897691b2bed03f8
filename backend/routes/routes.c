/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes: the one place that says which paths and methods exist. Constant, so any thread may read it. */
#include "backend/routes/routes.h"

#include "backend/api/api.h"
#include "backend/routes/handlers.h"
#include "base/cleanup.h"

#define ON(page) (1u << PAGES_##page)
/* Addresses of senders, scrapers, probes and links to the page may have parameters that are for others. */
static const char *any_params(const struct request *r)
{
	(void)r;
	return NULL;
}

#define RECEIVER(url, what)                                                                                                 \
	{                                                                                                                   \
		.method = "POST", .path = url, .signal = what, .guard = GUARD_NAME, .has_cors = true, .params = any_params, \
		.begin = receiver_begin, .handle = receiver_take                                                            \
	}

static const struct route routes[] = {
	RECEIVER("/v1development/profiles", INGEST_PROFILES),
	RECEIVER("/v1/profiles", INGEST_PROFILES),
	RECEIVER("/v1/logs", INGEST_LOGS),
	RECEIVER("/v1/metrics", INGEST_METRICS),
	RECEIVER("/v1/traces", INGEST_TRACES),
	{ .method = "GET",
	  .path = "/metrics",
	  .guard = GUARD_NAME,
	  .params = any_params,
	  .pages = ON(METRICS) | ON(PAGE),
	  .handle = page_metrics },
	{ .method = "GET",
	  .path = "/healthz",
	  .is_public = true,
	  .params = any_params,
	  .pages = ON(METRICS) | ON(WORKLOADS) | ON(PAGE),
	  .handle = page_health },
	{ .method = "GET",
	  .path = "/readyz",
	  .is_public = true,
	  .params = any_params,
	  .pages = ON(METRICS) | ON(WORKLOADS) | ON(PAGE),
	  .handle = page_ready },
	{ .method = "GET", .path = "/workloads", .guard = GUARD_NAME, .pages = ON(WORKLOADS), .handle = page_workloads },
	{ .method = "GET", .path = "/workload/", .guard = GUARD_NAME, .pages = ON(WORKLOADS), .handle = page_workload },
	{ .method = "GET", .path = "/", .guard = GUARD_PAGE, .params = any_params, .handle = page_file },
	{ .method = "GET", .path = "/page/login.css", .is_public = true, .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "GET", .path = "/page/login.js", .is_public = true, .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "GET", .path = "/page/", .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "POST", .path = "/login", .guard = GUARD_PAGE, .handle = login_open },
	{ .method = "GET", .path = "/session", .is_public = true, .guard = GUARD_PAGE, .handle = login_session },
	{ .method = "POST", .path = "/logout", .guard = GUARD_PAGE, .handle = login_close },
	{ .method = "POST",
	  .path = "/api/v1/symbols",
	  .guard = GUARD_PAGE,
	  .max_bytes = API_SYMBOLS_MAX_BYTES,
	  .begin = page_symbols_begin,
	  .write = page_symbols_write,
	  .handle = page_symbols,
	  .cancel = page_api_cancel,
	  .end = page_symbols_end },
	{ .method = "POST",
	  .path = "/api/v1/clear",
	  .guard = GUARD_PAGE,
	  .handle = page_api_clear,
	  .cancel = page_api_cancel },
	{ .method = "GET",
	  .path = "/api/v1/",
	  .guard = GUARD_PAGE,
	  .params = page_api_params,
	  .handle = page_api,
	  .cancel = page_api_cancel },
	{ .method = "GET",
	  .path = "/debug/pprof/",
	  .guard = GUARD_PAGE,
	  .pages = ON(PPROF),
	  .asks_basic = true,
	  .params = page_pprof_params,
	  .handle = page_pprof,
	  .cancel = page_pprof_cancel },
	{ .method = "POST",
	  .path = CONNECT_PATH,
	  .guard = GUARD_PAGE,
	  .write_error = api_write_connect_error,
	  .begin = page_connect_begin,
	  .handle = page_connect,
	  .cancel = page_api_cancel },
	{ .method = "GET",
	  .path = "/pprof/",
	  .guard = GUARD_PAGE,
	  .asks_basic = true,
	  .params = page_api_params,
	  .handle = page_api,
	  .cancel = page_api_cancel },
};

const struct routes http_routes = {
	.list = routes,
	.count = ARRAY_LEN(routes),
	.login_form = page_login_form,
	.instead = PAGE_PPROF_INSTEAD,
};

_Static_assert(ARRAY_LEN(routes) <= STATS_PATHS_MAX, "each route has counters of its own");
