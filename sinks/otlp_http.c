/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP on libcurl. One easy handle inside one multi handle: the connection is kept alive between requests, and a
 * request under way can be abandoned at once (curl_multi_wakeup), which curl_easy_perform cannot. Redirects are not
 * followed: profiles go only where they were sent. Belongs to the sending thread; only otlp_http_wake() may be called from
 * elsewhere.
 */
#include "sinks/otlp_http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/otlp.h"
#include "sinks/sinks.h"

#define PROTOBUF "application/x-protobuf"

enum {
	DEFAULT_TIMEOUT_MS = 10000,
	MAX_ANSWER_BYTES = 64 << 10, /* of a response body that are read */
	MAX_TEXT_CHARS = 200,	     /* of a text/plain answer that are shown */
	POLL_MS = 1000,
	GZIP_LEVEL = 1,	       /* profiles shrink about as well as at 6, at a third of the time */
	GZIP_WINDOW = 15 + 16, /* 32 KiB with a gzip header, in zlib's notation */
	MAX_RETRY_AFTER_S = 3600,
};

struct otlp_http {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	char *url;     /* with credentials, if any */
	char *display; /* without */
	struct buf answer;
	char error[CURL_ERROR_SIZE];
};

int otlp_http_gzip(const uint8_t *data, size_t len, uint8_t **ret, size_t *len_ret)
{
	z_stream z = { 0 };
	size_t bound;
	int end;

	if (len > UINT32_MAX / 2)
		return -E2BIG;
	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&z, len);
	*ret = malloc(bound);
	z.next_in = (uint8_t *)(uintptr_t)data;
	z.avail_in = len;
	z.next_out = *ret;
	z.avail_out = bound;
	end = *ret ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	*len_ret = z.total_out;
	deflateEnd(&z);
	if (end == Z_STREAM_END) {
		uint8_t *fitted = realloc(*ret, *len_ret); /* the queue's bound counts what is used */

		*ret = fitted ? fitted : *ret;
		return 0;
	}
	free(*ret);
	return -ENOMEM;
}

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
	CURLMsg *message;
	int running = 1, left;

	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK)
		return CURLE_OUT_OF_MEMORY;
	while (running && !atomic_load(abandon)) {
		if (curl_multi_perform(h->multi, &running) != CURLM_OK)
			break;
		if (running)
			curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
	while ((message = curl_multi_info_read(h->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			code = message->data.result;
	curl_multi_remove_handle(h->multi, h->easy);
	return running && atomic_load(abandon) ? CURLE_ABORTED_BY_CALLBACK : code;
}

static bool answer_is_protobuf(struct otlp_http *h)
{
	const char *type = NULL;

	curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
	return type && strncasecmp(type, PROTOBUF, sizeof(PROTOBUF) - 1) == 0;
}

/* Why it was not taken: a Status, or, from the many servers that send none, the beginning of the text. */
static void read_refusal(struct otlp_http *h, struct otlp_http_answer *answer)
{
	int32_t grpc_code; /* says less than the HTTP status */

	if (answer_is_protobuf(h)) {
		otlp_decode_status(h->answer.data, h->answer.len, &grpc_code, answer->message, sizeof(answer->message));
		return;
	}
	snprintf(answer->message, sizeof(answer->message), "%.*s", MAX_TEXT_CHARS, buf_text(&h->answer));
	answer->message[strcspn(answer->message, "\r\n")] = '\0';
}

static void read_answer(struct otlp_http *h, struct otlp_http_answer *answer)
{
	curl_off_t seconds = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	if (answer->status >= 200 && answer->status < 300) {
		answer->outcome = OTLP_HTTP_OK;
		if (answer_is_protobuf(h))
			otlp_decode_response(h->answer.data, h->answer.len, &answer->rejected, answer->message,
					     sizeof(answer->message));
		return;
	}
	answer->outcome = OTLP_HTTP_REFUSED;
	if (answer->status == 429 || (answer->status >= 502 && answer->status <= 504))
		answer->outcome = OTLP_HTTP_BUSY;
	curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &seconds); /* seconds or an HTTP-date, as seconds from now */
	if (seconds > 0)
		answer->retry_after_ns = (seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S) * NSEC_PER_SEC;
	read_refusal(h, answer);
}

void otlp_http_post(struct otlp_http *h, const uint8_t *body, size_t len, const _Atomic bool *abandon,
		    struct otlp_http_answer *answer_ret)
{
	CURLcode code;

	*answer_ret = (struct otlp_http_answer){ 0 };
	buf_reset(&h->answer);
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	code = perform(h, abandon);
	if (code == CURLE_OK) {
		read_answer(h, answer_ret);
		return;
	}
	answer_ret->outcome = code == CURLE_ABORTED_BY_CALLBACK	 ? OTLP_HTTP_ABANDONED
			      : code == CURLE_OPERATION_TIMEDOUT ? OTLP_HTTP_TIMEOUT
								 : OTLP_HTTP_UNREACHABLE;
	snprintf(answer_ret->message, sizeof(answer_ret->message), "%s", h->error[0] ? h->error : curl_easy_strerror(code));
}

void otlp_http_wake(struct otlp_http *h)
{
	curl_multi_wakeup(h->multi);
}

const char *otlp_http_url(const struct otlp_http *h)
{
	return h->display;
}

/* A copy of the whole URL, which is malloc'd by libcurl's allocator, in ours. */
static int url_text(CURLU *parsed, char **ret)
{
	char *text = NULL;

	if (curl_url_get(parsed, CURLUPART_URL, &text, 0) != CURLUE_OK)
		return -ENOMEM;
	*ret = strdup(text);
	curl_free(text);
	return *ret ? 0 : -ENOMEM;
}

static int url_complete(CURLU *parsed, const char *url, struct otlp_http *h)
{
	char *scheme = NULL, *path = NULL;
	int error = -ENOMEM;
	CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url, 0);

	if (code == CURLUE_UNSUPPORTED_SCHEME)
		return -EPROTONOSUPPORT;
	if (code != CURLUE_OK)
		return code == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
	if (curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(parsed, CURLUPART_PATH, &path, 0) == CURLUE_OK) {
		error = strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0 ? -EPROTONOSUPPORT : 0;
		if (!error && strcmp(path, "/") == 0)
			curl_url_set(parsed, CURLUPART_PATH, "/v1development/profiles", 0);
	}
	curl_free(scheme);
	curl_free(path);
	if (!error)
		error = url_text(parsed, &h->url);
	if (error)
		return error;
	curl_url_set(parsed, CURLUPART_USER, NULL, 0);
	curl_url_set(parsed, CURLUPART_PASSWORD, NULL, 0);
	return url_text(parsed, &h->display);
}

static int url_init(struct otlp_http *h, const char *url)
{
	CURLU *parsed = curl_url();
	int error = parsed ? url_complete(parsed, url, h) : -ENOMEM;

	curl_url_cleanup(parsed);
	return error;
}

static int add_header(struct otlp_http *h, const char *line)
{
	struct curl_slist *longer = curl_slist_append(h->headers, line);

	if (!longer)
		return -ENOMEM;
	h->headers = longer;
	return 0;
}

static int headers_init(struct otlp_http *h, const struct otlp_sink_config *config)
{
	static const char *const own[] = {
		"Content-Type: " PROTOBUF, "otlp-profiles-development-version: 1",
		"Expect:", /* no round trip of its own to ask whether a body is welcome */
	};
	int error = config->no_gzip ? 0 : add_header(h, "Content-Encoding: gzip");

	for (size_t i = 0; i < ARRAY_LEN(own) && !error; i++)
		error = add_header(h, own[i]);
	for (const char *const *line = config->headers; line && *line && !error; line++) {
		const char *colon = strchr(*line, ':');

		if (!colon || colon == *line || strpbrk(*line, "\r\n") || strcspn(*line, " \t") < (size_t)(colon - *line))
			return -EBADMSG;
		error = add_header(h, *line);
	}
	return error;
}

static int easy_init(struct otlp_http *h, const struct otlp_sink_config *config)
{
	long timeout_ms = config->timeout_ns ? (long)(config->timeout_ns / NSEC_PER_MSEC) : DEFAULT_TIMEOUT_MS;
	CURL *e = h->easy;
	CURLcode code = curl_easy_setopt(e, CURLOPT_URL, h->url);

	if (code == CURLE_OK)
		code = curl_easy_setopt(e, CURLOPT_USERAGENT,
					"hearth/" HEARTH_VERSION " OTel-OTLP-Exporter-C/" HEARTH_VERSION);
	if (code == CURLE_OK && config->ca_file)
		code = curl_easy_setopt(e, CURLOPT_CAINFO, config->ca_file);
	if (code == CURLE_OK)
		code = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms > 0 ? timeout_ms : 1L);
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

	if (config->ca_file && access(config->ca_file, R_OK) != 0)
		return -errno;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	curl_global_init(CURL_GLOBAL_DEFAULT); /* counted; otlp_http_free() gives it back */
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	error = h->multi && h->easy ? url_init(h, config->url) : -ENOMEM;
	if (!error)
		error = headers_init(h, config);
	if (!error)
		error = easy_init(h, config);
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
	free(h->url);
	free(h->display);
	free(h);
	curl_global_cleanup();
}
