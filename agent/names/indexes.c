/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There is one index for each file that samples have frames in. The queue holds references to its files, so that a file that
 * was deleted, or whose last process has gone, still gets its names. An index is believed if its head says that it is the
 * file's and the worker that made it has ended. A file whose DWARF broke its worker gets another chance with its tables
 * alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/names/indexes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/vec.h"
#include "symbols/find/debuginfod.h"

/* A lane runs one job at a time. */
struct lane {
	struct indexes *owner;
	struct index_helper *helper; /* owned */
	struct file **queue;	     /* references */
	uint32_t queue_cnt, queue_cap;
	struct file *making;	/* the file whose index is made now, a reference; NULL: none */
	enum index_depth depth; /* of the job */
	int fd;			/* its output */
	bool is_memory;		/* the output is in no folder */
	bool is_running;	/* inside of run_queue */
};

/* A server was asked for a debug file of @file. */
struct awaited {
	struct file *file; /* a reference */
	struct debug_need need;
};

struct indexes {
	enum symbols_wanted wanted;
	struct lane lanes[LANES];
	struct symbol_cache *cache; /* owned */
	struct debuginfod *servers; /* owned; NULL: none */
	struct loop_watch *served_watch;
	struct awaited *awaited; /* files that servers were asked for; nothing else waits for them */
	uint32_t awaited_cnt, awaited_cap;
	struct files *files;
	bool is_helper_lost, is_unkept_said;
	void (*on_done)(void *arg);
	void *on_done_arg;
	struct metric *opened, *made, *failed, *cut, *dwarf_bytes, *coming;
};

/* Takes @entry over as the source of the file's names from now on. */
static void replace(struct file_index *fi, struct symbol_cache_entry *entry)
{
	symbol_cache_entry_close(&fi->entry);
	fi->entry = *entry;
	kept_file_rest(&fi->entry.file); /* opening has looked at its head */
	fi->version++;
}

/* Takes the index in @fd. 0, or the error for which it is not believed. */
static int take_file(struct file_index *fi, int fd)
{
	struct symbol_cache_entry e = { 0 };
	int error = kept_file_map_fd(fd, &e.file);

	if (!error)
		error = symbol_index_open(e.file.data, e.file.len_bytes, &e.index);
	if (!error && strcmp(symbol_index_head(e.index)->build_id, fi->key.build_id) != 0)
		error = -EBADMSG;
	if (error)
		symbol_cache_entry_close(&e);
	else
		replace(fi, &e);
	return error;
}

/* --- indexes kept on disk --- */

/* Opens an empty file for an index, in the folder where it will be kept if possible. */
static int new_output(struct lane *l)
{
	const struct indexes *x = l->owner;
	int fd = x->cache && x->wanted == SYMBOLS_FULL ? symbol_cache_file(x->cache) : -1;

	l->is_memory = fd < 0;
	return fd < 0 ? memfd_create("hearth-names", MFD_CLOEXEC) : fd;
}

static void keep(struct indexes *x, const struct lane *l)
{
	const struct file_index *fi = l->making->index;
	int error = 0;

	if (!x->cache || x->wanted != SYMBOLS_FULL)
		return;
	if (!file_is_as_it_was(l->making)) /* cut short, say: the key is that of a whole one, which has other names */
		return;
	if (l->is_memory)
		error = symbol_cache_add(x->cache, &fi->key, fi->entry.file.data, fi->entry.file.len_bytes);
	else
		error = symbol_cache_adopt(x->cache, &fi->key, l->fd);
	if (error && !x->is_unkept_said) {
		x->is_unkept_said = true;
		log_warn("cannot keep the indexes of programs' names, so they are made anew at the next start: %s",
			 strerror(-error));
	}
}

/* @file is indexed anew when the server has answered to @need. */
static void await_server(struct indexes *x, struct file *file, const struct debug_need *need)
{
	if (vec_reach(&x->awaited, &x->awaited_cap, x->awaited_cnt))
		return;
	x->awaited[x->awaited_cnt++] = (struct awaited){ file_get(file), *need };
}

