/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the CPUs that are sampled, those of --cpu or all, as they come and go. Agent's thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_state.h"
#include "agent/kernel/perf_event.h"

static bool contains(const uint32_t *list, uint32_t count, uint32_t cpu)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == cpu)
			return true;
	return false;
}

/* The side band is read on all CPUs: programs that run on one may be started on another. */
static bool is_sampled(const struct agent *a, uint32_t cpu)
{
	return !a->chosen_cnt || contains(a->chosen, a->chosen_cnt, cpu);
}

static int add_cpu(struct agent *a, uint32_t cpu)
{
	int error = side_band_add_cpu(a->in.side_band, cpu);

	if ((!error || error == -EEXIST) && is_sampled(a, cpu))
		error = sampler_add_cpu(a->in.sampler, cpu);
	if (error && error != -EEXIST) {
		side_band_remove_cpu(a->in.side_band, cpu);
		return error;
	}
	return 0;
}

int agent_follow_cpus(struct agent *a)
{
	uint32_t online[AGENT_MAX_CPUS];
	int count = perf_event_cpus_online(online, AGENT_MAX_CPUS), error = 0;

	if (count <= 0)
		return count ? count : -ENODEV;
	for (uint32_t i = a->cpu_cnt; i-- > 0;) {
		if (contains(online, (uint32_t)count, a->cpus[i]))
			continue;
		sampler_remove_cpu(a->in.sampler, a->cpus[i]);
		side_band_remove_cpu(a->in.side_band, a->cpus[i]);
		a->cpus[i] = a->cpus[--a->cpu_cnt];
	}
	for (int i = 0; i < count; i++) {
		int failed;

		if (contains(a->cpus, a->cpu_cnt, online[i]) || a->cpu_cnt == a->cpu_cap)
			continue;
		failed = add_cpu(a, online[i]);
		if (failed)
			error = failed;
		else
			a->cpus[a->cpu_cnt++] = online[i];
	}
	return error;
}

int agent_choose_cpus(struct agent *a, const struct agent_filter *filter, struct agent_error *err)
{
	uint32_t online[AGENT_MAX_CPUS];
	int count = perf_event_cpus_online(online, AGENT_MAX_CPUS);

	a->chosen = calloc(filter->cpu_count + 1, sizeof(*a->chosen));
	if (!a->chosen || count < 0)
		return count < 0 ? count : -ENOMEM;
	for (size_t i = 0; i < filter->cpu_count; i++) {
		a->chosen[a->chosen_cnt++] = filter->cpus[i];
		if (contains(online, (uint32_t)count, filter->cpus[i]))
			continue;
		snprintf(err->message, sizeof(err->message), "CPU %u is not online", filter->cpus[i]);
		return -ENODEV;
	}
	return 0;
}

int agent_parse_cpus(const char *text, uint32_t *cpus, size_t max)
{
	return perf_event_cpus_parse(text, cpus, max);
}
