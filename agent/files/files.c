/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of mapped files and the cache of their rows. A (device, inode) leads to a chain: one entry each generation, and
 * a new one when a file was rewritten in place. Owned by the agent, on its thread; mappings hold references.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/helper/debug_files.h"
#include "agent/files/files.h"
#include "agent/files/file_index.h"
#include "agent/proc/proc_maps.h"
#include "agent/rows/row_cache.h"
#include "agent/rows/row_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "bpf/event.h"
#include "symbols/index/cache.h"

enum {
	RETRY_MS = 20,
	BELIEVED_MS = 5, /* a file found unchanged is not looked at again so soon: a start of a program maps a dozen */
	SAVE_GROUPS = 32,
};

/* The bit in numbers of files whose rows are not kept; the store's numbers stay below it. */
#define OWN_ROWS_ID (1u << 31)

struct files {
	struct map by_inode; /* -> first of a chain */
	uint32_t next_id;
	struct elf_service *service; /* owned */
	struct file_opener *opener;  /* owned */
	bool is_service_lost;
	bool always_waits;
	struct buf reply;
	struct row_cache *rows;
	struct row_store *store; /* owned; NULL: rows are not kept */
	uint32_t unsaved;	 /* groups that came since the last write */
	struct metric *opened, *unreadable, *hostile, *held, *debug_used, *debug_refused;
};

int files_new(struct elf_service *service, struct file_opener *opener, struct metrics *metrics, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f || row_cache_new(&f->rows)) {
		free(f);
		elf_service_free(service);
		file_opener_free(opener);
		return -ENOMEM;
	}
	f->service = service;
	f->opener = opener;
	f->opened = metrics_counter(metrics, "hearth_files_opened_total", NULL,
				    "Mapped files opened for unwind rows and names.");
	f->unreadable = metrics_counter(metrics, "hearth_files_unreadable_total", NULL,
					"Mapped files that could not be opened or are no ELF file for this machine.");
	f->hostile = metrics_counter(metrics, "hearth_files_hostile_total", NULL,
				     "Mapped files that made their reader crash, hang or take too much memory.");
	f->debug_used = metrics_counter(metrics, "hearth_debug_files_used_total", NULL,
					"Separate debug files whose unwind tables are used.");
	f->debug_refused = metrics_counter(metrics, "hearth_debug_files_refused_total", NULL,
					   "Separate debug files that belong to another build or did harm to their reader.");
	f->held = metrics_gauge(metrics, "hearth_files_held", NULL, "Mapped files known now.");
	*ret = f;
	return 0;
}

static void file_destroy(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->debug_fd >= 0)
		close(file->debug_fd);
	file_index_free(file->index);
	free(file->path);
	free(file);
}

void files_free(struct files *f)
{
	size_t pos = 0;
	void *first;

	if (!f)
		return;
	while (map_next(&f->by_inode, &pos, NULL, &first)) {
		for (struct file *file = first, *next; file; file = next) {
			next = file->next;
			file_destroy(file);
		}
	}
	map_fini(&f->by_inode);
	row_cache_free(f->rows);
	row_store_free(f->store);
	buf_fini(&f->reply);
	elf_service_free(f->service);
	file_opener_free(f->opener);
	free(f);
}

void files_on_wait(struct files *f, struct wait_hook hook)
{
	f->service->on_wait = hook;
}

void files_always_wait(struct files *f)
{
	f->always_waits = true;
}

static uint64_t inode_key(const struct file_key *key)
{
	return key->inode ^ (uint64_t)key->dev_major << 52 ^ (uint64_t)key->dev_minor << 40;
}

/* --- requests --- */

static const char *harm_text(int status)
{
	return status == -ETIMEDOUT ? "took too long"
	       : status == -ENOBUFS ? "took too much memory"
	       : status == -ENOSYS  ? "made a system call that is forbidden"
	       : status == -EILSEQ  ? "ended in nonsense"
				    : "crashed";
}

