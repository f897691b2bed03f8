/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of indexes. All is done relative to the folder's descriptor, so that what was checked at the start is what is
 * used. A file counts only if it is plain, this user's or root's, and not writable for others. When a file was used last
 * stands in its access time, set by us: at most once an hour, and also where the file system itself keeps none.
 */
#include "symbols/index/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "symbols/symbols.h"

enum {
	USE_EVERY_S = 3600,	  /* how exactly the last use is known */
	ABANDONED_AFTER_S = 3600, /* an unfinished file of this age is nobody's any more */
	MIN_ID_BYTES = 8,	  /* shorter names are no build ids */
	ENDS_BYTES = 8,		  /* hex digits of the hash over head and tail that names have */
};

struct symbol_cache {
	int dir_fd;
	uint64_t max_bytes;
};

/* --- the folder --- */

int symbol_cache_default_folder(struct buf *out)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		buf_puts(out, "/var/cache/hearth/symbols");
	else if (base && base[0] == '/')
		buf_printf(out, "%s/hearth/symbols", base);
	else if (home && home[0] == '/')
		buf_printf(out, "%s/.cache/hearth/symbols", home);
	else
		return -ENOENT;
	return out->failed ? -ENOMEM : 0;
}

/* Creates what is missing of @folder; the last part is for this user alone. */
static int make_folder(const char *folder)
{
	char path[PATH_MAX];
	size_t len = strlen(folder);

	if (len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, folder, len + 1);
	for (char *p = path + 1; len && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int symbol_cache_open(const char *folder, uint64_t max_bytes, struct symbol_cache **ret)
{
	AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct symbol_cache *c;
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT) {
		r = make_folder(folder);
		if (r)
			return r;
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st))
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (!kept_file_is_ours(&st))
		return -EPERM;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->dir_fd = MOVE_FD(fd);
	c->max_bytes = max_bytes;
	*ret = c;
	return 0;
}

void symbol_cache_close(struct symbol_cache *c)
{
	if (!c)
		return;
	close(c->dir_fd);
	free(c);
}

int symbol_cache_folder(const struct symbol_cache *c)
{
	return c->dir_fd;
}

/* --- keys --- */

void symbol_cache_key(const struct build_ids *ids, uid_t owner, struct symbol_cache_key *ret)
{
	uint8_t digest[32];

	*ret = (struct symbol_cache_key){ 0 };
	if (strlen(ids->gnu) >= MIN_ID_BYTES) {
		snprintf(ret->build_id, sizeof(ret->build_id), "%s", ids->gnu);
	} else if (ids->go[0] && !gnutls_hash_fast(GNUTLS_DIG_SHA256, ids->go, strlen(ids->go), digest)) {
		hex_encode(ret->build_id, digest, sizeof(digest));
	} else {
		snprintf(ret->build_id, sizeof(ret->build_id), "%s", ids->htlhash);
	}
	if (owner)
		snprintf(ret->name, sizeof(ret->name), "%s-%.*s-u%u", ret->build_id, ENDS_BYTES, ids->htlhash, owner);
	else
		snprintf(ret->name, sizeof(ret->name), "%s-%.*s", ret->build_id, ENDS_BYTES, ids->htlhash);
}

/* The length of the build id that @name, a file of the folder, begins with; 0: it is no index. */
static size_t id_len(const char *name)
{
	size_t len = strspn(name, "0123456789abcdef");
	const char *rest = name + len;

	if (len < MIN_ID_BYTES || len > SYMBOL_INDEX_ID_BYTES || rest[0] != '-' ||
	    strspn(rest + 1, "0123456789abcdef") != ENDS_BYTES)
		return 0;
	rest += 1 + ENDS_BYTES;
	if (rest[0] == '-' && rest[1] == 'u' && rest[2])
		rest += 2 + strspn(rest + 2, "0123456789");
	return *rest ? 0 : len;
}

/* --- one index --- */

void symbol_cache_entry_close(struct symbol_cache_entry *e)
{
	symbol_index_close(e->index);
	e->index = NULL;
	kept_file_unmap(&e->file);
}

size_t symbol_cache_entry_memory_bytes(const struct symbol_cache_entry *e)
{
	return e->index ? symbol_index_memory_bytes(e->index) : 0;
}

/* Opens the file @name. 0; -ENOENT; -EBADMSG: it is not to be believed; -EPROTONOSUPPORT; -errno. */
static int open_entry(const struct symbol_cache *c, const char *name, struct symbol_cache_entry *e)
{
	size_t len = id_len(name);
	int r;

	*e = (struct symbol_cache_entry){ 0 };
	r = kept_file_map(c->dir_fd, name, &e->file);
	if (!r)
		r = symbol_index_open(e->file.data, e->file.len_bytes, &e->index);
	if (!r) {
		const char *id = symbol_index_head(e->index)->build_id;

		r = strlen(id) == len && memcmp(id, name, len) == 0 ? 0 : -EBADMSG;
	}
	if (r)
		symbol_cache_entry_close(e);
	return r;
}

int symbol_cache_find(struct symbol_cache *c, const struct symbol_cache_key *key, struct symbol_cache_entry *ret)
{
	struct timespec now, times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	struct symbol_cache_entry e;
	int r = open_entry(c, key->name, &e);

	if (r == -EBADMSG || r == -EPROTONOSUPPORT) {
		unlinkat(c->dir_fd, key->name, 0);
		return -ENOENT;
	}
	if (r)
		return r;
	clock_gettime(CLOCK_REALTIME, &now);
	if (e.file.used.tv_sec + USE_EVERY_S < now.tv_sec || e.file.used.tv_sec > now.tv_sec)
		(void)utimensat(c->dir_fd, key->name, times, AT_SYMLINK_NOFOLLOW); /* root's file: root knows its use */
	*ret = e;
	return 0;
}

