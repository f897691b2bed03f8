/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes: the one place that says which paths and methods exist. Constant, so any thread may read it.
 */
#include <string.h>

#include "backend/api.h"
#include "backend/http.h"
#include "base/cleanup.h"

#define RECEIVER(url, what)                                                                                     \
	{                                                                                                       \
		.method = "POST", .path = url, .signal = what, .begin = receiver_begin, .handle = receiver_take \
	}

static const struct route routes[] = {
	RECEIVER("/v1development/profiles", INGEST_PROFILES),
	RECEIVER("/v1/profiles", INGEST_PROFILES),
	RECEIVER("/v1/logs", INGEST_LOGS),
	RECEIVER("/v1/metrics", INGEST_METRICS),
	RECEIVER("/v1/traces", INGEST_TRACES),
	{ .method = "GET", .path = "/metrics", .guard = GUARD_NAME, .handle = page_metrics },
	{ .method = "GET", .path = "/healthz", .is_public = true, .handle = page_health },
	{ .method = "GET", .path = "/workloads", .guard = GUARD_NAME, .handle = page_workloads },
	{ .method = "GET", .path = "/workload/", .guard = GUARD_NAME, .handle = page_workload },
	{ .method = "GET", .path = "/", .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "GET", .path = "/page/login.css", .is_public = true, .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "GET", .path = "/page/login.js", .is_public = true, .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "GET", .path = "/page/", .guard = GUARD_PAGE, .handle = page_file },
	{ .method = "POST", .path = "/login", .guard = GUARD_PAGE, .handle = page_login },
	{ .method = "GET", .path = "/session", .is_public = true, .guard = GUARD_PAGE, .handle = page_session },
	{ .method = "POST", .path = "/logout", .guard = GUARD_PAGE, .handle = page_logout },
	{ .method = "POST",
	  .path = "/api/v1/symbols",
	  .guard = GUARD_PAGE,
	  .begin = page_symbols_begin,
	  .write = page_symbols_write,
	  .handle = page_symbols },
	{ .method = "GET", .path = "/api/v1/", .guard = GUARD_PAGE, .handle = page_api },
	{ .method = "GET", .path = "/debug/pprof/", .guard = GUARD_PAGE, .asks_basic = true, .handle = page_api },
	{ .method = "POST", .path = CONNECT_PATH, .guard = GUARD_PAGE, .begin = page_connect_begin, .handle = page_connect },
	{ .method = "GET", .path = "/pprof/", .guard = GUARD_PAGE, .asks_basic = true, .handle = page_api },
};

_Static_assert(ARRAY_LEN(routes) <= STATS_PATHS_MAX, "each route has counters of its own");

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return len > 1 && folder[len - 1] == '/' && strncmp(path, folder, len) == 0;
}

const struct route *route_find(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		if (strcmp(routes[i].path, path) == 0 || is_below(path, routes[i].path))
			return &routes[i];
	return NULL;
}

bool route_is_on(const struct route *route, enum server_pages pages)
{
	if (pages == PAGES_METRICS)
		return route->handle == page_metrics || route->handle == page_health;
	if (pages == PAGES_WORKLOADS)
		return route->handle == page_workloads || route->handle == page_workload || route->handle == page_health;
	if (pages == PAGES_RECEIVER)
		return route->guard != GUARD_PAGE;
	if (pages == PAGES_PAGE)
		return route->guard == GUARD_PAGE || route->handle == page_metrics || route->handle == page_health;
	return true;
}

size_t route_index(const struct route *route)
{
	return (size_t)(route - routes);
}

static bool is_get(const struct route *route)
{
	return strcmp(route->method, "GET") == 0;
}

bool route_has_method(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 || (is_get(route) && strcmp(method, "HEAD") == 0);
}

const char *route_allow(const struct route *route)
{
	return is_get(route) ? "GET, HEAD" : route->method;
}
