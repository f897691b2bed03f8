/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: old samples are thinned, and samples that are too old, beyond the size, or take the last free disk are removed,
 * oldest blocks first, some blocks a step. A part of the size is reserved for the newest samples: if names fill the rest,
 * removing these would not help. Samples are not removed either for a disk that would be too full without any of them: then
 * the store does not grow. Names, frames and stacks are of generations: a new one begins several times within the store's
 * age or size, refers to nothing of those before, and the numbers of a generation go when the last block that was written in
 * it has gone.
 *
 * Invariant: a step is one short transaction; nothing is removed because the clock was set forward while we run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "backend/store/sqlite/reserve.h"
#include "backend/store/sqlite/write.h"
#include "base/clock.h"

enum {
	STEP_BLOCKS = 32,
	STEP_ROWS = 4096,      /* of names */
	STEP_PAGES = 512,      /* given back to the file system */
	GENERATIONS = 8,       /* within the age or the size that is kept */
	LEAST_BYTES = 1 << 20, /* a full disk is not our doing below this */
	LITTLE_PART = 16,      /* of a step at most, with nothing but the reserve to work with */
	SAMPLES_PART = 4,      /* one of so many of the size is the samples' */
	HELD_PART = 16,	       /* by one of so many a store may grow that is not to grow */
};

/* Bytes of a block's row. */
#define BLOCK_BYTES                                                                                                        \
	"length(head) + length(stacks) + length(cells) + length(cpus) + length(labels) + length(weights) + length(times) " \
	"+ "                                                                                                               \
	"length(links)"
#define COUNT_NS (10 * NSEC_PER_SEC)  /* all blocks' bytes are counted anew */
#define DOUBT_NS (600 * NSEC_PER_SEC) /* after the start, in which a wrong clock may be set right */

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
	if (w->s->stuck || store_get_int(w->s->write_db, "SELECT max(to_ns) FROM blocks", 0, &w->start_newest_ns))
		w->start_newest_ns = 0;
}

/* Unix time, but not later than the clock would show if nobody had set it since the start. */
static uint64_t careful_now(struct store_writer *w)
{
	uint64_t now = clock_unix_ns(), boot = boot_ns(), unset;

	unset = w->start_unix_ns + (boot - w->start_boot_ns);
	return now < unset ? now : unset;
}

/* A start that finds all samples too old may have a wrong clock, as of a machine without a battery: for a while nothing is
 * done by age, unless somebody asks for it. */
static bool is_age_doubtful(struct store_writer *w)
{
	const uint64_t age = w->s->config.keep_age_ns, newest = (uint64_t)w->start_newest_ns;

	if (w->is_asked || !newest || w->start_unix_ns <= newest || w->start_unix_ns - newest <= age ||
	    boot_ns() - w->start_boot_ns >= DOUBT_NS)
		return false;
	log_limited(&w->doubt_limit, DOUBT_NS, LOG_WARN,
		    "%s: by this machine's clock all samples are older than --keep-age: they are removed in 10 minutes, "
		    "unless the clock is set right before",
		    w->s->place);
	return true;
}

/* Whether the files take more than they are to, the log included. */
static bool is_too_large(const struct store_writer *w)
{
	return !w->s->in_memory && store_bytes(w->s, w->s->write_db) > w->s->config.keep_bytes;
}

/* Bytes in use: what is free within the file does not count. */
static int used_bytes(struct store_writer *w, uint64_t *ret)
{
	struct store_pages pages = { 0 };
	int err = store_count_pages(w->s->write_db, &pages);

	*ret = (uint64_t)((pages.count - pages.free) * pages.bytes);
	return err;
}

/* The bytes that are lacking to the free space wanted where the store is, with those of the reserve. */
static uint64_t disk_lacks(const struct store_sqlite *s)
{
	const double part = s->config.keep_free_part;
	struct statvfs fs;
	double wanted, there;

	if (s->in_memory || part <= 0 || statvfs(s->place, &fs) || !fs.f_blocks)
		return 0;
	wanted = part * (double)fs.f_blocks * (double)fs.f_frsize + (double)store_reserve_lacks(s);
	there = (double)fs.f_bavail * (double)fs.f_frsize;
	return there < wanted ? (uint64_t)(wanted - there) + 1 : 0;
}

bool store_disk_is_full(const struct store_sqlite *s)
{
	return disk_lacks(s) > 0;
}

/* The part of @most that a step does at once: its log must find room. */
static int step_of(const struct store_writer *w, int most)
{
	if (!w->s->is_reserve_used)
		return most;
	return most > w->little_part ? most / w->little_part : 1;
}

