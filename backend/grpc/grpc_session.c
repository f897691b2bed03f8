/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 session of a connection: nghttp2 tells here what came and is told here what to send. The session sends nothing
 * by itself: grpc_connection_settle() fetches what it has to send. Callbacks run inside these two: grpc_session_feed() and
 * grpc_connection_settle().
 *
 * Patience. HTTP/2 lets a peer make work for next to nothing: resets of streams that it just opened, pings and settings to
 * be answered, empty frames, pieces of headers without end. Each frame that is no part of a call costs a connection some of
 * its patience, which comes back with time and with calls that end well; a peer that uses it up gets GOAWAY
 * ENHANCE_YOUR_CALM. So one rule bounds them all, and what nghttp2 bounds as well (replies queued, settings in a frame,
 * pieces of headers) is bounded twice. nghttp2 tells of frames of unknown types because they are made known to it as
 * extensions. nghttp2 does not tell of data for a stream that has been reset: bytes that it read without telling of them are
 * counted. Streams are bounded by SETTINGS_MAX_CONCURRENT_STREAMS, and by MAX_CALLS of all connections, so that whoever has
 * many takes them from nobody who has few; headers by grpc_call.c and HEADERS_CUT_BYTES.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/grpc/grpc_internal.h"
#include "backend/grpc/grpc_text.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/otlp/otlp.h"

enum {
	MAX_STREAMS = 100,
	MAX_CALLS = 10000, /* of all connections, some 3 KB each, but ... */
	SURE_CALLS = 4,	   /* so many a connection may have in any case */
	MAX_HEADERS_BYTES = 16 << 10,
	HEADERS_CUT_BYTES = 64 << 10,	    /* beyond it they are no mistake */
	CONNECTION_WINDOW_BYTES = 16 << 20, /* always given back at once: see grpc_call.c */
	RETRY_AFTER_S = 1,
};

/* Units of patience, unless the name says bytes. */
enum {
	PATIENCE_MAX = 4000,
	PATIENCE_PER_S = 400,
	PATIENCE_PER_ANSWER = 40, /* more than what clients send around a call: a ping, window updates */
	TINY_DATA_BYTES = 16,
	/* Bytes thrown away by nghttp2 that cost one unit of patience: 100 calls refused at once, each with its first window
	 * on its way, stay well within PATIENCE_MAX. */
	SILENT_BYTES = 8192,
	FRAME_HEADER_BYTES = 9,
	FIRST_UNKNOWN_TYPE = 10, /* behind CONTINUATION */
};

static const uint8_t costs[] = {
	[NGHTTP2_DATA] = 0,	  /* see cost_of() */
	[NGHTTP2_HEADERS] = 2,	  /* comes back with the answer */
	[NGHTTP2_PRIORITY] = 5,	  /* means nothing any more: RFC 9113, 5.3 */
	[NGHTTP2_RST_STREAM] = 0, /* see cost_of() */
	[NGHTTP2_SETTINGS] = 20,  [NGHTTP2_PUSH_PROMISE] = 20, [NGHTTP2_PING] = 10,
	[NGHTTP2_GOAWAY] = 20,	  [NGHTTP2_WINDOW_UPDATE] = 1, [NGHTTP2_CONTINUATION] = 20,
};

enum {
	COST_UNKNOWN = 5,
	COST_EMPTY_DATA = 10, /* or padding alone */
	COST_TINY_DATA = 1,
	COST_RESET = 2,
	COST_RESET_CALL = 20,
	COST_BROKEN_STREAM = 20, /* which we reset */
	COST_REFUSED_STREAM = 4, /* beyond MAX_STREAMS: a client may not know that yet */
};

