/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP on libcurl, and over gRPC, which is HTTP/2 with a prefix in front of the message and a status behind it.
 * One easy handle inside one multi handle: the connection is kept alive between requests, and a request under way can be
 * abandoned at once (curl_multi_wakeup), which curl_easy_perform cannot. Redirects are not followed: profiles go only where
 * they were sent. Belongs to the sending thread; only otlp_http_wake() may be called from elsewhere.
 */
#include "sinks/otlp/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/curl.h"
#include "proto/grpc.h"
#include "proto/otlp/otlp.h"
#include "base/bearer_token.h"
#include "sinks/otlp/endpoint.h"
#include "sinks/sinks.h"

#define PROTOBUF "application/x-protobuf"
#define JSON	 "application/json"
#define GRPC	 "application/grpc"

enum {
	DEFAULT_TIMEOUT_MS = 10000,
	MAX_ANSWER_BYTES = 64 << 10, /* of a response body that are read */
	MAX_TEXT_CHARS = 200,	     /* of a text/plain answer that are shown */
	POLL_MS = 1000,
	MAX_RETRY_AFTER_S = 3600,
	CA_CACHE_S = 60, /* then a changed ca_file is seen */
};

struct otlp_http {
	struct otlp_endpoint endpoint;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct curl_slist with_encoding; /* a list's head: the header that says how bodies are packed, then @headers */
	enum otlp_packing packing;	 /* that it says */
	struct bearer_token *token;	 /* or NULL */
	struct curl_slist with_token;	 /* a list's head: the token's header, then those without it */
	struct buf answer;
	char error[CURL_ERROR_SIZE];
};

/* Takes all of the body off the wire but keeps no more than the limit. */
static size_t keep_answer(char *data, size_t size, size_t count, void *arg)
{
	struct buf *answer = arg;
	size_t len = size * count, room = MAX_ANSWER_BYTES - answer->len;

	buf_append(answer, data, len < room ? len : room);
	return len;
}

