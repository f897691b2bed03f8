/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct jit a process, made when it is first met in anonymous code. The folder of its perf map is opened once, by the
 * process that may hang (see file_open.h); the map itself is looked for there again and again, more and more seldom, since
 * an agent may begin to write one at any time. A jitdump is announced by an executable mapping of it (processes.c), and the
 * held file of that mapping is read.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/jit_files.h"
#include "agent/jit_names.h"
#include "agent/proc_maps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "symbols/jitdump.h"
#include "symbols/perf_map.h"
#include "symbols/symbols.h"
#include "symbols/v8_name.h"

enum {
	CHUNK_BYTES = 1 << 20, /* read in one turn, so that no process waits for another's huge map */
	FIRST_TRY_MS = 10,
	LAST_TRY_MS = 5000,
	REPLACED_SECONDS = 5, /* samples of before may still wait for a file that is being read */
};

struct jit {
	struct jit_names *owner;
	struct jit_code *code;
	size_t counted_bytes; /* of the owner's */
	struct jit_identity who;
	int folder;	 /* the process's /tmp; -1: none */
	int fd;		 /* its perf map; -1: none yet */
	int refused;	 /* why one was not believed, said once; 0 */
	uint32_t try_ms; /* until the next look for it */
	uint64_t next_try_ns;
	uint64_t read_ns; /* when the map was read to its end last; 0: never */
	struct perf_map map;
	struct jitdump dump;
	struct file *dump_file;		/* a reference; the one that @dump is about */
	bool is_map_over, is_dump_over; /* nothing more is read */
	bool is_listed;
};

struct jit_names {
	struct files *files;
	int our_folder; /* our /tmp; -1: not opened yet */
	uint32_t count;
	size_t bytes;
	struct jit *list[JIT_NAMES_MAX_PROCESSES]; /* of an update */
	uint32_t listed;
	struct buf text;
	struct metrics *metrics;
	struct metric *maps, *dumps, *read_bytes, *malformed, *limited, *held_bytes;
};

int jit_names_new(struct files *files, struct metrics *metrics, struct jit_names **ret)
{
	struct jit_names *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->files = files;
	j->our_folder = -1;
	j->metrics = metrics;
	j->maps = metrics_counter(metrics, "hearth_jit_files_opened_total", "kind=\"perf map\"",
				  "Files opened in which programs name the code they make.");
	j->dumps = metrics_counter(metrics, "hearth_jit_files_opened_total", "kind=\"jitdump\"", "");
	j->read_bytes = metrics_counter(metrics, "hearth_jit_read_bytes_total", NULL, "Bytes read of such files.");
	j->malformed = metrics_counter(metrics, "hearth_jit_malformed_total", NULL,
				       "Lines and records of such files that make no sense.");
	j->limited = metrics_counter(metrics, "hearth_jit_limited_total", NULL,
				     "Times such a file was left, being broken, too large, or one too many.");
	j->held_bytes = metrics_gauge(metrics, "hearth_jit_memory_bytes", NULL, "Memory that their names take now.");
	*ret = j;
	return 0;
}

void jit_names_free(struct jit_names *j)
{
	if (!j)
		return;
	if (j->our_folder >= 0)
		close(j->our_folder);
	buf_fini(&j->text);
	free(j);
}

static void count_memory(struct jit *jit)
{
	size_t now = jit->code ? jit_code_memory_bytes(jit->code) : 0;

	jit->owner->bytes += now - jit->counted_bytes;
	jit->counted_bytes = now;
	metric_set(jit->owner->held_bytes, jit->owner->bytes);
}

void jit_free(struct jit *jit)
{
	if (!jit)
		return;
	if (jit->folder >= 0)
		close(jit->folder);
	if (jit->fd >= 0)
		close(jit->fd);
	file_put(jit->dump_file);
	jitdump_fini(&jit->dump);
	jit_code_free(MOVE(jit->code));
	count_memory(jit);
	jit->owner->count--;
	free(jit);
}

/* --- finding the map --- */

static struct jit *make_jit(struct jit_names *j, struct process *p)
{
	struct jit *jit;

	if (j->count == JIT_NAMES_MAX_PROCESSES) {
		metric_add(j->limited, 1);
		return NULL;
	}
	jit = calloc(1, sizeof(*jit));
	if (!jit)
		return NULL;
	*jit = (struct jit){ .owner = j, .code = jit_code_new(), .folder = -1, .fd = -1, .try_ms = FIRST_TRY_MS };
	j->count++;
	if (!jit->code) {
		jit_free(jit);
		return NULL;
	}
	if (!jit_identity_read(p->pid, p->is_known ? p->start_boottime_ns : 0, &jit->who))
		jit->folder = files_open_folder(j->files, proc_maps_task(p->pid), "tmp");
	return jit;
}

