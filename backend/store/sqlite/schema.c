/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's files: the folder, the lock that keeps a second writer out, the schema and its versions, and what is done with
 * a file that is damaged. docs/store.md describes the schema to people who read it with sqlite3.
 *
 * Invariant: a writer holds an exclusive flock on DIR/lock for as long as the store is open. A damaged file is renamed,
 * never removed.
 */
#include "backend/store/sqlite/schema.h"

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

#include "backend/store/sqlite/reserve.h"
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

/* Since version 4: the links of a trace, and of a span. */
#define LINK_INDEXES                                              \
	"CREATE INDEX IF NOT EXISTS links_trace ON links(trace);" \
	"CREATE INDEX IF NOT EXISTS links_span ON links(span);"

/* Since version 5 a block says of which links its events may be. */
#define BLOCKS_TIME "CREATE INDEX blocks_time ON blocks(from_ns, to_ns, level, events, generation, first_link, last_link);"

static const char schema[] =
	"CREATE TABLE strings(id INTEGER PRIMARY KEY, text ANY NOT NULL) STRICT;"
	/* lists of numbers, see rows.c */
	"CREATE TABLE attributes(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE sets(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE series(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
	"CREATE TABLE links(id INTEGER PRIMARY KEY, trace BLOB NOT NULL, span BLOB NOT NULL) STRICT;" LINK_INDEXES
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
	" to_ns INTEGER NOT NULL, events INTEGER NOT NULL, generation INTEGER NOT NULL, first_link INTEGER,"
	" last_link INTEGER, head BLOB NOT NULL, stacks BLOB NOT NULL, cells BLOB NOT NULL,"
	" cpus BLOB NOT NULL, labels BLOB NOT NULL, weights BLOB NOT NULL, times BLOB NOT NULL, links BLOB NOT NULL) "
	"STRICT;" BLOCKS_TIME ROLLUPS
	/* names of frames without a function, found later */
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
	"PRAGMA user_version = 5;";

_Static_assert(APPLICATION_ID == 1752331368 && STORE_SCHEMA_VERSION == 5, "as in the schema");

/* migrations[i] leads from version i to i + 1; versions before the first of them were never released. */
enum { OLDEST_VERSION = 2 };

static const char *const migrations[STORE_SCHEMA_VERSION] = {
	[2] = ROLLUPS "PRAGMA user_version = 3;",
	[3] = LINK_INDEXES "PRAGMA user_version = 4;",
	[4] = "ALTER TABLE blocks ADD COLUMN first_link INTEGER; ALTER TABLE blocks ADD COLUMN last_link INTEGER;"
	      "DROP INDEX blocks_time;" BLOCKS_TIME "PRAGMA user_version = 5;",
};

__attribute__((format(printf, 3, 4))) static int fail(struct store_error *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return code;
}

/* --- folder and lock --- */

/* Makes the folder @path and its parents, mode 0700. 0 or -errno. */
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

/* The descriptor of the lock file, which is made where that can be; -errno. */
static int open_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && (store_is_closed_disk(-errno) || errno == EACCES))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Keeps writers out while the store is read unshared: 0, or -EBUSY: there is one. If no lock file can be made there can be
 * no writer. */
static int take_shared_lock(struct store_sqlite *s)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/lock", s->place);
	if (s->lock_fd < 0)
		s->lock_fd = open_lock(path);
	return s->lock_fd >= 0 && flock(s->lock_fd, LOCK_SH | LOCK_NB) ? -EBUSY : 0;
}

static int refuse_lock(struct store_sqlite *s, struct store_error *err)
{
	char pid[32] = "";
	ssize_t n;

	if (!flock(s->lock_fd, LOCK_SH | LOCK_NB))
		return fail(
			err, -EBUSY,
			"cannot keep profiles in %s: another process reads there what cannot be written meanwhile; end it, "
			"or give another folder with --store",
			s->place);
	n = pread(s->lock_fd, pid, sizeof(pid) - 1, 0);
	pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
	return fail(err, -EBUSY,
		    "cannot keep profiles in %s: another process writes there%s%s; end it, or give another folder "
		    "with --store",
		    s->place, pid[0] ? ", " : "", pid);
}

static int take_lock(struct store_sqlite *s, struct store_error *err)
{
	char path[PATH_MAX], pid[32] = "";
	int n;

	snprintf(path, sizeof(path), "%s/lock", s->place);
	if (s->lock_fd < 0)
		s->lock_fd = open_lock(path);
	if (s->lock_fd < 0)
		return fail(err, s->lock_fd, "cannot keep profiles in %s: %s: %s", s->place, path, strerror(-s->lock_fd));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
		return refuse_lock(s, err);
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

	/* A log begins the file; what is given back of it must be settled before. Removing must take little log: with
	 * secure_delete, which some systems' SQLite has on, each page that is freed is written, too. */
	if (!err && is_writer)
		err = store_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = "
				     "NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = FAST;"
				     "PRAGMA journal_size_limit = 16777216;");
	if (!err && is_writer)
		store_grow_by_pages(db);
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
	if (!version && !tables && s->write_db == db)
		return store_write(s, schema);
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
	if (version < STORE_SCHEMA_VERSION && s->write_db != db)
		return fail(err, -EPROTO, "%s was written by an older hearth; open it once for writing to bring it forward",
			    s->path);
	for (; !code && version < STORE_SCHEMA_VERSION; version++)
		code = store_write(s, migrations[version]);
	return code;
}

