/* SPDX-License-Identifier: Apache-2.0 */
/* The structs that release 1.7's messages are read into by the tables of decode_1_7.c, before convert_1_7.c makes the model
 * of them. */
#ifndef HEARTH_PROTO_OTLP_DECODE_1_7_H
#define HEARTH_PROTO_OTLP_DECODE_1_7_H

#include "proto/otlp/decode_older.h"

struct sample_1_7 {
	uint32_t first, length; /* of the profile's locations */
	int32_t link_index;
	bool has_link;
	struct indices attributes;
	int64_t *values;
	uint64_t *timestamps_unix_ns;
	uint32_t value_count, timestamp_count;
};

struct profile_1_7 {
	struct value_type *types, period_type;
	struct sample_1_7 *samples;
	uint32_t type_count, sample_count, dropped_attributes_count;
	struct indices locations, comments, attributes;
	uint64_t time_unix_ns, duration_ns;
	int64_t period;
	struct str profile_id, original_payload_format, original_payload;
};

struct scope_profiles_1_7 {
	bool has_scope;
	struct scope scope;
	struct profile_1_7 *profiles;
	uint32_t profile_count;
	struct str schema_url;
};

struct resource_profiles_1_7 {
	bool has_resource;
	struct resource resource;
	struct scope_profiles_1_7 *scopes;
	uint32_t scope_count;
	struct str schema_url;
};

enum flag { HAS_FUNCTIONS, HAS_FILENAMES, HAS_LINE_NUMBERS, HAS_INLINE_FRAMES, IS_FOLDED, FLAGS };

struct mapping_1_7 {
	struct profile_mapping mapping;
	bool flags[IS_FOLDED];
};

struct location_1_7 {
	struct profile_location location;
	bool has_mapping, is_folded;
};

struct attribute_unit {
	int32_t key_strindex, unit_strindex;
};

struct request_1_7 {
	struct resource_profiles_1_7 *resources;
	struct mapping_1_7 *mappings;
	struct location_1_7 *locations;
	struct profile_function *functions;
	struct profile_link *links;
	struct str *strings;
	struct key_value *attributes;
	struct attribute_unit *units;
	uint32_t resource_count, mapping_count, location_count, function_count, link_count, string_count, attribute_count,
		unit_count;
};

extern const struct otlp_message otlp_sample_1_7, otlp_profile_1_7, otlp_request_1_7;

#endif
