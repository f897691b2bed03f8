/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the route of a path, and the methods that it takes. Pure functions. */
#include <string.h>

#include "backend/http/http.h"

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return len > 1 && folder[len - 1] == '/' && strncmp(path, folder, len) == 0;
}

const struct route *route_find(const struct routes *routes, const char *path)
{
	for (const struct route *r = routes->list; r < routes->list + routes->count; r++)
		if (strcmp(r->path, path) == 0 || is_below(path, r->path))
			return r;
	return NULL;
}

bool route_is_on(const struct route *route, enum server_pages pages)
{
	if (pages == PAGES_ALL || route->pages & 1u << pages)
		return true;
	return pages == PAGES_RECEIVER ? route->guard != GUARD_PAGE : pages == PAGES_PAGE && route->guard == GUARD_PAGE;
}

size_t route_index(const struct routes *routes, const struct route *route)
{
	return (size_t)(route - routes->list);
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
