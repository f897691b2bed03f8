/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder: writes the model as protobuf, straight onto a buffer that the caller owns. A submessage is written behind
 * room for a length of one byte, which most need; one that turns out longer moves on, so every sample is encoded once. A
 * struct otlp_part says what is left out or renumbered.
 *
 * Fields stand in ascending order but for those of locations, lines and functions, which are most of a dictionary. There the
 * low bytes of numbers, which nothing foretells, stand beside each other, and what is as in the element before does too: a
 * packer then refers back once an element instead of twice, which is a fiftieth of a request. Readers of protobuf take
 * fields in any order, and OTLP's do: those of the Collector write them in descending order.
 */
#include <errno.h>
#include <string.h>

#include "proto/otlp/pen.h"
#include "proto/otlp/fields.h"

static int32_t new_index(const struct encoder *e, enum otlp_table t, int32_t index)
{
	if (e->part->map[t])
		return e->part->map[t][index];
	return index ? index + e->part->shift[t] : 0;
}

static void put_index(struct encoder *e, uint32_t field, enum otlp_table t, int32_t index)
{
	put_number(e, field, (uint64_t)new_index(e, t, index));
}

static void put_indices(struct encoder *e, uint32_t field, enum otlp_table t, const struct indices *list)
{
	size_t value;
	uint8_t *at;

	if (!list->count)
		return;
	value = begin(e, field);
	at = room(e->out, (size_t)list->count * INDEX_BYTES);
	if (!at)
		return;
	for (uint32_t i = 0; i < list->count; i++)
		at = varint_write(at, (uint64_t)new_index(e, t, list->items[i]));
	written(e->out, at);
	end(e, value);
}

/* A set of attributes. Renumbered ones are put in ascending order, so that equal sets of several messages are equal bytes;
 * long ones, which only foreign messages have, stay in theirs. */
static void put_attributes(struct encoder *e, uint32_t field, const struct indices *list)
{
	enum { MOST_SORTED = 64 };
	int32_t sorted[MOST_SORTED];
	uint8_t *at;
	size_t value;

	if (!list->count || !e->part->map[TABLE_ATTRIBUTE] || list->count > MOST_SORTED) {
		put_indices(e, field, TABLE_ATTRIBUTE, list);
		return;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		int32_t index = new_index(e, TABLE_ATTRIBUTE, list->items[i]);
		uint32_t to = i;

		for (; to && sorted[to - 1] > index; to--)
			sorted[to] = sorted[to - 1];
		sorted[to] = index;
	}
	value = begin(e, field);
	at = room(e->out, (size_t)list->count * INDEX_BYTES);
	if (!at)
		return;
	for (uint32_t i = 0; i < list->count; i++)
		at = varint_write(at, (uint64_t)sorted[i]);
	written(e->out, at);
	end(e, value);
}

/* --- common, resource --- */
static void put_key_value(struct encoder *e, uint32_t field, const struct key_value *kv);

static void put_value(struct encoder *e, uint32_t field, const struct any_value *v)
{
	size_t at = begin(e, field), list;

	switch (v->kind) {
	case VALUE_NONE:
		break;
	case VALUE_STRING:
		put_bytes(e, COMMON_TAG(AnyValue, string_value), v->string);
		break;
	case VALUE_BOOL:
		put_varint(e, COMMON_TAG(AnyValue, bool_value), v->boolean);
		break;
	case VALUE_INT:
		put_varint(e, COMMON_TAG(AnyValue, int_value), (uint64_t)v->integer);
		break;
	case VALUE_DOUBLE:
		put_fixed64(e, COMMON_TAG(AnyValue, double_value), &v->real);
		break;
	case VALUE_ARRAY:
		list = begin(e, COMMON_TAG(AnyValue, array_value));
		for (uint32_t i = 0; i < v->array.count; i++)
			put_value(e, COMMON_TAG(ArrayValue, values), &v->array.items[i]);
		end(e, list);
		break;
	case VALUE_KVLIST:
		list = begin(e, COMMON_TAG(AnyValue, kvlist_value));
		for (uint32_t i = 0; i < v->kvlist.count; i++)
			put_key_value(e, COMMON_TAG(KeyValueList, values), &v->kvlist.items[i]);
		end(e, list);
		break;
	case VALUE_BYTES:
		put_bytes(e, COMMON_TAG(AnyValue, bytes_value), v->string);
		break;
	case VALUE_STRINDEX:
		put_varint(e, COMMON_TAG(AnyValue, string_value_strindex),
			   (uint64_t)new_index(e, TABLE_STRING, v->strindex));
		break;
	}
	end(e, at);
}

