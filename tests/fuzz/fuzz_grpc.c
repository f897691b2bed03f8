/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the gRPC server that may do anything: the input says which HTTP/2 frames it sends, of which streams, with
 * which headers and messages, and where the server gets its turn. The server answers in whole frames; when the client has
 * gone, it holds nothing of it any more. The server runs in the process, on a socket pair.
 */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/grpc/grpc.h"
#include "backend/grpc/grpc_internal.h"
#include "backend/http/server.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "proto/sink.h"
#include "tests/fuzz/require.h"
#include "tests/unit/proto/otlp_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_FRAME_BYTES = 16384,
	FRAME_HEADER_BYTES = 9,
	MAX_SENT_BYTES = 256 << 10,
	TURNS_TO_END = 500,
	MAX_RECEIVE_BYTES = 64 << 10,
};

struct client {
	const uint8_t *data, *end; /* the input */
	int fd;
	int32_t last_stream;
	nghttp2_hd_deflater *deflater;
	struct buf out, in;
	size_t sent_bytes;
	bool is_over; /* the server does not read any more */
};

static struct loop *loop;
static struct metrics *metrics;
static struct ingest *ingest;
static struct grpc *server;

/* --- the server --- */

static int consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink;
	(void)ack;
	return p->sample_events == 2 ? -ENOSPC : 0;
}

static int consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	(void)sink;
	(void)data;
	(void)ack;
	return signal == OTLP_METRICS ? -EOPNOTSUPP : len == 7 ? -EAGAIN : 0;
}

static void start_server(void)
{
	static const struct sink_ops ops = { .name = "fuzz", .consume = consume, .consume_other = consume_other };
	static struct sink sink = { &ops };
	const struct ingest_config config = { .max_receive_bytes = MAX_RECEIVE_BYTES, .receive_memory = 512 << 10 };
	struct server_error err;

	metrics = metrics_new();
	REQUIRE(metrics && loop_new(&loop) == 0);
	REQUIRE(ingest_new(&config, loop, metrics, &sink, &ingest) == 0);
	REQUIRE(grpc_new(&(struct grpc_config){ .address = "127.0.0.1:0" }, loop, metrics, ingest, &server, &err) == 0);
}

static void check_gauge(void *arg, const char *name, const char *labels, uint64_t value)
{
	static const char *const nothing[] = { "hearth_grpc_connections", "hearth_grpc_calls", "hearth_grpc_early_bytes",
					       "hearth_receive_memory_bytes" };
	unsigned *count = arg;

	(void)labels;
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
		if (strcmp(name, nothing[i]) != 0)
			continue;
		REQUIRE(value == 0);
		++*count;
	}
}

/* --- what the client sends --- */

static unsigned pick(struct client *c, unsigned n)
{
	return c->data < c->end ? *c->data++ % n : 0;
}

/* The next bytes of the input, as they are. */
static void put_raw(struct client *c, struct buf *out)
{
	size_t len = pick(c, 64);

	len = len < (size_t)(c->end - c->data) ? len : (size_t)(c->end - c->data);
	buf_append(out, c->data, len);
	c->data += len;
}

static void put_frame(struct client *c, unsigned type, unsigned flags, int32_t stream, size_t claimed, struct buf *payload)
{
	const uint8_t head[FRAME_HEADER_BYTES] = {
		(uint8_t)(claimed >> 16), (uint8_t)(claimed >> 8), (uint8_t)claimed,	   (uint8_t)type,  (uint8_t)flags,
		(uint8_t)(stream >> 24),  (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream
	};

	buf_append(&c->out, head, sizeof(head));
	buf_append(&c->out, payload->data, payload->len);
	buf_fini(payload);
}

/* For the most part a stream that is open. */
static int32_t pick_stream(struct client *c)
{
	unsigned which = pick(c, 16);

	return which < 10   ? c->last_stream
	       : which < 14 ? 1 + 2 * (int32_t)pick(c, 16)
	       : which < 15 ? 0
			    : (int32_t)pick(c, 256) << 23 | 2;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0 };
}

static const char *const paths[] = {
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export",
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	"/grpc.health.v1.Health/Check",
	"/grpc.health.v1.Health/Watch",
	"/grpc.health.v1.Health/List",
	"/",
	"",
	"*",
};

static const char *const names[] = { "grpc-encoding",
				     "grpc-timeout",
				     "authorization",
				     "otlp-profiles-development-version",
				     "content-type",
				     ":method",
				     ":path",
				     "content-length",
				     "te",
				     "cookie",
				     "connection",
				     "Upper",
				     "x",
				     "" };
static const char *const values[] = {
	"gzip",	      "zstd", "identity", "1S", "0n", "99999999H", "Bearer x", "1",	  "application/grpc+proto",
	"text/plain", "GET",  "/",	  "5",	"",   "a\nb",	   "\xff",     "trailers"
};

