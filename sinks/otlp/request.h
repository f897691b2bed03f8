/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on their way to a collector, and lists of them. A request keeps its message as protobuf, whatever the collector
 * is spoken to in: so it can be split, kept on disk, and sent another way after a restart. The caller that takes a request
 * off a list owns it.
 */
#ifndef HEARTH_SINKS_OTLP_REQUEST_H
#define HEARTH_SINKS_OTLP_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/grpc.h"
#include "proto/sink.h"
#include "sinks/sinks.h"

enum { OTLP_REQUEST_ROOM_BYTES = GRPC_PREFIX_BYTES };

struct otlp_batch {	 /* what one consume() made; goes with the last of its requests */
	struct ack *ack; /* or NULL */
	_Atomic uint32_t open;
	_Atomic int error; /* of the last request that failed */
};

struct otlp_request {
	struct otlp_request *next;
	struct otlp_batch *batch;  /* or NULL */
	enum otlp_signal signal;   /* OTLP_PROFILES, unless its maker says another */
	struct buf frame;	   /* OTLP_REQUEST_ROOM_BYTES, then the message */
	enum otlp_packing packing; /* of the message */
	size_t message_bytes;	   /* before that */
	uint64_t samples;	   /* of another signal: 1 */
	bool is_unanswered;	   /* it was sent, and the collector may have it */
};

struct otlp_requests {
	struct otlp_request *first, **last;
};

void otlp_requests_init(struct otlp_requests *list);
void otlp_requests_append(struct otlp_requests *list, struct otlp_request *r);
/* Puts all of @more, which is empty then, in front. */
void otlp_requests_prepend(struct otlp_requests *list, struct otlp_requests *more);
struct otlp_request *otlp_requests_pop(struct otlp_requests *list);

/* Copies @message. @batch (may be NULL) is held until the request is settled. 0 or -ENOMEM. */
int otlp_request_new(const uint8_t *message, size_t len, uint64_t samples, enum otlp_packing packing,
		     struct otlp_batch *batch, struct otlp_request **ret);
/* The same of a message that is packed so already. */
int otlp_request_of(const uint8_t *kept, size_t len, uint64_t samples, enum otlp_packing packing, struct otlp_request **ret);

/* The message as it is kept, without the room in front. */
static inline size_t otlp_request_len(const struct otlp_request *r)
{
	return r->frame.len - OTLP_REQUEST_ROOM_BYTES;
}

/*
 * The end of a request: frees it, and completes the producer's ack (@error: 0 or -errno) when it was the batch's last. Not
 * under a lock: the producer is called.
 */
void otlp_request_settle(struct otlp_request *r, int error);

/*
 * Makes the body that is sent: *@body_ret points to @len_ret bytes in @protocol, packed as @packing says, with
 * OTLP_REQUEST_ROOM_BYTES that may be written in front; they are the request's or @scratch's. 0; -EBADMSG: the request is no
 * sound message; -ENOMEM.
 */
int otlp_request_body(struct otlp_request *r, enum otlp_protocol protocol, enum otlp_packing packing, struct buf *scratch,
		      uint8_t **body_ret, size_t *len_ret);

/* Makes requests of at most @max_bytes of @r, which it leaves alone; they hold its batch. 0; -E2BIG: it is one sample, or
 * smaller already; -EBADMSG; -ENOMEM; then @list is as it was. */
int otlp_request_split(const struct otlp_request *r, size_t max_bytes, struct otlp_requests *list);

/* Bytes of the message in OTLP/JSON, uncompressed; 0 when that cannot be said. */
size_t otlp_request_json_bytes(const struct otlp_request *r);

#endif
