/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of attributes of a resource, each key once, with memory of its own; and a reader for the form in which
 * OpenTelemetry's variables hold such a list.
 */
#ifndef HEARTH_AGENT_PROCESS_ATTRIBUTES_H
#define HEARTH_AGENT_PROCESS_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/profiles.h"

enum {
	ATTRIBUTES_MAX = 128,	      /* attributes in a list */
	ATTRIBUTE_KEY_BYTES = 256,    /* a longer key is not taken */
	ATTRIBUTE_VALUE_BYTES = 1024, /* a longer value is cut */
};

struct attributes {
	struct key_value *items; /* keys and strings are owned */
	uint32_t count, cap;
};

#define ATTRIBUTES_EMPTY ((struct attributes){ 0 })

void attributes_fini(struct attributes *a);

/*
 * Adds @key, unless the list has it already, is full, or @key is empty, too long or no UTF-8. Bytes of the value that are
 * not UTF-8 become U+FFFD, and a value that is too long is cut. 0 or -ENOMEM.
 */
int attributes_add(struct attributes *a, struct str key, struct str value);

/* The value of @key. NULL: the list has no such key. */
const struct any_value *attributes_find(const struct attributes *a, struct str key);

/*
 * Adds the attributes of @text, in the form of OTEL_RESOURCE_ATTRIBUTES: KEY=VALUE,..., both percent-encoded; if a key is
 * there twice the last value counts. 0; -ENOMEM; -EINVAL: the text has another form, and then nothing is added (by
 * OpenTelemetry's specification of resources).
 */
int attributes_parse(struct attributes *a, struct str text);

#endif