static void put_key_value(struct encoder *e, uint32_t field, const struct key_value *kv)
{
	size_t at = begin(e, field);

	put_str(e, COMMON_TAG(KeyValue, key), kv->key);
	if (kv->value.kind != VALUE_NONE)
		put_value(e, COMMON_TAG(KeyValue, value), &kv->value);
	put_index(e, COMMON_TAG(KeyValue, key_strindex), TABLE_STRING, kv->key_strindex);
	end(e, at);
}

static void put_key_values(struct encoder *e, uint32_t field, const struct key_values *kvs)
{
	for (uint32_t i = 0; i < kvs->count; i++)
		put_key_value(e, field, &kvs->items[i]);
}

static void put_entity_ref(struct encoder *e, uint32_t field, const struct entity_ref *ref)
{
	size_t at = begin(e, field);

	put_str(e, COMMON_TAG(EntityRef, schema_url), ref->schema_url);
	put_str(e, COMMON_TAG(EntityRef, type), ref->type);
	for (uint32_t i = 0; i < ref->id_key_count; i++)
		put_bytes(e, COMMON_TAG(EntityRef, id_keys), ref->id_keys[i]);
	for (uint32_t i = 0; i < ref->description_key_count; i++)
		put_bytes(e, COMMON_TAG(EntityRef, description_keys), ref->description_keys[i]);
	end(e, at);
}

static void put_resource(struct encoder *e, const struct resource *r)
{
	size_t at = begin(e, PROFILES_TAG(ResourceProfiles, resource));

	put_key_values(e, RESOURCE_TAG(Resource, attributes), &r->attributes);
	put_number(e, RESOURCE_TAG(Resource, dropped_attributes_count), r->dropped_attributes_count);
	for (uint32_t i = 0; i < r->entity_ref_count; i++)
		put_entity_ref(e, RESOURCE_TAG(Resource, entity_refs), &r->entity_refs[i]);
	end(e, at);
}

static void put_scope(struct encoder *e, const struct scope *s)
{
	size_t at = begin(e, PROFILES_TAG(ScopeProfiles, scope));

	put_str(e, COMMON_TAG(InstrumentationScope, name), s->name);
	put_str(e, COMMON_TAG(InstrumentationScope, version), s->version);
	put_key_values(e, COMMON_TAG(InstrumentationScope, attributes), &s->attributes);
	put_number(e, COMMON_TAG(InstrumentationScope, dropped_attributes_count), s->dropped_attributes_count);
	end(e, at);
}

/* --- profiles --- */
static void put_values(struct encoder *e, const struct sample *s)
{
	size_t value;
	uint8_t *at;

	if (!s->value_count)
		return;
	value = begin(e, PROFILES_TAG(Sample, values));
	at = room(e->out, (size_t)s->value_count * VARINT_BYTES);
	if (!at)
		return;
	for (uint32_t i = 0; i < s->value_count; i++)
		at = varint_write(at, (uint64_t)s->values[i]);
	written(e->out, at);
	end(e, value);
}

static void put_times(struct encoder *e, const struct sample *s)
{
	size_t value;
	uint8_t *at;

	if (!s->timestamp_count)
		return;
	value = begin(e, PROFILES_TAG(Sample, timestamps_unix_nano));
	at = room(e->out, (size_t)s->timestamp_count * sizeof(*s->timestamps_unix_ns));
	if (!at)
		return;
	for (uint32_t i = 0; i < s->timestamp_count; i++)
		at = write_fixed64(at, &s->timestamps_unix_ns[i]);
	written(e->out, at);
	end(e, value);
}

