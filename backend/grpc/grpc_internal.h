/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the backend's gRPC side, from below: a connection is a socket and an HTTP/2 session; its streams are calls, each of
 * a method. Everything here belongs to the loop's thread.
 *
 *   grpc.c             listens, keeps the connections and their one timer
 *   grpc_connection.c  bytes between socket and session; a connection's times and its end
 *   grpc_socket.c      the socket, with TLS or without
 *   grpc_session.c     what nghttp2 reports and is told; how much of what is no work is borne
 *   grpc_call.c        a call, from its headers to its answer
 *   grpc_method.c      which methods there are
 *   grpc_health.c      the health service
 *   grpc_stats.c       counters
 */
#ifndef HEARTH_BACKEND_GRPC_GRPC_INTERNAL_H
#define HEARTH_BACKEND_GRPC_GRPC_INTERNAL_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/grpc/grpc_frame.h"
#include "backend/grpc/grpc_socket.h"
#include "backend/ingest/ingest.h"
#include "backend/http/recent.h"
#include "backend/http/stats.h"
#include "backend/http/token.h"
#include "base/buf.h"
#include "proto/grpc.h"

struct grpc_call;
struct loop;
struct loop_watch;
struct metrics;
struct tls;
struct tokens;

/* --- methods --- */

enum grpc_method_kind { GRPC_EXPORT, GRPC_HEALTH_CHECK, GRPC_HEALTH_WATCH };

struct grpc_method {
	const char *service, *name;
	enum grpc_method_kind kind;
	enum ingest_signal signal; /* of an export */
};

enum { GRPC_METHODS_MAX = 8 };

/* The method of a path "/service/name"; NULL: there is none, and *@why_ret says which half is unknown. */
const struct grpc_method *grpc_method_find(const char *path, size_t len, const char **why_ret);
bool grpc_method_has_service(const char *name, size_t len);
size_t grpc_method_index(const struct grpc_method *method);

/* --- counters --- */

/* Why we closed a connection. */
enum grpc_cut {
	GRPC_CUT_FLOOD,	   /* too much that is no work */
	GRPC_CUT_PROTOCOL, /* not HTTP/2, or against its rules */
	GRPC_CUT_SLOW,	   /* did not say what it must, or did not read */
	GRPC_CUT_DEAD,	   /* no answer to a ping */
	GRPC_CUT_MEMORY,
	GRPC_CUT_ROOM, /* said nothing, and others came */
	GRPC_CUT_COUNT,
};

struct grpc_stats {
	struct metrics *metrics;
	struct metric *connections, *calls;
	struct metric *received_bytes;
	struct metric *early_bytes;
	struct metric *rejected[REJECTION_COUNT];
	struct metric *cut[GRPC_CUT_COUNT];
	struct metric *requests[GRPC_METHODS_MAX + 1][GRPC_CODE_COUNT]; /* made at first use */
};

void grpc_stats_init(struct grpc_stats *s, struct metrics *metrics);
/* @method NULL: a method outside the table. */
void grpc_stats_answered(struct grpc_stats *s, const struct grpc_method *method, enum grpc_code code);

/* --- the server --- */

enum { GRPC_READ_BYTES = 128 << 10 };

struct grpc {
	struct loop *loop; /* borrowed, as are metrics and ingest */
	struct ingest *ingest;
	struct tls *tls;       /* NULL: plain; borrowed, as are the tokens */
	struct tokens *tokens; /* NULL: calls need none */
	int listen_fd;
	struct loop_watch *listener;
	bool is_accepting;
	struct loop_watch *timer; /* when the first of the connections and calls is due */
	uint64_t due_ns;	  /* UINT64_MAX: it is not set */
	uint16_t port;
	bool stopping;
	unsigned max_connections, connection_count;
	unsigned call_count; /* of all connections */
	uint64_t request_timeout_ns, idle_timeout_ns;
	struct grpc_connection *connections;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	uint8_t *in;	    /* the bytes of one read; nothing in it lasts */
	struct buf out;	    /* gathers what one write takes; empty in between */
	size_t early_bytes; /* see grpc_call.c */
	struct grpc_stats stats;
};