static int open_db(struct store_sqlite *s, bool is_writer, sqlite3 **ret)
{
	int flags = (is_writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX;
	int err = store_sqlite_errno(sqlite3_open_v2(s->path, ret, flags, NULL));

	return err ? err : set_up(*ret, is_writer);
}

/* Whether a connection failed because it lacks the index of the log, which is a file that SQLite makes. */
static bool is_for_index(sqlite3 *db)
{
	int code = db ? sqlite3_extended_errcode(db) : SQLITE_OK;

	return code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMLOCK ||
	       code == SQLITE_IOERR_SHMMAP;
}

/* @err, or the real cause: SQLite's own codes seldom tell it. */
static int why_not_opened(sqlite3 *db, int err)
{
	int system = db && err ? sqlite3_system_errno(db) : 0;

	if (store_is_closed_disk(-system))
		return -system;
	return err == -EIO && is_for_index(db) ? -ENOSPC : err;
}

static bool has_file(const struct store_sqlite *s)
{
	struct stat st;

	return !stat(s->path, &st) && S_ISREG(st.st_mode) && st.st_size > 0;
}

/* Opens a connection that reads; without the index of the log when SQLite cannot have it and nobody writes. */
static int open_reader(struct store_sqlite *s)
{
	int64_t ignored;
	int err = open_db(s, false, &s->read_db);

	err = err ? err : store_get_int(s->read_db, "PRAGMA user_version", 0, &ignored);
	if (!err || !has_file(s))
		return err;
	if (err != -ENOENT && err != -EROFS && err != -ENOSPC && !is_for_index(s->read_db))
		return err;
	if (take_shared_lock(s))
		return -EBUSY;
	log_debug("store: %s is read without the index of its log", s->path);
	sqlite3_close(MOVE(s->read_db));
	err = store_open_unshared(s, &s->read_db);
	return err ? err : set_up(s->read_db, false);
}

/*
 * The file exists with mode 0600 before SQLite opens it; its log gets the same mode. The file must be closed before, too:
 * closing any descriptor of a file drops all locks that the process has on it (fcntl(2), "Advisory record locking"),
 * SQLite's as well, and another program that looks into the store would take itself for the last one, and remove the log
 * that we go on writing to.
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

/* Warns once of a folder that others may look into, and says what to do. */
static void warn_of_mode(const char *place)
{
	struct stat st;

	if (!stat(place, &st) && (st.st_mode & 077))
		log_warn("%s has mode %04o, so that others can see what is kept: 'chmod 700 %s' (a systemd unit: "
			 "StateDirectoryMode=0700)",
			 place, st.st_mode & 07777, place);
}

static int try_writing(struct store_sqlite *s, struct store_error *err)
{
	int code = make_folder(s->place);

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
	code = why_not_opened(s->write_db, code);
	if (code)
		sqlite3_close(MOVE(s->write_db));
	return code;
}

/* Opens for writing. A disk that is full, or cannot be written, does not prevent reading. */
static int open_for_writing(struct store_sqlite *s, struct store_error *err)
{
	int code = try_writing(s, err);

	if (code == -ENOSPC && store_reserve_free(s))
		code = try_writing(s, err);
	if (!code)
		store_reserve_make(s);
	if (!store_is_closed_disk(code) || !has_file(s))
		return code;
	s->stuck = code;
	err->message[0] = '\0';
	log_limited(&s->stuck_limit, 3600 * NSEC_PER_SEC, LOG_ERROR,
		    "nothing can be written to %s: %s; what is kept can be read, and nothing is added: %s", s->place,
		    strerror(-code),
		    code == -EROFS ? "mount it for writing, or give another folder with --store"
				   : "make room there, or give another folder with --store");
	return 0;
}

static int open_on_disk(struct store_sqlite *s, struct store_error *err)
{
	int code = s->config.read_only ? 0 : open_for_writing(s, err);

	store_reserve_look(s);
	code = code ? code : open_reader(s);
	if (!code && !s->write_db)
		code = check_version(s, s->read_db, err);
	if (code && !err->message[0])
		fail(err, code, "cannot open the store %s: %s", s->path,
		     code == -EBADMSG ? "it is damaged"
		     : code == -EBUSY ? "another process writes there just now"
		     : code == -EROFS && s->config.read_only
			     ? "a change there was cut off, and only who writes can take it back; 'hearth store prune' does"
			     : strerror(-code));
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
	if (!s->in_memory) {
		code = open_on_disk(s, err);
		if (!code && !s->config.read_only)
			warn_of_mode(s->place);
		return code;
	}
	code = store_sqlite_errno(
		sqlite3_open_v2(":memory:", &s->write_db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL));
	code = code ? code : set_up(s->write_db, false);
	code = code ? code : check_version(s, s->write_db, err);
	s->read_db = s->write_db;
	return code ? fail(err, code, "cannot make a store in memory: %s", strerror(-code)) : 0;
}

int store_files_reopen(struct store_sqlite *s, struct store_error *err)
{
	const int before = s->stuck;
	int code;

	err->message[0] = '\0';
	sqlite3_close(MOVE(s->read_db));
	s->stuck = 0;
	code = open_on_disk(s, err);
	if (code != -EBUSY)
		return code;
	s->stuck = before; /* others read, or wrote first */
	return open_reader(s);
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
