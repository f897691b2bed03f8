/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of gRPC's answers. */
#ifndef HEARTH_SINKS_OTLP_GRPC_H
#define HEARTH_SINKS_OTLP_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct otlp_http_answer;

/* An answer as it came; texts are NULL where a header or trailer was not there. */
struct otlp_grpc_reply {
	long http_status;
	const char *content_type;
	const char *status;   /* grpc-status */
	const char *message;  /* grpc-message, percent-encoded */
	const char *details;  /* grpc-status-details-bin, base64 */
	const char *encoding; /* grpc-encoding */
	const uint8_t *body;
	size_t len;
	bool trailers_may_be_lost; /* on the way from the wire to here */
};

/*
 * Fills @answer with the result of the request: the outcome and its cause, the status in words, what the collector asked for
 * and said. Without grpc-status it is made of the HTTP status, as gRPC's specification has it, and UNKNOWN in the end. If
 * the trailers may have been lost, a whole message is an acknowledgement, as servers send one with no other status; without
 * one the request is to be sent again.
 */
void otlp_grpc_read(const struct otlp_grpc_reply *reply, struct otlp_http_answer *answer);

#endif
