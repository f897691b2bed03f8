/* SPDX-License-Identifier: Apache-2.0 */
/* The answers about workloads, with the names and in the form that the collector distribution's REST exporter gives them;
 * sorted, so that equal states read the same. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/compat/workloads_internal.h"
#include "base/cleanup.h"
#include "base/text/json.h"

static int finish(struct buf *out)
{
	buf_putc(out, '\n');
	return out->failed ? -ENOMEM : 0;
}

static void put_member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

/* --- all workloads --- */
static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct workload *const *)a)->id, (*(const struct workload *const *)b)->id);
}

/* Sorts processes by the text of their pid, as Go sorts the keys of a map. */
static int by_pid(const void *a, const void *b)
{
	char x[24], y[24];

	snprintf(x, sizeof(x), "%" PRId64, (*(const struct process *const *)a)->pid);
	snprintf(y, sizeof(y), "%" PRId64, (*(const struct process *const *)b)->pid);
	return strcmp(x, y);
}

static int put_processes(struct json *j, const struct workload *load)
{
	size_t count = 0;
	AUTO_FREE const struct process **list = NULL;

	for (const struct process *p = load->processes; p; p = p->next)
		count++;
	list = calloc(count + 1, sizeof(const struct process *));
	if (!list)
		return -ENOMEM;
	count = 0;
	for (const struct process *p = load->processes; p; p = p->next)
		list[count++] = p;
	qsort(list, count, sizeof(const struct process *), by_pid);
	json_key(j, "Processes");
	json_object_begin(j);
	for (size_t i = 0; i < count; i++) {
		char pid[24];

		snprintf(pid, sizeof(pid), "%" PRId64, list[i]->pid);
		json_key(j, pid);
		json_object_begin(j);
		json_key(j, "PID");
		json_i64(j, list[i]->pid);
		put_member(j, "ExecutableName", list[i]->executable_name);
		put_member(j, "ExecutablePath", list[i]->executable_path);
		json_object_end(j);
	}
	json_object_end(j);
	return 0;
}

static int write_all(const struct workloads *w, struct buf *out)
{
	AUTO_FREE const struct workload **list = calloc(w->workloads.count + 1, sizeof(const struct workload *));
	size_t pos = 0, count = 0;
	struct json j;
	void *load;

	if (!list)
		return -ENOMEM;
	while (map_next(&w->workloads, &pos, NULL, &load))
		list[count++] = load;
	qsort(list, count, sizeof(const struct workload *), by_id);
	json_init(&j, out, 0);
	j.html_safe = true;
	json_object_begin(&j);
	for (size_t i = 0; i < count; i++) {
		json_key(&j, list[i]->id);
		json_object_begin(&j);
		put_member(&j, "ContainerID", list[i]->id);
		put_member(&j, "NamespaceName", list[i]->namespace_name);
		put_member(&j, "PodName", list[i]->pod_name);
		put_member(&j, "ContainerName", list[i]->container_name);
		if (put_processes(&j, list[i]))
			return -ENOMEM;
		json_object_end(&j);
	}
	json_object_end(&j);
	return finish(out);
}

/* --- functions --- */
static int compare(struct str a, struct str b)
{
	uint32_t common = a.len < b.len ? a.len : b.len;
	int order = memcmp(a.data, b.data, common);

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *a, const void *b)
{
	const struct function *x = *(const struct function *const *)a, *y = *(const struct function *const *)b;
	int order = compare(x->name, y->name);

	if (!order)
		order = compare(x->file, y->file);
	return order ? order : compare(x->language, y->language);
}

static int put_functions(const struct map *set, struct buf *out)
{
	AUTO_FREE const struct function **list = calloc(set->count + 1, sizeof(const struct function *));
	size_t pos = 0, count = 0;
	struct json j;
	void *f;

	if (!list)
		return -ENOMEM;
	while (map_next(set, &pos, NULL, &f))
		list[count++] = f;
	qsort(list, count, sizeof(const struct function *), by_name);
	json_init(&j, out, 0);
	j.html_safe = true;
	if (!count) {
		json_null(&j);
		return finish(out);
	}
	json_array_begin(&j);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(&j);
		json_key(&j, "Language");
		json_string_n(&j, list[i]->language.data, list[i]->language.len);
		json_key(&j, "Name");
		json_string_n(&j, list[i]->name.data, list[i]->name.len);
		json_key(&j, "File");
		json_string_n(&j, list[i]->file.data, list[i]->file.len);
		json_object_end(&j);
	}
	json_array_end(&j);
	return finish(out);
}

static const struct workload *find_workload(const struct workloads *w, const char *id)
{
	size_t pos = 0;
	void *load;

	while (map_next(&w->workloads, &pos, NULL, &load))
		if (!strcmp(((const struct workload *)load)->id, id))
			return load;
	return NULL;
}

static int write_functions(const struct workloads *w, const char *id, struct buf *out)
{
	const struct workload *load = find_workload(w, id);
	struct map all = MAP_EMPTY;
	int error = load ? 0 : -ENOENT;

	for (const struct process *p = load ? load->processes : NULL; p && !error; p = p->next) {
		size_t pos = 0;
		uint64_t hash;
		void *f;

		while (!error && map_next(&p->functions, &pos, &hash, &f))
			error = map_put(&all, hash, f);
	}
	if (!error)
		error = put_functions(&all, out);
	map_fini(&all);
	return error;
}

static int write_process_functions(const struct workloads *w, const char *id, int64_t pid, struct buf *out)
{
	const struct workload *load = find_workload(w, id);
	const struct process *p = load ? load->processes : NULL;

	while (p && p->pid != pid)
		p = p->next;
	return p ? put_functions(&p->functions, out) : -ENOENT;
}

/* --- as others ask --- */
int workloads_write(struct workloads *w, struct buf *out)
{
	int err;

	pthread_mutex_lock(&w->lock);
	err = write_all(w, out);
	pthread_mutex_unlock(&w->lock);
	return err;
}

int workloads_write_functions(struct workloads *w, const char *id, struct buf *out)
{
	int err;

	pthread_mutex_lock(&w->lock);
	err = write_functions(w, id, out);
	pthread_mutex_unlock(&w->lock);
	return err;
}

int workloads_write_process_functions(struct workloads *w, const char *id, int64_t pid, struct buf *out)
{
	int err;

	pthread_mutex_lock(&w->lock);
	err = write_process_functions(w, id, pid, out);
	pthread_mutex_unlock(&w->lock);
	return err;
}
