/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's answers. The codes and what they come to are those of gRPC's "Status codes", "HTTP to gRPC status code mapping" and
 * of OTLP's table of retryable codes. No state; reads what the transfer brought and trusts nothing of it.
 */
#include "sinks/otlp/grpc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack/gzip.h"
#include "base/text/base64.h"
#include "base/text/hex.h"
#include "base/text/utf8.h"
#include "proto/grpc.h"
#include "proto/otlp/otlp.h"
#include "sinks/otlp/http.h"

enum { MAX_REPLY_BYTES = 64 << 10, MAX_DETAILS_BYTES = 8 << 10 /* in base64 */ };

/* OTLP's table; RESOURCE_EXHAUSTED: with a RetryInfo only. */
static bool is_retryable(enum grpc_code code)
{
	return code == GRPC_CANCELLED || code == GRPC_DEADLINE_EXCEEDED || code == GRPC_ABORTED ||
	       code == GRPC_OUT_OF_RANGE || code == GRPC_UNAVAILABLE || code == GRPC_DATA_LOSS;
}

static enum grpc_code code_of_http(long http_status)
{
	switch (http_status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

static enum grpc_code code_of(const struct otlp_grpc_reply *r)
{
	char *end;
	unsigned long code;

	if (!r->status)
		return code_of_http(r->http_status);
	code = strtoul(r->status, &end, 10);
	return isdigit((unsigned char)r->status[0]) && !*end && code < GRPC_CODE_COUNT ? (enum grpc_code)code : GRPC_UNKNOWN;
}

/* A percent-encoded text; malformed encodings stay as they are. */
static void decode_percent(const char *text, char *out, size_t size)
{
	AUTO(buf_fini) struct buf raw = BUF_EMPTY, clean = BUF_EMPTY;

	for (; *text; text++) {
		int high = *text == '%' ? hex_digit(text[1]) : -1, low = high >= 0 ? hex_digit(text[2]) : -1;

		buf_putc(&raw, low >= 0 ? (char)(high << 4 | low) : *text);
		text += low >= 0 ? 2 : 0;
	}
	utf8_append_clean(&clean, raw.data, raw.len);
	snprintf(out, size, "%.*s", (int)utf8_cut(clean.data, clean.len, size - 1), buf_text(&clean));
	for (char *c = out; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = ' ';
}

static void read_details(const char *text, struct otlp_http_answer *answer)
{
	uint8_t status[MAX_DETAILS_BYTES];
	size_t len = text ? strlen(text) : sizeof(status) + 1;
	int32_t code;

	if (len > sizeof(status) || !base64_decode(text, len, status, &len))
		return;
	if (!answer->message[0])
		otlp_decode_status(status, len, &code, answer->message, sizeof(answer->message));
	otlp_decode_retry_delay(status, len, &answer->retry_after_ns);
}

/* The length of the one message; -1: it is not there as a whole. */
static ptrdiff_t message_len(const struct otlp_grpc_reply *r)
{
	size_t len;

	if (r->len < GRPC_PREFIX_BYTES)
		return -1;
	len = (size_t)r->body[1] << 24 | (size_t)r->body[2] << 16 | (size_t)r->body[3] << 8 | r->body[4];
	return len > r->len - GRPC_PREFIX_BYTES ? -1 : (ptrdiff_t)len;
}

/* The one message of an OK; what cannot be read does not undo the acknowledgement. */
static void read_message(const struct otlp_grpc_reply *r, struct otlp_http_answer *answer)
{
	AUTO(buf_fini) struct buf unpacked = BUF_EMPTY;
	const uint8_t *message = r->body + GRPC_PREFIX_BYTES;
	size_t len = (size_t)message_len(r);

	if (message_len(r) < 0)
		return;
	if (r->body[0]) {
		if (!r->encoding || strcmp(r->encoding, "gzip") != 0 ||
		    gzip_unpack(message, len, MAX_REPLY_BYTES, &unpacked))
			return;
		message = unpacked.data;
		len = unpacked.len;
	}
	otlp_decode_response(message, len, &answer->rejected, answer->message, sizeof(answer->message));
}

/* The code has no better name for a message that is too large; implementations say so in words. */
static bool is_about_size(const char *message)
{
	return strcasestr(message, "larger than") || strcasestr(message, "too large") || strcasestr(message, "exceed");
}

static void judge(enum grpc_code code, struct otlp_http_answer *answer)
{
	bool retry = is_retryable(code) || (code == GRPC_RESOURCE_EXHAUSTED && answer->retry_after_ns);

	answer->outcome = retry ? OTLP_HTTP_BUSY : OTLP_HTTP_REFUSED;
	if (code == GRPC_UNAUTHENTICATED || code == GRPC_PERMISSION_DENIED)
		answer->cause = OTLP_CAUSE_CREDENTIALS;
	else if (code == GRPC_UNIMPLEMENTED)
		answer->cause = OTLP_CAUSE_PLACE;
	else if (code == GRPC_RESOURCE_EXHAUSTED && !retry && is_about_size(answer->message))
		answer->cause = OTLP_CAUSE_SIZE;
}

/* The status was lost, and not merely never sent. */
static bool lost_trailers(const struct otlp_grpc_reply *r)
{
	return r->trailers_may_be_lost && !r->status && r->http_status == 200 && r->content_type &&
	       strncasecmp(r->content_type, "application/grpc", strlen("application/grpc")) == 0;
}

void otlp_grpc_read(const struct otlp_grpc_reply *r, struct otlp_http_answer *answer)
{
	enum grpc_code code = code_of(r);

	if (lost_trailers(r) && message_len(r) < 0) {
		answer->outcome = OTLP_HTTP_UNREACHABLE;
		snprintf(answer->message, sizeof(answer->message), "the connection ended before its gRPC status");
		return;
	}
	if (lost_trailers(r))
		code = GRPC_OK;
	if (code == GRPC_OK) {
		answer->outcome = OTLP_HTTP_OK;
		read_message(r, answer);
		return;
	}
	snprintf(answer->status, sizeof(answer->status), "gRPC status %u (%s)", code, grpc_code_name(code));
	if (r->message)
		decode_percent(r->message, answer->message, sizeof(answer->message));
	read_details(r->details, answer);
	if (!r->status && r->http_status != 200)
		snprintf(answer->message, sizeof(answer->message), "HTTP status %ld without a gRPC status", r->http_status);
	else if (!r->status)
		snprintf(answer->message, sizeof(answer->message), "an answer without a gRPC status");
	judge(code, answer);
}
