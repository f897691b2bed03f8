/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a message of release 1.7, which lies in structs of its own in the model's arena, into the model:
 *
 *   stacks      were ranges of a list of locations that each profile had; equal ones become one element of the stack table
 *   indices     had no "none" element: every table but the strings' moves up by one, what was not set becomes 0
 *   attributes  had their keys as text, and units by key in a table apart; both become indices of strings
 *   profiles    had several sample types with a value of each in a sample; each type becomes a profile
 *   flags       of mappings and locations, and comments, become attributes (pprof.*)
 *
 * A count beside several time stamps, which says no more than they, goes; any other total is shared out evenly among them,
 * because 1.10 pairs values with time stamps. default_sample_type_index, a hint for viewers, is left out.
 */
#include <errno.h>
#include <string.h>

#include "base/intern.h"
#include "proto/otlp/decode_1_7.h"
#include "proto/otlp/forms.h"

static const char *const flag_names[FLAGS] = {
	[HAS_FUNCTIONS] = "pprof.mapping.has_functions",
	[HAS_FILENAMES] = "pprof.mapping.has_filenames",
	[HAS_LINE_NUMBERS] = "pprof.mapping.has_line_numbers",
	[HAS_INLINE_FRAMES] = "pprof.mapping.has_inline_frames",
	[IS_FOLDED] = "pprof.location.is_folded",
};

struct converter {
	struct otlp_decoder *d;
	struct profiles *p;
	const struct request_1_7 *in;
	struct intern *keys;   /* of attributes */
	int32_t *key_strings;  /* by number of key: its string */
	int32_t *key_units;    /* and its unit */
	struct intern *stacks; /* lists of locations */
	int32_t flags[FLAGS];  /* their attributes */
	struct buf locations;  /* of the stack that is looked up */
	uint64_t looked_up;    /* locations of all samples, */
	uint64_t kept;	       /* and of different stacks: both are bounded, for ranges may overlap */
	struct comments comments;
};

static bool no_memory(struct converter *c)
{
	return otlp_decode_out_of_memory(c->d);
}

/* Zeroed; NULL without memory, reported. */
static void *new_items(struct converter *c, size_t count, size_t size)
{
	void *items = profiles_alloc(c->p, (count ? count : 1) * size);

	if (!items)
		no_memory(c);
	return items;
}

/* Moves the indices of a list up by one, in place. Too large ones become negative and are found at the end. */
static void shift(struct indices *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		list->items[i] = (int32_t)((uint32_t)list->items[i] + 1);
}

static int32_t shifted(int32_t index)
{
	return (int32_t)((uint32_t)index + 1);
}

/* The number of a key; *@error when there is no memory. */
static uint32_t key_number(struct converter *c, struct str key)
{
	uint32_t number = 0;

	if (intern_add(c->keys, key.data, key.len, &number) < 0)
		no_memory(c);
	return number;
}

/* Strings behind those that came: one for each different key of an attribute, and the names of flags. */
static bool convert_strings(struct converter *c)
{
	const struct request_1_7 *in = c->in;
	struct dictionary *dict = &c->p->dict;
	size_t most = in->string_count + in->attribute_count + FLAGS + 1ul;

	dict->strings = new_items(c, most, sizeof(*dict->strings));
	c->key_strings = new_items(c, (size_t)in->attribute_count + in->unit_count, sizeof(*c->key_strings));
	c->key_units = new_items(c, (size_t)in->attribute_count + in->unit_count, sizeof(*c->key_units));
	if (!dict->strings || !c->key_strings || !c->key_units)
		return false;
	if (in->string_count)
		memcpy(dict->strings, in->strings, in->string_count * sizeof(*in->strings));
	else
		dict->strings[0] = STR("");
	dict->string_count = in->string_count ? in->string_count : 1;
	for (uint32_t i = 0; i < in->unit_count; i++) {
		const struct attribute_unit *u = &in->units[i];

		if ((uint32_t)u->key_strindex < in->string_count)
			c->key_units[key_number(c, in->strings[u->key_strindex])] = u->unit_strindex;
	}
	for (uint32_t i = 0; i < in->attribute_count && !c->d->error; i++) {
		uint32_t number = key_number(c, in->attributes[i].key);

		if (!c->key_strings[number] && in->attributes[i].key.len) {
			dict->strings[dict->string_count] = in->attributes[i].key;
			c->key_strings[number] = (int32_t)dict->string_count++;
		}
	}
	return !c->d->error;
}