static void refuse(struct jit *jit, int error)
{
	const char *why = error == -EINVAL   ? "no plain file"
			  : error == -EMLINK ? "two names"
			  : error == -EACCES ? "another owner"
			  : error == -ESTALE ? "older than the process"
					     : "cannot be opened";
	struct buf labels = BUF_EMPTY;

	if (jit->refused == error)
		return;
	jit->refused = error;
	metrics_label(&labels, "reason", why, strlen(why));
	metric_add(metrics_counter(jit->owner->metrics, "hearth_jit_files_refused_total", buf_text(&labels),
				   "perf maps that were not believed."),
		   1);
	buf_fini(&labels);
}

static bool is_same_folder(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* In the process's own /tmp by its own pid, then in ours by the pid it has for us. */
static int open_map(struct jit *jit, const struct process *p)
{
	struct jit_names *j = jit->owner;
	int fd = jit_map_open(jit->folder, jit->who.pid, &jit->who);

	if (fd != -ENOENT)
		return fd;
	if (j->our_folder < 0)
		j->our_folder = files_open_folder(j->files, 0, "tmp");
	if (j->our_folder < 0 || (jit->who.pid == p->pid && is_same_folder(jit->folder, j->our_folder)))
		return -ENOENT;
	return jit_map_open(j->our_folder, p->pid, &jit->who);
}

/* Has the map no name any more, being written anew under it? */
static bool is_gone(int fd)
{
	struct stat st;

	return fstat(fd, &st) || !st.st_nlink;
}

static void look_for_map(struct jit *jit, struct process *p)
{
	uint64_t now_ns = clock_mono_ns();
	struct jit_identity who;
	int fd;

	if (jit->folder < 0 || now_ns < jit->next_try_ns || (jit->fd >= 0 && !is_gone(jit->fd)))
		return;
	jit->next_try_ns = now_ns + jit->try_ms * NSEC_PER_MSEC;
	jit->try_ms = jit->try_ms * 2 < LAST_TRY_MS ? jit->try_ms * 2 : LAST_TRY_MS;
	if (!jit_identity_read(p->pid, p->is_known ? p->start_boottime_ns : 0, &who))
		jit->who = who; /* it may run as another user now */
	fd = open_map(jit, p);
	if (fd < 0) {
		if (fd != -ENOENT)
			refuse(jit, fd);
		return;
	}
	if (jit->fd >= 0)
		close(jit->fd);
	jit->fd = fd;
	jit->map = (struct perf_map){ 0 };
	jit->is_map_over = false;
	jit->try_ms = FIRST_TRY_MS;
	metric_add(jit->owner->maps, 1);
}

void jit_names_see(struct jit_names *j, struct process *p)
{
	if (!p->jit)
		p->jit = make_jit(j, p);
	if (p->jit)
		look_for_map(p->jit, p);
}

/* --- reading --- */

/* What a reader returned. Whether there is more to read now. */
static bool note_result(struct jit *jit, int status, bool *is_over)
{
	if (status < 0 && status != -EINTR) {
		*is_over = true;
		metric_add(jit->owner->limited, 1);
	}
	return status == 1;
}

/* Since when what is new in the map replaces what was there. It has no times of its own: from the file's last change on,
 * which for a program that seldom makes code is when it made that; never from before the last read. */
static uint64_t map_time_ns(const struct jit *jit, uint64_t now_ns)
{
	uint64_t ago_ns, written_ns;
	struct stat st;

	if (fstat(jit->fd, &st))
		return now_ns;
	written_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	ago_ns = clock_mono_to_unix_ns(now_ns) - written_ns; /* wraps where it says it is of the future */
	return ago_ns < now_ns - jit->read_ns ? now_ns - ago_ns : jit->read_ns ? jit->read_ns : now_ns;
}

static bool read_map(struct jit *jit, uint64_t now_ns)
{
	uint64_t offset = jit->map.offset, malformed = jit->map.malformed;
	bool has_more;

	if (jit->fd < 0 || jit->is_map_over)
		return false;
	has_more = note_result(jit, perf_map_read(&jit->map, jit->fd, map_time_ns(jit, now_ns), CHUNK_BYTES, jit->code),
			       &jit->is_map_over);
	metric_add(jit->owner->read_bytes, jit->map.offset > offset ? jit->map.offset - offset : jit->map.offset);
	metric_add(jit->owner->malformed, jit->map.malformed - malformed);
	if (!has_more)
		jit->read_ns = now_ns;
	return has_more;
}

static bool read_dump(struct jit *jit, uint64_t now_ns)
{
	uint64_t offset = jit->dump.offset, malformed = jit->dump.malformed;
	bool has_more;

	if (!jit->dump_file || jit->is_dump_over)
		return false;
	has_more = note_result(jit, jitdump_read(&jit->dump, jit->dump_file->fd, now_ns, CHUNK_BYTES, jit->code),
			       &jit->is_dump_over);
	metric_add(jit->owner->read_bytes, jit->dump.offset - offset);
	metric_add(jit->owner->malformed, jit->dump.malformed - malformed);
	return has_more;
}

/* The maps first: where both name a function, the dump knows more and comes later. */
static bool read_some(struct jit *jit, uint64_t now_ns)
{
	bool has_more;

	if (jit->owner->bytes > JIT_NAMES_MAX_BYTES && !(jit->is_map_over && jit->is_dump_over)) {
		jit->is_map_over = jit->is_dump_over = true;
		metric_add(jit->owner->limited, 1);
	}
	has_more = read_map(jit, now_ns);
	if (!has_more)
		has_more = read_dump(jit, now_ns);
	count_memory(jit);
	return has_more;
}

static void take_dump(struct jit *jit, const struct process *p)
{
	if (jit->dump_file == p->dump)
		return;
	file_put(jit->dump_file);
	jitdump_fini(&jit->dump);
	jit->dump = (struct jitdump){ 0 };
	jit->dump_file = file_get(p->dump);
	jit->is_dump_over = false;
	metric_add(jit->owner->dumps, 1);
}

/* The processes of @t that made code, each once. */
static void list(struct jit_names *j, const struct traces *t)
{
	j->listed = 0;
	for (uint32_t i = 0; i < traces_event_count(t); i++) {
		struct process *p = traces_events(t)[i].process;

		if (!p->jit || p->jit->is_listed)
			continue;
		p->jit->is_listed = true;
		j->list[j->listed++] = p->jit;
		look_for_map(p->jit, p);
		take_dump(p->jit, p);
	}
	for (uint32_t i = 0; i < j->listed; i++)
		j->list[i]->is_listed = false;
}

void jit_names_update(struct jit_names *j, const struct traces *t, void (*on_wait)(void *arg), void *arg)
{
	uint64_t start_ns = clock_mono_ns(), now_ns = start_ns;

	list(j, t);
	while (j->listed && now_ns - start_ns < JIT_NAMES_READ_MS * NSEC_PER_MSEC) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < j->listed; i++) {
			if (read_some(j->list[i], start_ns))
				j->list[kept++] = j->list[i];
			if (on_wait)
				on_wait(arg);
		}
		j->listed = kept;
		now_ns = clock_mono_ns();
	}
}

