/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's life once its parts are there (agent/parts.c): started (samples), stopped (drained, the last profile handed
 * over). Sources of events in the caller's loop: the side band (a ring half full), the rings (a miss, or a ring a quarter
 * full), a short timer while something waits to be applied, the report timer, and a slow one that follows CPUs. Everything
 * runs on the loop's thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/context/process_context.h"
#include "agent/files/open.h"
#include "agent/heap/heaps.h"
#include "agent/names/indexes.h"
#include "agent/kernel/sampler_filter.h"
#include "agent/proc/proc_reader.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "proto/arena.h"
#include "proto/sink.h"

enum {
	SETTLE_TIMER_MS = 3, /* for records that came while the rings were read */
	CPU_CHECK_MS = 1000,
	FILE_IDLE_SECONDS = 60,
	SAVE_ROWS_SECONDS = 600,
	WAIT_SLICE_MS = 50,
};

/* --- CPUs that come and go: agent/cpus.c --- */

static void publish_asid(void *arg, struct process *p)
{
	process_publish(p, ((struct agent *)arg)->in.sampler);
}

static void on_cpu_timer(void *arg)
{
	struct agent *a = arg;
	int error = agent_follow_cpus(a);
	static struct log_limit limit;

	if (error)
		log_limited(&limit, 60 * NSEC_PER_SEC, LOG_WARN, "a CPU is not sampled: %s", strerror(-error));
	if (!a->pids.is_ours)
		processes_reread_met(a->in.processes, publish_asid, a);
	intake_read_side_band(&a->in); /* where nothing misses, nothing else wakes us when a mapping replaces another */
}

/* --- intervals --- */

static void forget_process(void *arg, struct process *p)
{
	struct agent *a = arg;

	if (p->is_known)
		(void)sampler_forget_proc(a->in.sampler, p->pid);
	sampler_filter_remove(a->in.sampler, p->pid);
}

/* Called now and then during long work, as the rings would be full soon. */
static void on_wait(void *arg)
{
	struct agent *a = arg;

	intake_read_ahead(&a->in);
}

static struct wait_hook wait_hook_of(struct agent *a)
{
	return (struct wait_hook){ on_wait, a };
}

/* Adds the events of @t by kind to @sums. */
static void count_events(const struct traces *t, struct sample_sum sums[MAX_KINDS])
{
	for (uint32_t i = 0; i < traces_event_count(t); i++) {
		const struct trace_event *e = &traces_events(t)[i];

		sums[e->kind].samples++;
		sums[e->kind].value += e->value;
	}
}

/* Counts wakers whose waits were not told, as these were lost or come in another interval. */
static void count_alone(struct agent *a, const struct wakers *wakers)
{
	for (uint32_t i = 0; i < wakers_count(wakers); i++) {
		const struct waker *waker = wakers_get(wakers, i);

		if (waker->is_used)
			continue;
		a->in.counts.lost[LOSS_ALONE][waker->kind].samples++;
		a->in.counts.lost[LOSS_ALONE][waker->kind].value += waker->value;
	}
}

/* Builds the profiles of @t, hands them to the sink, and empties it. */
static void hand_over(struct agent *a, struct traces *t, uint64_t start_ns, uint64_t end_ns)
{
	const struct wait_hook hook = wait_hook_of(a);
	struct profiles *p = NULL;
	int error;

	count_alone(a, traces_wakers(t));
	if (!traces_event_count(t)) {
		traces_reset(t);
		return;
	}
	if (interval_build(a->interval, t, start_ns, end_ns, &hook, &p)) {
		count_events(t, a->in.counts.lost[LOSS_MEMORY]);
	} else {
		error = sink_consume(a->out, p, NULL);
		count_events(t, error ? a->in.counts.lost[LOSS_SINK] : a->delivered);
		if (error && error != -EAGAIN)
			a->sink_error = error;
		profiles_put(p);
	}
	runtimes_settle(a->in.runtimes, t, end_ns);
	traces_reset(t);
}

