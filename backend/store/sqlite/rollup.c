/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-ups: the sums of the blocks of an hour, by series and stack, by series and set of labels, by series and minute. A
 * question over whole hours reads them in place of the blocks, in which a stack stands once for each time it was merged.
 *
 * Invariant: a roll-up says what its hour's blocks say. A roll-up is made when the blocks are merged, and a trigger removes
 * it with any block that is put into the hour or taken out of it. The writer's thread; an hour takes several steps, and is
 * begun anew when its blocks have changed meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/write.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum {
	LEAST_EVENTS = 1 << 17, /* of an hour: fewer are in so few blocks that these are as good */
	STEP_RUNS = 1 << 15,	/* read in one step */
	MOST_SUMS = 1 << 17,	/* held, 3 MB: with more distinct ones, some stand in several rows */
	SPLIT_SUMS = 1 << 12,	/* a row ends with the series that has so many stacks in it */
};

enum { BY_STACK, BY_LABELS, BY_MINUTE, LISTS };

struct sum_list {
	struct block_sum *items;
	size_t count, cap;
};

struct source {
	int64_t id, level;
};

struct rollup {
	int64_t hour, from_ns, to_ns;
	struct source *blocks; /* as they were found */
	size_t block_count, next;
	struct sum_list lists[LISTS];
	struct rollup_row {
		int64_t events;
		struct buf parts[BLOCK_PARTS];
	} * rows; /* to be written */
	size_t row_count;
};

void store_rollup_abandon(struct store_writer *w)
{
	struct rollup *r = w->rollup;

	if (!r)
		return;
	for (size_t i = 0; i < LISTS; i++)
		free(r->lists[i].items);
	for (size_t i = 0; i < r->row_count; i++)
		for (size_t part = 0; part < BLOCK_PARTS; part++)
			buf_fini(&r->rows[i].parts[part]);
	free(r->rows);
	free(r->blocks);
	free(r);
	w->rollup = NULL;
}

/* --- which hour --- */

/* The newest hour that is merged and has no roll-up; -1: none. */
static int find_hour(struct store_writer *w, int64_t *ret)
{
	char sql[400];

	snprintf(sql, sizeof(sql),
		 "SELECT from_ns / %lld AS hour FROM blocks INDEXED BY blocks_time GROUP BY hour HAVING min(level) >= 2"
		 " AND sum(events) >= %d AND hour > %lld AND hour NOT IN (SELECT hour FROM rollups)"
		 " ORDER BY hour DESC LIMIT 1",
		 (long long)HOUR_NS, LEAST_EVENTS, (long long)w->pruned_hour);
	return store_get_int(w->s->write_db, sql, -1, ret);
}

/* The hour's blocks, by number, and their times. */
static int list_blocks(struct store_writer *w, struct rollup *r)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(w->s->write_db,
				      "SELECT id, level, from_ns, to_ns FROM blocks WHERE from_ns >= ?1 AND from_ns < ?2 "
				      "ORDER BY id",
				      -1, &st, NULL);
	size_t cap = 0;

	r->from_ns = INT64_MAX;
	r->to_ns = INT64_MIN;
	sqlite3_bind_int64(st, 1, r->hour * (int64_t)HOUR_NS);
	sqlite3_bind_int64(st, 2, (r->hour + 1) * (int64_t)HOUR_NS);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(st);
		if (code != SQLITE_ROW)
			break;
		if (vec_reach(&r->blocks, &cap, r->block_count)) {
			code = SQLITE_NOMEM;
			break;
		}
		r->blocks[r->block_count++] = (struct source){ sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1) };
		r->from_ns = r->from_ns < sqlite3_column_int64(st, 2) ? r->from_ns : sqlite3_column_int64(st, 2);
		r->to_ns = r->to_ns > sqlite3_column_int64(st, 3) ? r->to_ns : sqlite3_column_int64(st, 3);
	}
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

/* --- adding up --- */

