/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded half of the names: sets of labels, series and where they come from, nodes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_names_parts.h"
#include "backend/store_sqlite_origin.h"
#include "base/cleanup.h"
#include "proto/otlp.h"

enum { CACHED_SETS = 50000, SET_MOST_LABELS = 4096 };

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

static void release_origin(void *value)
{
	free_origin(value);
}

void names_caches_clear(struct store_names *n)
{
	clear_map(&n->sets, free);
	clear_map(&n->series, free);
	clear_map(&n->origins, release_origin);
	for (size_t i = 0; i < NODE_RUNS; i++) {
		free(n->node_runs[i].rows);
		n->node_runs[i] = (struct node_run){ 0 };
	}
}

void names_refresh(struct store_names *n)
{
	if (n->sets.count > CACHED_SETS)
		clear_map(&n->sets, free);
	if (n->series.count > CACHED_SETS)
		clear_map(&n->series, free);
}

/* --- sets --- */

/* The numbers of a JSON array such as [1,2,3]. 0 or -EBADMSG. */
static int parse_numbers(const char *text, uint32_t *numbers, uint32_t *count_ret)
{
	uint32_t count = 0;
	char *end;

	if (*text++ != '[')
		return -EBADMSG;
	while (*text != ']') {
		unsigned long v;

		if (count == SET_MOST_LABELS || *text < '0' || *text > '9')
			return -EBADMSG;
		v = strtoul(text, &end, 10);
		if (v > UINT32_MAX || (*end != ',' && *end != ']'))
			return -EBADMSG;
		numbers[count++] = (uint32_t)v;
		text = *end == ',' ? end + 1 : end;
	}
	*count_ret = count;
	return 0;
}

/* Appends attribute @id's value as text with a NUL; its key is *@key_ret. */
static int append_attribute(struct store_names *n, uint32_t id, struct buf *values, const char **key_ret)
{
	int err = 0;
	sqlite3_stmt *st = names_statement(n, NAME_ATTRIBUTE, id, &err);
	int code = st ? sqlite3_step(st) : SQLITE_ERROR;
	enum value_kind kind;

	if (!st)
		return err;
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	kind = (enum value_kind)sqlite3_column_int(st, 2);
	if (kind == VALUE_BOOL)
		buf_puts(values, sqlite3_column_int(st, 3) ? "true" : "false");
	else if (kind == VALUE_STRING || kind == VALUE_INT || kind == VALUE_DOUBLE)
		buf_append(values, sqlite3_column_text(st, 3), (size_t)sqlite3_column_bytes(st, 3));
	buf_putc(values, '\0');
	*key_ret = names_string(n, (uint32_t)sqlite3_column_int64(st, 0), &err);
	sqlite3_reset(st);
	return err;
}

/* One block of memory: the set, then its texts; keys are strings that stay. */
static struct name_set *make_set(const char **keys, const uint32_t *numbers, uint32_t count, const struct buf *values)
{
	size_t head = sizeof(struct name_set) + count * sizeof(struct name_label);
	struct name_set *set = values->failed ? NULL : malloc(head + values->len);
	char *text;

	if (!set)
		return NULL;
	text = (char *)set + head;
	if (values->len)
		memcpy(text, values->data, values->len);
	set->count = count;
	for (uint32_t i = 0; i < count; i++) {
		set->labels[i] = (struct name_label){ keys[i], text, numbers[i] };
		text += strlen(text) + 1;
	}
	return set;
}

static int load_set(struct store_names *n, uint32_t id, struct name_set **ret)
{
	AUTO_FREE uint32_t *numbers = malloc(SET_MOST_LABELS * sizeof(*numbers));
	AUTO_FREE const char **keys = malloc(SET_MOST_LABELS * sizeof(*keys));
	AUTO(buf_fini) struct buf values = BUF_EMPTY;
	int err = 0, code;
	uint32_t count = 0;
	sqlite3_stmt *st = names_statement(n, NAME_SET, id, &err);

	if (!numbers || !keys || !st)
		return err ? err : -ENOMEM;
	code = sqlite3_step(st);
	if (code == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(st, 0);

		err = text ? parse_numbers(text, numbers, &count) : -EBADMSG;
	} else {
		err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	}
	sqlite3_reset(st);
	for (uint32_t i = 0; i < count && !err; i++)
		err = append_attribute(n, numbers[i], &values, &keys[i]);
	if (err)
		return err;
	*ret = make_set(keys, numbers, count, &values);
	return *ret ? 0 : -ENOMEM;
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
		if (!strcmp(set->labels[i].key, key))
			return set->labels[i].value;
	}
	return NULL;
}

static int copy_bytes(struct profiles *to, sqlite3_stmt *st, int column, struct str *ret)
{
	const void *data = sqlite3_column_blob(st, column);

	return origin_copy_string(to, (struct str){ data ? data : "", (uint32_t)sqlite3_column_bytes(st, column) }, ret);
}

