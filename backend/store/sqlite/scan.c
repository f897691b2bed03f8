/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over blocks and the choice of their selected events. */
#include "backend/store/sqlite/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"

/* The list is read from the index alone: a row of the table is read as a whole, and most are left out where there are
 * roll-ups. */
enum { LIST_ID, LIST_FROM, LIST_TO, LIST_FIRST_LINK, LIST_LAST_LINK };

static const char list_sql[] = "SELECT id, from_ns, to_ns, first_link, last_link FROM blocks INDEXED BY blocks_time"
			       " WHERE from_ns < ?2 AND to_ns >= ?1 ORDER BY from_ns";
static const char block_sql[] = "SELECT head, stacks, cells, cpus, labels, weights, times, links FROM blocks WHERE id = ?1";

static struct scan_series *get_series(struct scan *scan, uint32_t id, int *err)
{
	struct scan_series *m = map_get(&scan->series, id);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	*err = m ? map_put(&scan->series, id, m) : -ENOMEM;
	if (*err) {
		free(m);
		return NULL;
	}
	m->series = names_series(scan->s->names, id, err);
	if (m->series)
		*err = scan_match_series(scan, m);
	return *err ? NULL : m;
}

/* --- beginning and end --- */

/* The kind with the most events. One kind needs no counting. */
static int find_kind(struct scan *scan)
{
	struct {
		char *type;
		uint64_t events;
	} kinds[16] = { 0 };
	size_t count = 0, best = 0;
	int more;

	while ((more = scan_next(scan)) > 0) {
		for (uint32_t i = 0; i < scan->block->series_count; i++) {
			const char *type = scan->of[i] ? scan->of[i]->series->origin->sample_type : NULL;
			size_t k = 0;

			while (type && k < count && strcmp(kinds[k].type, type) != 0)
				k++;
			if (!type || k == ARRAY_LEN(kinds))
				continue;
			if (k == count)
				kinds[count++].type = (char *)(uintptr_t)type;
			kinds[k].events += scan->block->event_start[i + 1] - scan->block->event_start[i];
		}
	}
	for (size_t k = 1; k < count; k++)
		best = kinds[k].events > kinds[best].events ? k : best;
	if (count)
		snprintf(scan->kind, sizeof(scan->kind), "%s", kinds[best].type);
	return more;
}

static void forget_series(struct scan *scan)
{
	size_t pos = 0;
	void *value;

	while (map_next(&scan->series, &pos, NULL, &value))
		free(value);
	map_fini(&scan->series);
	scan->series = MAP_EMPTY;
}

