/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: what is old is thinned, and what is too old, beyond the size, or takes the last free disk goes, oldest blocks
 * first, some blocks a step. A part of the size is the newest samples' own: where names fill the rest, removing these would
 * not help. Nor do samples go for a disk that would be too full without any of them: then the store does not grow.
 * Names, frames and stacks are of generations: a new one begins several times within the store's age or size, refers to
 * nothing of those before, and the numbers of a generation go when the last block that was written in it has gone.
 *
 * Invariant: a step is one short transaction; nothing is removed because the clock was set forward while we run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "backend/store_sqlite_write.h"
#include "base/clock.h"

enum {
	STEP_BLOCKS = 32,
	STEP_ROWS = 4096,      /* of names */
	STEP_PAGES = 512,      /* given back to the file system */
	GENERATIONS = 8,       /* within the age or the size that is kept */
	LEAST_BYTES = 1 << 20, /* a full disk is not our doing below this */
	SAMPLES_PART = 4,      /* one of so many of the size is the samples' */
	HELD_PART = 16,	       /* by one of so many a store may grow that is not to grow */
};

/* Bytes of a block's row. */
#define BLOCK_BYTES                                                                                                        \
	"length(head) + length(stacks) + length(cells) + length(cpus) + length(labels) + length(weights) + length(times) " \
	"+ "                                                                                                               \
	"length(links)"
#define COUNT_NS (10 * NSEC_PER_SEC) /* all blocks' bytes are counted anew */

static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

void store_prune_begin(struct store_writer *w)
{
	w->start_unix_ns = clock_unix_ns();
	w->start_boot_ns = boot_ns();
}

/* Unix time, but not later than the clock would be had nobody set it since the start. */
static uint64_t careful_now(struct store_writer *w)
{
	uint64_t now = clock_unix_ns(), boot = boot_ns(), unset;

	unset = w->start_unix_ns + (boot - w->start_boot_ns);
	return now < unset ? now : unset;
}

/* Bytes in use: what is free within the file does not count. */
static int used_bytes(struct store_writer *w, uint64_t *ret)
{
	int64_t pages = 0, free_pages = 0, size = 0;
	int err = store_get_int(w->s->write_db, "PRAGMA page_count", 0, &pages);

	err = err ? err : store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, &free_pages);
	err = err ? err : store_get_int(w->s->write_db, "PRAGMA page_size", 0, &size);
	*ret = (uint64_t)((pages - free_pages) * size);
	return err;
}

/* How many bytes more are to be free where the store is. */
static uint64_t disk_lacks(const struct store_sqlite *s)
{
	const double part = s->config.keep_free_part;
	struct statvfs fs;
	double wanted;

	if (s->in_memory || part <= 0 || statvfs(s->place, &fs) || !fs.f_blocks)
		return 0;
	wanted = part * (double)fs.f_blocks;
	return (double)fs.f_bavail < wanted ? (uint64_t)((wanted - (double)fs.f_bavail) * (double)fs.f_frsize) + 1 : 0;
}

bool store_disk_is_full(const struct store_sqlite *s)
{
	return disk_lacks(s) > 0;
}

