/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of an agent that do nothing but write down, in order, what was called, and fail where the test says so; its loop and
 * its clock are the test's. Include it after cmocka.h, in the one file of a binary.
 */
#ifndef HEARTH_TESTS_AGENT_PARTS_TOLD_H
#define HEARTH_TESTS_AGENT_PARTS_TOLD_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/code/code_spaces.h"
#include "agent/context/process_context.h"
#include "agent/files/file_index.h"
#include "agent/files/files.h"
#include "agent/files/open.h"
#include "agent/heap/heaps.h"
#include "agent/kernel/sampler_filter.h"
#include "agent/kernel/side_band.h"
#include "agent/names/indexes.h"
#include "agent/proc/proc_reader.h"
#include "agent/process/process_facts.h"
#include "agent/process/processes.h"
#include "agent/runtime/runtimes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "proto/sink.h"

enum { SIDE_BAND_FD = 1001, RING_FD = 1002, WATCHES = 8, MAX_EVENTS = 8 };

static struct agent a;
static struct buf calls;
static uint64_t now_ns;
static const char *failing; /* what is called like this fails ... */
static int failure;	    /* ... so */

static inline int call(const char *name)
{
	buf_printf(&calls, "%s ", name);
	return failing && !strcmp(failing, name) ? failure : 0;
}

#define assert_called(wanted)                                    \
	do {                                                     \
		assert_string_equal(buf_text(&calls), (wanted)); \
		buf_reset(&calls);                               \
	} while (0)

/* --- time, and the loop --- */

uint64_t clock_mono_ns(void)
{
	return now_ns;
}

uint64_t clock_unix_ns(void)
{
	return now_ns;
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	return mono_ns;
}

void clock_refresh(void)
{
	call("refresh");
}

struct loop_watch {
	int fd; /* -1: a timer */
	loop_fd_fn on_fd;
	loop_timer_fn on_time;
	void *arg;
	uint64_t first_ns, interval_ns; /* as it was set last */
	unsigned set_cnt;
	bool is_removed;
};

static struct loop_watch watches[WATCHES];
static unsigned watch_count, watch_fails_at;
static struct loop *const a_loop = (struct loop *)watches;

static inline int add_watch(struct loop *loop, const struct loop_watch *w, struct loop_watch **ret)
{
	assert_ptr_equal(loop, a_loop);
	assert_ptr_equal(w->arg, &a);
	if (watch_fails_at && watch_count + 1 == watch_fails_at)
		return -ENOSPC;
	assert_true(watch_count < WATCHES);
	watches[watch_count] = *w;
	*ret = &watches[watch_count++];
	return 0;
}

int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn, void *arg, struct loop_watch **ret)
{
	assert_int_equal(events, 1); /* EPOLLIN */
	return add_watch(loop, &(struct loop_watch){ .fd = fd, .on_fd = fn, .arg = arg }, ret);
}

int loop_add_timer(struct loop *loop, loop_timer_fn fn, void *arg, struct loop_watch **ret)
{
	return add_watch(loop, &(struct loop_watch){ .fd = -1, .on_time = fn, .arg = arg }, ret);
}

int loop_set_timer(struct loop_watch *watch, uint64_t first_ns, uint64_t interval_ns)
{
	watch->first_ns = first_ns;
	watch->interval_ns = interval_ns;
	watch->set_cnt++;
	return failing && !strcmp(failing, "timer") ? failure : 0;
}

void loop_remove(struct loop_watch *watch)
{
	if (watch)
		watch->is_removed = true;
}

/* --- what is read --- */

static unsigned rounds; /* until all is applied */
static bool code_is_used;

void intake_run(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("run");
}

void intake_run_all(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("run-all");
}

bool intake_is_done(const struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	return !rounds || !--rounds;
}

void intake_read_ahead(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("ahead");
}

void intake_read_side_band(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("side-band");
}

void intake_keep_samples(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("keep");
}

void intake_read_asleep(struct intake *in)
{
	assert_ptr_equal(in, &a.in);
	call("asleep");
}

bool code_spaces_are_used(const struct code_spaces *cs)
{
	(void)cs;
	return code_is_used;
}

void code_spaces_look(struct code_spaces *cs)
{
	(void)cs;
	call("code");
}

static struct wait_hook code_hook, files_hook, opener_hook, proc_hook;

