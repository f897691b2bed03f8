/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload (container) has processes, a process a set of functions, and every function stands once in a table of all, with
 * a count of the processes that have it. Everything is found by a seeded hash of its strings; two that share a hash are told
 * apart by a comparison, and the later one is left out and counted. Processes stand in a list in the order in which they
 * were last seen, which is the order in which they go.
 */
#include "backend/compat/workloads_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

enum {
	DEFAULT_MEMORY_BYTES = 16 << 20,
	DEFAULT_KEEP_AGE_S = 3600,
	ENTRY_BYTES = 48,	 /* an entry of a map at most, its free neighbours included */
	MAX_STRING_BYTES = 1024, /* longer ones are cut */
};

struct workloads *workloads_new(const struct workloads_config *config, struct metrics *metrics)
{
	struct workloads *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	w->config = *config;
	if (!w->config.memory_bytes)
		w->config.memory_bytes = DEFAULT_MEMORY_BYTES;
	if (!w->config.keep_age_ns)
		w->config.keep_age_ns = DEFAULT_KEEP_AGE_S * NSEC_PER_SEC;
	/* Without random bytes a sender could make names collide; those would be left out, nothing worse. */
	if (getrandom(&w->seed, sizeof(w->seed), GRND_NONBLOCK) < 0)
		w->seed = (uintptr_t)w;
	w->used = metrics_gauge(metrics, "hearth_workloads_bytes", NULL, "Memory of what /workloads tells.");
	w->dropped = metrics_counter(metrics, "hearth_workloads_dropped_total", NULL,
				     "Processes and functions missing from /workloads for want of memory.");
	return w;
}

/* --- strings --- */
static struct str cut(struct str s)
{
	if (s.len > MAX_STRING_BYTES)
		s.len = MAX_STRING_BYTES;
	return s;
}

static char *copy_of(struct workloads *w, struct str s)
{
	char *copy = strndup(s.data, cut(s).len);

	if (copy)
		w->bytes += strlen(copy) + 1;
	return copy;
}

static void free_string(struct workloads *w, char *s)
{
	if (s)
		w->bytes -= strlen(s) + 1;
	free(s);
}

static uint64_t hash_string(struct str s, uint64_t seed)
{
	return XXH3_64bits_withSeed(s.data, s.len, seed);
}

/* --- what goes --- */
static void drop_function(struct workloads *w, uint64_t hash, struct function *f)
{
	w->bytes -= ENTRY_BYTES; /* of the process's set */
	if (--f->processes)
		return;
	map_del(&w->functions, hash);
	w->bytes -= sizeof(*f) + f->language.len + f->name.len + f->file.len + ENTRY_BYTES;
	free(f);
}

static void unlink_by_age(struct workloads *w, struct process *p)
{
	*(p->older ? &p->older->newer : &w->oldest) = p->newer;
	*(p->newer ? &p->newer->older : &w->newest) = p->older;
	p->older = p->newer = NULL;
}

static void link_newest(struct workloads *w, struct process *p)
{
	p->older = w->newest;
	*(w->newest ? &w->newest->newer : &w->oldest) = p;
	w->newest = p;
}

static void drop_workload(struct workloads *w, struct workload *load)
{
	map_del(&w->workloads, load->hash);
	w->bytes -= sizeof(*load) + ENTRY_BYTES;
	free_string(w, load->id);
	free_string(w, load->namespace_name);
	free_string(w, load->pod_name);
	free_string(w, load->container_name);
	free(load);
}

static void drop_process(struct workloads *w, struct process *p)
{
	struct process **link = &p->workload->processes;
	size_t pos = 0;
	uint64_t hash;
	void *f;

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	while (map_next(&p->functions, &pos, &hash, &f))
		drop_function(w, hash, f);
	map_fini(&p->functions);
	map_del(&w->processes, p->hash);
	unlink_by_age(w, p);
	if (!p->workload->processes)
		drop_workload(w, p->workload);
	w->drops++;
	w->bytes -= sizeof(*p) + ENTRY_BYTES;
	free_string(w, p->executable_name);
	free_string(w, p->executable_path);
	free(p);
}