static void put_sample(struct encoder *e, const struct sample *s)
{
	size_t at = begin(e, PROFILES_TAG(Profile, samples));

	put_index(e, PROFILES_TAG(Sample, stack_index), TABLE_STACK, s->stack_index);
	put_attributes(e, PROFILES_TAG(Sample, attribute_indices), &s->attributes);
	put_index(e, PROFILES_TAG(Sample, link_index), TABLE_LINK, s->link_index);
	put_values(e, s);
	put_times(e, s);
	end(e, at);
}

static void put_value_type(struct encoder *e, uint32_t field, const struct value_type *t)
{
	size_t at = begin(e, field);

	put_index(e, PROFILES_TAG(ValueType, type_strindex), TABLE_STRING, t->type_strindex);
	put_index(e, PROFILES_TAG(ValueType, unit_strindex), TABLE_STRING, t->unit_strindex);
	end(e, at);
}

static void put_profile(struct encoder *e, const struct profile *p)
{
	uint64_t start = e->unit;
	size_t at = begin(e, PROFILES_TAG(ScopeProfiles, profiles));

	put_value_type(e, PROFILES_TAG(Profile, sample_type), &p->sample_type);
	for (uint32_t i = 0; i < p->sample_count; i++, e->unit++) {
		if (otlp_part_has(e->part, e->unit, 1))
			put_sample(e, &p->samples[i]);
	}
	e->unit += !p->sample_count;
	if (p->time_unix_ns)
		put_fixed64(e, PROFILES_TAG(Profile, time_unix_nano), &p->time_unix_ns);
	put_number(e, PROFILES_TAG(Profile, duration_nano), p->duration_ns);
	put_value_type(e, PROFILES_TAG(Profile, period_type), &p->period_type);
	put_number(e, PROFILES_TAG(Profile, period), (uint64_t)p->period);
	put_str(e, PROFILES_TAG(Profile, profile_id), p->profile_id);
	put_number(e, PROFILES_TAG(Profile, dropped_attributes_count), p->dropped_attributes_count);
	if (start >= e->part->first) { /* the parts of one profile carry its payload once */
		put_str(e, PROFILES_TAG(Profile, original_payload_format), p->original_payload_format);
		put_str(e, PROFILES_TAG(Profile, original_payload), p->original_payload);
	}
	put_attributes(e, PROFILES_TAG(Profile, attribute_indices), &p->attributes);
	end(e, at);
}

static void put_scope_profiles(struct encoder *e, const struct scope_profiles *sp)
{
	size_t at = begin(e, PROFILES_TAG(ResourceProfiles, scope_profiles));

	if (sp->has_scope)
		put_scope(e, &sp->scope);
	for (uint32_t i = 0; i < sp->profile_count; i++) {
		uint64_t units = otlp_profile_units(&sp->profiles[i]);

		if (otlp_part_has(e->part, e->unit, units))
			put_profile(e, &sp->profiles[i]);
		else
			e->unit += units;
	}
	e->unit += !sp->profile_count;
	put_str(e, PROFILES_TAG(ScopeProfiles, schema_url), sp->schema_url);
	end(e, at);
}

static void put_resource_profiles(struct encoder *e, const struct resource_profiles *rp)
{
	size_t at = begin(e, PROFILES_TAG(ProfilesData, resource_profiles));

	if (rp->has_resource)
		put_resource(e, &rp->resource);
	for (uint32_t i = 0; i < rp->scope_count; i++) {
		uint64_t units = otlp_scope_units(&rp->scopes[i]);

		if (otlp_part_has(e->part, e->unit, units))
			put_scope_profiles(e, &rp->scopes[i]);
		else
			e->unit += units;
	}
	e->unit += !rp->scope_count;
	put_str(e, PROFILES_TAG(ResourceProfiles, schema_url), rp->schema_url);
	end(e, at);
}

