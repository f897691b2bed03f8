/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The framing of gRPC's messages inside an HTTP/2 stream: one byte that says whether the message is compressed, four that
 * say how long it is, the message. A parser of bytes as they come, for methods that take exactly one message.
 */
#ifndef HEARTH_BACKEND_GRPC_GRPC_FRAME_H
#define HEARTH_BACKEND_GRPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/grpc.h"

struct grpc_frame { /* zeroed: nothing came yet */
	uint8_t prefix[GRPC_PREFIX_BYTES];
	uint8_t prefix_len;
	bool is_compressed; /* this and @len: once the prefix is whole */
	uint32_t len;	    /* of the message */
	uint32_t received;  /* of it */
};

enum grpc_frame_step {
	GRPC_FRAME_MORE,    /* all bytes were used */
	GRPC_FRAME_PREFIX,  /* the prefix is whole: @is_compressed and @len stand */
	GRPC_FRAME_DATA,    /* @data_ret, @len_ret: a piece of the message, at least one byte, in the caller's bytes */
	GRPC_FRAME_BAD,	    /* the first byte is neither 0 nor 1 */
	GRPC_FRAME_SURPLUS, /* bytes behind the message */
};

/* Takes one step through [*@p, @end) and moves *@p. After BAD and SURPLUS nothing more may be asked. */
enum grpc_frame_step grpc_frame_next(struct grpc_frame *f, const uint8_t **p, const uint8_t *end, const uint8_t **data_ret,
				     size_t *len_ret);

static inline bool grpc_frame_is_begun(const struct grpc_frame *f)
{
	return f->prefix_len > 0;
}

static inline bool grpc_frame_is_whole(const struct grpc_frame *f)
{
	return f->prefix_len == GRPC_PREFIX_BYTES && f->received == f->len;
}

#endif
