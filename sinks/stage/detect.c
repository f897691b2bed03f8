/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor resourcedetection. Detectors that ask nobody run at once; the others in a thread, one after the other, once:
 * what they find counts from then on, and nothing waits for them. The thread fills facts that consume() reads below a lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "proto/resource_edit.h"
#include "sinks/stage/detectors.h"
#include "sinks/stage/stage_sink.h"

struct detect_stage {
	struct stage stage;
	const struct stage_detect *detect;
	struct detector_way way;
	pthread_mutex_t lock;
	struct facts *facts; /* one a detector, in their order; below the lock */
	size_t count;
	pthread_t thread;
	bool is_running;
	_Atomic bool is_ending;
	struct metric *unchanged;
};

static void run_one(struct detect_stage *s, size_t i, const struct detector *d)
{
	struct facts *found = calloc(1, sizeof(*found));

	if (!found)
		return;
	d->run(found, &s->way);
	pthread_mutex_lock(&s->lock);
	s->facts[i] = *found;
	pthread_mutex_unlock(&s->lock);
	free(found);
}

static void run_all(struct detect_stage *s, bool asks)
{
	for (size_t i = 0; i < s->count && !atomic_load(&s->is_ending); i++) {
		const struct detector *d = detector_find(s->detect->detectors[i]);

		if (d && d->asks == asks)
			run_one(s, i, d);
	}
}

static void *ask_all(void *arg)
{
	run_all(arg, true);
	return NULL;
}

/* --- the sink --- */

/* The first detector to tell a key wins. */
static bool is_told_before(const struct detect_stage *s, size_t end, const char *key)
{
	for (size_t i = 0; i < end; i++)
		for (size_t k = 0; k < s->facts[i].count; k++)
			if (!strcmp(s->facts[i].items[k].key, key))
				return true;
	return false;
}

static void apply(const struct detect_stage *s, struct resource_edit *e)
{
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->facts[i].count; k++) {
			const struct fact *fact = &s->facts[i].items[k];
			struct any_value value = { .kind = VALUE_STRING, .string = str_z(fact->value) };

			if (is_told_before(s, i, fact->key) || (s->detect->keeps && resource_edit_find(e, fact->key)))
				continue;
			resource_edit_set(e, str_z(fact->key), &value);
		}
}

static int detect_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct detect_stage *s = (struct detect_stage *)sink;
	struct resource_edit e = { .from = p };
	struct profiles *out;
	int err;

	pthread_mutex_lock(&s->lock);
	for (bool more = p->resource_count; more; more = resource_edit_next(&e))
		apply(s, &e);
	pthread_mutex_unlock(&s->lock);
	if (e.failed)
		metric_add(s->unchanged, p->sample_events);
	out = resource_edit_end(&e);
	err = sink_consume(s->stage.next, out, ack);
	profiles_put(out);
	return err;
}

static void detect_free(struct sink *sink)
{
	struct detect_stage *s = (struct detect_stage *)sink;

	atomic_store(&s->is_ending, true);
	if (s->is_running)
		pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	sink_free(s->stage.next);
	free(s->facts);
	free(s);
}

static bool has_slow(const struct detect_stage *s)
{
	bool yes = false;

	for (size_t i = 0; i < s->count; i++) {
		const struct detector *d = detector_find(s->detect->detectors[i]);

		yes |= d && d->asks;
	}
	return yes;
}

int stage_detect_new(const struct stage_detect *detect, struct stage_kubernetes kube, struct sink *next,
		     struct metrics *metrics, struct sink **ret)
{
	struct detect_stage *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	stage_init(&s->stage, next, detect_consume, detect_free);
	pthread_mutex_init(&s->lock, NULL);
	s->detect = detect;
	s->way = (struct detector_way){ getenv("HEARTH_METADATA_URL"), detect->timeout_ns, kube };
	while (detect->detectors[s->count])
		s->count++;
	s->unchanged = stage_unchanged(metrics);
	s->facts = calloc(s->count + 1, sizeof(*s->facts));
	if (!s->facts)
		err = -ENOMEM;
	else
		run_all(s, false);
	if (!err && has_slow(s)) {
		err = thread_start(&s->thread, "detect", ask_all, s);
		s->is_running = !err;
	}
	if (err) {
		detect_free(&s->stage.sink);
		return err;
	}
	*ret = &s->stage.sink;
	return 0;
}
