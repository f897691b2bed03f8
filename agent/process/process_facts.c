/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources that enrichers want. The first sample of a program mostly has its environment, and the id of its control
 * group, by which the text of that group's file is kept; for what is missing the files of /proc/PID are read, each once into
 * one buffer. The facts wait in a map by pid until the sample that they were found for is applied. A process that was gone
 * before the read is counted, and its resource has no attributes from here.
 *
 * The kernel does not tie the read to the program: after an exec between the sample and the read another program's
 * environment is read. The record of that exec is younger than the sample and older than the read; by that agent/feed.c
 * notices it.
 *
 * A group is kept where there is version 2 alone, which renames no group and uses no id again. A process may have left the
 * group of its sample when its file is read, so the folder of the path that was read must have the id.
 */
#include "agent/process/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "agent/process/enrich.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"

/* The kernel allows environments of a quarter of the stack's limit; bytes beyond this bound are not looked at. */
enum { MAX_READ_BYTES = 256 << 10, PIECE_BYTES = 8 << 10 };

enum { MAX_GROUPS = 1024 };

#define ENRICHER_ADDRESS(name) &name,
static const struct enrich *const enrichers[] = { ENRICHERS(ENRICHER_ADDRESS) };

static const struct {
	const char *file, *labels;
	bool is_memory; /* of the process: no error tells that it has ended, and it may let nobody read */
} sources[ENRICH_SOURCES] = {
	[ENRICH_CGROUP] = { "cgroup", "file=\"cgroup\"", false },
	[ENRICH_ENVIRON] = { "environ", "file=\"environ\"", true },
};

struct met {
	struct program_id id;
	struct process_facts *facts; /* a reference; NULL: gone before it could be read */
	bool is_old;		     /* facts_reader_settle() saw it before */
};

struct facts_reader {
	struct enrich_options options;
	struct map met;	    /* by pid, of struct met, owned */
	struct buf bytes;   /* of the file that is read */
	struct map groups;  /* id of a control group -> text of the file of its processes, owned */
	struct buf folders; /* where groups have their folders; empty: nowhere */
	struct metric *read[ENRICH_SOURCES], *unread[ENRICH_SOURCES], *cut;
};

/* --- life --- */

int facts_reader_new(const char *const *variables, size_t count, const char *groups, struct metrics *metrics,
		     struct facts_reader **ret)
{
	struct facts_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->options = (struct enrich_options){ variables, count };
	buf_puts(&r->folders, groups);
	for (int i = 0; i < ENRICH_SOURCES; i++) {
		r->read[i] = metrics_counter(
			metrics, "hearth_process_facts_read_total", sources[i].labels,
			"Sampled programs of which this file in /proc was asked for, as their samples did "
			"not tell what it says.");
		r->unread[i] = metrics_counter(metrics, "hearth_process_facts_unread_total", sources[i].labels,
					       "Sampled programs that had ended before this file of theirs in /proc could "
					       "be read.");
	}
	r->cut = metrics_counter(metrics, "hearth_process_environments_cut_total", NULL,
				 "Environments of which only the first 256 KiB were looked through.");
	*ret = r;
	return 0;
}

struct process_facts *process_facts_get(struct process_facts *f)
{
	if (f)
		f->refs++;
	return f;
}

void process_facts_put(struct process_facts *f)
{
	if (!f || --f->refs)
		return;
	attributes_fini(&f->attributes);
	free(f);
}

size_t process_facts_memory_bytes(const struct process_facts *f)
{
	size_t bytes = sizeof(*f) + f->attributes.cap * sizeof(*f->attributes.items);

	for (uint32_t i = 0; i < f->attributes.count; i++)
		bytes += f->attributes.items[i].key.len + f->attributes.items[i].value.string.len;
	return bytes;
}

static void met_free(struct met *m)
{
	if (m)
		process_facts_put(m->facts);
	free(m);
}

static void forget_groups(struct facts_reader *r)
{
	size_t pos = 0;
	void *text;

	while (map_next(&r->groups, &pos, NULL, &text))
		free(text);
	map_fini(&r->groups);
	r->groups = MAP_EMPTY;
}

void facts_reader_free(struct facts_reader *r)
{
	size_t pos = 0;
	void *m;

	if (!r)
		return;
	while (map_next(&r->met, &pos, NULL, &m))
		met_free(m);
	map_fini(&r->met);
	forget_groups(r);
	buf_fini(&r->bytes);
	buf_fini(&r->folders);
	free(r);
}

/* --- reading --- */

/* Reads the file of @source into the buffer. Returns the length, or -errno. */
static ssize_t read_file(struct facts_reader *r, uint32_t pid, enum enrich_source source)
{
	const char *name = sources[source].file;
	char path[PROC_PATH_BYTES];
	AUTO_CLOSE int fd = -1;
	ssize_t n = 1;

	if (sources[source].is_memory) {
		int error = proc_read_at_once(pid, pid, name, 0, MAX_READ_BYTES, &r->bytes);

		metric_add(r->cut, !error && r->bytes.len == MAX_READ_BYTES);
		return error ? error : (ssize_t)r->bytes.len;
	}
	buf_reset(&r->bytes);
	fd = open(proc_path(path, pid, name), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && r->bytes.len < MAX_READ_BYTES) {
		if (buf_reserve(&r->bytes, PIECE_BYTES))
			return -ENOMEM;
		n = read(fd, r->bytes.data + r->bytes.len, PIECE_BYTES);
		if (n < 0)
			return -errno;
		r->bytes.len += (size_t)n;
	}
	return (ssize_t)r->bytes.len;
}