/* Removes the oldest blocks that end before @before_ns, some of them: how many, or -errno. */
static int remove_blocks(struct store_writer *w, int64_t before_ns, int most)
{
	static const char which[] =
		"FROM blocks WHERE id IN (SELECT id FROM blocks INDEXED BY blocks_time WHERE to_ns < %" PRId64
		" ORDER BY from_ns LIMIT %d)";
	char where[256], sql[512];
	int64_t events = 0, bytes = 0, oldest_ns;
	int err = store_begin(w);

	if (err)
		return err;
	snprintf(where, sizeof(where), which, before_ns, most);
	snprintf(sql, sizeof(sql), "SELECT sum(events) %s", where);
	err = store_get_int(w->s->write_db, sql, 0, &events);
	snprintf(sql, sizeof(sql), "SELECT sum(" BLOCK_BYTES ") %s", where);
	err = err ? err : store_get_int(w->s->write_db, sql, 0, &bytes);
	snprintf(sql, sizeof(sql), "DELETE %s", where);
	err = err ? err : store_exec(w->s->write_db, sql);
	most = sqlite3_changes(w->s->write_db);
	err = store_end(w, err);
	if (!err) {
		metric_add(w->s->metrics.pruned_events, (uint64_t)events);
		w->block_bytes -= (uint64_t)bytes < w->block_bytes ? (uint64_t)bytes : w->block_bytes;
	}
	if (!err && most > 0) {
		err = store_get_int(w->s->write_db, "SELECT min(from_ns) FROM blocks", -1, &oldest_ns);
		w->pruned_hour = oldest_ns / (int64_t)HOUR_NS;
	}
	return err ? err : most;
}

/* From when on the newest blocks take @bytes: *@ret, INT64_MIN when all together take less. Counted once a second. */
static int newest_blocks(struct store_writer *w, uint64_t bytes, int64_t *ret)
{
	uint64_t now = clock_mono_ns();
	sqlite3_stmt *st = NULL;
	int code = SQLITE_OK;

	*ret = w->newest_from_ns;
	if (w->newest_at_ns && w->newest_bytes == bytes && now - w->newest_at_ns < NSEC_PER_SEC)
		return 0;
	w->newest_bytes = bytes;
	w->newest_at_ns = now;
	*ret = INT64_MIN;
	code = sqlite3_prepare_v2(w->s->write_db, "SELECT from_ns, " BLOCK_BYTES " FROM blocks ORDER BY from_ns DESC", -1,
				  &st, NULL);
	while ((code == SQLITE_OK || code == SQLITE_ROW) && *ret == INT64_MIN) {
		code = sqlite3_step(st);
		if (code != SQLITE_ROW)
			break;
		if ((uint64_t)sqlite3_column_int64(st, 1) >= bytes)
			*ret = sqlite3_column_int64(st, 0);
		else
			bytes -= (uint64_t)sqlite3_column_int64(st, 1);
	}
	sqlite3_finalize(st);
	w->newest_from_ns = *ret;
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_sqlite_errno(code);
}

/* Removes the oldest blocks but those that have @bytes of the room to themselves: how many, or -errno. When none may go,
 * @limit says how often that, and @remedy, is said. */
static int make_room(struct store_writer *w, uint64_t used, uint64_t bytes, struct log_limit *limit, const char *remedy)
{
	int64_t newest;
	int done = newest_blocks(w, bytes, &newest);

	if (done)
		return done;
	done = remove_blocks(w, newest, STEP_BLOCKS / 8);
	if (!done)
		log_limited(limit, 3600 * NSEC_PER_SEC, LOG_WARN,
			    "%s takes %" PRIu64 " bytes, most of it for names: the newest samples stay; %s", w->s->place,
			    used, remedy);
	return done;
}

/* Rows of names that only generations before @oldest refer to: how many were removed, or -errno. */
static int remove_names(struct store_writer *w, int64_t oldest)
{
	char sql[256];
	int removed = 0, err = store_begin(w);

	if (err)
		return err;
	for (int i = 0; i < KEPT_MAX && !err && removed < STEP_ROWS; i++) {
		const char *table = kept_tables[i];

		snprintf(sql, sizeof(sql),
			 "DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE %s < (SELECT %s FROM generations WHERE "
			 "id = "
			 "%" PRId64 ") LIMIT %d)",
			 table, table, kept_packed((enum kept)i) ? "first" : "id", table, oldest, STEP_ROWS);
		err = store_exec(w->s->write_db, sql);
		removed += err ? 0 : sqlite3_changes(w->s->write_db);
	}
	if (!err && removed < STEP_ROWS) {
		snprintf(sql, sizeof(sql), "DELETE FROM generations WHERE id < %" PRId64, oldest);
		err = store_exec(w->s->write_db, sql);
	}
	err = store_end(w, err);
	return err ? err : removed;
}

