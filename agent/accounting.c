/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounting: samples taken (entries of our program that passed the filters) = delivered + lost + pending, exactly.
 * Every place that can lose a sample has a name here. Runs on the agent's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/runtime/choice.h"
#include "agent/samples/walk_ends.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/metrics.h"

#include <sys/utsname.h>

#define X(name, text) text,
static const char *const bpf_counters[] = { BPF_COUNTERS(X) };
#undef X

#define X(name, text) text,
static const char *const intake_losses[] = { INTAKE_LOSSES(X) };
#undef X

#define X(name, text) text,
static const char *const kernel_losses[] = { KERNEL_LOSSES(X) };
#undef X

#define X(name, text) text,
static const char *const chain_ends[] = { CHAIN_ENDS(X) };
#undef X

static uint64_t losses(const struct agent *a, enum intake_loss loss)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < a->kinds.count; i++)
		sum += a->in.counts.lost[loss][i].samples;
	return sum;
}

/* The same of the kernel half. */
static void read_kernel_losses(const struct agent *a, uint64_t ret[KERNEL_LOSS_MAX])
{
	struct kind_counts counts;

	memset(ret, 0, KERNEL_LOSS_MAX * sizeof(*ret));
	for (uint32_t i = 0; i < a->kinds.count; i++) {
		sampler_kind_counters(a->in.sampler, i, &counts);
		for (int k = 0; k < KERNEL_LOSS_MAX; k++)
			ret[k] += counts.lost[k].samples;
	}
}

/* What was taken and lost of one kind, here and in the kernel. */
static void read_kind(const struct agent *a, uint32_t kind, struct sample_sum *taken, struct sample_sum *lost)
{
	struct kind_counts counts;

	sampler_kind_counters(a->in.sampler, kind, &counts);
	*taken = counts.taken;
	taken->samples += a->in.counts.made[kind].samples;
	taken->value += a->in.counts.made[kind].value;
	*lost = (struct sample_sum){ 0 };
	for (int i = 0; i < KERNEL_LOSS_MAX; i++) {
		lost->samples += counts.lost[i].samples;
		lost->value += counts.lost[i].value;
	}
	for (int i = 0; i < LOSS_MAX; i++) {
		lost->samples += a->in.counts.lost[i][kind].samples;
		lost->value += a->in.counts.lost[i][kind].value;
	}
}

/* Adds the accounting of one kind to @ret: taken = delivered + lost + pending. */
static void add_kind(const struct agent *a, uint32_t kind, struct agent_stats *ret)
{
	struct sample_sum taken, lost;

	read_kind(a, kind, &taken, &lost);
	ret->taken += taken.samples;
	ret->delivered += a->delivered[kind].samples;
	ret->lost += lost.samples;
	ret->pending += taken.samples - a->delivered[kind].samples - lost.samples;
}

void agent_stats_read(struct agent *a, struct agent_stats *ret)
{
	uint64_t not_sampled = sampler_not_sampled(a->in.sampler);

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < a->kinds.count; i++)
		add_kind(a, i, ret);
	if (not_sampled > a->not_sampled) /* an estimate, but one that never goes back */
		a->not_sampled = not_sampled;
	ret->not_sampled = a->not_sampled;
	ret->complete = a->in.counts.ends[END_ROOT];
	for (int i = 0; i < END_MAX; i++) {
		uint64_t count = walk_end_is_truncated(i) ? a->in.counts.ends[i] : 0;

		ret->truncated += count;
		if (count > ret->chief_count) {
			ret->chief = walk_end_text(i);
			ret->chief_count = count;
		}
	}
	ret->late = a->in.counts.late_walks;
	ret->cpus = sampler_cpus(a->in.sampler);
	ret->processes = processes_count(a->in.processes);
}

