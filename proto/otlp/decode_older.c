/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layouts of releases 1.8 and 1.9: their samples and profiles have other numbers, the rest is as in 1.10. A profile's
 * comments, for which 1.10 has another place, are put there: into the attribute pprof.profile.comment.
 */
#include <errno.h>
#include <string.h>

#include "proto/otlp/decode_older.h"
#include "proto/otlp/forms.h"

/* --- what both have --- */
static const struct otlp_field value_type_fields[] = {
	FIELD(1, type_strindex, KIND_INDEX, AT(struct value_type, type_strindex), TABLE(string_table)),
	FIELD(2, unit_strindex, KIND_INDEX, AT(struct value_type, unit_strindex), TABLE(string_table)),
	FIELD(3, aggregation_temporality, KIND_UINT32, AT(struct value_type, temporality), .names = otlp_temporalities),
};
const struct otlp_message otlp_value_type_older = { .name = "ValueType", FIELDS(value_type_fields, struct value_type) };

static const struct otlp_field sample_fields[] = {
	FIELD(1, stack_index, KIND_INDEX, AT(struct sample, stack_index), TABLE(stack_table)),
	FIELD(2, values, KIND_INT64S, LIST(struct sample, values, value_count)),
	FIELD(3, attribute_indices, KIND_INDICES, LIST(struct sample, attributes.items, attributes.count),
	      TABLE(attribute_table)),
	FIELD(4, link_index, KIND_INDEX, AT(struct sample, link_index), TABLE(link_table)),
	FIELD(5, timestamps_unix_nano, KIND_FIXED64S, LIST(struct sample, timestamps_unix_ns, timestamp_count)),
};
static const struct otlp_message sample = { .name = "Sample",
					    .done = otlp_sample_done,
					    FIELDS(sample_fields, struct sample) };

/* --- 1.9 --- */
static const struct otlp_field profile_1_9_fields[] = {
	FIELD(1, sample_type, KIND_MESSAGE, AT(struct profile, sample_type), .sub = &otlp_value_type_older),
	FIELD(2, samples, KIND_MESSAGES, LIST(struct profile, samples, sample_count), .sub = &sample),
	FIELD(3, time_unix_nano, KIND_FIXED64, AT(struct profile, time_unix_ns)),
	FIELD(4, duration_nano, KIND_INT64, AT(struct profile, duration_ns), .json = JSON_UNSIGNED),
	FIELD(5, period_type, KIND_MESSAGE, AT(struct profile, period_type), .sub = &otlp_value_type_older),
	FIELD(6, period, KIND_INT64, AT(struct profile, period)),
	FIELD(7, profile_id, KIND_BYTES, AT(struct profile, profile_id), ID(16)),
	FIELD(8, dropped_attributes_count, KIND_UINT32, AT(struct profile, dropped_attributes_count)),
	FIELD(9, original_payload_format, KIND_STRING, AT(struct profile, original_payload_format)),
	FIELD(10, original_payload, KIND_BYTES, AT(struct profile, original_payload)),
	FIELD(11, attribute_indices, KIND_INDICES, LIST(struct profile, attributes.items, attributes.count),
	      TABLE(attribute_table)),
};
static const struct otlp_message profile_1_9 = { .name = "Profile",
						 .has_strings = true,
						 FIELDS(profile_1_9_fields, struct profile) };

/* --- 1.8 --- */
struct profile_1_8 {
	struct profile profile;
	struct indices comments;
};

static const struct otlp_field profile_1_8_fields[] = {
	FIELD(1, sample_type, KIND_MESSAGE, AT(struct profile_1_8, profile.sample_type), .sub = &otlp_value_type_older),
	FIELD(2, sample, KIND_MESSAGES, LIST(struct profile_1_8, profile.samples, profile.sample_count), .sub = &sample),
	FIELD(3, time_unix_nano, KIND_FIXED64, AT(struct profile_1_8, profile.time_unix_ns)),
	FIELD(4, duration_nano, KIND_INT64, AT(struct profile_1_8, profile.duration_ns), .json = JSON_UNSIGNED),
	FIELD(5, period_type, KIND_MESSAGE, AT(struct profile_1_8, profile.period_type), .sub = &otlp_value_type_older),
	FIELD(6, period, KIND_INT64, AT(struct profile_1_8, profile.period)),
	FIELD(7, comment_strindices, KIND_INDICES, LIST(struct profile_1_8, comments.items, comments.count),
	      TABLE(string_table)),
	FIELD(8, profile_id, KIND_BYTES, AT(struct profile_1_8, profile.profile_id), ID(16)),
	FIELD(9, dropped_attributes_count, KIND_UINT32, AT(struct profile_1_8, profile.dropped_attributes_count)),
	FIELD(10, original_payload_format, KIND_STRING, AT(struct profile_1_8, profile.original_payload_format)),
	FIELD(11, original_payload, KIND_BYTES, AT(struct profile_1_8, profile.original_payload)),
	FIELD(12, attribute_indices, KIND_INDICES,
	      LIST(struct profile_1_8, profile.attributes.items, profile.attributes.count), TABLE(attribute_table)),
};
static const struct otlp_message profile_1_8 = { .name = "Profile",
						 .has_strings = true,
						 FIELDS(profile_1_8_fields, struct profile_1_8) };

