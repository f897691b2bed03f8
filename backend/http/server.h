/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend's HTTP side: OTLP receiver, /metrics, /healthz. libmicrohttpd in external epoll mode, its descriptor nested in
 * the caller's loop, so requests are handled on the loop's thread.
 */
#ifndef HEARTH_BACKEND_HTTP_SERVER_H
#define HEARTH_BACKEND_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ingest;
struct loop;
struct metrics;
struct own_profiles;
struct peer_users;
struct query_thread;
struct routes;
struct server;
struct tls;
struct tokens;
struct workloads;

/* The pages that a server has. */
enum server_pages {
	PAGES_ALL,
	PAGES_PAGE,	 /* all that show profiles: the page, the API; /metrics, /healthz and /readyz */
	PAGES_RECEIVER,	 /* all that shows none: OTLP, /metrics, /workloads, /healthz */
	PAGES_METRICS,	 /* /metrics and /healthz */
	PAGES_WORKLOADS, /* /workloads and below, and /healthz */
	PAGES_PPROF,	 /* /debug/pprof/ and below, of hearth itself, and nothing else */
};

struct server_config {
	const struct routes *routes;	 /* the routes served: &http_routes (backend/routes/routes.h) */
	const char *http_address;	 /* "127.0.0.1:4318", "[::1]:0"; port 0: any, see server_http_port() */
	struct tls *tls;		 /* NULL: none; borrowed, as are the next two */
	struct tokens *tokens;		 /* NULL: requests need no token */
	const char *const *cors_origins; /* NULL-terminated, "*": any; NULL: none */
	const char *const
		*page_names; /* by which the page is known beside addresses and localhost; NULL-terminated, or NULL */
	enum server_pages pages;
	struct workloads *workloads;  /* the containers of /workloads, borrowed; NULL: none */
	struct query_thread *queries; /* answers the query API; NULL: there is none */
	struct own_profiles *own; /* answers PAGES_PPROF where @queries does not, borrowed; NULL: nothing is sampled here */
	/* Told when somebody waits for what will have been sampled until @at_ns (CLOCK_MONOTONIC); may be NULL. */
	void (*window_ends)(void *arg, uint64_t at_ns);
	void *window_arg;
	bool (*is_ready)(void *arg); /* whether profiles are taken, for /readyz; NULL: as long as it serves */
	void *ready_arg;
	/* Who may see profiles on a loopback address without a token or a certificate; NULL: everybody here. Borrowed. */
	const struct peer_users *users;
	bool asks_clients;	     /* for certificates: then all who have one may look */
	unsigned max_connections;    /* 1000 when 0 */
	uint64_t request_timeout_ns; /* first line of a request to the end of its answer; 60 s when 0 */
	uint64_t idle_timeout_ns;    /* a connection without a request; 75 s when 0 */
};

struct server_error {
	char message[256];
};

/* A listening socket for "host:port", or the one that was handed over for it (base/handed.h); *@port_ret is the port that it
 * has. The socket, or -errno with @err filled. */
int listen_on(const char *address, uint16_t *port_ret, struct server_error *err);

/* Whether @address is HOST:PORT as listen_on() takes it; no name is looked up. 0, or -EINVAL and @err says what to write. */
int listen_check(const char *address, struct server_error *err);

/* Listens. @ingest takes what is received (borrowed, as is @metrics). 0 or -errno with @err filled. */
int server_new(const struct server_config *config, struct loop *loop, struct metrics *metrics, struct ingest *ingest,
	       struct server **ret, struct server_error *err);
uint16_t server_http_port(const struct server *s);

/* Whether only this machine reaches @address, HOST:PORT. */
bool is_loopback_address(const char *address);

/* Stops accepting and runs the loop until no request is open or @deadline_ns (CLOCK_MONOTONIC) has come, on its thread. From
 * then on /healthz answers 503 and every answer closes its connection. */
void server_stop(struct server *s, uint64_t deadline_ns);

/* Closes what is still open. Accepts NULL. */
void server_free(struct server *s);

#endif
