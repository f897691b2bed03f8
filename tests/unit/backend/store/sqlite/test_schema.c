/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a store: versions that are brought forward or refused, what is damaged, the lock, modes and the reserve. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/reserve.h"
#include "backend/store/sqlite/schema.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/proto/text_profiles.h"

static char folder[64], file[96];
static struct store_error why;
static struct metrics *metrics;

static bool is_said_last(const char *text)
{
	struct log_message last;

	return log_recent(&last, 1) == 1 && strstr(last.text, text);
}

static int open_at(const char *place, bool read_only, uint64_t keep_bytes, struct store **ret)
{
	const struct store_config config = {
		.place = place, .keep_age_ns = UINT64_MAX, .keep_bytes = keep_bytes, .read_only = read_only
	};

	return store_sqlite_open(&config, read_only ? NULL : metrics, ret, &why);
}

static struct store *open_store(bool read_only)
{
	struct store *s;

	if (open_at(folder, read_only, UINT64_MAX, &s))
		fail_msg("%s", why.message);
	return s;
}

/* The store cannot be opened, for @says. */
static void refused(const char *place, bool read_only, int code, const char *says)
{
	struct store *s = NULL;
	int err = open_at(place, read_only, UINT64_MAX, &s);

	if (err != code || !strstr(why.message, says))
		fail_msg("%d, %s: not %d, %s", err, why.message, code, says);
	assert_null(s);
}

