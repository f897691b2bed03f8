/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that hold a profile's surroundings, or one value. Values are nested at most 32 deep: the decoder sees to it. */
#include "backend/store/origin.h"

#include <errno.h>
#include <string.h>

#include "proto/otlp/otlp.h"

int origin_copy_string(struct profiles *to, struct str s, struct str *ret)
{
	char *data = profiles_alloc(to, s.len + 1);

	if (!data)
		return -ENOMEM;
	memcpy(data, s.data, s.len);
	*ret = (struct str){ data, s.len };
	return 0;
}

static int copy_array(struct profiles *to, const struct profiles *from, const struct any_value *value, struct any_value *ret)
{
	uint32_t n = value->array.count;
	int err = 0;

	*ret = (struct any_value){ .kind = VALUE_ARRAY };
	ret->array.items = profiles_alloc(to, (n + 1) * sizeof(*ret->array.items));
	if (!ret->array.items)
		return -ENOMEM;
	ret->array.count = n;
	for (uint32_t i = 0; i < n && !err; i++)
		err = origin_copy_value(to, from, &value->array.items[i], &ret->array.items[i]);
	return err;
}

int origin_copy_value(struct profiles *to, const struct profiles *from, const struct any_value *value, struct any_value *ret)
{
	struct key_values list = { 0 };
	struct str s;
	int err;

	if (profiles_value_string(from, value, &s)) {
		*ret = (struct any_value){ .kind = VALUE_STRING };
		return origin_copy_string(to, s, &ret->string);
	}
	if (value->kind == VALUE_ARRAY)
		return copy_array(to, from, value, ret);
	if (value->kind == VALUE_KVLIST) {
		err = origin_copy_key_values(to, from, &(struct key_values){ value->kvlist.items, value->kvlist.count },
					     &list);
		*ret = (struct any_value){ .kind = VALUE_KVLIST };
		ret->kvlist.items = list.items;
		ret->kvlist.count = list.count;
		return err;
	}
	*ret = *value;
	return value->kind == VALUE_BYTES ? origin_copy_string(to, value->string, &ret->string) : 0;
}

int origin_copy_key_values(struct profiles *to, const struct profiles *from, const struct key_values *kvs,
			   struct key_values *ret)
{
	int err = 0;

	*ret = (struct key_values){ profiles_alloc(to, (kvs->count + 1) * sizeof(*kvs->items)), kvs->count };
	if (!ret->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < kvs->count && !err; i++) {
		err = origin_copy_string(to, profiles_key(from, &kvs->items[i]), &ret->items[i].key);
		if (!err)
			err = origin_copy_value(to, from, &kvs->items[i].value, &ret->items[i].value);
	}
	return err;
}

int origin_make_tables(struct profiles *p, uint32_t strings, uint32_t attributes)
{
	struct dictionary *d = &p->dict;

	d->string_count = 1 + strings;
	d->attribute_count = 1 + attributes;
	d->mapping_count = d->location_count = d->function_count = d->link_count = d->stack_count = 1;
	d->mappings = profiles_alloc(p, sizeof(*d->mappings));
	d->locations = profiles_alloc(p, sizeof(*d->locations));
	d->functions = profiles_alloc(p, sizeof(*d->functions));
	d->links = profiles_alloc(p, sizeof(*d->links));
	d->stacks = profiles_alloc(p, sizeof(*d->stacks));
	d->strings = profiles_alloc(p, d->string_count * sizeof(*d->strings));
	d->attributes = profiles_alloc(p, d->attribute_count * sizeof(*d->attributes));
	if (!d->mappings || !d->locations || !d->functions || !d->links || !d->stacks || !d->strings || !d->attributes)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->string_count; i++)
		d->strings[i].data = "";
	d->links[0] = (struct profile_link){ { "", 0 }, { "", 0 } };
	return 0;
}

static struct value_type copy_type(struct profiles *to, const struct profiles *from, struct value_type type, int32_t first)
{
	to->dict.strings[first] = profiles_string(from, type.type_strindex);
	to->dict.strings[first + 1] = profiles_string(from, type.unit_strindex);
	return (struct value_type){ .type_strindex = first, .unit_strindex = first + 1 };
}

/* Strings are borrowed from @p: the copy is encoded at once. */
static int copy_origin(struct profiles *m, const struct profiles *p, const struct origin *origin)
{
	struct resource_profiles *resource = profiles_alloc(m, sizeof(*resource));
	struct scope_profiles *scope = profiles_alloc(m, sizeof(*scope));
	struct profile *profile = profiles_alloc(m, sizeof(*profile));

	if (!resource || !scope || !profile || origin_make_tables(m, 4, 0))
		return -ENOMEM;
	*resource = *origin->resource;
	resource->resource.attributes = (struct key_values){ 0 };
	resource->scopes = scope;
	resource->scope_count = 1;
	*scope = *origin->scope;
	scope->profiles = profile;
	scope->profile_count = 1;
	profile->sample_type = copy_type(m, p, origin->profile->sample_type, 1);
	profile->period_type = copy_type(m, p, origin->profile->period_type, 3);
	profile->period = origin->profile->period;
	profile->dropped_attributes_count = origin->profile->dropped_attributes_count;
	profile->profile_id = profile->original_payload = profile->original_payload_format = STR("");
	m->resources = resource;
	m->resource_count = 1;
	return origin_copy_key_values(m, p, &origin->scope->scope.attributes, &scope->scope.attributes);
}

int origin_encode(const struct profiles *p, const struct origin *origin, struct buf *out)
{
	struct profiles *m = profiles_new();
	int err = m ? copy_origin(m, p, origin) : -ENOMEM;

	if (!err)
		err = otlp_encode(m, NULL, out);
	profiles_put(m);
	return err;
}

int origin_encode_value(const struct profiles *p, const struct any_value *value, struct buf *out)
{
	struct profiles *m = profiles_new();
	int err = m ? origin_make_tables(m, 0, 1) : -ENOMEM;

	if (!err)
		err = origin_copy_value(m, p, value, &m->dict.attributes[1].value);
	if (!err)
		err = otlp_encode(m, NULL, out);
	profiles_put(m);
	return err;
}
