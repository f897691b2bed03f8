/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns profiles into the store's terms: every string, function, mapping, frame, stack node, set of attributes and series
 * gets its number, new ones are written, and samples become events. All functions run on the writer's thread, within its
 * transaction. When anything failed, the transaction must be rolled back and keep_reload() called, because numbers were
 * given out.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_KEEP_H
#define HEARTH_BACKEND_STORE_SQLITE_KEEP_H

#include "backend/store/ids.h"
#include "backend/store/sqlite/rows.h"
#include "backend/store/sqlite/db.h"

/* The kinds of things that get numbers, each by a table of its own. */
enum kept {
	KEPT_STRING,
	KEPT_ATTRIBUTE,
	KEPT_SET,
	KEPT_LINK,
	KEPT_FUNCTION,
	KEPT_MAPPING,
	KEPT_FRAME,
	KEPT_NODE,
	KEPT_ORIGIN,
	KEPT_SERIES,
	KEPT_MAX,
};

static inline bool kept_as_lists(enum kept kind)
{
	return kind == KEPT_ATTRIBUTE || kind == KEPT_SET || kind == KEPT_SERIES;
}

/* Kinds that stand many to a row: first number, how many, packed data. */
static inline bool kept_packed(enum kept kind)
{
	return kept_as_lists(kind) || kind == KEPT_FRAME || kind == KEPT_NODE;
}

/* Lists that wait to be written: the numbers of all (int64_t), and how many each has (uint32_t). */
struct new_lists {
	struct buf numbers, lengths;
};

struct keep {
	sqlite3 *db;
	struct column_codec *codec;
	sqlite3_stmt *insert[KEPT_MAX];
	struct ids ids[KEPT_MAX];
	uint32_t next[KEPT_MAX];
	int64_t generation; /* see keep_begin_generation() */
	/* new since the last write; the first has the number next - count */
	struct frame_row *frames;
	struct store_node *nodes;
	size_t frame_count, frame_cap, node_count, node_cap;
	struct new_lists lists[KEPT_MAX]; /* of those kept as lists */
	struct event *events;
	size_t event_count, event_cap;
	struct buf text;   /* scratch */
	struct buf tables; /* of the message at hand */
};

/* Begins keeping. 0 or -errno; keep_fini() after either. */
int keep_init(struct keep *k, sqlite3 *db, struct column_codec *codec);
void keep_fini(struct keep *k);

/* Forgets all numbers and reads what is in the store. 0 or -errno. */
int keep_reload(struct keep *k);

/*
 * Begins a generation: from here on no number given before is referred to, and things met again are kept again. So the
 * things that older blocks refer to can go with these blocks, without a search for other references. Called within a
 * transaction. 0 or -errno.
 */
int keep_begin_generation(struct keep *k, uint64_t now_ns);

/* Names of the tables, in the order of enum kept; as the columns of the table of generations. */
extern const char *const kept_tables[KEPT_MAX];

/*
 * Keys. Keys of functions and frames are made of the keys of what they refer to, as keys of nodes are (id_key_below()): a
 * stack that is known is found by one look, without looking for its frames, their functions and names.
 */
enum { FUNCTION_NAMES = 3 }; /* name, system name, file; none has the key { 0 } */

struct id_key keep_function_key(const struct id_key names[FUNCTION_NAMES], int64_t start_line);

/* The row's function stands for itself by its key. */
struct id_key keep_frame_key(const struct frame_row *row, struct id_key function);

/* The number of the thing with this key, or 0 with *@id_new its new number, which stands at once. */
uint32_t keep_number(struct keep *k, enum kept kind, struct id_key key, uint32_t *id_new);

/* Adds @p's samples to k->events. 0 or -errno. */
int keep_profiles(struct keep *k, const struct profiles *p);

/* Gives back the memory of many events; called between groups. */
void keep_forget_events(struct keep *k);

/* Bytes of memory held: by the tables of numbers, and by all else. */
void keep_memory(const struct keep *k, size_t *numbers_ret, size_t *rest_ret);

/* Writes new frames, nodes and lists. 0 or -errno. */
int keep_write(struct keep *k);

/* The number of the list, at most LIST_MOST_NUMBERS long, kept when it is new. */
uint32_t keep_list(struct keep *k, enum kept kind, const int64_t *numbers, size_t count);

#endif
