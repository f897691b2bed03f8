/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of release 1.7: which field of which message lands where in the structs of decode_1_7.h. Constant data. */
#include "proto/otlp/decode_1_7.h"

/* --- tables --- */
static const struct otlp_field mapping_fields[] = {
	FIELD(1, memory_start, KIND_INT64, AT(struct mapping_1_7, mapping.memory_start), .json = JSON_UNSIGNED),
	FIELD(2, memory_limit, KIND_INT64, AT(struct mapping_1_7, mapping.memory_limit), .json = JSON_UNSIGNED),
	FIELD(3, file_offset, KIND_INT64, AT(struct mapping_1_7, mapping.file_offset), .json = JSON_UNSIGNED),
	FIELD(4, filename_strindex, KIND_INDEX, AT(struct mapping_1_7, mapping.filename_strindex)),
	FIELD(5, attribute_indices, KIND_INDICES,
	      LIST(struct mapping_1_7, mapping.attributes.items, mapping.attributes.count)),
	FIELD(6, has_functions, KIND_BOOL, AT(struct mapping_1_7, flags[HAS_FUNCTIONS])),
	FIELD(7, has_filenames, KIND_BOOL, AT(struct mapping_1_7, flags[HAS_FILENAMES])),
	FIELD(8, has_line_numbers, KIND_BOOL, AT(struct mapping_1_7, flags[HAS_LINE_NUMBERS])),
	FIELD(9, has_inline_frames, KIND_BOOL, AT(struct mapping_1_7, flags[HAS_INLINE_FRAMES])),
};
static const struct otlp_message mapping = { .name = "Mapping", FIELDS(mapping_fields, struct mapping_1_7) };

static const struct otlp_field location_fields[] = {
	FIELD(1, mapping_index, KIND_INDEX, LIST(struct location_1_7, location.mapping_index, has_mapping), .has = true),
	FIELD(2, address, KIND_INT64, AT(struct location_1_7, location.address), .json = JSON_UNSIGNED),
	FIELD(3, line, KIND_MESSAGES, LIST(struct location_1_7, location.lines, location.line_count), .sub = &otlp_line),
	FIELD(4, is_folded, KIND_BOOL, AT(struct location_1_7, is_folded)),
	FIELD(5, attribute_indices, KIND_INDICES,
	      LIST(struct location_1_7, location.attributes.items, location.attributes.count)),
};
static const struct otlp_message location = { .name = "Location", FIELDS(location_fields, struct location_1_7) };

static const struct otlp_field unit_fields[] = {
	FIELD(1, attribute_key_strindex, KIND_INDEX, AT(struct attribute_unit, key_strindex)),
	FIELD(2, unit_strindex, KIND_INDEX, AT(struct attribute_unit, unit_strindex)),
};
static const struct otlp_message unit = { .name = "AttributeUnit", FIELDS(unit_fields, struct attribute_unit) };

static const struct otlp_field dictionary_fields[] = {
	FIELD(1, mapping_table, KIND_MESSAGES, LIST(struct request_1_7, mappings, mapping_count), .sub = &mapping),
	FIELD(2, location_table, KIND_MESSAGES, LIST(struct request_1_7, locations, location_count), .sub = &location),
	FIELD(3, function_table, KIND_MESSAGES, LIST(struct request_1_7, functions, function_count), .sub = &otlp_function),
	FIELD(4, link_table, KIND_MESSAGES, LIST(struct request_1_7, links, link_count), .sub = &otlp_link),
	FIELD(5, string_table, KIND_STRINGS, LIST(struct request_1_7, strings, string_count)),
	FIELD(6, attribute_table, KIND_MESSAGES, LIST(struct request_1_7, attributes, attribute_count),
	      .sub = &otlp_key_value),
	FIELD(7, attribute_units, KIND_MESSAGES, LIST(struct request_1_7, units, unit_count), .sub = &unit),
};
static const struct otlp_message dictionary = { .name = "ProfilesDictionary",
						FIELDS(dictionary_fields, struct request_1_7) };

