/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps everything that a message holds, as it lies there, for people who look into a sender. */
#ifndef HEARTH_PROTO_OTLP_DUMP_H
#define HEARTH_PROTO_OTLP_DUMP_H

#include "proto/otlp/signals.h"

/*
 * Appends one line a field, by its name in the schema, nested as the message is; fields that are not set have none. Strings
 * are quoted and escaped as in JSON, bytes are hex, an index of a string is followed by the string. Memory failures stick in
 * @out.
 */
void otlp_dump(const struct profiles *p, struct buf *out);
void otlp_dump_other(const struct otlp_other *o, struct buf *out);

#endif