/* --- from the profile up to the request --- */
#define REQUEST_LAYOUT(suffix, profile_message)                                                                            \
	static const struct otlp_field scope_profiles_fields##suffix[] = {                                                 \
		FIELD(1, scope, KIND_MESSAGE, LIST(struct scope_profiles, scope, has_scope), .has = true,                  \
		      .sub = &otlp_scope),                                                                                 \
		FIELD(2, profiles, KIND_MESSAGES, LIST(struct scope_profiles, profiles, profile_count),                    \
		      .sub = &(profile_message)),                                                                          \
		FIELD(3, schema_url, KIND_STRING, AT(struct scope_profiles, schema_url)),                                  \
	};                                                                                                                 \
	static const struct otlp_message scope_profiles##suffix = {                                                        \
		.name = "ScopeProfiles", .has_strings = true, FIELDS(scope_profiles_fields##suffix, struct scope_profiles) \
	};                                                                                                                 \
	static const struct otlp_field resource_profiles_fields##suffix[] = {                                              \
		FIELD(1, resource, KIND_MESSAGE, LIST(struct resource_profiles, resource, has_resource), .has = true,      \
		      .sub = &otlp_resource),                                                                              \
		FIELD(2, scope_profiles, KIND_MESSAGES, LIST(struct resource_profiles, scopes, scope_count),               \
		      .sub = &scope_profiles##suffix),                                                                     \
		FIELD(3, schema_url, KIND_STRING, AT(struct resource_profiles, schema_url)),                               \
	};                                                                                                                 \
	static const struct otlp_message resource_profiles##suffix = { .name = "ResourceProfiles",                         \
								       .has_strings = true,                                \
								       FIELDS(resource_profiles_fields##suffix,            \
									      struct resource_profiles) };                 \
	static const struct otlp_field request_fields##suffix[] = {                                                        \
		FIELD(1, resource_profiles, KIND_MESSAGES, LIST(struct profiles, resources, resource_count),               \
		      .sub = &resource_profiles##suffix),                                                                  \
		FIELD(2, dictionary, KIND_MESSAGE, AT(struct profiles, dict), .sub = &otlp_dictionary),                    \
	};                                                                                                                 \
	static const struct otlp_message request##suffix = { .name = "ProfilesData",                                       \
							     FIELDS(request_fields##suffix, struct profiles) };

REQUEST_LAYOUT(_1_9, profile_1_9)
REQUEST_LAYOUT(_1_8, profile_1_8)

/* --- 1.8 into the model --- */
static bool convert_scope(struct otlp_decoder *d, struct comments *comments, struct scope_profiles *sp)
{
	const struct profile_1_8 *from = (const void *)sp->profiles;
	struct profile *to = profiles_alloc(d->profiles, sp->profile_count * sizeof(*to));

	if (!to)
		return otlp_decode_out_of_memory(d);
	for (uint32_t i = 0; i < sp->profile_count; i++) {
		to[i] = from[i].profile;
		if (!comments_add(d, comments, &from[i].comments, &to[i].attributes))
			return false;
	}
	sp->profiles = to;
	return true;
}

static bool convert_1_8(struct otlp_decoder *d, const void *root)
{
	struct profiles *p = d->profiles;
	struct comments comments = { 0 };

	(void)root; /* the model itself */
	for (uint32_t i = 0; i < p->resource_count; i++)
		for (uint32_t k = 0; k < p->resources[i].scope_count; k++)
			if (p->resources[i].scopes[k].profile_count &&
			    !convert_scope(d, &comments, &p->resources[i].scopes[k]))
				return false;
	return true;
}

/* --- comments --- */

/* @table grown by one element of @size bytes, which is returned; NULL without memory, reported. */
static void *append(struct otlp_decoder *d, void **table, uint32_t *count, size_t size, uint32_t *cap)
{
	if (*count >= *cap) {
		uint32_t more = *count + *count / 2 + 8;
		void *items = profiles_alloc(d->profiles, more * size);

		if (!items) {
			otlp_decode_out_of_memory(d);
			return NULL;
		}
		if (*count)
			memcpy(items, *table, *count * size);
		*table = items;
		*cap = more;
	}
	return (char *)*table + (size_t)(*count)++ * size;
}

/* The string and attribute tables get their element 0 first, when they are empty. */
static bool comments_begin(struct otlp_decoder *d, struct comments *c)
{
	struct dictionary *dict = &d->profiles->dict;
	struct str *s;

	while (!c->key) {
		c->key = (int32_t)dict->string_count;
		s = append(d, (void **)&dict->strings, &dict->string_count, sizeof(*s), &c->string_cap);
		if (!s)
			return false;
		*s = c->key ? STR("pprof.profile.comment") : STR("");
	}
	if (!dict->attribute_count &&
	    !append(d, (void **)&dict->attributes, &dict->attribute_count, sizeof(*dict->attributes), &c->attribute_cap))
		return false;
	return true;
}

bool comments_add(struct otlp_decoder *d, struct comments *c, const struct indices *strings, struct indices *attributes)
{
	struct dictionary *dict = &d->profiles->dict;
	struct profile_attribute *a;
	struct any_value *items;
	int32_t *list;

	if (!strings->count)
		return true;
	if (!comments_begin(d, c))
		return false;
	items = profiles_alloc(d->profiles, strings->count * sizeof(*items));
	list = profiles_alloc(d->profiles, (attributes->count + 1ul) * sizeof(*list));
	a = append(d, (void **)&dict->attributes, &dict->attribute_count, sizeof(*a), &c->attribute_cap);
	if (!items || !list || !a)
		return otlp_decode_out_of_memory(d);
	for (uint32_t i = 0; i < strings->count; i++)
		items[i] = (struct any_value){ .kind = VALUE_STRINDEX, .strindex = strings->items[i] };
	*a = (struct profile_attribute){ .key_strindex = c->key,
					 .value = { .kind = VALUE_ARRAY, .array = { items, strings->count } } };
	if (attributes->count)
		memcpy(list, attributes->items, attributes->count * sizeof(*list));
	list[attributes->count] = (int32_t)dict->attribute_count - 1;
	*attributes = (struct indices){ list, attributes->count + 1 };
	return true;
}

bool otlp_decode_out_of_memory(struct otlp_decoder *d)
{
	d->error = -ENOMEM;
	return false;
}

const char *const otlp_temporalities[] = { "AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA",
					   "AGGREGATION_TEMPORALITY_CUMULATIVE", NULL };

/* --- how they are told --- */

static bool fits_1_8(const struct otlp_prints *s, bool doubtful)
{
	(void)doubtful;
	return s->aggregated || otlp_prints_saw(s, NODE_PROFILE, 8, WIRE_BYTES) || /* profile_id */
	       otlp_prints_saw(s, NODE_PROFILE, 12, WIRE_BYTES);		   /* attributes */
}

/* Sample: 2 values, 3 attribute_indices, 4 link_index, as in 1.8, which it stands for where the two are the same. A writer
 * that packs one list packs all. */
static bool fits_1_9(const struct otlp_prints *s, bool doubtful)
{
	const uint8_t *sample_wires = s->wires[NODE_SAMPLE];

	return otlp_prints_saw(s, NODE_SAMPLE, 3, WIRE_BYTES) ||
	       (sample_wires[2] == 1u << WIRE_BYTES && sample_wires[4] == 1u << WIRE_VARINT) ||
	       (doubtful && sample_wires[2]); /* values taken for attributes */
}

static const struct otlp_mark marks_1_8[] = {
	{ "Profile", "comment_strindices", false },
	{ "ValueType", "aggregation_temporality", false },
};

const struct otlp_form otlp_form_1_8 = {
	.release = "1.8",
	.fits = fits_1_8,
	.marks = marks_1_8,
	.mark_count = ARRAY_LEN(marks_1_8),
	.layout = { .root = &request_1_8, .convert = convert_1_8 },
};

const struct otlp_form otlp_form_1_9 = { .release = "1.9", .fits = fits_1_9, .layout = { .root = &request_1_9 } };
