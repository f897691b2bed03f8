/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the backend's HTTP side: the server, a connection, a request on its way from headers to answer, and what a table of
 * routes says. Everything here belongs to the loop's thread.
 */
#ifndef HEARTH_BACKEND_HTTP_HTTP_H
#define HEARTH_BACKEND_HTTP_HTTP_H

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/ingest/ingest.h"
#include "backend/query/selected.h"
#include "backend/http/server.h"
#include "backend/http/sessions.h"
#include "backend/http/stats.h"
#include "base/buf.h"

#define CONTENT_TYPE_JSON "application/json"

struct api_request;
struct loop;
struct loop_watch;
struct metrics;
struct own_profiles;
struct own_request;
struct query_thread;
struct server_error;
struct tls;
struct tls_keys;
struct tokens;
struct upload;

struct server {
	struct loop *loop; /* borrowed, as are metrics and ingest */
	struct metrics *metrics;
	struct ingest *ingest;
	const struct routes *routes;
	struct tls *tls; /* borrowed, or NULL, as are the next two */
	struct tokens *tokens;
	const char *const *cors_origins; /* NULL-terminated */
	const char *const *page_names;	 /* of ours, NULL-terminated, or NULL; borrowed */
	bool is_loopback;		 /* only this machine reaches us */
	const struct peer_users *users;	 /* of this machine, who may see profiles; NULL: all; borrowed */
	bool asks_clients;		 /* for certificates, which say more */
	enum server_pages pages;
	struct workloads *workloads;			/* borrowed, or NULL */
	struct query_thread *queries;			/* borrowed; NULL: no API */
	struct own_profiles *own;			/* borrowed, or NULL */
	void (*window_ends)(void *arg, uint64_t at_ns); /* as in the configuration */
	void *window_arg;
	bool (*is_ready)(void *arg);
	void *ready_arg;
	struct MHD_Daemon *mhd;
	struct loop_watch *ready; /* libmicrohttpd's epoll descriptor */
	struct loop_watch *again; /* its timer: work left over, or a time it asked for */
	struct loop_watch *sweep; /* looks for overdue connections */
	bool again_armed;
	bool run_again; /* a connection closed: libmicrohttpd takes up listening at its limit only in its next run */
	uint16_t port;
	bool stopping;
	size_t max_receive_bytes;
	uint64_t request_timeout_ns;
	uint64_t idle_timeout_ns;
	uint64_t swept_ns;
	struct connection *connections;
	unsigned max_connections, connection_count, displaced_count; /* those that were told to end are still counted */
	unsigned open_requests;
	unsigned uploads; /* files with symbols that are on their way */
	struct server_stats stats;
	struct sessions sessions;
};

/* A client that says nothing for so long may lose its connection to another, where there are no more. */
#define CONNECTION_LEAST_NS NSEC_PER_SEC

struct connection {
	struct connection *next, **link; /* in server.connections */
	struct server *server;
	struct MHD_Connection *mhd;
	struct tls_keys *keys;	 /* the keys that its handshake used */
	struct request *request; /* NULL between requests */
	uint64_t since_ns;	 /* when the request, or the wait for one, began */
	bool is_displaced;	 /* it was told to end, to make room */
	bool is_peer_asked;	 /* who is at the other end: the next three */
	int peer_err;		 /* 0: it is known */
	uint32_t peer;		 /* a user of this machine */
};

struct reply_header {
	const char *name, *value;
};

struct reply {
	unsigned status; /* 0: not decided yet */
	const char *content_type;
	unsigned retry_after_s;		    /* 0: no such header */
	const struct reply_header *headers; /* further ones up to a name of NULL, or NULL; they outlive the request */
	bool close;			    /* the connection ends with it; a body that has not come is not read */
	struct buf body;
	bool is_file; /* the body is all of @file instead; owned */
	int file;
};

/* NEW -> [WAITING] -> BODY <-> [GROWING] -> [TAKEN] -> ANSWERED, and GONE from any of them. In states in brackets its
 * connection is suspended. Up to GROWING its headers or body are still coming. */
enum request_state {
	REQUEST_NEW,	  /* its headers are still to be looked at */
	REQUEST_WAITING,  /* for memory for its body, unread so far */
	REQUEST_BODY,	  /* comes in, or is swallowed */
	REQUEST_GROWING,  /* for memory for the rest of its body */
	REQUEST_TAKEN,	  /* its route has it, or ingest */
	REQUEST_ANSWERED, /* libmicrohttpd has its reply */
	REQUEST_GONE,	  /* its client went away, or waits for an answer that will not come */
};

