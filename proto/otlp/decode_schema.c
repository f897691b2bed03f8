/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's tables: which field of which message lands where in the model. Constant data; the two hooks judge what the
 * fields of one message mean together.
 */
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "proto/otlp/forms.h"
#include "proto/otlp/packed.h"
#include "proto/otlp/schema.h"
#include "proto/otlp/usual.h"

/* --- common, resource --- */
static bool key_value_done(struct otlp_decoder *d, const void *base);

static const struct otlp_field key_value_fields[] = {
	COMMON(KeyValue, key, KIND_STRING, AT(struct key_value, key)),
	COMMON(KeyValue, value, KIND_MESSAGE, AT(struct key_value, value), .sub = &otlp_any_value),
	COMMON(KeyValue, key_strindex, KIND_INDEX, AT(struct key_value, key_strindex), TABLE(string_table)),
};
const struct otlp_message otlp_key_value = {
	.name = "KeyValue",
	.has_strings = true,
	.done = key_value_done,
	FIELDS(key_value_fields, struct key_value),
};

/* The two list messages have no struct of their own: they fill the any_value that holds them. */
static const struct otlp_field array_value_fields[] = {
	COMMON(ArrayValue, values, KIND_MESSAGES, LIST(struct any_value, array.items, array.count), .sub = &otlp_any_value),
};
static const struct otlp_message array_value = { .name = "ArrayValue", FIELDS(array_value_fields, struct any_value) };

static const struct otlp_field kvlist_fields[] = {
	COMMON(KeyValueList, values, KIND_MESSAGES, LIST(struct any_value, kvlist.items, kvlist.count),
	       .sub = &otlp_key_value),
};
static const struct otlp_message kvlist = { .name = "KeyValueList", FIELDS(kvlist_fields, struct any_value) };

static const struct otlp_field any_value_fields[] = {
	COMMON(AnyValue, string_value, KIND_STRING, AT(struct any_value, string), .variant = VALUE_STRING),
	COMMON(AnyValue, bool_value, KIND_BOOL, AT(struct any_value, boolean), .variant = VALUE_BOOL),
	COMMON(AnyValue, int_value, KIND_INT64, AT(struct any_value, integer), .variant = VALUE_INT),
	COMMON(AnyValue, double_value, KIND_FIXED64, AT(struct any_value, real), .json = JSON_DOUBLE,
	       .variant = VALUE_DOUBLE),
	COMMON(AnyValue, array_value, KIND_MESSAGE, .sub = &array_value, .variant = VALUE_ARRAY),
	COMMON(AnyValue, kvlist_value, KIND_MESSAGE, .sub = &kvlist, .variant = VALUE_KVLIST),
	COMMON(AnyValue, bytes_value, KIND_BYTES, AT(struct any_value, string), .variant = VALUE_BYTES),
	COMMON(AnyValue, string_value_strindex, KIND_INDEX, AT(struct any_value, strindex), TABLE(string_table),
	       .variant = VALUE_STRINDEX),
};
const struct otlp_message otlp_any_value = {
	.name = "AnyValue",
	.nests = true,
	FIELDS(any_value_fields, struct any_value),
};

static const struct otlp_field scope_fields[] = {
	COMMON(InstrumentationScope, name, KIND_STRING, AT(struct scope, name)),
	COMMON(InstrumentationScope, version, KIND_STRING, AT(struct scope, version)),
	COMMON(InstrumentationScope, attributes, KIND_MESSAGES, LIST(struct scope, attributes.items, attributes.count),
	       .sub = &otlp_key_value),
	COMMON(InstrumentationScope, dropped_attributes_count, KIND_UINT32, AT(struct scope, dropped_attributes_count)),
};
const struct otlp_message otlp_scope = {
	.name = "InstrumentationScope",
	.has_strings = true,
	FIELDS(scope_fields, struct scope),
};

static const struct otlp_field entity_ref_fields[] = {
	COMMON(EntityRef, schema_url, KIND_STRING, AT(struct entity_ref, schema_url)),
	COMMON(EntityRef, type, KIND_STRING, AT(struct entity_ref, type)),
	COMMON(EntityRef, id_keys, KIND_STRINGS, LIST(struct entity_ref, id_keys, id_key_count)),
	COMMON(EntityRef, description_keys, KIND_STRINGS, LIST(struct entity_ref, description_keys, description_key_count)),
};
static const struct otlp_message entity_ref = {
	.name = "EntityRef",
	.has_strings = true,
	FIELDS(entity_ref_fields, struct entity_ref),
};