/* Has a server's file come into the cache already? If a server is asked only now, @file comes again. */
static bool is_served_now(struct indexes *x, struct file *file, struct debug_need *need)
{
	AUTO_CLOSE int fd = x->servers ? debuginfod_find(x->servers, need->name) : -ENOENT;

	need->kind = DEBUG_NEED_SERVED;
	if (fd == -EINPROGRESS)
		await_server(x, file, need);
	return fd >= 0;
}

/* Would a new index know more? It would if a debug file is there now that was missing then, or if an older hearth made the
 * index without ranges. */
static bool is_outdated(struct indexes *x, struct file *file, const struct symbol_index_head *head)
{
	const struct debug_place place = { file->path, file->pid, file->fd };
	struct debug_need need = { .kind = DEBUG_NEED_BUILD_ID };

	if (!head->has_ranges)
		return true;
	if (head->best == CODE_SOURCE_GO || head->best == CODE_SOURCE_DWARF || head->had_debug)
		return false;
	snprintf(need.name, sizeof(need.name), "%s", file->info.build_ids.gnu);
	for (unsigned i = 0;; i++) {
		AUTO_CLOSE int fd = debug_file_open(&place, &need, i);

		if (fd >= 0)
			return true;
		if (fd == -ERANGE || fd == -EINVAL)
			return fd == -ERANGE && is_served_now(x, file, &need);
	}
}

/* Opens the index that is kept for @file. 0: a new one would have no more; -ENOENT. */
static int open_kept(struct indexes *x, struct file *file)
{
	struct file_index *fi = file->index;
	struct symbol_cache_entry e;

	if (!x->cache || symbol_cache_find(x->cache, &fi->key, &e))
		return -ENOENT;
	replace(fi, &e);
	metric_add(x->opened, 1);
	return x->wanted == SYMBOLS_FULL && is_outdated(x, file, symbol_index_head(e.index)) ? -ENOENT : 0;
}

int indexes_folder(const struct indexes *x)
{
	return x->cache ? symbol_cache_folder(x->cache) : -1;
}

/* --- the queues --- */

uint32_t indexes_coming(const struct indexes *x)
{
	uint32_t count = 0;

	for (int i = 0; i < LANES; i++)
		count += x->lanes[i].queue_cnt + (x->lanes[i].making != NULL);
	return count;
}

/* Ends the wait for @file, whose names will not get better. Gives a reference back. */
static void be_done(struct indexes *x, struct file *file)
{
	file->index->state = FILE_INDEX_DONE;
	file_put(file);
	metric_set(x->coming, indexes_coming(x));
	if (x->on_done)
		x->on_done(x->on_done_arg);
}

/* Takes a reference over. */
static void enqueue(struct lane *l, struct file *file)
{
	if (vec_reach(&l->queue, &l->queue_cap, l->queue_cnt)) {
		be_done(l->owner, file);
		return;
	}
	file->index->state = FILE_INDEX_COMING;
	l->queue[l->queue_cnt++] = file;
	metric_set(l->owner->coming, indexes_coming(l->owner));
}

/* Takes the file that most samples wait for out of the queue, and its reference over. */
static struct file *dequeue(struct lane *l)
{
	struct file *file;
	uint32_t best = 0;

	for (uint32_t i = 1; i < l->queue_cnt; i++)
		if (l->queue[i]->index->samples > l->queue[best]->index->samples)
			best = i;
	file = l->queue[best];
	l->queue[best] = l->queue[--l->queue_cnt];
	return file;
}

/* --- jobs --- */

static int start_job(struct lane *l, struct file *file, enum index_depth depth)
{
	struct index_job job = { .place = { file->path, file->pid, file->fd },
				 .id = file->index->key.build_id,
				 .depth = depth,
				 .is_first = l == &l->owner->lanes[LANE_FIRST] };

	l->making = file;
	l->depth = depth;
	l->fd = job.fd = new_output(l);
	return l->fd < 0 ? -errno : index_helper_start(l->helper, &job);
}

/* Ends the job under way; the caller decides about its file. */
static struct file *end_job(struct lane *l)
{
	if (l->fd >= 0)
		close(MOVE_FD(l->fd));
	return MOVE(l->making);
}

/* Starts as many jobs as the helper takes. */
static void run_queue(struct lane *l)
{
	if (l->is_running) /* an answer that came at once: the loop below goes on */
		return;
	l->is_running = true;
	while (!l->making && l->queue_cnt) {
		struct file *file = dequeue(l);

		if (start_job(l, file, l->owner->wanted == SYMBOLS_TABLES ? INDEX_TABLES : INDEX_FULL))
			be_done(l->owner, end_job(l));
	}
	l->is_running = false;
}