void workloads_free(struct workloads *w)
{
	if (!w)
		return;
	while (w->oldest)
		drop_process(w, w->oldest);
	map_fini(&w->workloads);
	map_fini(&w->processes);
	map_fini(&w->functions);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Makes room for @bytes more, but not by dropping @keep. */
static bool make_room(struct workloads *w, uint64_t bytes, const struct process *keep)
{
	while (w->bytes + bytes > w->config.memory_bytes && w->oldest && w->oldest != keep)
		drop_process(w, w->oldest);
	return w->bytes + bytes <= w->config.memory_bytes;
}

/* --- what comes --- */
static struct workload *workload_of(struct workloads *w, const struct profiles *p, const struct resource *resource,
				    struct str id)
{
	uint64_t hash = hash_string(id, w->seed);
	struct workload *load = map_get(&w->workloads, hash);

	if (load)
		return str_is(id, load->id) ? load : NULL;
	load = calloc(1, sizeof(*load));
	if (!load)
		return NULL;
	w->bytes += sizeof(*load) + ENTRY_BYTES;
	load->hash = hash;
	load->id = copy_of(w, id);
	load->namespace_name = copy_of(
		w, profiles_value_text(p, profiles_find_key(p, &resource->attributes, "k8s.namespace.name")));
	load->pod_name = copy_of(w, profiles_value_text(p, profiles_find_key(p, &resource->attributes, "k8s.pod.name")));
	load->container_name = copy_of(
		w, profiles_value_text(p, profiles_find_key(p, &resource->attributes, "k8s.container.name")));
	if (load->id && load->namespace_name && load->pod_name && load->container_name &&
	    !map_put(&w->workloads, hash, load))
		return load;
	drop_workload(w, load);
	return NULL;
}

struct addition {
	struct workloads *w;
	const struct profiles *p;
	const struct resource *resource;
	struct str container;
	uint64_t now_ns;
	uint32_t *seen; /* by location: the round in which the process that is being added had it */
	uint32_t round;
	struct process *process;
	uint64_t drops; /* then; a new process may lie where a dropped one did */
};

static const struct any_value *find(const struct addition *a, const struct sample *s, const char *key)
{
	const struct any_value *v = profiles_find_attribute(a->p, &s->attributes, key);

	return v ? v : profiles_find_key(a->p, &a->resource->attributes, key);
}

static struct process *process_new(struct addition *a, const struct sample *s, int64_t pid, uint64_t hash)
{
	struct workloads *w = a->w;
	struct str name = profiles_value_text(a->p, find(a, s, "process.executable.name"));
	struct str path = profiles_value_text(a->p, find(a, s, "process.executable.path"));
	struct process *p;
	struct workload *load;

	if (!make_room(w, sizeof(*p) + sizeof(*load) + 2 * ENTRY_BYTES + 6 * MAX_STRING_BYTES, NULL))
		return NULL;
	load = workload_of(w, a->p, a->resource, a->container);
	p = load ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		if (load && !load->processes)
			drop_workload(w, load);
		return NULL;
	}
	*p = (struct process){ .workload = load, .hash = hash, .pid = pid, .next = load->processes };
	load->processes = p;
	link_newest(w, p);
	w->bytes += sizeof(*p) + ENTRY_BYTES;
	p->executable_name = copy_of(w, name);
	p->executable_path = copy_of(w, path);
	if (p->executable_name && p->executable_path && !map_put(&w->processes, hash, p))
		return p;
	drop_process(w, p);
	return NULL;
}

/* The process of @s, made when it is new; NULL: it does not fit, counted. */
static struct process *process_of(struct addition *a, const struct sample *s)
{
	struct workloads *w = a->w;
	const struct any_value *v = find(a, s, "process.pid");
	int64_t pid = v && v->kind == VALUE_INT ? v->integer : 0;
	uint64_t hash = hash_string(a->container, w->seed ^ XXH3_64bits_withSeed(&pid, sizeof(pid), w->seed));
	struct process *p = map_get(&w->processes, hash);

	if (p && (p->pid != pid || !str_is(a->container, p->workload->id)))
		p = NULL;
	else if (!p)
		p = process_new(a, s, pid, hash);
	if (!p) {
		metric_add(w->dropped, 1);
		return NULL;
	}
	p->seen_ns = a->now_ns;
	unlink_by_age(w, p);
	link_newest(w, p);
	return p;
}

static struct function *function_new(struct workloads *w, uint64_t hash, const struct str parts[3])
{
	size_t len = (size_t)parts[0].len + parts[1].len + parts[2].len;
	struct function *f = calloc(1, sizeof(*f) + len + 1);
	char *at = f ? f->text : NULL;
	struct str *to[3];

