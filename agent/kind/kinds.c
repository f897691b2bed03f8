/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "agent/config.h"
#include "agent/kind/kind.h"
#include "agent/probe/allocator.h"
#include "agent/probe/probe.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define KIND_ADDRESS(name) &name,
static const struct kind *const all[] = { KINDS(KIND_ADDRESS) };

/* A wait of as long as the time between two samples on a CPU counts as much as one of these. Nobody means so short ones as
 * the highest frequencies have. */
static uint64_t mean_ns(const struct agent_config *config, const struct session_kinds *kinds)
{
	const struct sampled *event = &kinds->list[0].what;

	if (config->off_cpu_ns != OFF_CPU_USUAL)
		return config->off_cpu_ns;
	if (!kinds->count || event->period || !event->freq_hz)
		return DRAW_USUAL_NS;
	return event->freq_hz < 1000 ? NSEC_PER_SEC / event->freq_hz : NSEC_PER_MSEC;
}

static void add_waits(const struct agent_config *config, struct session_kinds *ret)
{
	static const struct kind *const waits[] = { &kind_off_cpu, &kind_runnable, &kind_waker, &kind_contention };
	uint64_t mean;

	if (!config->off_cpu_ns)
		return;
	mean = mean_ns(config, ret);
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		if (config->wakers || waits[i] != &kind_waker)
			ret->list[ret->count++] = (struct session_kind){
				.kind = waits[i],
				.event = "off-cpu",
				.what = { .ops = &waits[i]->events, .period = mean },
			};
}

static void add_memory(const struct agent_config *config, struct session_kinds *ret)
{
	if (config->memory_bytes)
		ret->list[ret->count++] = (struct session_kind){
			.kind = &kind_memory,
			.event = "memory",
			.what = { .ops = &kind_memory.events, .period = config->memory_bytes },
		};
}

static void add_heaps(const struct agent_config *config, struct session_kinds *ret)
{
	static const struct kind *const heaps[] = { &kind_alloc_objects, &kind_alloc_space, &kind_inuse_objects,
						    &kind_inuse_space };

	for (size_t i = 0; i < ARRAY_LEN(heaps) && config->heap; i++)
		ret->list[ret->count++] = (struct session_kind){
			.kind = heaps[i],
			.event = "heap",
			.what = { .ops = &heaps[i]->events },
		};
}

/* The kind of the event that perf has; none where there are probes alone. */
static int add_event(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err)
{
	struct session_kind *k = &ret->list[0];
	int error;

	if (!config->event && (config->probe_count || config->malloc_bytes))
		return 0;
	*k = (struct session_kind){ .event = config->event ? config->event : "cpu-clock",
				    .what = { .freq_hz = config->freq_hz, .period = config->period } };
	error = perf_event_find(k->event, &k->what.attr, err);
	if (error)
		return error;
	if (config->probe_count && perf_event_is_time(&k->what.attr))
		k->what.period = 0; /* it counts the calls */
	if (config->filter.kernel_only)
		k->what.attr.exclude_user = 1;
	for (size_t i = 0; i < ARRAY_LEN(all) && !k->kind; i++)
		if (all[i]->has(&k->what.attr))
			k->kind = all[i];
	k->what.ops = &k->kind->events;
	k->kind->settle(&k->what);
	ret->count = 1;
	return 0;
}

static int add_probes(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err)
{
	struct session_kind *k = &ret->list[ret->count];
	int error;

	if (!config->probe_count)
		return 0;
	error = probes_find(config->probes, config->probe_count, &ret->probes, err);
	if (error)
		return error;
	*k = (struct session_kind){
		.kind = &kind_probe,
		.event = "probes",
		.what = { .ops = &kind_probe.events, .period = config->period, .probes = ret->probes },
	};
	k->kind->settle(&k->what);
	ret->count++;
	return 0;
}

static int add_malloc(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err)
{
	const struct agent_filter *filter = &config->filter;
	int error = 0;

	if (!config->malloc_bytes)
		return 0;
	if (!filter->pid_count && !config->malloc_of_command) {
		snprintf(err->message, sizeof(err->message),
			 "malloc: of which process? Say -p PID, or a command, as each allocation costs it a trap; --memory "
			 "shows where all processes take memory, at no cost to speak of");
		return -EINVAL;
	}
	ret->allocs = calloc(1, sizeof(*ret->allocs));
	if (!ret->allocs)
		return -ENOMEM;
	ret->allocs->follows_children = !filter->no_inherit;
	for (size_t i = 0; i < filter->pid_count && !error; i++)
		error = allocator_add(ret->allocs, filter->pids[i], err);
	if (error)
		return error;
	ret->list[ret->count++] = (struct session_kind){
		.kind = &kind_malloc,
		.event = "malloc",
		.what = { .ops = &kind_malloc.events, .period = config->malloc_bytes, .allocs = ret->allocs },
	};
	return 0;
}

int kinds_choose(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err)
{
	int error;

	*ret = (struct session_kinds){ 0 };
	error = add_event(config, ret, err);
	if (error)
		return error;
	add_waits(config, ret);
	add_memory(config, ret);
	add_heaps(config, ret);
	error = add_malloc(config, ret, err);
	return error ? error : add_probes(config, ret, err);
}

void kinds_fini(struct session_kinds *kinds)
{
	probe_set_free(kinds->probes);
	kinds->probes = NULL;
	allocator_set_free(kinds->allocs);
	kinds->allocs = NULL;
}

bool kind_has_no_event(const struct perf_event_attr *attr)
{
	(void)attr;
	return false;
}

void kind_settle_nothing(struct sampled *what)
{
	(void)what;
}

void kind_print_event(const struct session_kind *k, struct buf *out)
{
	if (k->what.period == 1)
		buf_puts(out, "a sample each event");
	else if (k->what.period)
		buf_printf(out, "a sample each %llu events", (unsigned long long)k->what.period);
	else
		buf_printf(out, "%u Hz", k->what.freq_hz);
}

void kinds_print(const struct session_kinds *kinds, struct buf *out)
{
	for (uint32_t i = 0; i < kinds->count; i++) {
		const struct session_kind *k = &kinds->list[i];

		if (!k->kind->print)
			continue;
		buf_puts(out, i ? ", " : "");
		k->kind->print(k, out);
	}
}
