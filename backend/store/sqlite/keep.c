/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of what is kept: tables of known things, and the packed rows of frames, nodes and lists. The walk over a
 * message is in message.c.
 *
 * At the start the tables are filled with keys of things in the store, made of the rows as message.c makes them of messages.
 * Keys of functions, frames and nodes are made of the keys of what they refer to, which has lower numbers of its own kind or
 * stands in a table read before; those are held by number until all is read.
 */
#include "backend/store/sqlite/keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ROWS_AT_ONCE = 8192, KEPT_EVENTS = 1 << 13 };

/* The most entries that are remembered of each kind; see ids.h. An entry takes 16 bytes, all together 7 MB. Frames and
 * functions are only looked for where a stack is new. Half the frames would cost 2.0 more than the 12.4 bytes a sample of a
 * minute of compiling that comes ten times over; half the functions and strings cost nothing. */
static const uint32_t kept_most[KEPT_MAX] = {
	[KEPT_STRING] = 1 << 15,   [KEPT_ATTRIBUTE] = 1 << 15, [KEPT_SET] = 1 << 15,   [KEPT_LINK] = 1 << 12,
	[KEPT_FUNCTION] = 1 << 15, [KEPT_MAPPING] = 1 << 14,   [KEPT_FRAME] = 1 << 17, [KEPT_NODE] = 1 << 17,
	[KEPT_ORIGIN] = 1 << 10,   [KEPT_SERIES] = 1 << 15,
};

static const char *const insert_sql[KEPT_MAX] = {
	[KEPT_STRING] = "INSERT INTO strings VALUES(?1, ?2)",
	[KEPT_ATTRIBUTE] = "INSERT INTO attributes VALUES(?1, ?2, ?3)",
	[KEPT_SET] = "INSERT INTO sets VALUES(?1, ?2, ?3)",
	[KEPT_LINK] = "INSERT INTO links VALUES(?1, ?2, ?3)",
	[KEPT_FUNCTION] = "INSERT INTO functions VALUES(?1, ?2, ?3, ?4, ?5)",
	[KEPT_MAPPING] = "INSERT INTO mappings VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[KEPT_FRAME] = "INSERT INTO frames VALUES(?1, ?2, ?3)",
	[KEPT_NODE] = "INSERT INTO nodes VALUES(?1, ?2, ?3)",
	[KEPT_ORIGIN] = "INSERT INTO origins VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[KEPT_SERIES] = "INSERT INTO series VALUES(?1, ?2, ?3)",
};

const char *const kept_tables[KEPT_MAX] = {
	[KEPT_STRING] = "strings",     [KEPT_ATTRIBUTE] = "attributes", [KEPT_SET] = "sets",	 [KEPT_LINK] = "links",
	[KEPT_FUNCTION] = "functions", [KEPT_MAPPING] = "mappings",	[KEPT_FRAME] = "frames", [KEPT_NODE] = "nodes",
	[KEPT_ORIGIN] = "origins",     [KEPT_SERIES] = "series",
};

int keep_init(struct keep *k, sqlite3 *db, struct column_codec *codec)
{
	*k = (struct keep){ .db = db, .codec = codec };
	for (size_t i = 0; i < KEPT_MAX; i++)
		ids_init(&k->ids[i], kept_most[i]);
	for (size_t i = 0; i < KEPT_MAX; i++) {
		int code = sqlite3_prepare_v3(db, insert_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &k->insert[i], NULL);

		if (code != SQLITE_OK)
			return store_sqlite_errno(code);
	}
	return keep_reload(k);
}

void keep_fini(struct keep *k)
{
	for (size_t i = 0; i < KEPT_MAX; i++) {
		sqlite3_finalize(k->insert[i]);
		ids_fini(&k->ids[i]);
		buf_fini(&k->lists[i].numbers);
		buf_fini(&k->lists[i].lengths);
	}
	free(k->frames);
	free(k->nodes);
	free(k->events);
	buf_fini(&k->text);
	buf_fini(&k->tables);
	*k = (struct keep){ 0 };
}

struct id_key keep_function_key(const struct id_key names[FUNCTION_NAMES], int64_t start_line)
{
	uint64_t content[2 * FUNCTION_NAMES + 1];

	for (size_t i = 0; i < FUNCTION_NAMES; i++) {
		content[2 * i] = names[i].low;
		content[2 * i + 1] = names[i].high;
	}
	content[2 * FUNCTION_NAMES] = (uint64_t)start_line;
	return id_key_of(content, sizeof(content));
}

struct id_key keep_frame_key(const struct frame_row *row, struct id_key function)
{
	const uint64_t content[] = {
		row->address,
		(uint64_t)row->line,
		(uint64_t)row->column,
		function.low,
		(uint64_t)function.high << 32 | row->inlined,
		(uint64_t)row->mapping << 32 | row->attributes,
	};

	return id_key_of(content, sizeof(content));
}

uint32_t keep_number(struct keep *k, enum kept kind, struct id_key key, uint32_t *id_new)
{
	uint32_t id = ids_get(&k->ids[kind], key);

	if (id)
		return id;
	*id_new = k->next[kind]++;
	(void)ids_put(&k->ids[kind], key, *id_new); /* without memory it is kept again when it comes again */
	return 0;
}

int keep_begin_generation(struct keep *k, uint64_t now_ns)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(
		k->db, "INSERT INTO generations VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)", -1, &st, NULL);

	if (code != SQLITE_OK)
		return store_sqlite_errno(code);
	sqlite3_bind_int64(st, 1, k->generation + 1);
	sqlite3_bind_int64(st, 2, (int64_t)now_ns);
	for (int i = 0; i < KEPT_MAX; i++) {
		sqlite3_bind_int64(st, i + 3, k->next[i]);
		ids_clear(&k->ids[i]);
	}
	code = sqlite3_step(st);
	sqlite3_finalize(st);
	k->generation++;
	return store_sqlite_errno(code);
}

