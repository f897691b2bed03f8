/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracepoint runs the program on all CPUs as soon as the program is attached to one event, enabled or not (trace_call_bpf,
 * kernel/trace/bpf_trace.c). So that event exists while sampling is on, and the program looks in a map whether the CPU is
 * sampled.
 */
#include <errno.h>
#include <unistd.h>

#include "agent/kind/kind.h"
#include "agent/kernel/sampler_state.h"
#include "base/clock.h"

static bool has(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_TRACEPOINT;
}

/* Each event is a sample, as with perf: a tracepoint has no clock that could give a frequency. */
static void settle(struct sampled *what)
{
	if (!what->period)
		what->period = 1;
}

static void describe(const struct session_kind *k, struct builder_profile_spec *spec)
{
	spec->sample_type = spec->period_type = k->event;
	spec->sample_unit = spec->period_unit = "count";
	spec->period = (int64_t)k->what.period;
}

/* One may be passed hundreds of times within a program's first millisecond, by samples that all carry their stack. */
static unsigned expected_hz(const struct sampled *what)
{
	return what->period < KIND_UNKNOWN_HZ ? KIND_UNKNOWN_HZ : 0;
}

static void configure(struct sampler *s, const struct sampled_kind *k)
{
	struct sampler_bpf *skel = s->skel;

	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_every = k->what->period;
	bpf_map__set_max_entries(skel->maps.tracepoint_cpus, s->possible_cpus);
	(void)bpf_program__set_type(sampler_entry(s), BPF_PROG_TYPE_TRACEPOINT);
	(void)bpf_program__set_type(skel->progs.walk_tail, BPF_PROG_TYPE_TRACEPOINT);
	(void)bpf_program__set_type(skel->progs.send_tail, BPF_PROG_TYPE_TRACEPOINT);
}

void kind_enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on)
{
	uint32_t value = on;

	(void)k;
	if (!bpf_map_update_elem(bpf_map__fd(s->skel->maps.tracepoint_cpus), &e->cpu, &value, BPF_ANY))
		e->since_ns = on ? clock_mono_ns() : 0;
}

static int enable(struct sampler *s, struct sampled_kind *k, bool on)
{
	if (!on && k->fd >= 0) {
		close(k->fd);
		k->fd = -1;
	} else if (on && k->fd < 0 && k->event_cnt) {
		k->fd = sampler_open_event(s, k, k->events[0].cpu);
		return k->fd < 0 ? k->fd : 0;
	}
	return 0;
}

/* How many events the kernel left out because one of our programs ran on that CPU already. */
static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	return sampler_program_missed(sampler_entry(s)) / k->what->period;
}

const struct kind kind_tracepoint = {
	.has = has,
	.settle = settle,
	.describe = describe,
	.print = kind_print_event,
	.events = { .levels = 1,
		    .expected_hz = expected_hz,
		    .configure = configure,
		    .enable_cpu = kind_enable_cpu,
		    .enable = enable,
		    .not_sampled = not_sampled },
};