static int64_t clamp_time(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static int prepare(struct scan *scan, const char *sql, sqlite3_stmt **at)
{
	return *at ? 0 : store_sqlite_errno(sqlite3_prepare_v2(scan->s->read_db, sql, -1, at, NULL));
}

static int start(struct scan *scan)
{
	int err = prepare(scan, list_sql, &scan->list);

	err = err ? err : prepare(scan, block_sql, &scan->row);
	if (err)
		return err;
	sqlite3_reset(scan->list);
	sqlite3_bind_int64(scan->list, 1, clamp_time(scan->sel->from_ns));
	sqlite3_bind_int64(scan->list, 2, clamp_time(scan->sel->to_ns));
	return 0;
}

int scan_begin(struct scan *scan, struct store *s, const struct store_selection *sel, bool any_kind)
{
	int64_t types;
	int err;

	*scan = (struct scan){ .s = store_sqlite_of(s), .sel = sel, .own.block = &store_sqlite_of(s)->block };
	scan_look_at(scan, &scan->own);
	err = store_read_begin(scan->s);
	names_refresh(scan->s->names);
	err = err || sel->matcher_count <= STORE_MAX_MATCHERS ? err : -E2BIG;
	err = err ? err : start(scan);
	if (err || any_kind)
		return err;
	if (sel->kind) {
		snprintf(scan->kind, sizeof(scan->kind), "%s", sel->kind);
		return strlen(sel->kind) < sizeof(scan->kind) ? 0 : -EINVAL;
	}
	err = store_get_int(scan->s->read_db, "SELECT count(DISTINCT sample_type) FROM origins", 0, &types);
	if (err || types < 2)
		return err;
	err = find_kind(scan);
	forget_series(scan);
	return err ? err : start(scan);
}

void scan_end(struct scan *scan)
{
	sqlite3_finalize(scan->list);
	sqlite3_finalize(scan->row);
	forget_series(scan);
	free(scan->own.of);
	free(scan->mask);
	free(scan->hours);
	scan_links_fini(scan);
	store_read_end(scan->s);
}

/* --- blocks --- */

void scan_look_at(struct scan *scan, struct scan_block *at)
{
	scan->at = at;
	scan->block = at->block;
	scan->of = at->of;
}

/* Has the statement stand on the row of block @id. 0 or -errno. */
static int read_row(struct scan *scan, int64_t id)
{
	int code;

	sqlite3_reset(scan->row);
	sqlite3_bind_int64(scan->row, 1, id);
	scan->row_id = id;
	code = sqlite3_step(scan->row);
	return code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
}

int scan_part(struct scan *scan, enum block_part part)
{
	int err = 0;

	if (scan->block->parts_read & 1u << part)
		return 0;
	if (part == BLOCK_TIMES) {
		err = scan_part(scan, BLOCK_STACKS);
		err = err ? err : scan_part(scan, BLOCK_CPUS);
	} else if (part == BLOCK_LABELS) {
		err = scan_part(scan, BLOCK_CELLS);
	}
	if (!err && scan->row_id != scan->at->id)
		err = read_row(scan, scan->at->id);
	if (err)
		return err;
	return block_read(scan->block, part, sqlite3_column_blob(scan->row, part),
			  (size_t)sqlite3_column_bytes(scan->row, part));
}

/* Finds the selected series of the block: returns how many, or -errno. */
static int match_block(struct scan *scan)
{
	struct block *b = scan->block;
	int err = block_read_head(b, sqlite3_column_blob(scan->row, BLOCK_HEAD),
				  (size_t)sqlite3_column_bytes(scan->row, BLOCK_HEAD));
	int found = 0;

	scan->at->id = scan->row_id;
	err = err ? err : vec_reserve(&scan->at->of, &scan->at->of_cap, b->series_count);
	scan->of = scan->at->of;
	for (uint32_t i = 0; i < b->series_count && !err; i++) {
		struct scan_series *m = get_series(scan, b->series[i], &err);

		scan->of[i] = m && !m->is_out ? m : NULL;
		found += scan->of[i] != NULL;
	}
	return err ? err : found;
}

/* Whether the block that the list stands on is of an hour that is done. Blocks come by time, as the hours do. */
static bool is_done(struct scan *scan)
{
	int64_t hour;

	if (scan->next_hour == scan->hour_count)
		return false;
	hour = sqlite3_column_int64(scan->list, LIST_FROM) / (int64_t)(60 * MINUTE_NS);
	while (scan->next_hour < scan->hour_count && scan->hours[scan->next_hour] < hour)
		scan->next_hour++;
	return scan->next_hour < scan->hour_count && scan->hours[scan->next_hour] == hour;
}

/* Whether the block that the list stands on may have links as they are asked for; of blocks from before version 5 it is not
 * known. 1, 0 or -errno. */
static int may_have_links(struct scan *scan)
{
	if (sqlite3_column_type(scan->list, LIST_LAST_LINK) == SQLITE_NULL)
		return 1;
	return scan_may_have_links(scan, sqlite3_column_int64(scan->list, LIST_FIRST_LINK),
				   sqlite3_column_int64(scan->list, LIST_LAST_LINK));
}

int scan_next(struct scan *scan)
{
	int code, found;

	while ((code = sqlite3_step(scan->list)) == SQLITE_ROW) {
		int err = store_selection_check(scan->sel);

		if (err)
			return err;
		if (is_done(scan))
			continue;
		found = may_have_links(scan);
		if (!found)
			continue;
		found = found < 0 ? found : read_row(scan, sqlite3_column_int64(scan->list, LIST_ID));
		found = found ? found : match_block(scan);
		if (found == -EBADMSG) {
			metric_add(scan->s->metrics.damaged_blocks, 1);
			continue;
		}
		scan->at->is_whole = (uint64_t)sqlite3_column_int64(scan->list, LIST_FROM) >= scan->sel->from_ns &&
				     (uint64_t)sqlite3_column_int64(scan->list, LIST_TO) < scan->sel->to_ns;
		if (found)
			return found < 0 ? found : 1;
	}
	return store_sqlite_errno(code);
}

int scan_each_series(struct scan *scan, int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	for (uint32_t i = 0; i < scan->block->series_count; i++) {
		int err = scan->of[i] ? fn(arg, scan, i) : 0;

		if (err == -EBADMSG) {
			metric_add(scan->s->metrics.damaged_blocks, 1);
			break;
		}
		if (err)
			return err;
	}
	return 0;
}

/* --- roll-ups --- */

static int list_hours(struct scan *scan)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(scan->s->read_db,
				      "SELECT DISTINCT hour FROM rollups INDEXED BY rollups_hour"
				      " WHERE from_ns >= ?1 AND to_ns < ?2 ORDER BY hour",
				      -1, &st, NULL);

	sqlite3_bind_int64(st, 1, clamp_time(scan->sel->from_ns));
	sqlite3_bind_int64(st, 2, clamp_time(scan->sel->to_ns));
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(st);
		if (code != SQLITE_ROW)
			break;
		if (vec_reach(&scan->hours, &scan->hour_cap, scan->hour_count)) {
			code = SQLITE_NOMEM;
			break;
		}
		scan->hours[scan->hour_count++] = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

/* Whether @can says 1 of all selected series of the row: if not, what it said. */
static int ask_each(struct scan *scan, int (*can)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	int ok = 1;

	for (uint32_t i = 0; i < scan->block->series_count && ok == 1; i++)
		ok = scan->of[i] ? can(arg, scan, i) : 1;
	return ok;
}

/* Asks @can about all rows of an hour's roll-up, or calls @fn for each: 1 when all went well, 0 when @can said so or a row
 * is damaged, -errno. */
static int each_row(struct scan *scan, int64_t hour, int (*can)(void *arg, struct scan *scan, uint32_t index),
		    int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	int code = SQLITE_DONE, ok = 1;

	sqlite3_reset(scan->row);
	sqlite3_bind_int64(scan->row, 1, hour);
	while (ok == 1 && (code = sqlite3_step(scan->row)) == SQLITE_ROW) {
		ok = match_block(scan);
		if (ok < 0)
			break;
		if (can) {
			ok = ask_each(scan, can, arg);
		} else {
			ok = scan_each_series(scan, fn, arg);
			ok = ok ? ok : 1;
		}
	}
	if (ok != 1)
		return ok == -EBADMSG ? 0 : ok;
	return code == SQLITE_DONE ? 1 : store_sqlite_errno(code);
}

/* Whether the hour was read as a roll-up: 1, 0 or -errno. */
static int read_hour(struct scan *scan, int64_t hour, int (*can)(void *arg, struct scan *scan, uint32_t index),
		     int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	int ok = each_row(scan, hour, can, NULL, arg);

	return ok == 1 ? each_row(scan, hour, NULL, fn, arg) : ok;
}

int scan_sums(struct scan *scan, int (*can)(void *arg, struct scan *scan, uint32_t index),
	      int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	sqlite3_stmt *block_row = scan->row;
	size_t done = 0;
	int err = list_hours(scan);

	scan->row = NULL;
	if (!err && scan->hour_count)
		err = prepare(scan, "SELECT head, stacks, cells FROM rollups WHERE hour = ?1", &scan->row);
	scan->own.is_whole = true;
	for (size_t i = 0; i < scan->hour_count && !err; i++) {
		int ok = store_selection_check(scan->sel);

		ok = ok ? ok : read_hour(scan, scan->hours[i], can, fn, arg);
		err = ok < 0 ? ok : 0;
		if (ok == 1)
			scan->hours[done++] = scan->hours[i];
	}
	scan->hour_count = done;
	sqlite3_finalize(scan->row);
	scan->row = block_row;
	return err ? err : scan_each(scan, fn, arg);
}

/* --- events --- */

static const char *cpu_text(uint32_t cpu, char text[16])
{
	text[0] = '\0';
	if (cpu)
		snprintf(text, 16, "%" PRIu32, cpu - 1);
	return text;
}

/* Takes out of the mask the events whose labels do not fit, where some do. */
static int mask_cells(struct scan *scan, uint32_t index, uint64_t undecided)
{
	struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_LABELS);

	for (uint32_t c = b->cell_start[index]; c < b->cell_start[index + 1] && !err; c++) {
		bool fits;

		err = scan_match_set(scan, index, undecided, b->cell_set[c], &fits);
		for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !fits && !err; e++) {
			if (b->label[e] == c)
				scan->mask[e] = 0;
		}
	}
	return err;
}

