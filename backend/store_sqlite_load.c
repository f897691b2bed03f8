/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer knows when it starts: keys of what is in the store, made of the rows as store_sqlite_message.c makes them
 * of messages. Keys of functions, frames and nodes are made of the keys of what they refer to, which has lower numbers of
 * its own kind or stands in a table read before; those are held by number until all is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store_sqlite_keep.h"
#include "base/cleanup.h"

/* So many times what is remembered is read of these, newest first: what older ones were met again for counts too. 16 bytes
 * each for a moment. */
enum { LOADED_TIMES = 2, NODES_LOADED_TIMES = 4 };

/* What makes a thing this one, as rows in the order of the fields that are hashed. Links are not looked up again. */
static const char *const content_sql[KEPT_MAX] = {
	[KEPT_STRING] = "SELECT id, text FROM strings WHERE id >= ?1",
	[KEPT_FUNCTION] = "SELECT id, name, system_name, file, start_line FROM functions WHERE id >= ?1",
	[KEPT_MAPPING] = "SELECT id, path, memory_start, memory_limit, file_offset, attributes FROM mappings WHERE id >= ?1",
	[KEPT_ORIGIN] = "SELECT id, shape, attributes, message FROM origins WHERE id >= ?1",
};

/* By number, for what refers to it; all 0: not known. */
struct known {
	int64_t first;
	size_t count;
	struct id_key *keys; /* NULL: of this kind none are needed */
};

struct loading {
	struct keep *k;
	struct known known[KEPT_MAX];
};

static void loading_fini(struct loading *l)
{
	for (size_t i = 0; i < KEPT_MAX; i++)
		free(l->known[i].keys);
}

static void learn(struct loading *l, enum kept kind, int64_t number, struct id_key key)
{
	struct known *known = &l->known[kind];

	(void)ids_put(&l->k->ids[kind], key, (uint32_t)number);
	if (known->keys && number >= known->first && number - known->first < (int64_t)known->count)
		known->keys[number - known->first] = key;
}

/* False: not known. Number 0 stands for none. */
static bool find(const struct loading *l, enum kept kind, int64_t number, struct id_key *ret)
{
	const struct known *known = &l->known[kind];

	*ret = (struct id_key){ 0 };
	if (!number)
		return true;
	if (number < known->first || number - known->first >= (int64_t)known->count)
		return false;
	*ret = known->keys[number - known->first];
	return !id_key_is_none(*ret);
}

/* --- rows of one thing --- */

/* The columns from 1 on as they are hashed: integers as 8 bytes, the rest as it is. */
static void row_content(sqlite3_stmt *st, struct buf *out)
{
	buf_reset(out);
	for (int i = 1; i < sqlite3_column_count(st); i++) {
		int type = sqlite3_column_type(st, i);

		if (type == SQLITE_INTEGER) {
			int64_t v = sqlite3_column_int64(st, i);

			buf_append(out, &v, sizeof(v));
		} else if (type == SQLITE_FLOAT) {
			double v = sqlite3_column_double(st, i);

			buf_append(out, &v, sizeof(v));
		} else if (type != SQLITE_NULL) {
			buf_append(out, sqlite3_column_blob(st, i), (size_t)sqlite3_column_bytes(st, i));
		}
	}
}

static bool row_key(struct loading *l, enum kept kind, sqlite3_stmt *st, struct id_key *ret)
{
	struct id_key names[FUNCTION_NAMES];

	if (kind != KEPT_FUNCTION) {
		row_content(st, &l->k->text);
		*ret = id_key_of(l->k->text.data, l->k->text.len);
		return !l->k->text.failed;
	}
	for (int i = 0; i < FUNCTION_NAMES; i++) {
		if (!find(l, KEPT_STRING, sqlite3_column_int64(st, i + 1), &names[i]))
			return false;
	}
	*ret = keep_function_key(names, sqlite3_column_int64(st, FUNCTION_NAMES + 1));
	return true;
}

static int load_rows(struct loading *l, enum kept kind, int64_t first)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(l->k->db, content_sql[kind], -1, &st, NULL);
	struct id_key key;

	if (code == SQLITE_OK)
		sqlite3_bind_int64(st, 1, first);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(st);
		if (code == SQLITE_ROW && row_key(l, kind, st, &key))
			learn(l, kind, sqlite3_column_int64(st, 0), key);
		if (code != SQLITE_ROW)
			break;
	}
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

/* --- rows of many --- */

/* What refers to something that is not known is not either: it is kept again when it comes again. */
static int load_frames(struct loading *l, uint32_t first, const void *data, size_t len, size_t count)
{
	AUTO_FREE struct frame_row *rows = malloc(count * sizeof(*rows) + 1);
	int err = rows ? frames_unpack(l->k->codec, data, len, rows, count) : -ENOMEM;
	struct id_key function;

	for (size_t i = 0; !err && i < count; i++) {
		if (find(l, KEPT_FUNCTION, rows[i].function, &function))
			learn(l, KEPT_FRAME, first + (int64_t)i, keep_frame_key(&rows[i], function));
	}
	return err;
}

