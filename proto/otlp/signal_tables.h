/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the other signals. */
#ifndef HEARTH_PROTO_OTLP_SIGNAL_TABLES_H
#define HEARTH_PROTO_OTLP_SIGNAL_TABLES_H

#include "proto/otlp/schema.h"

extern const struct otlp_message otlp_metrics, otlp_traces;

/* A hook: one item more. */
bool otlp_count_item(struct otlp_decoder *d, const void *base);

/* Appends @base as protobuf, by its table; fields in ascending order. 0 or -ENOMEM. */
int otlp_encode_message(const struct otlp_message *m, const void *base, struct buf *out);

#endif
