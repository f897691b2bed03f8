/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles as they lie in files: every way in which tools put messages one after the other. */
#ifndef HEARTH_PROTO_OTLP_READ_H
#define HEARTH_PROTO_OTLP_READ_H

#include "proto/otlp.h"

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

/* Has the JSON object @data one of the members of OTLP's ProfilesData? */
bool otlp_read_is_json(const uint8_t *data, size_t len);

#endif
