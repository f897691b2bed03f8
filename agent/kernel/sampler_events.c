/* SPDX-License-Identifier: Apache-2.0 */
/* The events that run the program: one for each kind of the session and CPU, opened by the kind's struct sampled_ops. */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/proc/cpu_idle.h"
#include "agent/kernel/sampler_state.h"
#include "base/cleanup.h"

struct bpf_program *sampler_entry(const struct sampler *s)
{
	return s->tail_form ? s->skel->progs.on_sample_tail : s->skel->progs.on_sample;
}

int sampler_open_event(struct sampler *s, const struct sampled_kind *k, uint32_t cpu)
{
	AUTO_CLOSE int fd = perf_event_open_cpu(&k->what->attr, cpu, k->what->freq_hz, k->what->period);

	if (fd < 0)
		return fd;
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(sampler_entry(s))) ? -errno : MOVE_FD(fd);
}

void sampler_events_configure(struct sampler *s)
{
	for (uint32_t i = 0; i < s->kind_cnt; i++)
		if (s->kinds[i].what->ops->configure)
			s->kinds[i].what->ops->configure(s, &s->kinds[i]);
}

bool sampler_events_use_entry(const struct sampler *s)
{
	for (uint32_t i = 0; i < s->kind_cnt; i++)
		if (!s->kinds[i].what->ops->has_own_programs)
			return true;
	return false;
}

int sampler_events_load(struct sampler *s, struct agent_error *err)
{
	int error = 0;

	for (uint32_t i = 0; i < s->kind_cnt && !error; i++)
		if (s->kinds[i].what->ops->load)
			error = s->kinds[i].what->ops->load(s, &s->kinds[i], err);
	return error;
}

static int enable_kind(struct sampler *s, struct sampled_kind *k, bool on)
{
	return k->what->ops->enable ? k->what->ops->enable(s, k, on) : 0;
}

void sampler_events_free(struct sampler *s)
{
	for (uint32_t i = 0; i < s->kind_cnt; i++) {
		struct sampled_kind *k = &s->kinds[i];

		(void)enable_kind(s, k, false);
		for (uint32_t n = 0; n < k->event_cnt; n++)
			if (k->events[n].fd >= 0)
				close(k->events[n].fd);
		free(k->events);
	}
}

static void note_idle(void *arg, uint32_t cpu, uint64_t idle_ns)
{
	struct sampler *s = arg;

	for (uint32_t i = 0; i < s->kind_cnt; i++)
		for (uint32_t n = 0; n < s->kinds[i].event_cnt; n++)
			if (s->kinds[i].events[n].cpu == cpu)
				s->kinds[i].events[n].idle_ns = idle_ns;
}

void sampler_note_idle(struct sampler *s)
{
	(void)cpu_idle_each(note_idle, s);
}

static int add_event(struct sampler *s, struct sampled_kind *k, uint32_t cpu)
{
	struct cpu_event *e;
	int error;

	for (uint32_t i = 0; i < k->event_cnt; i++)
		if (k->events[i].cpu == cpu)
			return -EEXIST;
	e = realloc(k->events, (k->event_cnt + 1) * sizeof(*e));
	if (!e)
		return -ENOMEM;
	k->events = e;
	e += k->event_cnt;
	*e = (struct cpu_event){ .cpu = cpu, .fd = -1 };
	error = k->what->ops->add_cpu ? k->what->ops->add_cpu(s, k, e) : 0;
	if (error)
		return error;
	k->event_cnt++;
	if (s->enabled)
		sampler_note_idle(s);
	k->what->ops->enable_cpu(s, k, e, s->enabled);
	return 0;
}

int sampler_add_cpu(struct sampler *s, uint32_t cpu)
{
	int result = -EEXIST;

	for (uint32_t i = 0; i < s->kind_cnt; i++) {
		int error = add_event(s, &s->kinds[i], cpu);

		if (error && error != -EEXIST)
			return error;
		result = error ? result : 0;
	}
	return result;
}

static void remove_event(struct sampler *s, struct sampled_kind *k, uint32_t cpu)
{
	for (uint32_t i = 0; i < k->event_cnt; i++) {
		if (k->events[i].cpu != cpu)
			continue;
		k->what->ops->enable_cpu(s, k, &k->events[i], false);
		if (k->events[i].fd >= 0)
			close(k->events[i].fd);
		k->events[i] = k->events[--k->event_cnt];
		return;
	}
}

void sampler_remove_cpu(struct sampler *s, uint32_t cpu)
{
	for (uint32_t i = 0; i < s->kind_cnt; i++)
		remove_event(s, &s->kinds[i], cpu);
}

int sampler_enable(struct sampler *s, bool on)
{
	s->enabled = on;
	for (uint32_t i = 0; i < s->kind_cnt; i++) {
		int error = enable_kind(s, &s->kinds[i], on);

		if (error)
			return error;
	}
	sampler_note_idle(s);
	for (uint32_t i = 0; i < s->kind_cnt; i++) {
		struct sampled_kind *k = &s->kinds[i];

		for (uint32_t n = 0; n < k->event_cnt; n++) {
			k->what->ops->enable_cpu(s, k, &k->events[n], on);
			if (on && !k->events[n].since_ns)
				return -errno;
		}
	}
	return 0;
}

uint64_t sampler_not_sampled(struct sampler *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->kind_cnt; i++)
		sum += s->kinds[i].what->ops->not_sampled(s, &s->kinds[i]);
	return sum;
}
