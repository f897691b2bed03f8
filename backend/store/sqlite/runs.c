/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and nodes by number. They stand many to a row, packed; the rows that were used last stay unpacked, up to a bound on
 * what is in them. Pointers from here are valid until the next one of their kind is asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/names_parts.h"
#include "base/search.h"

enum { MOST_FRAMES = 1 << 16, MOST_NODES = 1 << 18 }; /* 3 and 2 MB */

static void clear(struct run_cache *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->runs[i].rows);
	*c = (struct run_cache){ 0 };
}

void names_runs_clear(struct store_names *n)
{
	clear(&n->frames);
	clear(&n->nodes);
}

size_t names_runs_memory_bytes(const struct store_names *n)
{
	return n->frames.rows * sizeof(struct frame_row) + n->nodes.rows * sizeof(struct store_node);
}

static bool is_in(const struct run *run, uint32_t number)
{
	return number - run->first < run->count;
}

/* The number of runs that begin at @number or before. */
static size_t place_of(const struct run_cache *c, uint32_t number)
{
	return search_first(at, c->count, c->runs[at].first > number);
}

static void drop(struct run_cache *c, size_t at)
{
	c->rows -= c->runs[at].count;
	free(c->runs[at].rows);
	c->count--;
	memmove(&c->runs[at], &c->runs[at + 1], (c->count - at) * sizeof(*c->runs));
}

/* Drops the runs that were not used for longest, until @rows more are within @most. */
static void make_room(struct run_cache *c, size_t rows, size_t most)
{
	while (c->count && (c->count == RUNS || c->rows + rows > most)) {
		size_t oldest = 0;

		for (size_t i = 1; i < c->count; i++)
			if (c->runs[i].used < c->runs[oldest].used)
				oldest = i;
		drop(c, oldest);
	}
}

/* Unpacks the row that @st stands on. 0 or -errno. */
static int unpack(struct store_names *n, enum name_statement which, sqlite3_stmt *st, struct run *run)
{
	const int64_t count = sqlite3_column_int64(st, 1);
	const void *data = sqlite3_column_blob(st, 2);
	const size_t len = (size_t)sqlite3_column_bytes(st, 2);
	int err;

	if (count < 1 || count > COLUMN_MAX_VALUES)
		return -EBADMSG;
	*run = (struct run){ .first = (uint32_t)sqlite3_column_int64(st, 0), .count = (uint32_t)count };
	run->rows = calloc(run->count, which == NAME_FRAMES ? sizeof(struct frame_row) : sizeof(struct store_node));
	if (!run->rows)
		return -ENOMEM;
	err = which == NAME_FRAMES ? frames_unpack(*n->codec, data, len, run->rows, run->count)
				   : nodes_unpack(*n->codec, data, len, run->rows, run->count, run->first);
	if (err)
		free(run->rows);
	return err;
}

/* Reads the row with @number. */
static int load(struct store_names *n, struct run_cache *c, enum name_statement which, uint32_t number)
{
	int err = 0, code;
	sqlite3_stmt *st = names_statement(n, which, number, &err);
	struct run run;
	size_t at;

	if (!st)
		return err;
	code = sqlite3_step(st);
	if (code == SQLITE_ROW)
		err = unpack(n, which, st, &run);
	else
		err = code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	sqlite3_reset(st);
	if (err)
		return err;
	at = place_of(c, run.first);
	if (!is_in(&run, number) || (at && is_in(&c->runs[at - 1], run.first))) {
		free(run.rows);
		return -EBADMSG;
	}
	make_room(c, run.count, which == NAME_FRAMES ? MOST_FRAMES : MOST_NODES);
	at = place_of(c, run.first);
	memmove(&c->runs[at + 1], &c->runs[at], (c->count - at) * sizeof(*c->runs));
	c->runs[at] = run;
	c->rows += run.count;
	c->count++;
	return 0;
}

/* The run that holds @number; NULL with *@err set. */
static const struct run *find(struct store_names *n, struct run_cache *c, enum name_statement which, uint32_t number,
			      int *err)
{
	size_t at;

	if (c->last < c->count && is_in(&c->runs[c->last], number))
		return &c->runs[c->last];
	at = place_of(c, number);
	if (!at || !is_in(&c->runs[at - 1], number)) {
		*err = load(n, c, which, number);
		if (*err)
			return NULL;
		at = place_of(c, number);
	}
	c->last = at - 1;
	c->runs[c->last].used = ++c->uses;
	return &c->runs[c->last];
}

const struct frame_row *names_frame(struct store_names *n, uint32_t id, int *err)
{
	static const struct frame_row none = { 0 };
	const struct run *run = id ? find(n, &n->frames, NAME_FRAMES, id, err) : NULL;

	if (!id)
		return &none;
	return run ? (const struct frame_row *)run->rows + (id - run->first) : NULL;
}

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

int names_nodes(struct store_names *n, uint32_t first, uint32_t count, struct store_node *ret)
{
	int err = 0;

	if (count && !first) {
		*ret++ = (struct store_node){ 0 };
		first++;
		count--;
	}
	while (count) {
		const struct run *run = find(n, &n->nodes, NAME_NODES, first, &err);
		uint32_t taken;

		if (!run)
			return err;
		taken = run->count - (first - run->first);
		taken = taken < count ? taken : count;
		memcpy(ret, (const struct store_node *)run->rows + (first - run->first), taken * sizeof(*ret));
		ret += taken;
		first += taken;
		count -= taken;
	}
	return 0;
}
