/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see the page and ask questions. Profiles tell what a machine runs, so: only this machine, or with a token. And no
 * page of elsewhere through a visitor's browser: what comes from another origin is refused, and so is a name that is not
 * ours, or a site could point its own name at this address (DNS rebinding).
 *
 * Counters and workloads tell less, and their readers ask by whatever name they know a machine by. Where anybody who can
 * reach us may ask, a name adds nothing; but on loopback it is all that keeps other machines' sites out, so there it is
 * looked at, unless a token keeps them out. Loop's thread only.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "backend/http.h"

/* The host of "name:port" or "[::1]:port". */
static void copy_host(const char *authority, char *ret, size_t size)
{
	const char *begin = authority + (authority[0] == '['), *end = strpbrk(begin, authority[0] == '[' ? "]" : ":");
	size_t len = end ? (size_t)(end - begin) : strlen(begin);

	if (len >= size)
		len = 0; /* longer than any name: none of ours */
	memcpy(ret, begin, len);
	ret[len] = '\0';
}

/* An address says where it leads; a name is ours when we were told so. */
static bool is_ours(const struct server *s, const char *host)
{
	static const char local[] = "localhost";
	size_t len = strlen(host);
	struct in6_addr address;

	if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
		return true;
	if (strcasecmp(host, local) == 0 ||
	    (len > sizeof(local) && host[len - sizeof(local)] == '.' && strcasecmp(host + len - strlen(local), local) == 0))
		return true;
	for (const char *const *name = s->page_names; name && *name; name++)
		if (strcasecmp(*name, host) == 0)
			return true;
	return false;
}

/* "http://HOST" or "https://HOST", of the request's own Host. */
static bool is_same_origin(const char *origin, const char *host)
{
	const char *begin = strstr(origin, "://");

	return begin && strcasecmp(begin + 3, host) == 0;
}

static bool asks_by_our_name(struct request *r, const char *authority)
{
	char host[256];

	copy_host(authority, host, sizeof(host));
	if (!authority[0] || is_ours(r->server, host))
		return true;
	reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
		     "'%.100s' is no name of this page: use the address, or start hearth with --page-name %.100s", host,
		     host);
	return false;
}

static bool guard_page(struct request *r, const char *authority)
{
	const char *origin = request_header(r, MHD_HTTP_HEADER_ORIGIN);

	if (!r->server->is_loopback && !r->server->tokens) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
			     "the page is for this machine only: start hearth with --token-file to show it to others");
		return false;
	}
	if (!asks_by_our_name(r, authority))
		return false;
	if (!origin || is_same_origin(origin, authority))
		return true;
	reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN, "pages of %.100s may not ask here", origin);
	return false;
}

bool page_guard(struct request *r)
{
	const char *host = request_header(r, MHD_HTTP_HEADER_HOST), *authority = host ? host : "";

	switch (r->route->guard) {
	case GUARD_NONE:
		break;
	case GUARD_NAME:
		return !r->server->is_loopback || r->server->tokens || asks_by_our_name(r, authority);
	case GUARD_PAGE:
		return guard_page(r, authority);
	}
	return true;
}