void code_spaces_on_wait(struct code_spaces *cs, struct wait_hook hook)
{
	(void)cs;
	code_hook = hook;
}

int side_band_fd(const struct side_band *s)
{
	(void)s;
	return SIDE_BAND_FD;
}

/* --- the sampler, processes and files --- */

static struct sampler *const a_sampler = (struct sampler *)&calls;

int sampler_enable(struct sampler *s, bool on)
{
	assert_ptr_equal(s, a_sampler);
	return call(on ? "enable" : "disable");
}

int sampler_fd(const struct sampler *s)
{
	assert_ptr_equal(s, a_sampler);
	return RING_FD;
}

void sampler_rings_settle(struct sampler *s)
{
	assert_ptr_equal(s, a_sampler);
	call("settle-rings");
}

int sampler_filter_add(struct sampler *s, uint32_t pid)
{
	assert_ptr_equal(s, a_sampler);
	assert_int_equal(pid, 77);
	return call("add-pid");
}

void sampler_filter_remove(struct sampler *s, uint32_t pid)
{
	assert_ptr_equal(s, a_sampler);
	buf_printf(&calls, "filter-%u ", pid);
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	assert_ptr_equal(s, a_sampler);
	buf_printf(&calls, "forget-%u ", pid);
	return 0;
}

static struct process procs[3] = { { .pid = 10 }, { .pid = 11, .is_known = true }, { .pid = 12 } };
static uint32_t expired; /* so many of these */

void process_publish(struct process *p, struct sampler *sampler)
{
	assert_ptr_equal(sampler, a_sampler);
	buf_printf(&calls, "publish-%u ", p->pid);
}

void processes_expire(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	(void)ps;
	call("expire");
	for (uint32_t i = 0; i < expired; i++)
		fn(arg, &procs[i]);
}

void processes_reread_met(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	(void)ps;
	call("reread");
	fn(arg, &procs[0]);
}

void process_context_look(struct process *p, bool at_once)
{
	assert_false(at_once);
	buf_printf(&calls, "look-%u ", p->pid);
}

void facts_reader_settle(struct facts_reader *r)
{
	(void)r;
	call("facts");
}

void files_always_wait(struct files *f)
{
	(void)f;
	call("always-wait");
}

void files_expire(struct files *f, uint64_t at_ns, uint64_t idle_ns)
{
	(void)f;
	assert_int_equal(at_ns, now_ns);
	assert_int_equal(idle_ns, 60 * NSEC_PER_SEC);
	call("expire-files");
}

void files_on_wait(struct files *f, struct wait_hook hook)
{
	(void)f;
	files_hook = hook;
}

int files_save_rows(struct files *f)
{
	(void)f;
	return call("save-rows");
}

void file_opener_on_wait(struct file_opener *o, struct wait_hook hook)
{
	(void)o;
	opener_hook = hook;
}

void proc_reader_on_wait(struct wait_hook hook)
{
	proc_hook = hook;
}

void heaps_read(struct heaps *h, enum heaps_moment moment)
{
	static const char *const names[] = { "heaps-begin", "heaps", "heaps-end" };

	assert_ptr_equal(h, a.heaps);
	call(names[moment]);
}

/* --- names --- */

static void (*on_names)(void *arg);
static void *names_arg;
static struct file_index coming = { .state = FILE_INDEX_COMING };
static uint64_t names_come_ns; /* at this time; 0: never */
static int last_slice_ms;

uint32_t indexes_coming(const struct indexes *x)
{
	(void)x;
	return 5;
}

void indexes_on_done(struct indexes *x, void (*fn)(void *arg), void *arg)
{
	assert_ptr_equal(x, a.indexes);
	on_names = fn;
	names_arg = arg;
}

void indexes_tell(const struct indexes *x)
{
	(void)x;
	call("tell-indexes");
}

void indexes_wait(struct indexes *x, int timeout_ms)
{
	(void)x;
	last_slice_ms = timeout_ms;
	now_ns += (uint64_t)timeout_ms * NSEC_PER_MSEC;
	if (names_come_ns && now_ns >= names_come_ns)
		coming.state = FILE_INDEX_DONE;
}

void runtimes_settle(struct runtimes *r, const struct traces *t, uint64_t end_ns)
{
	(void)r;
	(void)t;
	buf_printf(&calls, "settle=%llu ", (unsigned long long)(end_ns / NSEC_PER_SEC));
}