/* --- the dictionary: one function an element, called for those of the part --- */
static void put_mapping(struct encoder *e, uint32_t i)
{
	const struct profile_mapping *m = &e->p->dict.mappings[i];

	put_number(e, PROFILES_TAG(Mapping, memory_start), m->memory_start);
	put_number(e, PROFILES_TAG(Mapping, memory_limit), m->memory_limit);
	put_number(e, PROFILES_TAG(Mapping, file_offset), m->file_offset);
	put_index(e, PROFILES_TAG(Mapping, filename_strindex), TABLE_STRING, m->filename_strindex);
	put_attributes(e, PROFILES_TAG(Mapping, attribute_indices), &m->attributes);
}

static void put_line(struct encoder *e, const struct profile_line *line)
{
	size_t at = begin(e, PROFILES_TAG(Location, lines));

	put_number(e, PROFILES_TAG(Line, line), (uint64_t)line->line);
	put_index(e, PROFILES_TAG(Line, function_index), TABLE_FUNCTION, line->function_index);
	put_number(e, PROFILES_TAG(Line, column), (uint64_t)line->column);
	end(e, at);
}

static void put_location(struct encoder *e, uint32_t i)
{
	const struct profile_location *l = &e->p->dict.locations[i];

	for (uint32_t n = 0; n < l->line_count; n++)
		put_line(e, &l->lines[n]);
	put_attributes(e, PROFILES_TAG(Location, attribute_indices), &l->attributes);
	put_index(e, PROFILES_TAG(Location, mapping_index), TABLE_MAPPING, l->mapping_index);
	put_number(e, PROFILES_TAG(Location, address), l->address);
}

static void put_function(struct encoder *e, uint32_t i)
{
	const struct profile_function *f = &e->p->dict.functions[i];

	put_number(e, PROFILES_TAG(Function, start_line), (uint64_t)f->start_line);
	put_index(e, PROFILES_TAG(Function, system_name_strindex), TABLE_STRING, f->system_name_strindex);
	put_index(e, PROFILES_TAG(Function, filename_strindex), TABLE_STRING, f->filename_strindex);
	put_index(e, PROFILES_TAG(Function, name_strindex), TABLE_STRING, f->name_strindex);
}

static void put_link(struct encoder *e, uint32_t i)
{
	put_str(e, PROFILES_TAG(Link, trace_id), e->p->dict.links[i].trace_id);
	put_str(e, PROFILES_TAG(Link, span_id), e->p->dict.links[i].span_id);
}

static void put_string(struct encoder *e, uint32_t i)
{
	struct str s = e->p->dict.strings[i];
	uint8_t *at = room(e->out, s.len);

	if (at)
		written(e->out, mempcpy(at, s.data, s.len));
}

static void put_attribute(struct encoder *e, uint32_t i)
{
	const struct profile_attribute *a = &e->p->dict.attributes[i];

	put_index(e, PROFILES_TAG(KeyValueAndUnit, key_strindex), TABLE_STRING, a->key_strindex);
	if (a->value.kind != VALUE_NONE)
		put_value(e, PROFILES_TAG(KeyValueAndUnit, value), &a->value);
	put_index(e, PROFILES_TAG(KeyValueAndUnit, unit_strindex), TABLE_STRING, a->unit_strindex);
}

static void put_stack(struct encoder *e, uint32_t i)
{
	put_indices(e, PROFILES_TAG(Stack, location_indices), TABLE_LOCATION, &e->p->dict.stacks[i]);
}