void agent_kinds_print(struct agent *a, struct buf *out)
{
	for (uint32_t i = 0; i < a->kinds.count && a->kinds.count > 1; i++) {
		const struct session_kind *k = &a->kinds.list[i];
		struct builder_profile_spec spec = { 0 };
		struct sample_sum taken, lost;

		k->kind->describe(k, &spec);
		read_kind(a, i, &taken, &lost);
		buf_printf(out, "%s: %llu samples taken = %llu delivered + %llu lost", spec.sample_type,
			   (unsigned long long)taken.samples, (unsigned long long)a->delivered[i].samples,
			   (unsigned long long)lost.samples);
		if (!strcmp(spec.sample_unit, "nanoseconds"))
			buf_printf(out, "; %.3f s = %.3f s + %.3f s", (double)taken.value / 1e9,
				   (double)a->delivered[i].value / 1e9, (double)lost.value / 1e9);
		else if (!strcmp(spec.sample_unit, "bytes"))
			buf_printf(out, "; %llu KB = %llu KB + %llu KB", (unsigned long long)taken.value >> 10,
				   (unsigned long long)a->delivered[i].value >> 10, (unsigned long long)lost.value >> 10);
		buf_putc(out, '\n');
	}
}

void agent_losses_print(struct agent *a, struct buf *out)
{
	uint64_t in_kernel[KERNEL_LOSS_MAX];
	size_t start = out->len;

	read_kernel_losses(a, in_kernel);
	for (int i = 0; i < KERNEL_LOSS_MAX; i++)
		if (in_kernel[i])
			buf_printf(out, "%s%s %llu", out->len > start ? ", " : "", kernel_losses[i],
				   (unsigned long long)in_kernel[i]);
	for (int i = 0; i < LOSS_MAX; i++)
		if (losses(a, i))
			buf_printf(out, "%s%s %llu", out->len > start ? ", " : "", intake_losses[i],
				   (unsigned long long)losses(a, i));
}

void agent_tell_misses(const struct agent *a)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	for (int i = 0; i < END_MAX; i++)
		if (a->in.counts.misses[i])
			buf_printf(&text, "%s%s %llu", text.len ? ", " : "", walk_end_text(i),
				   (unsigned long long)a->in.counts.misses[i]);
	if (text.len)
		log_debug("walked again in user space: %s", buf_text(&text));
}