void runtimes_update(struct runtimes *r, const struct traces *t, const struct wait_hook *hook)
{
	(void)r;
	(void)t;
	assert_non_null(hook->run);
	call("runtimes");
}

/* --- what else the agent has --- */

int agent_follow_cpus(struct agent *agent)
{
	assert_ptr_equal(agent, &a);
	return call("cpus");
}

void agent_drop_extra_reports(struct agent *agent)
{
	assert_ptr_equal(agent, &a);
	call("drop-extra");
}

void agent_tell_misses(const struct agent *agent)
{
	assert_ptr_equal(agent, &a);
	call("misses");
}

void agent_tell_memory(struct agent *agent)
{
	assert_ptr_equal(agent, &a);
	call("memory");
}

/* --- samples --- */

struct traces {
	const char *name;
	struct trace_event events[MAX_EVENTS];
	uint32_t event_count;
	struct trace_frame frames[2];
	uint32_t frame_count;
	struct waker wakers[2];
	uint32_t waker_count;
};

static struct traces first = { .name = "first" }, second = { .name = "second" };

uint32_t traces_event_count(const struct traces *t)
{
	return t->event_count;
}

const struct trace_event *traces_events(const struct traces *t)
{
	return t->events;
}

uint32_t traces_frame_count(const struct traces *t)
{
	return t->frame_count;
}

const struct trace_frame *traces_frame(const struct traces *t, uint32_t frame)
{
	assert_true(frame < t->frame_count);
	return &t->frames[frame];
}

const struct wakers *traces_wakers(const struct traces *t)
{
	return (const struct wakers *)t;
}

uint32_t wakers_count(const struct wakers *w)
{
	return ((const struct traces *)w)->waker_count;
}

const struct waker *wakers_get(const struct wakers *w, uint32_t number)
{
	return &((const struct traces *)w)->wakers[number];
}

void traces_reset(struct traces *t)
{
	t->event_count = t->frame_count = t->waker_count = 0;
}

static inline void add_event(struct traces *t, uint32_t process, uint32_t kind, uint64_t value)
{
	t->events[t->event_count++] = (struct trace_event){ .process = &procs[process], .kind = kind, .value = value };
}

static inline void add_frame(struct traces *t, struct file *file)
{
	t->frames[t->frame_count++] = (struct trace_frame){ .file = file };
}

static struct profiles *const some_profiles = (struct profiles *)&first;

int interval_build(struct interval *iv, const struct traces *t, uint64_t start_ns, uint64_t end_ns,
		   const struct wait_hook *hook, struct profiles **ret)
{
	(void)iv;
	assert_non_null(hook->run);
	*ret = some_profiles;
	buf_printf(&calls, "%s %llu-%llu ", t->name, (unsigned long long)(start_ns / NSEC_PER_SEC),
		   (unsigned long long)(end_ns / NSEC_PER_SEC));
	return call("build");
}

void profiles_put(struct profiles *p)
{
	assert_ptr_equal(p, some_profiles);
	call("put");
}

static int consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	assert_true(sink == a.out && p == some_profiles && !ack);
	return call("consume");
}

static const struct sink_ops ops = { .name = "test", .consume = consume };
static struct sink sink = { .ops = &ops };

#define EXPIRE	"expire facts expire-files "
#define SETTLED EXPIRE "settle-rings memory "

/* --- --- */

static inline int begin(void **state)
{
	(void)state;
	now_ns = 1000 * NSEC_PER_SEC;
	failing = NULL;
	watch_count = watch_fails_at = 0;
	rounds = expired = 0;
	code_is_used = false;
	coming.state = FILE_INDEX_COMING;
	names_come_ns = 0;
	traces_reset(&first);
	traces_reset(&second);
	a = (struct agent){
		.in.sampler = a_sampler,
		.in.traces = &first,
		.held = &second,
		.loop = a_loop,
		.out = &sink,
		.clock_fd = -1,
		.report_interval_ns = 5 * NSEC_PER_SEC,
		.random = 1,
		.pids.is_ours = true,
	};
	assert_int_equal(agent_watch(&a), 0);
	agent_follow_files(&a, NULL);
	agent_follow_code(&a);
	buf_reset(&calls);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	agent_unwatch(&a);
	buf_fini(&calls);
	return 0;
}

static inline bool is_said_last(const char *text)
{
	struct log_message last;

	return log_recent(&last, 1) == 1 && strstr(last.text, text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
