/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP's message ProcessContext, which processes publish in their memory (opentelemetry/proto/common, since 1.11). */
#ifndef HEARTH_PROTO_OTLP_PROCESS_CONTEXT_H
#define HEARTH_PROTO_OTLP_PROCESS_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/profiles.h"

struct otlp_process_context {
	bool has_resource;
	struct resource resource;
	struct key_values attributes;
	struct profiles *memory; /* that all of it lies in */
};

/* Decodes @data, of which nothing is kept. 0 and otlp_process_context_fini() later; -EBADMSG, -ENOMEM. */
int otlp_process_context_decode(const uint8_t *data, size_t len, struct otlp_process_context *ret);
void otlp_process_context_fini(struct otlp_process_context *c);

#endif
