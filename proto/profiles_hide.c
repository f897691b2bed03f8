/* SPDX-License-Identifier: Apache-2.0 */
/* Three tables of the dictionary are made anew, as long as they were, so that all indices stay. */
#include "proto/profiles_hide.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/unnamed.h"

#define KERNEL_BIT (1ull << 63) /* set in the kernel's addresses on all CPUs that there are */

static void put(struct profiles **p)
{
	profiles_put(*p);
}

/* A copy of @count elements of @size bytes at *@table, in @p's memory, takes the place of these. */
static int copy_table(struct profiles *p, void *table, uint32_t count, size_t size)
{
	void *from, *to = profiles_alloc(p, count ? count * size : 1);

	if (!to)
		return -ENOMEM;
	memcpy(&from, table, sizeof(from));
	if (count)
		memcpy(to, from, count * size);
	memcpy(table, &to, sizeof(to));
	return 0;
}

/* The address of @l with respect to its mapping, as that was; 0 where that has no file. */
static uint64_t relative(const struct profiles *p, const struct profile_location *l)
{
	const struct profile_mapping *m = &p->dict.mappings[l->mapping_index];
	const struct str path = profiles_string(p, m->filename_strindex);

	if (!path.len || unnamed_is_generated(path))
		return 0;
	if (m->memory_limit > m->memory_start && l->address - m->memory_start < m->memory_limit - m->memory_start)
		return l->address - m->memory_start;
	return l->address & KERNEL_BIT ? 0 : l->address;
}

/* Where code without a name begins: that is where its location is. */
static void hide_attributes(struct profiles *p)
{
	for (uint32_t i = 0; i < p->dict.attribute_count; i++) {
		struct profile_attribute *a = &p->dict.attributes[i];

		if (a->value.kind == VALUE_INT && (uint64_t)a->value.integer & KERNEL_BIT &&
		    str_is(profiles_string(p, a->key_strindex), CODE_START_KEY))
			a->value.integer = 0;
	}
}

int profiles_hide_addresses(struct profiles *p, struct profiles **ret)
{
	AUTO(put) struct profiles *hidden = profiles_derive(p);
	struct dictionary *d = hidden ? &hidden->dict : NULL;

	if (!d || copy_table(hidden, &d->locations, d->location_count, sizeof(*d->locations)) ||
	    copy_table(hidden, &d->mappings, d->mapping_count, sizeof(*d->mappings)) ||
	    copy_table(hidden, &d->attributes, d->attribute_count, sizeof(*d->attributes)))
		return -ENOMEM;
	for (uint32_t i = 0; i < d->location_count; i++)
		d->locations[i].address = relative(p, &p->dict.locations[i]);
	for (uint32_t i = 0; i < d->mapping_count; i++) {
		d->mappings[i].memory_limit -= d->mappings[i].memory_start;
		d->mappings[i].memory_start = 0;
	}
	hide_attributes(hidden);
	*ret = MOVE(hidden);
	return 0;
}
