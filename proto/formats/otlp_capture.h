/* SPDX-License-Identifier: Apache-2.0 */
/* Reads OTLP profiles from files: every way in which tools put messages one after the other. */
#ifndef HEARTH_PROTO_FORMATS_OTLP_CAPTURE_H
#define HEARTH_PROTO_FORMATS_OTLP_CAPTURE_H

#include "proto/otlp/otlp.h"

/*
 * Reads @data, which is not compressed as a whole: one message as protobuf; several, as the file sink writes them (one
 * dictionary goes on in the next) or as `cat` puts captures together; messages with their lengths before them, in four
 * big-endian bytes as the Collector's file exporter writes them (where each may be compressed) or as protobuf's varint;
 * OTLP/ JSON, a message or a line each. A stream that is cut is read up to its last whole message: *@read_bytes_ret is how
 * far.
 *
 * On success the model may take the bytes of @data over, which is then empty. 0; -EBADMSG with @error saying what and where;
 * -E2BIG: it would unpack to more than @max_bytes; -ENOMEM.
 */
int otlp_read(struct buf *data, size_t max_bytes, struct profiles **ret, size_t *read_bytes_ret, struct otlp_error *error);

/* How far otlp_read_parts() came. */
struct otlp_parts {
	size_t bytes;	    /* of the parts that were given */
	uint32_t resources; /* in them */
	uint64_t events;    /* their sample_events */
};

/*
 * Reads @data, one or more captures as the file sink writes them, a run of messages at a time, so that memory holds two: @fn
 * gets each, on the caller's thread, for the time of the call and to change as it likes, and may let go of @data up to
 * parts->bytes. Stops when it returns not 0 and returns that. 0: that was all, or all before a cut; *@parts says how far.
 * -EBADMSG: what follows cannot be read alone, maybe from the start; otlp_read() of the whole then says what it is, and has
 * the same resources in the same order. -ENOMEM.
 */
int otlp_read_parts(const uint8_t *data, size_t len, int (*fn)(void *arg, struct profiles *p), void *arg,
		    struct otlp_parts *parts);

/* Has the JSON object @data one of the members of OTLP's ProfilesData? */
bool otlp_read_is_json(const uint8_t *data, size_t len);

#endif