/* Has the connections looked at when @due_ns comes, if not before. */
void grpc_schedule(struct grpc *g, uint64_t due_ns);
/* There is room for another connection. */
void grpc_accept_again(struct grpc *g);

/* --- a connection --- */

enum grpc_phase {
	GRPC_OPENING, /* its client has not said yet what it must: preface and SETTINGS */
	GRPC_OPEN,
	GRPC_LINGERING, /* all is said; reads on a little, or closing would destroy our last words */
};

enum grpc_drain { GRPC_SERVING, GRPC_NOTICED, GRPC_DRAINED }; /* how much of a graceful GOAWAY was said */

struct grpc_connection {
	struct grpc *server;
	struct grpc_connection *next, **link; /* in grpc.connections */
	struct grpc_socket socket;
	struct loop_watch *watch;
	uint32_t events; /* the epoll events that it is watched for */
	enum grpc_phase phase;
	nghttp2_session *session;
	bool is_held;	 /* somebody below still works with it or its session: nothing may be sent or freed */
	bool is_dead;	 /* to be freed without further words */
	bool is_doomed;	 /* GOAWAY with an error is on its way: nothing more is read */
	bool is_foreign; /* the client does not speak HTTP/2 at all */
	enum grpc_drain drain;
	struct buf out; /* bytes that the socket did not take yet */
	size_t out_at;
	struct grpc_call *calls;
	unsigned call_count;
	/* CLOCK_MONOTONIC */
	uint64_t since_ns;   /* when its phase began, or its last call ended */
	uint64_t heard_ns;   /* when bytes came last */
	uint64_t pinged_ns;  /* when we asked whether it lives; 0: never */
	uint64_t stuck_ns;   /* since when @out waits; 0: it does not */
	uint64_t drained_ns; /* when GOAWAY was announced */
	/* see grpc_session.c */
	uint64_t patience, patience_ns;
	uint64_t read_bytes, told_bytes; /* by nghttp2, and those of frames that it told of */
};

/* Takes @fd over. 0 or -errno (@fd is closed). */
int grpc_connection_new(struct grpc *g, int fd);
void grpc_connection_free(struct grpc_connection *c);

/* Sends what the session has to send and closes what has ended; @c may be gone afterwards. Not to be called within callbacks
 * of the session, but after them. */
void grpc_connection_settle(struct grpc_connection *c);

/* Does what is due and settles. Returns the time to look again; UINT64_MAX: never, @c may be gone. */
uint64_t grpc_connection_check(struct grpc_connection *c, uint64_t now_ns);

/* Closes the connection without a call whose client has been silent longest, if that is a second or more; where there is
 * none, the one whose calls have waited longest for nobody but their client: to send its message, at 16 KiB/s at least, or
 * to take an answer, or that watch. False: there is none. */
bool grpc_connection_make_room(struct grpc *g, uint64_t now_ns);
/* Time that did not pass for the client. */
void grpc_connection_shift(struct grpc_connection *c, uint64_t late_ns);
/* Sends GOAWAY: no further calls are taken, those under way end. */
void grpc_connection_drain(struct grpc_connection *c);

/* --- its HTTP/2 session --- */

int grpc_session_setup(struct grpc *g); /* grpc.callbacks and option; grpc_free() frees them */
/* 0 or -ENOMEM. */
int grpc_session_open(struct grpc_connection *c);
/* Takes bytes that came; afterwards @c->is_dead or is_doomed may be set. */
void grpc_session_feed(struct grpc_connection *c, const uint8_t *data, size_t len);
/* Sends GOAWAY with an HTTP/2 error code and counts it; nothing that comes is looked at any more. */
void grpc_session_doom(struct grpc_connection *c, enum grpc_cut why, uint32_t error);
enum { GRPC_FIRST_WINDOW_BYTES = 65535 }; /* of every stream: RFC 9113, 6.9.2 */