/* Headers of a call that is sound, but for what the input changes; or trailers. */
static void put_headers(struct client *c, bool is_call)
{
	struct buf block = BUF_EMPTY, raw = BUF_EMPTY, payload = BUF_EMPTY;
	unsigned odd = pick(c, 8), flags = NGHTTP2_FLAG_END_HEADERS | (is_call ? pick(c, 8) == 7 : pick(c, 8) != 7);
	nghttp2_nv nv[24];
	size_t count = 0, room;
	ssize_t len;

	put_raw(c, &raw);
	if (is_call) {
		nv[count++] = header(":method", odd == 7 ? "GET" : "POST");
		nv[count++] = header(":scheme", "http");
		nv[count++] = header(":authority", "h");
		nv[count++] = header(":path", paths[pick(c, ARRAY_LEN(paths))]);
		nv[count++] = header("te", "trailers");
		if (odd != 6)
			nv[count++] = header("content-type", "application/grpc");
	}
	for (unsigned n = pick(c, 6); n > 0; n--)
		nv[count++] = header(names[pick(c, ARRAY_LEN(names))], values[pick(c, ARRAY_LEN(values))]);
	for (unsigned n = odd == 5 ? 1 + pick(c, 8) : 0; n > 0 && raw.len; n--)
		nv[count++] = (nghttp2_nv){ (uint8_t *)(uintptr_t) "x-raw", raw.data, 5, raw.len, 0 };
	room = nghttp2_hd_deflate_bound(c->deflater, nv, count);
	REQUIRE(buf_reserve(&block, room) == 0);
	len = nghttp2_hd_deflate_hd(c->deflater, block.data, room, nv, count);
	REQUIRE(len >= 0);
	block.len += (size_t)len;
	if (odd == 4) {
		buf_putc(&payload, (char)pick(c, 16)); /* the length of padding that is not there, or too much */
		flags |= NGHTTP2_FLAG_PADDED;
	}
	if (odd == 3) {
		buf_append(&payload, "\0\0\0\1\20", 5);
		flags |= NGHTTP2_FLAG_PRIORITY;
	}
	buf_append(&payload, block.data, block.len);
	if (odd == 2)
		flags &= ~(unsigned)NGHTTP2_FLAG_END_HEADERS;
	if (is_call)
		c->last_stream += 2;
	put_frame(c, NGHTTP2_HEADERS, flags, is_call ? c->last_stream : pick_stream(c), payload.len, &payload);
	buf_fini(&block);
	buf_fini(&raw);
}

static void put_message(struct client *c, struct buf *out)
{
	static const char *const messages[] = { "",
						bytes_rich,
						"1'x'",
						"1'opentelemetry.proto.collector.logs.v1.LogsService'",
						"1{2{2{2{1:1 2:2 3[1] 5=7}}}} 2{6{} 7{}}",
						"1{1{1{1'a' 2{3:1}}} 2{1{1'n'} 2{1=5 2:9 3'INFO' 5{1'text'}}}}" };
	struct buf message = BUF_EMPTY;
	unsigned which = pick(c, ARRAY_LEN(messages) + 2), length = pick(c, 16);
	size_t said;

	if (which < ARRAY_LEN(messages))
		bytes_fields(messages[which], &message);
	else
		put_raw(c, &message);
	for (unsigned n = which > ARRAY_LEN(messages) ? pick(c, 256) * 64 : 0; n > 0; n--)
		buf_putc(&message, 'z');
	said = length < 12 ? message.len : length < 14 ? message.len + pick(c, 256) - 128 : (size_t)pick(c, 256) << 9;
	buf_putc(out, (char)(pick(c, 8) == 7 ? pick(c, 4) : 0));
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_putc(out, (char)(said >> shift));
	buf_append(out, message.data, message.len);
	buf_fini(&message);
}

/* A message, whole or in two frames; or what is none. */
static void put_data(struct client *c)
{
	unsigned how = pick(c, 8), ends = pick(c, 2);
	int32_t stream = pick_stream(c);
	struct buf data = BUF_EMPTY, first = BUF_EMPTY, padded = BUF_EMPTY;

	if (how != 7)
		put_message(c, &data);
	if (how == 6)
		put_message(c, &data);
	size_t cut = how == 5 && data.len ? pick(c, 256) % data.len : 0;
	if (cut) {
		buf_append(&first, data.data, cut);
		put_frame(c, NGHTTP2_DATA, 0, stream, cut, &first);
	}
	if (how == 4)
		buf_putc(&padded, (char)pick(c, 16));
	buf_append(&padded, buf_text(&data) + cut, data.len - cut);
	put_frame(c, NGHTTP2_DATA, ends | (how == 4 ? NGHTTP2_FLAG_PADDED : 0), stream, padded.len, &padded);
	buf_fini(&data);
}

static void put_settings(struct client *c)
{
	static const uint32_t some[] = { 0, 1, 100, 4096, 16384, 65535, 0xffffff, 0x7fffffff, 0xffffffff };
	struct buf payload = BUF_EMPTY;

	for (unsigned n = pick(c, 4); n > 0; n--) {
		uint32_t value = some[pick(c, ARRAY_LEN(some))];

		buf_putc(&payload, 0);
		buf_putc(&payload, (char)pick(c, 10));
		for (int shift = 24; shift >= 0; shift -= 8)
			buf_putc(&payload, (char)(value >> shift));
	}
	put_frame(c, NGHTTP2_SETTINGS, 0, 0, payload.len, &payload);
}

