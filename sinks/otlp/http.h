/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client for one collector, also for gRPC: posts encoded requests, one at a time, and says what became of each. */
#ifndef HEARTH_SINKS_OTLP_HTTP_H
#define HEARTH_SINKS_OTLP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sinks/otlp/grpc.h"
#include "sinks/sinks.h"

struct otlp_http;

enum otlp_http_outcome {
	OTLP_HTTP_OK,	       /* acknowledged; see rejected and message for a partial success */
	OTLP_HTTP_REFUSED,     /* final: the same request would be refused again; see cause */
	OTLP_HTTP_BUSY,	       /* 429, 502, 503, 504, gRPC's retryable codes: later */
	OTLP_HTTP_TIMEOUT,     /* no answer within the time allowed */
	OTLP_HTTP_UNREACHABLE, /* refused or broken connection, or no memory */
	OTLP_HTTP_ABANDONED,   /* the caller gave up on it */
};

/* The cause of a refusal, as far as its status tells. */
enum otlp_http_cause {
	OTLP_CAUSE_REQUEST,
	OTLP_CAUSE_CREDENTIALS,
	OTLP_CAUSE_PLACE, /* nobody takes profiles there */
	OTLP_CAUSE_SIZE,
	OTLP_CAUSE_PACKING, /* it was packed by zstd, which is not taken there */
};

struct otlp_http_answer {
	enum otlp_http_outcome outcome;
	enum otlp_http_cause cause;
	char status[64];	 /* in words, such as "status 503"; "" when there was no answer */
	int64_t rejected;	 /* profiles refused by an OTLP_HTTP_OK */
	uint64_t retry_after_ns; /* what the collector asked for, an hour at most; 0: nothing */
	char message[256];	 /* the server's or libcurl's words; "" when there are none */
};

/* 0; the errors of otlp_endpoint_init() for @config->url; -EBADMSG: a header is not "Name: value"; the errno of reading a
 * file; -ENOMEM. */
int otlp_http_new(const struct otlp_sink_config *config, struct otlp_http **ret);
void otlp_http_free(struct otlp_http *h);

/* The URL that requests go to, without credentials: for messages. */
const char *otlp_http_url(const struct otlp_http *h);

/* Whether it is known where @signal goes. */
bool otlp_http_takes(const struct otlp_http *h, enum otlp_signal signal);

enum otlp_protocol otlp_http_protocol(const struct otlp_http *h);

/*
 * Posts a body of @signal, of @len bytes that are packed as @packing says, and waits for the answer, or until *@abandon is
 * set and otlp_http_wake() called. One thread at a time. GRPC_PREFIX_BYTES in front of @body must be writable: gRPC's prefix
 * goes there. *@sent_ret is how many bytes the body was on the wire.
 */
void otlp_http_post(struct otlp_http *h, enum otlp_signal signal, enum otlp_packing packing, uint8_t *body, size_t len,
		    const _Atomic bool *abandon, struct otlp_http_answer *answer_ret, size_t *sent_ret);

/* Makes a waiting otlp_http_post() look at its flag. Any thread. */
void otlp_http_wake(struct otlp_http *h);

#endif