/* Names nobody refers to any more: 1 when there is more, 0, -errno. */
static int collect_names(struct store_writer *w)
{
	int64_t oldest, first;
	int err = store_get_int(w->s->write_db, "SELECT min(generation) FROM blocks INDEXED BY blocks_time",
				w->keep.generation, &oldest);

	err = err ? err : store_get_int(w->s->write_db, "SELECT min(id) FROM generations", oldest, &first);
	if (err || first >= oldest)
		return err;
	err = remove_names(w, oldest);
	return err < 0 ? err : err >= STEP_ROWS;
}

/* Begins a generation when this one holds its share of what is kept. */
static int renew_generation(struct store_writer *w, uint64_t now)
{
	const struct store_config *config = &w->s->config;
	int64_t since;
	int err = store_get_int(w->s->write_db, "SELECT max(since_ns) FROM generations", 0, &since);

	if (err)
		return err;
	if (!since) {
		/* The first one is of the store's making. */
		since = (int64_t)now;
		err = store_begin(w);
		if (!err)
			err = store_end(w, store_exec(w->s->write_db,
						      "UPDATE generations SET since_ns = CAST(unixepoch() AS INTEGER)"
						      " * 1000000000 WHERE since_ns = 0"));
		return err;
	}
	if (now < (uint64_t)since + config->keep_age_ns / GENERATIONS &&
	    w->generation_bytes < config->keep_bytes / GENERATIONS)
		return 0;
	err = store_begin(w);
	if (err)
		return err;
	err = store_end(w, keep_begin_generation(&w->keep, now));
	w->is_stale = err != 0;
	w->generation_bytes = 0;
	return err;
}

/* Free pages of the file back to the file system, some of them, where there are @least: 1 when there are more, 0, -errno. */
static int give_back(struct store_writer *w, int64_t least)
{
	int64_t free_pages = 0, left = 0;
	char sql[64];
	int err = store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, &free_pages);

	if (err || free_pages < least)
		return err;
	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", STEP_PAGES);
	err = store_begin(w);
	if (err)
		return err;
	err = store_end(w, store_exec(w->s->write_db, sql));
	err = err ? err : store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, &left);
	return err ? err : left < free_pages && left >= least;
}

/* --- a disk that is too full --- */

/* What removing all samples that may go would bring: what they take but for the newest ones' share. */
static int removable_bytes(struct store_writer *w, uint64_t *ret)
{
	const uint64_t now = clock_mono_ns(), share = LEAST_BYTES / SAMPLES_PART;
	int64_t bytes = 0;
	int err = 0;

	if (!w->counted_ns || now - w->counted_ns >= COUNT_NS) {
		err = store_get_int(w->s->write_db, "SELECT sum(" BLOCK_BYTES ") FROM blocks", 0, &bytes);
		w->block_bytes = (uint64_t)bytes;
		w->counted_ns = err ? 0 : now;
	}
	*ret = w->block_bytes > share ? w->block_bytes - share : 0;
	return err;
}

/* What the file has free, in pages, and the bytes that a shorter file and an empty log will bring once no reader holds them.
 */
static int room_at_hand(struct store_writer *w, int64_t *free_ret, int64_t *page_ret, uint64_t *coming_ret)
{
	const uint64_t bytes = store_bytes(w->s, w->s->write_db);
	int64_t pages = 0;
	int err = store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, free_ret);

	err = err ? err : store_get_int(w->s->write_db, "PRAGMA page_count", 0, &pages);
	err = err ? err : store_get_int(w->s->write_db, "PRAGMA page_size", 4096, page_ret);
	*coming_ret = !err && bytes > (uint64_t)(pages * *page_ret) ? bytes - (uint64_t)(pages * *page_ret) : 0;
	return err;
}

