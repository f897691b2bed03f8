/* SPDX-License-Identifier: Apache-2.0 */
/* For files of tables that say which field of which message lands where: how a table is written, and the messages that
 * several share. */
#ifndef HEARTH_PROTO_OTLP_SCHEMA_H
#define HEARTH_PROTO_OTLP_SCHEMA_H

#include "base/cleanup.h"
#include "proto/otlp/decode.h"
#include "proto/otlp/fields.h"

#define AT(type, member)		.offset = offsetof(type, member)
#define LIST(type, items, count_member) .offset = offsetof(type, items), .count = offsetof(type, count_member)
#define TABLE(field)			.table = PROFILES_TAG(ProfilesDictionary, field)

#define COMMON(message, field, kind_, ...)   [COMMON_TAG(message, field)] = { .name = #field, .kind = kind_, __VA_ARGS__ }
#define RESOURCE(message, field, kind_, ...) [RESOURCE_TAG(message, field)] = { .name = #field, .kind = kind_, __VA_ARGS__ }
#define PROFILES(message, field, kind_, ...) [PROFILES_TAG(message, field)] = { .name = #field, .kind = kind_, __VA_ARGS__ }
#define STATUS(message, field, kind_, ...)   [STATUS_TAG(message, field)] = { .name = #field, .kind = kind_, __VA_ARGS__ }
#define SERVICE(message, field, kind_, ...)  [SERVICE_TAG(message, field)] = { .name = #field, .kind = kind_, __VA_ARGS__ }

/* Describes a field that is an id: so many bytes, or none. */
#define ID(bytes) .json = JSON_HEX, .id_bytes = (bytes)

/* Completes a struct otlp_message: the array @list and the struct it fills. */
#define FIELDS(list, type) .fields = (list), .field_count = ARRAY_LEN(list), .size = sizeof(type)

/* A field by its number, of a release or signal whose schema is in the table alone. */
#define FIELD(number, field, kind_, ...) [number] = { .name = #field, .kind = kind_, __VA_ARGS__ }

extern const struct otlp_message otlp_any_value, otlp_key_value, otlp_scope, otlp_resource;
extern const struct otlp_message otlp_mapping, otlp_line, otlp_location, otlp_function, otlp_link, otlp_attribute,
	otlp_stack;

/* Counts a struct sample's events, and what hints at another layout. */
bool otlp_sample_done(struct otlp_decoder *d, const void *base);

#endif
