/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up profiles: as many samples as asked for, by their weights, within their interval; and the thread that hands them
 * out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cmd/setup/made_up.h"
#include "proto/profiles.h"
#include "proto/sink.h"
#include "tests/unit/descriptors.h"

#define END_NS	    (2000 * NSEC_PER_SEC)
#define INTERVAL_NS (5 * NSEC_PER_SEC)

/* How many samples of the process @pid are in @p; all of them lie within the interval and stand for one each. */
static uint64_t samples_of(const struct profiles *p, int64_t pid)
{
	uint64_t count = 0;

	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct resource_profiles *resource = &p->resources[r];
		const struct any_value *v = profiles_find_key(p, &resource->resource.attributes, "process.pid");

		if (!v || v->integer != pid)
			continue;
		for (uint32_t i = 0; i < resource->scopes[0].profiles[0].sample_count; i++) {
			const struct sample *s = &resource->scopes[0].profiles[0].samples[i];

			for (uint32_t k = 0; k < s->timestamp_count; k++) {
				assert_true(s->timestamps_unix_ns[k] >= END_NS - INTERVAL_NS);
				assert_true(s->timestamps_unix_ns[k] < END_NS);
			}
			count += s->timestamp_count;
		}
	}
	return count;
}

/* Each hundred has as many of each as its weight says. */
static void test_weights(void **state)
{
	struct profiles *p = NULL;

	(void)state;
	assert_int_equal(made_up_profiles(200, END_NS, INTERVAL_NS, &p), 0);
	assert_int_equal(p->sample_events, 200);
	assert_int_equal(samples_of(p, 1001), 120);
	assert_int_equal(samples_of(p, 1002), 60);
	assert_int_equal(samples_of(p, 1003), 20);
	assert_int_equal(p->resource_count, 3);
	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct key_values *attributes = &p->resources[r].resource.attributes;
		const struct profile *profile = &p->resources[r].scopes[0].profiles[0];

		assert_int_equal(profile->time_unix_ns, END_NS - INTERVAL_NS);
		assert_int_equal(profile->duration_ns, INTERVAL_NS);
		assert_int_equal(!!profiles_find_key(p, attributes, "container.id"),
				 profiles_find_key(p, attributes, "process.pid")->integer != 1003);
	}
	profiles_put(p);
}

static void test_none(void **state)
{
	struct profiles *p = NULL;
	const struct any_value *id;

	(void)state;
	assert_int_equal(made_up_profiles(0, END_NS, INTERVAL_NS, &p), 0);
	assert_int_equal(p->sample_events, 0);
	assert_int_equal(p->resource_count, 1);
	assert_int_equal(p->resources[0].scope_count, 1);
	assert_int_equal(p->resources[0].scopes[0].profile_count, 0);
	id = profiles_find_key(p, &p->resources[0].resource.attributes, "container.id");
	assert_non_null(id);
	assert_int_equal(id->string.len, 6);
	profiles_put(p);
}

/* --- the thread --- */

struct taker {
	struct sink sink;
	_Atomic uint64_t samples, calls;
	_Atomic bool is_full;
};

static int take(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct taker *t = (struct taker *)sink;

	assert_null(ack);
	t->calls++;
	if (t->is_full)
		return -EAGAIN;
	t->samples += p->sample_events;
	return 0;
}

static void leave(struct sink *sink)
{
	((struct taker *)sink)->calls += 1000000;
}

static void find_dropped(void *arg, const char *name, const char *labels, uint64_t value)
{
	(void)labels;
	if (!strcmp(name, "hearth_synthetic_dropped_samples_total"))
		*(uint64_t *)arg = value;
}

/* It waits until @calls have come. */
static void await(struct taker *t, uint64_t calls)
{
	uint64_t end_ns = clock_mono_ns() + 20 * NSEC_PER_SEC;

	while (t->calls < calls && clock_mono_ns() < end_ns)
		usleep(1000);
	assert_true(t->calls >= calls);
}

static void test_thread(void **state)
{
	static const struct sink_ops ops = { .name = "taker", .consume = take, .free = leave };
	struct taker t = { .sink.ops = &ops };
	struct metrics *metrics = metrics_new();
	uint64_t dropped = 1, calls, taken, began_ns = clock_mono_ns();
	struct made_up *m = NULL;

	(void)state;
	assert_int_equal(made_up_new(10 * NSEC_PER_MSEC, 30, &t.sink, metrics, &m), 0);
	await(&t, 3);
	assert_true(clock_mono_ns() - began_ns >= 30 * NSEC_PER_MSEC); /* not before the interval is over */
	metrics_each(metrics, find_dropped, &dropped);
	assert_int_equal(dropped, 0);
	t.is_full = true;
	calls = t.calls;
	await(&t, calls + 3);
	made_up_stop(m);
	calls = t.calls;
	taken = t.samples;
	metrics_each(metrics, find_dropped, &dropped);
	assert_int_equal(taken + dropped, 30 * calls); /* none is lost without being counted */
	assert_true(dropped >= 60);
	usleep(30000);
	assert_int_equal(t.calls, calls);
	made_up_stop(m); /* once more */
	made_up_free(m);
	assert_int_equal(t.calls, calls + 1000000); /* its sink goes with it */
	made_up_free(NULL);
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_thread),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
