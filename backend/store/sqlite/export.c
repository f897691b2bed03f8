/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns stored events into profiles again: resources, scopes, labels, links and times as they came. A message has many
 * series and blocks, so that a name or stack is told once; it is handed out when it has grown to PIECE_BYTES. A series is
 * one resource in it, and a profile for each block. Samples of the same stack, labels and cpu are put together. Times, ids
 * and payloads of single reports were not kept: a profile's window is that of its events, and its id is new.
 */
#include "backend/store/sqlite/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backend/store/store_read.h"
#include "backend/store/origin.h"
#include "backend/store/sqlite/scan.h"
#include "backend/store/sqlite/tables.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/otlp/otlp.h"

enum { PROFILE_ID_BYTES = 16, PIECE_BYTES = 2 << 20 };

/* A selected event: what makes a sample, and its time. */
struct picked {
	uint32_t stack, label, cpu, link;
	uint64_t time_ns;
	int64_t weight;
};

/* A series of the message in the making. */
struct series_out {
	struct resource_profiles resource;
	struct scope_profiles scope;
	struct profile *profiles; /* owned */
	size_t count, cap;
	size_t sound; /* of the profiles: those that are whole, as their block was not found damaged before */
};

/* A message in the making, and what it is made from. */
struct exporting {
	struct scan *scan;
	struct out_tables tables;
	struct profiles *p; /* NULL: none has been begun */
	struct series_out *series;
	size_t series_count, series_cap;
	struct map places;     /* struct name_series -> its place in series, + 1 */
	uint64_t sound_events; /* of the sound profiles */
	struct picked *picked;
	size_t picked_count, picked_cap;
};

static bool is_same_sample(const struct picked *a, const struct picked *b)
{
	return a->stack == b->stack && a->label == b->label && a->cpu == b->cpu && a->link == b->link;
}

static int compare_picked(const void *a, const void *b)
{
	const struct picked *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static int compare_times(const void *a, const void *b)
{
	const struct picked *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return compare_picked(a, b);
}

/* The selected events of the block's series @index. */
static int pick(struct exporting *x, uint32_t index)
{
	const struct block *b = x->scan->block;
	const struct store_selection *sel = x->scan->sel;
	const uint8_t *mask;
	uint32_t at = b->event_start[index];
	int err = scan_mask(x->scan, index, &mask);

	for (int part = BLOCK_STACKS; part < BLOCK_PARTS && !err; part++)
		err = scan_part(x->scan, (enum block_part)part);
	if (!err)
		err = vec_reserve(&x->picked, &x->picked_cap, b->event_count);
	x->picked_count = 0;
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		uint32_t node = b->run_stack[r];

		if (sel->stacks && (node >= sel->stack_count || !(sel->stacks[node / 64] >> node % 64 & 1)))
			continue;
		for (uint32_t e = at; e < at + b->run_events[r]; e++) {
			if (!mask || mask[e])
				x->picked[x->picked_count++] = (struct picked){
					node,	       b->cell_set[b->label[e]],     b->cpu[e], b->link ? b->link[e] : 0,
					b->time_ns[e], b->weight ? b->weight[e] : 1,
				};
		}
	}
	return err;
}

/* One sample of the events [@first, @first + @count). */
static int make_sample(struct exporting *x, const struct picked *first, uint32_t count, int shape, struct sample *ret)
{
	int err;

	ret->stack_index = out_stack(&x->tables, first->stack);
	ret->link_index = out_link(&x->tables, first->link);
	err = out_set(&x->tables, first->label, first->cpu, &ret->attributes);
	if (err || ret->stack_index < 0 || ret->link_index < 0)
		return err ? err : ret->stack_index < 0 ? ret->stack_index : ret->link_index;
	if (shape & 1) {
		ret->timestamps_unix_ns = profiles_alloc(x->p, count * sizeof(*ret->timestamps_unix_ns));
		ret->timestamp_count = count;
	}
	if (shape & 2) {
		ret->value_count = shape & 1 ? count : 1;
		ret->values = profiles_alloc(x->p, ret->value_count * sizeof(*ret->values));
	}
	if ((ret->timestamp_count && !ret->timestamps_unix_ns) || (ret->value_count && !ret->values))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (ret->timestamp_count)
			ret->timestamps_unix_ns[i] = first[i].time_ns;
		if (ret->value_count)
			ret->values[shape & 1 ? i : 0] = weights_add(ret->values[shape & 1 ? i : 0], first[i].weight);
	}
	x->p->sample_events += ret->timestamp_count ? ret->timestamp_count : 1;
	return 0;
}