static const struct otlp_field resource_fields[] = {
	RESOURCE(Resource, attributes, KIND_MESSAGES, LIST(struct resource, attributes.items, attributes.count),
		 .sub = &otlp_key_value),
	RESOURCE(Resource, dropped_attributes_count, KIND_UINT32, AT(struct resource, dropped_attributes_count)),
	RESOURCE(Resource, entity_refs, KIND_MESSAGES, LIST(struct resource, entity_refs, entity_ref_count),
		 .sub = &entity_ref),
};
const struct otlp_message otlp_resource = { .name = "Resource", FIELDS(resource_fields, struct resource) };

/* --- the dictionary --- */
static const struct otlp_field mapping_fields[] = {
	PROFILES(Mapping, memory_start, KIND_INT64, AT(struct profile_mapping, memory_start), .json = JSON_UNSIGNED),
	PROFILES(Mapping, memory_limit, KIND_INT64, AT(struct profile_mapping, memory_limit), .json = JSON_UNSIGNED),
	PROFILES(Mapping, file_offset, KIND_INT64, AT(struct profile_mapping, file_offset), .json = JSON_UNSIGNED),
	PROFILES(Mapping, filename_strindex, KIND_INDEX, AT(struct profile_mapping, filename_strindex), TABLE(string_table)),
	PROFILES(Mapping, attribute_indices, KIND_INDICES, LIST(struct profile_mapping, attributes.items, attributes.count),
		 TABLE(attribute_table)),
};
const struct otlp_message otlp_mapping = { .name = "Mapping", FIELDS(mapping_fields, struct profile_mapping) };

static const struct otlp_field line_fields[] = {
	PROFILES(Line, function_index, KIND_INDEX, AT(struct profile_line, function_index), TABLE(function_table)),
	PROFILES(Line, line, KIND_INT64, AT(struct profile_line, line)),
	PROFILES(Line, column, KIND_INT64, AT(struct profile_line, column)),
};
const struct otlp_message otlp_line = { .name = "Line", FIELDS(line_fields, struct profile_line) };

static const struct otlp_field location_fields[] = {
	PROFILES(Location, mapping_index, KIND_INDEX, AT(struct profile_location, mapping_index), TABLE(mapping_table)),
	PROFILES(Location, address, KIND_INT64, AT(struct profile_location, address), .json = JSON_UNSIGNED),
	PROFILES(Location, lines, KIND_MESSAGES, LIST(struct profile_location, lines, line_count), .sub = &otlp_line),
	PROFILES(Location, attribute_indices, KIND_INDICES,
		 LIST(struct profile_location, attributes.items, attributes.count), TABLE(attribute_table)),
};
const struct otlp_message otlp_location = { .name = "Location", FIELDS(location_fields, struct profile_location) };

static const struct otlp_field function_fields[] = {
	PROFILES(Function, name_strindex, KIND_INDEX, AT(struct profile_function, name_strindex), TABLE(string_table)),
	PROFILES(Function, system_name_strindex, KIND_INDEX, AT(struct profile_function, system_name_strindex),
		 TABLE(string_table)),
	PROFILES(Function, filename_strindex, KIND_INDEX, AT(struct profile_function, filename_strindex),
		 TABLE(string_table)),
	PROFILES(Function, start_line, KIND_INT64, AT(struct profile_function, start_line)),
};
const struct otlp_message otlp_function = { .name = "Function", FIELDS(function_fields, struct profile_function) };

static const struct otlp_field link_fields[] = {
	PROFILES(Link, trace_id, KIND_BYTES, AT(struct profile_link, trace_id), ID(16)),
	PROFILES(Link, span_id, KIND_BYTES, AT(struct profile_link, span_id), ID(8)),
};
const struct otlp_message otlp_link = {
	.name = "Link",
	.has_strings = true,
	FIELDS(link_fields, struct profile_link),
};

static const struct otlp_field attribute_fields[] = {
	PROFILES(KeyValueAndUnit, key_strindex, KIND_INDEX, AT(struct profile_attribute, key_strindex), TABLE(string_table)),
	PROFILES(KeyValueAndUnit, value, KIND_MESSAGE, AT(struct profile_attribute, value), .sub = &otlp_any_value),
	PROFILES(KeyValueAndUnit, unit_strindex, KIND_INDEX, AT(struct profile_attribute, unit_strindex),
		 TABLE(string_table)),
};
const struct otlp_message otlp_attribute = {
	.name = "KeyValueAndUnit",
	FIELDS(attribute_fields, struct profile_attribute),
};

