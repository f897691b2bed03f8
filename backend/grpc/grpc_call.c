/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: its headers are judged before the message comes, the message is collected and handed to ingest (or the health
 * service), and the answer is sent. A bad call is refused whole, at once, and touches no other.
 *
 * Memory. The length of a message stands in front of it: that much is asked of the budget before anything of it is kept, and
 * only then the stream's window is opened for it, so whoever waits for memory is held back by flow control. But the first
 * window (64 KiB, HTTP/2's own default) is the client's from the start. Data that comes in it while its call waits is early:
 * it is kept beside the budget, at most EARLY_MAX_BYTES of all calls together; a call beyond that is refused with
 * UNAVAILABLE, and may come again. The connection's window is never what holds anybody back, or waiting calls would block
 * those that could finish.
 *
 * Codes. A breach of gRPC's protocol is INTERNAL, a breach of OTLP is INVALID_ARGUMENT; the rest is gRPC's own table
 * ("Status codes and their use"): a number of messages other than one is UNIMPLEMENTED there.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/grpc/grpc_internal.h"
#include "backend/grpc/grpc_text.h"
#include "backend/http/recent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/otlp/otlp.h"

#define VERSION_HEADER "otlp-profiles-development-version"
#define VERSION_SPOKEN "1"

enum {
	HEADERS_MAX_BYTES = 16 << 10, /* as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
	HEADER_OVERHEAD_BYTES = 32,   /* RFC 9113, 6.5.2 */
	MESSAGE_MAX_BYTES = 1 << 30,  /* whatever the limit says: windows end at 2 GiB */
	HEALTH_MAX_BYTES = 4 << 10,
	EARLY_MAX_BYTES = 8 << 20,
	GRACE_DIVISOR = 6, /* of the call's time before the least rate counts: 10 s of 60 */
	WAIT_DIVISOR = 12, /* of the call's time that it may wait for memory: senders wait for an answer for 5 s and more */
	LEAST_BYTES_PER_S = 1024,
};

static struct grpc_call *call_of_request(struct ingest_request *request)
{
	return (struct grpc_call *)((char *)request - offsetof(struct grpc_call, request));
}

/* --- its life --- */

static void count_early(struct grpc *g, size_t before, size_t after)
{
	g->early_bytes += after - before;
	metric_set(g->stats.early_bytes, g->early_bytes);
}

static void drop_message(struct grpc_call *call)
{
	count_early(call->connection->server, call->early.cap, 0);
	buf_fini(&call->early);
	body_fini(&call->request.body);
	call->is_waiting = false;
}

struct grpc_call *grpc_call_new(struct grpc_connection *c, int32_t stream_id)
{
	struct grpc_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->connection = c;
	call->stream_id = stream_id;
	call->timeout_ns = call->deadline_ns = UINT64_MAX;
	call->http_status = 200;
	call->since_ns = call->reading_ns = clock_mono_ns();
	call->next = c->calls;
	call->link = &c->calls;
	if (call->next)
		call->next->link = &call->next;
	c->calls = call;
	c->call_count++;
	c->server->call_count++;
	metric_set(c->server->stats.calls, metric_get(c->server->stats.calls) + 1);
	return call;
}

void grpc_call_free(struct grpc_call *call)
{
	struct grpc_connection *c = call->connection;

	if (call->phase != GRPC_CALL_ANSWERED)
		metric_add(c->server->stats.rejected[REJECTED_INCOMPLETE], 1);
	ingest_cancel(&call->request);
	drop_message(call);
	buf_fini(&call->answer);
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	c->call_count--;
	c->server->call_count--;
	c->since_ns = clock_mono_ns();
	metric_set(c->server->stats.calls, metric_get(c->server->stats.calls) - 1);
	free(call);
}

/* --- its answer --- */

void grpc_call_append(struct grpc_call *call, const void *message, size_t len)
{
	uint8_t prefix[GRPC_PREFIX_BYTES];

	grpc_prefix(prefix, false, (uint32_t)len);
	buf_append(&call->answer, prefix, sizeof(prefix));
	if (len)
		buf_append(&call->answer, message, len);
}

/* The HTTP status that says the same (google.rpc.Code has them beside its codes). */
static unsigned http_status_of(enum grpc_code code)
{
	switch (code) {
	case GRPC_OK:
		return 200;
	case GRPC_INVALID_ARGUMENT:
		return 400;
	case GRPC_UNAUTHENTICATED:
		return 401;
	case GRPC_RESOURCE_EXHAUSTED:
		return 429;
	case GRPC_UNIMPLEMENTED:
		return 501;
	case GRPC_UNAVAILABLE:
		return 503;
	case GRPC_DEADLINE_EXCEEDED:
		return 504;
	default:
		return 500;
	}
}

static void note(const struct grpc_call *call, enum grpc_code code)
{
	char path[128];

	snprintf(path, sizeof(path), "/%s/%s", call->method ? call->method->service : "?",
		 call->method ? call->method->name : "?");
	if (code != GRPC_OK || call->received_bytes)
		recent_add(path, http_status_of(code), call->received_bytes, &call->metadata);
}

static void end(struct grpc_call *call, enum grpc_code code)
{
	call->phase = GRPC_CALL_ANSWERED;
	call->code = code;
	call->is_last = true;
	grpc_stats_answered(&call->connection->server->stats, call->method, code);
	note(call, code);
}

void grpc_call_succeed(struct grpc_call *call, const void *message, size_t len)
{
	grpc_call_append(call, message, len);
	end(call, GRPC_OK);
	grpc_session_respond(call);
}

static void fail_text(struct grpc_call *call, enum grpc_code code, enum rejection why, const char *message)
{
	bool was_watching = call->phase == GRPC_CALL_WATCHING;

	if (call->phase == GRPC_CALL_ANSWERED)
		return;
	snprintf(call->message, sizeof(call->message), "%s", message);
	call->retry = code == GRPC_UNAVAILABLE;
	ingest_cancel(&call->request);
	drop_message(call);
	metric_add(call->connection->server->stats.rejected[why], 1);
	end(call, code);
	if (was_watching)
		grpc_session_resume(call);
	else
		grpc_session_respond(call);
}

void grpc_call_fail(struct grpc_call *call, enum grpc_code code, enum rejection why, const char *fmt, ...)
{
	char message[sizeof(call->message)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	fail_text(call, code, why, message);
}

/* --- its headers --- */

/* Refuses @call. The first refusal stands; it is sent when the headers are whole. */
__attribute__((format(printf, 4, 5))) static void refuse(struct grpc_call *call, enum grpc_code code, enum rejection why,
							 const char *fmt, ...)
{
	struct grpc_refusal *r = &call->refusal;
	va_list args;

	if (r->code != GRPC_OK)
		return;
	r->code = code;
	r->why = why;
	r->http_status = why == REJECTED_METHOD ? 405 : why == REJECTED_CONTENT_TYPE ? 415 : 200;
	va_start(args, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, args);
	va_end(args);
}

static void read_path(struct grpc_call *call, const char *value, size_t len)
{
	const char *why = NULL;

	call->method = grpc_method_find(value, len, &why);
	if (!call->method)
		refuse(call, GRPC_UNIMPLEMENTED, REJECTED_PATH, "%s: '%.*s'", why, (int)(len < 128 ? len : 128), value);
}

static void read_method(struct grpc_call *call, const char *value, size_t len)
{
	if (len != 4 || memcmp(value, "POST", 4) != 0)
		refuse(call, GRPC_INTERNAL, REJECTED_METHOD, "gRPC is spoken with POST, not %.*s",
		       (int)(len < 32 ? len : 32), value);
}

static void read_content_type(struct grpc_call *call, const char *value, size_t len)
{
	call->has_content_type = true;
	if (!grpc_is_content_type(value, len))
		refuse(call, GRPC_INVALID_ARGUMENT, REJECTED_CONTENT_TYPE,
		       "content type '%.*s' is not spoken here: send application/grpc", (int)(len < 64 ? len : 64), value);
}

static void read_encoding(struct grpc_call *call, const char *value, size_t len)
{
	static const struct {
		const char *name;
		enum ingest_encoding encoding;
	} known[] = { { "identity", ENCODING_IDENTITY }, { "gzip", ENCODING_GZIP }, { "zstd", ENCODING_ZSTD } };

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (len == strlen(known[i].name) && strncasecmp(value, known[i].name, len) == 0) {
			call->encoding = known[i].encoding;
			return;
		}
	}
	refuse(call, GRPC_UNIMPLEMENTED, REJECTED_ENCODING, "grpc-encoding '%.*s' is not supported: send identity or gzip",
	       (int)(len < 64 ? len : 64), value);
}

static void read_timeout(struct grpc_call *call, const char *value, size_t len)
{
	if (grpc_parse_timeout(value, len, &call->timeout_ns))
		refuse(call, GRPC_INTERNAL, REJECTED_MALFORMED,
		       "grpc-timeout '%.*s' is none: up to eight digits and one of HMSmun", (int)(len < 32 ? len : 32),
		       value);
}

static void read_version(struct grpc_call *call, const char *value, size_t len)
{
	call->version_count++;
	call->request.version_said = true;
	if (call->version_count > 1 || len != strlen(VERSION_SPOKEN) || memcmp(value, VERSION_SPOKEN, len) != 0)
		call->version_count = 2; /* whether it matters, the method says */
}

static void read_token(struct grpc_call *call, const char *value, size_t len)
{
	struct tokens *tokens = call->connection->server->tokens;
	struct sockaddr_storage peer;
	(void)len; /* nghttp2 ends values with a NUL */

	if (tokens && call->token == TOKEN_NONE) /* the first counts */
		call->token = tokens_judge(tokens, value, grpc_socket_peer(&call->connection->socket, &peer), NULL);
}

static const struct {
	const char *name;
	void (*read)(struct grpc_call *call, const char *value, size_t len);
} headers[] = {
	{ ":path", read_path },
	{ ":method", read_method },
	{ "content-type", read_content_type },
	{ "grpc-encoding", read_encoding },
	{ "grpc-timeout", read_timeout },
	{ "authorization", read_token },
	{ VERSION_HEADER, read_version },
};

void grpc_call_header(struct grpc_call *call, const char *name, size_t name_len, const char *value, size_t value_len)
{
	call->header_bytes += name_len + value_len + HEADER_OVERHEAD_BYTES;
	if (call->header_bytes > HEADERS_MAX_BYTES) {
		refuse(call, GRPC_RESOURCE_EXHAUSTED, REJECTED_TOO_LARGE, "headers are larger than %d bytes",
		       (int)HEADERS_MAX_BYTES);
		return;
	}
	recent_header(&call->metadata, name, name_len, value, value_len);
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (name_len == strlen(headers[i].name) && memcmp(name, headers[i].name, name_len) == 0)
			headers[i].read(call, value, value_len);
}

/* Judges what can be told only once all headers are there. */
static void judge_headers(struct grpc_call *call)
{
	bool is_export = call->method && call->method->kind == GRPC_EXPORT;

	if (is_export && call->connection->server->tokens && call->token != TOKEN_GOOD) {
		call->refusal.code = GRPC_OK; /* a stranger is told nothing else */
		if (call->token == TOKEN_TOO_MANY)
			refuse(call, GRPC_UNAVAILABLE, REJECTED_TOKEN, TOKEN_TOO_MANY_TEXT);
		else
			refuse(call, GRPC_UNAUTHENTICATED, REJECTED_TOKEN, "%s: send 'authorization: Bearer TOKEN'",
			       call->token == TOKEN_NONE ? "a token is needed" : "not a token that is good here");
	}
	if (!call->has_content_type)
		refuse(call, GRPC_INVALID_ARGUMENT, REJECTED_CONTENT_TYPE, "no content type: send application/grpc");
	if (is_export && call->method->signal == INGEST_PROFILES && call->version_count > 1)
		refuse(call, GRPC_INVALID_ARGUMENT, REJECTED_VERSION,
		       VERSION_HEADER " must be absent or just " VERSION_SPOKEN ": no other version is spoken here");
}

void grpc_call_begin(struct grpc_call *call)
{
	struct grpc *g = call->connection->server;
	const struct grpc_refusal *r = &call->refusal;

	judge_headers(call);
	call->phase = GRPC_CALL_RECEIVING;
	if (r->code != GRPC_OK) {
		call->http_status = r->http_status;
		grpc_call_fail(call, r->code, r->why, "%s", r->message);
		return;
	}
	if (call->timeout_ns < UINT64_MAX - call->since_ns)
		call->deadline_ns = call->since_ns + call->timeout_ns;
	grpc_schedule(g, grpc_call_check(call, call->since_ns));
}

/* --- its message --- */

static void answer_ingest(struct ingest_request *request, const struct ingest_answer *answer)
{
	static const struct {
		enum grpc_code code;
		enum rejection why;
	} codes[INGEST_OUTCOMES] = {
		[INGEST_MALFORMED] = { GRPC_INVALID_ARGUMENT, REJECTED_MALFORMED },
		[INGEST_UNSUPPORTED] = { GRPC_UNIMPLEMENTED, REJECTED_ENCODING },
		[INGEST_TOO_LARGE] = { GRPC_RESOURCE_EXHAUSTED, REJECTED_TOO_LARGE },
		[INGEST_BUSY] = { GRPC_UNAVAILABLE, REJECTED_BUSY },
		[INGEST_NO_MEMORY] = { GRPC_UNAVAILABLE, REJECTED_MEMORY },
		[INGEST_NO_ROOM] = { GRPC_UNAVAILABLE, REJECTED_SINK },
		[INGEST_FAILED] = { GRPC_INTERNAL, REJECTED_SINK },
	};
	struct grpc_call *call = call_of_request(request);
	AUTO(buf_fini) struct buf message = BUF_EMPTY;

	if (answer->outcome == INGEST_OK || answer->outcome == INGEST_PARTIAL) {
		if (answer->outcome == INGEST_PARTIAL) /* of the same shape for every signal */
			otlp_encode_partial_success(answer->rejected, answer->message, &message);
		grpc_call_succeed(call, message.data, message.len);
	} else {
		fail_text(call, codes[answer->outcome].code, codes[answer->outcome].why, answer->message);
	}
	grpc_connection_settle(call->connection);
}

/* The whole message is there. */
static void take(struct grpc_call *call)
{
	if (call->method->kind != GRPC_EXPORT) {
		grpc_health_take(call);
		return;
	}
	call->phase = GRPC_CALL_TAKEN;
	call->request.signal = call->method->signal;
	call->request.format = FORMAT_PROTOBUF;
	call->request.encoding = call->frame.is_compressed ? call->encoding : ENCODING_IDENTITY;
	call->request.done = answer_ingest;
	ingest_take(call->connection->server->ingest, &call->request);
}

static void refuse_memory(struct grpc_call *call)
{
	grpc_call_fail(call, GRPC_UNAVAILABLE, REJECTED_MEMORY, "too many large requests at once: try again");
}

/* There is memory for the message. */
static void let_in(struct grpc_call *call)
{
	call->is_waiting = false;
	call->reading_ns = clock_mono_ns();
	body_append(&call->request.body, call->early.data, call->early.len);
	count_early(call->connection->server, call->early.cap, 0);
	buf_fini(&call->early);
	grpc_session_grant(call, call->frame.len);
}

static void wait_for_memory(struct grpc_call *call)
{
	call->is_waiting = true;
	call->reading_ns = clock_mono_ns();
	grpc_schedule(call->connection->server, grpc_call_check(call, call->reading_ns));
}

static void ask_for_memory(struct grpc_call *call)
{
	int ret = body_room(&call->request.body, call->frame.len);

	if (ret == -EINPROGRESS)
		wait_for_memory(call);
	else if (ret)
		refuse_memory(call);
	else
		let_in(call);
}

static void on_granted(struct claim *claim)
{
	struct body *body = body_of_claim(claim);
	struct grpc_call *call = (struct grpc_call *)((char *)body - offsetof(struct grpc_call, request.body));
	struct grpc_connection *c = call->connection;

	c->is_held = true; /* taking may answer at once, and an answer settles */
	ask_for_memory(call);
	if (call->phase == GRPC_CALL_RECEIVING && call->has_ended)
		take(call);
	c->is_held = false;
	grpc_connection_settle(c);
}

/* Begins the message of @call, whose length is known now. */
static void begin_message(struct grpc_call *call)
{
	struct grpc *g = call->connection->server;
	bool is_export = call->method->kind == GRPC_EXPORT;
	size_t max = is_export ? ingest_max_bytes(g->ingest) : HEALTH_MAX_BYTES;

	if (call->frame.is_compressed && call->encoding == ENCODING_IDENTITY) {
		grpc_call_fail(call, GRPC_INTERNAL, REJECTED_MALFORMED, "a compressed message, but no grpc-encoding");
	} else if (call->frame.len > max || call->frame.len > MESSAGE_MAX_BYTES) {
		grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, REJECTED_TOO_LARGE,
			       "message of %u bytes is larger than %zu: send smaller batches, or raise the limit",
			       call->frame.len, max);
	} else if (is_export) {
		body_init(&call->request.body, ingest_budget(g->ingest), on_granted);
		if (call->frame.is_compressed)
			claim_open(&call->request.body.claim);
		ask_for_memory(call);
	}
}

