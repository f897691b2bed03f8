/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's life: new (loads, reads /proc), started (samples), stopped (drained, the last profile handed over). Sources of
 * events in the caller's loop: the side band (a ring half full), the rings (a miss, or a ring a quarter full), a short timer
 * while something waits to be applied, the report timer, and a slow one that follows CPUs. Everything on the loop's thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/indexes.h"
#include "agent/kernel_version.h"
#include "agent/perf_event.h"
#include "agent/readers.h"
#include "agent/sampler_filter.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "proto/arena.h"
#include "proto/sink.h"

enum {
	SETTLE_TIMER_MS = 3, /* for what came while the rings were read */
	CPU_CHECK_MS = 1000,
	FILE_IDLE_SECONDS = 60,
	SAVE_ROWS_SECONDS = 600,
	WAIT_SLICE_MS = 50,
};

/* --- CPUs that come and go: agent/cpus.c --- */

static void on_cpu_timer(void *arg)
{
	struct agent *a = arg;
	int error = agent_follow_cpus(a);
	static struct log_limit limit;

	if (error)
		log_limited(&limit, 60 * NSEC_PER_SEC, LOG_WARN, "a CPU is not sampled: %s", strerror(-error));
	intake_read_side_band(&a->in); /* where nothing misses, nothing else wakes us when a mapping replaces another */
}

/* --- intervals --- */

static void forget_process(void *arg, struct process *p)
{
	struct agent *a = arg;

	if (p->is_known)
		(void)sampler_forget_proc(a->in.sampler, p->pid);
	(void)sampler_filter_remove(a->in.sampler, p->pid);
}

/* What takes long goes on meanwhile, but the rings would be full soon. */
static void on_wait(void *arg)
{
	struct agent *a = arg;

	intake_read_ahead(&a->in);
}

/* Builds the profiles of @t, hands them to the sink, and empties it. */
static void hand_over(struct agent *a, struct traces *t, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t events = traces_event_count(t);
	struct profiles *p = NULL;
	int error;

	if (!events)
		return;
	if (interval_build(a->interval, t, start_ns, end_ns, on_wait, a, &p)) {
		a->in.lost[LOSS_MEMORY] += events;
	} else {
		error = sink_consume(a->out, p, NULL);
		if (error)
			a->in.lost[LOSS_SINK] += events;
		else
			a->delivered += events;
		if (error && error != -EAGAIN)
			a->sink_error = error;
		profiles_put(p);
	}
	jit_names_settle(a->in.jit_names, t, end_ns);
	traces_reset(t);
}

/* May its frames get better names soon? */
static bool waits_for_names(const struct traces *t)
{
	for (uint32_t i = 0; i < traces_frame_count(t); i++) {
		const struct trace_frame *frame = traces_frame(t, i);

		if (frame->kind == FRAME_NATIVE && file_names_are_coming(frame->file))
			return true;
	}
	return false;
}

static void hand_over_held(struct agent *a)
{
	hand_over(a, a->held, a->held_start_ns, a->held_end_ns);
}

static void on_names(void *arg)
{
	struct agent *a = arg;

	if (!waits_for_names(a->held))
		hand_over_held(a);
}

static void save_rows(struct agent *a)
{
	static struct log_limit limit;
	int error = files_save_rows(a->in.files);

	a->rows_saved_ns = clock_mono_ns();
	if (error)
		log_limited(&limit, 3600 * NSEC_PER_SEC, LOG_WARN, "unwind rows are not kept: %s", strerror(-error));
}

static void report(struct agent *a)
{
	uint64_t start_ns = a->interval_start_ns, now_ns = clock_mono_ns();

	if (traces_event_count(a->in.traces))
		jit_names_update(a->in.jit_names, a->in.traces, on_wait, a);
	hand_over_held(a);
	if (a->in.oldest_ns && a->in.oldest_ns < start_ns)
		start_ns = a->in.oldest_ns;
	if (!a->stopped && waits_for_names(a->in.traces)) {
		struct traces *empty = a->held;

		a->held = a->in.traces;
		a->held_start_ns = start_ns;
		a->held_end_ns = now_ns;
		a->in.traces = empty;
	} else {
		hand_over(a, a->in.traces, start_ns, now_ns);
	}
	a->in.oldest_ns = 0;
	a->interval_start_ns = now_ns;
	processes_expire(a->in.processes, forget_process, a);
	facts_reader_settle(a->in.facts);
	files_expire(a->in.files, now_ns, FILE_IDLE_SECONDS * NSEC_PER_SEC);
	if (now_ns - a->rows_saved_ns > SAVE_ROWS_SECONDS * NSEC_PER_SEC)
		save_rows(a);
	arenas_give_back();
	memory_give_back();
	agent_tell_memory(a);
}

