/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles a full disk. The reserve is a file beside the store's that only takes room: removing samples writes to the log
 * first, so retention needs room to make room. It is freed when retention, or opening, finds none, and remade once there is
 * room again; until then no samples are taken, so that retention has all the room. If nothing at all can be written, the
 * store is read without the files that SQLite would write for it.
 *
 * Invariant: a connection of store_open_unshared() writes nothing and locks nothing of SQLite's; its owner holds a shared
 * flock on the folder's lock file, which keeps writers out.
 */
#include "backend/store/sqlite/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	RESERVE_BYTES = 4 << 20, /* a step of retention and its log take 2 MB, the log's index 64 kB */
	RESERVE_PART = 16,	 /* of --keep-size, and of the file system, at most one of so many */
	RESERVE_UNIT = 1 << 16,
};

/* The size that the reserve should have, in bytes; 0: there should be none. *@free_ret: free bytes where the store is. */
static uint64_t wanted_bytes(const struct store_sqlite *s, uint64_t *free_ret)
{
	uint64_t bytes = RESERVE_BYTES, disk;
	struct statvfs fs;

	if (s->in_memory || s->config.read_only || statvfs(s->place, &fs) || !fs.f_blocks)
		return 0;
	disk = (uint64_t)fs.f_blocks * fs.f_frsize;
	*free_ret = (uint64_t)fs.f_bavail * fs.f_frsize;
	bytes = bytes < s->config.keep_bytes / RESERVE_PART ? bytes : s->config.keep_bytes / RESERVE_PART;
	bytes = bytes < disk / RESERVE_PART ? bytes : disk / RESERVE_PART;
	return bytes / RESERVE_UNIT * RESERVE_UNIT;
}

/* @wanted with the bytes that must stay free beside it. */
static uint64_t with_margin(uint64_t wanted)
{
	return wanted + wanted / RESERVE_PART;
}

uint64_t store_reserve_lacks(const struct store_sqlite *s)
{
	uint64_t ignored;

	return s->is_reserve_used ? with_margin(wanted_bytes(s, &ignored)) : 0;
}

static void reserve_path(const struct store_sqlite *s, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/reserve", s->place);
}

static int fill_reserve(const char *path, uint64_t bytes)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 0))
		return -errno;
	return -posix_fallocate(fd, 0, (off_t)bytes);
}

void store_reserve_look(struct store_sqlite *s)
{
	char path[PATH_MAX];
	struct stat st;

	reserve_path(s, path);
	s->reserve_bytes = lstat(path, &st) ? 0 : (uint64_t)st.st_size;
}

void store_reserve_make(struct store_sqlite *s)
{
	uint64_t free_bytes = 0, wanted = wanted_bytes(s, &free_bytes);
	char path[PATH_MAX];
	int err = 0;

	reserve_path(s, path);
	store_reserve_look(s);
	if (s->reserve_bytes == wanted) {
		s->is_reserve_used = false;
		return;
	}
	if (free_bytes + s->reserve_bytes < with_margin(wanted))
		err = -ENOSPC;
	else
		err = fill_reserve(path, wanted);
	if (err)
		unlink(path);
	s->reserve_bytes = err ? 0 : wanted;
	if (err && err != -ENOSPC && err != -EDQUOT) {
		log_debug("store: no reserve in %s: %s", s->place, strerror(-err)); /* this file system keeps none */
		err = 0;
	}
	if (s->is_reserve_used && !err)
		log_info("%s: there is room again, samples are kept", s->place);
	s->is_reserve_used = err != 0;
}

bool store_reserve_free(struct store_sqlite *s)
{
	char path[PATH_MAX];

	reserve_path(s, path);
	if (s->in_memory || s->config.read_only || unlink(path))
		return false;
	s->reserve_bytes = 0;
	s->is_reserve_used = true;
	log_warn("%s: the disk is full; the reserve was freed so that retention can work, and no samples are taken until "
		 "there is "
		 "room for it again",
		 s->place);
	return true;
}

bool store_may_be_written(const struct store_sqlite *s)
{
	uint64_t free_bytes = UINT64_MAX, wanted = wanted_bytes(s, &free_bytes);

	return access(s->path, W_OK) == 0 && free_bytes > wanted / 2;
}

/* The address of @path for SQLite; whatever may mean something there is written as %XX. */
static void put_address(struct buf *out, const char *path)
{
	buf_puts(out, "file:");
	buf_percent(out, path, strlen(path), "/" URL_PLAIN);
}

int store_open_unshared(const struct store_sqlite *s, sqlite3 **ret)
{
	AUTO(buf_fini) struct buf address = BUF_EMPTY;
	char log[PATH_MAX];
	struct stat st;
	bool has_log;
	int err;

	snprintf(log, sizeof(log), "%s-wal", s->path);
	has_log = !stat(log, &st) && st.st_size > 0;
	put_address(&address, s->path);
	/* With a log, its index is made in memory, which SQLite does for a connection that is alone; "unix-none" makes it
	 * take no locks, which a file that is only readable does not allow. */
	buf_puts(&address, has_log ? "?vfs=unix-none" : "?immutable=1");
	if (address.failed)
		return -ENOMEM;
	err = store_sqlite_errno(sqlite3_open_v2(buf_text(&address), ret,
						 SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL));
	if (err)
		return err;
	sqlite3_db_config(*ret, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return has_log ? store_exec(*ret, "PRAGMA locking_mode = EXCLUSIVE") : 0;
}
