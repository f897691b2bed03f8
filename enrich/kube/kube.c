/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread: a list until one is whole, then watches from where that list or the last watch ended; objects that tell more
 * of what is known are asked for in between.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "enrich/kube/kube_internal.h"

enum {
	BACKOFF_FIRST_MS = 800,
	BACKOFF_MAX_MS = 30000,
	KUBELET_TURN_S = 5, /* between two lists of the kubelet */
};

/* --- what all parts count and say --- */

void kube_count_garbage(struct kube *k, const char *why)
{
	static struct log_limit limit;

	metric_add(k->garbage, 1);
	log_limited(&limit, MINUTE_NS, LOG_WARN, "an object of Kubernetes' API at %s cannot be read: it %s", k->access.url,
		    why);
}

void kube_count_request(struct kube *k, enum request_kind kind, const struct kube_answer *a)
{
	metric_add(k->requests[kind], 1);
	if (a->outcome != KUBE_OK && a->outcome != KUBE_STOPPED && a->body_error != -ECANCELED)
		metric_add(k->errors[a->outcome], 1);
}

/* The server can be reached again. */
void kube_note_back(struct kube *k)
{
	if (k->is_away)
		log_info("Kubernetes' API at %s answers again", k->access.url);
	k->is_away = false;
	metric_set(k->synced, 1);
}

uint64_t kube_random_below(uint64_t bound)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)clock_mono_ns();
	return bound ? number % bound : 0;
}

/* --- the thread --- */

static void set_state(struct kube *k, bool has_list, const char *trouble)
{
	pthread_mutex_lock(&k->lock);
	k->has_list |= has_list;
	snprintf(k->trouble, sizeof(k->trouble), "%s", trouble);
	pthread_cond_broadcast(&k->changed);
	pthread_mutex_unlock(&k->lock);
}

static const char *advice(enum kube_outcome outcome)
{
	switch (outcome) {
	case KUBE_UNAUTHORIZED:
		return " (check the token or certificate; a service account's token is read anew each time)";
	case KUBE_FORBIDDEN:
		return " (its account needs the verbs list and watch for pods: docs/kubernetes.md)";
	case KUBE_UNTRUSTED:
		return " (check whose certificates are trusted)";
	default:
		return "";
	}
}

static void note_failure(struct kube *k, const struct kube_answer *a)
{
	char trouble[512];

	snprintf(trouble, sizeof(trouble), "%s%s", a->message[0] ? a->message : kube_outcome_name(a->outcome),
		 advice(a->outcome));
	set_state(k, false, trouble);
	metric_set(k->synced, 0);
	if (a->outcome == KUBE_EXPIRED || a->outcome == KUBE_BUSY)
		return;
	if (!k->is_away)
		log_warn(
			"cannot follow pods through %s at %s: %s; trying again and again, samples go on without what is not "
			"known",
			k->access.is_kubelet ? "the kubelet" : "Kubernetes' API", k->access.url, trouble);
	k->is_away = true;
}

static void note_list(struct kube *k)
{
	bool is_first = !k->has_list;

	if (is_first && !k->count)
		log_warn("Kubernetes' API knows no pods on the node %s; is that its name there? --kube-node says another",
			 k->node);
	kube_note_back(k);
	log_debug("%zu pods on the node %s", k->count, k->node);
	set_state(k, true, "");
}

