/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of samples by themselves: how many they expect, what their profiles are called, and how they are told to people. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/agent.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/sampler_state.h"
#include "agent/kind/kind.h"
#include "agent/probe/probe.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const struct perf_event_attr clock_attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK },
				    faults_attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
				    point_attr = { .type = PERF_TYPE_TRACEPOINT, .config = 300 };

static unsigned hz_of(const struct kind *kind, struct perf_event_attr attr, unsigned freq_hz, uint64_t period)
{
	const struct sampled what = { .attr = attr, .freq_hz = freq_hz, .period = period };

	return kind->events.expected_hz(&what);
}

static void test_how_often_a_timer_samples(void **state)
{
	(void)state;
	assert_int_equal(hz_of(&kind_cpu, clock_attr, 99, 0), 99);
	assert_int_equal(hz_of(&kind_cpu, clock_attr, 99, 1000000), 1000);
	assert_int_equal(hz_of(&kind_cpu, clock_attr, 0, NSEC_PER_SEC), 1);
	assert_int_equal(hz_of(&kind_cpu, clock_attr, 0, NSEC_PER_SEC + 1), KIND_UNKNOWN_HZ);
}

/* Nobody knows how often an event comes; a frequency is kept by the kernel. */
static void test_how_often_events_are_sampled(void **state)
{
	(void)state;
	assert_int_equal(hz_of(&kind_cpu, faults_attr, 49, 0), 49);
	assert_int_equal(hz_of(&kind_cpu, faults_attr, 0, 1), KIND_UNKNOWN_HZ);
}

/* Two threads for each CPU, each as often as the mean says. */
static void test_how_often_waits_are_sampled(void **state)
{
	(void)state;
	assert_int_equal(hz_of(&kind_off_cpu, clock_attr, 0, 50000000), 40);
	assert_int_equal(hz_of(&kind_off_cpu, clock_attr, 0, 1000000), 2000);
	assert_int_equal(hz_of(&kind_waker, clock_attr, 0, 50000000), 40);
	assert_int_equal(hz_of(&kind_runnable, clock_attr, 0, 50000000), 0);
	assert_int_equal(hz_of(&kind_contention, clock_attr, 0, 50000000), 0);
}

static void test_heaps_are_not_sampled_by_the_kernel(void **state)
{
	static const struct kind *const heaps[] = { &kind_alloc_objects, &kind_alloc_space, &kind_inuse_objects,
						    &kind_inuse_space };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heaps); i++) {
		assert_int_equal(hz_of(heaps[i], clock_attr, 99, 0), 0);
		assert_int_equal(heaps[i]->events.not_sampled(NULL, NULL), 0);
	}
}

/* An event is of one kind; kinds that have none take none. */
static void test_whose_event(void **state)
{
	static const struct kind *const others[] = { &kind_off_cpu, &kind_runnable, &kind_waker,  &kind_contention,
						     &kind_probe,   &kind_memory,   &kind_malloc, &kind_alloc_objects };

	(void)state;
	assert_true(kind_tracepoint.has(&point_attr));
	assert_false(kind_tracepoint.has(&clock_attr));
	assert_true(kind_cpu.has(&clock_attr));
	assert_true(kind_cpu.has(&faults_attr));
	assert_false(kind_cpu.has(&point_attr));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_false(others[i]->has(&clock_attr));
		assert_false(others[i]->has(&point_attr));
	}
}

/* What is left open is filled in, and nothing else. */
static void test_settled(void **state)
{
	struct sampled open = { .attr = clock_attr }, given = { .attr = clock_attr, .freq_hz = 7, .period = 5 };

	(void)state;
	kind_cpu.settle(&open);
	assert_true(open.freq_hz > 0 && open.freq_hz <= AGENT_MAX_FREQ);
	assert_true(open.freq_hz == perf_event_max_freq() || open.freq_hz == AGENT_MAX_FREQ);
	kind_cpu.settle(&given);
	assert_int_equal(given.freq_hz, 7);
	open.period = 0;
	kind_tracepoint.settle(&open);
	assert_int_equal(open.period, 1);
	kind_tracepoint.settle(&given);
	assert_int_equal(given.period, 5);
	open.period = 0;
	kind_probe.settle(&open);
	assert_int_equal(open.period, 1);
	kind_probe.settle(&given);
	assert_int_equal(given.period, 5);
	open.period = 0;
	kind_settle_nothing(&open);
	assert_int_equal(open.period, 0);
}

/* --- profiles --- */

static void describes(const struct kind *kind, struct sampled what, const char *type, const char *unit,
		      const char *period_type, const char *period_unit, int64_t period)
{
	const struct session_kind k = { .kind = kind, .event = "the-event", .what = what };
	struct builder_profile_spec spec = { .scope_name = "s" };

	kind->describe(&k, &spec);
	assert_string_equal(spec.sample_type, type);
	assert_string_equal(spec.sample_unit, unit);
	assert_string_equal(spec.period_type, period_type);
	assert_string_equal(spec.period_unit, period_unit);
	assert_int_equal(spec.period, period);
}