	if (!f || map_put(&w->functions, hash, f)) {
		free(f);
		return NULL;
	}
	to[0] = &f->language;
	to[1] = &f->name;
	to[2] = &f->file;
	for (int i = 0; i < 3; i++) {
		memcpy(at, parts[i].data, parts[i].len);
		*to[i] = (struct str){ at, parts[i].len };
		at += parts[i].len;
	}
	w->bytes += sizeof(*f) + len + ENTRY_BYTES;
	return f;
}

static bool is_same(struct str a, struct str b)
{
	return a.len == b.len && !memcmp(a.data, b.data, a.len);
}

static bool is_function(const struct function *f, const struct str parts[3])
{
	return is_same(f->language, parts[0]) && is_same(f->name, parts[1]) && is_same(f->file, parts[2]);
}

static void add_function(struct addition *a, struct str language, const struct profile_line *line)
{
	struct workloads *w = a->w;
	const struct profile_function *from = &a->p->dict.functions[line->function_index];
	struct str parts[3] = { cut(language), cut(profiles_string(a->p, from->name_strindex)),
				cut(profiles_string(a->p, from->filename_strindex)) };
	uint64_t hash = hash_string(parts[0], hash_string(parts[1], hash_string(parts[2], w->seed)));
	struct function *f = map_get(&a->process->functions, hash);
	size_t bytes = sizeof(*f) + parts[0].len + parts[1].len + parts[2].len + 2 * ENTRY_BYTES;

	if (f && is_function(f, parts))
		return;
	if (!f && make_room(w, bytes, a->process)) {
		f = map_get(&w->functions, hash);
		if (!f)
			f = function_new(w, hash, parts);
		if (f && is_function(f, parts) && !map_put(&a->process->functions, hash, f)) {
			f->processes++;
			w->bytes += ENTRY_BYTES;
			return;
		}
		if (f && !f->processes) { /* just made, for nobody */
			f->processes = 1;
			w->bytes += ENTRY_BYTES;
			drop_function(w, hash, f);
		}
	}
	metric_add(w->dropped, 1);
}

static void add_stack(struct addition *a, const struct indices *stack)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct profile_location *l = &a->p->dict.locations[stack->items[i]];
		struct str language;

		if (a->seen[stack->items[i]] == a->round || !l->line_count)
			continue;
		a->seen[stack->items[i]] = a->round;
		language = profiles_value_text(a->p, profiles_find_attribute(a->p, &l->attributes, "profile.frame.type"));
		for (uint32_t k = 0; k < l->line_count; k++)
			add_function(a, language.len ? language : STR("unknown"), &l->lines[k]);
	}
}

static void add_profile(struct addition *a, const struct profile *profile)
{
	struct str type = profiles_string(a->p, profile->sample_type.type_strindex);

	if (!str_is(type, "samples") && !str_is(type, "events"))
		return;
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct sample *s = &profile->samples[i];
		struct process *process = process_of(a, s);

		if (process != a->process || a->drops != a->w->drops)
			a->round++;
		a->process = process;
		a->drops = a->w->drops;
		if (process)
			add_stack(a, &a->p->dict.stacks[s->stack_index]);
	}
}

void workloads_add(struct workloads *w, const struct profiles *p, uint64_t now_ns)
{
	AUTO_FREE uint32_t *seen = calloc(p->dict.location_count + 1ul, sizeof(*seen));
	struct addition a = { .w = w, .p = p, .now_ns = now_ns, .seen = seen };

	pthread_mutex_lock(&w->lock);
	while (w->oldest && now_ns - w->oldest->seen_ns > w->config.keep_age_ns)
		drop_process(w, w->oldest);
	for (uint32_t i = 0; seen && i < p->resource_count; i++) {
		const struct resource_profiles *rp = &p->resources[i];

		a.resource = &rp->resource;
		a.container = cut(profiles_value_text(p, profiles_find_key(p, &rp->resource.attributes, "container.id")));
		a.process = NULL;
		a.round++;
		for (uint32_t k = 0; a.container.len && k < rp->scope_count; k++)
			for (uint32_t n = 0; n < rp->scopes[k].profile_count; n++)
				add_profile(&a, &rp->scopes[k].profiles[n]);
	}
	if (!seen)
		metric_add(w->dropped, 1);
	metric_set(w->used, w->bytes);
	pthread_mutex_unlock(&w->lock);
}
