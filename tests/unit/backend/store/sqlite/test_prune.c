/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: what it removes of the SQLite store, by age, to the block, and what it remembers of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/sqlite/write.h"
#include "backend/store/store_maintain.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define HOUR (3600 * NSEC_PER_SEC)

static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

struct fixture {
	char folder[64];
	struct metrics *metrics;
	struct store *s;
	uint64_t now_ns;
};

static void open_with_size(struct fixture *f, uint64_t keep_age_ns, uint64_t keep_bytes)
{
	struct store_config config = { .place = f->folder, .keep_age_ns = keep_age_ns, .keep_bytes = keep_bytes };
	struct store_error err;

	if (store_sqlite_open(&config, f->metrics, &f->s, &err))
		fail_msg("%s", err.message);
}

static void open_store(struct fixture *f, uint64_t keep_age_ns)
{
	open_with_size(f, keep_age_ns, UINT64_MAX);
}

static int setup(void **state)
{
	static struct fixture f;
	struct timespec now;

	snprintf(f.folder, sizeof(f.folder), "/tmp/hearth-prune-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	clock_gettime(CLOCK_REALTIME, &now);
	f.now_ns = (uint64_t)now.tv_sec * NSEC_PER_SEC;
	f.metrics = metrics_new();
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	f->s->close(f->s);
	metrics_free(f->metrics);
	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	return system(command);
}

/* A batch of @count events from @time_ns on, which is a block. */
static void put(struct fixture *f, uint64_t time_ns, unsigned count)
{
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, "main"), 0, 0, 10), 12, 0 };
	int32_t main_ = builder_location(b, 0, 0x1100, &line, 1, NULL, 0), top = builder_stack(b, &main_, 1);
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &off_cpu);
	struct profiles *p;

	for (unsigned i = 0; i < count; i++)
		builder_event(b, profile, top, NULL, 0, 0, time_ns + i, true, 1);
	assert_int_equal(builder_freeze(b, time_ns, time_ns + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	store_put(f->s, p);
	profiles_put(p);
}

static int64_t number(struct fixture *f, const char *sql)
{
	int64_t ret;

	assert_int_equal(store_get_int(store_sqlite_of(f->s)->read_db, sql, -1, &ret), 0);
	return ret;
}

static uint64_t pruned(struct fixture *f)
{
	return metric_get(store_sqlite_of(f->s)->metrics.pruned_events);
}

/* Two old blocks go, of a day ago the one, the other older than asked by minutes; two younger ones stay. */
static void test_age(void **state)
{
	struct fixture *f = *state;

	open_store(f, UINT64_MAX);
	put(f, f->now_ns - 24 * HOUR, 3);
	/* In hours of their own: blocks of one hour that is over may be merged into one that is kept whole. */
	put(f, f->now_ns - 4 * HOUR - HOUR / 6, 5);
	put(f, f->now_ns - 2 * HOUR - HOUR / 6, 7);
	put(f, f->now_ns - 60 * NSEC_PER_SEC, 11);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(events) FROM blocks"), 26);
	assert_int_equal(pruned(f), 0);
	f->s->close(f->s);
	open_store(f, 3 * HOUR);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(events) FROM blocks"), 18);
	assert_int_equal(pruned(f), 8);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(events) FROM blocks"), 18);
	assert_int_equal(pruned(f), 8);
}

/* The hour that it has come to is known also after a single block went: no hour of before is rolled up. */
static void test_hour(void **state)
{
	struct fixture *f = *state;
	const int64_t hour = (int64_t)((f->now_ns - 60 * NSEC_PER_SEC) / HOUR);

	open_store(f, 3 * HOUR);
	put(f, f->now_ns - 60 * NSEC_PER_SEC, 11);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(store_sqlite_of(f->s)->writer->pruned_hour, -1);
	put(f, f->now_ns - 24 * HOUR, 3);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(pruned(f), 3);
	assert_int_equal(store_sqlite_of(f->s)->writer->pruned_hour, hour);
}

/* A block is young until its time has come, also one of the last time that a store knows: it is not merged yet. */
static void test_future(void **state)
{
	struct fixture *f = *state;

	open_store(f, UINT64_MAX);
	put(f, INT64_MAX, 1);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	put(f, f->now_ns, 1);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(level = 0) FROM blocks"), 2);
	assert_int_equal(number(f, "SELECT count(*) FROM blocks"), 2);
}

/* Does @sql with the store's file while nobody has it open. */
static void change(struct fixture *f, const char *sql)
{
	char path[96];
	sqlite3 *db;

	f->s->close(f->s);
	snprintf(path, sizeof(path), "%s/profiles.db", f->folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(store_exec(db, sql), 0);
	sqlite3_close(db);
}

/* The oldest blocks go until the rest is within the size, and no more of them. */
static void test_size(void **state)
{
	struct fixture *f = *state;

	open_store(f, UINT64_MAX);
	for (unsigned i = 0; i < 4; i++)
		put(f, f->now_ns - (9 - 2 * i) * HOUR, 1u << i);
	change(f, "UPDATE blocks SET times = zeroblob(350000), level = 9");
	open_with_size(f, UINT64_MAX, 1 << 20);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(events) FROM blocks"), 4 + 8);
	assert_int_equal(pruned(f), 1 + 2);
	assert_true(store_bytes(store_sqlite_of(f->s), store_sqlite_of(f->s)->read_db) <= 1 << 20);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(pruned(f), 1 + 2);
}

static bool is_said(const char *text)
{
	struct log_message said[8];
	bool is = false;

	for (size_t i = log_recent(said, ARRAY_LEN(said)); i > 0; i--)
		is |= strstr(said[i - 1].text, text) != NULL;
	return is;
}

/* Where names fill the room, the newest samples keep a quarter of it, and it is said what to do. */
static void test_names_fill(void **state)
{
	struct fixture *f = *state;

	open_store(f, UINT64_MAX);
	put(f, f->now_ns - 5 * HOUR, 1);
	put(f, f->now_ns - 3 * HOUR, 2);
	put(f, f->now_ns - HOUR, 4);
	change(f, "UPDATE blocks SET times = zeroblob(200000), level = 9;"
		  "INSERT INTO strings VALUES(1000000, hex(zeroblob(1000000)))");
	open_with_size(f, UINT64_MAX, 1 << 20);
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
	assert_int_equal(number(f, "SELECT sum(events) FROM blocks"), 2 + 4); /* with the older, more than the quarter */
	assert_true(is_said("most of it for names: the newest samples stay; raise --keep-size"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hour, setup, teardown),
		cmocka_unit_test_setup_teardown(test_future, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_fill, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
