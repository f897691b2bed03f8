/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps by hashes of uids and container ids; a pod is found by its uid, by that of its file where it is a static one, and by
 * the ids of its containers. Two texts of one hash would hide each other, so what is found is compared.
 */
#include "enrich/known/known.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "enrich/known/describe.h"

enum { SWEEP_S = 10, UNUSED_S = 600, MAX_MISSED = 4096 };

struct known {
	pthread_mutex_t lock;
	const struct rules *rules;
	struct metrics *metrics;
	struct map pods;       /* by uid: struct pod, owned */
	struct map places;     /* by static uid and by container id: the same pods */
	struct map namespaces; /* by name: struct pod, owned, as a holder of attributes */
	struct map containers; /* by id: struct container, owned */
	struct map missed;     /* by id or uid: samples that nothing was known of, + 1 */
	char cluster_uid[64];
	bool cluster_is_asked; /* answered, whatever the answer */
	char node[254], node_uid[64];
	bool node_is_asked;
	uint64_t swept_ns;
	size_t present;
	struct metric *by_pod, *by_container, *by_nothing, *outside, *late, *too_many, *pod_gauge, *container_gauge;
};

static uint64_t key_of(const char *text)
{
	return XXH3_64bits(text, strlen(text));
}

/* --- life --- */

static void tell(void *arg)
{
	struct known *k = arg;

	metric_set(k->pod_gauge, known_pod_count(k));
	pthread_mutex_lock(&k->lock);
	metric_set(k->container_gauge, k->containers.count);
	pthread_mutex_unlock(&k->lock);
	memory_tell(k->metrics, "pods", known_memory_bytes(k));
}

static void make_metrics(struct known *k, struct metrics *m)
{
	static const char samples[] = "hearth_enrich_samples_total", help[] = "Samples by what told more of their process.";

	k->metrics = m;
	k->by_pod = metrics_counter(m, samples, "found=\"pod\"", help);
	k->by_container = metrics_counter(m, samples, "found=\"container\"", help);
	k->by_nothing = metrics_counter(m, samples, "found=\"nothing\"", help);
	k->outside = metrics_counter(m, samples, "found=\"no container\"", help);
	k->late = metrics_counter(m, "hearth_enrich_late_samples_total", NULL,
				  "Samples that were passed on before the pod or container they are of was known.");
	k->too_many = metrics_counter(m, "hearth_enrich_dropped_objects_total", NULL,
				      "Pods and containers that found no room in the table.");
	k->pod_gauge = metrics_gauge(m, "hearth_kube_pods", NULL, "Pods that are known, without those that have gone.");
	k->container_gauge = metrics_gauge(m, "hearth_local_containers", NULL,
					   "Containers that are known by files of this host.");
}

int known_new(const struct rules *rules, struct metrics *metrics, struct known **ret)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	k->rules = rules;
	make_metrics(k, metrics);
	k->swept_ns = clock_mono_ns();
	if (metrics_on_collect(metrics, tell, k)) {
		k->metrics = NULL;
		known_free(k);
		return -ENOMEM;
	}
	*ret = k;
	return 0;
}

static void free_all(struct map *m, void (*fn)(void *value))
{
	size_t pos = 0;
	void *value;

	while (fn && map_next(m, &pos, NULL, &value))
		fn(value);
	map_fini(m);
}

static void free_pod(void *pod)
{
	pod_free(pod);
}

static void free_container(void *container)
{
	container_free(container);
}

