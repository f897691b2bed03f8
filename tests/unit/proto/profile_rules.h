/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that OTLP's conformance checker and the known receivers put on profiles, as one check of a struct profiles.
 * Beside the tests that use it; wholly independent of the code that makes profiles.
 */
#ifndef HEARTH_TESTS_PROFILE_RULES_H
#define HEARTH_TESTS_PROFILE_RULES_H

#include <stdio.h>
#include <string.h>

#include "proto/profiles.h"

#define RULE(condition, ...)                                             \
	do {                                                             \
		if (!(condition)) {                                      \
			snprintf(message, sizeof(message), __VA_ARGS__); \
			return message;                                  \
		}                                                        \
	} while (0)

static inline bool rules_index_ok(int32_t index, uint32_t count)
{
	return index >= 0 && (uint32_t)index < count;
}

static inline bool rules_attributes_ok(const struct profiles *p, const struct indices *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (!rules_index_ok(list->items[i], p->dict.attribute_count))
			return false;
		for (uint32_t j = 0; j < i; j++) {
			if (p->dict.attributes[list->items[i]].key_strindex ==
			    p->dict.attributes[list->items[j]].key_strindex)
				return false;
		}
	}
	return true;
}

static inline bool rules_zero_elements_ok(const struct dictionary *d)
{
	static const struct profile_function no_function;

	return d->mapping_count && d->location_count && d->function_count && d->link_count && d->string_count &&
	       d->attribute_count && d->stack_count && !d->mappings[0].memory_start && !d->mappings[0].memory_limit &&
	       !d->mappings[0].file_offset && !d->mappings[0].filename_strindex && !d->mappings[0].attributes.count &&
	       !d->locations[0].mapping_index && !d->locations[0].address && !d->locations[0].line_count &&
	       !d->locations[0].attributes.count && !memcmp(&d->functions[0], &no_function, sizeof(no_function)) &&
	       !d->links[0].trace_id.len && !d->links[0].span_id.len && !d->strings[0].len &&
	       !d->attributes[0].key_strindex && !d->attributes[0].unit_strindex &&
	       d->attributes[0].value.kind == VALUE_NONE && !d->stacks[0].count;
}

static inline const char *rules_dictionary(const struct profiles *p)
{
	static char message[160];
	const struct dictionary *d = &p->dict;

	RULE(rules_zero_elements_ok(d), "an element 0 is missing or not empty");
	for (uint32_t i = 0; i < d->mapping_count; i++) {
		const struct profile_mapping *m = &d->mappings[i];

		RULE(rules_index_ok(m->filename_strindex, d->string_count), "mapping %u: file name", i);
		RULE(rules_attributes_ok(p, &m->attributes), "mapping %u: attributes", i);
		RULE((!m->memory_start && !m->memory_limit) || m->memory_start < m->memory_limit, "mapping %u: addresses",
		     i);
	}
	for (uint32_t i = 0; i < d->location_count; i++) {
		const struct profile_location *l = &d->locations[i];

		RULE(rules_index_ok(l->mapping_index, d->mapping_count), "location %u: mapping", i);
		RULE(rules_attributes_ok(p, &l->attributes), "location %u: attributes", i);
		for (uint32_t j = 0; j < l->line_count; j++) {
			RULE(rules_index_ok(l->lines[j].function_index, d->function_count), "location %u: function", i);
			RULE(l->lines[j].line >= 0 && l->lines[j].column >= 0, "location %u: line, column", i);
		}
	}
	for (uint32_t i = 0; i < d->function_count; i++) {
		const struct profile_function *f = &d->functions[i];

		RULE(rules_index_ok(f->name_strindex, d->string_count), "function %u: name", i);
		RULE(rules_index_ok(f->system_name_strindex, d->string_count), "function %u: system name", i);
		RULE(rules_index_ok(f->filename_strindex, d->string_count), "function %u: file name", i);
		RULE(f->start_line >= 0, "function %u: start line", i);
	}
	for (uint32_t i = 1; i < d->link_count; i++)
		RULE(d->links[i].trace_id.len == 16 && d->links[i].span_id.len == 8, "link %u: lengths", i);
	for (uint32_t i = 0; i < d->attribute_count; i++) {
		RULE(rules_index_ok(d->attributes[i].key_strindex, d->string_count), "attribute %u: key", i);
		RULE(rules_index_ok(d->attributes[i].unit_strindex, d->string_count), "attribute %u: unit", i);
	}
	for (uint32_t i = 0; i < d->stack_count; i++) {
		for (uint32_t j = 0; j < d->stacks[i].count; j++)
			RULE(rules_index_ok(d->stacks[i].items[j], d->location_count), "stack %u: location", i);
	}
	for (uint32_t i = 0; i < d->string_count; i++) {
		for (uint32_t j = 0; j < i; j++)
			RULE(d->strings[i].len != d->strings[j].len ||
				     memcmp(d->strings[i].data, d->strings[j].data, d->strings[i].len) != 0,
			     "strings %u and %u are equal", j, i);
	}
	return NULL;
}

