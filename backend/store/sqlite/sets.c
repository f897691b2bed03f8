/* SPDX-License-Identifier: Apache-2.0 */
/* Lists by number, and what they are of: attributes, sets of labels, series. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/names_parts.h"
#include "backend/store/origin.h"
#include "base/cleanup.h"
#include "proto/otlp/otlp.h"

enum { CACHED_SETS = 1 << 14, ATTRIBUTE_NUMBERS = 4, SERIES_NUMBERS = 2 };

static void free_origin(struct name_origin *o)
{
	if (!o)
		return;
	free(o->sample_type);
	free(o->sample_unit);
	free(o->period_type);
	free(o->period_unit);
	free(o->scope_name);
	free(o->scope_version);
	buf_fini(&o->message);
	free(o);
}

static void clear_map(struct map *map, void (*release)(void *value))
{
	size_t pos = 0;
	void *value;

	while (map_next(map, &pos, NULL, &value))
		release(value);
	map_fini(map);
	*map = MAP_EMPTY;
}

static void clear_sets(struct store_names *n)
{
	clear_map(&n->sets, free);
	clear_map(&n->labels, free);
}

static void release_origin(void *value)
{
	free_origin(value);
}

void names_lists_clear(struct store_names *n)
{
	for (size_t i = 0; i < ARRAY_LEN(n->list_runs) * LIST_RUNS; i++) {
		struct list_run *run = &n->list_runs[i / LIST_RUNS][i % LIST_RUNS];

		lists_fini(&run->lists);
		*run = (struct list_run){ 0 };
	}
}

void names_caches_clear(struct store_names *n)
{
	clear_sets(n);
	clear_map(&n->series, free);
	clear_map(&n->origins, release_origin);
	names_lists_clear(n);
}

static size_t map_values_bytes(const struct map *map)
{
	size_t bytes = map_memory_bytes(map), pos = 0;
	void *value;

	while (map_next(map, &pos, NULL, &value))
		bytes += malloc_usable_size(value);
	return bytes;
}

size_t names_lists_memory_bytes(const struct store_names *n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < ARRAY_LEN(n->list_runs) * LIST_RUNS; i++) {
		const struct list_run *run = &n->list_runs[i / LIST_RUNS][i % LIST_RUNS];

		if (run->count)
			bytes += (run->count + 1) * sizeof(*run->lists.starts) +
				 run->lists.starts[run->count] * sizeof(*run->lists.numbers);
	}
	return bytes;
}

size_t names_caches_memory_bytes(const struct store_names *n)
{
	return map_values_bytes(&n->sets) + map_values_bytes(&n->labels) + map_values_bytes(&n->series) +
	       map_values_bytes(&n->origins) + names_lists_memory_bytes(n);
}

void names_refresh_sets(struct store_names *n)
{
	if (n->sets.count > CACHED_SETS)
		clear_sets(n);
}

void names_refresh(struct store_names *n)
{
	names_refresh_sets(n);
	if (n->series.count > CACHED_SETS)
		clear_map(&n->series, free);
}

/* --- lists --- */

struct list {
	const int64_t *numbers; /* until the next list of this kind is asked for */
	size_t count;
};

static int load_lists(struct store_names *n, enum name_statement which, uint32_t id, struct list_run *run)
{
	int err = 0, code;
	sqlite3_stmt *st = names_statement(n, which, id, &err);
	int64_t count;

	if (!st)
		return err;
	lists_fini(&run->lists);
	*run = (struct list_run){ 0 };
	code = sqlite3_step(st);
	count = code == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
	if (code != SQLITE_ROW)
		err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	else if (count < 1 || count > COLUMN_MAX_VALUES || id - sqlite3_column_int64(st, 0) >= count)
		err = -EBADMSG;
	else
		err = lists_unpack(*n->codec, sqlite3_column_blob(st, 2), (size_t)sqlite3_column_bytes(st, 2), (size_t)count,
				   &run->lists);
	if (!err) {
		run->first = (uint32_t)sqlite3_column_int64(st, 0);
		run->count = (uint32_t)count;
	}
	sqlite3_reset(st);
	return err;
}

/* Reads list @id of the table that @which reads; its row takes the place of the one that was not used for longest. 0 or
 * -errno. */
static int get_list(struct store_names *n, enum name_statement which, uint32_t id, struct list *ret)
{
	struct list_run *runs = n->list_runs[which == NAME_ATTRIBUTES ? 0 : which == NAME_SETS ? 1 : 2], *run = runs;
	uint32_t at;

	for (size_t i = 0; i < LIST_RUNS && id - run->first >= run->count; i++) {
		if (id - runs[i].first < runs[i].count || runs[i].used < run->used)
			run = &runs[i];
	}
	if (id - run->first >= run->count) {
		int err = load_lists(n, which, id, run);

		if (err)
			return err;
	}
	run->used = ++n->uses;
	at = id - run->first;
	*ret = (struct list){ run->lists.numbers + run->lists.starts[at],
			      run->lists.starts[at + 1] - run->lists.starts[at] };
	return 0;
}

