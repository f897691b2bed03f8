/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The login: who may do what on a server that asks for tokens. Programs show a token with each request. A browser shows it
 * once, to /login, and has a cookie from then on that no script sees and that no other site's pages can send; what it
 * changes by that cookie must come from a page of ours all the same. Loop's thread only.
 */
#include <stdio.h>
#include <string.h>

#include "backend/http/http.h"
#include "backend/http/token.h"
#include "base/clock.h"

/* Browsers tell cookies of hosts apart, but not of ports, and two of us may run on one host. __Host-: the cookie came over
 * TLS from us. */
static void cookie_name(const struct server *s, char *ret, size_t size)
{
	snprintf(ret, size, "%shearth-%u", s->tls ? "__Host-" : "", s->port);
}

static const char *find_cookie(const struct request *r)
{
	char name[32];

	cookie_name(r->server, name, sizeof(name));
	return MHD_lookup_connection_value(r->connection->mhd, MHD_COOKIE_KIND, name);
}

static const struct sockaddr *peer_of(const struct request *r)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection->mhd,
								       MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info ? info->client_addr : NULL;
}

static bool has_session(const struct request *r)
{
	const char *cookie = r->route->guard == GUARD_PAGE ? find_cookie(r) : NULL;

	return cookie && sessions_allow(&r->server->sessions, cookie, strlen(cookie), r->server->tokens, clock_mono_ns());
}

static void refuse_without_token(struct request *r)
{
	if (strcmp(r->path, "/") == 0)
		r->server->routes->login_form(r);
	else
		reply_refuse(r, MHD_HTTP_UNAUTHORIZED, REJECTED_TOKEN,
			     "no valid token: send 'Authorization: Bearer' and one that this server knows");
}

bool request_admit(struct request *r, const char *method)
{
	const char *authorization = request_header(r, MHD_HTTP_HEADER_AUTHORIZATION);

	if (!r->server->tokens || r->route->is_public)
		return true;
	switch (tokens_judge(r->server->tokens, authorization, peer_of(r), NULL)) {
	case TOKEN_GOOD:
		return true;
	case TOKEN_TOO_MANY:
		r->reply.retry_after_s = TOKEN_RETRY_S;
		reply_refuse(r, MHD_HTTP_TOO_MANY_REQUESTS, REJECTED_TOKEN, TOKEN_TOO_MANY_TEXT);
		return false;
	case TOKEN_NONE:
		r->by_cookie = has_session(r);
		break;
	case TOKEN_WRONG:
		break;
	}
	if (!r->by_cookie) {
		refuse_without_token(r);
		return false;
	}
	/* request_guard() saw that an origin is ours; browsers name it with all that is no mere question. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0 &&
	    !request_header(r, MHD_HTTP_HEADER_ORIGIN)) {
		reply_refuse(r, MHD_HTTP_FORBIDDEN, REJECTED_ORIGIN, "a browser says where this comes from, in 'Origin'");
		return false;
	}
	return true;
}

/* The answer sets the cookie to @id for @seconds. */
static void reply_cookie(struct request *r, const char *id, unsigned seconds)
{
	char name[32];

	cookie_name(r->server, name, sizeof(name));
	snprintf(r->cookie, sizeof(r->cookie), "%s=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict%s", name, id, seconds,
		 r->server->tls ? "; Secure" : "");
	r->cookie_headers[0] = (struct reply_header){ MHD_HTTP_HEADER_SET_COOKIE, r->cookie };
	r->cookie_headers[1] = (struct reply_header){ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" };
	r->reply.headers = r->cookie_headers;
	reply_body(r, MHD_HTTP_NO_CONTENT, NULL);
}

void login_open(struct request *r)
{
	const char *authorization = request_header(r, MHD_HTTP_HEADER_AUTHORIZATION), *token = NULL, *id = NULL;

	if (!r->server->tokens) {
		reply_text(r, MHD_HTTP_NOT_FOUND, "no token is asked for here\n");
		return;
	}
	/* request_admit() let the request pass; a file of tokens may have changed since. */
	if (tokens_judge(r->server->tokens, authorization, peer_of(r), &token) == TOKEN_GOOD)
		id = sessions_open(&r->server->sessions, token, clock_mono_ns());
	if (id)
		reply_cookie(r, id, SESSIONS_KEPT_S);
	else
		reply_refuse(r, token ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_UNAUTHORIZED, REJECTED_TOKEN,
			     token ? "no session can be made now: try again" : "show a token to log in");
}

void login_session(struct request *r)
{
	static const struct reply_header no_store[] = { { MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" }, { NULL, NULL } };

	buf_printf(&r->reply.body, "{\"session\":%s}", r->server->tokens && has_session(r) ? "true" : "false");
	r->reply.headers = no_store;
	reply_body(r, MHD_HTTP_OK, CONTENT_TYPE_JSON);
}

void login_close(struct request *r)
{
	const char *cookie = find_cookie(r);

	if (cookie)
		sessions_close(&r->server->sessions, cookie, strlen(cookie));
	reply_cookie(r, "", 0);
}