static void keep_early(struct grpc_call *call, const uint8_t *data, size_t len)
{
	struct grpc *g = call->connection->server;

	if (call->early.cap == 0) {
		size_t room = call->frame.len < GRPC_FIRST_WINDOW_BYTES ? call->frame.len : GRPC_FIRST_WINDOW_BYTES;
		if (g->early_bytes + room > EARLY_MAX_BYTES || buf_reserve(&call->early, room)) {
			refuse_memory(call);
			return;
		}
		count_early(g, 0, call->early.cap);
	}
	buf_append(&call->early, data, len); /* there is room for all that may come */
}

static void keep(struct grpc_call *call, const uint8_t *data, size_t len)
{
	if (call->is_waiting || call->method->kind != GRPC_EXPORT)
		keep_early(call, data, len);
	else
		body_append(&call->request.body, data, len);
}

void grpc_call_data(struct grpc_call *call, const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end_of = data + len, *piece;
	size_t piece_len;

	call->received_bytes += len;
	if (call->method)
		metric_add(call->connection->server->stats.received_bytes, len);
	while (call->phase == GRPC_CALL_RECEIVING) {
		switch (grpc_frame_next(&call->frame, &p, end_of, &piece, &piece_len)) {
		case GRPC_FRAME_MORE:
			return;
		case GRPC_FRAME_PREFIX:
			begin_message(call);
			break;
		case GRPC_FRAME_DATA:
			keep(call, piece, piece_len);
			break;
		case GRPC_FRAME_BAD:
			grpc_call_fail(call, GRPC_INTERNAL, REJECTED_MALFORMED,
				       "a message begins with 0 or 1 (compressed), not with %u", call->frame.prefix[0]);
			break;
		case GRPC_FRAME_SURPLUS:
			grpc_call_fail(call, GRPC_UNIMPLEMENTED, REJECTED_MALFORMED,
				       "more than one message, to a method that takes one");
			break;
		}
	}
}