/* The value of an array or a list, which is attribute 1 of an OTLP message. */
static int decode_value(sqlite3_stmt *st, struct profiles *to, struct any_value *ret)
{
	struct otlp_error why;
	struct profiles *m;
	int err = otlp_decode((uint8_t *)(uintptr_t)sqlite3_column_blob(st, 3), (size_t)sqlite3_column_bytes(st, 3), false,
			      &m, &why);

	if (err)
		return err;
	err = m->dict.attribute_count > 1 ? origin_copy_value(to, m, &m->dict.attributes[1].value, ret) : -EBADMSG;
	profiles_put(m);
	return err;
}

int names_attribute(struct store_names *n, uint32_t id, struct profiles *to, uint32_t *key_ret, uint32_t *unit_ret,
		    struct any_value *ret)
{
	int err = 0;
	sqlite3_stmt *st = names_statement(n, NAME_ATTRIBUTE, id, &err);
	int code = st ? sqlite3_step(st) : SQLITE_ERROR;

	if (!st)
		return err;
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	*key_ret = (uint32_t)sqlite3_column_int64(st, 0);
	*unit_ret = (uint32_t)sqlite3_column_int64(st, 1);
	*ret = (struct any_value){ .kind = (enum value_kind)sqlite3_column_int(st, 2) };
	switch (ret->kind) {
	case VALUE_STRING:
	case VALUE_BYTES:
		err = copy_bytes(to, st, 3, &ret->string);
		break;
	case VALUE_INT:
		ret->integer = sqlite3_column_int64(st, 3);
		break;
	case VALUE_BOOL:
		ret->boolean = sqlite3_column_int64(st, 3) != 0;
		break;
	case VALUE_DOUBLE:
		ret->real = sqlite3_column_double(st, 3);
		break;
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		err = decode_value(st, to, ret);
		break;
	default:
		ret->kind = VALUE_NONE;
	}
	sqlite3_reset(st);
	return err;
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
	}
	profiles_put(p);
	return 0;
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
	sqlite3_stmt *st;
	int code;

	if (s)
		return s;
	st = names_statement(n, NAME_SERIES, id, err);
	if (!st)
		return NULL;
	code = sqlite3_step(st);
	if (code == SQLITE_ROW)
		row = (struct name_series){ (uint32_t)sqlite3_column_int64(st, 0), (uint32_t)sqlite3_column_int64(st, 1),
					    NULL };
	else
		*err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	sqlite3_reset(st);
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

/* --- nodes --- */

uint32_t names_node_count(struct store_names *n, int *err)
{
	sqlite3_stmt *st = names_statement(n, NAME_NODE_LAST, 0, err);
	uint32_t count = 1;
	int code;

	if (!st)
		return 1;
	code = sqlite3_step(st);
	if (code == SQLITE_ROW)
		count = (uint32_t)sqlite3_column_int64(st, 0);
	else
		*err = store_sqlite_errno(code);
	sqlite3_reset(st);
	return count;
}

static bool is_in(const struct node_run *run, uint32_t node)
{
	return node - run->first < run->count;
}

/* Reads the row with @node in place of the run that was not used for longest. */
static int load_run(struct store_names *n, uint32_t node)
{
	struct node_run *run = &n->node_runs[0];
	int err = 0, code;
	sqlite3_stmt *st = names_statement(n, NAME_NODES, node, &err);
	int64_t count;

	if (!st)
		return err;
	for (size_t i = 1; i < NODE_RUNS && run->count; i++) {
		if (!n->node_runs[i].count || n->node_runs[i].used < run->used)
			run = &n->node_runs[i];
	}
	free(run->rows);
	*run = (struct node_run){ 0 };
	code = sqlite3_step(st);
	count = code == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
	if (code != SQLITE_ROW || count < 1 || count > COLUMN_MAX_VALUES) {
		sqlite3_reset(st);
		return code == SQLITE_ROW || code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	}
	run->first = (uint32_t)sqlite3_column_int64(st, 0);
	run->rows = malloc((size_t)count * sizeof(*run->rows));
	err = run->rows ? nodes_unpack(n->s->codec, sqlite3_column_blob(st, 2), (size_t)sqlite3_column_bytes(st, 2),
				       run->rows, (size_t)count, run->first)
			: -ENOMEM;
	sqlite3_reset(st);
	run->count = err ? 0 : (uint32_t)count;
	n->last_run = (size_t)(run - n->node_runs);
	return err ? err : is_in(run, node) ? 0 : -EBADMSG;
}

int names_node(struct store_names *n, uint32_t node, struct node_row *ret)
{
	const struct node_run *run = &n->node_runs[n->last_run];

	if (!node) {
		*ret = (struct node_row){ 0 };
		return 0;
	}
	if (!is_in(run, node)) {
		size_t i = 0;

		while (i < NODE_RUNS && !is_in(&n->node_runs[i], node))
			i++;
		if (i < NODE_RUNS) {
			n->last_run = i;
			n->node_runs[i].used = ++n->uses;
		} else {
			int err = load_run(n, node);

			if (err)
				return err;
			n->node_runs[n->last_run].used = ++n->uses;
		}
		run = &n->node_runs[n->last_run];
	}
	*ret = run->rows[node - run->first];
	return 0;
}