/* Samples would not make room enough: they stay, but the store does not grow, as fresh ones take the room of old ones. */
static int hold_size(struct store_writer *w, uint64_t used, uint64_t lacks, uint64_t removable)
{
	const uint64_t slack = used / HELD_PART > LEAST_BYTES ? used / HELD_PART : LEAST_BYTES;

	if (!w->held_bytes)
		w->held_bytes = used + slack;
	metric_set(w->s->metrics.disk_lacks, lacks - removable);
	log_limited(&w->free_limit, 3600 * NSEC_PER_SEC, LOG_WARN,
		    "%s: its disk is fuller than --keep-free allows, by %" PRIu64
		    " bytes; all samples that may go take %" PRIu64
		    ", so they stay, and the store does not grow: make room there, or lower --keep-free",
		    w->s->place, lacks, removable);
	if (used <= w->held_bytes)
		return 0;
	return make_room(w, used, LEAST_BYTES / SAMPLES_PART, &w->free_limit, "make room there, or lower --keep-free");
}

static void end_hold(struct store_writer *w)
{
	w->held_bytes = 0;
	metric_set(w->s->metrics.disk_lacks, 0);
}

/* A step on a disk that lacks some bytes: 1 when it did something, 0, -errno. What the file has free goes back before any
 * block goes, or samples would go on going though there is room; and the log does not grow meanwhile. */
static int relieve_disk(struct store_writer *w, uint64_t used, uint64_t lacks)
{
	const uint64_t before = store_bytes(w->s, w->s->write_db);
	uint64_t coming, removable, at_hand;
	int64_t free_pages = 0, page = 0, wanted;
	int done, err = room_at_hand(w, &free_pages, &page, &coming);

	err = err ? err : removable_bytes(w, &removable);
	if (err)
		return err;
	at_hand = coming + (uint64_t)(free_pages * page);
	wanted = (int64_t)(lacks / (uint64_t)page) + 1;
	wanted = wanted < STEP_PAGES ? wanted : STEP_PAGES;
	if (free_pages >= wanted || (free_pages && lacks <= at_hand)) {
		done = give_back(w, 1);
		done = done < 0 ? done : 1;
	} else if (lacks <= at_hand)
		done = 0;
	else if (lacks - at_hand > removable)
		return hold_size(w, used, lacks - at_hand, removable);
	else
		done = make_room(w, used, LEAST_BYTES / SAMPLES_PART, &w->free_limit,
				 "its disk is fuller than --keep-free allows: make room there, or lower --keep-free");
	end_hold(w);
	if (done < 0)
		return done;
	err = store_checkpoint(w, true);
	return err ? err : done > 0 || store_bytes(w->s, w->s->write_db) < before;
}

int store_prune_step(struct store_writer *w)
{
	const struct store_config *config = &w->s->config;
	uint64_t now = careful_now(w), used, lacks;
	int done = remove_blocks(w, now > config->keep_age_ns ? (int64_t)(now - config->keep_age_ns) : 0, STEP_BLOCKS);
	int err;

	if (!done && config->thin_age_ns && now > config->thin_age_ns)
		done = store_thin_step(w, now - config->thin_age_ns);
	if (done)
		return done < 0 ? done : 1;
	err = used_bytes(w, &used);
	if (err)
		return err;
	metric_set(w->s->metrics.bytes, store_bytes(w->s, w->s->write_db));
	lacks = disk_lacks(w->s);
	if (used > LEAST_BYTES && lacks)
		done = relieve_disk(w, used, lacks);
	else
		end_hold(w);
	if (!done && used > config->keep_bytes)
		done = make_room(w, used, config->keep_bytes / SAMPLES_PART, &w->size_limit, "raise --keep-size");
	if (done)
		return done < 0 ? done : 1;
	done = collect_names(w);
	if (done)
		return done;
	err = renew_generation(w, now);
	return err ? err : give_back(w, STEP_PAGES);
}