static struct grpc_call *call_of(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

static unsigned cost_of(nghttp2_session *session, const nghttp2_frame_hd *hd)
{
	if (hd->type >= ARRAY_LEN(costs))
		return COST_UNKNOWN;
	if (hd->type == NGHTTP2_RST_STREAM) { /* of an answered call it is good manners */
		const struct grpc_call *call = call_of(session, hd->stream_id);
		return call && call->phase != GRPC_CALL_ANSWERED ? COST_RESET_CALL : COST_RESET;
	}
	if (hd->type != NGHTTP2_DATA || (hd->flags & NGHTTP2_FLAG_END_STREAM))
		return costs[hd->type];
	return hd->length == 0 ? COST_EMPTY_DATA : hd->length < TINY_DATA_BYTES ? COST_TINY_DATA : 0;
}

/* Takes @cost of the patience. False: it is used up. */
static bool bear(struct grpc_connection *c, unsigned cost)
{
	if (cost <= c->patience) {
		c->patience -= cost;
		return true;
	}
	uint64_t now_ns = clock_mono_ns(), more = (now_ns - c->patience_ns) / (NSEC_PER_SEC / PATIENCE_PER_S);

	c->patience_ns = now_ns;
	c->patience = more > PATIENCE_MAX - c->patience ? PATIENCE_MAX : c->patience + more;
	if (cost > c->patience)
		return false;
	c->patience -= cost;
	return true;
}

static void earn(struct grpc_connection *c)
{
	c->patience = c->patience > PATIENCE_MAX - PATIENCE_PER_ANSWER ? PATIENCE_MAX : c->patience + PATIENCE_PER_ANSWER;
}

void grpc_session_doom(struct grpc_connection *c, enum grpc_cut why, uint32_t error)
{
	if (c->is_doomed)
		return;
	c->is_doomed = true;
	metric_add(c->server->stats.cut[why], 1);
	if (nghttp2_session_terminate_session(c->session, error))
		c->is_dead = true;
}

/* --- what comes --- */

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	struct grpc_connection *c = arg;

	c->told_bytes += FRAME_HEADER_BYTES + hd->length;
	if (c->is_doomed || bear(c, cost_of(session, hd)))
		return 0;
	grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
	return NGHTTP2_ERR_CALLBACK_FAILURE; /* reading ends here */
}

/* Skips a frame of an unknown type. */
static int skip_unknown(nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *arg)
{
	(void)session;
	(void)payload;
	(void)hd;
	(void)arg;
	return NGHTTP2_ERR_CANCEL;
}

static bool is_padding_alone(const nghttp2_frame *frame)
{
	return frame->hd.type == NGHTTP2_DATA && frame->hd.length >= TINY_DATA_BYTES &&
	       !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && frame->hd.length - frame->data.padlen < TINY_DATA_BYTES;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_connection *c = arg;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (c->server->call_count >= MAX_CALLS && c->call_count >= SURE_CALLS) /* counted once it is sent */
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
	struct grpc_call *call = grpc_call_new(c, frame->hd.stream_id);
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	struct grpc_connection *c = arg;
	struct grpc_call *call = call_of(session, frame->hd.stream_id);
	(void)flags;

	if (!call)
		return 0;
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_call_header(call, (const char *)name, name_len, (const char *)value, value_len);
	else
		call->header_bytes += name_len + value_len; /* trailers say nothing to us */
	if (call->header_bytes > HEADERS_CUT_BYTES) {
		grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return 0;
}

/* Refuses the stream of a header with characters that no header may have. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session;
	(void)frame;
	(void)name;
	(void)name_len;
	(void)value;
	(void)value_len;
	(void)flags;
	(void)arg;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data, size_t len, void *arg)
{
	struct grpc_call *call = call_of(session, stream_id);
	(void)flags;
	(void)arg;

	if (call)
		grpc_call_data(call, data, len);
	return nghttp2_session_consume_connection(session, len) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_connection *c = arg;
	struct grpc_call *call = frame->hd.stream_id ? call_of(session, frame->hd.stream_id) : NULL;

	if (is_padding_alone(frame) && !bear(c, COST_EMPTY_DATA)) {
		grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (frame->hd.type == NGHTTP2_SETTINGS && c->phase == GRPC_OPENING) {
		c->phase = GRPC_OPEN;
		c->since_ns = clock_mono_ns();
	}
	/* A client that answers the ping behind our announcement has read the announcement. */
	if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) && c->drain == GRPC_NOTICED)
		grpc_connection_drain(c);
	if (!call || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	call->has_ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_call_begin(call);
	if (call->has_ended)
		grpc_call_end(call);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error, void *arg)
{
	struct grpc_connection *c = arg;
	struct grpc_call *call = call_of(session, stream_id);

	if (!call)
		return 0;
	if (call->phase == GRPC_CALL_ANSWERED && call->code == GRPC_OK && error == NGHTTP2_NO_ERROR)
		earn(c);
	nghttp2_session_set_stream_user_data(session, stream_id, NULL);
	grpc_call_free(call);
	return 0;
}