static inline bool rules_same_indices(const struct indices *a, const struct indices *b)
{
	return a->count == b->count && (!a->count || !memcmp(a->items, b->items, a->count * sizeof(*a->items)));
}

static inline const char *rules_samples(const struct profiles *p, const struct profile *profile)
{
	static char message[160];
	const struct dictionary *d = &p->dict;

	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct sample *s = &profile->samples[i];

		RULE(rules_index_ok(s->stack_index, d->stack_count), "sample %u: stack", i);
		RULE(rules_index_ok(s->link_index, d->link_count), "sample %u: link", i);
		RULE(rules_attributes_ok(p, &s->attributes), "sample %u: attributes", i);
		RULE(s->value_count || s->timestamp_count, "sample %u: neither values nor timestamps", i);
		RULE(!s->value_count || !s->timestamp_count || s->value_count == s->timestamp_count, "sample %u: lengths",
		     i);
		RULE(s->timestamp_count || s->value_count == 1, "sample %u: an aggregate of several values", i);
		RULE(!s->value_count == !profile->samples[0].value_count &&
			     !s->timestamp_count == !profile->samples[0].timestamp_count,
		     "sample %u: another shape than sample 0", i);
		for (uint32_t t = 0; t < s->timestamp_count; t++)
			RULE(s->timestamps_unix_ns[t] >= profile->time_unix_ns &&
				     s->timestamps_unix_ns[t] - profile->time_unix_ns < profile->duration_ns,
			     "sample %u: timestamp %u is outside the window", i, t);
		for (uint32_t j = 0; j < i && profile->sample_count <= 1000; j++)
			RULE(s->stack_index != profile->samples[j].stack_index ||
				     s->link_index != profile->samples[j].link_index ||
				     !rules_same_indices(&s->attributes, &profile->samples[j].attributes),
			     "samples %u and %u have one identity", j, i);
	}
	return NULL;
}

/* NULL when @p keeps the rules, else which one it breaks. @p must hold at least one resource. */
static inline const char *profile_rules_broken(const struct profiles *p)
{
	static char message[160];
	const char *broken = rules_dictionary(p);

	RULE(p->resource_count, "no resource");
	for (uint32_t r = 0; r < p->resource_count && !broken; r++) {
		const struct resource_profiles *rp = &p->resources[r];

		RULE(rp->has_resource && rp->scope_count, "resource %u: no message or no scope", r);
		for (uint32_t i = 0; i < rp->resource.attributes.count; i++)
			RULE(rp->resource.attributes.items[i].key.len && !rp->resource.attributes.items[i].key_strindex &&
				     rp->resource.attributes.items[i].value.kind != VALUE_STRINDEX,
			     "resource %u: attribute %u is not inline", r, i);
		for (uint32_t c = 0; c < rp->scope_count && !broken; c++) {
			RULE(rp->scopes[c].has_scope && rp->scopes[c].profile_count, "scope %u: no message or no profile",
			     c);
			for (uint32_t i = 0; i < rp->scopes[c].profile_count && !broken; i++) {
				static const uint8_t zero_id[16];
				const struct profile *profile = &rp->scopes[c].profiles[i];

				RULE(profile->profile_id.len == 0 || (profile->profile_id.len == 16 &&
								      memcmp(profile->profile_id.data, zero_id, 16) != 0),
				     "profile %u: id", i);
				RULE(rules_index_ok(profile->sample_type.type_strindex, p->dict.string_count) &&
					     rules_index_ok(profile->sample_type.unit_strindex, p->dict.string_count) &&
					     rules_index_ok(profile->period_type.type_strindex, p->dict.string_count) &&
					     rules_index_ok(profile->period_type.unit_strindex, p->dict.string_count),
				     "profile %u: types", i);
				RULE(rules_attributes_ok(p, &profile->attributes), "profile %u: attributes", i);
				broken = rules_samples(p, profile);
			}
		}
	}
	return broken;
}

#undef RULE

#endif