/* A store with five events. */
static int setup(void **state)
{
	AUTO(put_profiles) struct profiles *p = text_profiles("app;main@app;work@app 3\napp;main@app 2\n", 0);
	struct store *s;

	(void)state;
	strcpy(folder, "/tmp/test_schema.XXXXXX");
	metrics = metrics_new();
	if (!metrics || !mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/profiles.db", folder);
	s = open_store(false);
	store_put(s, p);
	s->close(s);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	metrics_free(metrics);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void change(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* All that the file is made of, and its version; columns that came later stand behind others. */
static void describe(char *ret, size_t size)
{
	sqlite3_stmt *st;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT group_concat(line, ' ') FROM (SELECT m.name || '.' || coalesce(c.name, "
					    "m.type) AS line FROM sqlite_master m LEFT JOIN pragma_table_info(m.name) c "
					    "ORDER BY 1) UNION ALL SELECT user_version FROM pragma_user_version",
					    -1, &st, NULL),
			 SQLITE_OK);
	for (int at = 0; sqlite3_step(st) == SQLITE_ROW;)
		at += snprintf(ret + at, size - (size_t)at, "%s\n", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static uint64_t events_of(struct store *s)
{
	struct store_status st;

	assert_int_equal(s->read->status(s, &st), 0);
	return st.events;
}

static void test_versions(void **state)
{
	static const struct {
		const char *sql;
		int code;
		const char *says;
		bool of_readers_alone;
	} cases[] = {
		{ "PRAGMA user_version = 6", -EPROTO,
		  "was written by a newer hearth (its format is 6, this hearth knows up to 5)", false },
		{ "PRAGMA user_version = 1", -EPROTO,
		  "before the first release (its format is 1, the oldest that can be read is 2)", false },
		{ "PRAGMA user_version = 0", -EPROTO, "before the first release (its format is 0", false },
		{ "PRAGMA user_version = 4", -EPROTO, "was written by an older hearth; open it once for writing", true },
		{ "PRAGMA application_id = 7", -EINVAL, "is no store of hearth; give another folder with --store", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		change(cases[i].sql);
		refused(folder, true, cases[i].code, cases[i].says);
		if (!cases[i].of_readers_alone)
			refused(folder, false, cases[i].code, cases[i].says);
		assert_int_equal(strncmp(why.message, file, strlen(file)), 0);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

/* From each older version on the file becomes as a new one is, keeps what it holds, and takes more. */
static void test_migrations(void **state)
{
	static const char *const backward[] = {
		"DROP INDEX blocks_time; ALTER TABLE blocks DROP COLUMN first_link; ALTER TABLE blocks DROP COLUMN "
		"last_link;"
		"CREATE INDEX blocks_time ON blocks(from_ns, to_ns, level, events, generation); PRAGMA user_version = 4",
		"DROP INDEX links_trace; DROP INDEX links_span; PRAGMA user_version = 3",
		"DROP TRIGGER blocks_more; DROP TRIGGER blocks_fewer; DROP TABLE rollups; PRAGMA user_version = 2",
	};
	AUTO(put_profiles) struct profiles *p = text_profiles("app;main@app;more@app 4\n", 0);
	static char whole[8192], migrated[8192];

	describe(whole, sizeof(whole));
	for (size_t steps = 1; steps <= ARRAY_LEN(backward); steps++) {
		struct store *s;

		for (size_t i = 0; i < steps; i++)
			change(backward[i]);
		describe(migrated, sizeof(migrated));
		assert_string_not_equal(migrated, whole);
		s = open_store(false);
		assert_int_equal(events_of(s), 5);
		store_put(s, p);
		s->close(s);
		describe(migrated, sizeof(migrated));
		assert_string_equal(migrated, whole);
		s = open_store(true);
		assert_int_equal(events_of(s), 9);
		s->close(s);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

static uint64_t moved_aside(struct store *s)
{
	return metric_get(store_sqlite_of(s)->metrics.moved_aside);
}

/* A damaged file stays, under another name, for who writes; readers leave it where it is. */
static void test_damaged(void **state)
{
	static const char garbage[] = "this is no database at all";
	char command[192];
	struct store *s;
	struct stat before, after;
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	close(fd);
	assert_int_equal(stat(file, &before), 0);
	refused(folder, true, -EBADMSG, "cannot open the store ");
	assert_non_null(strstr(why.message, "/profiles.db: it is damaged"));
	assert_int_equal(stat(file, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);

	s = open_store(false);
	assert_int_equal(moved_aside(s), 1);
	assert_int_equal(events_of(s), 0);
	s->close(s);
	snprintf(command, sizeof(command), "head -c 26 %s/profiles.db.damaged-* | grep -qx '%s'", folder, garbage);
	assert_int_equal(system(command), 0);
	s = open_store(false);
	assert_int_equal(moved_aside(s), 1);
	s->close(s);
}

/* One writes; who reads unshared keeps writers out. */
static void test_lock(void **state)
{
	char path[96], says[256];
	struct store *s = open_store(false), *reader = open_store(true);
	int fd;

	(void)state;
	snprintf(says, sizeof(says), "cannot keep profiles in %s: another process writes there, process %d; end it, or give",
		 folder, (int)getpid());
	refused(folder, false, -EBUSY, says);
	assert_int_equal(events_of(reader), 5);
	reader->close(reader);
	s->close(s);
	snprintf(path, sizeof(path), "%s/lock", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	refused(folder, false, -EBUSY, "another process reads there what cannot be written meanwhile");
	close(fd);
	s = open_store(false);
	s->close(s);
}

static unsigned mode_of(const char *place, const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", place, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* Folders are made for the user alone, and it is said when one is not. */
static void test_folders(void **state)
{
	static const char nothing[] = "nothing yet";
	char deep[128];
	struct store *s;

	(void)state;
	snprintf(deep, sizeof(deep), "%s/a/b", folder);
	refused(deep, true, -ENOENT, "/a/b/profiles.db: No such file");
	log_warn("%s", nothing);
	assert_int_equal(open_at(deep, false, UINT64_MAX, &s), 0);
	s->close(s);
	assert_true(is_said_last(nothing));
	assert_int_equal(mode_of(folder, "a"), 0700);
	assert_int_equal(mode_of(folder, "a/b"), 0700);
	assert_int_equal(mode_of(deep, "profiles.db"), 0600);
	assert_int_equal(mode_of(deep, "lock"), 0600);
	assert_int_equal(mode_of(deep, "reserve"), 0600);

	assert_int_equal(chmod(deep, 0710), 0);
	assert_int_equal(open_at(deep, true, UINT64_MAX, &s), 0);
	s->close(s);
	assert_true(is_said_last(nothing));
	assert_int_equal(open_at(deep, false, UINT64_MAX, &s), 0);
	s->close(s);
	assert_true(is_said_last(" has mode 0710, so that others can see what is kept: 'chmod 700 "));

	refused(file, false, -ENOTDIR, "/profiles.db: Not a directory");
	snprintf(deep, sizeof(deep), "%s/profiles.db/x", folder);
	refused(deep, false, -ENOTDIR, "cannot keep profiles in ");
}

static int64_t reserve_bytes(void)
{
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "%s/reserve", folder);
	return stat(path, &st) ? -1 : st.st_size;
}

/* A sixteenth of what the store may take, whole units of 64 kB, 4 MB at most; and none where that is nothing. */
static void test_reserve(void **state)
{
	static const struct {
		uint64_t keep_bytes;
		int64_t wanted;
	} cases[] = {
		{ UINT64_MAX, 4 << 20 },      { 64 << 20, 4 << 20 }, { (64 << 20) - 1, (4 << 20) - (64 << 10) },
		{ (16 << 20) + 15, 1 << 20 }, { 1 << 20, 64 << 10 }, { 65 << 20, 4 << 20 },
	};
	struct store_sqlite *q;
	struct store *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(open_at(folder, false, cases[i].keep_bytes, &s), 0);
		q = store_sqlite_of(s);
		assert_int_equal(reserve_bytes(), cases[i].wanted);
		assert_int_equal(q->reserve_bytes, cases[i].wanted);
		assert_false(q->is_reserve_used);
		assert_int_equal(store_reserve_lacks(q), 0);
		s->close(s);
	}
	assert_int_equal(open_at(folder, false, 16 << 20, &s), 0);
	q = store_sqlite_of(s);
	assert_true(store_may_be_written(q));
	assert_true(store_reserve_free(q));
	assert_int_equal(reserve_bytes(), -1);
	assert_int_equal(q->reserve_bytes, 0);
	assert_true(q->is_reserve_used);
	assert_int_equal(store_reserve_lacks(q), (1 << 20) + (1 << 16));
	assert_false(store_reserve_free(q)); /* it is gone */
	store_reserve_make(q);
	assert_int_equal(reserve_bytes(), 1 << 20);
	assert_int_equal(q->reserve_bytes, 1 << 20);
	assert_false(q->is_reserve_used);
	assert_true(is_said_last(": there is room again, samples are kept"));
	s->close(s);
	assert_int_equal(open_at(folder, true, 16 << 20, &s), 0);
	assert_false(store_reserve_free(store_sqlite_of(s)));
	assert_int_equal(store_sqlite_of(s)->reserve_bytes, 1 << 20);
	s->close(s);
	assert_int_equal(reserve_bytes(), 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_migrations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reserve, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
