/* SPDX-License-Identifier: Apache-2.0 */
/* One perf event for each CPU, enabled while sampling is on: a timer, or a counter of the CPU or the kernel. */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/kind/kind.h"
#include "agent/kernel/sampler_state.h"
#include "base/clock.h"

static bool has(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_TRACEPOINT;
}

static void settle(struct sampled *what)
{
	unsigned most = perf_event_max_freq() < AGENT_MAX_FREQ ? perf_event_max_freq() : AGENT_MAX_FREQ;

	if (!what->freq_hz)
		what->freq_hz = most;
}

/* Nanoseconds between two samples. */
static uint64_t period_ns(const struct sampled *what)
{
	return what->period ? what->period : NSEC_PER_SEC / what->freq_hz;
}

static void describe(const struct session_kind *k, struct builder_profile_spec *spec)
{
	if (perf_event_is_time(&k->what.attr)) {
		spec->sample_type = "samples";
		spec->period_type = "cpu";
		spec->period_unit = "nanoseconds";
		spec->period = (int64_t)period_ns(&k->what);
	} else {
		spec->sample_type = k->event;
		spec->period_type = k->what.period ? k->event : "";
		spec->period_unit = k->what.period ? "count" : "";
		spec->period = (int64_t)k->what.period;
	}
	spec->sample_unit = "count";
}

static unsigned expected_hz(const struct sampled *what)
{
	if (!what->period)
		return what->freq_hz;
	if (!perf_event_is_time(&what->attr) || what->period > NSEC_PER_SEC)
		return KIND_UNKNOWN_HZ;
	return (unsigned)(NSEC_PER_SEC / what->period);
}

static int add_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e)
{
	e->fd = sampler_open_event(s, k, e->cpu);
	return e->fd < 0 ? e->fd : 0;
}

/* How many events @e has counted since it was enabled. */
static uint64_t count_events(const struct cpu_event *e)
{
	uint64_t count;

	return read(e->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/* Adds the time that passed on the CPU of @e while that was enabled, up to the last look at idle times. */
static void add_passed(const struct cpu_event *e, struct passed *sum)
{
	if (!e->since_ns)
		return;
	sum->ns += clock_mono_ns() - e->since_ns;
	if (e->idle_ns > e->idle_since_ns)
		sum->idle_ns += e->idle_ns - e->idle_since_ns;
}

static void enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on)
{
	(void)s;
	if (on && !e->since_ns && !ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0)) {
		e->since_ns = clock_mono_ns();
		e->idle_since_ns = e->idle_ns;
	} else if (!on && e->since_ns) {
		(void)ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
		add_passed(e, &k->passed);
		k->passed.events += count_events(e);
		(void)ioctl(e->fd, PERF_EVENT_IOC_RESET, 0);
		e->since_ns = 0;
	}
}

/* The part of @passed_ns that the samples, one each @every_ns, do not account for. */
static uint64_t more_than(uint64_t passed_ns, uint64_t every_ns, uint64_t samples)
{
	uint64_t expected = passed_ns / every_ns;

	return expected > samples ? expected - samples : 0;
}

/*
 * The kernel may leave out an idle CPU's timer. So missing samples first count as idle time of the CPUs, as far as no
 * samples of the idle task account for that time.
 */
static uint64_t missing_time(struct sampler *s, struct sampled_kind *k)
{
	uint64_t counters[COUNTER_MAX], every_ns = period_ns(k->what), missing, idle;
	const struct perf_event_attr *attr = &k->what->attr;
	struct passed passed = k->passed;

	if (!perf_event_is_time(attr) || attr->exclude_user || attr->exclude_kernel)
		return 0;
	sampler_note_idle(s);
	sampler_counters(s, counters);
	for (uint32_t i = 0; i < k->event_cnt; i++)
		add_passed(&k->events[i], &passed);
	missing = more_than(passed.ns, every_ns, counters[COUNTER_ENTRIES]);
	idle = s->skel->rodata->cfg_idle ? 0 : more_than(passed.idle_ns, every_ns, counters[COUNTER_IDLE]);
	return missing > idle ? missing - idle : 0;
}

/*
 * The kernel counts each event, but does not run the program while another of its class is marked as running on that CPU:
 * one that was interrupted, or a thread in a system call on a map, which may have lost the CPU in it. Events are read before
 * the program's runs are, so none is missed that is only on its way.
 */
static uint64_t missing_events(struct sampler *s, struct sampled_kind *k)
{
	uint64_t counters[COUNTER_MAX], events = k->passed.events;
	struct kind_counts counts;

	for (uint32_t i = 0; i < k->event_cnt; i++)
		events += k->events[i].since_ns ? count_events(&k->events[i]) : 0;
	sampler_counters(s, counters);
	sampler_kind_counters(s, (uint32_t)(k - s->kinds), &counts);
	return more_than(events, k->what->period, counters[COUNTER_ENTRIES] + counts.lost[KERNEL_LOSS_LEVEL].samples);
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	if (perf_event_is_time(&k->what->attr))
		return missing_time(s, k);
	return k->what->period ? missing_events(s, k) : 0;
}

const struct kind kind_cpu = {
	.has = has,
	.settle = settle,
	.describe = describe,
	.print = kind_print_event,
	.events = { .levels = 1,
		    .expected_hz = expected_hz,
		    .add_cpu = add_cpu,
		    .enable_cpu = enable_cpu,
		    .not_sampled = not_sampled },
};