/* Takes out of the mask what the undecided matchers refuse by the sets of labels. */
static int mask_labels(struct scan *scan, uint32_t index, uint64_t undecided)
{
	struct block *b = scan->block;
	const uint32_t first = b->cell_start[index], end = b->cell_start[index + 1];
	uint32_t fitting = 0;
	int err = scan_part(scan, BLOCK_CELLS);

	for (uint32_t c = first; c < end && !err; c++) {
		bool fits;

		err = scan_match_set(scan, index, undecided, b->cell_set[c], &fits);
		fitting += fits;
	}
	if (err || fitting == end - first)
		return err;
	if (!fitting)
		memset(scan->mask + b->event_start[index], 0, b->event_start[index + 1] - b->event_start[index]);
	return fitting ? mask_cells(scan, index, undecided) : 0;
}

static int mask_cpus(struct scan *scan, uint32_t index, size_t matcher)
{
	struct block *b = scan->block;
	uint32_t last = UINT32_MAX;
	bool fits = false;
	int err = scan_part(scan, BLOCK_CPUS);

	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++) {
		char text[16];

		if (b->cpu[e] != last)
			fits = scan_is_match(scan, matcher, cpu_text(b->cpu[e], text), &err);
		last = b->cpu[e];
		scan->mask[e] &= fits;
	}
	return err;
}

