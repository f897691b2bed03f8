/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that programs make while they run, from the programs' own files: perf maps (/tmp/perf-PID.map) and jitdumps.
 * They are opened at a process's first stack with anonymous code and held, so that the names survive its exit; they are read
 * at the end of each interval, for a bounded time, off the sampling path.
 *
 * A struct jit is the state of one process. It is made when the process announces a jitdump by an executable mapping of it,
 * whose held file is read, or when it is first met in anonymous code. The folder of its perf map is opened once, by the
 * process that may hang (see agent/files/open.h); the map itself is looked for there again and again, more and more seldom,
 * since an agent may begin to write one at any time.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_root.h"
#include "agent/runtime/choice.h"
#include "agent/runtime/perf_map_files.h"
#include "agent/runtime/runtime.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/perf_map.h"
#include "symbols/symbols.h"
#include "symbols/jit/v8_name.h"

enum {
	CHUNK_BYTES = 1 << 20, /* read in one turn, so that no process waits for another's huge map */
	FIRST_TRY_MS = 10,
	LAST_TRY_MS = 5000,
	REPLACED_SECONDS = 5, /* samples of before may still wait for a file that is being read */
	/* The bounds of it all. Beyond these, code stays without a name and a counter says so. */
	MAX_PROCESSES = 1024,
	MAX_BYTES = 128 << 20, /* of memory, all processes together */
	READ_MS = 100,	       /* of reading at the end of an interval; the rest is read at the next one's */
};

struct jit {
	struct process_slot slot;
	struct jit_names *owner;
	struct file *announced; /* its jitdump, a reference; NULL: it announced none */
	bool is_met;		/* it ran anonymous code; all below is about such a process */
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
	uint32_t slot;
	int our_folder; /* our /tmp; -1: not opened yet */
	uint32_t count; /* jits of processes that ran such code */
	size_t bytes;
	struct jit *list[MAX_PROCESSES]; /* of an update */
	uint32_t listed;
	struct buf text;
	struct metrics *metrics;
	struct metric *maps, *dumps, *read_bytes, *malformed, *older, *limited, *held_bytes;
};

static int create(const struct runtime_context *context, void **ret)
{
	struct jit_names *j = calloc(1, sizeof(*j));
	struct metrics *metrics = context->metrics;

	if (!j)
		return -ENOMEM;
	j->files = context->files;
	j->slot = context->slot;
	j->our_folder = -1;
	j->metrics = metrics;
	j->maps = metrics_counter(metrics, "hearth_jit_files_opened_total", "kind=\"perf map\"",
				  "Files opened in which programs name the code they make.");
	j->dumps = metrics_counter(metrics, "hearth_jit_files_opened_total", "kind=\"jitdump\"", "");
	j->read_bytes = metrics_counter(metrics, "hearth_jit_read_bytes_total", NULL, "Bytes read of such files.");
	j->malformed = metrics_counter(metrics, "hearth_jit_malformed_total", NULL,
				       "Lines and records of such files that make no sense.");
	j->older = metrics_counter(metrics, "hearth_jit_older_total", NULL,
				   "Records of jitdumps that are older than the process, so another's that had its pid.");
	j->limited = metrics_counter(metrics, "hearth_jit_limited_total", NULL,
				     "Times such a file was left, being broken, too large, or one too many.");
	j->held_bytes = metrics_gauge(metrics, "hearth_jit_memory_bytes", NULL, "Memory that their names take now.");
	*ret = j;
	return 0;
}