static const struct otlp_field stack_fields[] = {
	PROFILES(Stack, location_indices, KIND_INDICES, LIST(struct indices, items, count), TABLE(location_table)),
};
const struct otlp_message otlp_stack = {
	.name = "Stack",
	.usual = otlp_usual_stack,
	FIELDS(stack_fields, struct indices),
};

static const struct otlp_field dictionary_fields[] = {
	PROFILES(ProfilesDictionary, mapping_table, KIND_MESSAGES, LIST(struct dictionary, mappings, mapping_count),
		 .sub = &otlp_mapping),
	PROFILES(ProfilesDictionary, location_table, KIND_MESSAGES, LIST(struct dictionary, locations, location_count),
		 .sub = &otlp_location),
	PROFILES(ProfilesDictionary, function_table, KIND_MESSAGES, LIST(struct dictionary, functions, function_count),
		 .sub = &otlp_function),
	PROFILES(ProfilesDictionary, link_table, KIND_MESSAGES, LIST(struct dictionary, links, link_count),
		 .sub = &otlp_link),
	PROFILES(ProfilesDictionary, string_table, KIND_STRINGS, LIST(struct dictionary, strings, string_count)),
	PROFILES(ProfilesDictionary, attribute_table, KIND_MESSAGES, LIST(struct dictionary, attributes, attribute_count),
		 .sub = &otlp_attribute),
	PROFILES(ProfilesDictionary, stack_table, KIND_MESSAGES, LIST(struct dictionary, stacks, stack_count),
		 .sub = &otlp_stack),
};
const struct otlp_message otlp_dictionary = { .name = "ProfilesDictionary", FIELDS(dictionary_fields, struct dictionary) };

/* --- profiles --- */
static const struct otlp_field value_type_fields[] = {
	PROFILES(ValueType, type_strindex, KIND_INDEX, AT(struct value_type, type_strindex), TABLE(string_table)),
	PROFILES(ValueType, unit_strindex, KIND_INDEX, AT(struct value_type, unit_strindex), TABLE(string_table)),
};
static const struct otlp_message value_type = { .name = "ValueType", FIELDS(value_type_fields, struct value_type) };

static const struct otlp_field sample_fields[] = {
	PROFILES(Sample, stack_index, KIND_INDEX, AT(struct sample, stack_index), TABLE(stack_table)),
	PROFILES(Sample, attribute_indices, KIND_INDICES, LIST(struct sample, attributes.items, attributes.count),
		 TABLE(attribute_table)),
	PROFILES(Sample, link_index, KIND_INDEX, AT(struct sample, link_index), TABLE(link_table)),
	PROFILES(Sample, values, KIND_INT64S, LIST(struct sample, values, value_count)),
	PROFILES(Sample, timestamps_unix_nano, KIND_FIXED64S, LIST(struct sample, timestamps_unix_ns, timestamp_count)),
};
static const struct otlp_message sample = {
	.name = "Sample",
	.usual = otlp_usual_sample,
	.done = otlp_sample_done,
	FIELDS(sample_fields, struct sample),
};

static const struct otlp_field profile_fields[] = {
	PROFILES(Profile, sample_type, KIND_MESSAGE, AT(struct profile, sample_type), .sub = &value_type),
	PROFILES(Profile, samples, KIND_MESSAGES, LIST(struct profile, samples, sample_count), .sub = &sample),
	PROFILES(Profile, time_unix_nano, KIND_FIXED64, AT(struct profile, time_unix_ns)),
	PROFILES(Profile, duration_nano, KIND_INT64, AT(struct profile, duration_ns), .json = JSON_UNSIGNED),
	PROFILES(Profile, period_type, KIND_MESSAGE, AT(struct profile, period_type), .sub = &value_type),
	PROFILES(Profile, period, KIND_INT64, AT(struct profile, period)),
	PROFILES(Profile, profile_id, KIND_BYTES, AT(struct profile, profile_id), ID(16)),
	PROFILES(Profile, dropped_attributes_count, KIND_UINT32, AT(struct profile, dropped_attributes_count)),
	PROFILES(Profile, original_payload_format, KIND_STRING, AT(struct profile, original_payload_format)),
	PROFILES(Profile, original_payload, KIND_BYTES, AT(struct profile, original_payload)),
	PROFILES(Profile, attribute_indices, KIND_INDICES, LIST(struct profile, attributes.items, attributes.count),
		 TABLE(attribute_table)),
};
static const struct otlp_message profile = { .name = "Profile",
					     .has_strings = true,
					     FIELDS(profile_fields, struct profile) };