/* --- what goes --- */

/* Ends the stream of a call that was answered before its end: the rest need not come (RFC 9113, 8.1). Not called before the
 * answer has left, or nghttp2 would drop it. */
static void end_early(nghttp2_session *session, int32_t stream_id)
{
	struct grpc_call *call = call_of(session, stream_id);

	if (call && !call->has_ended)
		grpc_session_reset(call, NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc_connection *c = arg;

	if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		end_early(session, frame->hd.stream_id);
	/* nghttp2 found fault with the connection, or with a stream. */
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR && !c->is_doomed) {
		c->is_doomed = true;
		metric_add(c->server->stats.cut[GRPC_CUT_PROTOCOL], 1);
	}
	if (frame->hd.type != NGHTTP2_RST_STREAM || frame->rst_stream.error_code == NGHTTP2_NO_ERROR)
		return 0;
	bool is_refused = frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM;
	if (is_refused)
		metric_add(c->server->stats.rejected[REJECTED_CALLS], 1);
	if (!bear(c, is_refused ? COST_REFUSED_STREAM : COST_BROKEN_STREAM))
		grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
	return 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0 };
}

struct trailers {
	nghttp2_nv nv[3];
	size_t count;
	char code[8];
	struct buf message, details;
};

static void trailers_fini(struct trailers *t)
{
	buf_fini(&t->message);
	buf_fini(&t->details);
}

static void make_trailers(const struct grpc_call *call, struct trailers *t)
{
	AUTO(buf_fini) struct buf status = BUF_EMPTY;

	snprintf(t->code, sizeof(t->code), "%d", (int)call->code);
	t->nv[t->count++] = header("grpc-status", t->code);
	if (call->message[0]) {
		grpc_append_message(call->message, &t->message);
		t->nv[t->count++] = header("grpc-message", buf_text(&t->message));
	}
	if (call->retry && !otlp_encode_retry_status(call->code, call->message, RETRY_AFTER_S * NSEC_PER_SEC, &status)) {
		grpc_append_base64(status.data, status.len, &t->details);
		t->nv[t->count++] = header("grpc-status-details-bin", buf_text(&t->details));
	}
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream_id, uint8_t *data, size_t room, uint32_t *flags,
			   nghttp2_data_source *source, void *arg)
{
	struct grpc_call *call = source->ptr;
	size_t len = call->answer.len - call->answer_at;
	(void)arg;

	if (len == 0 && !call->is_last)
		return NGHTTP2_ERR_DEFERRED;
	if (len > room)
		len = room;
	if (len)
		memcpy(data, call->answer.data + call->answer_at, len);
	call->answer_at += len;
	if (call->answer_at < call->answer.len || !call->is_last)
		return (ssize_t)len;

	AUTO(trailers_fini) struct trailers trailers = { .count = 0 };
	make_trailers(call, &trailers);
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(session, stream_id, trailers.nv, trailers.count))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)len;
}

/* An error has no message: its headers are its trailers too. */
static int respond_error(struct grpc_call *call, nghttp2_nv *nv, size_t count)
{
	nghttp2_session *session = call->connection->session;
	AUTO(trailers_fini) struct trailers trailers = { .count = 0 };

	make_trailers(call, &trailers);
	memcpy(nv + count, trailers.nv, trailers.count * sizeof(*nv));
	return nghttp2_submit_response(session, call->stream_id, nv, count + trailers.count, NULL);
}