/* The next interval's length, drawn anew each time so that two hosts never beat in step. */
static uint64_t draw_interval_ns(struct agent *a)
{
	double spread = ((double)rand_r(&a->random) / RAND_MAX * 2 - 1) * a->report_jitter;

	return (uint64_t)((double)a->report_interval_ns * (1 + spread));
}

static void on_settle_timer(void *arg);

static void run_intake(struct agent *a)
{
	intake_run(&a->in);
	a->is_settling = !intake_is_done(&a->in);
	if (a->is_settling)
		(void)loop_set_timer(a->settle_timer, SETTLE_TIMER_MS * NSEC_PER_MSEC, 0);
}

static void on_settle_timer(void *arg)
{
	run_intake(arg);
}

/* Files are opened and the kernel is told at once; the rest can wait for the timer that is set already. */
static void on_side_band(void *arg, int fd, uint32_t events)
{
	struct agent *a = arg;

	(void)fd;
	(void)events;
	if (a->is_settling)
		intake_read_side_band(&a->in);
	else
		run_intake(a);
}

static void on_ring(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	run_intake(arg);
}

void agent_report(struct agent *a)
{
	run_intake(a);
	report(a);
}

void agent_hand_over_held(struct agent *a)
{
	hand_over_held(a);
}

static void on_report_timer(void *arg)
{
	struct agent *a = arg;

	agent_report(a);
	(void)loop_set_timer(a->report_timer, draw_interval_ns(a), 0);
}

/* The wall clock was set: profiles after this carry the new time. */
static void on_clock_set(void *arg, int fd, uint32_t events)
{
	uint64_t ticks;

	(void)arg;
	(void)events;
	(void)!read(fd, &ticks, sizeof(ticks)); /* -ECANCELED is the message */
	clock_refresh();
}

/* --- life --- */

static int fail(struct agent_error *err, int error, const char *what)
{
	if (!err->message[0])
		snprintf(err->message, sizeof(err->message), "%s: %s", what, strerror(-error));
	return error;
}

int agent_check_config(const struct agent_config *config, const char **option_ret, struct agent_error *err)
{
	struct perf_event_attr attr = { 0 };

	*option_ret = "event";
	if (perf_event_find(config->event ? config->event : "cpu-clock", &attr, err))
		return -EINVAL;
	return sampler_filter_check(&config->filter, option_ret, err);
}

/* @error is what opening events on the CPUs said. */
static int explain_events(const struct agent_config *config, int error, struct agent_error *err)
{
	/* what perf_event_open(2) says of hardware counters that are not there */
	if (err->message[0])
		return error;
	if (config->event && (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV))
		snprintf(err->message, sizeof(err->message),
			 "this machine cannot sample on '%s' (virtual machines often have no hardware counters); cpu-clock "
			 "works "
			 "everywhere",
			 config->event);
	else if (error == -EINVAL && !config->period)
		snprintf(err->message, sizeof(err->message),
			 "the kernel refuses '%s' %u times a second; kernel.perf_event_max_sample_rate allows %u",
			 config->event, config->freq_hz, perf_event_max_freq());
	return fail(err, error, "cannot open perf events");
}

static int watch_clock(struct agent *a, struct loop *loop)
{
	struct itimerspec far = { .it_value.tv_sec = INT32_MAX };

	a->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->clock_fd < 0 || timerfd_settime(a->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL))
		return -errno;
	return loop_add_fd(loop, a->clock_fd, EPOLLIN, on_clock_set, a, &a->clock_watch);
}