static void destroy(void *runtime)
{
	struct jit_names *j = runtime;

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

static void jit_free(struct process_slot *slot)
{
	struct jit *jit = (struct jit *)slot;

	if (jit->folder >= 0)
		close(jit->folder);
	if (jit->fd >= 0)
		close(jit->fd);
	file_put(jit->announced);
	file_put(jit->dump_file);
	jitdump_fini(&jit->dump);
	jit_code_free(MOVE(jit->code));
	count_memory(jit);
	jit->owner->count -= jit->is_met;
	free(jit);
}

static struct jit *jit_of(const struct jit_names *j, const struct process *p)
{
	return (struct jit *)p->slots[j->slot];
}

/* The state of @p, made if there is none yet. NULL: no memory. */
static struct jit *make_jit(struct jit_names *j, struct process *p)
{
	struct jit *jit = jit_of(j, p);

	if (jit)
		return jit;
	jit = calloc(1, sizeof(*jit));
	if (!jit)
		return NULL;
	*jit = (struct jit){ .slot.free = jit_free, .owner = j, .folder = -1, .fd = -1, .try_ms = FIRST_TRY_MS };
	p->slots[j->slot] = &jit->slot;
	return jit;
}

/* A process announces a jitdump by mapping it as code. A file whose reader might have to wait is not read. */
static void map(void *runtime, struct process *p, struct file *file, const char *path, uint32_t task)
{
	struct jit_names *j = runtime;
	struct jit *jit = jit_of(j, p);
	const struct file *known = jit ? jit->announced : NULL;

	if (!perf_map_dump_is_named(path) || file->fd < 0 || !files_is_local(j->files, file, task))
		return;
	if (known && known->key.inode == file->key.inode && known->key.dev_major == file->key.dev_major &&
	    known->key.dev_minor == file->key.dev_minor)
		return; /* it only grew */
	jit = make_jit(j, p);
	if (!jit)
		return;
	file_put(jit->announced);
	jit->announced = file_get(file);
}

/* --- finding the map --- */

/* @p ran anonymous code for the first time. Whether that is followed. */
static bool meet(struct jit_names *j, struct process *p)
{
	struct jit *jit;

	if (j->count == MAX_PROCESSES) {
		metric_add(j->limited, 1);
		return false;
	}
	jit = make_jit(j, p);
	if (!jit)
		return false;
	jit->code = jit_code_new();
	if (!jit->code)
		return false;
	jit->is_met = true;
	j->count++;
	if (!perf_map_identity_read(p->pid, p->is_known ? p->start_boottime_ns : 0, &jit->who))
		jit->folder = files_open_folder(j->files, proc_maps_task(p->pid, NULL, 0), "tmp");
	return true;
}

static void refuse(struct jit *jit, int error)
{
	const char *why = error == -EINVAL   ? "no plain file"
			  : error == -EMLINK ? "two names"
			  : error == -EACCES ? "another owner"
			  : error == -ESTALE ? "older than the process"
			  : error == -EEXIST ? "begun before the process"
					     : "cannot be opened";
	struct buf labels = BUF_EMPTY;

	if (jit->refused == error)
		return;
	jit->refused = error;
	metrics_label(&labels, "reason", why, strlen(why));
	metric_add(metrics_counter(jit->owner->metrics, "hearth_jit_files_refused_total", buf_text(&labels),
				   "perf maps that were not believed."),
		   1);
	log_info("the perf map of process %u is set aside: %s", jit->who.task_pid, why);
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
	int fd = perf_map_file_open(jit->folder, jit->who.pid, &jit->who);

	if (fd != -ENOENT || !proc_root_is_ours()) /* what it is called in our namespace is not known then */
		return fd;
	if (j->our_folder < 0)
		j->our_folder = files_open_folder(j->files, 0, "tmp");
	if (j->our_folder < 0 || (jit->who.pid == p->pid && is_same_folder(jit->folder, j->our_folder)))
		return -ENOENT;
	return perf_map_file_open(j->our_folder, p->pid, &jit->who);
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
	if (!perf_map_identity_read(p->pid, p->is_known ? p->start_boottime_ns : 0, &who))
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

static void see(void *runtime, struct process *p)
{
	struct jit_names *j = runtime;
	const struct jit *jit = jit_of(j, p);

	if ((jit && jit->is_met) || meet(j, p))
		look_for_map(jit_of(j, p), p);
}

/* --- reading --- */

/* Handles a reader's result. Returns whether there is more to read now. */
static bool note_result(struct jit *jit, int status, bool *is_over)
{
	if (status < 0 && status != -EINTR) {
		*is_over = true;
		metric_add(jit->owner->limited, 1);
	}
	return status == 1;
}

/* The time from which new lines of the map replace older ones. A map has no times of its own, so it is the file's last
 * change, which for a program that seldom makes code is when it made that code; it is never before the last read. */
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
	uint64_t offset = jit->dump.offset, malformed = jit->dump.malformed, older = jit->dump.older;
	bool has_more;

	if (!jit->dump_file || jit->is_dump_over)
		return false;
	has_more = note_result(jit, jitdump_read(&jit->dump, jit->dump_file->fd, now_ns, CHUNK_BYTES, jit->code),
			       &jit->is_dump_over);
	metric_add(jit->owner->read_bytes, jit->dump.offset - offset);
	metric_add(jit->owner->malformed, jit->dump.malformed - malformed);
	metric_add(jit->owner->older, jit->dump.older - older);
	return has_more;
}

/* The maps first: where both name a function, the dump knows more and comes later. */
static bool read_some(struct jit *jit, uint64_t now_ns)
{
	bool has_more;

	if (jit->owner->bytes > MAX_BYTES && !(jit->is_map_over && jit->is_dump_over)) {
		jit->is_map_over = jit->is_dump_over = true;
		metric_add(jit->owner->limited, 1);
	}
	has_more = read_map(jit, now_ns);
	if (!has_more)
		has_more = read_dump(jit, now_ns);
	count_memory(jit);
	return has_more;
}

static void take_dump(struct jit *jit)
{
	if (jit->dump_file == jit->announced)
		return;
	file_put(jit->dump_file);
	jitdump_fini(&jit->dump);
	jit->dump = (struct jitdump){ .own_pid = jit->who.pid, .start_ns = jit->who.start_mono_ns };
	jit->dump_file = file_get(jit->announced);
	jit->is_dump_over = false;
	metric_add(jit->owner->dumps, 1);
}

/* The processes of @t that made code, each once. */
static void list(struct jit_names *j, const struct traces *t)
{
	j->listed = 0;
	for (uint32_t i = 0; i < traces_event_count(t); i++) {
		struct process *p = traces_events(t)[i].process;
		struct jit *jit = jit_of(j, p);

		if (!jit || !jit->is_met || jit->is_listed)
			continue;
		jit->is_listed = true;
		j->list[j->listed++] = jit;
		look_for_map(jit, p);
		take_dump(jit);
	}
	for (uint32_t i = 0; i < j->listed; i++)
		j->list[i]->is_listed = false;
}

static void update(void *runtime, const struct traces *t, const struct wait_hook *hook)
{
	uint64_t start_ns = clock_mono_ns(), now_ns = start_ns;
	struct jit_names *j = runtime;

	list(j, t);
	while (j->listed && now_ns - start_ns < READ_MS * NSEC_PER_MSEC) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < j->listed; i++) {
			if (read_some(j->list[i], start_ns))
				j->list[kept++] = j->list[i];
			wait_hook_run(hook);
		}
		j->listed = kept;
		now_ns = clock_mono_ns();
	}
}

