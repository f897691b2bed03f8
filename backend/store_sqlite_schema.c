/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's files: the folder, the lock that keeps a second writer out, the schema and its versions, and what is done
 * with a file that is damaged. docs/store.md describes the schema to people who read it with sqlite3.
 *
 * Invariant: who writes holds an exclusive flock on DIR/lock for as long as the store is open. A damaged file is renamed,
 * never removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/store_sqlite.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define FILE_NAME "profiles.db"

enum { APPLICATION_ID = 0x68727468 /* "hrth" */ };

/* Since version 3: what an hour's blocks add up to, for as long as they stay the same. */
#define ROLLUPS                                                                                                            \
	"CREATE TABLE rollups(id INTEGER PRIMARY KEY, hour INTEGER NOT NULL, from_ns INTEGER NOT NULL,"                    \
	" to_ns INTEGER NOT NULL, events INTEGER NOT NULL, head BLOB NOT NULL, stacks BLOB NOT NULL, cells BLOB NOT NULL)" \
	" STRICT;"                                                                                                         \
	"CREATE INDEX rollups_hour ON rollups(hour, from_ns, to_ns);"                                                      \
	"CREATE TRIGGER blocks_more AFTER INSERT ON blocks BEGIN"                                                          \
	" DELETE FROM rollups WHERE hour = NEW.from_ns / 3600000000000; END;"                                              \
	"CREATE TRIGGER blocks_fewer AFTER DELETE ON blocks BEGIN"                                                         \
	" DELETE FROM rollups WHERE hour = OLD.from_ns / 3600000000000; END;"

static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE strings(id INTEGER PRIMARY KEY, text ANY NOT NULL) STRICT;"
	/* lists of numbers, see store_rows.c */
	"CREATE TABLE attributes(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE sets(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE series(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE links(id INTEGER PRIMARY KEY, trace BLOB NOT NULL, span BLOB NOT NULL) STRICT;"
	"CREATE TABLE functions(id INTEGER PRIMARY KEY, name INTEGER NOT NULL, system_name INTEGER NOT NULL,"
	" file INTEGER NOT NULL, start_line INTEGER NOT NULL) STRICT;"
	"CREATE TABLE mappings(id INTEGER PRIMARY KEY, path INTEGER NOT NULL, memory_start INTEGER NOT NULL,"
	" memory_limit INTEGER NOT NULL, file_offset INTEGER NOT NULL, attributes INTEGER NOT NULL) STRICT;"
	"CREATE TABLE frames(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE nodes(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	/* shape: 1 time stamps, 2 values, 3 both; message: an OTLP message of the profile without samples and resource */
	"CREATE TABLE origins(id INTEGER PRIMARY KEY, sample_type TEXT NOT NULL, sample_unit TEXT NOT NULL,"
	" period_type TEXT NOT NULL, period_unit TEXT NOT NULL, period INTEGER NOT NULL, shape INTEGER NOT NULL,"
	" attributes INTEGER NOT NULL, message BLOB NOT NULL) STRICT;"
	"CREATE TABLE blocks(id INTEGER PRIMARY KEY, level INTEGER NOT NULL, from_ns INTEGER NOT NULL,"
	" to_ns INTEGER NOT NULL, events INTEGER NOT NULL, generation INTEGER NOT NULL, head BLOB NOT NULL, stacks BLOB NOT "
	"NULL, cells BLOB NOT NULL,"
	" cpus BLOB NOT NULL, labels BLOB NOT NULL, weights BLOB NOT NULL, times BLOB NOT NULL, links BLOB NOT NULL) STRICT;"
	"CREATE INDEX blocks_time ON blocks(from_ns, to_ns, level, events, generation);" ROLLUPS
	/* what frames without a function are called, found out later */
	"CREATE TABLE names(build_id TEXT NOT NULL, address INTEGER NOT NULL, function TEXT NOT NULL, system_name TEXT NOT "
	"NULL,"
	" file TEXT NOT NULL, line INTEGER NOT NULL, start_line INTEGER NOT NULL, PRIMARY KEY(build_id, address))"
	" STRICT, WITHOUT ROWID;"
	/* the first number of each table that this generation gave out; its blocks hold no smaller ones */
	"CREATE TABLE generations(id INTEGER PRIMARY KEY, since_ns INTEGER NOT NULL, strings INTEGER NOT NULL,"
	" attributes INTEGER NOT NULL, sets INTEGER NOT NULL, links INTEGER NOT NULL, functions INTEGER NOT NULL,"
	" mappings INTEGER NOT NULL, frames INTEGER NOT NULL, nodes INTEGER NOT NULL, origins INTEGER NOT NULL,"
	" series INTEGER NOT NULL) STRICT;"
	"INSERT INTO generations VALUES(1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);"
	"PRAGMA application_id = 1752331368;"
	"PRAGMA user_version = 3;"
	"COMMIT;";