/* A frame whose payload is @len bytes for the most part. */
static void put_other(struct client *c, unsigned type, size_t len)
{
	struct buf payload = BUF_EMPTY;
	unsigned how = pick(c, 8), flags = pick(c, 4) == 3 ? pick(c, 256) : 0;
	int32_t stream = type == NGHTTP2_PING || type == NGHTTP2_GOAWAY ? 0 : pick_stream(c);

	if (how == 7)
		put_raw(c, &payload);
	while (how != 7 && payload.len < len)
		buf_putc(&payload, payload.len == 0 ? 0 : (char)pick(c, 256));
	put_frame(c, type, flags, stream, how == 6 ? pick(c, 256) * 256 : payload.len, &payload);
}

static void put_step(struct client *c)
{
	static const uint8_t lengths[] = {
		[NGHTTP2_PRIORITY] = 5, [NGHTTP2_RST_STREAM] = 4,    [NGHTTP2_PUSH_PROMISE] = 4, [NGHTTP2_PING] = 8,
		[NGHTTP2_GOAWAY] = 8,	[NGHTTP2_WINDOW_UPDATE] = 4, [NGHTTP2_CONTINUATION] = 3
	};
	unsigned what = pick(c, 24);
	struct buf none = BUF_EMPTY;

	if (what < 6)
		put_headers(c, true);
	else if (what < 12)
		put_data(c);
	else if (what == 12)
		put_headers(c, false);
	else if (what == 13)
		put_settings(c);
	else if (what == 14)
		put_frame(c, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, 0, &none);
	else if (what == 15)
		put_raw(c, &c->out);
	else if (what == 16)
		put_other(c, 10 + pick(c, 246), pick(c, 32));
	else if (what < 24)
		put_other(c, (const uint8_t[]){ 2, 3, 5, 6, 7, 8, 9 }[what - 17],
			  lengths[(const uint8_t[]){ 2, 3, 5, 6, 7, 8, 9 }[what - 17]]);
}

/* --- the two together --- */

static void receive(struct client *c)
{
	uint8_t data[4096];
	ssize_t n;

	while ((n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT)) > 0)
		buf_append(&c->in, data, (size_t)n);
	c->is_over |= n == 0;
}

/* Sends what was gathered and gives the server a turn. */
static void flush(struct client *c)
{
	size_t done = 0;

	for (int turn = 0; turn < TURNS_TO_END && done < c->out.len && !c->is_over; turn++) {
		ssize_t n = send(c->fd, c->out.data + done, c->out.len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		done += n > 0 ? (size_t)n : 0;
		REQUIRE(loop_step(loop, 0) == 0);
		receive(c);
	}
	c->sent_bytes += c->out.len;
	buf_reset(&c->out);
}

/* The server speaks HTTP/2, or HTTP/1.1 to who does not. */
static void check_answer(struct client *c)
{
	const uint8_t *at = (const uint8_t *)buf_text(&c->in), *end = at + c->in.len;

	if (c->in.len >= 8 && !memcmp(at, "HTTP/1.1", 8))
		return;
	for (bool is_first = true; at < end; is_first = false) {
		REQUIRE(end - at >= FRAME_HEADER_BYTES);
		size_t len = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];

		REQUIRE(len <= MAX_FRAME_BYTES && at[3] <= NGHTTP2_CONTINUATION && !(at[5] & 0x80));
		REQUIRE(!is_first || at[3] == NGHTTP2_SETTINGS);
		REQUIRE((size_t)(end - at) >= FRAME_HEADER_BYTES + len);
		at += FRAME_HEADER_BYTES + len;
	}
}

static void converse(struct client *c)
{
	if (pick(c, 16) != 15)
		buf_append(&c->out, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	if (pick(c, 16) != 15)
		put_settings(c);
	while (c->data < c->end && !c->is_over && c->sent_bytes + c->out.len < MAX_SENT_BYTES) {
		put_step(c);
		if (pick(c, 4) == 3)
			flush(c);
	}
	flush(c);
	for (int turn = 0; turn < 3; turn++) {
		REQUIRE(loop_step(loop, 0) == 0);
		receive(c);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client c = { .data = data, .end = data + size, .last_stream = -1 };
	unsigned gauges = 0;
	int pair[2];

	if (!server)
		start_server();
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	REQUIRE(nghttp2_hd_deflate_new(&c.deflater, 4096) == 0);
	REQUIRE(grpc_connection_new(server, pair[0]) == 0);
	c.fd = pair[1];
	converse(&c);
	check_answer(&c);
	close(c.fd);
	for (int turn = 0; turn < TURNS_TO_END && (server->connection_count || ingest_pending(ingest)); turn++)
		REQUIRE(loop_step(loop, 1) == 0);
	metrics_each(metrics, check_gauge, &gauges);
	REQUIRE(gauges == 4 && server->early_bytes == 0 && ingest_pending(ingest) == 0);
	nghttp2_hd_deflate_del(c.deflater);
	buf_fini(&c.out);
	buf_fini(&c.in);
	return 0;
}