static void fail_job(struct lane *l, int status)
{
	bool is_hostile = elf_service_is_hostile(status);
	struct indexes *x = l->owner;
	struct file *file = end_job(l);

	metric_add(x->failed, 1);
	if (status == -ECHILD && !x->is_helper_lost) {
		x->is_helper_lost = true;
		log_error(
			"the helper process that reads programs' symbols has gone; code that is not known yet stays without "
			"names until hearth is started again");
	}
	if (is_hostile)
		files_blame_names(x->files, file, status, l->depth == INDEX_FULL);
	if (!is_hostile || l->depth != INDEX_FULL)
		be_done(x, file);
	else if (start_job(l, file, INDEX_TABLES))
		be_done(x, end_job(l));
}

static void on_answer(void *arg, const struct index_answer *answer)
{
	struct lane *l = arg;
	struct indexes *x = l->owner;
	int error = answer->status;

	if (!error)
		error = take_file(l->making->index, l->fd);
	if (error) {
		fail_job(l, error == -EBADMSG ? -EPROTO : error);
	} else if (answer->has_more) {
		enqueue(&x->lanes[LANE_REST], end_job(l));
		run_queue(&x->lanes[LANE_REST]);
	} else {
		metric_add(x->made, 1);
		metric_add(x->cut, answer->made.is_cut);
		metric_add(x->dwarf_bytes, answer->dwarf_bytes);
		keep(x, l);
		if (answer->is_awaited)
			await_server(x, l->making, &answer->awaited);
		be_done(x, end_job(l));
	}
	run_queue(l);
}

/* Takes the answers of servers about files that they had, or did not have. */
static void on_served(void *arg, int fd, uint32_t events)
{
	struct indexes *x = arg;
	uint32_t kept = 0;
	uint64_t count;

	(void)events;
	(void)!read(fd, &count, sizeof(count));
	for (uint32_t i = 0; i < x->awaited_cnt; i++) {
		struct awaited a = x->awaited[i];
		AUTO_CLOSE int file = debuginfod_find(x->servers, a.need.name);

		if (file == -EINPROGRESS)
			x->awaited[kept++] = a;
		else if (file < 0 || a.file->index->state == FILE_INDEX_COMING)
			file_put(a.file);
		else
			enqueue(&x->lanes[LANE_REST], a.file);
	}
	x->awaited_cnt = kept;
	run_queue(&x->lanes[LANE_REST]);
}

/* --- files --- */

static bool is_readable(const struct file *file)
{
	return file->fd >= 0 && !file->is_unnameable && file->state != FILE_UNREADABLE;
}

static void begin(struct indexes *x, struct file *file)
{
	struct file_index *fi = is_readable(file) ? calloc(1, sizeof(*fi)) : NULL;

	file->index = fi;
	if (!fi)
		return;
	fi->state = FILE_INDEX_DONE;
	if (x->wanted == SYMBOLS_OFF)
		return;
	file_cache_key(file, &fi->key);
	if (open_kept(x, file)) {
		enqueue(&x->lanes[LANE_FIRST], file_get(file));
		run_queue(&x->lanes[LANE_FIRST]);
	}
}

/* The index of @file is broken somewhere: it is removed from disk and made anew, once. */
static void mend(struct indexes *x, struct file *file)
{
	struct file_index *fi = file->index;

	fi->is_broken = false;
	if (fi->was_broken || fi->state == FILE_INDEX_COMING)
		return;
	fi->was_broken = true;
	if (x->cache)
		(void)symbol_cache_remove(x->cache, &fi->key);
	enqueue(&x->lanes[LANE_FIRST], file_get(file));
	run_queue(&x->lanes[LANE_FIRST]);
}

void indexes_meet(struct indexes *x, struct file *file)
{
	if (!file->index)
		begin(x, file);
	else if (file->index->is_broken)
		mend(x, file);
}

/* --- life --- */

void indexes_on_done(struct indexes *x, void (*fn)(void *arg), void *arg)
{
	x->on_done = fn;
	x->on_done_arg = arg;
}

