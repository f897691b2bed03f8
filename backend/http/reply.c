/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: decided by one of three functions, handed to libmicrohttpd by a fourth, which also counts them. A request has at
 * most one reply; the first decision stands. Loop's thread only.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/http/http.h"
#include "backend/http/recent.h"
#include "base/metrics.h"
#include "base/text/json.h"
#include "proto/otlp/otlp.h"

#define TEXT_PLAIN "text/plain; charset=utf-8"

enum { RETRY_AFTER_S = 1 };

/* The codes of google.rpc.Status that our refusals have. */
enum {
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
	RPC_UNAUTHENTICATED = 16
};

void reply_body(struct request *r, unsigned status, const char *content_type)
{
	r->reply.status = status;
	r->reply.content_type = content_type;
}

void reply_file(struct request *r, unsigned status, const char *content_type, int fd)
{
	reply_fini(&r->reply);
	r->reply.is_file = true;
	r->reply.file = fd;
	reply_body(r, status, content_type);
}

void reply_fini(struct reply *reply)
{
	buf_fini(&reply->body);
	if (reply->is_file)
		close(reply->file);
	reply->is_file = false;
}

void reply_text(struct request *r, unsigned status, const char *text)
{
	buf_puts(&r->reply.body, text);
	reply_body(r, status, TEXT_PLAIN);
}

static int32_t rpc_code(unsigned status)
{
	switch (status) {
	case MHD_HTTP_BAD_REQUEST:
	case MHD_HTTP_LENGTH_REQUIRED:
		return RPC_INVALID_ARGUMENT;
	case MHD_HTTP_FORBIDDEN:
		return RPC_PERMISSION_DENIED;
	case MHD_HTTP_UNAUTHORIZED:
		return RPC_UNAUTHENTICATED;
	case MHD_HTTP_CONTENT_TOO_LARGE:
		return RPC_RESOURCE_EXHAUSTED;
	case MHD_HTTP_INTERNAL_SERVER_ERROR:
		return RPC_INTERNAL;
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		return RPC_UNAVAILABLE;
	default:
		return RPC_UNKNOWN;
	}
}

/* A failure sticks in the buffer: the answer then goes out without its explanation. */
static void encode_status(struct request *r, int32_t code, const char *message)
{
	struct json j;

	if (r->ingest.format != FORMAT_JSON) {
		if (otlp_encode_status(code, message, &r->reply.body))
			r->reply.body.failed = true;
		return;
	}
	json_init(&j, &r->reply.body, 0);
	json_object_begin(&j);
	json_key(&j, "code");
	json_i64(&j, code);
	json_key(&j, "message");
	json_string(&j, message);
	json_object_end(&j);
}

void reply_refuse(struct request *r, unsigned status, enum rejection why, const char *fmt, ...)
{
	char message[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);

	metric_add(r->server->stats.rejected[why], 1);
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		r->reply.retry_after_s = RETRY_AFTER_S;
	if (!r->content_type) {
		reply_text(r, status, message);
		return;
	}
	encode_status(r, rpc_code(status), message);
	reply_body(r, status, r->content_type);
}

/* The JSON names of the specification for rejected items in each signal's partial success. */
static const char *const rejected_names[] = {
	[INGEST_PROFILES] = "rejectedProfiles",
	[INGEST_LOGS] = "rejectedLogRecords",
	[INGEST_METRICS] = "rejectedDataPoints",
	[INGEST_TRACES] = "rejectedSpans",
};

static void encode_partial_success_json(struct request *r, int64_t rejected, const char *message)
{
	struct json j;
	char number[24];

	snprintf(number, sizeof(number), "%" PRId64, rejected); /* 64 bits: a string in OTLP/JSON */
	json_init(&j, &r->reply.body, 0);
	json_object_begin(&j);
	if (rejected || message[0]) {
		json_key(&j, "partialSuccess");
		json_object_begin(&j);
		json_key(&j, rejected_names[r->ingest.signal]);
		json_string(&j, number);
		json_key(&j, "errorMessage");
		json_string(&j, message);
		json_object_end(&j);
	}
	json_object_end(&j);
}

void reply_taken(struct request *r, int64_t rejected, const char *message)
{
	if (r->ingest.format == FORMAT_JSON)
		encode_partial_success_json(r, rejected, message);
	else if ((rejected || message[0]) && otlp_encode_partial_success(rejected, message, &r->reply.body))
		r->reply.body.failed = true;
	reply_body(r, MHD_HTTP_OK, r->content_type);
}

static bool add_headers(const struct request *r, struct MHD_Response *response, bool close)
{
	const struct reply *reply = &r->reply;
	char seconds[16];
	for (const struct reply_header *h = reply->headers; h && h->name; h++)
		if (MHD_add_response_header(response, h->name, h->value) != MHD_YES)
			return false;
	snprintf(seconds, sizeof(seconds), "%u", reply->retry_after_s);

	return (!reply->content_type ||
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type) == MHD_YES) &&
	       (reply->status != MHD_HTTP_UNAUTHORIZED ||
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					r->route && r->route->asks_basic ? "Basic realm=\"hearth\", charset=\"UTF-8\""
									 : "Bearer") == MHD_YES) &&
	       cors_add_headers(r, response) &&
	       (reply->status != MHD_HTTP_METHOD_NOT_ALLOWED ||
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, route_allow(r->route)) == MHD_YES) &&
	       (!reply->retry_after_s ||
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds) == MHD_YES) &&
	       (!close || MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES);
}

static enum MHD_Result take_header(void *headers, enum MHD_ValueKind kind, const char *name, size_t name_len,
				   const char *value, size_t value_len)
{
	(void)kind;
	recent_header(headers, name, name_len, value, value_len);
	return MHD_YES;
}

/* Requests that merely read, as the page sends all the time, would push out those that matter. */
static void note(const struct request *r, unsigned status)
{
	struct recent_headers headers = { 0 };

	if (status < MHD_HTTP_BAD_REQUEST && !r->received_bytes)
		return;
	MHD_get_connection_values_n(r->connection->mhd, MHD_HEADER_KIND, take_header, &headers);
	recent_add(r->path ? r->path : "?", status, r->received_bytes, &headers);
}

static struct MHD_Response *file_response(struct reply *reply)
{
	struct stat st;
	struct MHD_Response *response = fstat(reply->file, &st)
						? NULL
						: MHD_create_response_from_fd64((uint64_t)st.st_size, reply->file);

	reply->is_file = !response;
	return response;
}

static struct MHD_Response *body_response(struct reply *reply)
{
	size_t len = 0;
	void *data = buf_take(&reply->body, &len);
	struct MHD_Response *response = MHD_create_response_from_buffer(data ? len : 0, data, MHD_RESPMEM_MUST_FREE);

	if (!response)
		free(data);
	return response;
}

enum MHD_Result reply_send(struct request *r, bool close)
{
	struct reply *reply = &r->reply;
	struct MHD_Response *response = reply->is_file ? file_response(reply) : body_response(reply);

	if (!response)
		return MHD_NO;

	enum MHD_Result ret = MHD_NO;
	if (add_headers(r, response, close))
		ret = MHD_queue_response(r->connection->mhd, reply->status, response);
	MHD_destroy_response(response);
	if (ret != MHD_YES)
		return ret;

	size_t path = r->route ? route_index(r->server->routes, r->route) : STATS_PATHS_MAX;
	server_stats_answered(&r->server->stats, path, r->route ? r->route->path : "other", reply->status);
	note(r, reply->status);
	return MHD_YES;
}