static bool convert_attributes(struct converter *c)
{
	const struct request_1_7 *in = c->in;
	struct dictionary *dict = &c->p->dict;

	dict->attributes = new_items(c, in->attribute_count + 1ul + FLAGS, sizeof(*dict->attributes));
	if (!dict->attributes)
		return false;
	dict->attribute_count = 1;
	for (uint32_t i = 0; i < in->attribute_count; i++) {
		const struct key_value *kv = &in->attributes[i];
		uint32_t number = key_number(c, kv->key);

		dict->attributes[dict->attribute_count++] = (struct profile_attribute){
			.key_strindex = c->key_strings[number], .unit_strindex = c->key_units[number], .value = kv->value
		};
	}
	return !c->d->error;
}

/* Adds the attribute of @flag to @list. */
static bool add_flag(struct converter *c, enum flag flag, struct indices *list)
{
	struct dictionary *dict = &c->p->dict;
	int32_t *items = new_items(c, list->count + 1ul, sizeof(*items));

	if (!items)
		return false;
	if (!c->flags[flag]) {
		dict->strings[dict->string_count] = (struct str){ flag_names[flag], (uint32_t)strlen(flag_names[flag]) };
		dict->attributes[dict->attribute_count] = (struct profile_attribute){
			.key_strindex = (int32_t)dict->string_count++, .value = { .kind = VALUE_BOOL, .boolean = true }
		};
		c->flags[flag] = (int32_t)dict->attribute_count++;
	}
	if (list->count)
		memcpy(items, list->items, list->count * sizeof(*items));
	items[list->count] = c->flags[flag];
	*list = (struct indices){ items, list->count + 1 };
	return true;
}

static bool convert_mappings(struct converter *c)
{
	const struct request_1_7 *in = c->in;
	struct dictionary *dict = &c->p->dict;

	dict->mappings = new_items(c, in->mapping_count + 1ul, sizeof(*dict->mappings));
	if (!dict->mappings)
		return false;
	dict->mapping_count = in->mapping_count + 1;
	for (uint32_t i = 0; i < in->mapping_count; i++) {
		struct profile_mapping *m = &dict->mappings[i + 1];

		*m = in->mappings[i].mapping;
		shift(&m->attributes);
		for (enum flag f = 0; f < IS_FOLDED; f++)
			if (in->mappings[i].flags[f] && !add_flag(c, f, &m->attributes))
				return false;
	}
	return true;
}

static bool convert_locations(struct converter *c)
{
	const struct request_1_7 *in = c->in;
	struct dictionary *dict = &c->p->dict;

	dict->locations = new_items(c, in->location_count + 1ul, sizeof(*dict->locations));
	if (!dict->locations)
		return false;
	dict->location_count = in->location_count + 1;
	for (uint32_t i = 0; i < in->location_count; i++) {
		struct profile_location *l = &dict->locations[i + 1];

		*l = in->locations[i].location;
		l->mapping_index = in->locations[i].has_mapping ? shifted(l->mapping_index) : 0;
		shift(&l->attributes);
		for (uint32_t k = 0; k < l->line_count; k++)
			l->lines[k].function_index = shifted(l->lines[k].function_index);
		if (in->locations[i].is_folded && !add_flag(c, IS_FOLDED, &l->attributes))
			return false;
	}
	return true;
}

static bool convert_functions_and_links(struct converter *c)
{
	const struct request_1_7 *in = c->in;
	struct dictionary *dict = &c->p->dict;

	dict->functions = new_items(c, in->function_count + 1ul, sizeof(*dict->functions));
	dict->links = new_items(c, in->link_count + 1ul, sizeof(*dict->links));
	if (!dict->functions || !dict->links)
		return false;
	if (in->function_count)
		memcpy(dict->functions + 1, in->functions, in->function_count * sizeof(*dict->functions));
	if (in->link_count)
		memcpy(dict->links + 1, in->links, in->link_count * sizeof(*dict->links));
	dict->links[0] = (struct profile_link){ STR(""), STR("") };
	dict->function_count = in->function_count + 1;
	dict->link_count = in->link_count + 1;
	return true;
}

/* --- profiles --- */

enum { MAX_TYPES = 64, LOOKED_UP_PER_BYTE = 256, KEPT_PER_BYTE = 4, LEAST_BOUND = 1 << 16 };

static bool too_much(struct converter *c)
{
	otlp_decode_fail(c->d, NULL, &otlp_profile_1_7, NULL, "has samples whose lists of locations overlap beyond measure");
	return false;
}