void grpc_call_end(struct grpc_call *call)
{
	call->has_ended = true;
	if (call->phase != GRPC_CALL_RECEIVING)
		return;
	if (!grpc_frame_is_begun(&call->frame))
		grpc_call_fail(call, GRPC_UNIMPLEMENTED, REJECTED_MALFORMED, "no message, to a method that takes one");
	else if (!grpc_frame_is_whole(&call->frame))
		grpc_call_fail(call, GRPC_INTERNAL, REJECTED_MALFORMED, "the message ends after %u of its %u bytes",
			       call->frame.received, call->frame.len);
	else if (!call->is_waiting)
		take(call);
}

/* --- its time --- */

/* The bytes that a call must have sent after @age_ns: always a few; when others wait for memory that it holds, so many that
 * it ends in time. */
static uint64_t least_bytes(const struct grpc_call *call, uint64_t age_ns)
{
	const struct grpc *g = call->connection->server;
	uint64_t least = LEAST_BYTES_PER_S * age_ns / NSEC_PER_SEC;
	double part = (double)age_ns / (double)g->request_timeout_ns * (double)call->request.body.cap;

	return budget_has_waiters(ingest_budget(g->ingest)) && part > (double)least ? (uint64_t)part : least;
}

/* The time to look again at a call that is still receiving. */
static uint64_t check_receiving(struct grpc_call *call, uint64_t now_ns)
{
	uint64_t timeout_ns = call->connection->server->request_timeout_ns, grace_ns = timeout_ns / GRACE_DIVISOR;
	uint64_t age_ns = now_ns > call->reading_ns ? now_ns - call->reading_ns : 0;

	if (call->is_waiting) {
		if (age_ns >= timeout_ns / WAIT_DIVISOR)
			refuse_memory(call);
		return call->reading_ns + timeout_ns / WAIT_DIVISOR;
	}
	if (call->has_ended)
		return UINT64_MAX;
	if (age_ns > grace_ns && call->received_bytes < least_bytes(call, age_ns)) {
		grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, REJECTED_SLOW, "too few bytes came in %llu s",
			       (unsigned long long)(age_ns / NSEC_PER_SEC));
		return UINT64_MAX;
	}
	return age_ns <= grace_ns ? call->reading_ns + grace_ns + 1 : now_ns + NSEC_PER_SEC;
}