static void mark_hostile(struct files *f, struct file *file, enum elf_op op, int status)
{
	if (status == -ETIMEDOUT)
		file_opener_blame(f->opener, &file->key);
	metric_add(f->hostile, file->state != FILE_HOSTILE && !file->is_unnameable);
	file->state = FILE_HOSTILE;
	file->is_unnameable |= op == ELF_OP_INFO;
	log_warn("%s: reading its tables %s, in the helper process; its code is walked by frame pointers", file->path,
		 harm_text(status));
}

void files_blame_names(struct files *f, struct file *file, int status, bool has_more)
{
	metric_add(f->hostile, file->state != FILE_HOSTILE && !file->is_unnameable);
	file->is_unnameable = true;
	log_warn("%s: reading its names %s, in the helper process; %s", file->path, harm_text(status),
		 has_more ? "trying its symbol tables alone" : "its functions stay without them");
}

static int give(struct files *f, const struct file *file, enum debug_need_kind need, int fd, struct buf *reply)
{
	const struct elf_request request = { .op = ELF_OP_GIVE, .file = file->id, .addr = need };

	return elf_service_call(f->service, &request, fd, NULL, 0, reply);
}

/*
 * Looks for the file that the reader needs to go on with @file, named in @reply, and brings it. No place is tried twice: a
 * reader that was started again gets the file that the one before took, or hears that there is none.
 */
static void bring(struct files *f, struct file *file, struct buf *reply)
{
	struct debug_need needed = *(const struct debug_need *)(const void *)reply->data;
	const struct debug_place place = { file->path, file->pid, file->fd };
	enum debug_need_kind need = (enum debug_need_kind)needed.kind;
	int fd, status;

	if (file->debug_fd >= 0 && give(f, file, need, file->debug_fd, reply) == 0)
		return;
	while (file->debug_fd < 0 && (fd = debug_file_open(&place, &needed, file->tried[need])) != -ERANGE) {
		file->tried[need]++;
		if (fd < 0)
			continue;
		status = give(f, file, need, fd, reply);
		if (!status) {
			metric_add(f->debug_used, 1);
			file->debug_fd = fd;
			return;
		}
		close(fd);
		metric_add(f->debug_refused, 1);
		if (elf_service_is_hostile(status)) /* a new reader has to be asked first */
			return;
	}
	(void)give(f, file, need, -1, reply);
}

/* The debug file may have done the harm: without it the file gets another chance. */
static bool drop_debug_file(struct files *f, struct file *file)
{
	if (file->debug_fd < 0)
		return false;
	log_warn("%s: reading it with its separate debug file did harm to the helper process; trying without", file->path);
	close(MOVE_FD(file->debug_fd));
	memset(file->tried, UINT8_MAX, sizeof(file->tried));
	metric_add(f->debug_refused, 1);
	return true;
}

static int ask_until_answered(struct files *f, struct file *file, struct elf_request *request, const void *payload,
			      size_t payload_bytes, struct buf *reply)
{
	int status = ELF_STATUS_NEED;

	request->can_bring = true;
	for (int i = 0; i <= DEBUG_NEED_MAX + DEBUG_FILE_PLACES && status == ELF_STATUS_NEED; i++) {
		status = elf_service_call(f->service, request, file->fd, payload, payload_bytes, reply);
		if (status == ELF_STATUS_NEED)
			bring(f, file, reply);
	}
	return status == ELF_STATUS_NEED ? -EPROTO : status;
}

static int ask(struct files *f, struct file *file, struct elf_request *request, const void *payload, size_t payload_bytes,
	       struct buf *reply)
{
	int status;

	if (file->state == FILE_HOSTILE)
		return -ENOENT;
	do {
		status = ask_until_answered(f, file, request, payload, payload_bytes, reply);
		wait_hook_run(&f->service->on_wait); /* it runs within one long call; many short calls on a busy machine take
							as long */
	} while (elf_service_is_hostile(status) && drop_debug_file(f, file));
	if (elf_service_is_hostile(status))
		mark_hostile(f, file, request->op, status);
	if (status == -ECHILD && !f->is_service_lost) {
		f->is_service_lost = true;
		log_error("the helper process that reads programs' files has gone; what is not known yet gets frame-pointer "
			  "stacks until hearth is started again");
	}
	return status;
}