/* Removes the oldest blocks that end before @before_ns, some of them: how many, or -errno. */
static int remove_blocks(struct store_writer *w, int64_t before_ns, int most)
{
	static const char which[] =
		"FROM blocks WHERE id IN (SELECT id FROM blocks INDEXED BY blocks_time WHERE to_ns < %" PRId64
		" ORDER BY from_ns LIMIT %d)";
	char where[256], sql[512];
	int64_t events = 0, bytes = 0, oldest_ns;
	int err = store_begin(w->s);

	snprintf(where, sizeof(where), which, before_ns, most);
	snprintf(sql, sizeof(sql), "SELECT sum(events) %s", where);
	err = err ? err : store_get_int(w->s->write_db, sql, 0, &events);
	snprintf(sql, sizeof(sql), "SELECT sum(" BLOCK_BYTES ") %s", where);
	err = err ? err : store_get_int(w->s->write_db, sql, 0, &bytes);
	snprintf(sql, sizeof(sql), "DELETE %s", where);
	err = err ? err : store_exec(w->s->write_db, sql);
	most = sqlite3_changes(w->s->write_db);
	err = store_end(w->s, err);
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

/* *@ret: the time from which on the newest blocks take @bytes, INT64_MIN when all together take less. Counted once a second.
 */
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

/* Removes the oldest blocks, but not the newest that have @bytes of the room to themselves; only one when little is lacking.
 * Returns how many, or -errno. When none may go, it warns with @remedy, as often as @limit allows. */
static int make_room(struct store_writer *w, uint64_t used, uint64_t lacks, uint64_t bytes, struct log_limit *limit,
		     const char *remedy)
{
	const int most = lacks < LEAST_BYTES || w->s->is_reserve_used ? 1 : STEP_BLOCKS / 8;
	int64_t newest;
	int done = newest_blocks(w, bytes, &newest);

	if (done)
		return done;
	done = remove_blocks(w, newest, most);
	if (!done)
		log_limited(limit, 3600 * NSEC_PER_SEC, LOG_WARN,
			    "%s takes %" PRIu64 " bytes, most of it for names: the newest samples stay; %s", w->s->place,
			    used, remedy);
	return done;
}

/* Removes rows of names that only generations before @oldest refer to: returns how many, or -errno. */
static int remove_names(struct store_writer *w, int64_t oldest)
{
	char sql[256];
	const int most = step_of(w, STEP_ROWS);
	int removed = 0, err = store_begin(w->s);

	for (int i = 0; i < KEPT_MAX && !err && removed < most; i++) {
		const char *table = kept_tables[i];

		snprintf(sql, sizeof(sql),
			 "DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE %s < (SELECT %s FROM generations WHERE "
			 "id = "
			 "%" PRId64 ") LIMIT %d)",
			 table, table, kept_packed((enum kept)i) ? "first" : "id", table, oldest, most);
		err = store_exec(w->s->write_db, sql);
		removed += err ? 0 : sqlite3_changes(w->s->write_db);
	}
	if (!err && removed < most) {
		snprintf(sql, sizeof(sql), "DELETE FROM generations WHERE id < %" PRId64, oldest);
		err = store_exec(w->s->write_db, sql);
	}
	err = store_end(w->s, err);
	return err ? err : removed;
}

/* Removes names that nobody refers to any more: 1 when there are more, 0, -errno. */
static int collect_names(struct store_writer *w)
{
	int64_t oldest, first;
	int err = store_get_int(w->s->write_db, "SELECT min(generation) FROM blocks INDEXED BY blocks_time",
				w->keep.generation, &oldest);

	err = err ? err : store_get_int(w->s->write_db, "SELECT min(id) FROM generations", oldest, &first);
	if (err || first >= oldest)
		return err;
	err = remove_names(w, oldest);
	return err < 0 ? err : err >= step_of(w, STEP_ROWS);
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
		return store_write(w->s, "UPDATE generations SET since_ns = CAST(unixepoch() AS INTEGER) * 1000000000 "
					 "WHERE since_ns = 0");
	}
	if (now < (uint64_t)since + config->keep_age_ns / GENERATIONS &&
	    w->generation_bytes < config->keep_bytes / GENERATIONS)
		return 0;
	err = store_begin(w->s);
	if (err)
		return err;
	err = store_end(w->s, keep_begin_generation(&w->keep, now));
	w->is_stale = err != 0;
	w->generation_bytes = 0;
	return err;
}

/* Gives some free pages of the file back to the file system, when there are @least: 1 when there are more, 0, -errno. */
static int give_back(struct store_writer *w, int64_t least)
{
	int64_t free_pages = 0, left = 0;
	char sql[64];
	int err = store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, &free_pages);

	if (err || free_pages < least)
		return err;
	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", step_of(w, STEP_PAGES));
	err = store_write(w->s, sql);
	err = err ? err : store_get_int(w->s->write_db, "PRAGMA freelist_count", 0, &left);
	return err ? err : left < free_pages && left >= least;
}

/* --- a disk that is too full --- */

/* *@ret: the bytes freed by removing all samples that may go: their size without the newest ones' share. */
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

/* Counts the pages of the file, and the bytes that a shorter file and an empty log will free once no reader holds them.
 */
static int room_at_hand(struct store_writer *w, struct store_pages *ret, uint64_t *coming_ret)
{
	const uint64_t bytes = store_bytes(w->s, w->s->write_db) - w->s->reserve_bytes;
	int err = store_count_pages(w->s->write_db, ret);
	const uint64_t in_file = (uint64_t)(ret->count * ret->bytes);

	*coming_ret = !err && bytes > in_file ? bytes - in_file : 0;
	return err;
}