static const struct otlp_field sample_fields[] = {
	FIELD(1, locations_start_index, KIND_UINT32, AT(struct sample_1_7, first)),
	FIELD(2, locations_length, KIND_UINT32, AT(struct sample_1_7, length)),
	FIELD(3, value, KIND_INT64S, LIST(struct sample_1_7, values, value_count)),
	FIELD(4, attribute_indices, KIND_INDICES, LIST(struct sample_1_7, attributes.items, attributes.count)),
	FIELD(5, link_index, KIND_INDEX, LIST(struct sample_1_7, link_index, has_link), .has = true),
	FIELD(6, timestamps_unix_nano, KIND_INT64S, LIST(struct sample_1_7, timestamps_unix_ns, timestamp_count),
	      .json = JSON_UNSIGNED),
};
const struct otlp_message otlp_sample_1_7 = { .name = "Sample", FIELDS(sample_fields, struct sample_1_7) };

static const struct otlp_field profile_fields[] = {
	FIELD(1, sample_type, KIND_MESSAGES, LIST(struct profile_1_7, types, type_count), .sub = &otlp_value_type_older),
	FIELD(2, sample, KIND_MESSAGES, LIST(struct profile_1_7, samples, sample_count), .sub = &otlp_sample_1_7),
	FIELD(3, location_indices, KIND_INDICES, LIST(struct profile_1_7, locations.items, locations.count)),
	FIELD(4, time_nanos, KIND_INT64, AT(struct profile_1_7, time_unix_ns)),
	FIELD(5, duration_nanos, KIND_INT64, AT(struct profile_1_7, duration_ns)),
	FIELD(6, period_type, KIND_MESSAGE, AT(struct profile_1_7, period_type), .sub = &otlp_value_type_older),
	FIELD(7, period, KIND_INT64, AT(struct profile_1_7, period)),
	FIELD(8, comment_strindices, KIND_INDICES, LIST(struct profile_1_7, comments.items, comments.count)),
	FIELD(10, profile_id, KIND_BYTES, AT(struct profile_1_7, profile_id), ID(16)),
	FIELD(11, dropped_attributes_count, KIND_UINT32, AT(struct profile_1_7, dropped_attributes_count)),
	FIELD(12, original_payload_format, KIND_STRING, AT(struct profile_1_7, original_payload_format)),
	FIELD(13, original_payload, KIND_BYTES, AT(struct profile_1_7, original_payload)),
	FIELD(14, attribute_indices, KIND_INDICES, LIST(struct profile_1_7, attributes.items, attributes.count)),
};
const struct otlp_message otlp_profile_1_7 = { .name = "Profile",
					       .has_strings = true,
					       FIELDS(profile_fields, struct profile_1_7) };

static const struct otlp_field scope_profiles_fields[] = {
	FIELD(1, scope, KIND_MESSAGE, LIST(struct scope_profiles_1_7, scope, has_scope), .has = true, .sub = &otlp_scope),
	FIELD(2, profiles, KIND_MESSAGES, LIST(struct scope_profiles_1_7, profiles, profile_count),
	      .sub = &otlp_profile_1_7),
	FIELD(3, schema_url, KIND_STRING, AT(struct scope_profiles_1_7, schema_url)),
};
static const struct otlp_message scope_profiles = { .name = "ScopeProfiles",
						    .has_strings = true,
						    FIELDS(scope_profiles_fields, struct scope_profiles_1_7) };

static const struct otlp_field resource_profiles_fields[] = {
	FIELD(1, resource, KIND_MESSAGE, LIST(struct resource_profiles_1_7, resource, has_resource), .has = true,
	      .sub = &otlp_resource),
	FIELD(2, scope_profiles, KIND_MESSAGES, LIST(struct resource_profiles_1_7, scopes, scope_count),
	      .sub = &scope_profiles),
	FIELD(3, schema_url, KIND_STRING, AT(struct resource_profiles_1_7, schema_url)),
};
static const struct otlp_message resource_profiles = { .name = "ResourceProfiles",
						       .has_strings = true,
						       FIELDS(resource_profiles_fields, struct resource_profiles_1_7) };

static const struct otlp_field request_fields[] = {
	FIELD(1, resource_profiles, KIND_MESSAGES, LIST(struct request_1_7, resources, resource_count),
	      .sub = &resource_profiles),
	FIELD(2, dictionary, KIND_MESSAGE, .sub = &dictionary),
};
const struct otlp_message otlp_request_1_7 = { .name = "ProfilesData", FIELDS(request_fields, struct request_1_7) };