struct request {
	struct server *server;
	struct connection *connection;
	const struct route *route; /* NULL: no such path */
	const char *path;	   /* libmicrohttpd's */
	/* Where it is on its way: request.c alone writes these, and calls all that has a say in it. */
	enum request_state state;
	bool suspended;
	bool too_slow;	       /* we cut it */
	uint64_t suspended_ns; /* when */
	bool has_nul;	       /* in its path */
	bool has_framing;      /* its headers say how long the body is, or that it comes in chunks */
	/* The target of its first line as it came; only to be compared with where other parts lie. */
	const char *target, *target_end;
	const char *content_type; /* of an OTLP request and so of its answer; NULL: none that we speak */
	uint64_t received_bytes;
	uint64_t announced_bytes; /* UINT64_MAX: unknown */
	struct ingest_request ingest;
	struct api_request *api; /* its question to the query thread, or NULL */
	struct own_request *own; /* its wait for a profile of hearth itself, or NULL */
	struct upload *upload;	 /* the file that it sends, or NULL */
	bool by_cookie;		 /* it is admitted by its session */
	char cookie[160];	 /* the cookie that its answer sets */
	struct reply_header cookie_headers[3];
	struct reply reply;
};

/* The requests that a path refuses, whatever token they bring: guard.c. */
enum route_guard {
	GUARD_NONE, /* tells nothing but that we are here */
	GUARD_NAME, /* takes or tells: on loopback under a name of ours only; not from pages of elsewhere */
	GUARD_PAGE, /* shows profiles: that, under a name of ours everywhere; off loopback only with tokens */
};

struct route {
	const char *method;	   /* "GET" serves HEAD too */
	const char *path;	   /* one that ends in "/", but "/" itself: all below it too */
	enum ingest_signal signal; /* of the receiver's paths */
	/* The names of the parameters that the request's path takes, a blank between two; NULL: all, it heeds none. Without
	 * it, it takes none. */
	const char *(*params)(const struct request *r);
	/* Appends the form of the path's errors; NULL: {"error": @text}. */
	void (*write_error)(struct buf *out, unsigned status, const char *text);
	void (*begin)(struct request *r); /* judges the headers before the body comes, may decide the reply; without it a
					   * body is not kept */
	/* Takes the next of the body, which then is nobody else's; may decide the reply. NULL: it is collected. */
	void (*write)(struct request *r, const char *data, size_t len);
	size_t max_bytes; /* of a body; 0: as the server's limit */
	bool is_public;	  /* no token is asked for */
	bool has_cors;	  /* pages of the origins that were named may send here */
	unsigned pages;	  /* bits of enum server_pages: where it is served beside what @guard says */
	enum route_guard guard;
	bool asks_basic; /* for a name and password: of the page's own paths browsers are to ask its form, not themselves */
	void (*handle)(struct request *r); /* all is there; decides the reply, now or later: request_resume() */
	void (*cancel)(struct request *r); /* takes back what @handle began, whose answer nobody waits for; may be NULL */
	void (*end)(struct request *r);	   /* gives back what the request had; may be NULL */
};

/* The paths that a server serves. Constant. */
struct routes {
	const struct route *list;
	size_t count;			       /* at most STATS_PATHS_MAX */
	void (*login_form)(struct request *r); /* shown instead of "/" to a browser without a token */
	const char *instead;		       /* what PAGES_PPROF says of paths that it has not */
};

/* server.c: has libmicrohttpd work soon: it does not tell its epoll descriptor that a connection was resumed. */
void server_wake(struct server *s);

/* request.c: what libmicrohttpd calls; @server is the struct server. */
enum MHD_Result request_step(void *server, struct MHD_Connection *mhd, const char *path, const char *method,
			     const char *version, const char *data, size_t *len, void **context);
void *request_start(void *server, const char *uri, struct MHD_Connection *mhd);
void request_end(void *server, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode how);
/* Lets libmicrohttpd go on with a suspended request. */
void request_resume(struct request *r);
/* Gives a suspended request up: nothing that it waits for matters any more; resumed, it ends without an answer. */
void request_abort(struct request *r);
/* Whether the request has no more to do once its client has gone. */
bool request_needs_client(const struct request *r);
/* Whether the request may be given up at the age of @age_ns when there is no room for another connection: its client has not
 * said yet all that it has to. */
