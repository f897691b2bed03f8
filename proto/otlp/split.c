/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts profiles into messages below a size. Each is a range of samples with the dictionary entries that those reach; the
 * model is not copied: the range and the new indices are handed to the encoder. The size of a range is only known once it is
 * encoded, so ranges that turn out too large are halved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/otlp/encode.h"

struct splitter {
	const struct profiles *p;
	size_t max_bytes;
	int (*fn)(void *arg, const uint8_t *msg, size_t len, uint64_t sample_events);
	void *arg;
	struct buf out;
	int32_t *map[TABLES];	/* while marking: not 0 when reached; then the new index */
	uint64_t sample_events; /* of the samples marked */
};

/* --- counting: what a part is a range of --- */
uint64_t otlp_profile_units(const struct profile *p)
{
	return p->sample_count ? p->sample_count : 1;
}

uint64_t otlp_scope_units(const struct scope_profiles *sp)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < sp->profile_count; i++)
		n += otlp_profile_units(&sp->profiles[i]);
	return n ? n : 1;
}

uint64_t otlp_resource_units(const struct resource_profiles *rp)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < rp->scope_count; i++)
		n += otlp_scope_units(&rp->scopes[i]);
	return n ? n : 1;
}

static uint64_t count_units(const struct profiles *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->resource_count; i++)
		n += otlp_resource_units(&p->resources[i]);
	return n;
}

/* --- marking: what a part reaches --- */
static void mark(struct splitter *s, enum otlp_table t, int32_t index)
{
	s->map[t][index] = 1;
}

static void mark_all(struct splitter *s, enum otlp_table t, const struct indices *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		mark(s, t, list->items[i]);
}

static void mark_key_values(struct splitter *s, const struct key_value *items, uint32_t count);

static void mark_value(struct splitter *s, const struct any_value *v)
{
	if (v->kind == VALUE_STRINDEX)
		mark(s, TABLE_STRING, v->strindex);
	else if (v->kind == VALUE_KVLIST)
		mark_key_values(s, v->kvlist.items, v->kvlist.count);
	else if (v->kind == VALUE_ARRAY)
		for (uint32_t i = 0; i < v->array.count; i++)
			mark_value(s, &v->array.items[i]);
}

static void mark_key_values(struct splitter *s, const struct key_value *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		mark(s, TABLE_STRING, items[i].key_strindex);
		mark_value(s, &items[i].value);
	}
}

/* The samples of @p, which is unit @unit on, that lie in the part, and what the profile itself refers to. */
static void mark_profile(struct splitter *s, const struct otlp_part *part, const struct profile *p, uint64_t unit)
{
	uint64_t from = part->first > unit ? part->first - unit : 0;

	mark(s, TABLE_STRING, p->sample_type.type_strindex);
	mark(s, TABLE_STRING, p->sample_type.unit_strindex);
	mark(s, TABLE_STRING, p->period_type.type_strindex);
	mark(s, TABLE_STRING, p->period_type.unit_strindex);
	mark_all(s, TABLE_ATTRIBUTE, &p->attributes);
	for (uint64_t i = from; i < p->sample_count && unit + i < part->end; i++) {
		const struct sample *sample = &p->samples[i];

		mark(s, TABLE_STACK, sample->stack_index);
		mark(s, TABLE_LINK, sample->link_index);
		mark_all(s, TABLE_ATTRIBUTE, &sample->attributes);
		s->sample_events += sample->timestamp_count ? sample->timestamp_count : 1;
	}
}

static void mark_resources(struct splitter *s, const struct otlp_part *part)
{
	uint64_t unit = 0, units;

	for (uint32_t r = 0; r < s->p->resource_count; r++) {
		const struct resource_profiles *rp = &s->p->resources[r];

		if (otlp_part_has(part, unit, otlp_resource_units(rp)))
			mark_key_values(s, rp->resource.attributes.items, rp->resource.attributes.count);
		for (uint32_t i = 0; i < rp->scope_count; i++) {
			const struct scope_profiles *sp = &rp->scopes[i];

			if (otlp_part_has(part, unit, otlp_scope_units(sp)))
				mark_key_values(s, sp->scope.attributes.items, sp->scope.attributes.count);
			for (uint32_t n = 0; n < sp->profile_count; n++, unit += units) {
				units = otlp_profile_units(&sp->profiles[n]);
				if (otlp_part_has(part, unit, units))
					mark_profile(s, part, &sp->profiles[n], unit);
			}
			unit += !sp->profile_count;
		}
		unit += !rp->scope_count;
	}
}

/* Element 0 always goes along. */
static bool reached(const struct splitter *s, enum otlp_table t, uint32_t index)
{
	return !index || s->map[t][index];
}