/* Used when removing samples would not make enough room: they stay, but the store does not grow, as fresh ones take the room
 * of old ones. */
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
	return make_room(w, used, used - w->held_bytes, LEAST_BYTES / SAMPLES_PART, &w->free_limit,
			 "make room there, or lower --keep-free");
}

static void end_hold(struct store_writer *w)
{
	w->held_bytes = 0;
	metric_set(w->s->metrics.disk_lacks, 0);
}

/* A step on a disk that lacks some bytes: 1 when it did something, 0, -errno. The file's free pages are given back before
 * any block is removed, or samples would go though there is room; and the log does not grow meanwhile. */
static int relieve_disk(struct store_writer *w, uint64_t used, uint64_t lacks)
{
	const uint64_t before = store_bytes(w->s, w->s->write_db);
	uint64_t coming, removable, at_hand;
	struct store_pages pages = { 0 };
	int64_t wanted;
	int done, err = room_at_hand(w, &pages, &coming);

	err = err ? err : removable_bytes(w, &removable);
	if (err)
		return err;
	at_hand = coming + (uint64_t)(pages.free * pages.bytes);
	wanted = (int64_t)(lacks / (uint64_t)pages.bytes) + 1;
	wanted = wanted < STEP_PAGES ? wanted : STEP_PAGES;
	if (pages.free >= wanted || (pages.free && lacks <= at_hand)) {
		done = give_back(w, 1);
		done = done < 0 ? done : 1;
	} else if (lacks <= at_hand)
		done = 0;
	else if (lacks - at_hand > removable)
		return hold_size(w, used, lacks - at_hand, removable);
	else
		done = make_room(w, used, lacks - at_hand, LEAST_BYTES / SAMPLES_PART, &w->free_limit,
				 "its disk is fuller than --keep-free allows: make room there, or lower --keep-free");
	end_hold(w);
	if (done < 0)
		return done;
	err = store_checkpoint(w->s, CHECKPOINT_SHRINK);
	return err ? err : done > 0 || store_bytes(w->s, w->s->write_db) < before;
}

/* Of a small store no samples go for a full disk, but what its file does not use is given back. 1: there is more; 0;
 * -errno. */
static int give_back_all(struct store_writer *w)
{
	struct store_pages pages = { 0 };
	int done, err = store_count_pages(w->s->write_db, &pages);

	if (err || !pages.free)
		return err;
	done = give_back(w, 1);
	err = done < 0 ? done : store_checkpoint(w->s, CHECKPOINT_SHRINK);
	return err ? err : done;
}

static int prune_once(struct store_writer *w)
{
	const struct store_config *config = &w->s->config;
	uint64_t now = careful_now(w), used, lacks;
	int done = 0, err;

	if (!is_age_doubtful(w)) {
		done = remove_blocks(w, now > config->keep_age_ns ? (int64_t)(now - config->keep_age_ns) : 0,
				     step_of(w, STEP_BLOCKS));
		/* Thinning writes before it removes. */
		if (!done && config->thin_age_ns && now > config->thin_age_ns && !w->s->is_reserve_used)
			done = store_thin_step(w, now - config->thin_age_ns);
	}
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
	if (used <= LEAST_BYTES && lacks)
		done = give_back_all(w);
	if (!done && used + w->s->reserve_bytes > config->keep_bytes)
		done = make_room(w, used, used + w->s->reserve_bytes - config->keep_bytes, config->keep_bytes / SAMPLES_PART,
				 &w->size_limit, "raise --keep-size");
	if (done)
		return done < 0 ? done : 1;
	done = collect_names(w);
	if (done)
		return done;
	err = renew_generation(w, now);
	return err ? err : give_back(w, w->s->is_reserve_used || is_too_large(w) ? 1 : STEP_PAGES);
}

/*
 * A step with the room that the reserve left, as small as it must be. Each begins with an empty log: what is in it always
 * finds room in the file, and then the room that it took is there to work with. A step that finds too little all the same
 * has left nothing behind, and half of it is tried.
 */
static int prune_in_little_room(struct store_writer *w)
{
	int done;

	w->little_part = LITTLE_PART / 2;
	do {
		w->little_part *= 2;
		(void)store_checkpoint(w->s, CHECKPOINT_SHRINK);
		done = prune_once(w);
	} while (done == -ENOSPC && w->little_part < STEP_ROWS);
	return done;
}

int store_prune_step(struct store_writer *w)
{
	int done = w->s->is_reserve_used ? -ENOSPC : prune_once(w);

	if (done == -ENOSPC && (w->s->is_reserve_used || store_reserve_free(w->s)))
		done = prune_in_little_room(w);
	if (w->s->is_reserve_used || is_too_large(w))
		(void)store_checkpoint(w->s, CHECKPOINT_SHRINK);
	if (done <= 0)
		store_reserve_make(w->s);
	return done;
}
