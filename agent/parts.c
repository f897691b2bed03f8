/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that an agent is made of. They are started in the order of one table and stopped in the reverse, as far as they
 * were started. Everything runs on the loop's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/kernel/kernel_version.h"
#include "agent/kernel/perf_event.h"
#include "agent/probe/allocator.h"
#include "agent/probe/probe.h"
#include "agent/kernel/sampler_filter.h"
#include "agent/heap/heaps.h"
#include "agent/names/indexes.h"
#include "agent/proc/cgroups.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "agent/readers.h"
#include "agent/runtime/choice.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* The state that parts are started with. */
struct start {
	struct agent *a;
	const struct agent_config *config;
	struct metrics *metrics;
	struct agent_error *err; /* for parts that can say more than an errno does */
};

/*
 * A part of the agent. start() returns 0 or -errno; stop() is called also when start() failed, and accepts what is half
 * there. A part may use those before it, so they are stopped from the last to the first.
 */
struct part {
	const char *name;
	int (*start)(const struct start *s);
	void (*stop)(struct agent *a);
};

static int start_kernel_check(const struct start *s)
{
	if (s->config->readers) /* agent_prepare() has looked */
		return 0;
	return kernel_is_supported(s->config->unsafe_kernel, s->config->no_version_check, s->err);
}

static int start_pid_space(const struct start *s)
{
	return proc_root_space(&s->a->pids, s->err);
}

/* Forks the readers before there is anything that they could inherit. */
static int start_files(const struct start *s)
{
	struct agent *a = s->a;
	struct readers readers = { 0 };
	int error = 0;

	if (s->config->readers)
		readers_take(s->config->readers, &readers);
	else
		error = readers_start(s->config, s->metrics, &readers, s->err);
	if (error) {
		readers_stop(&readers);
		return error;
	}
	a->code_reader = MOVE(readers.code);
	error = readers_hand_over(&readers, s->config, a->loop, s->metrics, &a->in.files, &a->indexes);
	if (!error)
		agent_follow_files(a, readers.opener);
	return error;
}

static void stop_files(struct agent *a)
{
	elf_service_free(a->code_reader);
	indexes_free(a->indexes);
	files_free(a->in.files);
	proc_reader_stop();
}

static int start_runtimes(const struct start *s)
{
	return runtimes_new(s->config->runtimes_off, s->a->in.files, s->metrics, &s->a->in.runtimes);
}

static void stop_runtimes(struct agent *a)
{
	runtimes_free(a->in.runtimes);
}

static int start_facts(const struct start *s)
{
	AUTO(buf_fini) struct buf groups = BUF_EMPTY;
	int error = cgroup_find_mount(&groups);

	if (error && error != -EOPNOTSUPP)
		return error;
	return facts_reader_new(s->config->env_vars, s->config->env_var_count, buf_text(&groups), s->metrics,
				&s->a->in.facts);
}

static void stop_facts(struct agent *a)
{
	facts_reader_free(a->in.facts);
}

static int start_processes(const struct start *s)
{
	struct intake *in = &s->a->in;
	int error = objects_new(&in->objects);

	if (!error)
		error = code_spaces_new(MOVE(s->a->code_reader), s->config->runtimes_off >> RUNTIME_OF_CODE, in->files,
					in->objects, s->metrics, &in->code);
	in->merged = error ? NULL : malloc(sizeof(*in->merged));
	if (!error)
		error = in->merged ? processes_new(in->files, &in->processes) : -ENOMEM;
	if (!error)
		agent_follow_code(s->a);
	if (!error)
		processes_on_map(in->processes, runtimes_map, in->runtimes);
	return error;
}

static void stop_processes(struct agent *a)
{
	processes_free(a->in.processes);
	code_spaces_free(a->in.code);
	objects_free(a->in.objects);
	free(a->in.merged);
}

static int start_pending(const struct start *s)
{
	return pending_new(AGENT_MAX_CPUS, &s->a->in.pending);
}

static void stop_pending(struct agent *a)
{
	pending_free(a->in.pending);
	intake_fini(&a->in);
}

static int start_kernel_names(const struct start *s)
{
	return kernel_names_new(indexes_folder(s->a->indexes), s->metrics, &s->a->in.kernel_names);
}

static void stop_kernel_names(struct agent *a)
{
	kernel_names_free(a->in.kernel_names);
}

enum { STACKS_OF_ONE_BYTES = 2 << 20 }; /* new stacks of one process in an interval, for each CPU: those of 5 s at 999 Hz */