/* Marks the elements that marked ones refer to, tables in the order of their references. */
static void mark_tables(struct splitter *s)
{
	const struct dictionary *d = &s->p->dict;

	for (uint32_t i = 0; i < d->stack_count; i++)
		if (reached(s, TABLE_STACK, i))
			mark_all(s, TABLE_LOCATION, &d->stacks[i]);
	for (uint32_t i = 0; i < d->location_count; i++) {
		const struct profile_location *l = &d->locations[i];

		if (!reached(s, TABLE_LOCATION, i))
			continue;
		mark(s, TABLE_MAPPING, l->mapping_index);
		mark_all(s, TABLE_ATTRIBUTE, &l->attributes);
		for (uint32_t n = 0; n < l->line_count; n++)
			mark(s, TABLE_FUNCTION, l->lines[n].function_index);
	}
	for (uint32_t i = 0; i < d->mapping_count; i++) {
		if (!reached(s, TABLE_MAPPING, i))
			continue;
		mark(s, TABLE_STRING, d->mappings[i].filename_strindex);
		mark_all(s, TABLE_ATTRIBUTE, &d->mappings[i].attributes);
	}
	for (uint32_t i = 0; i < d->function_count; i++) {
		if (!reached(s, TABLE_FUNCTION, i))
			continue;
		mark(s, TABLE_STRING, d->functions[i].name_strindex);
		mark(s, TABLE_STRING, d->functions[i].system_name_strindex);
		mark(s, TABLE_STRING, d->functions[i].filename_strindex);
	}
	for (uint32_t i = 0; i < d->attribute_count; i++) {
		if (!reached(s, TABLE_ATTRIBUTE, i))
			continue;
		mark(s, TABLE_STRING, d->attributes[i].key_strindex);
		mark(s, TABLE_STRING, d->attributes[i].unit_strindex);
		mark_value(s, &d->attributes[i].value);
	}
}

/* --- sending --- */
/* Gives the elements that the part reaches their new indices, in the old order. */
static void renumber(struct splitter *s, struct otlp_part *part)
{
	for (unsigned t = 0; t < TABLES; t++) {
		memset(s->map[t], 0, otlp_table_count(s->p, (enum otlp_table)t) * sizeof(*s->map[t]));
		part->map[t] = s->map[t];
	}
	s->sample_events = 0;
	mark_resources(s, part);
	mark_tables(s);
	for (unsigned t = 0; t < TABLES; t++) {
		uint32_t count = otlp_table_count(s->p, (enum otlp_table)t);
		int32_t next = 1;

		s->map[t][0] = 0;
		for (uint32_t i = 1; i < count; i++)
			if (s->map[t][i])
				s->map[t][i] = next++;
	}
}

static int send_range(struct splitter *s, uint64_t first, uint64_t end)
{
	struct otlp_part part = { .first = first, .end = end };
	int r;

	renumber(s, &part);
	buf_reset(&s->out);
	if (otlp_encode_part(s->p, &part, &s->out))
		return -ENOMEM;
	if (s->out.len <= s->max_bytes || end - first == 1)
		return s->fn(s->arg, s->out.data, s->out.len, s->sample_events);
	r = send_range(s, first, first + (end - first) / 2);
	return r ? r : send_range(s, first + (end - first) / 2, end);
}

/* Equal shares to begin with, as many as the size of the whole asks for. */
static int send_shares(struct splitter *s, uint64_t units, uint64_t shares)
{
	int r = 0;

	for (unsigned t = 0; t < TABLES && !r; t++) {
		s->map[t] = calloc(otlp_table_count(s->p, (enum otlp_table)t), sizeof(*s->map[t]));
		if (!s->map[t])
			r = -ENOMEM;
	}
	for (uint64_t i = 0; !r && i < shares; i++)
		r = send_range(s, units / shares * i, i + 1 < shares ? units / shares * (i + 1) : units);
	for (unsigned t = 0; t < TABLES; t++)
		free(s->map[t]);
	return r;
}

int otlp_encode_split(const struct profiles *p, size_t max_bytes,
		      int (*fn)(void *arg, const uint8_t *msg, size_t len, uint64_t sample_events), void *arg)
{
	struct splitter s = { .p = p, .max_bytes = max_bytes, .fn = fn, .arg = arg };
	uint64_t units = count_units(p), shares;
	int r = otlp_encode(p, NULL, &s.out);

	if (!r && (s.out.len <= max_bytes || units < 2)) {
		r = fn(arg, s.out.data, s.out.len, p->sample_events);
	} else if (!r) {
		shares = max_bytes ? s.out.len / max_bytes + 1 : units;
		r = send_shares(&s, units, shares < units ? shares : units);
	}
	buf_fini(&s.out);
	return r;
}