static int watch(struct agent *a, struct loop *loop)
{
	int error = loop_add_fd(loop, side_band_fd(a->in.side_band), EPOLLIN, on_side_band, a, &a->side_band_watch);

	if (!error)
		error = loop_add_fd(loop, sampler_fd(a->in.sampler), EPOLLIN, on_ring, a, &a->ring_watch);
	if (!error)
		error = loop_add_timer(loop, on_settle_timer, a, &a->settle_timer);
	if (!error)
		error = loop_add_timer(loop, on_report_timer, a, &a->report_timer);
	if (!error)
		error = loop_add_timer(loop, on_cpu_timer, a, &a->cpu_timer);
	return error ? error : watch_clock(a, loop);
}

/* What needs no kernel: the tables. Takes @r over. */
static int make_tables(struct agent *a, const struct readers *r, const struct agent_config *config, struct loop *loop,
		       struct metrics *metrics)
{
	int error = readers_hand_over(r, config, loop, metrics, &a->in.files, &a->indexes);

	if (!error)
		error = processes_new(a->in.files, &a->in.processes);
	if (!error)
		error = facts_reader_new(config->env_vars, config->env_var_count, metrics, &a->in.facts);
	if (!error)
		error = pending_new(AGENT_MAX_CPUS, &a->in.pending);
	if (!error)
		error = kernel_names_new(metrics, &a->in.kernel_names);
	if (!error)
		error = traces_new(a->in.kernel_names, &a->in.traces);
	if (!error)
		error = traces_new(a->in.kernel_names, &a->held);
	if (!error)
		error = jit_names_new(a->in.files, metrics, &a->in.jit_names);
	if (!error)
		error = names_new(a->in.kernel_names, metrics, &a->names);
	if (!error)
		error = truth_counts_new(metrics, &a->truths);
	if (!error)
		error = module_status_new(metrics, &a->modules);
	if (!error)
		error = interval_new(a->names, a->in.jit_names, a->truths, a->modules, config, &a->interval);
	if (!error) {
		a->in.indexes = a->indexes;
		indexes_on_done(a->indexes, on_names, a);
	}
	return error;
}

static void on_open_wait(void *arg)
{
	intake_keep_samples(&((struct agent *)arg)->in);
}

static int make_all(struct agent *a, const struct agent_config *config, struct loop *loop, struct metrics *metrics,
		    struct agent_error *err)
{
	struct readers readers = { 0 };
	int error;

	error = readers_start(config, metrics, &readers, err);
	if (error) {
		readers_stop(&readers);
		return error;
	}
	error = make_tables(a, &readers, config, loop, metrics);
	if (error)
		return fail(err, error, "cannot start the agent");
	error = sampler_new(config, &a->in.sampler, err);
	if (error)
		return fail(err, error, "cannot start sampling");
	files_on_wait(a->in.files, on_wait, a);
	file_opener_on_wait(readers.opener, on_open_wait, a);
	error = late_new(a->in.processes, a->in.files, a->in.sampler, metrics, &a->in.late);
	if (!error)
		error = side_band_new(metrics, &a->in.side_band);
	if (!error)
		error = agent_choose_cpus(a, &config->filter, err);
	if (!error)
		error = agent_follow_cpus(a);
	if (error)
		return explain_events(config, error, err);
	error = processes_scan(a->in.processes);
	if (error)
		return fail(err, error, "cannot read /proc");
	error = watch(a, loop);
	if (!error)
		error = agent_metrics(a);
	return error ? fail(err, error, "cannot start the agent") : 0;
}

/* Of tracepoints each event is a sample, as with perf: there is no clock in them to ask for a frequency. */
static uint64_t agent_period(const struct agent_config *config)
{
	struct perf_event_attr attr = { 0 };
	struct agent_error ignored;

	if (config->period || !config->event || perf_event_parse(config->event, &attr, &ignored))
		return config->period;
	return attr.type == PERF_TYPE_TRACEPOINT;
}

int agent_new(const struct agent_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	      struct agent **ret, struct agent_error *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct agent_config resolved = *config;
	int error;

	err->message[0] = '\0';
	if (!a)
		return fail(err, -ENOMEM, "cannot start the agent");
	if (!config->freq_hz)
		resolved.freq_hz = perf_event_max_freq() < AGENT_MAX_FREQ ? perf_event_max_freq() : AGENT_MAX_FREQ;
	a->freq_hz = resolved.freq_hz;
	resolved.period = agent_period(config);
	a->period = resolved.period;
	a->loop = loop;
	a->out = out;
	a->in.metrics = metrics;
	a->clock_fd = -1;
	a->random = (unsigned)clock_mono_ns();
	a->report_interval_ns = config->report_interval_ns;
	a->report_jitter = config->report_jitter;
	a->cpu_cap = AGENT_MAX_CPUS;
	a->cpus = calloc(AGENT_MAX_CPUS, sizeof(*a->cpus));
	error = a->cpus ? kernel_is_supported(config->unsafe_kernel, config->no_version_check, err)
			: fail(err, -ENOMEM, "cannot start the agent");
	if (!error)
		error = make_all(a, &resolved, loop, metrics, err);
	if (error) {
		agent_free(a);
		return error;
	}
	*ret = a;
	return 0;
}