/* How long to wait after a failure: longer each time, and not at the same time as others. */
static uint64_t pause_ns(struct kube *k, const struct kube_answer *a)
{
	uint64_t ms = k->backoff_ms;

	if (a->outcome == KUBE_EXPIRED && !k->failures++)
		return 0; /* a list will do */
	if (a->retry_after_ns)
		return a->retry_after_ns + kube_random_below(k->backoff_ms) * NSEC_PER_MSEC;
	for (unsigned i = 0; i < k->failures && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	k->failures++;
	ms = ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
	return (ms / 2 + kube_random_below(ms / 2 + 1)) * NSEC_PER_MSEC;
}

static void step(struct kube *k)
{
	struct kube_answer a;
	bool is_list = !k->version[0];

	if (is_list)
		kube_list(k, &a);
	else
		kube_watch(k, &a);
	if (a.outcome == KUBE_STOPPED)
		return;
	if (a.outcome != KUBE_OK) {
		uint64_t pause = pause_ns(k, &a);

		note_failure(k, &a);
		client_wait(k->client, clock_mono_ns() + pause);
		return;
	}
	k->failures = 0;
	if (!is_list)
		return;
	kube_ask_all(k);
	note_list(k);
	if (k->access.is_kubelet) {
		k->version[0] = '\0';
		client_wait(k->client, clock_mono_ns() + KUBELET_TURN_S * NSEC_PER_SEC);
	}
}

static void *run(void *arg)
{
	struct kube *k = arg;

	while (!atomic_load(&k->stop))
		step(k);
	return NULL;
}

/* --- life --- */

static void make_metrics(struct kube *k, struct metrics *m)
{
	static const char requests[] = "hearth_kube_requests_total", errors[] = "hearth_kube_errors_total";
	static const char request_help[] = "Requests to Kubernetes' API that have ended.";
	static const char error_help[] = "Requests to Kubernetes' API that failed, and objects of it that were not taken.";

	k->requests[REQUEST_LIST] = metrics_counter(m, requests, "verb=\"list\"", request_help);
	k->requests[REQUEST_WATCH] = metrics_counter(m, requests, "verb=\"watch\"", request_help);
	k->requests[REQUEST_GET] = metrics_counter(m, requests, "verb=\"get\"", request_help);
	for (int i = KUBE_AWAY; i < KUBE_OUTCOMES; i++) {
		AUTO(buf_fini) struct buf labels = BUF_EMPTY;
		const char *name = kube_outcome_name(i);

		metrics_label(&labels, "reason", name, strlen(name));
		k->errors[i] = metrics_counter(m, errors, buf_text(&labels), error_help);
	}
	k->garbage = metrics_counter(m, errors, "reason=\"object\"", error_help);
	k->too_large = metrics_counter(m, errors, "reason=\"too large\"", error_help);
	k->restarts = metrics_counter(m, "hearth_kube_watch_ends_total", NULL, "Watches of pods that have ended.");
	k->events = metrics_counter(m, "hearth_kube_events_total", NULL, "Events that watches of pods brought.");
	k->synced = metrics_gauge(m, "hearth_kube_synced", NULL, "1: the pods of the node are known and followed.");
}

/* Makes all but the thread. */
static int make(struct kube_config *config, struct known *known, struct rules *rules, struct metrics *metrics,
		struct kube **ret, struct buf *error)
{
	struct kube *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		kube_access_fini(&config->access);
		return -ENOMEM;
	}
	k->access = config->access;
	config->access = (struct kube_access){ 0 };
	k->backoff_ms = config->backoff_ms ? config->backoff_ms : BACKOFF_FIRST_MS;
	k->known = known;
	k->rules = rules;
	pthread_mutex_init(&k->lock, NULL);
	err = thread_cond_init(&k->changed);
	make_metrics(k, metrics);
	k->node = strdup(config->node);
	if (!err)
		err = k->node ? 0 : -ENOMEM;
	if (!err)
		err = client_new(&k->access, &k->stop, &k->client, error);
	if (err) {
		kube_free(k);
		return err;
	}
	*ret = k;
	return 0;
}

int kube_new(struct kube_config *config, struct known *known, struct rules *rules, struct metrics *metrics,
	     struct kube **ret, struct buf *error)
{
	struct kube *k;
	int err = make(config, known, rules, metrics, &k, error);

	if (!err)
		err = thread_start(&k->thread, "hearth-kube", run, k);
	else
		return err;
	k->is_running = !err;
	if (err) {
		kube_free(k);
		return err;
	}
	*ret = k;
	return 0;
}

void kube_free(struct kube *k)
{
	if (!k)
		return;
	atomic_store(&k->stop, true);
	if (k->is_running) {
		client_wake(k->client);
		pthread_join(k->thread, NULL);
	}
	client_free(k->client);
	buf_fini(&k->object);
	pthread_cond_destroy(&k->changed);
	pthread_mutex_destroy(&k->lock);
	kube_access_fini(&k->access);
	free(k->node);
	free(k);
}

int kube_wait(struct kube *k, uint64_t deadline_ns, struct buf *why)
{
	int err = 0;

	pthread_mutex_lock(&k->lock);
	while (!k->has_list && !err)
		err = thread_cond_wait(&k->changed, &k->lock, deadline_ns);
	err = k->has_list ? 0 : -ETIMEDOUT;
	if (err && why)
		buf_puts(why, k->trouble[0] ? k->trouble : "no answer yet");
	pthread_mutex_unlock(&k->lock);
	return err;
}

/* --- one try --- */

static int try_once(struct kube *k, struct kube_answer *a, struct buf *text)
{
	kube_list(k, a);
	if (a->outcome != KUBE_OK) {
		buf_printf(text, "%s: %s%s", k->access.url, a->message, advice(a->outcome));
		return -EIO;
	}
	kube_ask_all(k);
	buf_printf(text, "%s, %zu pods on the node %s", k->access.url, k->count, k->node);
	for (int i = 0; i < KNOWN_OBJECTS; i++)
		if (k->refused & 1u << i)
			buf_printf(text, "; may not get %s", kube_object_plural(i));
	return 0;
}

int kube_try(struct kube_config *config, struct buf *text)
{
	struct rules_config rules_config = { 0 };
	struct rules *rules = NULL;
	struct known *known = NULL;
	struct metrics *metrics = metrics_new();
	struct kube *k = NULL;
	struct kube_answer a;
	int err = metrics ? rules_new(&rules_config, &rules, text) : -ENOMEM;

	if (!err)
		err = known_new(rules, metrics, &known);
	if (!err)
		err = make(config, known, rules, metrics, &k, text);
	if (!err) {
		k->said_refused = ~0u; /* it is in the text */
		err = try_once(k, &a, text);
	}
	kube_free(k);
	known_free(known);
	rules_free(rules);
	metrics_free(metrics);
	kube_access_fini(&config->access);
	return err;
}