/* Samples of @count sorted events, and the window they make. */
static int make_samples(struct exporting *x, const struct picked *picked, size_t count, int shape, struct profile *profile)
{
	uint64_t first = UINT64_MAX, last = 0;
	size_t start = 0, samples = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		first = picked[i].time_ns < first ? picked[i].time_ns : first;
		last = picked[i].time_ns > last ? picked[i].time_ns : last;
		samples += i == 0 || !is_same_sample(&picked[i], &picked[i - 1]);
	}
	profile->time_unix_ns = first;
	profile->duration_ns = shape & 1 ? last - first + 1 : 0;
	profile->samples = profiles_alloc(x->p, samples * sizeof(*profile->samples));
	if (!profile->samples)
		return -ENOMEM;
	for (size_t i = 1; i <= count && !err; i++) {
		if (i < count && is_same_sample(&picked[i], &picked[i - 1]))
			continue;
		err = make_sample(x, picked + start, (uint32_t)(i - start), shape,
				  &profile->samples[profile->sample_count++]);
		start = i;
	}
	return err;
}

static int copy_names(struct exporting *x, const struct name_origin *o, struct profile *profile)
{
	const char *const texts[4] = { o->sample_type, o->sample_unit, o->period_type, o->period_unit };
	int32_t indices[4];
	char *id = profiles_alloc(x->p, PROFILE_ID_BYTES);

	if (!id || getrandom(id, PROFILE_ID_BYTES, 0) != PROFILE_ID_BYTES)
		return id ? -EIO : -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		indices[i] = out_string(&x->tables, texts[i]);
		if (indices[i] < 0)
			return indices[i];
	}
	profile->sample_type = (struct value_type){ .type_strindex = indices[0], .unit_strindex = indices[1] };
	profile->period_type = (struct value_type){ .type_strindex = indices[2], .unit_strindex = indices[3] };
	profile->period = o->period;
	profile->profile_id = (struct str){ id, PROFILE_ID_BYTES };
	profile->original_payload = profile->original_payload_format = STR("");
	return out_set(&x->tables, o->attributes, 0, &profile->attributes);
}

/* Events of samples without times came with their report's: each report is a profile of its own. */
static int make_profiles(struct exporting *x, const struct name_origin *o, struct series_out *out)
{
	size_t start = 0;
	int err = 0;

	qsort(x->picked, x->picked_count, sizeof(*x->picked), o->shape & 1 ? compare_picked : compare_times);
	for (size_t i = 1; i <= x->picked_count && !err; i++) {
		if (i < x->picked_count && (o->shape & 1 || x->picked[i].time_ns == x->picked[i - 1].time_ns))
			continue;
		err = vec_reserve(&out->profiles, &out->cap, out->count + 1);
		if (err)
			return err;
		out->profiles[out->count] = (struct profile){ 0 };
		err = copy_names(x, o, &out->profiles[out->count]);
		err = err ? err : make_samples(x, x->picked + start, i - start, o->shape, &out->profiles[out->count++]);
		start = i;
	}
	return err;
}

static int copy_texts(struct profiles *to, struct str **texts, uint32_t count)
{
	struct str *copies = profiles_alloc(to, (count + 1) * sizeof(*copies));
	int err = copies ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++)
		err = origin_copy_string(to, (*texts)[i], &copies[i]);
	*texts = copies;
	return err;
}

static int copy_entities(struct profiles *to, struct resource *r)
{
	struct entity_ref *copies = profiles_alloc(to, (r->entity_ref_count + 1) * sizeof(*copies));
	int err = copies ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->entity_ref_count && !err; i++) {
		struct entity_ref *e = &copies[i];

		*e = r->entity_refs[i];
		err = origin_copy_string(to, e->schema_url, &e->schema_url);
		err = err ? err : origin_copy_string(to, e->type, &e->type);
		err = err ? err : copy_texts(to, &e->id_keys, e->id_key_count);
		err = err ? err : copy_texts(to, &e->description_keys, e->description_key_count);
	}
	r->entity_refs = copies;
	return err;
}

/* The resource and scope that the message @m has, with memory of x->p's. */
static int copy_surroundings(struct exporting *x, const struct profiles *m, struct series_out *out)
{
	struct scope_profiles *scope = &out->scope;
	int err;

	if (!m->resource_count || !m->resources[0].scope_count)
		return -EBADMSG;
	out->resource = m->resources[0];
	*scope = out->resource.scopes[0];
	scope->profiles = NULL;
	scope->profile_count = 0;
	err = copy_entities(x->p, &out->resource.resource);
	err = err ? err : origin_copy_string(x->p, out->resource.schema_url, &out->resource.schema_url);
	err = err ? err : origin_copy_string(x->p, scope->schema_url, &scope->schema_url);
	err = err ? err : origin_copy_string(x->p, scope->scope.name, &scope->scope.name);
	err = err ? err : origin_copy_string(x->p, scope->scope.version, &scope->scope.version);
	return err ? err : origin_copy_key_values(x->p, m, &scope->scope.attributes, &scope->scope.attributes);
}