/* Answers from what this kernel knows: a file system elsewhere is not asked, as it might not answer. */
static int read_version(int fd, uint64_t *size_bytes, uint64_t *mtime_ns)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &st))
		return -errno;
	*size_bytes = st.stx_size;
	*mtime_ns = (uint64_t)st.stx_mtime.tv_sec * NSEC_PER_SEC + st.stx_mtime.tv_nsec;
	return 0;
}

/* Opens the file and reads nothing yet. A file that cannot be opened is tried again for another process, or after a moment:
 * when we looked, another file may have stood there. */
static void try_to_open(struct files *f, struct file *file, const struct file_place *at)
{
	uint64_t now_ns = clock_mono_ns();

	if (file->fd >= 0 || (file->tried_pid == at->pid && now_ns - file->tried_ns < RETRY_MS * NSEC_PER_MSEC))
		return;
	file->tried_pid = at->pid;
	file->tried_ns = now_ns;
	file->fd = file_open(f->opener, &file->key, file->path, at);
	file->is_unread = true;
	if (file->fd < 0)
		return;
	file->size_bytes = file->mtime_ns = 0;
	(void)read_version(file->fd, &file->size_bytes, &file->mtime_ns);
}

static void form_key(const struct file *file, bool exact, struct symbol_cache_key *ret)
{
	struct build_ids ids = file->info.build_ids;
	struct statx st = { .stx_uid = 0 };

	(void)statx(file->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &st);
	if (exact) {
		ids.gnu[0] = '\0';
		snprintf(ids.go, sizeof(ids.go), "%s %u:%u %llu %llu %llu", ids.htlhash, file->key.dev_major,
			 file->key.dev_minor, (unsigned long long)file->key.inode, (unsigned long long)file->size_bytes,
			 (unsigned long long)file->mtime_ns);
	}
	symbol_cache_key(&ids, st.stx_uid, ret);
}

/* Without a build id the hash of a file's ends is not enough; facts that show that no byte has changed take its place. */
void file_cache_key(const struct file *file, struct symbol_cache_key *ret)
{
	form_key(file, !file->info.build_ids.gnu[0] && !file->info.build_ids.go[0], ret);
}

/* People notice wrong names, but wrong rows make wrong stacks. A build id is not enough for rows, as tools that patch
 * programs leave it as it was. */
static void number_rows(const struct files *f, struct file *file)
{
	struct symbol_cache_key key;

	if (!f->store || !file->info.build_ids.htlhash[0])
		return;
	form_key(file, true, &key);
	file->rows_id = row_store_number(f->store, key.name);
	if (!file->rows_id)
		file->rows_id = file->id | OWN_ROWS_ID;
}

static void read_info(struct files *f, struct file *file)
{
	const struct elf_info *info;

	file->state = FILE_UNREADABLE;
	if (file->fd < 0)
		return;
	if (files_call(f, file, ELF_OP_INFO, 0, NULL, 0, &f->reply) || f->reply.len != sizeof(*info))
		return;
	info = (const void *)f->reply.data;
	file->info = *info;
	file->state = FILE_READABLE;
	number_rows(f, file);
}

static struct file *add_file(struct files *f, const struct file_key *key, const char *path)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->path = strdup(path);
	file->key = *key;
	file->fd = file->debug_fd = -1;
	file->next = map_get(&f->by_inode, inode_key(key));
	if (!file->path || map_put(&f->by_inode, inode_key(key), file)) {
		file_destroy(file);
		return NULL;
	}
	proc_path_strip(file->path);
	file->id = ++f->next_id;
	file->rows_id = file->id | OWN_ROWS_ID;
	file->state = FILE_UNREADABLE;
	metric_set(f->held, f->by_inode.count);
	return file;
}

uint32_t files_take_id(struct files *f)
{
	return ++f->next_id;
}

/* The held descriptor is the inode itself. */
bool file_is_as_it_was(const struct file *file)
{
	uint64_t size_bytes, mtime_ns;

	return read_version(file->fd, &size_bytes, &mtime_ns) ||
	       (file->size_bytes == size_bytes && file->mtime_ns == mtime_ns);
}