static const struct otlp_field scope_profiles_fields[] = {
	PROFILES(ScopeProfiles, scope, KIND_MESSAGE, LIST(struct scope_profiles, scope, has_scope), .has = true,
		 .sub = &otlp_scope),
	PROFILES(ScopeProfiles, profiles, KIND_MESSAGES, LIST(struct scope_profiles, profiles, profile_count),
		 .sub = &profile),
	PROFILES(ScopeProfiles, schema_url, KIND_STRING, AT(struct scope_profiles, schema_url)),
};
static const struct otlp_message scope_profiles = {
	.name = "ScopeProfiles",
	.has_strings = true,
	FIELDS(scope_profiles_fields, struct scope_profiles),
};

static const struct otlp_field resource_profiles_fields[] = {
	PROFILES(ResourceProfiles, resource, KIND_MESSAGE, LIST(struct resource_profiles, resource, has_resource),
		 .has = true, .sub = &otlp_resource),
	PROFILES(ResourceProfiles, scope_profiles, KIND_MESSAGES, LIST(struct resource_profiles, scopes, scope_count),
		 .sub = &scope_profiles),
	PROFILES(ResourceProfiles, schema_url, KIND_STRING, AT(struct resource_profiles, schema_url)),
};
static const struct otlp_message resource_profiles = {
	.name = "ResourceProfiles",
	.has_strings = true,
	FIELDS(resource_profiles_fields, struct resource_profiles),
};

static const struct otlp_field profiles_data_fields[] = {
	PROFILES(ProfilesData, resource_profiles, KIND_MESSAGES, LIST(struct profiles, resources, resource_count),
		 .sub = &resource_profiles),
	PROFILES(ProfilesData, dictionary, KIND_MESSAGE, AT(struct profiles, dict), .sub = &otlp_dictionary),
};
const struct otlp_message otlp_profiles_data = { .name = "ProfilesData", FIELDS(profiles_data_fields, struct profiles) };

const struct otlp_form otlp_form_current = { .release = "1.10", .layout = { .root = &otlp_profiles_data } };

/* --- answers --- */
static const struct otlp_field partial_success_fields[] = {
	SERVICE(ExportProfilesPartialSuccess, rejected_profiles, KIND_INT64, AT(struct otlp_answer, number)),
	SERVICE(ExportProfilesPartialSuccess, error_message, KIND_STRING, AT(struct otlp_answer, message)),
};
static const struct otlp_message partial_success = {
	.name = "ExportProfilesPartialSuccess",
	.has_strings = true,
	FIELDS(partial_success_fields, struct otlp_answer),
};
static const struct otlp_field response_fields[] = {
	SERVICE(ExportProfilesServiceResponse, partial_success, KIND_MESSAGE, .sub = &partial_success),
};
const struct otlp_message otlp_response = {
	.name = "ExportProfilesServiceResponse",
	.has_strings = true,
	FIELDS(response_fields, struct otlp_answer),
};

static const struct otlp_field status_fields[] = {
	STATUS(Status, code, KIND_INT64, AT(struct otlp_answer, number)),
	STATUS(Status, message, KIND_STRING, AT(struct otlp_answer, message)),
};
const struct otlp_message otlp_status = {
	.name = "Status",
	.has_strings = true,
	FIELDS(status_fields, struct otlp_answer),
};

/* --- what fields mean together --- */
static bool key_value_done(struct otlp_decoder *d, const void *base)
{
	const struct key_value *kv = base;

	if (!kv->key.len || !kv->key_strindex)
		return true;
	otlp_decode_fail(d, NULL, &otlp_key_value, NULL,
			 "has both key (\"%.*s\") and key_strindex (%d); only one may be set",
			 (int)utf8_cut(kv->key.data, kv->key.len, 60), kv->key.data, kv->key_strindex);
	return false;
}

bool otlp_sample_done(struct otlp_decoder *d, const void *base)
{
	const struct sample *s = base;

	d->profiles->sample_events += s->timestamp_count ? s->timestamp_count : 1;
	if (s->attributes.count && !s->timestamp_count && !s->value_count)
		d->shapeless_samples++;
	else
		d->shaped_samples++;
	d->has_current |= s->link_index || s->value_count;
	d->twins |= s->attributes.count > 1 && s->attributes.items[0] == s->attributes.items[1];
	return true;
}

size_t otlp_json_name(const char *name, char out[static OTLP_JSON_NAME_BYTES])
{
	size_t len = 0;

	for (; *name && len < OTLP_JSON_NAME_BYTES - 1; name++) {
		bool starts_word = *name == '_' && name[1];

		name += starts_word;
		out[len++] = starts_word ? (char)(*name - 'a' + 'A') : *name; /* all names are lower case */
	}
	out[len] = '\0';
	return len;
}