static int mask_times(struct scan *scan, uint32_t index)
{
	struct block *b = scan->block;
	int err = scan_part(scan, BLOCK_TIMES);

	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++)
		scan->mask[e] &= b->time_ns[e] >= scan->sel->from_ns && b->time_ns[e] < scan->sel->to_ns;
	return err;
}

/* A mask of all events of the series. */
static int mask_all(struct scan *scan, uint32_t index)
{
	const struct block *b = scan->block;

	if (vec_reserve(&scan->mask, &scan->mask_cap, b->event_count))
		return -ENOMEM;
	memset(scan->mask + b->event_start[index], 1, b->event_start[index + 1] - b->event_start[index]);
	return 0;
}

int scan_mask(struct scan *scan, uint32_t index, const uint8_t **mask_ret)
{
	const uint64_t undecided = scan->of[index]->undecided;
	int err;

	*mask_ret = NULL;
	if (scan->at->is_whole && !undecided)
		return 0;
	err = mask_all(scan, index);
	if (!scan->at->is_whole && !err)
		err = mask_times(scan, index);
	if (undecided && !err)
		err = mask_labels(scan, index, undecided);
	for (size_t i = 0; i < scan->sel->matcher_count && !err; i++) {
		if (!(undecided & 1ull << i))
			continue;
		if (!strcmp(scan->sel->matchers[i].label, STORE_CPU_LABEL))
			err = mask_cpus(scan, index, i);
		else if (scan_is_of_links(scan->sel->matchers[i].label))
			err = scan_mask_links(scan, index, i);
	}
	*mask_ret = scan->mask;
	return err;
}

int scan_mask_stacks(struct scan *scan, uint32_t index, const uint8_t **mask_ret)
{
	const struct block *b = scan->block;
	uint32_t at = b->event_start[index];
	int err = scan_mask(scan, index, mask_ret);

	if (err || !scan->sel->stacks)
		return err;
	err = scan_part(scan, BLOCK_STACKS);
	if (!err && !*mask_ret)
		err = mask_all(scan, index);
	for (uint32_t r = b->run_start[index]; r < b->run_start[index + 1] && !err; at += b->run_events[r++]) {
		if (!scan_has_stack(scan->sel, b->run_stack[r]))
			memset(scan->mask + at, 0, b->run_events[r]);
	}
	*mask_ret = scan->mask;
	return err;
}
