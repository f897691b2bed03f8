/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to choose from: keys of labels, kinds of samples, executables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_groups.h"
#include "base/cleanup.h"

/* How many events of the series are selected: *@ret. */
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
	bool has_cpu;
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
		err = add_key(t, set->labels[i].key);
	return err;
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
	struct key_list t = { intern_new(), intern_new(), false };
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

/* Counted without a look at single events. */
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

struct exe_list {
	struct store_names *names;
	struct store_executable *items; /* paths and build ids are owned */
	size_t count, cap;
	struct map of_mapping; /* mapping's number -> place + 1 */
	uint8_t *frames_met;   /* by frame */
	size_t frame_cap;
	size_t *on_stack; /* places met on the stack that is walked */
	size_t on_stack_count, on_stack_cap;
	int err;
};

static void exe_list_fini(struct exe_list *t)
{
	for (size_t i = 0; i < t->count; i++) {
		free((char *)t->items[i].path);
		free((char *)t->items[i].build_id);
	}
	free(t->items);
	free(t->frames_met);
	free(t->on_stack);
	map_fini(&t->of_mapping);
}

/* Doubles @array when it is full. False for want of memory. */
static bool room(struct exe_list *t, void **array, size_t *cap, size_t count, size_t size)
{
	size_t wanted = *cap ? *cap * 2 : 64;
	void *grown;

	if (count < *cap)
		return true;
	grown = realloc(*array, wanted * size);
	if (!grown) {
		t->err = -ENOMEM;
		return false;
	}
	*array = grown;
	*cap = wanted;
	return true;
}

/* The place of mapping @id's executable; mappings of one path and build id are one. SIZE_MAX after an error. */
static size_t exe_of(struct exe_list *t, uint32_t id)
{
	const struct name_mapping *m;
	void *known = map_get(&t->of_mapping, id);
	size_t i = 0;

	if (known)
		return (uintptr_t)known - 1;
	m = names_mapping(t->names, id, &t->err);
	if (!m)
		return SIZE_MAX;
	while (i < t->count && (strcmp(t->items[i].path, m->path) || strcmp(t->items[i].build_id, m->build_id)))
		i++;
	if (i == t->count) {
		if (!room(t, (void **)&t->items, &t->cap, t->count, sizeof(*t->items)))
			return SIZE_MAX;
		t->items[t->count++] = (struct store_executable){ .path = strdup(m->path),
								  .build_id = strdup(m->build_id),
								  .id_kind = m->id_kind };
		if (!t->items[i].path || !t->items[i].build_id) {
			t->err = -ENOMEM;
			return SIZE_MAX;
		}
	}
	t->err = map_put(&t->of_mapping, id, (void *)(uintptr_t)(i + 1));
	return t->err ? SIZE_MAX : i;
}

/* Counts frame @id once among its executable's. */
static void count_frame(struct exe_list *t, uint32_t id, size_t exe)
{
	struct store_frame shown;

	if (id >= t->frame_cap) {
		size_t cap = id + id / 2 + 1024;
		uint8_t *grown = realloc(t->frames_met, cap);

		if (!grown) {
			t->err = -ENOMEM;
			return;
		}
		memset(grown + t->frame_cap, 0, cap - t->frame_cap);
		t->frames_met = grown;
		t->frame_cap = cap;
	}
	if (t->frames_met[id])
		return;
	t->frames_met[id] = 1;
	t->err = names_store_frame(t->names, id, &shown);
	t->items[exe].frames++;
	t->items[exe].named_frames += !t->err && *shown.function;
}

static void count_stack(struct exe_list *t, uint32_t node, uint64_t events)
{
	t->on_stack_count = 0;
	while (node && !t->err) {
		struct node_row row;
		const struct frame_row *frame;
		size_t exe, i = 0;

		t->err = names_node(t->names, node, &row);
		frame = t->err ? NULL : names_frame(t->names, row.frame, &t->err);
		node = row.parent;
		if (!frame || !frame->mapping)
			continue;
		exe = exe_of(t, frame->mapping);
		if (exe == SIZE_MAX)
			return;
		count_frame(t, row.frame, exe);
		while (i < t->on_stack_count && t->on_stack[i] != exe)
			i++;
		if (i < t->on_stack_count)
			continue;
		if (room(t, (void **)&t->on_stack, &t->on_stack_cap, t->on_stack_count, sizeof(*t->on_stack)))
			t->on_stack[t->on_stack_count++] = exe;
		t->items[exe].events += events;
	}
}

static int count_stack_fn(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct exe_list *t = arg;

	(void)group;
	(void)weight;
	count_stack(t, node, events);
	return t->err;
}

int store_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	struct store_sqlite *sqlite = store_sqlite_of(s);
	AUTO(exe_list_fini) struct exe_list t = { .names = sqlite->names };
	int err;

	pthread_mutex_lock(&sqlite->read_lock); /* names are used after the sums, too */
	err = store_sum_stacks(s, sel, NULL, count_stack_fn, &t);
	for (size_t i = 0; i < t.count && !err; i++)
		err = fn(arg, &t.items[i]);
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
		const struct name_label *label = &set->labels[labels.count];

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