/* Ends a call that has taken too long. */
static void end_overdue(struct grpc_call *call)
{
	uint64_t timeout_s = call->connection->server->request_timeout_ns / NSEC_PER_SEC;

	if (call->phase == GRPC_CALL_TAKEN)
		grpc_call_fail(call, GRPC_UNAVAILABLE, REJECTED_BUSY,
			       "what came could not be kept in time: it may be kept all the same, try again");
	else
		grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, REJECTED_SLOW, "not done after %llu s",
			       (unsigned long long)timeout_s);
}

uint64_t grpc_call_check(struct grpc_call *call, uint64_t now_ns)
{
	uint64_t timeout_ns = call->connection->server->request_timeout_ns, due_ns = UINT64_MAX;
	uint64_t end_ns = call->since_ns + timeout_ns, last_ns = end_ns + timeout_ns / GRACE_DIVISOR;

	if (call->phase == GRPC_CALL_ANSWERED) {
		if (now_ns < last_ns)
			return last_ns;
		if (!call->is_reset) /* its client leaves the answer lying */
			grpc_session_reset(call, NGHTTP2_CANCEL);
		return UINT64_MAX;
	}
	if (call->phase == GRPC_CALL_RECEIVING)
		due_ns = check_receiving(call, now_ns);
	if (now_ns >= call->deadline_ns)
		grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, REJECTED_DEADLINE, "not done by the deadline of its client");
	if (call->phase == GRPC_CALL_WATCHING) /* as long as it likes */
		return call->deadline_ns;
	if (now_ns >= end_ns)
		end_overdue(call);
	if (call->phase == GRPC_CALL_ANSWERED)
		return last_ns;
	due_ns = due_ns < call->deadline_ns ? due_ns : call->deadline_ns;
	return due_ns < end_ns ? due_ns : end_ns;
}