static void test_profiles_of_a_timer(void **state)
{
	(void)state;
	describes(&kind_cpu, (struct sampled){ .attr = clock_attr, .freq_hz = 20 }, "samples", "count", "cpu", "nanoseconds",
		  50000000);
	describes(&kind_cpu, (struct sampled){ .attr = clock_attr, .freq_hz = 20, .period = 777 }, "samples", "count", "cpu",
		  "nanoseconds", 777);
}

static void test_profiles_of_events(void **state)
{
	(void)state;
	describes(&kind_cpu, (struct sampled){ .attr = faults_attr, .period = 3 }, "the-event", "count", "the-event",
		  "count", 3);
	describes(&kind_cpu, (struct sampled){ .attr = faults_attr, .freq_hz = 9 }, "the-event", "count", "", "", 0);
	describes(&kind_tracepoint, (struct sampled){ .attr = point_attr, .period = 4 }, "the-event", "count", "the-event",
		  "count", 4);
	describes(&kind_probe, (struct sampled){ .period = 2 }, "events", "count", "events", "count", 2);
}

static void test_profiles_of_waits(void **state)
{
	const struct sampled what = { .period = 50000000 };

	(void)state;
	describes(&kind_off_cpu, what, "off_cpu", "nanoseconds", "", "", 0);
	describes(&kind_runnable, what, "runnable", "nanoseconds", "", "", 0);
	describes(&kind_waker, what, "waker", "nanoseconds", "", "", 0);
	describes(&kind_contention, what, "contentions", "count", "", "", 0);
}

static void test_profiles_of_memory(void **state)
{
	const struct sampled what = { .period = 4096 };

	(void)state;
	describes(&kind_memory, what, "memory", "bytes", "memory", "bytes", 4096);
	describes(&kind_malloc, what, "malloc", "bytes", "space", "bytes", 4096);
	describes(&kind_alloc_objects, what, "alloc_objects", "count", "space", "bytes", 524288);
	describes(&kind_alloc_space, what, "alloc_space", "bytes", "space", "bytes", 524288);
	describes(&kind_inuse_objects, what, "inuse_objects", "count", "space", "bytes", 524288);
	describes(&kind_inuse_space, what, "inuse_space", "bytes", "space", "bytes", 524288);
}

/* --- words --- */

static void prints(const struct kind *kind, struct sampled what, const char *text)
{
	const struct session_kind k = { .kind = kind, .event = "the-event", .what = what };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	kind->print(&k, &out);
	assert_string_equal(buf_text(&out), text);
}

static void test_words_of_memory(void **state)
{
	(void)state;
	prints(&kind_memory, (struct sampled){ .period = 524288 }, "memory, a sample each 512 KB");
	prints(&kind_memory, (struct sampled){ .period = 1536 }, "memory, a sample each 1.5 KB");
	prints(&kind_malloc, (struct sampled){ .period = 524288 }, "malloc, a sample each 512 KB");
	prints(&kind_alloc_objects, (struct sampled){ .period = 0 }, "heaps of Go programs");
}

static void test_words_of_waits(void **state)
{
	(void)state;
	prints(&kind_off_cpu, (struct sampled){ .period = 50000000 }, "waits of 50 ms and longer, shorter ones by chance");
	prints(&kind_off_cpu, (struct sampled){ .period = 1500000 }, "waits of 1.5 ms and longer, shorter ones by chance");
	assert_null(kind_runnable.print);
	assert_null(kind_waker.print);
	assert_null(kind_contention.print);
}

static void test_words_of_probes(void **state)
{
	struct probe_set one = { .count = 1 }, two = { .count = 2 };

	(void)state;
	prints(&kind_probe, (struct sampled){ .period = 1, .probes = &one }, "1 probe, a sample each event");
	prints(&kind_probe, (struct sampled){ .period = 1, .probes = &two }, "2 probes, a sample each event");
}

/* --- CPUs --- */

/* Kinds whose programs see all CPUs note alone since when one is sampled. */
static void test_enabled(void **state)
{
	static const struct kind *const kinds[] = { &kind_off_cpu, &kind_runnable, &kind_waker, &kind_alloc_space };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const uint64_t before_ns = clock_mono_ns();
		struct cpu_event e = { .cpu = 0 };

		kinds[i]->events.enable_cpu(NULL, NULL, &e, true);
		assert_in_range(e.since_ns, before_ns, clock_mono_ns());
		kinds[i]->events.enable_cpu(NULL, NULL, &e, false);
		assert_int_equal(e.since_ns, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_how_often_a_timer_samples),
		cmocka_unit_test(test_how_often_events_are_sampled),
		cmocka_unit_test(test_how_often_waits_are_sampled),
		cmocka_unit_test(test_heaps_are_not_sampled_by_the_kernel),
		cmocka_unit_test(test_whose_event),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_profiles_of_a_timer),
		cmocka_unit_test(test_profiles_of_events),
		cmocka_unit_test(test_profiles_of_waits),
		cmocka_unit_test(test_profiles_of_memory),
		cmocka_unit_test(test_words_of_memory),
		cmocka_unit_test(test_words_of_waits),
		cmocka_unit_test(test_words_of_probes),
		cmocka_unit_test(test_enabled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
