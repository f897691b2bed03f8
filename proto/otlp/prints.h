/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fingerprints of a message's form. Numbers moved with nearly every release up to 1.10, mostly to fields of another wire
 * type; so it is enough to note which wire types each field of a few messages was seen with.
 */
#ifndef HEARTH_PROTO_OTLP_PRINTS_H
#define HEARTH_PROTO_OTLP_PRINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

enum prints_node {
	NODE_TOP,
	NODE_RESOURCE_PROFILES,
	NODE_SCOPE_PROFILES,
	NODE_PROFILE,
	NODE_SAMPLE,
	NODE_VALUE_TYPE,
	NODE_DICTIONARY,
	NODE_ATTRIBUTE,
	NODES
};

enum { PRINTS_FIELDS = 16 };

struct otlp_prints {
	uint8_t wires[NODES][PRINTS_FIELDS]; /* bit w: the field was there with wire type w */
	bool aggregated;		     /* ValueType.3 held delta or cumulative */
};

/* Notes what a message of @len bytes holds, as far as it can be read. */
void otlp_prints_take(const uint8_t *data, size_t len, struct otlp_prints *ret);

static inline bool otlp_prints_saw(const struct otlp_prints *s, enum prints_node node, unsigned field, enum wire wire)
{
	return s->wires[node][field] & 1u << wire;
}

#endif