/* The place of @series in the message, where it is put unless it is there. */
static int find_series(struct exporting *x, const struct name_series *series, struct series_out **ret)
{
	size_t place = (size_t)(uintptr_t)map_get(&x->places, (uintptr_t)series);
	struct series_out *out;
	struct otlp_error why;
	struct profiles *m;
	int err;

	if (place) {
		*ret = &x->series[place - 1];
		return 0;
	}
	err = vec_reserve(&x->series, &x->series_cap, x->series_count + 1);
	err = err ? err : otlp_decode(series->origin->message.data, series->origin->message.len, false, &m, &why);
	if (err)
		return err;
	out = &x->series[x->series_count];
	*out = (struct series_out){ 0 };
	err = copy_surroundings(x, m, out);
	profiles_put(m);
	err = err ? err : out_key_values(&x->tables, series->resource, &out->resource.resource.attributes);
	err = err ? err : map_put(&x->places, (uintptr_t)series, (void *)(uintptr_t)(x->series_count + 1));
	x->series_count += !err;
	*ret = out;
	return err;
}

/* --- messages --- */

static int begin_message(struct exporting *x)
{
	x->p = profiles_new();
	x->sound_events = 0;
	return x->p ? out_tables_init(&x->tables, x->scan->s->names, x->p) : -ENOMEM;
}

static size_t message_bytes(const struct exporting *x)
{
	return profiles_memory_bytes(x->p) + out_tables_memory_bytes(&x->tables);
}

/* Puts the sound profiles of @out into @ret, with memory of x->p's. */
static int finish_series(struct exporting *x, const struct series_out *out, struct resource_profiles *ret)
{
	struct scope_profiles *scope = profiles_alloc(x->p, sizeof(*scope));

	*ret = out->resource;
	ret->scopes = scope;
	ret->scope_count = 1;
	if (!scope)
		return -ENOMEM;
	*scope = out->scope;
	scope->profiles = profiles_alloc(x->p, out->sound * sizeof(*scope->profiles));
	scope->profile_count = (uint32_t)out->sound;
	if (!scope->profiles)
		return -ENOMEM;
	memcpy(scope->profiles, out->profiles, out->sound * sizeof(*scope->profiles));
	return 0;
}

static int finish_message(struct exporting *x)
{
	int err;

	x->p->sample_events = x->sound_events;
	x->p->resources = profiles_alloc(x->p, x->series_count * sizeof(*x->p->resources));
	err = x->p->resources ? 0 : -ENOMEM;
	for (size_t i = 0; i < x->series_count && !err; i++)
		if (x->series[i].sound)
			err = finish_series(x, &x->series[i], &x->p->resources[x->p->resource_count++]);
	return err ? err : out_tables_finish(&x->tables);
}

static void drop_message(struct exporting *x)
{
	for (size_t i = 0; i < x->series_count; i++)
		free(x->series[i].profiles);
	x->series_count = 0;
	map_fini(&x->places);
	if (x->p)
		out_tables_fini(&x->tables);
	profiles_put(x->p);
	x->p = NULL;
}

static int hand_out(struct exporting *x, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	int err = x->p ? finish_message(x) : 0;

	if (!err && x->p && x->p->resource_count) {
		struct profiles *p = profiles_get(x->p);

		drop_message(x);
		err = fn(arg, p);
		profiles_put(p);
	}
	drop_message(x);
	return err;
}

/* The block's selected series. */
static int export_block(struct exporting *x, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	const struct block *b = x->scan->block;
	struct series_out *out;
	int err = 0;

	for (uint32_t i = 0; i < b->series_count && !err; i++) {
		const struct name_series *series = x->scan->of[i] ? x->scan->of[i]->series : NULL;

		err = series ? pick(x, i) : 0;
		if (err || !series || !x->picked_count)
			continue;
		err = x->p ? 0 : begin_message(x);
		err = err ? err : find_series(x, series, &out);
		err = err ? err : make_profiles(x, series->origin, out);
		if (err)
			break;
		out->sound = out->count;
		x->sound_events = x->p->sample_events;
		if (message_bytes(x) >= PIECE_BYTES)
			err = hand_out(x, fn, arg);
	}
	return err;
}

int store_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	struct scan scan;
	struct exporting x = { .scan = &scan };
	int err = scan_begin(&scan, s, sel, sel->kind == NULL), more = 0;

	while (!err && (more = scan_next(&scan)) > 0) {
		names_refresh_sets(scan.s->names);
		err = export_block(&x, fn, arg);
		if (err != -EBADMSG)
			continue;
		metric_add(scan.s->metrics.damaged_blocks, 1);
		err = hand_out(&x, fn, arg); /* the tables may have begun to tell what could not be read */
	}
	if (!err && more >= 0)
		err = hand_out(&x, fn, arg);
	drop_message(&x);
	free(x.series);
	free(x.picked);
	scan_end(&scan);
	return err ? err : more;
}