void grpc_session_respond(struct grpc_call *call)
{
	struct grpc_connection *c = call->connection;
	const nghttp2_data_provider provider = { .source.ptr = call, .read_callback = read_answer };
	nghttp2_nv nv[8];
	size_t count = 0;
	char status[8];
	int ret;

	snprintf(status, sizeof(status), "%u", call->http_status);
	nv[count++] = header(":status", status);
	nv[count++] = header("content-type", "application/grpc");
	nv[count++] = header("grpc-accept-encoding", "identity,gzip,zstd");
	if (call->http_status == 405)
		nv[count++] = header("allow", "POST");
	if (call->answer.failed)
		ret = nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_INTERNAL_ERROR);
	else if (call->answer.len)
		ret = nghttp2_submit_response(c->session, call->stream_id, nv, count, &provider);
	else
		ret = respond_error(call, nv, count);
	if (ret && ret != NGHTTP2_ERR_STREAM_CLOSED)
		c->is_dead = true; /* no memory */
}

void grpc_session_resume(struct grpc_call *call)
{
	/* This fails when the data is not deferred: then it will be read anyway. */
	nghttp2_session_resume_data(call->connection->session, call->stream_id);
}

void grpc_session_reset(struct grpc_call *call, uint32_t error)
{
	call->is_reset = true;
	if (nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream_id, error))
		call->connection->is_dead = true;
}

void grpc_session_grant(struct grpc_call *call, size_t message_len)
{
	struct grpc_connection *c = call->connection;

	/* The window of a stream is never enlarged by what was read, so it is all that may come. It is one first window
	 * larger than the message needs, so that a client that sends too much is noticed. */
	if (message_len + GRPC_PREFIX_BYTES <= GRPC_FIRST_WINDOW_BYTES)
		return;
	if (nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, call->stream_id,
						  (int32_t)(message_len + GRPC_PREFIX_BYTES + GRPC_FIRST_WINDOW_BYTES)))
		c->is_dead = true;
}

/* --- its life --- */

int grpc_session_setup(struct grpc *g)
{
	if (nghttp2_session_callbacks_new(&g->callbacks) || nghttp2_option_new(&g->option))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_frame_callback(g->callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(g->callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(g->callbacks, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(g->callbacks, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(g->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(g->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(g->callbacks, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(g->callbacks, on_stream_close);
	nghttp2_session_callbacks_set_unpack_extension_callback(g->callbacks, skip_unknown);
	for (unsigned type = FIRST_UNKNOWN_TYPE; type <= UINT8_MAX; type++)
		nghttp2_option_set_user_recv_extension_type(g->option, (uint8_t)type);
	nghttp2_option_set_no_auto_window_update(g->option, 1);
	nghttp2_option_set_no_closed_streams(g->option, 1);
	return 0;
}

int grpc_session_open(struct grpc_connection *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEADERS_BYTES },
		{ NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
	};

	c->patience = PATIENCE_MAX;
	c->patience_ns = clock_mono_ns();
	if (nghttp2_session_server_new2(&c->session, c->server->callbacks, c, c->server->option) ||
	    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) ||
	    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES))
		return -ENOMEM;
	return 0;
}

/* Takes patience for bytes that nghttp2 read without telling of them. False: no patience is left. */
static bool bear_silence(struct grpc_connection *c)
{
	if (c->read_bytes < c->told_bytes + SILENT_BYTES)
		return true;
	unsigned cost = (unsigned)((c->read_bytes - c->told_bytes) / SILENT_BYTES);

	c->told_bytes += (uint64_t)cost * SILENT_BYTES;
	return bear(c, cost);
}

void grpc_session_feed(struct grpc_connection *c, const uint8_t *data, size_t len)
{
	if (c->is_doomed || c->is_dead)
		return;
	c->is_held = true;
	ssize_t ret = nghttp2_session_mem_recv(c->session, data, len);
	c->is_held = false;
	c->read_bytes += len;
	if (ret >= 0 && !c->is_doomed && !bear_silence(c))
		grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
	if (ret >= 0 || c->is_doomed)
		return;
	if (ret == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
		c->is_foreign = true;
		metric_add(c->server->stats.cut[GRPC_CUT_PROTOCOL], 1);
	} else if (ret == NGHTTP2_ERR_NOMEM) {
		c->is_dead = true;
		metric_add(c->server->stats.cut[GRPC_CUT_MEMORY], 1);
	} else { /* one of nghttp2's own bounds on floods */
		grpc_session_doom(c, GRPC_CUT_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
	}
}
