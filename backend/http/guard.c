/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This file decides who may send, see the page and ask questions. Pages of other sites may not, through a visitor's browser:
 * a request from another origin is refused unless that origin was allowed for senders. A request for a host name that is not
 * ours is refused too, or a site could point its own name at this address (DNS rebinding). Profiles tell what a machine
 * runs, so they are shown to this machine only, or for a token.
 *
 * Counters and workloads tell less, and a receiver tells nothing; their clients ask by whatever name they know a machine by.
 * If anybody who can reach us may ask, checking the name adds nothing; but on loopback only the name keeps other machines'
 * sites out, so there it is checked, unless a token keeps them out. Loop's thread only.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "backend/http/http.h"
#include "backend/http/peer.h"

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
		     "'%.100s' is no name of this server: use the address, or start hearth with --page-name %.100s", host,
		     host);
	return false;
}

static bool comes_from_us(struct request *r, const char *authority)
{
	const char *origin = request_header(r, MHD_HTTP_HEADER_ORIGIN);

	if (!origin || is_same_origin(origin, authority) || cors_origin(r))
		return true;
	reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN, "pages of %.100s may not ask here%s%.100s", origin,
		     cors_is_open(r) ? ": start hearth with --cors-origin " : "", cors_is_open(r) ? origin : "");
	return false;
}

static bool is_private(struct request *r)
{
	if (r->server->is_loopback || r->server->tokens)
		return true;
	reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
		     "the page is for this machine only: start hearth with --token-file to show it to others");
	return false;
}

/* The user at the other end; the kernel is asked once a connection. */
static int ask_peer(struct request *r, uint32_t *uid_ret)
{
	struct connection *c = r->connection;
	const union MHD_ConnectionInfo *info;

	if (!c->is_peer_asked) {
		info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
		c->peer_err = info ? peer_uid(info->connect_fd, &c->peer) : -ENOTCONN;
		c->is_peer_asked = true;
	}
	*uid_ret = c->peer;
	return c->peer_err;
}

/* Profiles of other users' programs are not for everybody who has a shell here. A token or a certificate says more than a
 * user id. */
static bool is_for_peer(struct request *r)
{
	const struct server *s = r->server;
	uint32_t uid = 0;

	if (!s->is_loopback || !s->users || s->tokens || s->asks_clients || s->users->all)
		return true;
	if (ask_peer(r, &uid)) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
			     "it is not known who asks: start hearth with --token-file, or with --http-allow-uid any");
		return false;
	}
	if (peer_is_allowed(s->users, uid))
		return true;
	reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN,
		     "profiles are shown to root, to who started hearth and to the store's owner: ask as one of them, or "
		     "start hearth with --http-allow-uid %u, or with --token-file",
		     uid);
	return false;
}

bool request_reads_addresses(struct request *r)
{
	uint32_t uid = 0;

	return !r->server->users || (!ask_peer(r, &uid) && peer_reads_addresses(r->server->users, uid));
}

bool request_guard(struct request *r)
{
	const char *host = request_header(r, MHD_HTTP_HEADER_HOST), *authority = host ? host : "";
	bool is_any_name = !r->server->is_loopback || r->server->tokens;

	switch (r->route->guard) {
	case GUARD_NONE:
		return true;
	case GUARD_NAME:
		return (is_any_name || asks_by_our_name(r, authority)) && comes_from_us(r, authority);
	case GUARD_PAGE:
		return is_private(r) && is_for_peer(r) && asks_by_our_name(r, authority) && comes_from_us(r, authority);
	}
	return false;
}
