/* SPDX-License-Identifier: Apache-2.0 */
/* One collector spoken to over HTTP: posts encoded requests, one at a time, and says what became of each. */
#ifndef HEARTH_SINKS_OTLP_HTTP_H
#define HEARTH_SINKS_OTLP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct otlp_http;
struct otlp_sink_config;

enum otlp_http_outcome {
	OTLP_HTTP_OK,	       /* acknowledged; see rejected and message for a partial success */
	OTLP_HTTP_REFUSED,     /* final: the same request would be refused again */
	OTLP_HTTP_BUSY,	       /* 429, 502, 503, 504: later */
	OTLP_HTTP_TIMEOUT,     /* no answer within the time allowed */
	OTLP_HTTP_UNREACHABLE, /* refused or broken connection, or want of memory */
	OTLP_HTTP_ABANDONED,   /* the caller gave up on it */
};

struct otlp_http_answer {
	enum otlp_http_outcome outcome;
	long status;		 /* HTTP status; 0 when there was no answer */
	int64_t rejected;	 /* profiles refused by an OTLP_HTTP_OK */
	uint64_t retry_after_ns; /* what the collector asked for; 0: nothing */
	char message[256];	 /* the server's or libcurl's words; "" when there are none */
};

/* 0; -EINVAL: @config->url is no URL; -EPROTONOSUPPORT: neither http nor https; -EBADMSG: a header is not "Name: value";
 * the errno of reading ca_file; -ENOMEM. */
int otlp_http_new(const struct otlp_sink_config *config, struct otlp_http **ret);
void otlp_http_free(struct otlp_http *h);

/* The URL that requests go to, without credentials: for messages. */
const char *otlp_http_url(const struct otlp_http *h);

/* Compresses a body as "Content-Encoding: gzip" says. *@ret is the caller's to free. 0, -E2BIG or -ENOMEM. */
int otlp_http_gzip(const uint8_t *data, size_t len, uint8_t **ret, size_t *len_ret);

/* Posts @body (compressed, unless config->no_gzip) and waits for the answer, or until *@abandon is set and otlp_http_wake()
 * called. One thread at a time. */
void otlp_http_post(struct otlp_http *h, const uint8_t *body, size_t len, const _Atomic bool *abandon,
		    struct otlp_http_answer *answer_ret);

/* Makes a waiting otlp_http_post() look at its flag. Any thread. */
void otlp_http_wake(struct otlp_http *h);

#endif