void known_free(struct known *k)
{
	if (!k)
		return;
	if (k->metrics)
		metrics_off_collect(k->metrics, tell, k);
	free_all(&k->pods, free_pod);
	free_all(&k->namespaces, free_pod);
	free_all(&k->containers, free_container);
	free_all(&k->places, NULL);
	free_all(&k->missed, NULL);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* --- the maps --- */

/* Samples that went on without the name that has come now. */
static void count_late(struct known *k, const char *id)
{
	uintptr_t missed = (uintptr_t)map_del(&k->missed, key_of(id));

	if (missed)
		metric_add(k->late, missed - 1);
}

static void for_each_place(struct known *k, struct pod *p, void (*fn)(struct known *k, struct pod *p, const char *id))
{
	if (p->static_uid)
		fn(k, p, pod_text(p, p->static_uid));
	for (uint32_t i = 0; i < p->container_count; i++) {
		const uint32_t ids[] = { p->containers[i].id, p->containers[i].ended_id, p->containers[i].last_id };

		for (size_t j = 0; j < sizeof(ids) / sizeof(ids[0]); j++)
			if (ids[j])
				fn(k, p, pod_text(p, ids[j]));
	}
}

static void add_place(struct known *k, struct pod *p, const char *id)
{
	(void)map_put(&k->places, key_of(id), p); /* without it the pod is found by its uid */
	count_late(k, id);
}

static void remove_place(struct known *k, struct pod *p, const char *id)
{
	if (map_get(&k->places, key_of(id)) == p)
		map_del(&k->places, key_of(id));
}

/* Takes the pod of @uid out of the table. */
static struct pod *take_pod(struct known *k, const char *uid)
{
	struct pod *p = map_del(&k->pods, key_of(uid));

	if (!p)
		return NULL;
	for_each_place(k, p, remove_place);
	k->present -= !p->gone_ns;
	return p;
}

static struct pod *pod_by_uid(struct known *k, const char *uid)
{
	struct pod *p = *uid ? map_get(&k->pods, key_of(uid)) : NULL;

	return p && !strcmp(pod_text(p, p->uid), uid) ? p : NULL;
}

static void set_gone(struct known *k, struct pod *p)
{
	if (p->gone_ns)
		return;
	p->gone_ns = clock_mono_ns();
	k->present--;
}

static void *keep_pod(void *arg, void *value)
{
	struct known *k = arg;
	struct pod *p = value;

	if (!p->gone_ns || clock_mono_ns() - p->gone_ns < KNOWN_KEEP_S * NSEC_PER_SEC)
		return p;
	for_each_place(k, p, remove_place);
	pod_free(p);
	return NULL;
}

static void *keep_container(void *arg, void *value)
{
	struct container *c = value;

	(void)arg;
	if (clock_mono_ns() - c->used_ns < UNUSED_S * NSEC_PER_SEC)
		return c;
	container_free(c);
	return NULL;
}

/* Forgets what has been gone, or not been used, for long. */
static void sweep(struct known *k)
{
	uint64_t now = clock_mono_ns();

	if (now - k->swept_ns < SWEEP_S * NSEC_PER_SEC)
		return;
	k->swept_ns = now;
	map_sweep(&k->pods, keep_pod, k);
	map_sweep(&k->containers, keep_container, NULL);
	if (k->missed.count >= MAX_MISSED)
		map_fini(&k->missed);
}

/* --- learning --- */

/* A pod of the same owner knows the owner's owner: nobody has to be asked. */
static void copy_top(struct known *k, struct pod *p)
{
	const char *uid = pod_text(p, p->owner.uid);
	size_t pos = 0;
	void *value;

	while (map_next(&k->pods, &pos, NULL, &value)) {
		const struct pod *other = value;

		if (other->top_state == POD_TOP_ASK || strcmp(pod_text(other, other->owner.uid), uid) != 0)
			continue;
		pod_set_top(p, other->top_state, pod_text(other, other->top.kind), pod_text(other, other->top.name),
			    pod_text(other, other->top.uid));
		return;
	}
}

static bool has_top(const struct pod *p)
{
	const char *kind = pod_text(p, p->owner.kind);

	return p->owner.uid && (!strcmp(kind, "ReplicaSet") || !strcmp(kind, "Job"));
}

void known_put_pod(struct known *k, struct pod *p, uint64_t list_number)
{
	struct pod *before;

	if (!p->uid) {
		pod_free(p);
		return;
	}
	pthread_mutex_lock(&k->lock);
	p->list_number = list_number;
	p->top_state = has_top(p) ? POD_TOP_ASK : POD_TOP_NONE;
	if (p->top_state == POD_TOP_ASK)
		copy_top(k, p);
	pod_fit(p);
	before = take_pod(k, pod_text(p, p->uid));
	pod_free(before);
	if (k->pods.count >= KNOWN_MAX_PODS || map_put(&k->pods, key_of(pod_text(p, p->uid)), p)) {
		metric_add(k->too_many, 1);
		pod_free(p);
	} else {
		k->present++;
		count_late(k, pod_text(p, p->uid));
		for_each_place(k, p, add_place);
	}
	sweep(k);
	pthread_mutex_unlock(&k->lock);
}

void known_pod_gone(struct known *k, const char *uid)
{
	struct pod *p;

	pthread_mutex_lock(&k->lock);
	p = pod_by_uid(k, uid);
	if (p)
		set_gone(k, p);
	sweep(k);
	pthread_mutex_unlock(&k->lock);
}

void known_end_list(struct known *k, uint64_t list_number)
{
	size_t pos = 0;
	void *value;

	pthread_mutex_lock(&k->lock);
	while (map_next(&k->pods, &pos, NULL, &value)) {
		struct pod *p = value;

		if (p->list_number != list_number)
			set_gone(k, p);
	}
	sweep(k);
	pthread_mutex_unlock(&k->lock);
}

void known_put_container(struct known *k, struct container *c)
{
	const char *id = container_text(c, c->id);
	uint64_t key = key_of(id);

	pthread_mutex_lock(&k->lock);
	c->used_ns = clock_mono_ns();
	container_free(map_del(&k->containers, key));
	buf_fit(&c->texts);
	id = container_text(c, c->id);
	if (!*id || k->containers.count >= KNOWN_MAX_CONTAINERS || map_put(&k->containers, key, c)) {
		metric_add(k->too_many, *id != '\0');
		container_free(c);
	} else {
		count_late(k, id);
	}
	pthread_mutex_unlock(&k->lock);
}

/* --- what more there is to ask for --- */

static bool fill_ask(struct known_ask *ask, enum known_object object, const char *namespace, const char *name,
		     const char *uid)
{
	ask->object = object;
	snprintf(ask->namespace, sizeof(ask->namespace), "%s", namespace);
	snprintf(ask->name, sizeof(ask->name), "%s", name);
	snprintf(ask->uid, sizeof(ask->uid), "%s", uid);
	return true;
}

static bool ask_of_pod(struct known *k, const struct pod *p, unsigned not, struct known_ask *ret)
{
	bool is_job = !strcmp(pod_text(p, p->owner.kind), "Job");
	enum known_object object = is_job ? KNOWN_JOB : KNOWN_REPLICASET;
	const char *namespace = pod_text(p, p->namespace);

	if (p->node && !k->node_is_asked && !(not &1u << KNOWN_NODE) && rules_tell(k->rules, ENRICH_NODE_UID))
		return fill_ask(ret, KNOWN_NODE, "", pod_text(p, p->node), "");
	if (p->top_state == POD_TOP_ASK && !(not &1u << object))
		return fill_ask(ret, object, namespace, pod_text(p, p->owner.name), pod_text(p, p->owner.uid));
	if (*namespace && !(not &1u << KNOWN_NAMESPACE) && rules_want_namespaces(k->rules) &&
	    !map_get(&k->namespaces, key_of(namespace)))
		return fill_ask(ret, KNOWN_NAMESPACE, "", namespace, "");
	return false;
}

bool known_next_ask(struct known *k, unsigned not, struct known_ask *ret)
{
	bool is_found = false;
	size_t pos = 0;
	void *value;

	pthread_mutex_lock(&k->lock);
	if (!k->cluster_is_asked && !(not &1u << KNOWN_CLUSTER) && rules_tell(k->rules, ENRICH_CLUSTER_UID))
		is_found = fill_ask(ret, KNOWN_CLUSTER, "", "kube-system", "");
	while (!is_found && map_next(&k->pods, &pos, NULL, &value))
		is_found = ask_of_pod(k, value, not, ret);
	pthread_mutex_unlock(&k->lock);
	return is_found;
}

/* The owner of all pods of the owner @uid is that of @facts. */
static void set_tops(struct known *k, const char *uid, const struct pod *facts)
{
	size_t pos = 0;
	void *value;

	while (map_next(&k->pods, &pos, NULL, &value)) {
		struct pod *p = value;

		if (p->top_state != POD_TOP_ASK || strcmp(pod_text(p, p->owner.uid), uid) != 0)
			continue;
		if (facts && facts->owner.name)
			pod_set_top(p, POD_TOP_KNOWN, pod_text(facts, facts->owner.kind), pod_text(facts, facts->owner.name),
				    pod_text(facts, facts->owner.uid));
		else
			pod_guess_top(p);
	}
}

void known_answer(struct known *k, const struct known_ask *ask, struct pod *facts)
{
	pthread_mutex_lock(&k->lock);
	if (ask->object == KNOWN_CLUSTER) {
		k->cluster_is_asked = true;
		snprintf(k->cluster_uid, sizeof(k->cluster_uid), "%s", facts ? pod_text(facts, facts->uid) : "");
	} else if (ask->object == KNOWN_NODE) {
		k->node_is_asked = true;
		snprintf(k->node, sizeof(k->node), "%s", ask->name);
		snprintf(k->node_uid, sizeof(k->node_uid), "%s", facts ? pod_text(facts, facts->uid) : "");
	} else if (ask->object == KNOWN_NAMESPACE) {
		facts = facts ? facts : pod_new();
		if (facts)
			pod_fit(facts);
		if (facts && !map_put(&k->namespaces, key_of(ask->name), facts))
			facts = NULL; /* the table's */
	} else {
		set_tops(k, ask->uid, facts);
	}
	pthread_mutex_unlock(&k->lock);
	pod_free(facts);
}

/* --- sizes --- */

size_t known_pod_count(struct known *k)
{
	size_t count;

	pthread_mutex_lock(&k->lock);
	count = k->present;
	pthread_mutex_unlock(&k->lock);
	return count;
}

static size_t pods_bytes(const struct map *m)
{
	size_t pos = 0, bytes = map_memory_bytes(m);
	void *value;

	while (map_next(m, &pos, NULL, &value))
		bytes += pod_memory_bytes(value);
	return bytes;
}

size_t known_memory_bytes(struct known *k)
{
	size_t bytes, pos = 0;
	void *value;

	pthread_mutex_lock(&k->lock);
	bytes = sizeof(*k) + pods_bytes(&k->pods) + pods_bytes(&k->namespaces) + map_memory_bytes(&k->places) +
		map_memory_bytes(&k->containers) + map_memory_bytes(&k->missed);
	while (map_next(&k->containers, &pos, NULL, &value))
		bytes += sizeof(struct container) + ((struct container *)value)->texts.cap;
	pthread_mutex_unlock(&k->lock);
	return bytes;
}

/* --- asking --- */

static struct pod *pod_by_place(struct known *k, const char *id)
{
	return *id ? map_get(&k->places, key_of(id)) : NULL;
}

static struct container *container_by_id(struct known *k, const char *id)
{
	struct container *c = *id ? map_get(&k->containers, key_of(id)) : NULL;

	return c && !strcmp(container_text(c, c->id), id) ? c : NULL;
}

bool known_has_container(struct known *k, const char *id)
{
	bool has;

	pthread_mutex_lock(&k->lock);
	has = container_by_id(k, id) || pod_by_place(k, id);
	pthread_mutex_unlock(&k->lock);
	return has;
}

/* Finds the pod and the container of @q. */
static void find(struct known *k, const struct known_query *q, struct findings *f)
{
	f->local = container_by_id(k, q->container_id);
	f->pod = pod_by_place(k, q->container_id);
	if (f->pod)
		f->container = pod_container_of(f->pod, q->container_id);
	if (f->pod && !f->container)
		f->pod = NULL; /* another id of the same hash */
	if (!f->pod)
		f->pod = pod_by_uid(k, q->pod_uid);
	if (!f->pod && (f->pod = pod_by_place(k, q->pod_uid)) &&
	    strcmp(pod_text(f->pod, f->pod->static_uid), q->pod_uid) != 0)
		f->pod = NULL;
	if (!f->pod && f->local)
		f->pod = pod_by_uid(k, container_text(f->local, f->local->pod_uid));
	if (f->pod)
		f->namespace = map_get(&k->namespaces, key_of(pod_text(f->pod, f->pod->namespace)));
}

/* Samples that may get a name when it is too late for them. */
static void count_missed(struct known *k, const struct known_query *q)
{
	uint64_t key = key_of(*q->container_id ? q->container_id : q->pod_uid);
	uintptr_t before = (uintptr_t)map_get(&k->missed, key);

	if (before || k->missed.count < MAX_MISSED)
		(void)map_put(&k->missed, key, (void *)((before ? before : 1) + (uintptr_t)q->samples));
}

static void count(struct known *k, const struct known_query *q, const struct findings *f)
{
	bool is_inside = *q->container_id || *q->pod_uid;

	metric_add(f->pod ? k->by_pod : f->local ? k->by_container : !is_inside ? k->outside : k->by_nothing, q->samples);
	if (is_inside && !f->pod && !f->local)
		count_missed(k, q);
}

void known_describe(struct known *k, const struct known_query *q, known_emit emit, void *arg)
{
	struct findings f = { .query = q, .rules = k->rules };

	pthread_mutex_lock(&k->lock);
	sweep(k);
	f.cluster_uid = k->cluster_uid;
	f.node = k->node;
	f.node_uid = k->node_uid;
	find(k, q, &f);
	if (f.local)
		f.local->used_ns = clock_mono_ns();
	count(k, q, &f);
	describe(&f, emit, arg);
	pthread_mutex_unlock(&k->lock);
}
