/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns stored events into profiles again, one message for each block: resources, scopes, labels, links and times as they
 * came. Samples of the same stack, labels and cpu are put together. Times, ids and payloads of single reports were not kept:
 * a profile's window is that of its events, and its id is new.
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
#include "base/vec.h"
#include "proto/otlp/otlp.h"

enum { PROFILE_ID_BYTES = 16 };

/* A selected event: what makes a sample, and its time. */
struct picked {
	uint32_t stack, label, cpu, link;
	uint64_t time_ns;
	int64_t weight;
};

struct exporting {
	struct scan *scan;
	struct out_tables tables;
	struct profiles *p;
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
static int make_profiles(struct exporting *x, const struct name_origin *o, struct scope_profiles *scope)
{
	size_t start = 0, count = 1;
	int err = 0;

	qsort(x->picked, x->picked_count, sizeof(*x->picked), o->shape & 1 ? compare_picked : compare_times);
	for (size_t i = 1; !(o->shape & 1) && i < x->picked_count; i++)
		count += x->picked[i].time_ns != x->picked[i - 1].time_ns;
	scope->profiles = profiles_alloc(x->p, count * sizeof(*scope->profiles));
	if (!scope->profiles)
		return -ENOMEM;
	for (size_t i = 1; i <= x->picked_count && !err; i++) {
		struct profile *profile = &scope->profiles[scope->profile_count];

		if (i < x->picked_count && (o->shape & 1 || x->picked[i].time_ns == x->picked[i - 1].time_ns))
			continue;
		scope->profile_count++;
		err = copy_names(x, o, profile);
		err = err ? err : make_samples(x, x->picked + start, i - start, o->shape, profile);
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
static int copy_surroundings(struct exporting *x, const struct profiles *m, struct resource_profiles *rp,
			     struct scope_profiles *scope)
{
	int err;

	if (!m->resource_count || !m->resources[0].scope_count)
		return -EBADMSG;
	*rp = m->resources[0];
	*scope = rp->scopes[0];
	rp->scopes = scope;
	rp->scope_count = 1;
	scope->profiles = NULL;
	scope->profile_count = 0;
	err = copy_entities(x->p, &rp->resource);
	err = err ? err : origin_copy_string(x->p, rp->schema_url, &rp->schema_url);
	err = err ? err : origin_copy_string(x->p, scope->schema_url, &scope->schema_url);
	err = err ? err : origin_copy_string(x->p, scope->scope.name, &scope->scope.name);
	err = err ? err : origin_copy_string(x->p, scope->scope.version, &scope->scope.version);
	return err ? err : origin_copy_key_values(x->p, m, &scope->scope.attributes, &scope->scope.attributes);
}

static int export_series(struct exporting *x, const struct name_series *series, struct resource_profiles *rp)
{
	const struct name_origin *o = series->origin;
	struct scope_profiles *scope = profiles_alloc(x->p, sizeof(*scope));
	struct otlp_error why;
	struct profiles *m;
	int err = scope ? otlp_decode(o->message.data, o->message.len, false, &m, &why) : -ENOMEM;

	if (err)
		return err;
	err = copy_surroundings(x, m, rp, scope);
	profiles_put(m);
	err = err ? err : out_key_values(&x->tables, series->resource, &rp->resource.attributes);
	return err ? err : make_profiles(x, o, scope);
}

/* The block's selected series as one message. */
static int export_block(struct exporting *x)
{
	const struct block *b = x->scan->block;
	int err = out_tables_init(&x->tables, x->scan->s->names, x->p);

	if (!err) {
		x->p->resources = profiles_alloc(x->p, b->series_count * sizeof(*x->p->resources));
		err = x->p->resources ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < b->series_count && !err; i++) {
		if (!x->scan->of[i])
			continue;
		err = pick(x, i);
		if (!err && x->picked_count)
			err = export_series(x, x->scan->of[i]->series, &x->p->resources[x->p->resource_count++]);
	}
	err = err ? err : out_tables_finish(&x->tables);
	out_tables_fini(&x->tables);
	return err;
}

int store_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	struct scan scan;
	struct exporting x = { .scan = &scan };
	int err = scan_begin(&scan, s, sel, sel->kind == NULL), more = 0;

	while (!err && (more = scan_next(&scan)) > 0) {
		x.p = profiles_new();
		err = x.p ? export_block(&x) : -ENOMEM;
		if (err == -EBADMSG) {
			metric_add(scan.s->metrics.damaged_blocks, 1);
			err = 0;
		} else if (!err && x.p->resource_count) {
			err = fn(arg, x.p);
		}
		profiles_put(x.p);
	}
	free(x.picked);
	scan_end(&scan);
	return err ? err : more;
}