void indexes_wait(struct indexes *x, int timeout_ms)
{
	for (int i = 0; i < LANES; i++)
		index_helper_hurry(x->lanes[i].helper);
	for (int i = 0; i < LANES; i++)
		if (x->lanes[i].making)
			index_helper_wait(x->lanes[i].helper, timeout_ms);
}

void indexes_tell(const struct indexes *x)
{
	const char *path = NULL;

	log_debug("names: %llu indexes from disk, %llu made, %llu failed; %llu bytes of debug sections read",
		  (unsigned long long)metric_get(x->opened), (unsigned long long)metric_get(x->made),
		  (unsigned long long)metric_get(x->failed), (unsigned long long)metric_get(x->dwarf_bytes));
	for (int i = 0; i < LANES; i++)
		path = x->lanes[i].making ? x->lanes[i].making->path : path;
	if (!path)
		return;
	log_warn("the names of %u files were not ready in time, among them those of %s; 'hearth symbols build FILE' makes "
		 "them "
		 "for the next time",
		 indexes_coming(x), path);
}

static int lane_init(struct lane *l, struct indexes *x, struct index_helper *helper, struct debuginfod *servers,
		     struct loop *loop)
{
	l->owner = x;
	l->helper = helper;
	l->fd = -1;
	return helper ? index_helper_watch(helper, loop, servers, on_answer, l) : 0;
}

static void lane_fini(struct lane *l)
{
	index_helper_free(l->helper);
	if (l->making)
		file_put(end_job(l));
	while (l->queue_cnt)
		file_put(l->queue[--l->queue_cnt]);
	free(l->queue);
}

int indexes_new(enum symbols_wanted wanted, struct index_helper *const helpers[static LANES], struct symbol_cache *cache,
		struct debuginfod *servers, struct files *files, struct loop *loop, struct metrics *metrics,
		struct indexes **ret)
{
	struct indexes *x = calloc(1, sizeof(*x));
	int error = x ? 0 : -ENOMEM;

	for (int i = 0; i < LANES; i++) {
		int failed = x ? lane_init(&x->lanes[i], x, helpers[i], servers, loop) : 0;

		error = error ? error : failed;
		if (!x)
			index_helper_free(helpers[i]);
	}
	if (!error && helpers[LANE_FIRST])
		index_helper_hurry(helpers[LANE_FIRST]);
	if (!error && servers)
		error = loop_add_fd(loop, debuginfod_event_fd(servers), EPOLLIN, on_served, x, &x->served_watch);
	if (x) {
		x->cache = cache;
		x->servers = servers;
	} else {
		symbol_cache_close(cache);
		debuginfod_free(servers);
	}
	if (error) {
		indexes_free(x);
		return error;
	}
	x->wanted = helpers[LANE_FIRST] ? wanted : SYMBOLS_OFF;
	x->files = files;
	x->opened = metrics_counter(metrics, "hearth_symbol_indexes_opened_total", NULL,
				    "Indexes of files' names that were found on disk.");
	x->made = metrics_counter(metrics, "hearth_symbol_indexes_built_total", NULL,
				  "Indexes of files' names that were made.");
	x->failed = metrics_counter(
		metrics, "hearth_symbol_indexes_failed_total", NULL,
		"Files whose names could not be read, or not all of them: their reader crashed, took too "
		"long or too much memory.");
	x->cut = metrics_counter(metrics, "hearth_symbol_indexes_cut_total", NULL,
				 "Indexes made of symbol tables alone, for want of memory for more.");
	x->dwarf_bytes = metrics_counter(metrics, "hearth_symbol_dwarf_bytes_total", NULL,
					 "Bytes of debug sections read to make indexes.");
	x->coming = metrics_gauge(metrics, "hearth_symbol_indexes_coming", NULL,
				  "Indexes that are being made or wait for it.");
	*ret = x;
	return 0;
}

/* To be freed before the files. */
void indexes_free(struct indexes *x)
{
	if (!x)
		return;
	for (int i = 0; i < LANES; i++)
		lane_fini(&x->lanes[i]);
	while (x->awaited_cnt)
		file_put(x->awaited[--x->awaited_cnt].file);
	free(x->awaited);
	loop_remove(x->served_watch);
	debuginfod_free(x->servers);
	symbol_cache_close(x->cache);
	free(x);
}