/* Runs the prepared transfer to its end. CURLE_ABORTED_BY_CALLBACK when it was abandoned. */
static CURLcode perform(struct otlp_http *h, const _Atomic bool *abandon)
{
	CURLcode code = CURLE_FAILED_INIT;
	bool is_abandoned = false, has_begun = false;
	CURLMsg *message;
	int running = 1, left;

	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	while (running && !(is_abandoned = atomic_load(abandon))) {
		if (curl_multi_perform(h->multi, &running) != CURLM_OK)
			break;
		if (running)
			curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
		has_begun = true;
	}
	if (is_abandoned && has_begun) /* the answer may be there by now */
		curl_multi_perform(h->multi, &running);
	while ((message = curl_multi_info_read(h->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			code = message->data.result;
	curl_multi_remove_handle(h->multi, h->easy);
	return running && is_abandoned ? CURLE_ABORTED_BY_CALLBACK : code;
}

/* A header of the answer; with gRPC also a trailer, which older libcurls file under headers. NULL when it is not there. */
static const char *answer_header(struct otlp_http *h, const char *name)
{
	struct curl_header *header;

	return curl_easy_header(h->easy, name, 0, CURLH_HEADER | CURLH_TRAILER, -1, &header) == CURLHE_OK ? header->value
													  : NULL;
}

static bool answer_is(struct otlp_http *h, const char *type)
{
	const char *is = answer_header(h, "content-type");

	return is && strncasecmp(is, type, strlen(type)) == 0;
}

/* Says why the request was refused: a Status, or, from the many servers that send none, the beginning of the text. */
static void read_refusal(struct otlp_http *h, struct otlp_http_answer *answer)
{
	int32_t grpc_code; /* says less than the HTTP status */
	int64_t rejected;

	if (answer_is(h, PROTOBUF)) {
		otlp_decode_status(h->answer.data, h->answer.len, &grpc_code, answer->message, sizeof(answer->message));
		return;
	}
	if (answer_is(h, JSON)) {
		otlp_json_decode_answer(buf_text(&h->answer), h->answer.len, &rejected, answer->message,
					sizeof(answer->message));
		return;
	}
	snprintf(answer->message, sizeof(answer->message), "%.*s", MAX_TEXT_CHARS, buf_text(&h->answer));
	answer->message[strcspn(answer->message, "\r\n")] = '\0';
}

static enum otlp_http_cause cause_of(long status)
{
	switch (status) {
	case 401:
	case 403:
		return OTLP_CAUSE_CREDENTIALS;
	case 404:
	case 405:
		return OTLP_CAUSE_PLACE;
	case 413:
		return OTLP_CAUSE_SIZE;
	default:
		return OTLP_CAUSE_REQUEST;
	}
}

static void read_http_answer(struct otlp_http *h, long status, struct otlp_http_answer *answer)
{
	curl_off_t seconds = 0;

	if (status >= 200 && status < 300) {
		answer->outcome = OTLP_HTTP_OK;
		if (answer_is(h, PROTOBUF))
			otlp_decode_response(h->answer.data, h->answer.len, &answer->rejected, answer->message,
					     sizeof(answer->message));
		else if (answer_is(h, JSON))
			otlp_json_decode_answer(buf_text(&h->answer), h->answer.len, &answer->rejected, answer->message,
						sizeof(answer->message));
		return;
	}
	answer->outcome = status == 429 || (status >= 502 && status <= 504) ? OTLP_HTTP_BUSY : OTLP_HTTP_REFUSED;
	answer->cause = cause_of(status);
	snprintf(answer->status, sizeof(answer->status), "status %ld", status);
	curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &seconds); /* seconds or an HTTP-date, as seconds from now */
	if (seconds > 0)
		answer->retry_after_ns = (uint64_t)(seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S) *
					 NSEC_PER_SEC;
	read_refusal(h, answer);
}

static bool curl_is_before(unsigned version)
{
	return curl_version_info(CURLVERSION_NOW)->version_num < version;
}

static void read_grpc_answer(struct otlp_http *h, long status, struct otlp_http_answer *answer)
{
	/* libcurl before 8.1 drops the trailers of an answer that comes together with the connection's GOAWAY. */
	struct otlp_grpc_reply reply = {
		.trailers_may_be_lost = curl_is_before(0x080100),
		.http_status = status,
		.content_type = answer_header(h, "content-type"),
		.status = answer_header(h, "grpc-status"),
		.message = answer_header(h, "grpc-message"),
		.details = answer_header(h, "grpc-status-details-bin"),
		.encoding = answer_header(h, "grpc-encoding"),
		.body = h->answer.data,
		.len = h->answer.len,
	};

	otlp_grpc_read(&reply, answer);
	if (answer->retry_after_ns > MAX_RETRY_AFTER_S * NSEC_PER_SEC)
		answer->retry_after_ns = MAX_RETRY_AFTER_S * NSEC_PER_SEC;
}

static void read_answer(struct otlp_http *h, CURLcode code, struct otlp_http_answer *answer)
{
	bool is_grpc = h->endpoint.protocol == OTLP_GRPC;
	long status = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	/* A server may end the stream abruptly once it has said what it has to say. */
	if (code == CURLE_OK || (is_grpc && code != CURLE_OPERATION_TIMEDOUT && code != CURLE_ABORTED_BY_CALLBACK &&
				 answer_header(h, "grpc-status"))) {
		if (is_grpc)
			read_grpc_answer(h, status, answer);
		else
			read_http_answer(h, status, answer);
		return;
	}
	answer->outcome = code == CURLE_ABORTED_BY_CALLBACK  ? OTLP_HTTP_ABANDONED
			  : code == CURLE_OPERATION_TIMEDOUT ? OTLP_HTTP_TIMEOUT
							     : OTLP_HTTP_UNREACHABLE;
	snprintf(answer->message, sizeof(answer->message), "%s", h->error[0] ? h->error : curl_easy_strerror(code));
}

/* Makes the list of headers for a token that is known, or for none yet, and for bodies that are packed so. */
static void set_headers(struct otlp_http *h, enum otlp_packing packing)
{
	static const char *const of_http[] = {
		[OTLP_GZIP] = "Content-Encoding: gzip", [OTLP_ZSTD] = "Content-Encoding: zstd"
	};
	static const char *const of_grpc[] = { [OTLP_GZIP] = "grpc-encoding: gzip", [OTLP_ZSTD] = "grpc-encoding: zstd" };
	const char *const *lines = h->endpoint.protocol == OTLP_GRPC ? of_grpc : of_http;
	struct curl_slist *list = h->headers;

	h->packing = packing;
	if (packing != OTLP_UNPACKED) {
		h->with_encoding = (struct curl_slist){ (char *)(uintptr_t)lines[packing], list };
		list = &h->with_encoding;
	}
	if (h->with_token.data) {
		h->with_token.next = list;
		list = &h->with_token;
	}
	curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, list);
}

/* Puts the token of now into the headers. True when it is another than before. */
static bool renew_token(struct otlp_http *h)
{
	bool is_new = h->token && bearer_token_read(h->token) > 0;

	if (is_new) {
		h->with_token.data = (char *)(uintptr_t)bearer_token_header(h->token);
		set_headers(h, h->packing);
	}
	return is_new;
}

/* Is it the body's encoding that a refusal is about? By 415, or 400 in words that name the header, as the Collector answers;
 * by gRPC's UNIMPLEMENTED with a list of encodings, or words about one. Else UNIMPLEMENTED is about the service. */
static bool refuses_encoding(struct otlp_http *h, const struct otlp_http_answer *answer)
{
	const char *accepted = answer_header(h, "grpc-accept-encoding"), *status = answer_header(h, "grpc-status");
	long http_status = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &http_status);
	if (h->endpoint.protocol != OTLP_GRPC)
		return http_status == 415 || (http_status == 400 && strcasestr(answer->message, "content-encoding"));
	if (!status || strtol(status, NULL, 10) != GRPC_UNIMPLEMENTED)
		return false;
	return (accepted && !strstr(accepted, "zstd")) || strcasestr(answer->message, "compress") ||
	       strcasestr(answer->message, "encoding");
}