static int load_nodes(struct loading *l, uint32_t first, const void *data, size_t len, size_t count)
{
	AUTO_FREE struct store_node *rows = malloc(count * sizeof(*rows) + 1);
	int err = rows ? nodes_unpack(l->k->codec, data, len, rows, count, first) : -ENOMEM;
	struct id_key parent, frame;

	for (size_t i = 0; !err && i < count; i++) {
		if (rows[i].frame && find(l, KEPT_NODE, rows[i].parent, &parent) &&
		    find(l, KEPT_FRAME, rows[i].frame, &frame))
			learn(l, KEPT_NODE, first + (int64_t)i, id_key_below(parent, frame));
	}
	return err;
}

static int load_lists(struct keep *k, enum kept kind, uint32_t first, const void *data, size_t len, size_t count)
{
	AUTO(lists_fini) struct lists l = { 0 };
	int err = lists_unpack(k->codec, data, len, count, &l);

	for (size_t i = 0; !err && i < count; i++)
		(void)ids_put(&k->ids[kind],
			      id_key_of(l.numbers + l.starts[i], (l.starts[i + 1] - l.starts[i]) * sizeof(*l.numbers)),
			      first + (uint32_t)i);
	return err;
}

static int load_packed(struct loading *l, enum kept kind, int64_t from)
{
	struct keep *k = l->k;
	sqlite3_stmt *st = NULL;
	char sql[96];
	int err, code;

	snprintf(sql, sizeof(sql), "SELECT first, data, count FROM %s WHERE first + count > ?1", kept_tables[kind]);
	code = sqlite3_prepare_v2(k->db, sql, -1, &st, NULL);
	err = store_sqlite_errno(code);
	if (!err)
		sqlite3_bind_int64(st, 1, from);
	while (!err && (code = sqlite3_step(st)) == SQLITE_ROW) {
		uint32_t first = (uint32_t)sqlite3_column_int64(st, 0);
		const void *data = sqlite3_column_blob(st, 1);
		size_t len = (size_t)sqlite3_column_bytes(st, 1);
		int64_t count = sqlite3_column_int64(st, 2);

		if (count < 1 || count > COLUMN_MAX_VALUES)
			err = -EBADMSG;
		else if (kept_as_lists(kind))
			err = load_lists(k, kind, first, data, len, (size_t)count);
		else
			err = kind == KEPT_FRAME ? load_frames(l, first, data, len, (size_t)count)
						 : load_nodes(l, first, data, len, (size_t)count);
	}
	sqlite3_finalize(st);
	return err ? err : store_sqlite_errno(code);
}

/* The first number of the current generation. */
static int first_number(struct keep *k, enum kept kind, int64_t *ret)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT max(%s) FROM generations", kept_tables[kind]);
	return store_get_int(k->db, sql, 1, ret);
}

/* The last number given out: what the table has or older generations had, whichever is more. */
static int last_number(struct keep *k, enum kept kind, int64_t *ret)
{
	const char *table = kept_tables[kind];
	char sql[192];

	snprintf(sql, sizeof(sql),
		 "SELECT max((SELECT coalesce(max(%s), 1) - 1 FROM %s), (SELECT max(%s) - 1 FROM generations))",
		 kept_packed(kind) ? "first + count" : "id + 1", table, table);
	return store_get_int(k->db, sql, 0, ret);
}

/* From the first number of the generation on, or as many of the newest as count. */
static int load_kind(struct loading *l, enum kept kind, int64_t first)
{
	const bool is_referred_to = kind == KEPT_STRING || kind == KEPT_FUNCTION || kind == KEPT_FRAME || kind == KEPT_NODE;
	const int64_t next = l->k->next[kind];
	const int64_t room = (int64_t)kept_most[kind] * (kind == KEPT_NODE ? NODES_LOADED_TIMES : LOADED_TIMES);
	struct known *known = &l->known[kind];

	*known = (struct known){ .first = first > next - room ? first : next - room };
	if (is_referred_to) {
		known->count = (size_t)(next - known->first);
		known->keys = calloc(known->count + 1, sizeof(*known->keys));
		if (!known->keys)
			return -ENOMEM;
	}
	if (kept_packed(kind))
		return load_packed(l, kind, known->first);
	return content_sql[kind] ? load_rows(l, kind, known->first) : 0;
}

int keep_reload(struct keep *k)
{
	AUTO(loading_fini) struct loading l = { .k = k };
	int err = store_get_int(k->db, "SELECT max(id) FROM generations", 0, &k->generation);

	k->frame_count = k->node_count = k->event_count = 0;
	for (size_t i = 0; !err && i < KEPT_MAX; i++) {
		int64_t first, last;

		ids_clear(&k->ids[i]);
		buf_reset(&k->lists[i].numbers);
		buf_reset(&k->lists[i].lengths);
		err = first_number(k, (enum kept)i, &first);
		err = err ? err : last_number(k, (enum kept)i, &last);
		if (err)
			break;
		k->next[i] = (uint32_t)last + 1;
		err = load_kind(&l, (enum kept)i, first);
	}
	return err;
}