static bool is_as_it_was(struct file *file, uint64_t now_ns)
{
	if (now_ns - file->believed_ns < BELIEVED_MS * NSEC_PER_MSEC)
		return true;
	if (!file_is_as_it_was(file))
		return false;
	file->believed_ns = now_ns;
	return true;
}

/* Is the entry still right for @key and the file's content at @now_ns? */
static bool file_matches(struct file *file, const struct file_key *key, uint64_t now_ns)
{
	if (file->key.inode != key->inode || file->key.dev_major != key->dev_major || file->key.dev_minor != key->dev_minor)
		return false;
	if (file->key.has_generation && key->has_generation && file->key.generation != key->generation)
		return false;
	return file->fd < 0 || !file->key.inode || is_as_it_was(file, now_ns);
}

struct file *files_open(struct files *f, const struct file_key *key, const char *path, const struct file_place *at)
{
	struct file *file = map_get(&f->by_inode, inode_key(key));
	uint64_t now_ns = clock_mono_ns();

	while (file && (!file_matches(file, key, now_ns) || (!key->inode && strcmp(file->path, path))))
		file = file->next;
	if (!file)
		file = add_file(f, key, path);
	if (!file)
		return NULL;
	if (key->has_generation && !file->key.has_generation) {
		file->key.generation = key->generation;
		file->key.has_generation = true;
	}
	try_to_open(f, file, at);
	file->used_ns = now_ns;
	file->pid = at->pid;
	return file;
}

struct file *files_see(struct files *f, const struct file_key *key, const char *path, const struct file_place *at)
{
	struct file *file = files_open(f, key, path, at);

	if (!file || !file->is_unread)
		return file;
	file->is_unread = false;
	read_info(f, file);
	metric_add(file->state == FILE_UNREADABLE ? f->unreadable : f->opened, 1);
	return file;
}

struct file *file_get(struct file *file)
{
	if (file)
		file->refs++;
	return file;
}

void file_put(struct file *file)
{
	if (file)
		file->refs--;
}

struct expiry {
	uint64_t now_ns, idle_ns;
	struct file *idle; /* chained, out of the table */
};

/* Takes the idle files out of one chain; returns the rest of the chain. */
static void *keep_used(void *arg, void *value)
{
	struct expiry *expiry = arg;
	struct file *first = value;
	struct file **link = &first;

	while (*link) {
		struct file *file = *link;

		if (file->refs || expiry->now_ns - file->used_ns < expiry->idle_ns) {
			link = &file->next;
			continue;
		}
		*link = file->next;
		file->next = expiry->idle;
		expiry->idle = file;
	}
	return first;
}

static void forget_file(struct files *f, struct file *file)
{
	files_call(f, file, ELF_OP_FORGET, 0, NULL, 0, &f->reply);
	if (file->rows_id & OWN_ROWS_ID)
		row_cache_forget(f->rows, file->rows_id);
	file_destroy(file);
}

void files_expire(struct files *f, uint64_t now_ns, uint64_t idle_ns)
{
	struct expiry expiry = { now_ns, idle_ns, NULL };

	map_sweep(&f->by_inode, keep_used, &expiry);
	/* Takes them out of the table first: a call may take long, and meanwhile samples are read and files are added. */
	while (expiry.idle) {
		struct file *file = expiry.idle;

		expiry.idle = file->next;
		forget_file(f, file);
	}
	row_store_rest(f->store);
	metric_set(f->held, f->by_inode.count);
}

/* Asks for the rows of the group of code that @addr is in. */
static int ask_for_rows(struct files *f, struct file *file, uint64_t addr)
{
	struct elf_request request = { .op = ELF_OP_ROWS,
				       .file = file->id,
				       .at = addr,
				       .addr = addr / ROW_GROUP_BYTES * ROW_GROUP_BYTES,
				       .can_come_back = !f->always_waits };
	int error;

	request.addr_end = request.addr + ROW_GROUP_BYTES;
	error = ask(f, file, &request, NULL, 0, &f->reply);
	if (error == -ENODATA)
		file->state = FILE_NO_ROWS;
	if (error)
		return error == -ENODATA ? -ENOENT : error;
	f->unsaved++;
	return row_cache_put(f->rows, file->rows_id, addr, (const struct row *)(const void *)f->reply.data,
			     f->reply.len / sizeof(struct row));
}

