/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture that grows: OTLP messages whose dictionaries are one. Protobuf merges them, so indices go on counting, only the
 * first has the elements 0, and what a message needs of the dictionary it writes only when no message of its run has it yet.
 * A run is as many messages as fit into OTLP_RUN_BYTES, one at least; no message refers to what stands before its run. So
 * neither a writer nor a reader of a run at a time holds more than one, and both find where runs begin by the lengths of the
 * messages. Used by one thread at a time.
 */
#ifndef HEARTH_PROTO_OTLP_STREAM_H
#define HEARTH_PROTO_OTLP_STREAM_H

#include "proto/otlp/otlp.h"

enum { OTLP_RUN_BYTES = 4 << 20 }; /* a minute of builds on two CPUs at 99 Hz is 2 to 2.5 MB */

struct otlp_stream;

/* NULL without memory. */
struct otlp_stream *otlp_stream_new(void);
void otlp_stream_free(struct otlp_stream *s); /* accepts NULL */

/* Appends @p as the next message. 0; -ENOMEM, or -EOVERFLOW (the stream would have more elements in a table than an index
 * can count): nothing was appended. */
int otlp_stream_encode(struct otlp_stream *s, const struct profiles *p, struct buf *out);

#endif
