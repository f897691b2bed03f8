/* SPDX-License-Identifier: Apache-2.0 */
/* Lists to choose from: keys of labels, kinds of samples, executables. */
#include "backend/store/sqlite/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/executables.h"
#include "backend/store/sqlite/groups.h"
#include "base/cleanup.h"

/* *@ret: the number of selected events of the series. */
static int count_events(struct scan *scan, uint32_t index, uint64_t *ret)
{
	const struct block *b = scan->block;
	const uint8_t *mask;
	int err = scan_mask(scan, index, &mask);

	*ret = mask ? 0 : b->event_start[index + 1] - b->event_start[index];
	for (uint32_t e = b->event_start[index]; mask && !err && e < b->event_start[index + 1]; e++)
		*ret += mask[e];
	return err;
}

/* --- keys --- */

struct key_list {
	struct intern *keys;
	struct intern *sets; /* numbers of those already looked at */
	bool has_cpu, has_links;
};

static int add_key(struct key_list *t, const char *key)
{
	uint32_t index;
	int err = intern_add(t->keys, key, strlen(key) + 1, &index);

	return err < 0 ? err : 0;
}

static int add_set(struct key_list *t, struct scan *scan, uint32_t id)
{
	const struct name_set *set;
	uint32_t index;
	int err = 0, is_new = intern_add(t->sets, &id, sizeof(id), &index);

	if (is_new <= 0)
		return is_new;
	set = names_set(scan->s->names, id, &err);
	for (uint32_t i = 0; set && i < set->count && !err; i++)
		err = add_key(t, set->labels[i]->key);
	return err;
}

/* The keys of trace and span, where an event has a link. */
static int add_link_keys(struct key_list *t, struct scan *scan, uint32_t index, const uint8_t *mask)
{
	const struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_LINKS);

	for (uint32_t e = b->event_start[index]; b->link && !err && e < b->event_start[index + 1] && !t->has_links; e++)
		t->has_links = b->link[e] && (!mask || mask[e]);
	if (!t->has_links || err)
		return err;
	err = add_key(t, STORE_TRACE_LABEL);
	return err ? err : add_key(t, STORE_SPAN_LABEL);
}

/* Cells of events that the mask leaves out count only when it leaves some of them in. */
static int labels_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct key_list *t = arg;
	const struct block *b = scan->block;
	const struct name_series *series = scan->of[index]->series;
	const uint8_t *mask;
	int err = scan_mask(scan, index, &mask);

	err = err ? err : scan_part(scan, BLOCK_CELLS);
	if (!t->has_cpu && !err)
		err = scan_part(scan, BLOCK_CPUS);
	if (mask && !err)
		err = scan_part(scan, BLOCK_LABELS);
	if (!t->has_links && !err)
		err = add_link_keys(t, scan, index, mask);
	for (uint32_t e = b->event_start[index]; !err && (mask || !t->has_cpu) && e < b->event_start[index + 1]; e++) {
		if (mask && !mask[e])
			continue;
		if (!t->has_cpu && b->cpu[e]) {
			t->has_cpu = true;
			err = add_key(t, STORE_CPU_LABEL);
		}
		if (mask && !err)
			err = add_set(t, scan, b->cell_set[b->label[e]]);
	}
	for (uint32_t c = b->cell_start[index]; !mask && !err && c < b->cell_start[index + 1]; c++)
		err = add_set(t, scan, b->cell_set[c]);
	err = err ? err : add_set(t, scan, series->resource);
	err = err ? err : add_set(t, scan, series->origin->attributes);
	if (!err && series->origin->scope_name && *series->origin->scope_name)
		err = add_key(t, "otel.scope.name");
	if (!err && series->origin->scope_version && *series->origin->scope_version)
		err = add_key(t, "otel.scope.version");
	return err;
}

int store_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg)
{
	struct key_list t = { intern_new(), intern_new(), false, false };
	struct scan scan;
	int err = t.keys && t.sets ? 0 : -ENOMEM;

	if (!err) {
		err = scan_begin(&scan, s, sel, false);
		err = err ? err : scan_each(&scan, labels_fn, &t);
		scan_end(&scan);
	}
	for (uint32_t i = 0; !err && i < intern_count(t.keys); i++)
		err = fn(arg, intern_get(t.keys, i, NULL));
	intern_free(t.keys);
	intern_free(t.sets);
	return err;
}

/* --- kinds --- */

enum { KINDS = 64 };

struct kind_list {
	struct store_kind kinds[KINDS];
	size_t count;
};