bool otlp_http_takes(const struct otlp_http *h, enum otlp_signal signal)
{
	return signal == OTLP_PROFILES || h->endpoint.others[signal];
}

void otlp_http_post(struct otlp_http *h, enum otlp_signal signal, enum otlp_packing packing, uint8_t *body, size_t len,
		    const _Atomic bool *abandon, struct otlp_http_answer *answer_ret, size_t *sent_ret)
{
	if (h->endpoint.protocol == OTLP_GRPC) {
		body -= GRPC_PREFIX_BYTES;
		grpc_prefix(body, packing != OTLP_UNPACKED, (uint32_t)len);
		len += GRPC_PREFIX_BYTES;
	}
	*answer_ret = (struct otlp_http_answer){ 0 };
	*sent_ret = len;
	buf_reset(&h->answer);
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_URL, signal == OTLP_PROFILES ? h->endpoint.url : h->endpoint.others[signal]);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	if (packing != h->packing)
		set_headers(h, packing);
	renew_token(h);
	read_answer(h, perform(h, abandon), answer_ret);
	if (answer_ret->outcome == OTLP_HTTP_REFUSED && answer_ret->cause == OTLP_CAUSE_CREDENTIALS && renew_token(h))
		answer_ret->outcome = OTLP_HTTP_BUSY; /* the token was replaced just then */
	if (answer_ret->outcome == OTLP_HTTP_REFUSED && packing == OTLP_ZSTD && refuses_encoding(h, answer_ret))
		answer_ret->cause = OTLP_CAUSE_PACKING;
}

void otlp_http_wake(struct otlp_http *h)
{
	curl_multi_wakeup(h->multi);
}

const char *otlp_http_url(const struct otlp_http *h)
{
	return h->endpoint.display;
}

enum otlp_protocol otlp_http_protocol(const struct otlp_http *h)
{
	return h->endpoint.protocol;
}

static int add_header(struct otlp_http *h, const char *line)
{
	struct curl_slist *longer = curl_slist_append(h->headers, line);

	if (!longer)
		return -ENOMEM;
	h->headers = longer;
	return 0;
}

static uint64_t timeout_ms(const struct otlp_sink_config *config)
{
	uint64_t ms = config->timeout_ns / NSEC_PER_MSEC;

	if (config->timeout_ns == UINT64_MAX)
		return 0;
	return !config->timeout_ns ? DEFAULT_TIMEOUT_MS : ms ? ms : 1;
}

/* Adds the headers of the protocol. */
static int add_own_headers(struct otlp_http *h, const struct otlp_sink_config *config)
{
	static const char *const of_http[] = { "Content-Type: " PROTOBUF, NULL };
	static const char *const of_json[] = { "Content-Type: " JSON, NULL };
	static const char *const of_grpc[] = { "Content-Type: " GRPC, "TE: trailers", "grpc-accept-encoding: identity,gzip",
					       NULL };
	bool is_grpc = h->endpoint.protocol == OTLP_GRPC, is_json = h->endpoint.protocol == OTLP_HTTP_JSON;
	char timeout[48];
	int error = 0;

	for (const char *const *line = is_grpc ? of_grpc : is_json ? of_json : of_http; *line && !error; line++)
		error = add_header(h, *line);
	if (!error)
		error = add_header(h, "otlp-profiles-development-version: 1");
	if (!error) /* no round trip of its own to ask whether a body is welcome */
		error = add_header(h, "Expect:");
	snprintf(timeout, sizeof(timeout), "grpc-timeout: %" PRIu64 "m", timeout_ms(config));
	return !error && is_grpc && timeout_ms(config) ? add_header(h, timeout) : error;
}