bool request_may_give_way(const struct request *r, uint64_t age_ns);
/* Whether a request that is not suspended takes too long, or brings too little, at the age of @age_ns. Its connection is to
 * be cut then, and what it counts as has been noted. */
bool request_is_overdue(struct request *r, uint64_t age_ns);
/* Answers a suspended request whose wait has no end in sight at @now_ns, and gives one up whose client @is_gone. */
void request_look(struct request *r, bool is_gone, uint64_t now_ns);

/* headers.c: NULL when all would read the headers alike, else the reason why not; *@has_framing_ret: whether they say how
 * long the body is. @method and @version as libmicrohttpd hands them over with its first call. */
const char *headers_fault(const struct request *r, const char *method, const char *version, bool *has_framing_ret);

/* connection.c: what libmicrohttpd says about connections. */
void connection_change(void *server, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what);

/* A gnutls_certificate_retrieve_function2. */
int connection_certificate(gnutls_session_t session, const gnutls_datum_t *ca_names, int ca_count,
			   const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **certs_ret,
			   unsigned *count_ret, gnutls_privkey_t *key_ret);

/* Cuts every connection that is over its time, below the least rate, or whose client has gone; and, where there are as many
 * as there may be, the one whose client kept us waiting longest. */
void connections_sweep(struct server *s, uint64_t now_ns);

/* The route of @path whatever the method, or NULL. */
const struct route *route_find(const struct routes *routes, const char *path);
/* Whether a server of @pages serves it. */
bool route_is_on(const struct route *route, enum server_pages pages);
size_t route_index(const struct routes *routes, const struct route *route);
bool route_has_method(const struct route *route, const char *method);
/* "POST" or "GET, HEAD", for Allow. */
const char *route_allow(const struct route *route);

/* A request header's first value, or NULL. */
const char *request_header(const struct request *r, const char *name);

/* negotiate.c: whether the client takes gzip; whether it has a copy with this ETag (RFC 9110, 12.5.3 and 13.1.2). */
bool request_takes_gzip(const struct request *r);
bool request_has_copy(const struct request *r, const char *etag);
/* Whether its content type is one that we speak, which its answer then has too. */
bool request_speaks(struct request *r);
/* Reads the header Content-Encoding; refuses one that is not spoken and says false. */
bool request_encoding(struct request *r, enum ingest_encoding *ret);

/* params.c: whether the request's parameters are ones that its path takes, each once; else it is refused. */
bool request_judge_params(struct request *r);

/* guard.c: whether the request may come under the name it has for us, and from its origin; else it is refused. */
bool request_guard(struct request *r);
/* guard.c: whether who asks may read where the kernel and others' programs are in memory. */
bool request_reads_addresses(struct request *r);
/* login.c: whether the request brought the token or session that @method needs here; else it is refused. */
bool request_admit(struct request *r, const char *method);
/* login.c: handlers of the paths by which a browser opens, closes and looks for its session. */
void login_open(struct request *r);
void login_close(struct request *r);
void login_session(struct request *r);

/* The reply is r->reply.body as it stands. */
void reply_body(struct request *r, unsigned status, const char *content_type);

/* The reply is all of the file @fd, which is taken. */
void reply_file(struct request *r, unsigned status, const char *content_type, int fd);
void reply_text(struct request *r, unsigned status, const char *text);
/* Refuses, and counts @why: google.rpc.Status in the request's content type, or text where it has none that we speak. */
void reply_refuse(struct request *r, unsigned status, enum rejection why, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A success: an empty message, or a partial one when there is something to tell. */
void reply_taken(struct request *r, int64_t rejected, const char *message);
/* Hands the decided reply to libmicrohttpd. */
enum MHD_Result reply_send(struct request *r, bool close);
/* Frees what the reply has; afterwards it has no body. */
void reply_fini(struct reply *reply);

/* cors.c: whether origins may be named for the request's path; the origin to name in the answer, or NULL; a preflight of one
 * that may send; and the headers that say so. */
bool cors_is_open(const struct request *r);
const char *cors_origin(const struct request *r);
bool cors_is_preflight(const struct request *r, const char *method);
bool cors_add_headers(const struct request *r, struct MHD_Response *response);

#endif