/* The stack's number in the table to be. */
static bool find_stack(struct converter *c, const struct profile_1_7 *from, const struct sample_1_7 *s, int32_t *ret)
{
	uint32_t number;
	int added;

	if ((uint64_t)s->first + s->length > from->locations.count) {
		otlp_decode_fail(c->d, NULL, &otlp_sample_1_7, NULL, "has locations %u to %llu, but its profile has %u",
				 s->first, (unsigned long long)s->first + s->length, from->locations.count);
		return false;
	}
	c->looked_up += s->length;
	if (c->looked_up > (uint64_t)c->d->len * LOOKED_UP_PER_BYTE + LEAST_BOUND)
		return too_much(c);
	buf_reset(&c->locations);
	for (uint32_t i = 0; i < s->length; i++) {
		int32_t index = shifted(from->locations.items[s->first + i]);

		buf_append(&c->locations, &index, sizeof(index));
	}
	added = c->locations.failed ? -ENOMEM
				    : intern_add(c->stacks, c->locations.len ? c->locations.data : (const void *)"",
						 c->locations.len, &number);
	if (added < 0)
		return no_memory(c);
	c->kept += added ? s->length : 0;
	if (c->kept > (uint64_t)c->d->len * KEPT_PER_BYTE + LEAST_BOUND)
		return too_much(c);
	*ret = (int32_t)number;
	return true;
}

/* Even shares of @total for @count time stamps; the first one has what is left over. */
static int64_t *share_out(struct converter *c, int64_t total, uint32_t count)
{
	int64_t *shares = new_items(c, count, sizeof(*shares));

	for (uint32_t i = 0; shares && i < count; i++)
		shares[i] = total / count + (i ? 0 : total % count);
	return shares;
}

/* The values of sample type @type. */
static bool convert_values(struct converter *c, const struct profile_1_7 *from, uint32_t type, struct sample *to)
{
	struct str unit_name = STR("");

	if (from->type_count > 1 && to->value_count) {
		to->values += type;
		to->value_count = 1;
	}
	if (to->value_count != 1 || to->timestamp_count < 2)
		return true;
	if (from->type_count && (uint32_t)from->types[type].unit_strindex < c->p->dict.string_count)
		unit_name = c->p->dict.strings[from->types[type].unit_strindex];
	to->value_count = str_is(unit_name, "count") ? 0 : to->timestamp_count;
	if (!to->value_count)
		return true;
	to->values = share_out(c, to->values[0], to->timestamp_count);
	return to->values;
}

static bool check_values(struct converter *c, const struct profile_1_7 *from, uint32_t *with_values_ret)
{
	for (uint32_t i = 0; i < from->sample_count; i++) {
		const struct sample_1_7 *s = &from->samples[i];

		*with_values_ret += s->value_count > 0;
		if (from->type_count < 2 || !s->value_count || s->value_count == from->type_count)
			continue;
		otlp_decode_fail(c->d, NULL, &otlp_sample_1_7, NULL, "has %u values, but its profile has %u sample types",
				 s->value_count, from->type_count);
		return false;
	}
	return true;
}

/* A sample without values is one of the first type alone. */
static bool convert_samples(struct converter *c, const struct profile_1_7 *from, uint32_t type, struct profile *to)
{
	uint32_t with_values = 0;

	if (from->type_count > MAX_TYPES) {
		otlp_decode_fail(c->d, NULL, &otlp_profile_1_7, NULL, "has %u sample types, more than %d", from->type_count,
				 MAX_TYPES);
		return false;
	}
	if (!check_values(c, from, &with_values))
		return false;
	to->samples = new_items(c, type ? with_values : from->sample_count, sizeof(*to->samples));
	if (!to->samples)
		return false;
	for (uint32_t i = 0; i < from->sample_count; i++) {
		const struct sample_1_7 *s = &from->samples[i];
		struct sample *out = &to->samples[to->sample_count];

		if (type && !s->value_count)
			continue;
		to->sample_count++;
		*out = (struct sample){ .link_index = s->has_link ? shifted(s->link_index) : 0,
					.attributes = s->attributes,
					.values = s->values,
					.value_count = s->value_count,
					.timestamps_unix_ns = s->timestamps_unix_ns,
					.timestamp_count = s->timestamp_count };
		if (type == 0)
			shift(&out->attributes); /* shared by the profiles of all types */
		if (!find_stack(c, from, s, &out->stack_index) || !convert_values(c, from, type, out))
			return false;
		c->p->sample_events += s->timestamp_count ? s->timestamp_count : 1;
	}
	return true;
}

static bool convert_profile(struct converter *c, struct profile_1_7 *from, uint32_t type, struct profile *to)
{
	*to = (struct profile){
		.sample_type = from->type_count ? from->types[type] : (struct value_type){ 0 },
		.period_type = from->period_type,
		.dropped_attributes_count = from->dropped_attributes_count,
		.time_unix_ns = from->time_unix_ns,
		.duration_ns = from->duration_ns,
		.period = from->period,
		.profile_id = from->profile_id,
		.original_payload_format = type ? STR("") : from->original_payload_format,
		.original_payload = type ? STR("") : from->original_payload,
	};
	if (type == 0)
		shift(&from->attributes);
	to->attributes = from->attributes;
	return convert_samples(c, from, type, to) && comments_add(c->d, &c->comments, &from->comments, &to->attributes);
}