int files_row(struct files *f, struct file *file, uint64_t addr, struct row *row)
{
	int error = 0;

	if (file->state != FILE_READABLE)
		return -ENOENT;
	if (!row_cache_has(f->rows, file->rows_id, addr) &&
	    (!f->store || row_store_load(f->store, file->rows_id, addr, f->rows)))
		error = ask_for_rows(f, file, addr);
	if (!error && row_cache_find(f->rows, file->rows_id, addr, row) && row->cfa == ROW_CFA_UNASKED)
		error = ask_for_rows(f, file, addr);
	return error ? error : !row_cache_find(f->rows, file->rows_id, addr, row);
}

size_t files_block(struct files *f, const struct file *file, uint64_t addr, struct row *rows)
{
	return row_cache_block(f->rows, file->rows_id, addr, rows);
}

void files_hot(struct files *f, const struct file *file, uint32_t max,
	       void (*fn)(void *arg, uint64_t addr, const struct row *rows, size_t count), void *arg)
{
	if (f->store)
		row_store_hot(f->store, file->rows_id, max, fn, arg);
}

void files_mark(struct files *f, const struct file *file, uint64_t addr)
{
	row_cache_mark(f->rows, file->rows_id, addr);
}

void files_keep_rows(struct files *f, struct row_store *store)
{
	f->store = store;
}

void files_memory(const struct files *f, struct files_memory *ret)
{
	size_t pos = 0;
	void *first;

	*ret = (struct files_memory){ sizeof(*f) + map_memory_bytes(&f->by_inode) + f->reply.cap,
				      row_cache_memory_bytes(f->rows) + row_store_memory_bytes(f->store),
				      row_store_mapped_bytes(f->store), 0 };
	while (map_next(&f->by_inode, &pos, NULL, &first))
		for (const struct file *file = first; file; file = file->next)
			ret->files_bytes += sizeof(*file) + strlen(file->path) + 1 +
					    file_index_memory_bytes(file->index, &ret->mapped_indexes_bytes);
}

int files_save_rows(struct files *f)
{
	if (!f->store || f->unsaved < SAVE_GROUPS)
		return 0;
	f->unsaved = 0;
	return row_store_save(f->store, f->rows);
}

void files_learn(struct files *f, const struct file *file, uint64_t addr, const struct row *row)
{
	(void)row_cache_learn(f->rows, file->rows_id, addr, row); /* without memory it is learned once more */
}

void files_end(struct files *f, const struct file *file, uint64_t addr)
{
	(void)row_cache_end(f->rows, file->rows_id, addr); /* without memory it is found out once more */
}

int files_call(struct files *f, struct file *file, enum elf_op op, uint64_t addr, const void *payload, size_t payload_bytes,
	       struct buf *reply)
{
	struct elf_request request = { .op = op, .file = file->id, .addr = addr };

	file->used_ns = clock_mono_ns();
	return ask(f, file, &request, payload, payload_bytes, reply);
}

int files_open_mapped(struct files *f, const struct file_key *key, const char *path, const struct file_place *at)
{
	return file_opener_is_local(f->opener, key, at->tid) ? file_open(f->opener, key, path, at) : -EREMOTE;
}

int files_open_folder(struct files *f, uint32_t pid, const char *name)
{
	return file_opener_folder(f->opener, pid, name);
}

bool files_is_local(struct files *f, const struct file *file, uint32_t task)
{
	return file_opener_is_local(f->opener, &file->key, task);
}

bool files_hold(struct files *f, struct file *file, uint64_t offset, const void *bytes, size_t len)
{
	return file->fd >= 0 && !files_call(f, file, ELF_OP_HOLDS, offset, bytes, len, &f->reply);
}
