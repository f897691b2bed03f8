/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see the page and ask questions. Profiles tell what a machine runs, so: only this machine, or with a token. And no
 * page of elsewhere through a visitor's browser: what comes from another origin is refused, and so is a name that is not
 * ours, or a site could point its own name at this address (DNS rebinding). Loop's thread only.
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

bool page_guard(struct request *r)
{
	const char *authority = request_header(r, MHD_HTTP_HEADER_HOST), *origin = request_header(r, MHD_HTTP_HEADER_ORIGIN);
	char host[256];

	copy_host(authority ? authority : "", host, sizeof(host));
	if (!r->server->is_loopback && !r->server->tokens) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
			     "the page is for this machine only: start hearth with --token-file to show it to others");
	} else if (authority && !is_ours(r->server, host)) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
			     "'%.100s' is no name of this page: use the address, or start hearth with --page-name %.100s",
			     host, host);
	} else if (origin && !is_same_origin(origin, authority ? authority : "")) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN, "pages of %.100s may not ask here", origin);
	} else {
		return true;
	}
	return false;
}