static bool convert_scope(struct converter *c, const struct scope_profiles_1_7 *from, struct scope_profiles *to)
{
	size_t count = 0;

	*to = (struct scope_profiles){ .has_scope = from->has_scope, .scope = from->scope, .schema_url = from->schema_url };
	for (uint32_t i = 0; i < from->profile_count; i++)
		count += from->profiles[i].type_count ? from->profiles[i].type_count : 1;
	to->profiles = new_items(c, count, sizeof(*to->profiles));
	if (!to->profiles)
		return false;
	for (uint32_t i = 0; i < from->profile_count; i++) {
		uint32_t types = from->profiles[i].type_count ? from->profiles[i].type_count : 1;

		for (uint32_t type = 0; type < types; type++)
			if (!convert_profile(c, &from->profiles[i], type, &to->profiles[to->profile_count++]))
				return false;
	}
	return true;
}

static bool convert_resources(struct converter *c)
{
	const struct request_1_7 *in = c->in;

	c->p->resources = new_items(c, in->resource_count, sizeof(*c->p->resources));
	for (uint32_t i = 0; c->p->resources && i < in->resource_count; i++) {
		const struct resource_profiles_1_7 *from = &in->resources[i];
		struct resource_profiles *to = &c->p->resources[c->p->resource_count++];

		*to = (struct resource_profiles){ .has_resource = from->has_resource,
						  .resource = from->resource,
						  .schema_url = from->schema_url };
		to->scopes = new_items(c, from->scope_count, sizeof(*to->scopes));
		for (uint32_t k = 0; to->scopes && k < from->scope_count; k++)
			if (!convert_scope(c, &from->scopes[k], &to->scopes[to->scope_count++]))
				return false;
		if (!to->scopes)
			return false;
	}
	return c->p->resources;
}

static bool fill_stacks(struct converter *c)
{
	struct dictionary *dict = &c->p->dict;
	uint32_t count = intern_count(c->stacks);

	dict->stacks = new_items(c, count, sizeof(*dict->stacks));
	for (uint32_t i = 0; dict->stacks && i < count; i++) {
		size_t len = 0;
		const void *items = intern_get(c->stacks, i, &len);

		dict->stacks[i].items = new_items(c, len, 1);
		if (!dict->stacks[i].items)
			return false;
		memcpy(dict->stacks[i].items, items, len);
		dict->stacks[i].count = (uint32_t)(len / sizeof(int32_t));
		dict->stack_count++;
	}
	return dict->stacks;
}

static bool convert_all(struct converter *c)
{
	uint32_t empty;

	if (!c->keys || !c->stacks || intern_add(c->stacks, "", 0, &empty) < 0)
		return no_memory(c);
	if (!convert_strings(c) || !convert_attributes(c) || !convert_mappings(c) || !convert_locations(c) ||
	    !convert_functions_and_links(c) || !convert_resources(c) || !fill_stacks(c))
		return false;
	/* The decoder's largest indices are of other tables, so each one is looked at. */
	if (otlp_check_indices(c->p, c->d->is_json, c->d->text))
		return true;
	c->d->error = -EBADMSG;
	return false;
}

/* Makes the model of @request, a struct request_1_7. False: reported. */
static bool convert(struct otlp_decoder *d, const void *request)
{
	struct converter c = {
		.d = d, .p = d->profiles, .in = request, .keys = intern_new(), .stacks = intern_new(), .locations = BUF_EMPTY
	};
	bool done = convert_all(&c);

	intern_free(c.keys);
	intern_free(c.stacks);
	buf_fini(&c.locations);
	return done;
}

/* --- how it is told --- */

/* Profile: 3 was location_indices, 5 the duration; attributes had their keys in them. */
static bool fits(const struct otlp_prints *s, bool doubtful)
{
	(void)doubtful;
	return otlp_prints_saw(s, NODE_PROFILE, 3, WIRE_BYTES) || otlp_prints_saw(s, NODE_ATTRIBUTE, 1, WIRE_BYTES) ||
	       otlp_prints_saw(s, NODE_PROFILE, 5, WIRE_VARINT);
}

static const struct otlp_mark marks[] = {
	{ "Profile", "location_indices", false },
	{ "Profile", "time_nanos", false },
	{ "Profile", "duration_nanos", false },
	{ "Profile", "sample_type", true },
	{ "Sample", "locations_start_index", false },
	{ "Sample", "locations_length", false },
	{ "Sample", "value", false },
	{ "KeyValueAndUnit", "key", false },
};

const struct otlp_form otlp_form_1_7 = {
	.release = "1.7",
	.fits = fits,
	.marks = marks,
	.mark_count = ARRAY_LEN(marks),
	.layout = { .root = &otlp_request_1_7, .size_bytes = sizeof(struct request_1_7), .convert = convert },
};