/* Lets the client send @message_len bytes of a message. */
void grpc_session_grant(struct grpc_call *call, size_t message_len);
/* Sends call->answer as response and then, when call->is_last, the trailers. */
void grpc_session_respond(struct grpc_call *call);
/* Tells the session that there is more in call->answer, or that it has become the last. */
void grpc_session_resume(struct grpc_call *call);
/* Ends a stream that does not end by itself. */
void grpc_session_reset(struct grpc_call *call, uint32_t error);

/* --- a call --- */

/* HEADERS -> RECEIVING -> [TAKEN or WATCHING] -> ANSWERED */
enum grpc_call_phase {
	GRPC_CALL_HEADERS,
	GRPC_CALL_RECEIVING, /* its message */
	GRPC_CALL_TAKEN,     /* ingest has it */
	GRPC_CALL_WATCHING,  /* the health of a service */
	GRPC_CALL_ANSWERED,  /* with its code, though not all of it may have left */
};

struct grpc_refusal {
	enum grpc_code code; /* GRPC_OK: none */
	enum rejection why;
	unsigned http_status;
	char message[256];
};

struct grpc_call {
	struct grpc_connection *connection;
	struct grpc_call *next, **link; /* in its connection */
	int32_t stream_id;
	enum grpc_call_phase phase;
	const struct grpc_method *method; /* NULL: unknown */
	/* from its headers */
	size_t header_bytes;
	struct recent_headers metadata;
	bool has_content_type;
	enum token_verdict token;
	unsigned version_count;
	enum ingest_encoding encoding;
	uint64_t timeout_ns; /* UINT64_MAX: none said */
	struct grpc_refusal refusal;
	/* its message */
	struct grpc_frame frame;
	struct ingest_request request;
	bool is_waiting; /* for memory; what comes meanwhile is in @early */
	bool has_ended;	 /* the client has said everything */
	struct buf early;
	uint64_t since_ns, reading_ns; /* CLOCK_MONOTONIC: its first header; when it may be read in full */
	uint64_t deadline_ns;	       /* of the client; UINT64_MAX: none */
	uint64_t received_bytes;
	/* its answer */
	int watched_status; /* the status that was told last, see grpc_health.c */
	bool is_last;
	bool is_reset;
	struct buf answer; /* framed messages */
	size_t answer_at;  /* how much of it has left */
	enum grpc_code code;
	unsigned http_status;
	bool retry;
	char message[512];
};

/* NULL when out of memory. */
struct grpc_call *grpc_call_new(struct grpc_connection *c, int32_t stream_id);
void grpc_call_free(struct grpc_call *call);
void grpc_call_header(struct grpc_call *call, const char *name, size_t name_len, const char *value, size_t value_len);
void grpc_call_begin(struct grpc_call *call); /* its headers are there */
void grpc_call_data(struct grpc_call *call, const uint8_t *data, size_t len);
void grpc_call_end(struct grpc_call *call); /* the client has said everything */
uint64_t grpc_call_check(struct grpc_call *call, uint64_t now_ns);

/* Answers @call with one message, and counts it. */
void grpc_call_succeed(struct grpc_call *call, const void *message, size_t len);
/* Answers @call with an error and counts @why. Does nothing when @call is answered already. */
void grpc_call_fail(struct grpc_call *call, enum grpc_code code, enum rejection why, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Appends a framed message to call->answer. */
void grpc_call_append(struct grpc_call *call, const void *message, size_t len);

/* Takes a whole message to the health service. */
void grpc_health_take(struct grpc_call *call);
/* Tells a watching call that the status has changed. */
void grpc_health_tell(struct grpc_call *call);

#endif
