/* SPDX-License-Identifier: Apache-2.0 */
/* One lock over the list of what is wanted; files are read outside of it. */
#include "enrich/local/local.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "enrich/known/known.h"
#include "enrich/local/sources.h"

#define SOURCE_ADDRESS(name) &name,
static const struct local_source *const sources[] = { LOCAL_SOURCES(SOURCE_ADDRESS) };

enum {
	MAX_WANTED = 256,
	ID_BYTES = 128,
	MAX_IN_VAIN = 4096,
	VAIN_S = 30, /* until the files are looked at again */
};

struct local {
	const char *roots[2];
	size_t root_count;
	struct known *known;
	pthread_t thread;
	bool is_running;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	bool stop, is_busy;
	char wanted[MAX_WANTED][ID_BYTES];
	size_t wanted_count;
	struct map in_vain; /* by the id's hash: when, in seconds + 1 */
	struct metric *found, *unknown, *unreadable;
};

/* --- roots --- */

/* The host's files are not ours where its first process has another root. */
static size_t find_roots(const char *root, const char *roots[2])
{
	static const char host[] = "/proc/1/root";
	struct stat its, own;
	size_t count = 0;

	if (root) {
		roots[0] = !strcmp(root, "/") ? "" : root;
		return 1;
	}
	if (!stat("/proc/1/root/", &its) && !stat("/", &own) && (its.st_dev != own.st_dev || its.st_ino != own.st_ino))
		roots[count++] = host;
	roots[count++] = "";
	return count;
}

void local_describe(const char *root, struct buf *text)
{
	const char *roots[2];
	size_t count = find_roots(root, roots), found = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < ARRAY_LEN(sources); j++) {
			AUTO_FREE char *path = NULL;

			if (asprintf(&path, "%s%s", roots[i], sources[j]->place) < 0 || access(path, F_OK))
				continue;
			buf_printf(text, "%s%s", found++ ? ", " : "", sources[j]->name);
			if (access(path, R_OK))
				buf_printf(text, " (cannot read %s)", path);
		}
	}
	if (!found)
		buf_puts(text, "none");
}

/* --- the thread --- */

static void look_up(struct local *l, const char *id)
{
	struct container *c = calloc(1, sizeof(*c));
	bool is_found = false;

	if (!c)
		return;
	for (size_t i = 0; i < l->root_count; i++) {
		for (size_t j = 0; j < ARRAY_LEN(sources) && !c->pod; j++) {
			int err = sources[j]->find(l->roots[i], id, c);

			is_found |= !err;
			if (err && err != -ENOENT)
				metric_add(l->unreadable, 1);
		}
	}
	metric_add(is_found ? l->found : l->unknown, 1);
	if (!is_found) {
		container_free(c);
		return;
	}
	c->id = texts_add(&c->texts, id, strlen(id));
	known_put_container(l->known, c);
}

static void *run(void *arg)
{
	struct local *l = arg;
	char id[ID_BYTES];

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (!l->wanted_count) {
			pthread_cond_wait(&l->changed, &l->lock);
			continue;
		}
		memcpy(id, l->wanted[--l->wanted_count], sizeof(id));
		l->is_busy = true;
		pthread_mutex_unlock(&l->lock);
		look_up(l, id);
		pthread_mutex_lock(&l->lock);
		l->is_busy = false;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- asking --- */

/* Ids come out of paths of control groups, where a name may hold anything. */
static bool is_file_name(const char *id)
{
	size_t len = strlen(id);

	return len && len < ID_BYTES && id[0] != '.' &&
	       strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-") == len;
}

/* Called with the lock. */
static bool was_in_vain(struct local *l, const char *id, bool *is_first_ret)
{
	uint64_t key = XXH3_64bits(id, strlen(id));
	uintptr_t second = clock_mono_ns() / NSEC_PER_SEC + 1, before = (uintptr_t)map_get(&l->in_vain, key);

	*is_first_ret = !before;
	if (before && second - before < VAIN_S)
		return true;
	if (l->in_vain.count >= MAX_IN_VAIN)
		map_fini(&l->in_vain);
	(void)map_put(&l->in_vain, key, (void *)second);
	return false;
}

bool local_want(struct local *l, const char *id)
{
	bool is_wanted = false, is_first = false;

	if (!is_file_name(id))
		return false;
	pthread_mutex_lock(&l->lock);
	if (!was_in_vain(l, id, &is_first) && l->wanted_count < MAX_WANTED) {
		strcpy(l->wanted[l->wanted_count++], id);
		is_wanted = true;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return is_wanted && is_first;
}

void local_wait(struct local *l, uint64_t deadline_ns)
{
	int err = 0;

	pthread_mutex_lock(&l->lock);
	while ((l->wanted_count || l->is_busy) && !err)
		err = thread_cond_wait(&l->changed, &l->lock, deadline_ns);
	pthread_mutex_unlock(&l->lock);
}

/* --- life --- */

int local_new(const char *root, struct known *known, struct metrics *metrics, struct local **ret)
{
	static const char name[] = "hearth_local_lookups_total",
			  help[] = "Containers that were looked up in the files of this host.";
	struct local *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->root_count = find_roots(root, l->roots);
	l->known = known;
	l->found = metrics_counter(metrics, name, "result=\"found\"", help);
	l->unknown = metrics_counter(metrics, name, "result=\"unknown\"", help);
	l->unreadable = metrics_counter(metrics, "hearth_local_unreadable_total", NULL,
					"State files of containers that could not be read, or not understood.");
	pthread_mutex_init(&l->lock, NULL);
	err = thread_cond_init(&l->changed);
	if (!err)
		err = thread_start(&l->thread, "hearth-local", run, l);
	l->is_running = !err;
	if (err) {
		local_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void local_free(struct local *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (l->is_running)
		pthread_join(l->thread, NULL);
	map_fini(&l->in_vain);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