static const struct table {
	uint32_t field;
	size_t count; /* offset in struct dictionary */
	size_t cont;  /* offset in struct otlp_continuation */
	void (*put)(struct encoder *e, uint32_t i);
} tables[TABLES] = {
#define TABLE(field_, name, put_)                                                                    \
	{                                                                                            \
		PROFILES_TAG(ProfilesDictionary, field_), offsetof(struct dictionary, name##_count), \
			offsetof(struct otlp_continuation, name##s), put_                            \
	}
	[TABLE_MAPPING] = TABLE(mapping_table, mapping, put_mapping),
	[TABLE_LOCATION] = TABLE(location_table, location, put_location),
	[TABLE_FUNCTION] = TABLE(function_table, function, put_function),
	[TABLE_LINK] = TABLE(link_table, link, put_link),
	[TABLE_STRING] = TABLE(string_table, string, put_string),
	[TABLE_ATTRIBUTE] = TABLE(attribute_table, attribute, put_attribute),
	[TABLE_STACK] = TABLE(stack_table, stack, put_stack),
#undef TABLE
};

uint32_t otlp_table_count(const struct profiles *p, enum otlp_table t)
{
	return *(const uint32_t *)((const char *)&p->dict + tables[t].count);
}

static void put_table_element(struct encoder *e, enum otlp_table t, uint32_t i)
{
	size_t item = begin(e, tables[t].field);

	tables[t].put(e, i);
	end(e, item);
}

static void put_dictionary(struct encoder *e)
{
	for (unsigned t = 0; t < TABLES; t++) {
		const int32_t *map = e->part->map[t];
		uint32_t count = otlp_table_count(e->p, (enum otlp_table)t);

		for (uint32_t i = e->part->without_zero[t]; i < count; i++) {
			if (!i || !map || map[i])
				put_table_element(e, (enum otlp_table)t, i);
		}
	}
}

/* --- what others call --- */
static struct encoder encoder_of(const struct profiles *p, const struct otlp_part *part, struct buf *out)
{
	struct encoder e = { .out = out };

	e.p = p;
	e.part = part;
	return e;
}

int otlp_encode_element(const struct profiles *p, const struct otlp_part *part, enum otlp_table t, uint32_t i,
			struct buf *out)
{
	struct encoder e = encoder_of(p, part, out);

	put_table_element(&e, t, i);
	return out->failed ? -ENOMEM : 0;
}

int otlp_encode_around(const struct profiles *p, const struct otlp_part *part, const struct buf *dictionary, struct buf *out)
{
	struct encoder e = encoder_of(p, part, out);
	size_t before, at;

	for (uint32_t i = 0; i < p->resource_count; i++) {
		uint64_t units = otlp_resource_units(&p->resources[i]);

		if (otlp_part_has(part, e.unit, units))
			put_resource_profiles(&e, &p->resources[i]);
		else
			e.unit += units;
	}
	before = out->len;
	at = begin(&e, PROFILES_TAG(ProfilesData, dictionary));
	if (dictionary)
		buf_append(out, dictionary->data, dictionary->len);
	else
		put_dictionary(&e);
	if (dictionary || out->len > at) /* in a stream it tells where the message ends, empty or not */
		end(&e, at);
	else
		out->len = before;
	return out->failed ? -ENOMEM : 0;
}

int otlp_encode_part(const struct profiles *p, const struct otlp_part *part, struct buf *out)
{
	return otlp_encode_around(p, part, NULL, out);
}

int otlp_encode(const struct profiles *p, struct otlp_continuation *cont, struct buf *out)
{
	struct otlp_part part = { .end = UINT64_MAX };
	uint32_t before[TABLES];

	for (unsigned t = 0; cont && t < TABLES; t++) {
		memcpy(&before[t], (char *)cont + tables[t].cont, sizeof(before[t]));
		if ((uint64_t)before[t] + otlp_table_count(p, (enum otlp_table)t) > INT32_MAX)
			return -EOVERFLOW;
		part.without_zero[t] = before[t] > 0;
		part.shift[t] = before[t] ? (int32_t)before[t] - 1 : 0;
	}
	if (otlp_encode_part(p, &part, out))
		return -ENOMEM;
	for (unsigned t = 0; cont && t < TABLES; t++) {
		before[t] += otlp_table_count(p, (enum otlp_table)t) - part.without_zero[t];
		memcpy((char *)cont + tables[t].cont, &before[t], sizeof(before[t]));
	}
	return 0;
}