static int headers_init(struct otlp_http *h, const struct otlp_sink_config *config)
{
	int error = add_own_headers(h, config);

	for (const char *const *line = config->headers; line && *line && !error; line++) {
		const char *colon = strchr(*line, ':');

		if (!colon || colon == *line || strpbrk(*line, "\r\n") || strcspn(*line, " \t") < (size_t)(colon - *line))
			return -EBADMSG;
		error = add_header(h, *line);
	}
	return error;
}

/* HTTP/2 from the first byte, or by TLS's own negotiation; a proxy would not pass HTTP/2 on, but a tunnel. */
static void speak_grpc(struct otlp_http *h)
{
	/* libcurl before 8.0 sends HTTP/2's preface again on a connection of prior knowledge that it uses again. */
	if (!h->endpoint.tls && curl_is_before(0x080000))
		curl_easy_setopt(h->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(h->easy, CURLOPT_HTTP_VERSION,
			 h->endpoint.tls ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	curl_easy_setopt(h->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
}

static CURLcode connection_init(struct otlp_http *h, const struct otlp_sink_config *config)
{
	CURLcode code = curl_easy_setopt(h->easy, CURLOPT_URL, h->endpoint.url);

	if (code == CURLE_OK)
		code = curl_easy_setopt(h->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (code == CURLE_OK && config->ca_file)
		code = curl_easy_setopt(h->easy, CURLOPT_CAINFO, config->ca_file);
	if (code == CURLE_OK && config->cert_file)
		code = curl_easy_setopt(h->easy, CURLOPT_SSLCERT, config->cert_file);
	if (code == CURLE_OK && config->cert_file)
		code = curl_easy_setopt(h->easy, CURLOPT_SSLKEY, config->key_file ? config->key_file : config->cert_file);
	if (code == CURLE_OK && config->proxy)
		code = curl_easy_setopt(h->easy, CURLOPT_PROXY, config->proxy);
	curl_easy_setopt(h->easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
	if (code == CURLE_OK && h->endpoint.unix_path) {
		code = curl_easy_setopt(h->easy, CURLOPT_UNIX_SOCKET_PATH, h->endpoint.unix_path);
		if (code == CURLE_OK)
			code = curl_easy_setopt(h->easy, CURLOPT_PROXY, "");
	}
	if (h->endpoint.protocol == OTLP_GRPC)
		speak_grpc(h);
	return code;
}

static int easy_init(struct otlp_http *h, const struct otlp_sink_config *config)
{
	CURL *e = h->easy;
	CURLcode code = connection_init(h, config);

	if (code == CURLE_OK)
		code = curl_easy_setopt(e, CURLOPT_USERAGENT,
					"hearth/" HEARTH_VERSION " OTel-OTLP-Exporter-C/" HEARTH_VERSION);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	set_headers(h, config->packing);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)timeout_ms(config));
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a name server when abandoned */
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, keep_answer);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, &h->answer);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

int otlp_http_new(const struct otlp_sink_config *config, struct otlp_http **ret)
{
	struct otlp_http *h;
	int error;

	const char *const files[] = { config->ca_file, config->cert_file, config->key_file };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (files[i] && access(files[i], R_OK) != 0)
			return -errno;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* counted; otlp_http_free() gives it back */
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	error = h->multi && h->easy ? otlp_endpoint_init(&h->endpoint, config->url, config->protocol, config->insecure)
				    : -ENOMEM;
	if (!error)
		error = headers_init(h, config);
	if (!error)
		error = easy_init(h, config);
	if (!error && config->token_file)
		error = bearer_token_new(config->token_file, &h->token);
	if (error) {
		otlp_http_free(h);
		return error;
	}
	*ret = h;
	return 0;
}

void otlp_http_free(struct otlp_http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->easy);
	if (h->multi)
		curl_multi_cleanup(h->multi);
	curl_slist_free_all(h->headers);
	buf_fini(&h->answer);
	bearer_token_free(h->token);
	otlp_endpoint_fini(&h->endpoint);
	free(h);
	curl_global_cleanup();
}