int agent_start(struct agent *a, struct agent_error *err)
{
	int error;

	err->message[0] = '\0';
	a->interval_start_ns = a->rows_saved_ns = clock_mono_ns();
	error = a->paused ? 0 : sampler_enable(a->in.sampler, true);
	if (!error)
		error = loop_set_timer(a->report_timer, draw_interval_ns(a), 0);
	if (!error)
		error = loop_set_timer(a->cpu_timer, CPU_CHECK_MS * NSEC_PER_MSEC, CPU_CHECK_MS * NSEC_PER_MSEC);
	return error ? fail(err, error, "cannot enable the sampling events") : 0;
}

int agent_pause(struct agent *a, bool on)
{
	a->paused = on;
	return sampler_enable(a->in.sampler, !on);
}

void agent_set_interval(struct agent *a, uint64_t report_interval_ns, double report_jitter)
{
	a->report_interval_ns = report_interval_ns;
	a->report_jitter = report_jitter;
	(void)loop_set_timer(a->report_timer, draw_interval_ns(a), 0);
}

int agent_add_pid(struct agent *a, uint32_t pid)
{
	return sampler_filter_add(a->in.sampler, pid);
}

/* The last samples wait for their names. */
static void wait_for_names(struct agent *a, uint64_t deadline_ns)
{
	uint64_t start_ns = clock_mono_ns(), now_ns = start_ns;
	bool is_said = false;

	while ((waits_for_names(a->in.traces) || waits_for_names(a->held)) && now_ns < deadline_ns) {
		indexes_wait(a->indexes, WAIT_SLICE_MS);
		now_ns = clock_mono_ns();
		if (is_said || now_ns - start_ns < NSEC_PER_SEC)
			continue;
		is_said = true;
		log_info("waiting for the names of %u files, %.1f s at most", indexes_coming(a->indexes),
			 (double)(deadline_ns - start_ns) / (double)NSEC_PER_SEC);
	}
	indexes_tell(a->indexes);
}

int agent_stop(struct agent *a, uint64_t deadline_ns)
{
	if (a->stopped)
		return 0;
	a->stopped = true;
	agent_drop_extra_reports(a);
	(void)sampler_enable(a->in.sampler, false);
	(void)loop_set_timer(a->report_timer, 0, 0);
	(void)loop_set_timer(a->cpu_timer, 0, 0);
	files_always_wait(a->in.files);
	do {
		intake_run_all(&a->in);
	} while (!intake_is_done(&a->in)); /* what came in while a file was read */
	wait_for_names(a, deadline_ns);
	report(a);
	save_rows(a);
	agent_tell_misses(a);
	return a->sink_error;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	agent_metrics_off(a);
	agent_drop_extra_reports(a);
	loop_remove(a->side_band_watch);
	loop_remove(a->ring_watch);
	loop_remove(a->settle_timer);
	loop_remove(a->report_timer);
	loop_remove(a->cpu_timer);
	loop_remove(a->clock_watch);
	if (a->clock_fd >= 0)
		close(a->clock_fd);
	interval_free(a->interval);
	truth_counts_free(a->truths);
	module_status_free(a->modules);
	names_free(a->names);
	traces_free(a->in.traces);
	traces_free(a->held);
	pending_free(a->in.pending);
	intake_fini(&a->in);
	late_free(a->in.late);
	processes_free(a->in.processes);
	facts_reader_free(a->in.facts);
	jit_names_free(a->in.jit_names);
	kernel_names_free(a->in.kernel_names);
	indexes_free(a->indexes);
	files_free(a->in.files);
	side_band_free(a->in.side_band);
	sampler_free(a->in.sampler);
	free(a->cpus);
	free(a->chosen);
	free(a);
}