_Static_assert(APPLICATION_ID == 1752331368 && STORE_SCHEMA_VERSION == 3, "as in the schema");

/* What leads from version i to i + 1; older ones than the first of them were never released. */
enum { OLDEST_VERSION = 2 };

static const char *const migrations[STORE_SCHEMA_VERSION] = {
	[2] = "BEGIN IMMEDIATE;" ROLLUPS "PRAGMA user_version = 3; COMMIT;",
};

int store_sqlite_errno(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_INTERRUPT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

int store_exec(sqlite3 *db, const char *sql)
{
	return store_sqlite_errno(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int store_get_int(sqlite3 *db, const char *sql, int64_t fallback, int64_t *ret)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	*ret = fallback;
	if (code == SQLITE_OK)
		code = sqlite3_step(st);
	if (code == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
		*ret = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return store_sqlite_errno(code);
}

__attribute__((format(printf, 3, 4))) static int fail(struct store_error *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return code;
}

/* --- folder and lock --- */

/* The folder @path, its parents with it, mode 0700. 0 or -errno. */
static int make_folder(const char *path)
{
	AUTO_FREE char *part = strdup(path);
	struct stat st;

	if (!part)
		return -ENOMEM;
	for (char *slash = part + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		if (mkdir(part, 0700) && errno != EEXIST && errno != EROFS)
			return -errno;
		*slash = '/';
	}
	if (mkdir(part, 0700) && errno != EEXIST)
		return stat(part, &st) ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	return stat(part, &st) ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int take_lock(struct store_sqlite *s, struct store_error *err)
{
	char path[PATH_MAX], pid[32] = "";
	ssize_t n;

	snprintf(path, sizeof(path), "%s/lock", s->place);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0) {
		int why = errno;

		return fail(err, -why, "cannot keep profiles in %s: %s: %s", s->place, path, strerror(why));
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		n = pread(s->lock_fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
		return fail(err, -EBUSY,
			    "cannot keep profiles in %s: another process writes there%s%s; end it, or give another folder "
			    "with --store",
			    s->place, pid[0] ? ", " : "", pid);
	}
	n = snprintf(pid, sizeof(pid), "process %d\n", (int)getpid());
	if (ftruncate(s->lock_fd, 0) || pwrite(s->lock_fd, pid, (size_t)n, 0) != n)
		log_debug("store: cannot write %s: %s", path, strerror(errno)); /* the lock holds without it */
	return 0;
}

/* --- the file --- */

/* Renames the file and its log to NAME.damaged-TIME. 0 or -errno. */
static int move_aside(struct store_sqlite *s, const char *why)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char from[PATH_MAX], to[PATH_MAX];
	const uint64_t now = clock_unix_ns() / NSEC_PER_SEC;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		snprintf(from, sizeof(from), "%s%s", s->path, suffixes[i]);
		snprintf(to, sizeof(to), "%s.damaged-%" PRIu64 "%s", s->path, now, suffixes[i]);
		if (rename(from, to) && (i == 0 || errno != ENOENT))
			return -errno;
	}
	metric_add(s->metrics.moved_aside, 1);
	log_error("the store %s is damaged (%s); it was moved to %s.damaged-%" PRIu64 " and a new one begun", s->path, why,
		  s->path, now);
	return 0;
}

static int set_up(sqlite3 *db, bool is_writer)
{
	int err;

	sqlite3_busy_timeout(db, STORE_BUSY_MS);
	err = store_exec(db, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;"
			     "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = OFF;");

	/* A log begins the file; what is given back of it must be settled before. */
	if (!err && is_writer)
		err = store_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = "
				     "NORMAL; PRAGMA wal_autocheckpoint = 0;"
				     "PRAGMA journal_size_limit = 16777216;");
	return err;
}

/* Makes the schema, or brings an older one forward. */
static int check_version(struct store_sqlite *s, sqlite3 *db, struct store_error *err)
{
	int64_t version, application, tables;
	int code = store_get_int(db, "PRAGMA user_version", 0, &version);

	if (!code)
		code = store_get_int(db, "PRAGMA application_id", 0, &application);
	if (!code)
		code = store_get_int(db, "SELECT count(*) FROM sqlite_master", 0, &tables);
	if (code)
		return code;
	if (!version && !tables && !s->config.read_only)
		return store_exec(db, schema);
	if (application != APPLICATION_ID)
		return fail(err, -EINVAL, "%s is no store of hearth; give another folder with --store", s->path);
	if (version > STORE_SCHEMA_VERSION)
		return fail(err, -EPROTO,
			    "%s was written by a newer hearth (its format is %" PRId64
			    ", this hearth knows up to %d); use that one, or give another folder with --store",
			    s->path, version, STORE_SCHEMA_VERSION);
	if (version < OLDEST_VERSION)
		return fail(err, -EPROTO,
			    "%s was written by a hearth from before the first release (its format is %" PRId64
			    ", the oldest that can be read is %d); remove it, or give another folder with --store",
			    s->path, version, OLDEST_VERSION);
	if (version < STORE_SCHEMA_VERSION && s->config.read_only)
		return fail(err, -EPROTO, "%s was written by an older hearth; open it once for writing to bring it forward",
			    s->path);
	for (; !code && version < STORE_SCHEMA_VERSION; version++)
		code = store_exec(db, migrations[version]);
	return code;
}

static int open_db(struct store_sqlite *s, bool is_writer, sqlite3 **ret)
{
	int flags = (is_writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
	int err = store_sqlite_errno(sqlite3_open_v2(s->path, ret, flags, NULL));

	return err ? err : set_up(*ret, is_writer);
}

/*
 * The file exists with mode 0600 before SQLite opens it; its log gets the same mode. It must be closed before, too: closing
 * any descriptor of a file drops all locks that the process has on it (fcntl(2), "Advisory record locking"), SQLite's as
 * well, and another program that looks into the store would take itself for the last one, and remove the log that we go on
 * writing to.
 */
static int make_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : 0;
}

static int open_writer(struct store_sqlite *s, struct store_error *err)
{
	int code = make_file(s->path);

	code = code ? code : open_db(s, true, &s->write_db);
	return code ? code : check_version(s, s->write_db, err);
}

static int open_on_disk(struct store_sqlite *s, struct store_error *err)
{
	int code = 0;

	if (!s->config.read_only) {
		code = make_folder(s->place);
		if (code)
			return fail(err, code, "cannot keep profiles in %s: %s", s->place, strerror(-code));
		code = take_lock(s, err);
		if (code)
			return code;
		code = open_writer(s, err);
		if (code == -EBADMSG) {
			AUTO_FREE char *why = strdup(sqlite3_errmsg(s->write_db));

			sqlite3_close(MOVE(s->write_db));
			code = move_aside(s, why ? why : "");
			code = code ? code : open_writer(s, err);
		}
	}
	code = code ? code : open_db(s, false, &s->read_db);
	if (!code && s->config.read_only)
		code = check_version(s, s->read_db, err);
	if (code && !err->message[0])
		fail(err, code, "cannot open the store %s: %s", s->path,
		     code == -EBADMSG ? "it is damaged" : strerror(-code));
	return code;
}

int store_files_open(struct store_sqlite *s, struct store_error *err)
{
	char path[PATH_MAX];
	int code;

	err->message[0] = '\0';
	s->lock_fd = -1;
	s->in_memory = !strcmp(s->config.place, ":memory:");
	s->place = strdup(s->config.place);
	snprintf(path, sizeof(path), "%s/" FILE_NAME, s->config.place);
	s->path = strdup(s->in_memory ? ":memory:" : path);
	if (!s->place || !s->path)
		return fail(err, -ENOMEM, "cannot open the store: %s", strerror(ENOMEM));
	if (!s->in_memory)
		return open_on_disk(s, err);
	code = store_sqlite_errno(
		sqlite3_open_v2(":memory:", &s->write_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL));
	code = code ? code : set_up(s->write_db, false);
	code = code ? code : check_version(s, s->write_db, err);
	s->read_db = s->write_db;
	return code ? fail(err, code, "cannot make a store in memory: %s", strerror(-code)) : 0;
}

int store_files_replace(struct store_sqlite *s, struct store_error *err)
{
	int code;

	err->message[0] = '\0';
	if (s->in_memory)
		return fail(err, -EBADMSG, "the store in memory is damaged");
	sqlite3_close(MOVE(s->read_db));
	sqlite3_close(MOVE(s->write_db));
	code = move_aside(s, "a page of it is not what was written");
	code = code && code != -ENOENT ? code : open_writer(s, err);
	code = code ? code : open_db(s, false, &s->read_db);
	return code && !err->message[0] ? fail(err, code, "cannot begin the store %s anew: %s", s->path, strerror(-code))
					: code;
}

void store_files_close(struct store_sqlite *s)
{
	if (s->read_db != s->write_db)
		sqlite3_close(s->read_db);
	sqlite3_close(s->write_db);
	s->read_db = s->write_db = NULL;
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->place);
	free(s->path);
}