void jit_names_settle(struct jit_names *j, const struct traces *t, uint64_t end_ns)
{
	list(j, t);
	for (uint32_t i = 0; i < j->listed && end_ns > REPLACED_SECONDS * NSEC_PER_SEC; i++)
		jit_code_forget(j->list[i]->code, end_ns - REPLACED_SECONDS * NSEC_PER_SEC);
}

/* --- asking --- */

bool jit_names_vary(const struct process *p)
{
	return p->jit && jit_code_has_replaced(p->jit->code);
}

static struct str str_of(const char *text, size_t len)
{
	return (struct str){ text, (uint32_t)len };
}

bool jit_names_find(struct jit_names *j, const struct process *p, uint64_t addr, uint64_t time_ns, struct jit_name *ret)
{
	struct frame_line *line = &ret->line;
	struct jit_answer a;
	struct v8_name v8;

	if (!p->jit || jit_code_find(p->jit->code, addr, time_ns, &a))
		return false;
	*ret = (struct jit_name){ .line = { .name = str_of(a.name, a.name_len),
					    .system_name = STR(""),
					    .file = str_of(a.file_len ? a.file : "", a.file_len),
					    .line = a.line } };
	if (v8_name_parse(a.name, a.name_len, &v8)) {
		ret->is_v8 = true;
		line->system_name = line->name;
		line->name = str_of(v8.name, v8.name_len);
		line->start_line = v8.line;
		if (!line->file.len)
			line->file = str_of(v8.file_len ? v8.file : "", v8.file_len);
		return true;
	}
	if (a.name_len > 2 && a.name[0] == '_' && (a.name[1] == 'Z' || a.name[1] == 'R')) {
		buf_reset(&j->text);
		symbols_demangle(a.name, a.name_len, &j->text);
		if (j->text.len && !j->text.failed) {
			line->system_name = line->name;
			line->name = str_of((const char *)j->text.data, j->text.len);
		}
	}
	return line->name.len > 0;
}

size_t jit_names_memory_bytes(const struct jit_names *j)
{
	return j->bytes;
}