int symbol_cache_remove(struct symbol_cache *c, const struct symbol_cache_key *key)
{
	return unlinkat(c->dir_fd, key->name, 0) && errno != ENOENT ? -errno : 0;
}

/* --- how much there may be --- */

struct file_use {
	char name[SYMBOL_CACHE_KEY_BYTES];
	uint64_t bytes;
	struct timespec last; /* used or made */
};

static int compare_times(const struct timespec *x, const struct timespec *y)
{
	return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
				      : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int compare_uses(const void *a, const void *b)
{
	return compare_times(&((const struct file_use *)a)->last, &((const struct file_use *)b)->last);
}

static void count_removed(struct symbol_cache *c, const char *name, uint64_t bytes, struct symbol_cache_pruned *done)
{
	if (unlinkat(c->dir_fd, name, 0))
		return;
	done->removed++;
	done->removed_bytes += bytes;
}

/* Whether @name is a file that some process began to write and did not finish. */
static bool is_abandoned(const char *name, const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return strncmp(name, KEPT_FILE_NEW, sizeof(KEPT_FILE_NEW) - 1) == 0 && S_ISREG(st->st_mode) &&
	       st->st_mtim.tv_sec + ABANDONED_AFTER_S < now.tv_sec;
}

/* The indexes of the folder, into @uses (struct file_use each). Files that are nobody's any more are removed. */
static int list_files(struct symbol_cache *c, struct buf *uses, struct symbol_cache_pruned *done)
{
	int fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	struct stat st;

	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((d = readdir(dir))) {
		struct file_use use = { 0 };

		if (fstatat(c->dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (is_abandoned(d->d_name, &st))
			count_removed(c, d->d_name, (uint64_t)st.st_size, done);
		if (!id_len(d->d_name) || strlen(d->d_name) >= sizeof(use.name))
			continue;
		strcpy(use.name, d->d_name);
		use.bytes = (uint64_t)st.st_size;
		use.last = compare_times(&st.st_atim, &st.st_mtim) > 0 ? st.st_atim : st.st_mtim;
		buf_append(uses, &use, sizeof(use));
		done->files++;
		done->bytes += use.bytes;
	}
	closedir(dir);
	return uses->failed ? -ENOMEM : 0;
}

/* Removes those not used for longest until the rest fits. */
static int remove_beyond(struct symbol_cache *c, struct symbol_cache_pruned *done)
{
	AUTO(buf_fini) struct buf uses = BUF_EMPTY;
	struct file_use *all;
	int r = list_files(c, &uses, done);

	if (r)
		return r;
	all = (struct file_use *)uses.data;
	if (done->bytes > c->max_bytes)
		qsort(all, done->files, sizeof(*all), compare_uses);
	for (size_t i = 0, count = done->files; i < count && done->bytes > c->max_bytes; i++) {
		count_removed(c, all[i].name, all[i].bytes, done);
		done->bytes -= all[i].bytes;
		done->files--;
	}
	return 0;
}

int symbol_cache_prune(struct symbol_cache *c, struct symbol_cache_pruned *ret)
{
	AUTO(buf_fini) struct buf uses = BUF_EMPTY;
	uint64_t count;
	int r;

	*ret = (struct symbol_cache_pruned){ 0 };
	r = list_files(c, &uses, ret);
	if (r)
		return r;
	count = ret->files;
	ret->files = ret->bytes = 0; /* counted once more below */
	for (uint64_t i = 0; i < count; i++) {
		const struct file_use *use = (const struct file_use *)uses.data + i;
		struct symbol_cache_entry e;
		int state = open_entry(c, use->name, &e);

		if (state == 0)
			state = symbol_index_check(e.index);
		symbol_cache_entry_close(&e);
		if (state != -EBADMSG && state != -EPROTONOSUPPORT)
			continue;
		count_removed(c, use->name, use->bytes, ret);
		ret->broken++;
	}
	return remove_beyond(c, ret);
}

/* --- keeping one --- */

int symbol_cache_add(struct symbol_cache *c, const struct symbol_cache_key *key, const void *data, size_t len_bytes)
{
	struct symbol_cache_pruned done = { 0 };
	int error;

	if (len_bytes > c->max_bytes)
		return -EFBIG;
	error = kept_file_replace(c->dir_fd, key->name, data, len_bytes);
	return error ? error : remove_beyond(c, &done);
}

int symbol_cache_file(struct symbol_cache *c)
{
	int fd = openat(c->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

int symbol_cache_adopt(struct symbol_cache *c, const struct symbol_cache_key *key, int fd)
{
	char name[KEPT_FILE_NEW_BYTES], path[32];
	struct symbol_cache_pruned done = { 0 };
	struct stat st;
	int r = kept_file_new_name(name);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size > c->max_bytes)
		return -EFBIG;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* as open(2) has it of O_TMPFILE */
	if (linkat(AT_FDCWD, path, c->dir_fd, name, AT_SYMLINK_FOLLOW))
		return -errno;
	if (renameat(c->dir_fd, name, c->dir_fd, key->name)) {
		r = -errno;
		unlinkat(c->dir_fd, name, 0);
		return r;
	}
	return remove_beyond(c, &done);
}