static int start_traces(const struct start *s)
{
	const size_t most = (size_t)STACKS_OF_ONE_BYTES * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	int error = traces_new(s->a->in.kernel_names, &s->a->in.traces);

	if (!error)
		error = traces_new(s->a->in.kernel_names, &s->a->held);
	if (!error) {
		traces_of_objects(s->a->in.traces, s->a->in.objects);
		traces_of_objects(s->a->held, s->a->in.objects);
		traces_limit(s->a->in.traces, most);
		traces_limit(s->a->held, most);
	}
	return error;
}

static void stop_traces(struct agent *a)
{
	traces_free(a->in.traces);
	traces_free(a->held);
}

static int start_names(const struct start *s)
{
	return names_new(s->a->in.kernel_names, s->metrics, &s->a->names);
}

static void stop_names(struct agent *a)
{
	names_free(a->names);
}

static int start_report(const struct start *s)
{
	struct agent *a = s->a;
	int error = truth_counts_new(s->metrics, &a->truths);

	if (!error)
		error = module_status_new(s->metrics, &a->modules);
	return error ? error
		     : interval_new(a->names, a->in.runtimes, a->truths, a->modules, s->config, &a->kinds, &a->interval);
}

static void stop_report(struct agent *a)
{
	interval_free(a->interval);
	module_status_free(a->modules);
	truth_counts_free(a->truths);
}

static int start_sampler(const struct start *s)
{
	const struct sampled *sampled[MAX_KINDS];
	struct agent *a = s->a;

	for (uint32_t i = 0; i < a->kinds.count; i++)
		sampled[i] = &a->kinds.list[i].what;
	return sampler_new(s->config, sampled, a->kinds.count, a->pids.ns, &a->in.sampler, s->err);
}

static void stop_sampler(struct agent *a)
{
	sampler_free(a->in.sampler);
}

static int start_late_walk(const struct start *s)
{
	struct intake *in = &s->a->in;
	int error;

	code_spaces_attach(in->code, in->sampler);
	error = late_new(in->processes, in->files, in->code, in->sampler, s->metrics, &in->late);
	if (!error)
		error = wait_targets_new(s->metrics, &in->targets);
	return error ? error : wait_stacks_new(s->metrics, &in->waits);
}

static void stop_late_walk(struct agent *a)
{
	proc_reader_on_wait((struct wait_hook){ 0 });
	code_spaces_detach(a->in.code);
	late_free(a->in.late);
	wait_stacks_free(a->in.waits);
	wait_targets_free(a->in.targets);
}

static int start_side_band(const struct start *s)
{
	int error = side_band_new(s->metrics, s->a->pids.is_ours, &s->a->in.side_band);

	if (!error && s->a->kinds.allocs && !s->config->filter.no_inherit)
		side_band_wake_at_once(s->a->in.side_band); /* children are to be found before they allocate */
	return error;
}

static void stop_side_band(struct agent *a)
{
	side_band_free(a->in.side_band);
}

static bool has_filters(const struct agent_filter *f)
{
	return f->pid_count || f->follow_pids_only || f->tid_count || f->uid_count || f->cgroup_count ||
	       f->container_count || f->comm_count || f->min_age_ns || f->kernel_only;
}

static int start_heaps(const struct start *s)
{
	struct agent *a = s->a;

	for (uint32_t i = 0; i < a->kinds.count; i++)
		if (a->kinds.list[i].kind == &kind_alloc_objects)
			return heaps_new(&a->in, i, has_filters(&s->config->filter), s->config->heap_at_end, s->metrics,
					 &a->heaps);
	return 0;
}

static void stop_heaps(struct agent *a)
{
	heaps_free(a->heaps);
}

/* @error is the result of opening events on the CPUs. */
static int explain_events(const struct session_kind *k, int error, struct agent_error *err)
{
	/* perf_event_open(2) returns these for hardware counters that are not there */
	if (err->message[0])
		return error;
	if (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV)
		snprintf(err->message, sizeof(err->message),
			 "this machine cannot sample on '%s' (virtual machines often have no hardware counters); cpu-clock "
			 "works "
			 "everywhere",
			 k->event);
	else if (error == -EINVAL && !k->what.period)
		snprintf(err->message, sizeof(err->message),
			 "the kernel refuses '%s' %u times a second; kernel.perf_event_max_sample_rate allows %u", k->event,
			 k->what.freq_hz, perf_event_max_freq());
	return error;
}

