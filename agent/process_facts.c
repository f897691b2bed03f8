/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two files of /proc/PID, cgroup and environ, read into one buffer. What was read waits in a map by pid until the sample
 * that it was read for is applied. A process that is gone before is counted, and its resource says nothing it does not know.
 *
 * Reading is not bound to the program by the kernel: an exec between the sample and the read shows another program's
 * environment. The record of that exec is younger than the sample and older than the read, which is how processes.c tells.
 */
#include "agent/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/container_id.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"

/* The kernel allows environments of a quarter of the stack's limit; what is behind this is not looked at. */
enum { MAX_READ_BYTES = 256 << 10, FIRST_READ_BYTES = 16 << 10 };

struct met {
	struct program_id id;
	struct process_facts *facts; /* a reference; NULL: gone before it could be read */
	bool is_old;		     /* facts_reader_settle() saw it before */
};

struct facts_reader {
	const char *const *variables; /* borrowed */
	size_t variable_count;
	struct map met; /* by pid, of struct met, owned */
	char *buffer;	/* of the file that is read */
	size_t cap;
	struct metric *unread_cgroup, *unread_environ, *cut;
};

/* --- life --- */

static struct metric *unread_counter(struct metrics *m, const char *labels)
{
	return metrics_counter(m, "hearth_process_facts_unread_total", labels,
			       "Sampled programs that had ended before this file of theirs in /proc could be read.");
}

int facts_reader_new(const char *const *variables, size_t count, struct metrics *metrics, struct facts_reader **ret)
{
	struct facts_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->variables = variables;
	r->variable_count = count;
	r->cap = FIRST_READ_BYTES;
	r->buffer = malloc(r->cap);
	if (!r->buffer) {
		free(r);
		return -ENOMEM;
	}
	r->unread_cgroup = unread_counter(metrics, "file=\"cgroup\"");
	r->unread_environ = unread_counter(metrics, "file=\"environ\"");
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

void facts_reader_free(struct facts_reader *r)
{
	size_t pos = 0;
	void *m;

	if (!r)
		return;
	while (map_next(&r->met, &pos, NULL, &m))
		met_free(m);
	map_fini(&r->met);
	free(r->buffer);
	free(r);
}

/* --- reading --- */

/* Reads /proc/@pid/@name into the buffer. Its length, or -errno. */
static ssize_t read_file(struct facts_reader *r, uint32_t pid, const char *name)
{
	char path[48];
	AUTO_CLOSE int fd = -1;
	size_t len = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		n = read(fd, r->buffer + len, r->cap - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (len < r->cap) /* /proc gives all it has at once */
			return (ssize_t)len;
		if (r->cap == MAX_READ_BYTES) {
			metric_add(r->cut, 1);
			return (ssize_t)len;
		}
		char *larger = realloc(r->buffer, MAX_READ_BYTES);
		if (!larger)
			return -ENOMEM;
		r->buffer = larger;
		r->cap = MAX_READ_BYTES;
	}
}

/* An environment that is read as empty may be that of a process that has ended. */
static bool has_program(uint32_t pid)
{
	char path[32], exe[8];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	return readlink(path, exe, sizeof(exe)) > 0;
}

static int read_cgroup(struct facts_reader *r, uint32_t pid, struct attributes *a)
{
	char id[CONTAINER_ID_BYTES];
	ssize_t len = read_file(r, pid, "cgroup");

	if (len < 0) {
		metric_add(r->unread_cgroup, 1);
		return (int)len;
	}
	return container_id_of_cgroups(r->buffer, (size_t)len, id) ? attributes_add(a, STR("container.id"), str_z(id)) : 0;
}

static int read_environ(struct facts_reader *r, uint32_t pid, struct attributes *a)
{
	ssize_t len = read_file(r, pid, "environ");

	if (len == 0 && !has_program(pid))
		len = -ESRCH;
	if (len < 0) {
		metric_add(r->unread_environ, 1);
		return (int)len;
	}
	return process_facts_of_environment(r->buffer, (size_t)len, r->variables, r->variable_count, a);
}

/* --- what an environment says --- */

/* The value of @name in the entry @text of @len bytes. */
static bool is_variable(const char *text, size_t len, const char *name, struct str *value_ret)
{
	size_t name_len = strlen(name);

	if (len <= name_len || text[name_len] != '=' || memcmp(text, name, name_len))
		return false;
	*value_ret = (struct str){ text + name_len + 1, (uint32_t)(len - name_len - 1) };
	return true;
}

/* The first entry counts, as for getenv(3). */
static struct str find_variable(const char *text, size_t len, const char *name)
{
	struct str value = STR("");

	for (size_t at = 0, entry; at < len; at += entry + 1) {
		entry = strnlen(text + at, len - at);
		if (is_variable(text + at, entry, name, &value))
			break;
	}
	return value;
}

int process_facts_of_environment(const char *text, size_t len, const char *const *variables, size_t count,
				 struct attributes *a)
{
	struct str service = find_variable(text, len, "OTEL_SERVICE_NAME");
	struct str value = find_variable(text, len, "OTEL_RESOURCE_ATTRIBUTES");
	int error = service.len ? attributes_add(a, STR("service.name"), service) : 0;

	if (!error)
		error = attributes_parse(a, value);
	if (error == -EINVAL) /* the program's own library says so, to whom it concerns */
		error = 0;
	for (size_t i = 0; i < count && !error; i++) {
		AUTO_FREE char *key = NULL;

		value = find_variable(text, len, variables[i]);
		if (!value.len)
			continue;
		if (asprintf(&key, "process.environment_variable.%s", variables[i]) < 0)
			return -ENOMEM;
		error = attributes_add(a, str_z(key), value);
	}
	return error;
}

/* --- met and taken --- */

static bool is_same(const struct program_id *a, const struct program_id *b)
{
	return a->pid == b->pid && a->start_boottime_ns == b->start_boottime_ns && a->exec_id == b->exec_id;
}

/* A process that ends has one program left. */
static bool is_meant(const struct met *m, const struct program_id *id)
{
	return m && (is_same(&m->id, id) || !id->start_boottime_ns);
}

static struct process_facts *read_facts(struct facts_reader *r, uint32_t pid)
{
	struct process_facts *f = calloc(1, sizeof(*f));
	int cgroup, environment;

	if (!f)
		return NULL;
	f->refs = 1;
	f->read_ns = clock_mono_ns();
	cgroup = read_cgroup(r, pid, &f->attributes);
	environment = read_environ(r, pid, &f->attributes);
	if (cgroup && environment) {
		process_facts_put(f);
		return NULL;
	}
	f->is_whole = !cgroup && !environment;
	return f;
}

void facts_reader_meet(struct facts_reader *r, const struct program_id *id)
{
	struct met *m = map_get(&r->met, id->pid);

	if (is_meant(m, id))
		return;
	met_free(map_del(&r->met, id->pid));
	m = calloc(1, sizeof(*m));
	if (!m)
		return;
	m->id = *id;
	m->facts = read_facts(r, id->pid);
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
	metric_add(r->unread_environ, 1);
	metric_add(r->unread_cgroup, 1);
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