/* --- sets --- */

/* One block of memory: the label, then its texts, which outlive the strings they were read as. */
static struct name_label *make_label(uint32_t attribute, const char *key, const char *value)
{
	size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
	struct name_label *label = malloc(sizeof(*label) + key_size + value_size);
	char *texts;

	if (!label)
		return NULL;
	texts = (char *)(label + 1);
	*label = (struct name_label){ memcpy(texts, key, key_size), memcpy(texts + key_size, value, value_size), attribute };
	return label;
}

/* The label that attribute @id is, with its value as text. */
static int load_label(struct store_names *n, uint32_t id, struct name_label **ret)
{
	struct list attribute;
	const char *key, *text = "";
	char number[32];
	double real;
	int err = get_list(n, NAME_ATTRIBUTES, id, &attribute);

	if (err || attribute.count != ATTRIBUTE_NUMBERS)
		return err ? err : -EBADMSG;
	key = names_string(n, (uint32_t)attribute.numbers[0], &err);
	if (err)
		return err;
	switch ((enum value_kind)attribute.numbers[2]) {
	case VALUE_BOOL:
		text = attribute.numbers[3] ? "true" : "false";
		break;
	case VALUE_STRING:
		text = names_string(n, (uint32_t)attribute.numbers[3], &err);
		break;
	case VALUE_INT:
		snprintf(number, sizeof(number), "%" PRId64, attribute.numbers[3]);
		text = number;
		break;
	case VALUE_DOUBLE:
		memcpy(&real, &attribute.numbers[3], sizeof(real));
		text = sqlite3_snprintf(sizeof(number), number, "%!.15g", real);
		break;
	default:
		break;
	}
	if (err)
		return err;
	*ret = make_label(id, key, text);
	return *ret ? 0 : -ENOMEM;
}

static int get_label(struct store_names *n, uint32_t id, const struct name_label **ret)
{
	const uint64_t key = (uint64_t)id + 1;
	struct name_label *label = map_get(&n->labels, key);
	int err;

	*ret = label;
	if (label)
		return 0;
	err = load_label(n, id, &label);
	if (err)
		return err;
	err = map_put(&n->labels, key, label);
	if (err)
		free(label);
	else
		*ret = label;
	return err;
}

static int load_set(struct store_names *n, uint32_t id, struct name_set **ret)
{
	struct name_set *set;
	struct list attributes;
	int err = get_list(n, NAME_SETS, id, &attributes);

	if (err)
		return err;
	set = malloc(sizeof(*set) + attributes.count * sizeof(set->labels[0]));
	if (!set)
		return -ENOMEM;
	set->count = (uint32_t)attributes.count;
	for (uint32_t i = 0; i < set->count && !err; i++)
		err = get_label(n, (uint32_t)attributes.numbers[i], &set->labels[i]);
	if (err)
		free(set);
	else
		*ret = set;
	return err;
}

const struct name_set *names_set(struct store_names *n, uint32_t id, int *err)
{
	static const struct name_set none = { 0 };
	struct name_set *set = id ? map_get(&n->sets, id) : NULL;

	if (!id)
		return &none;
	if (set)
		return set;
	*err = load_set(n, id, &set);
	if (!*err)
		*err = map_put(&n->sets, id, set);
	if (*err) {
		free(set);
		return NULL;
	}
	return set;
}

const char *names_set_value(const struct name_set *set, const char *key)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (!strcmp(set->labels[i]->key, key))
			return set->labels[i]->value;
	}
	return NULL;
}

static int copy_bytes(struct profiles *to, sqlite3_stmt *st, int column, struct str *ret)
{
	const void *data = sqlite3_column_blob(st, column);

	return origin_copy_string(to, (struct str){ data ? data : "", (uint32_t)sqlite3_column_bytes(st, column) }, ret);
}

/* String @id, which may be no text, in @to's memory. */
static int copy_text(struct store_names *n, struct profiles *to, uint32_t id, struct str *ret)
{
	int err = 0, code;
	sqlite3_stmt *st = id ? names_statement(n, NAME_TEXT, id, &err) : NULL;

	*ret = STR("");
	if (!st)
		return err;
	code = sqlite3_step(st);
	err = code == SQLITE_ROW ? copy_bytes(to, st, 0, ret) : code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	sqlite3_reset(st);
	return err;
}

/* The value of an array or a list, which is attribute 1 of the OTLP message @bytes. */
static int decode_value(struct str bytes, struct profiles *to, struct any_value *ret)
{
	struct otlp_error why;
	struct profiles *m;
	int err = otlp_decode((uint8_t *)(uintptr_t)bytes.data, bytes.len, false, &m, &why);

	if (err)
		return err;
	err = m->dict.attribute_count > 1 ? origin_copy_value(to, m, &m->dict.attributes[1].value, ret) : -EBADMSG;
	profiles_put(m);
	return err;
}