void agent_describe(struct agent *a, struct buf *out)
{
	struct utsname u;

	uname(&u);
	buf_printf(out, "Linux %s, %u CPUs, ", u.release, sampler_cpus(a->in.sampler));
	kinds_print(&a->kinds, out);
	buf_printf(out, ", %u processes, walk by %s, %u ring%s of %llu KB", processes_count(a->in.processes),
		   sampler_form(a->in.sampler), sampler_rings(a->in.sampler), sampler_rings(a->in.sampler) == 1 ? "" : "s",
		   (unsigned long long)sampler_rings_bytes(a->in.sampler) / sampler_rings(a->in.sampler) >> 10);
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

/* What became of the frames that runtimes link in their heap. */
static void collect_chains(struct agent *a)
{
	for (uint32_t id = 0; id < RUNTIME_ID_MAX; id++) {
		const struct chain_counts *c = &a->in.counts.chains[id];
		const char *runtime = runtime_own_word(id);
		struct buf labels = BUF_EMPTY;

		set_series(a, "hearth_script_frames_total", "runtime", runtime, "Frames of scripts in stacks.", c->frames);
		set_series(a, "hearth_script_frames_unknown_total", "runtime", runtime,
			   "Frames of scripts whose function's object was not sent or could not be read.",
			   c->unknown_objects);
		set_series(a, "hearth_script_segments_unplaced_total", "runtime", runtime,
			   "Runs of frames of scripts for which the native stack has no frame of the interpreter.",
			   c->unplaced_segments);
		set_series(a, "hearth_script_objects_malformed_total", "runtime", runtime,
			   "Copies of functions' objects that made no sense, or for which there was no memory.",
			   c->malformed_objects);
		set_series(a, "hearth_runtime_failures_total", "runtime", runtime,
			   "Runtimes whose functions are not shown, as the kernel did not take the program that finds them.",
			   sampler_chain_failed(a->in.sampler, id));
		for (int i = 0; i < CHAIN_END_MAX; i++) {
			buf_reset(&labels);
			metrics_label(&labels, "runtime", runtime, strlen(runtime));
			metrics_label(&labels, "end", chain_ends[i], strlen(chain_ends[i]));
			metric_set(metrics_counter(a->in.metrics, "hearth_script_chain_ends_total", buf_text(&labels),
						   "How the chains of frames of scripts ended."),
				   c->ends[i]);
		}
		buf_fini(&labels);
	}
}

/* The accounting of each kind. */
static void collect_kinds(struct agent *a)
{
	static const char samples_help[] = "Samples by kind: taken = delivered + lost + pending.",
			  value_help[] = "The same of the time that samples of waits are of, in nanoseconds.",
			  bytes_help[] = "The same of the memory that samples of memory are of, in bytes.";

	for (uint32_t i = 0; i < a->kinds.count; i++) {
		const struct session_kind *k = &a->kinds.list[i];
		struct builder_profile_spec spec = { 0 };
		struct sample_sum sums[3] = { [1] = a->delivered[i] };
		static const char *const states[] = { "taken", "delivered", "lost" };

		k->kind->describe(k, &spec);
		read_kind(a, i, &sums[0], &sums[2]);
		for (size_t s = 0; s < ARRAY_LEN(sums); s++) {
			struct buf labels = BUF_EMPTY;

			metrics_label(&labels, "kind", spec.sample_type, strlen(spec.sample_type));
			metrics_label(&labels, "state", states[s], strlen(states[s]));
			metric_set(
				metrics_counter(a->in.metrics, "hearth_kind_samples_total", buf_text(&labels), samples_help),
				sums[s].samples);
			if (!strcmp(spec.sample_unit, "nanoseconds"))
				metric_set(metrics_counter(a->in.metrics, "hearth_kind_nanoseconds_total", buf_text(&labels),
							   value_help),
					   sums[s].value);
			else if (!strcmp(spec.sample_unit, "bytes"))
				metric_set(metrics_counter(a->in.metrics, "hearth_kind_bytes_total", buf_text(&labels),
							   bytes_help),
					   sums[s].value);
			buf_fini(&labels);
		}
	}
}

static void collect(void *arg)
{
	static const char lost_help[] = "Samples lost, by the place that lost them.";
	uint64_t counters[COUNTER_MAX], in_kernel[KERNEL_LOSS_MAX];
	struct agent_stats stats;
	struct agent *a = arg;

	agent_stats_read(a, &stats);
	sampler_counters(a->in.sampler, counters);
	set_series(a, "hearth_samples_taken_total", NULL, NULL,
		   "Samples taken: entries of the program that passed the filters.", stats.taken);
	set_series(a, "hearth_samples_delivered_total", NULL, NULL, "Samples in profiles that the sink took.",
		   stats.delivered);
	read_kernel_losses(a, in_kernel);
	for (int i = 0; i < KERNEL_LOSS_MAX; i++)
		set_series(a, "hearth_samples_lost_total", "reason", kernel_losses[i], lost_help, in_kernel[i]);
	for (int i = 0; i < LOSS_MAX; i++)
		set_series(a, "hearth_samples_lost_total", "reason", intake_losses[i], lost_help, losses(a, i));
	set_series(a, "hearth_samples_not_sampled_total", NULL, NULL,
		   "Samples that the time CPUs were busy implies and the kernel never gave (an estimate).",
		   stats.not_sampled);
	for (int i = 0; i < COUNTER_MAX; i++)
		set_series(a, "hearth_bpf_events_total", "event", bpf_counters[i], "Counters of the kernel half.",
			   counters[i]);
	set_series(a, "hearth_stack_chunks_not_kept_total", NULL, NULL,
		   "Pieces of copied stacks that came while others waited to be walked, beyond what is kept meanwhile.",
		   a->in.counts.chunks_not_kept);
	set_series(a, "hearth_mappings_not_followed_total", NULL, NULL,
		   "Records of mappings of processes that map code more often than can be followed.",
		   a->in.counts.mappings_not_followed);
	set_series(a, "hearth_unknown_sections_total", NULL, NULL,
		   "Parts of sample records that were passed over, being of no known type.",
		   pending_unknown_sections(a->in.pending));
	for (int i = 0; i < END_MAX; i++)
		set_series(a, "hearth_walk_ends_total", "end", walk_end_text(i), "How user stack walks ended.",
			   a->in.counts.ends[i]);
	for (int i = 0; i < END_MAX; i++)
		if (a->in.counts.misses[i])
			set_series(a, "hearth_misses_total", "cause", walk_end_text(i),
				   "Samples walked again in user space, by what the kernel's caches did not have.",
				   a->in.counts.misses[i]);
	set_series(a, "hearth_waits_refused_threads_total", NULL, NULL,
		   "Threads whose waits are not told because there was no room to note them.",
		   sampler_threads_refused(a->in.sampler));
	collect_chains(a);
	collect_kinds(a);
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