static int kinds_fn(void *arg, struct scan *scan, uint32_t index)
{
	struct kind_list *t = arg;
	const struct name_origin *o = scan->of[index]->series->origin;
	const struct store_kind kind = { o->sample_type, o->sample_unit, o->period_type, o->period_unit, o->period, 0 };
	uint64_t events = 0;
	int err = count_events(scan, index, &events);
	size_t i = 0;

	if (err || !events)
		return err;
	for (; i < t->count; i++) {
		const struct store_kind *k = &t->kinds[i];

		if (!strcmp(k->type, kind.type) && !strcmp(k->unit, kind.unit) &&
		    !strcmp(k->period_type, kind.period_type) && !strcmp(k->period_unit, kind.period_unit) &&
		    k->period == kind.period)
			break;
	}
	if (i == KINDS)
		return 0; /* more kinds than anybody can choose from */
	if (i == t->count)
		t->kinds[t->count++] = kind;
	t->kinds[i].events += events;
	return 0;
}

static int compare_kinds(const void *a, const void *b)
{
	uint64_t x = ((const struct store_kind *)a)->events, y = ((const struct store_kind *)b)->events;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Whether events can be counted without a look at single ones. */
static int can_count(void *arg, struct scan *scan, uint32_t index)
{
	(void)arg;
	return !scan->of[index]->undecided;
}

int store_kinds(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		void *arg)
{
	struct kind_list t = { .count = 0 };
	struct scan scan;
	int err = scan_begin(&scan, s, sel, true);

	err = err ? err : scan_sums(&scan, can_count, kinds_fn, &t);
	qsort(t.kinds, t.count, sizeof(*t.kinds), compare_kinds);
	for (size_t i = 0; i < t.count && !err; i++)
		err = fn(arg, &t.kinds[i]);
	scan_end(&scan); /* the kinds' texts are the origins', which stand until here */
	return err;
}

/* --- executables --- */

static int exe_of_frame(struct store *store, uint32_t id, struct store_executable *ret)
{
	struct store_names *names = store_sqlite_of(store)->names;
	int err = 0;
	const struct frame_row *row = names_frame(names, id, &err);
	const uint32_t number = row ? row->mapping : 0;
	const struct name_mapping *mapping;
	struct store_frame f;

	err = err || !row ? err : names_store_frame(names, id, &f);
	if (err || !row)
		return err;
	ret->named_frames = *f.function != '\0';
	mapping = number ? names_mapping(names, number, &err) : NULL;
	if (mapping) {
		ret->path = f.path;
		ret->build_id = f.build_id;
		ret->id_kind = mapping->id_kind;
		ret->process = mapping->process;
	}
	return err;
}

int store_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	struct store_sqlite *sqlite = store_sqlite_of(s);
	int err;

	pthread_mutex_lock(&sqlite->read_lock); /* names are used after the sums, too */
	err = executables_count(s, sel, exe_of_frame, fn, arg);
	pthread_mutex_unlock(&sqlite->read_lock);
	return err;
}

/* --- series --- */

struct series_list {
	struct store_names *names;
	int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events);
	void *arg;
};

/* @number is that of the resource's set. */
static int tell_resource(void *arg, const char *number, int64_t weight, uint64_t events)
{
	const struct series_list *list = arg;
	int err = 0;
	const struct name_set *set = names_set(list->names, (uint32_t)strtoul(number, NULL, 10), &err);
	AUTO_FREE struct key_value *items = set ? calloc(set->count + 1, sizeof(*items)) : NULL;
	struct key_values labels = { .items = items };

	if (err || !items)
		return err ? err : -ENOMEM;
	for (; labels.count < set->count; labels.count++) {
		const struct name_label *label = set->labels[labels.count];

		items[labels.count] = (struct key_value){
			.key = { label->key, (uint32_t)strlen(label->key) },
			.value = { .kind = VALUE_STRING, .string = { label->value, (uint32_t)strlen(label->value) } },
		};
	}
	return list->fn(list->arg, &labels, weight, events);
}

int store_series(struct store *s, const struct store_selection *sel,
		 int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg)
{
	struct store_sqlite *sqlite = store_sqlite_of(s);
	struct series_list list = { sqlite->names, fn, arg };
	int err;

	pthread_mutex_lock(&sqlite->read_lock); /* sets are looked up after the sums */
	err = store_label_values(s, sel, groups_by_resource, tell_resource, &list);
	pthread_mutex_unlock(&sqlite->read_lock);
	return err;
}
