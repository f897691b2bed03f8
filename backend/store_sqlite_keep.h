/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles into the store's terms: every string, function, mapping, frame, stack node, set of attributes and series gets its
 * number, new ones are written, and samples become events. The writer thread's; all within its transaction. When anything
 * failed, the transaction must be rolled back and keep_reload() called, because numbers were given out.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_KEEP_H
#define HEARTH_BACKEND_STORE_SQLITE_KEEP_H

#include "backend/store_ids.h"
#include "backend/store_sqlite.h"

/* What is numbered, each by a table of its own. */
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

/* A frame as it is kept. Numbers are of the store. */
struct frame_row {
	uint64_t address;
	int64_t line, column;
	uint32_t mapping, function, attributes;
	uint32_t inlined;
};

/* A list of numbers, at most so many: an attribute is key, unit, kind, value; a set its attributes; a series its resource
 * and origin. */
enum { LIST_MOST_NUMBERS = 4096 };

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

/* 0 or -errno; keep_fini() after either. */
int keep_init(struct keep *k, sqlite3 *db, struct column_codec *codec);
void keep_fini(struct keep *k);

/* --- store_sqlite_load.c --- */

/* Forgets all numbers and reads what is in the store. 0 or -errno. */
int keep_reload(struct keep *k);

/*
 * From here on nothing that was numbered before is referred to: what is met again is kept again. So what older blocks refer
 * to can go with them, without looking for who else does. Within a transaction. 0 or -errno.
 */
int keep_begin_generation(struct keep *k, uint64_t now_ns);

/* Names of the tables, in the order of enum kept; as the columns of the table of generations. */
extern const char *const kept_tables[KEPT_MAX];

/* What is remembered of each kind at most; see store_ids.h. */
extern const uint32_t kept_most[KEPT_MAX];

/*
 * Keys. Those of functions and frames are made of the keys of what they refer to, as those of nodes are (id_key_below()): a
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

/* Gives back the memory of many events; between groups. */
void keep_forget_events(struct keep *k);

/* Bytes of memory held: by the tables of numbers, and by all else. */
void keep_memory(const struct keep *k, size_t *numbers_ret, size_t *rest_ret);

/* Writes new frames, nodes and lists. 0 or -errno. */
int keep_write(struct keep *k);

/* The number of the list, at most LIST_MOST_NUMBERS long, kept when it is new. */
uint32_t keep_list(struct keep *k, enum kept kind, const int64_t *numbers, size_t count);

/* Lists read back: list i is numbers[starts[i]] to numbers[starts[i + 1]]. */
struct lists {
	uint32_t *starts;
	int64_t *numbers;
};

void lists_fini(struct lists *l);
void lists_pack(struct column_codec *c, const int64_t *numbers, const uint32_t *lengths, size_t count, struct buf *out);
int lists_unpack(struct column_codec *c, const void *data, size_t len, size_t count, struct lists *ret);

/* Rows of frames and nodes, packed and read. Reading: 0, -EBADMSG, -ENOMEM. */
void frames_pack(struct column_codec *c, const struct frame_row *rows, size_t count, struct buf *out);
int frames_unpack(struct column_codec *c, const void *data, size_t len, struct frame_row *rows, size_t count);
void nodes_pack(struct column_codec *c, const struct store_node *rows, size_t count, uint32_t first, struct buf *out);
int nodes_unpack(struct column_codec *c, const void *data, size_t len, struct store_node *rows, size_t count,
		 uint32_t first);

#endif
