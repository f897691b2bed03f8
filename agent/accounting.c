/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounting: samples taken (entries of our program that passed the filters) = delivered + lost + pending, exactly.
 * Every place that can lose a sample has a name here. Agent's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/walk_ends.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/metrics.h"

#include <sys/utsname.h>

#define X(name, lost, text) { text, lost },
static const struct {
	const char *text;
	bool is_loss;
} bpf_counters[] = { BPF_COUNTERS(X) };
#undef X

#define X(name, text) text,
static const char *const intake_losses[] = { INTAKE_LOSSES(X) };
#undef X

static uint64_t kernel_losses(const uint64_t counters[COUNTER_MAX])
{
	uint64_t sum = 0;

	for (int i = 0; i < COUNTER_MAX; i++)
		sum += bpf_counters[i].is_loss ? counters[i] : 0;
	return sum;
}

void agent_stats_read(struct agent *a, struct agent_stats *ret)
{
	uint64_t counters[COUNTER_MAX], not_sampled = sampler_not_sampled(a->in.sampler);

	sampler_counters(a->in.sampler, counters);
	memset(ret, 0, sizeof(*ret));
	ret->taken = counters[COUNTER_TAKEN];
	ret->delivered = a->delivered;
	ret->lost = kernel_losses(counters);
	for (int i = 0; i < LOSS_MAX; i++)
		ret->lost += a->in.lost[i];
	ret->pending = ret->taken - ret->delivered - ret->lost;
	if (not_sampled > a->not_sampled) /* an estimate, but one that never goes back */
		a->not_sampled = not_sampled;
	ret->not_sampled = a->not_sampled;
	ret->complete = a->in.ends[END_ROOT];
	for (int i = 0; i < END_MAX; i++) {
		uint64_t count = walk_end_is_truncated(i) ? a->in.ends[i] : 0;

		ret->truncated += count;
		if (count > ret->chief_count) {
			ret->chief = walk_end_text(i);
			ret->chief_count = count;
		}
	}
	ret->late = a->in.late_walks;
	ret->cpus = sampler_cpus(a->in.sampler);
	ret->processes = processes_count(a->in.processes);
}

void agent_losses_print(struct agent *a, struct buf *out)
{
	uint64_t counters[COUNTER_MAX];
	size_t start = out->len;

	sampler_counters(a->in.sampler, counters);
	if (counters[COUNTER_LOST_RING])
		buf_printf(out, "ring full %llu", (unsigned long long)counters[COUNTER_LOST_RING]);
	for (int i = 0; i < LOSS_MAX; i++)
		if (a->in.lost[i])
			buf_printf(out, "%s%s %llu", out->len > start ? ", " : "", intake_losses[i],
				   (unsigned long long)a->in.lost[i]);
}

void agent_tell_misses(const struct agent *a)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	for (int i = 0; i < END_MAX; i++)
		if (a->in.misses[i])
			buf_printf(&text, "%s%s %llu", text.len ? ", " : "", walk_end_text(i),
				   (unsigned long long)a->in.misses[i]);
	if (text.len)
		log_debug("walked again in user space: %s", buf_text(&text));
}

void agent_describe(struct agent *a, struct buf *out)
{
	struct utsname u;

	uname(&u);
	buf_printf(out, "Linux %s, %u CPUs, ", u.release, sampler_cpus(a->in.sampler));
	if (a->period == 1)
		buf_puts(out, "a sample each event");
	else if (a->period)
		buf_printf(out, "a sample each %llu events", (unsigned long long)a->period);
	else
		buf_printf(out, "%u Hz", a->freq_hz);
	buf_printf(out, ", %u processes, walk by %s, %u ring%s of %llu KB", processes_count(a->in.processes),
		   sampler_form(a->in.sampler), sampler_rings(a->in.sampler), sampler_rings(a->in.sampler) == 1 ? "" : "s",
		   (unsigned long long)sampler_ring_bytes(a->in.sampler) >> 10);
}

/* --- metrics --- */

static void set_series(struct agent *a, const char *name, const char *label, const char *value, const char *help, uint64_t v)
{
	struct buf labels = BUF_EMPTY;

	if (label)
		metrics_label(&labels, label, value, strlen(value));
	metric_set(metrics_counter(a->in.metrics, name, label ? buf_text(&labels) : NULL, help), v);
	buf_fini(&labels);
}

static void collect(void *arg)
{
	static const char lost_help[] = "Samples lost, by the place that lost them.";
	uint64_t counters[COUNTER_MAX];
	struct agent_stats stats;
	struct agent *a = arg;

	agent_stats_read(a, &stats);
	sampler_counters(a->in.sampler, counters);
	set_series(a, "hearth_samples_taken_total", NULL, NULL,
		   "Samples taken: entries of the program that passed the filters.", stats.taken);
	set_series(a, "hearth_samples_delivered_total", NULL, NULL, "Samples in profiles that the sink took.",
		   stats.delivered);
	set_series(a, "hearth_samples_lost_total", "reason", "ring full", lost_help, counters[COUNTER_LOST_RING]);
	for (int i = 0; i < LOSS_MAX; i++)
		set_series(a, "hearth_samples_lost_total", "reason", intake_losses[i], lost_help, a->in.lost[i]);
	set_series(a, "hearth_samples_not_sampled_total", NULL, NULL,
		   "Samples that the time CPUs were busy implies and the kernel never gave (an estimate).",
		   stats.not_sampled);
	for (int i = 0; i < COUNTER_MAX; i++)
		set_series(a, "hearth_bpf_events_total", "event", bpf_counters[i].text, "Counters of the kernel half.",
			   counters[i]);
	set_series(a, "hearth_stack_chunks_not_kept_total", NULL, NULL,
		   "Pieces of copied stacks that came while others waited to be walked, beyond what is kept meanwhile.",
		   a->in.chunks_not_kept);
	for (int i = 0; i < END_MAX; i++)
		set_series(a, "hearth_walk_ends_total", "end", walk_end_text(i), "How user stack walks ended.",
			   a->in.ends[i]);
	for (int i = 0; i < END_MAX; i++)
		if (a->in.misses[i])
			set_series(a, "hearth_misses_total", "cause", walk_end_text(i),
				   "Samples walked again in user space, by what the kernel's caches did not have.",
				   a->in.misses[i]);
	metric_set(metrics_gauge(a->in.metrics, "hearth_processes", NULL, "Processes known now."), stats.processes);
	metric_set(metrics_gauge(a->in.metrics, "hearth_cpus", NULL, "CPUs sampled now."), stats.cpus);
}

int agent_metrics(struct agent *a)
{
	metric_set(metrics_gauge(a->in.metrics, "hearth_kernel_map_bytes", NULL, "Kernel memory of hearth's BPF maps."),
		   sampler_map_bytes(a->in.sampler));
	return metrics_on_collect(a->in.metrics, collect, a);
}

void agent_metrics_off(struct agent *a)
{
	metrics_off_collect(a->in.metrics, collect, a);
}