static int write_packed(struct keep *k, enum kept kind, uint32_t first, size_t count)
{
	sqlite3_stmt *st = k->insert[kind];
	int code;

	if (k->text.failed)
		return -ENOMEM;
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, (int64_t)count);
	sqlite3_bind_blob64(st, 3, k->text.data, k->text.len, SQLITE_STATIC);
	code = sqlite3_step(st);
	sqlite3_reset(st);
	return store_sqlite_errno(code);
}

uint32_t keep_list(struct keep *k, enum kept kind, const int64_t *numbers, size_t count)
{
	const uint32_t length = (uint32_t)count;
	uint32_t id_new, id = keep_number(k, kind, id_key_of(numbers, count * sizeof(*numbers)), &id_new);

	if (id)
		return id;
	buf_append(&k->lists[kind].numbers, numbers, count * sizeof(*numbers));
	buf_append(&k->lists[kind].lengths, &length, sizeof(length));
	return id_new;
}

/* Writes runs of new lists, none too large to be read. */
static int write_lists(struct keep *k, enum kept kind)
{
	struct new_lists *new = &k->lists[kind];
	const int64_t *numbers = (const int64_t *)new->numbers.data;
	const uint32_t *lengths = (const uint32_t *)new->lengths.data;
	const size_t count = new->lengths.len / sizeof(*lengths);
	const uint32_t first = k->next[kind] - (uint32_t)count;
	size_t end, total;
	int err = new->numbers.failed || new->lengths.failed ? -ENOMEM : 0;

	for (size_t i = 0; i < count && !err; i = end, numbers += total) {
		total = 0;
		for (end = i; end < count && end - i < ROWS_AT_ONCE && total < COLUMN_MAX_VALUES / 2; end++)
			total += lengths[end];
		buf_reset(&k->text);
		lists_pack(k->codec, numbers, lengths + i, end - i, &k->text);
		err = write_packed(k, kind, first + (uint32_t)i, end - i);
	}
	buf_reset(&new->numbers);
	buf_reset(&new->lengths);
	return err;
}

void keep_forget_events(struct keep *k)
{
	k->event_count = 0;
	if (k->event_cap <= KEPT_EVENTS)
		return;
	free(k->events);
	k->events = NULL;
	k->event_cap = 0;
}

void keep_memory(const struct keep *k, size_t *numbers_ret, size_t *rest_ret)
{
	*numbers_ret = 0;
	*rest_ret = k->frame_cap * sizeof(*k->frames) + k->node_cap * sizeof(*k->nodes) + k->event_cap * sizeof(*k->events) +
		    k->text.cap + k->tables.cap;
	for (size_t i = 0; i < KEPT_MAX; i++) {
		*numbers_ret += ids_memory_bytes(&k->ids[i]);
		*rest_ret += k->lists[i].numbers.cap + k->lists[i].lengths.cap;
	}
}

int keep_write(struct keep *k)
{
	uint32_t first = k->next[KEPT_FRAME] - (uint32_t)k->frame_count;
	int err = 0;

	for (size_t i = 0; !err && i < k->frame_count; i += ROWS_AT_ONCE) {
		size_t n = k->frame_count - i < ROWS_AT_ONCE ? k->frame_count - i : ROWS_AT_ONCE;

		buf_reset(&k->text);
		frames_pack(k->codec, k->frames + i, n, &k->text);
		err = write_packed(k, KEPT_FRAME, first + (uint32_t)i, n);
	}
	first = k->next[KEPT_NODE] - (uint32_t)k->node_count;
	for (size_t i = 0; !err && i < k->node_count; i += ROWS_AT_ONCE) {
		size_t n = k->node_count - i < ROWS_AT_ONCE ? k->node_count - i : ROWS_AT_ONCE;

		buf_reset(&k->text);
		nodes_pack(k->codec, k->nodes + i, n, first + (uint32_t)i, &k->text);
		err = write_packed(k, KEPT_NODE, first + (uint32_t)i, n);
	}
	k->frame_count = k->node_count = 0;
	for (int kind = 0; kind < KEPT_MAX && !err; kind++) {
		if (kept_as_lists((enum kept)kind))
			err = write_lists(k, (enum kept)kind);
	}
	return err;
}

/* --- loading --- */

/* So many times the number of remembered entries are read of these, newest first, because newer rows refer to older ones
 * too. Each takes 16 bytes for a moment. */
enum { LOADED_TIMES = 2, NODES_LOADED_TIMES = 4 };

/* The statements that read the content of things, in the order of the fields that are hashed. Links are not looked up again.
 */
static const char *const content_sql[KEPT_MAX] = {
	[KEPT_STRING] = "SELECT id, text FROM strings WHERE id >= ?1",
	[KEPT_FUNCTION] = "SELECT id, name, system_name, file, start_line FROM functions WHERE id >= ?1",
	[KEPT_MAPPING] = "SELECT id, path, memory_start, memory_limit, file_offset, attributes FROM mappings WHERE id >= ?1",
	[KEPT_ORIGIN] = "SELECT id, shape, attributes, message FROM origins WHERE id >= ?1",
};

/* The keys by number, for rows that refer to them; all 0: not known. */
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

/* A frame whose function is not known does not become known either: it is kept again when it comes again. */
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

/* Loads from the first number of the generation on, or as many of the newest as count. */
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