/* An environment that is read as empty may be that of a process that has ended. */
static bool has_program(uint32_t pid)
{
	char exe[8];

	return proc_read_link(pid, pid, "exe", true, exe, sizeof(exe)) > 0;
}

/* Adds what @text, the content of @source, says. 0 or -ENOMEM. */
static int add_text(struct facts_reader *r, enum enrich_source source, const char *text, size_t len, struct attributes *a)
{
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(enrichers) && !error; i++)
		if (enrichers[i]->source == source)
			error = enrichers[i]->add(&r->options, text, len, a);
	return error;
}

/* Adds what the file of @source of @pid says. 0 or -errno; the process may have ended. */
static int add_file(struct facts_reader *r, uint32_t pid, enum enrich_source source, struct attributes *a)
{
	ssize_t len = read_file(r, pid, source);

	metric_add(r->read[source], 1);
	if (len == 0 && sources[source].is_memory && !has_program(pid))
		len = -ESRCH;
	if (len < 0) {
		metric_add(r->unread[source], 1);
		return (int)len;
	}
	return add_text(r, source, (const char *)r->bytes.data, (size_t)len, a);
}

/* Keeps the file that was read, if all that it says is that a process is in the group of version 2 that has @id. */
static void keep_group(struct facts_reader *r, uint64_t id)
{
	static const char head[] = "0::/";
	const char *text = buf_text(&r->bytes), *end = strchr(text, '\n');
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct stat st;
	char *copy;

	if (!r->folders.len || strncmp(text, head, sizeof(head) - 1) || !end || end[1])
		return;
	buf_puts(&folder, buf_text(&r->folders));
	buf_append(&folder, text + sizeof(head) - 2, (size_t)(end - text) - (sizeof(head) - 2));
	if (folder.failed || stat(buf_text(&folder), &st) || st.st_ino != id)
		return;
	if (r->groups.count >= MAX_GROUPS)
		forget_groups(r);
	copy = strdup(text);
	if (copy && map_put(&r->groups, id, copy))
		free(copy);
}

/* Adds what the control group @id (0: not known) of @pid says. 0 or -errno. */
static int add_group(struct facts_reader *r, uint32_t pid, uint64_t id, struct attributes *a)
{
	const char *text = id ? map_get(&r->groups, id) : NULL;
	int error;

	if (text)
		return add_text(r, ENRICH_CGROUP, text, strlen(text), a);
	error = add_file(r, pid, ENRICH_CGROUP, a);
	if (id && !error)
		keep_group(r, id);
	return error;
}

/* --- facts that are found and taken --- */

static bool is_same(const struct program_id *a, const struct program_id *b)
{
	return a->pid == b->pid && a->start_boottime_ns == b->start_boottime_ns && a->exec_id == b->exec_id;
}

/* A process that ends runs no further program. */
static bool is_meant(const struct met *m, const struct program_id *id)
{
	return m && (is_same(&m->id, id) || !id->start_boottime_ns);
}

static struct process_facts *find_facts(struct facts_reader *r, uint32_t pid, const struct program_told *told)
{
	struct process_facts *f = calloc(1, sizeof(*f));
	int failed;

	if (!f)
		return NULL;
	f->refs = 1;
	f->read_ns = told->environment ? told->time_ns : clock_mono_ns();
	failed = add_group(r, pid, told->cgroup, &f->attributes) != 0;
	failed += (told->environment
			   ? add_text(r, ENRICH_ENVIRON, told->environment, told->environment_bytes, &f->attributes)
			   : add_file(r, pid, ENRICH_ENVIRON, &f->attributes)) != 0;
	if (failed == ENRICH_SOURCES) {
		process_facts_put(f);
		return NULL;
	}
	f->is_whole = !failed;
	return f;
}

void facts_reader_meet(struct facts_reader *r, const struct program_id *id, const struct program_told *told)
{
	struct met *m = map_get(&r->met, id->pid);

	if (is_meant(m, id))
		return;
	met_free(map_del(&r->met, id->pid));
	m = calloc(1, sizeof(*m));
	if (!m)
		return;
	m->id = *id;
	m->facts = find_facts(r, id->pid, told);
	if (map_put(&r->met, id->pid, m))
		met_free(m);
}

struct process_facts *facts_reader_take(struct facts_reader *r, const struct program_id *id)
{
	struct met *m = map_get(&r->met, id->pid);
	struct process_facts *f;

	if (!is_meant(m, id))
		return NULL;
	map_del(&r->met, id->pid);
	f = MOVE(m->facts);
	met_free(m);
	return f;
}

void facts_reader_count_mistaken(struct facts_reader *r)
{
	for (int i = 0; i < ENRICH_SOURCES; i++)
		metric_add(r->unread[i], 1);
}

static void *keep_young(void *arg, void *value)
{
	struct met *m = value;

	(void)arg;
	if (m->is_old) {
		met_free(m);
		return NULL;
	}
	m->is_old = true;
	return m;
}

void facts_reader_settle(struct facts_reader *r)
{
	map_sweep(&r->met, keep_young, NULL);
}
