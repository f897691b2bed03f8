/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of what is kept: tables of known things, and the packed rows of frames, nodes and lists. They are filled from
 * the store at the start in store_sqlite_load.c; the walk over a message is in store_sqlite_message.c. */
#include "backend/store_sqlite_keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ROWS_AT_ONCE = 8192, KEPT_EVENTS = 1 << 13 };

/* What is remembered at most; see store_ids.h. 16 bytes an entry, 7 MB in all. Frames and functions are only looked for
 * where a stack is new. Half the frames would cost 2.0 more than the 12.4 bytes a sample of a minute of compiling that comes
 * ten times over; half the functions and strings cost nothing. */
const uint32_t kept_most[KEPT_MAX] = {
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

/* Runs of new lists, none too large to be read. */
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