static int start_cpus(const struct start *s)
{
	struct agent *a = s->a;
	int error;

	a->cpu_cap = AGENT_MAX_CPUS;
	a->cpus = calloc(AGENT_MAX_CPUS, sizeof(*a->cpus));
	if (!a->cpus)
		return -ENOMEM;
	error = agent_choose_cpus(a, &s->config->filter, s->err);
	if (!error)
		error = agent_follow_cpus(a);
	return error ? explain_events(&a->kinds.list[0], error, s->err) : 0;
}

static void stop_cpus(struct agent *a)
{
	free(a->cpus);
	free(a->chosen);
}

static int start_scan(const struct start *s)
{
	int error = processes_scan(s->a->in.processes);

	if (!error)
		processes_tell_chains(s->a->in.processes, s->a->in.sampler);
	return error;
}

static int start_watches(const struct start *s)
{
	return agent_watch(s->a);
}

static int start_metrics(const struct start *s)
{
	return agent_metrics(s->a);
}

/* Each stands behind those that it uses: processes free what runtimes and facts keep of them, stacks let go of processes. */
static const struct part parts[] = {
	{ "the kernel", start_kernel_check, NULL },
	{ "pids", start_pid_space, NULL },
	{ "readers of programs' files", start_files, stop_files },
	{ "runtimes", start_runtimes, stop_runtimes },
	{ "facts about processes", start_facts, stop_facts },
	{ "processes", start_processes, stop_processes },
	{ "the order of samples", start_pending, stop_pending },
	{ "names of the kernel", start_kernel_names, stop_kernel_names },
	{ "stacks", start_traces, stop_traces },
	{ "names", start_names, stop_names },
	{ "reports", start_report, stop_report },
	{ "the sampler", start_sampler, stop_sampler },
	{ "the late walk", start_late_walk, stop_late_walk },
	{ "the side band", start_side_band, stop_side_band },
	{ "perf events", start_cpus, stop_cpus },
	{ "/proc", start_scan, NULL },
	{ "heaps", start_heaps, stop_heaps },
	{ "sources of events", start_watches, agent_unwatch },
	{ "metrics", start_metrics, agent_metrics_off },
};

int agent_new(const struct agent_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	      struct agent **ret, struct agent_error *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	const struct start s = { .a = a, .config = config, .metrics = metrics, .err = err };

	err->message[0] = '\0';
	if (!a) {
		snprintf(err->message, sizeof(err->message), "cannot start the agent: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	a->loop = loop;
	a->out = out;
	a->in.metrics = metrics;
	a->clock_fd = -1;
	a->random = (unsigned)clock_mono_ns();
	a->report_interval_ns = config->report_interval_ns;
	a->report_jitter = config->report_jitter;
	a->kinds = *config->kinds;
	a->in.kind_cnt = a->kinds.count;
	for (uint32_t i = 0; i < a->kinds.count; i++)
		if (a->kinds.list[i].kind == &kind_contention)
			a->in.contention_kind = i;
	while (a->part_cnt < ARRAY_LEN(parts)) {
		const struct part *part = &parts[a->part_cnt++];
		int error = part->start(&s);

		if (!error)
			continue;
		if (!err->message[0])
			snprintf(err->message, sizeof(err->message), "cannot start the agent: %s: %s", part->name,
				 strerror(-error));
		agent_free(a);
		return error;
	}
	*ret = a;
	return 0;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	while (a->part_cnt) {
		const struct part *part = &parts[--a->part_cnt];

		if (part->stop)
			part->stop(a);
	}
	free(a);
}

int agent_config_settle(struct agent_config *config, const char **option_ret, struct agent_error *err)
{
	*option_ret = "event";
	config->kinds = calloc(1, sizeof(*config->kinds));
	if (!config->kinds)
		return -ENOMEM;
	if (kinds_choose(config, config->kinds, err))
		return -EINVAL;
	return sampler_filter_check(&config->filter, option_ret, err);
}

int agent_config_add_malloc(const struct agent_config *config, uint32_t pid, struct agent_error *err)
{
	err->message[0] = '\0';
	return config->kinds->allocs ? allocator_add(config->kinds->allocs, pid, err) : 0;
}

bool agent_is_probe(const char *event)
{
	return probe_is_text(event);
}

void agent_config_fini(struct agent_config *config)
{
	if (config->kinds)
		kinds_fini(config->kinds);
	free(config->kinds);
	config->kinds = NULL;
	if (config->readers)
		readers_stop(config->readers);
	free(config->readers);
	config->readers = NULL;
}