/* May the frames of the interval get better names soon? Those below *@from cannot, as the last call has found. */
static bool waits_for_names(const struct traces *t, uint32_t *from)
{
	for (; *from < traces_frame_count(t); ++*from) {
		const struct trace_frame *frame = traces_frame(t, *from);

		if (frame->file && file_names_are_coming(frame->file))
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

	if (!waits_for_names(a->held, &a->held_named))
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

/* Looks at what the processes of @t have published about themselves since the last time. */
static void look_at_contexts(const struct traces *t)
{
	const struct process *last = NULL;

	for (uint32_t i = 0; i < traces_event_count(t); i++) {
		struct process *p = traces_events(t)[i].process;

		if (p != last && !p->context_is_fresh) {
			process_context_look(p, false);
			p->context_is_fresh = true;
		}
		last = p;
	}
	for (uint32_t i = 0; i < traces_event_count(t); i++)
		traces_events(t)[i].process->context_is_fresh = false;
}

static void report(struct agent *a)
{
	uint64_t start_ns = a->interval_start_ns, now_ns = clock_mono_ns();
	const struct wait_hook hook = wait_hook_of(a);
	uint32_t named = 0;

	if (traces_event_count(a->in.traces))
		runtimes_update(a->in.runtimes, a->in.traces, &hook);
	look_at_contexts(a->in.traces);
	hand_over_held(a);
	if (a->in.oldest_ns && a->in.oldest_ns < start_ns)
		start_ns = a->in.oldest_ns;
	if (!a->stopped && waits_for_names(a->in.traces, &named)) {
		struct traces *empty = a->held;

		a->held = a->in.traces;
		a->held_start_ns = start_ns;
		a->held_end_ns = now_ns;
		a->held_named = named;
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
	sampler_look_for_spans(a->in.sampler);
	sampler_rings_settle(a->in.sampler);
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

/* Samples wait in the rings until there are many, while the code that they are of may go. */
static void on_code_timer(void *arg)
{
	struct agent *a = arg;

	on_settle_timer(a);
	code_spaces_look(a->in.code);
}

static void run_intake(struct agent *a)
{
	intake_run(&a->in);
	if (!a->looks_at_code && code_spaces_are_used(a->in.code))
		a->looks_at_code = !loop_set_timer(a->code_timer, CODE_LOOK_MS * NSEC_PER_MSEC,
						   CODE_LOOK_MS * NSEC_PER_MSEC);
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
	intake_read_asleep(&a->in);
	run_intake(a);
	if (a->heaps)
		heaps_read(a->heaps, HEAPS_GO_ON);
	report(a);
}

void agent_hand_over_held(struct agent *a)
{
	hand_over_held(a);
}

/* An interval begins when the one before was due. So it contains the time that a report takes, which is long on a busy
 * machine. */
static int set_report_timer(struct agent *a, uint64_t from_ns)
{
	uint64_t now_ns = clock_mono_ns();

	a->report_due_ns = from_ns + draw_interval_ns(a);
	if (a->report_due_ns <= now_ns)
		a->report_due_ns = now_ns + 1;
	return loop_set_timer(a->report_timer, a->report_due_ns - now_ns, 0);
}

static void on_report_timer(void *arg)
{
	struct agent *a = arg;

	agent_report(a);
	(void)set_report_timer(a, a->report_due_ns);
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

/* --- sources of events --- */

static void on_open_wait(void *arg)
{
	struct agent *a = arg;

	if (a->in.sampler) /* a process may be silent before there is one */
		intake_keep_samples(&a->in);
}

void agent_follow_files(struct agent *a, struct file_opener *opener)
{
	a->in.indexes = a->indexes;
	indexes_on_done(a->indexes, on_names, a);
	files_on_wait(a->in.files, wait_hook_of(a));
	file_opener_on_wait(opener, (struct wait_hook){ on_open_wait, a });
	proc_reader_on_wait((struct wait_hook){ on_open_wait, a });
}

void agent_follow_code(struct agent *a)
{
	code_spaces_on_wait(a->in.code, wait_hook_of(a));
}

static int watch_clock(struct agent *a)
{
	struct itimerspec far = { .it_value.tv_sec = INT32_MAX };

	a->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->clock_fd < 0 || timerfd_settime(a->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL))
		return -errno;
	return loop_add_fd(a->loop, a->clock_fd, EPOLLIN, on_clock_set, a, &a->clock_watch);
}

int agent_watch(struct agent *a)
{
	int error = loop_add_fd(a->loop, side_band_fd(a->in.side_band), EPOLLIN, on_side_band, a, &a->side_band_watch);

	if (!error)
		error = loop_add_fd(a->loop, sampler_fd(a->in.sampler), EPOLLIN, on_ring, a, &a->ring_watch);
	if (!error)
		error = loop_add_timer(a->loop, on_settle_timer, a, &a->settle_timer);
	if (!error)
		error = loop_add_timer(a->loop, on_report_timer, a, &a->report_timer);
	if (!error)
		error = loop_add_timer(a->loop, on_code_timer, a, &a->code_timer);
	if (!error)
		error = loop_add_timer(a->loop, on_cpu_timer, a, &a->cpu_timer);
	return error ? error : watch_clock(a);
}

void agent_unwatch(struct agent *a)
{
	agent_drop_extra_reports(a);
	loop_remove(a->side_band_watch);
	loop_remove(a->ring_watch);
	loop_remove(a->settle_timer);
	loop_remove(a->report_timer);
	loop_remove(a->code_timer);
	loop_remove(a->cpu_timer);
	loop_remove(a->clock_watch);
	if (a->clock_fd >= 0)
		close(a->clock_fd);
}

/* --- life --- */

int agent_start(struct agent *a, struct agent_error *err)
{
	int error;

	err->message[0] = '\0';
	a->interval_start_ns = a->rows_saved_ns = clock_mono_ns();
	if (a->heaps)
		heaps_read(a->heaps, HEAPS_BEGIN);
	sampler_look_for_spans(a->in.sampler);
	error = a->paused ? 0 : sampler_enable(a->in.sampler, true);
	if (!error)
		error = set_report_timer(a, a->interval_start_ns);
	if (!error)
		error = loop_set_timer(a->cpu_timer, CPU_CHECK_MS * NSEC_PER_MSEC, CPU_CHECK_MS * NSEC_PER_MSEC);
	if (error)
		snprintf(err->message, sizeof(err->message), "cannot enable the sampling events: %s", strerror(-error));
	return error;
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
	(void)set_report_timer(a, clock_mono_ns());
}

int agent_add_pid(struct agent *a, uint32_t pid)
{
	return sampler_filter_add(a->in.sampler, pid);
}

/* The last samples wait for their names. */
static void wait_for_names(struct agent *a, uint64_t deadline_ns)
{
	uint64_t start_ns = clock_mono_ns(), now_ns = start_ns;
	uint32_t named = 0;
	bool is_said = false;

	while ((waits_for_names(a->in.traces, &named) || waits_for_names(a->held, &a->held_named)) && now_ns < deadline_ns) {
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
	intake_read_asleep(&a->in);
	(void)sampler_enable(a->in.sampler, false);
	(void)loop_set_timer(a->report_timer, 0, 0);
	(void)loop_set_timer(a->cpu_timer, 0, 0);
	files_always_wait(a->in.files);
	do {
		intake_run_all(&a->in);
	} while (!intake_is_done(&a->in)); /* records that came in while a file was read */
	if (a->heaps)
		heaps_read(a->heaps, HEAPS_END);
	wait_for_names(a, deadline_ns);
	report(a);
	save_rows(a);
	agent_tell_misses(a);
	return a->sink_error;
}