int names_attribute(struct store_names *n, uint32_t id, struct profiles *to, uint32_t *key_ret, uint32_t *unit_ret,
		    struct any_value *ret)
{
	struct list attribute;
	struct str bytes;
	int64_t number;
	int err = get_list(n, NAME_ATTRIBUTES, id, &attribute);

	if (err || attribute.count != ATTRIBUTE_NUMBERS)
		return err ? err : -EBADMSG;
	*key_ret = (uint32_t)attribute.numbers[0];
	*unit_ret = (uint32_t)attribute.numbers[1];
	*ret = (struct any_value){ .kind = (enum value_kind)attribute.numbers[2] };
	number = attribute.numbers[3];
	switch (ret->kind) {
	case VALUE_STRING:
	case VALUE_BYTES:
		return copy_text(n, to, (uint32_t)number, &ret->string);
	case VALUE_INT:
		ret->integer = number;
		return 0;
	case VALUE_BOOL:
		ret->boolean = number != 0;
		return 0;
	case VALUE_DOUBLE:
		memcpy(&ret->real, &number, sizeof(number));
		return 0;
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		err = copy_text(n, to, (uint32_t)number, &bytes);
		return err ? err : decode_value(bytes, to, ret);
	default:
		ret->kind = VALUE_NONE;
		return 0;
	}
}

int names_link(struct store_names *n, uint32_t id, struct profiles *to, struct profile_link *ret)
{
	int err = 0;
	sqlite3_stmt *st = names_statement(n, NAME_LINK, id, &err);
	int code = st ? sqlite3_step(st) : SQLITE_ERROR;

	if (!st)
		return err;
	if (code == SQLITE_ROW) {
		err = copy_bytes(to, st, 0, &ret->trace_id);
		err = err ? err : copy_bytes(to, st, 1, &ret->span_id);
	} else {
		err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	}
	sqlite3_reset(st);
	return err;
}

/* --- series --- */

static char *copy_column(sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	return strdup(text ? text : "");
}

/* The scope's name and version, out of the message. */
static int read_scope(struct name_origin *o)
{
	struct otlp_error why;
	struct profiles *p;
	int err = otlp_decode(o->message.data, o->message.len, false, &p, &why);

	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	if (p->resource_count && p->resources[0].scope_count) {
		const struct scope *scope = &p->resources[0].scopes[0].scope;

		o->scope_name = strndup(scope->name.data ? scope->name.data : "", scope->name.len);
		o->scope_version = strndup(scope->version.data ? scope->version.data : "", scope->version.len);
		err = o->scope_name && o->scope_version ? 0 : -ENOMEM;
	}
	profiles_put(p);
	return err;
}

static int load_origin(struct store_names *n, uint32_t id, struct name_origin **ret)
{
	struct name_origin *o = calloc(1, sizeof(*o));
	int err = o ? 0 : -ENOMEM, code;
	sqlite3_stmt *st = err ? NULL : names_statement(n, NAME_ORIGIN, id, &err);

	if (err) {
		free(o);
		return err;
	}
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		o->sample_type = copy_column(st, 0);
		o->sample_unit = copy_column(st, 1);
		o->period_type = copy_column(st, 2);
		o->period_unit = copy_column(st, 3);
		o->period = sqlite3_column_int64(st, 4);
		o->shape = sqlite3_column_int(st, 5);
		o->attributes = (uint32_t)sqlite3_column_int64(st, 6);
		buf_append(&o->message, sqlite3_column_blob(st, 7), (size_t)sqlite3_column_bytes(st, 7));
		err = o->message.failed ? -ENOMEM : read_scope(o);
	} else {
		err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	}
	sqlite3_reset(st);
	if (!err && (!o->sample_type || !o->sample_unit || !o->period_type || !o->period_unit))
		err = -ENOMEM;
	if (err)
		free_origin(o);
	else
		*ret = o;
	return err;
}

static const struct name_origin *get_origin(struct store_names *n, uint32_t id, int *err)
{
	struct name_origin *o = map_get(&n->origins, id);

	if (o)
		return o;
	*err = load_origin(n, id, &o);
	if (*err)
		return NULL;
	*err = map_put(&n->origins, id, o);
	if (*err) {
		free_origin(o);
		return NULL;
	}
	return o;
}

const struct name_series *names_series(struct store_names *n, uint32_t id, int *err)
{
	struct name_series *s = map_get(&n->series, id), row = { 0 };
	struct list list;

	if (s)
		return s;
	*err = get_list(n, NAME_SERIES, id, &list);
	if (!*err && list.count != SERIES_NUMBERS)
		*err = -EBADMSG;
	if (!*err)
		row = (struct name_series){ (uint32_t)list.numbers[0], (uint32_t)list.numbers[1], NULL };
	if (!*err)
		row.origin = get_origin(n, row.origin_id, err);
	if (*err)
		return NULL;
	s = malloc(sizeof(*s));
	if (!s || map_put(&n->series, id, s)) {
		free(s);
		*err = -ENOMEM;
		return NULL;
	}
	*s = row;
	return s;
}