static void settle(void *runtime, const struct traces *t, uint64_t end_ns)
{
	struct jit_names *j = runtime;

	list(j, t);
	for (uint32_t i = 0; i < j->listed && end_ns > REPLACED_SECONDS * NSEC_PER_SEC; i++)
		jit_code_forget(j->list[i]->code, end_ns - REPLACED_SECONDS * NSEC_PER_SEC);
}

/* --- asking --- */

static bool varies(void *runtime, const struct process *p)
{
	const struct jit *jit = jit_of(runtime, p);

	return jit && jit->is_met && jit_code_has_replaced(jit->code);
}

static struct str str_of(const char *text, size_t len)
{
	return (struct str){ text, (uint32_t)len };
}

static bool find(void *runtime, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret)
{
	struct jit_names *j = runtime;
	const struct jit *jit = jit_of(j, p);
	struct frame_line *line = &ret->line;
	struct jit_answer a;
	struct v8_name v8;

	if (!jit || !jit->is_met || jit_code_find(jit->code, addr, time_ns, &a))
		return false;
	*ret = (struct runtime_name){ .line = { .name = str_of(a.name, a.name_len),
						.system_name = STR(""),
						.file = str_of(a.file_len ? a.file : "", a.file_len),
						.line = a.line } };
	if (v8_name_parse(a.name, a.name_len, &v8)) {
		ret->type = "v8js";
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

static size_t memory_bytes(const void *runtime)
{
	return ((const struct jit_names *)runtime)->bytes;
}

const struct runtime runtime_perf_map = {
	.id = RUNTIME_PERF_MAP,
	.memory_name = "generated code",
	.create = create,
	.destroy = destroy,
	.map = map,
	.see = see,
	.update = update,
	.find = find,
	.varies = varies,
	.settle = settle,
	.memory_bytes = memory_bytes,
};