static int compare_sums(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Sorts @l and adds up equal entries: each series and key stands once. */
static void combine(struct sum_list *l)
{
	size_t kept = 0;

	qsort(l->items, l->count, sizeof(*l->items), compare_sums);
	for (size_t i = 0; i < l->count; i++) {
		struct block_sum *last = kept ? &l->items[kept - 1] : NULL;

		if (last && !compare_sums(last, &l->items[i])) {
			last->events += l->items[i].events;
			last->weight = weights_add(last->weight, l->items[i].weight);
		} else {
			l->items[kept++] = l->items[i];
		}
	}
	l->count = kept;
}

static int append(struct sum_list *l, const struct block *b, const uint32_t *starts, const uint32_t *keys,
		  const uint32_t *events, const int64_t *weights)
{
	const size_t count = starts[b->series_count];

	if (l->count + count > l->cap) {
		size_t cap = (l->count + count) * 3 / 2;
		struct block_sum *grown = reallocarray(l->items, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->cap = cap;
	}
	for (uint32_t s = 0; s < b->series_count; s++)
		for (uint32_t i = starts[s]; i < starts[s + 1]; i++)
			l->items[l->count++] = (struct block_sum){
				.series = b->series[s],
				.key = keys[i],
				.events = events[i],
				.weight = b->has_weights ? weights[i] : (int64_t)events[i],
			};
	return 0;
}

/* The number of entries of @l from @at on that have the same series. */
static size_t series_length(const struct sum_list *l, size_t at)
{
	size_t end = at;

	while (end < l->count && l->items[end].series == l->items[at].series)
		end++;
	return end - at;
}

static int pack_row(struct store_writer *w, struct rollup *r, const size_t from[LISTS], const size_t to[LISTS])
{
	struct rollup_row *grown = reallocarray(r->rows, r->row_count + 1, sizeof(*grown)), *row;
	struct block_sums sums[LISTS];

	if (!grown)
		return -ENOMEM;
	r->rows = grown;
	row = &r->rows[r->row_count++];
	*row = (struct rollup_row){ .events = 0 };
	for (size_t i = 0; i < LISTS; i++)
		sums[i] = (struct block_sums){ r->lists[i].items + from[i], to[i] - from[i] };
	for (size_t i = 0; i < sums[BY_STACK].count; i++)
		row->events += sums[BY_STACK].items[i].events;
	return block_pack_sums(w->codec, (uint64_t)r->from_ns, &sums[BY_STACK], &sums[BY_LABELS], &sums[BY_MINUTE],
			       row->parts);
}

/* Makes rows of the sums. All lists have the same series, for every block is in all of them. */
static int pack_rows(struct store_writer *w, struct rollup *r)
{
	size_t from[LISTS] = { 0 }, to[LISTS] = { 0 };
	int err = 0;

	for (size_t i = 0; i < LISTS; i++)
		combine(&r->lists[i]);
	column_codec_set_level(w->codec, STORE_DENSE_LEVEL);
	while (to[BY_STACK] < r->lists[BY_STACK].count && !err) {
		for (size_t i = 0; i < LISTS; i++)
			to[i] += series_length(&r->lists[i], to[i]);
		if (to[BY_STACK] - from[BY_STACK] < SPLIT_SUMS && to[BY_STACK] < r->lists[BY_STACK].count)
			continue;
		err = pack_row(w, r, from, to);
		memcpy(from, to, sizeof(from));
	}
	for (size_t i = 0; i < LISTS; i++)
		r->lists[i].count = 0;
	return err;
}

static int add_block(struct store_writer *w, struct rollup *r)
{
	const struct block *b = &w->block;
	int err = append(&r->lists[BY_STACK], b, b->run_start, b->run_stack, b->run_events, b->run_weight);

	err = err ? err : append(&r->lists[BY_LABELS], b, b->cell_start, b->cell_set, b->cell_events, b->cell_weight);
	err = err ? err : append(&r->lists[BY_MINUTE], b, b->minute_start, b->minute, b->minute_events, b->minute_weight);
	for (size_t i = 0; i < LISTS && !err; i++) {
		if (r->lists[i].count < MOST_SUMS)
			continue;
		combine(&r->lists[i]);
		if (r->lists[i].count > MOST_SUMS / 2)
			err = pack_rows(w, r);
	}
	return err;
}

/* Adds the block that @st stands on; one that is damaged has nothing to add, as readers see it. */
static int read_block(struct store_writer *w, struct rollup *r, sqlite3_stmt *st)
{
	int err = store_read_block(&w->block, st, BLOCK_CELLS);

	return err == -EBADMSG ? 0 : err ? err : add_block(w, r);
}

/* Reads some blocks more. 0, -ENOENT when one has gone, or -errno. */
static int read_some(struct store_writer *w, struct rollup *r)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(w->s->write_db, "SELECT head, stacks, cells FROM blocks WHERE id = ?1", -1, &st, NULL);
	int err = store_sqlite_errno(code);

	for (size_t runs = 0; r->next < r->block_count && runs < STEP_RUNS && !err; r->next++) {
		sqlite3_bind_int64(st, 1, r->blocks[r->next].id);
		code = sqlite3_step(st);
		err = code == SQLITE_ROW ? read_block(w, r, st) : code == SQLITE_DONE ? -ENOENT : store_sqlite_errno(code);
		runs += w->block.run_count;
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return err;
}

/* --- writing --- */

static int insert_rows(struct store_writer *w, const struct rollup *r)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(w->s->write_db,
				      "INSERT INTO rollups(hour, from_ns, to_ns, events, head, stacks, cells)"
				      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
				      -1, &st, NULL);

	for (size_t i = 0; i < r->row_count && code == SQLITE_OK; i++) {
		const struct rollup_row *row = &r->rows[i];

		sqlite3_bind_int64(st, 1, r->hour);
		sqlite3_bind_int64(st, 2, r->from_ns);
		sqlite3_bind_int64(st, 3, r->to_ns);
		sqlite3_bind_int64(st, 4, row->events);
		for (int part = BLOCK_HEAD; part <= BLOCK_CELLS; part++)
			sqlite3_bind_blob64(st, 5 + part, row->parts[part].data, row->parts[part].len, SQLITE_STATIC);
		sqlite3_step(st);
		code = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

/* Writes the roll-up, unless the hour's blocks have changed by now. */
static int write_rollup(struct store_writer *w, struct rollup *r)
{
	struct rollup now = { .hour = r->hour };
	int err = store_begin(w->s);

	err = err ? err : list_blocks(w, &now);
	if (!err && now.block_count == r->block_count && !memcmp(now.blocks, r->blocks, r->block_count * sizeof(*r->blocks)))
		err = insert_rows(w, r);
	free(now.blocks);
	return store_end(w->s, err);
}

static int begin_hour(struct store_writer *w)
{
	int64_t hour;
	int err = find_hour(w, &hour);

	w->has_merged &= !err && hour >= 0;
	if (err || hour < 0)
		return err;
	w->rollup = calloc(1, sizeof(*w->rollup));
	if (!w->rollup)
		return -ENOMEM;
	w->rollup->hour = hour;
	return list_blocks(w, w->rollup);
}

int store_rollup_step(struct store_writer *w)
{
	struct rollup *r;
	int err = w->rollup || !w->has_merged ? 0 : begin_hour(w);

	r = w->rollup;
	if (!r || err) {
		store_rollup_abandon(w);
		return err;
	}
	err = read_some(w, r);
	if (!err && r->next < r->block_count)
		return 1;
	err = err ? err : pack_rows(w, r);
	err = err ? err : write_rollup(w, r);
	store_rollup_abandon(w);
	block_fini(&w->block);
	block_init(&w->block, w->codec);
	return err && err != -ENOENT ? err : 1;
}
