/* SPDX-License-Identifier: Apache-2.0 */
/* Statements, transactions and the log of the store's two connections. The writer's are its thread's; readers hold the read
 * lock. */
#include "backend/store/sqlite/db.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"

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

bool store_is_closed_disk(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS;
}

/* The errno with which the file, or its log, was last refused something; 0. */
static int file_errno(sqlite3 *db, bool is_log)
{
	sqlite3_file *file = NULL;
	int system = 0;

	if (sqlite3_file_control(db, "main", is_log ? SQLITE_FCNTL_JOURNAL_POINTER : SQLITE_FCNTL_FILE_POINTER, &file) ||
	    !file || !file->pMethods || file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &system))
		return 0;
	return system;
}

/* @err, which @db's last call came to; where SQLite only says that the system refused something, the reason of that. The
 * connection's own errno is often that of what came after the refusal. */
static int why_refused(sqlite3 *db, int err)
{
	if (err != -EIO && err != -ENOENT)
		return err;
	const int causes[] = { sqlite3_system_errno(db), file_errno(db, true), file_errno(db, false) };
	for (size_t i = 0; i < ARRAY_LEN(causes); i++)
		if (store_is_closed_disk(-causes[i]))
			return -causes[i];
	return err;
}

int store_exec(sqlite3 *db, const char *sql)
{
	return why_refused(db, store_sqlite_errno(sqlite3_exec(db, sql, NULL, NULL, NULL)));
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

int store_count_pages(sqlite3 *db, struct store_pages *ret)
{
	int err = store_get_int(db, "PRAGMA page_count", 0, &ret->count);

	err = err ? err : store_get_int(db, "PRAGMA freelist_count", 0, &ret->free);
	return err ? err : store_get_int(db, "PRAGMA page_size", 0, &ret->bytes);
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
	char name[4096];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

uint64_t store_bytes(struct store_sqlite *s, sqlite3 *db)
{
	struct store_pages pages;

	if (!s->in_memory)
		return file_bytes(s->path, "") + file_bytes(s->path, "-wal") + s->reserve_bytes;
	return store_count_pages(db, &pages) ? 0 : (uint64_t)(pages.count * pages.bytes);
}

/* --- transactions --- */

void store_grow_by_pages(sqlite3 *db)
{
	int bytes = 512; /* the smallest page that there is: the file becomes no longer than asked */

	sqlite3_file_control(db, "main", SQLITE_FCNTL_CHUNK_SIZE, &bytes);
}

/* Why the file does not become longer: SQLite has no code of its own for that here, and remembers no errno where it asks
 * for room before it writes. So the lock's file is given the length that it has, too, which takes no room, and which a file
 * system refuses that takes no changes. */
static int why_not_grown(const struct store_sqlite *s)
{
	struct stat st;
	int why = 0;

	if (s->lock_fd >= 0 && !fstat(s->lock_fd, &st) && ftruncate(s->lock_fd, st.st_size))
		why = errno;
	if (!why)
		why = file_errno(s->write_db, false);
	return why == EROFS || why == EIO || why == EDQUOT ? -why : -ENOSPC;
}

/* Gives the file the room that the open transaction's pages need, before they are in the log. 0 or -errno. */
static int grow_file(struct store_sqlite *s)
{
	struct store_pages pages;
	sqlite3_int64 bytes;
	int err = s->in_memory ? 0 : store_count_pages(s->write_db, &pages);

	if (err || s->in_memory)
		return err;
	bytes = pages.count * pages.bytes;
	return sqlite3_file_control(s->write_db, "main", SQLITE_FCNTL_SIZE_HINT, &bytes) ? why_not_grown(s) : 0;
}

int store_begin(struct store_sqlite *s)
{
	int err;

	if (s->in_memory)
		pthread_mutex_lock(&s->read_lock);
	err = store_exec(s->write_db, "BEGIN IMMEDIATE");
	s->is_writing = !err;
	if (err && s->in_memory)
		pthread_mutex_unlock(&s->read_lock);
	return err;
}

int store_end(struct store_sqlite *s, int err)
{
	if (!s->is_writing)
		return err;
	s->is_writing = false;
	err = err ? why_refused(s->write_db, err) : grow_file(s);
	if (!err)
		err = store_exec(s->write_db, "COMMIT");
	if (err && !sqlite3_get_autocommit(s->write_db))
		store_exec(s->write_db, "ROLLBACK");
	if (s->in_memory)
		pthread_mutex_unlock(&s->read_lock);
	return err;
}

int store_write(struct store_sqlite *s, const char *sql)
{
	int err = store_begin(s);

	return store_end(s, err ? err : store_exec(s->write_db, sql));
}

int store_read_begin(struct store_sqlite *s)
{
	pthread_mutex_lock(&s->read_lock);
	return store_exec(s->read_db, "BEGIN");
}

void store_read_end(struct store_sqlite *s)
{
	if (!sqlite3_get_autocommit(s->read_db))
		store_exec(s->read_db, "COMMIT");
	pthread_mutex_unlock(&s->read_lock);
}

/* --- the log --- */

/* Whether there is room for the file to grow as the log wants it to: bringing back a part would take the last room, and the
 * log would stay. */
static bool log_fits(const struct store_sqlite *s)
{
	struct store_pages pages;
	struct statvfs fs;
	struct stat st;

	if (s->in_memory || stat(s->path, &st) || statvfs(s->place, &fs) || !fs.f_blocks ||
	    store_count_pages(s->write_db, &pages))
		return true;
	return (uint64_t)(pages.count * pages.bytes) <= (uint64_t)st.st_size + (uint64_t)fs.f_bavail * fs.f_frsize;
}

int store_checkpoint(struct store_sqlite *s, enum store_checkpoint how)
{
	const bool waits = how == CHECKPOINT_WAIT;
	int code;

	if (!waits && !log_fits(s))
		return -ENOSPC;
	if (!waits)
		sqlite3_busy_timeout(s->write_db, 0);
	code = sqlite3_wal_checkpoint_v2(s->write_db, NULL,
					 how == CHECKPOINT_PASSIVE ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE,
					 NULL, NULL);
	if (!waits)
		sqlite3_busy_timeout(s->write_db, STORE_BUSY_MS);
	return code == SQLITE_BUSY ? 0 : why_refused(s->write_db, store_sqlite_errno(code));
}
