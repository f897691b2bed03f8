/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs the program. A perf event a CPU, enabled while sampling is on. A tracepoint runs it on all CPUs from when it
 * hangs at one event, enabled or not (trace_call_bpf, kernel/trace/bpf_trace.c): so that event is there while sampling is
 * on, and the program asks a map whether the CPU counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/cpu_idle.h"
#include "agent/sampler_state.h"
#include "base/cleanup.h"
#include "base/clock.h"

static bool is_tracepoint(const struct sampler *s)
{
	return s->kind.type == PERF_TYPE_TRACEPOINT;
}

static struct bpf_program *entry_program(const struct sampler *s)
{
	return s->tail_form ? s->skel->progs.on_sample_tail : s->skel->progs.on_sample;
}

void sampler_events_configure(struct sampler *s)
{
	struct sampler_bpf *skel = s->skel;

	if (!is_tracepoint(s))
		return;
	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_every = s->period;
	bpf_map__set_max_entries(skel->maps.tracepoint_cpus, s->possible_cpus);
	(void)bpf_program__set_type(entry_program(s), BPF_PROG_TYPE_TRACEPOINT);
	(void)bpf_program__set_type(skel->progs.walk_tail, BPF_PROG_TYPE_TRACEPOINT);
}

static void detach_tracepoint(struct sampler *s)
{
	if (s->tracepoint_fd >= 0)
		close(s->tracepoint_fd);
	s->tracepoint_fd = -1;
}

void sampler_events_free(struct sampler *s)
{
	detach_tracepoint(s);
	for (uint32_t i = 0; i < s->event_cnt; i++)
		if (s->events[i].fd >= 0)
			close(s->events[i].fd);
	free(s->events);
}

static void note_idle(void *arg, uint32_t cpu, uint64_t idle_ns)
{
	struct sampler *s = arg;

	for (uint32_t i = 0; i < s->event_cnt; i++)
		if (s->events[i].cpu == cpu)
			s->events[i].idle_ns = idle_ns;
}

/* Adds what passed on the CPU of @e while it was enabled, as of note_idle. */
static void add_passed(const struct cpu_event *e, struct passed *sum)
{
	if (!e->since_ns)
		return;
	sum->ns += clock_mono_ns() - e->since_ns;
	if (e->idle_ns > e->idle_since_ns)
		sum->idle_ns += e->idle_ns - e->idle_since_ns;
}

/* Which CPUs a tracepoint is sampled on. */
static void tracepoint_enable(struct sampler *s, struct cpu_event *e, bool on)
{
	uint32_t value = on;

	if (!bpf_map_update_elem(bpf_map__fd(s->skel->maps.tracepoint_cpus), &e->cpu, &value, BPF_ANY))
		e->since_ns = on ? clock_mono_ns() : 0;
}

static void event_enable(struct sampler *s, struct cpu_event *e, bool on)
{
	if (is_tracepoint(s)) {
		tracepoint_enable(s, e, on);
		return;
	}
	if (on && !e->since_ns && !ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0)) {
		e->since_ns = clock_mono_ns();
		e->idle_since_ns = e->idle_ns;
	} else if (!on && e->since_ns) {
		(void)ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
		add_passed(e, &s->passed);
		e->since_ns = 0;
	}
}

/* An event that runs the program. A descriptor or -errno. */
static int open_event(struct sampler *s, uint32_t cpu)
{
	AUTO_CLOSE int fd = perf_event_open_cpu(&s->kind, cpu, s->freq_hz, s->period);

	if (fd < 0)
		return fd;
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(entry_program(s))) ? -errno : MOVE_FD(fd);
}

int sampler_add_cpu(struct sampler *s, uint32_t cpu)
{
	struct cpu_event *events;
	AUTO_CLOSE int fd = -1;

	for (uint32_t i = 0; i < s->event_cnt; i++)
		if (s->events[i].cpu == cpu)
			return -EEXIST;
	events = realloc(s->events, (s->event_cnt + 1) * sizeof(*events));
	if (!events)
		return -ENOMEM;
	s->events = events;
	if (!is_tracepoint(s)) {
		fd = open_event(s, cpu);
		if (fd < 0)
			return fd;
	}
	events[s->event_cnt] = (struct cpu_event){ .cpu = cpu, .fd = MOVE_FD(fd) };
	s->event_cnt++;
	if (s->enabled)
		(void)cpu_idle_each(note_idle, s);
	event_enable(s, &events[s->event_cnt - 1], s->enabled);
	return 0;
}

void sampler_remove_cpu(struct sampler *s, uint32_t cpu)
{
	for (uint32_t i = 0; i < s->event_cnt; i++) {
		if (s->events[i].cpu != cpu)
			continue;
		event_enable(s, &s->events[i], false);
		if (s->events[i].fd >= 0)
			close(s->events[i].fd);
		s->events[i] = s->events[--s->event_cnt];
		return;
	}
}

int sampler_enable(struct sampler *s, bool on)
{
	s->enabled = on;
	if (is_tracepoint(s) && !on) {
		detach_tracepoint(s);
	} else if (is_tracepoint(s) && s->tracepoint_fd < 0 && s->event_cnt) {
		s->tracepoint_fd = open_event(s, s->events[0].cpu);
		if (s->tracepoint_fd < 0)
			return s->tracepoint_fd;
	}
	(void)cpu_idle_each(note_idle, s);
	for (uint32_t i = 0; i < s->event_cnt; i++) {
		event_enable(s, &s->events[i], on);
		if (on && !s->events[i].since_ns)
			return -errno;
	}
	return 0;
}

/* Events that the kernel left out because one of our programs ran on that CPU already. */
static uint64_t missed(const struct sampler *s)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(entry_program(s)), &info, &size) ? 0 : info.recursion_misses;
}

/* More of @passed_ns than the samples, one each @period_ns, speak for. */
static uint64_t more_than(uint64_t passed_ns, uint64_t period_ns, uint64_t samples)
{
	uint64_t expected = passed_ns / period_ns;

	return expected > samples ? expected - samples : 0;
}

/*
 * An idle CPU's timer is the kernel's to leave out: what is missing is first of all of the time that the CPUs were idle, as
 * far as no samples of the idle task speak for it.
 */
uint64_t sampler_not_sampled(struct sampler *s)
{
	uint64_t counters[COUNTER_MAX], period_ns, missing, idle;
	struct passed passed = s->passed;

	if (is_tracepoint(s))
		return missed(s) / s->period;
	if (!perf_event_is_time(&s->kind) || s->kind.exclude_user || s->kind.exclude_kernel)
		return 0;
	(void)cpu_idle_each(note_idle, s);
	sampler_counters(s, counters);
	for (uint32_t i = 0; i < s->event_cnt; i++)
		add_passed(&s->events[i], &passed);
	period_ns = s->period ? s->period : NSEC_PER_SEC / s->freq_hz;
	missing = more_than(passed.ns, period_ns, counters[COUNTER_ENTRIES]);
	idle = s->skel->rodata->cfg_idle ? 0 : more_than(passed.idle_ns, period_ns, counters[COUNTER_IDLE]);
	return missing > idle ? missing - idle : 0;
}
