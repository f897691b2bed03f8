/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time off the CPUs. Each thread has a struct wait, which says since when it is off its CPU. That costs little, so it is
 * kept at every switch; a stack is taken only of the intervals that a draw chooses (bpf/draw.h).
 *
 *   on_switch    the thread that goes notes the time; that of the thread that comes ends: how long it waited for a CPU since
 *                it was woken is drawn for, and if that or its sleep was chosen its stack is wanted
 *   on_waking    its sleep ends: drawn for
 *   on_again     takes the stack
 *   tell_asleep  walks over all threads at the end of a report interval and tells the part of their sleep that has passed
 *
 * on_switch runs between two threads, where the stack of the one that comes cannot be read: the address space is still the
 * other one's, whose bytes would pass for it. So on_switch sends an interrupt to its own CPU, by a record for which a perf
 * event asks to be woken. It arrives as soon as the kernel has made the switch and lets interrupts in, before the thread has
 * done anything: on_again then finds it with the registers and the stack with which it went to sleep. The kernel part has
 * the frames of the interrupt on top, which user space takes off.
 *
 * A thread's struct wait is made when the thread is made, or by tell_asleep when sampling begins: not in the scheduler,
 * which is no place to allocate memory. on_switch and on_waking run with interrupts off.
 *
 * This is an object of its own, which shares maps and options with the sampler's (bpf/sampler.bpf.c).
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/pids.bpf.h"
#include "bpf/filter.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/draw.h"

const volatile __u64 cfg_mean_ns = 50000000; /* see bpf/draw.h */
const volatile __u32 cfg_blocked_kind = 1;   /* the session's kinds of this object's samples */
const volatile __u32 cfg_runnable_kind = 2;
const volatile bool cfg_task_storage = true;	 /* BPF_MAP_TYPE_TASK_STORAGE (5.11) is there */
const volatile bool cfg_switch_has_state = true; /* sched_switch tells the state of the thread that goes (5.18) */
const volatile __u64 cfg_wait_cost_ns = 0;	 /* token bucket: time that one stack costs ... */
const volatile __u64 cfg_wait_burst_ns = 0;	 /* ... and how much may be saved up */

__u64 waits_refused = 0; /* threads for which there was no room */

/* 56 bytes, which with the kernel's pointer before them are a line of the cache. */
struct wait {
	__u64 since_ns; /* off the CPU since then; 0: on a CPU, or not wanted */
	__u64 told_ns;	/* up to then it has been told: since_ns, or when tell_asleep told it last */
	__u64 woken_ns; /* 0: not yet */
	__u64 value;	/* of the sleep, which has ended and was chosen; else 0 */
	__u32 state;	/* enum wait_state */
	__u32 pad;
	struct draw sleeps, queues; /* of its short sleeps; of its short waits for a CPU */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait);
} wait_storage SEC(".maps");

/* The same for kernels without it, by thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait);
} wait_table SEC(".maps");

/* The thread of each CPU whose stack is wanted. */
struct wanted_stack {
	__u64 blocked_value, runnable_value; /* 0: not chosen */
	struct wait_info wait;
	__u64 tokens_ns; /* token bucket: the time up to which it was spent */
	__u32 tid;	 /* in the first namespace; 0: none */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU */
	__type(key, __u32);
	__type(value, struct wanted_stack);
} wanted_stacks SEC(".maps");

/* Events that interrupt their CPU for each record. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* one for each CPU */
	__type(key, __u32);
	__type(value, __u32);
} self_interrupts SEC(".maps");

static __always_inline __u32 draw_random(void)
{
	return bpf_get_prandom_u32();
}

static __always_inline struct wait *wait_of(struct task_struct *task)
{
	__u32 tid;

	if (cfg_task_storage)
		return bpf_task_storage_get(&wait_storage, task, NULL, 0);
	tid = task->pid;
	return bpf_map_lookup_elem(&wait_table, &tid);
}

/* Makes a thread's struct wait if it has none. Not in the scheduler. */
static __always_inline struct wait *make_wait(struct task_struct *task)
{
	static const struct wait none;
	__u32 tid;

	if (cfg_task_storage)
		return bpf_task_storage_get(&wait_storage, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	tid = task->pid;
	bpf_map_update_elem(&wait_table, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&wait_table, &tid);
}

static __always_inline __u32 state_of(struct task_struct *task)
{
	struct task_struct___new *with_new = (void *)task;
	struct task_struct___old *with_old = (void *)task;

	if (bpf_core_field_exists(with_new->__state))
		return BPF_CORE_READ(with_new, __state);
	return (__u32)BPF_CORE_READ(with_old, state);
}

static __always_inline enum wait_state wait_state_of(__u32 state)
{
	if (!state)
		return WAIT_PREEMPTED;
	if (state & (STATE_STOPPED | STATE_FROZEN))
		return WAIT_STOPPED;
	return state & STATE_INTERRUPTIBLE ? WAIT_SLEEPING : WAIT_UNINTERRUPTIBLE;
}

/* Kernel threads sleep until there is work: nobody waits for that. Nor do an io_uring's. */
static __always_inline bool is_idle_kernel_thread(struct task_struct *task, __u32 state)
{
	if (!(task->flags & (TASK_KTHREAD | TASK_IO_WORKER)) || !state)
		return false;
	return !(state & STATE_UNINTERRUPTIBLE) || state & STATE_IDLE;
}

/* Is anything filtered? Constants, so that nothing is asked for where nothing is. */
static __always_inline bool filters(void)
{
	return cfg_filter_pids || cfg_filter_tids || cfg_no_kernel || cfg_min_age_ns || cfg_uid_cnt || cfg_filter_comm ||
	       cfg_cgroup_cnt;
}

/* The counters that programs of the scheduler use, which interrupt nobody: those of the lowest level. */
static __always_inline struct cpu_state *own_state(__u32 cpu)
{
	__u32 slot = cpu * cfg_levels;

	return bpf_map_lookup_elem(&cpu_states, &slot);
}

static __always_inline void take(struct cpu_state *state, __u32 kind, __u64 value)
{
	state->taken[kind & (MAX_KINDS - 1)]++;
	state->taken_value[kind & (MAX_KINDS - 1)] += value;
}

/* Counts what @wanted has as taken, and if @loss is a loss, as lost by that. */
static __always_inline void account(struct cpu_state *state, const struct wanted_stack *wanted, enum kernel_loss loss)
{
	if (wanted->blocked_value)
		take(state, cfg_blocked_kind, wanted->blocked_value);
	if (wanted->runnable_value)
		take(state, cfg_runnable_kind, wanted->runnable_value);
	if (loss == KERNEL_LOSS_MAX)
		return;
	if (wanted->blocked_value)
		lose(state, loss, cfg_blocked_kind, wanted->blocked_value);
	if (wanted->runnable_value)
		lose(state, loss, cfg_runnable_kind, wanted->runnable_value);
}

static __always_inline bool has_tokens(__u64 *tokens_ns, __u64 now_ns)
{
	__u64 floor = now_ns - cfg_wait_burst_ns;

	if (*tokens_ns < floor)
		*tokens_ns = floor;
	if (*tokens_ns > now_ns)
		return false;
	*tokens_ns += cfg_wait_cost_ns;
	return true;
}

#include "bpf/wakers.bpf.h"
#include "bpf/wait_target.bpf.h"

/* The stack that was wanted will not come: its thread has gone on, or may not cost more. */
static __always_inline void give_up(__u32 cpu, struct wanted_stack *wanted, enum kernel_loss loss)
{
	struct cpu_state *state = own_state(cpu);

	if (state)
		account(state, wanted, loss);
	wanted->tid = 0;
}

static __always_inline void end_sleep(struct wait *w, __u64 now_ns)
{
	w->woken_ns = now_ns;
	w->value = draw_interval(&w->sleeps, now_ns - w->told_ns, cfg_mean_ns);
}

/* Nobody saw the thread come back, as the kernel left this program out: where it waited cannot be known any more. */
static __always_inline void lose_wait(struct wait *w, __u32 cpu, __u64 now_ns)
{
	struct wanted_stack lost = {};
	struct cpu_state *state = own_state(cpu);

	if (!w->woken_ns)
		end_sleep(w, now_ns);
	lost.blocked_value = w->value;
	if (state)
		account(state, &lost, KERNEL_LOSS_LATE);
}

/* The thread @task goes. */
static __always_inline void begin_wait(struct task_struct *task, __u32 state, __u32 cpu, __u64 now_ns)
{
	struct wait *w = wait_of(task);

	if (!w)
		return;
	if (w->since_ns)
		lose_wait(w, cpu, now_ns);
	w->since_ns = 0;
	if (state & STATE_DEAD) {
		__u32 tid = task->pid;

		if (!cfg_task_storage)
			bpf_map_delete_elem(&wait_table, &tid);
		return;
	}
	if (is_idle_kernel_thread(task, state) || (filters() && !passes(bpf_get_current_pid_tgid())))
		return;
	w->state = wait_state_of(state);
	w->woken_ns = state ? 0 : now_ns;
	w->value = 0;
	w->told_ns = now_ns;
	w->since_ns = now_ns;
}

/* The thread @task comes. If its sleep or its wait for the CPU was chosen, asks for its stack. */
static __always_inline void end_wait(void *ctx, struct task_struct *task, struct wanted_stack *wanted, __u32 cpu,
				     __u64 now_ns)
{
	struct wait *w = wait_of(task);
	__u64 runnable_value;
	__u8 byte = 0;

	if (!w || !w->since_ns)
		return;
	if (!w->woken_ns) /* nobody was seen to wake it: the kernel leaves out a program that runs already */
		end_sleep(w, now_ns);
	runnable_value = draw_interval(&w->queues, now_ns - w->woken_ns, cfg_mean_ns);
	wanted->wait.since_ns = w->since_ns;
	wanted->wait.woken_ns = w->value ? w->woken_ns : 0;
	w->since_ns = 0;
	if (!runnable_value && !w->value)
		return;
	wanted->blocked_value = w->value;
	wanted->runnable_value = runnable_value;
	wanted->wait.state = w->value || w->state == WAIT_PREEMPTED ? w->state : WAIT_WOKEN;
	wanted->tid = task->pid;
	if (!has_tokens(&wanted->tokens_ns, now_ns))
		give_up(cpu, wanted, KERNEL_LOSS_LIMIT);
	else if (bpf_perf_event_output(ctx, &self_interrupts, BPF_F_CURRENT_CPU, &byte, sizeof(byte)))
		give_up(cpu, wanted, KERNEL_LOSS_LATE);
}

/* Arguments: is it preempted, the thread that goes, the one that comes, the state of the first. */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 cpu = bpf_get_smp_processor_id(), state = 0;
	struct wanted_stack *wanted = bpf_map_lookup_elem(&wanted_stacks, &cpu);
	struct wanted_waker *waker = cfg_wakers ? bpf_map_lookup_elem(&wanted_wakers, &cpu) : NULL;

	if (!wanted)
		return 0;
	if (wanted->tid)
		give_up(cpu, wanted, KERNEL_LOSS_LATE);
	if (waker && waker->count)
		give_up_waker(cpu, waker, KERNEL_LOSS_LATE);
	if (prev->pid) {
		if (!ctx[0])
			state = cfg_switch_has_state ? (__u32)ctx[3] : state_of(prev);
		begin_wait(prev, state, cpu, now_ns);
	}
	if (next->pid)
		end_wait(ctx, next, wanted, cpu, now_ns);
	return 0;
}

/* A thread's sleep is over, or will not begin. Under the lock of the thread's state: nobody else wakes it now. */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct wait *w = wait_of(task);

	if (!w || !w->since_ns || w->woken_ns)
		return 0;
	end_sleep(w, bpf_ktime_get_ns());
	if (cfg_wakers && w->value)
		ask_waker(ctx, task, w->woken_ns, w->value);
	return 0;
}

/* Arguments: the new thread, how it was cloned. Its first wait is for a CPU. */
SEC("tp_btf/task_newtask")
int on_new_thread(__u64 *ctx)
{
	struct wait *w = make_wait((struct task_struct *)ctx[0]);

	if (!w) {
		__sync_fetch_and_add(&waits_refused, 1);
		return 0;
	}
	draw_begin(&w->sleeps, cfg_mean_ns);
	draw_begin(&w->queues, cfg_mean_ns);
	if (filters() && !passes(bpf_get_current_pid_tgid()))
		return 0;
	w->state = WAIT_WOKEN;
	w->value = 0;
	w->woken_ns = w->told_ns = bpf_ktime_get_ns();
	w->since_ns = w->woken_ns;
	return 0;
}

/* Fills in what samples of waits have; returns their kind, or the first of two kinds. */
static __always_inline __u32 fill_more(struct scratch *scratch, const struct wanted_stack *wanted, bool loop_form)
{
	struct sample_more *more = &scratch->more;

	more->wake_cnt = 0;
	more->wait = wanted->wait;
	more->wait.syscall = cpu_entry_syscall(current_task(), cfg_task_btf);
	more->target.kind = TARGET_NONE;
	more->second_kind = cfg_runnable_kind;
	if (wanted->blocked_value) {
		if (loop_form)
			find_target_alone(scratch);
		else
			find_target(current_task(), more->wait.syscall, true, &more->target);
		more->value = wanted->blocked_value;
		more->second_value = wanted->runnable_value;
		return cfg_blocked_kind;
	}
	more->value = wanted->runnable_value;
	more->second_value = 0;
	return cfg_runnable_kind;
}

/* No level is free for the stack of a thread that came back, or for that of a waker. */
static __always_inline void refuse(const struct place *at, struct wanted_stack *wanted, struct wanted_waker *waker)
{
	if (!wanted) {
		give_up_waker(at->cpu, waker, KERNEL_LOSS_LATE);
		return;
	}
	if (wanted->blocked_value)
		level_refuse(at, cfg_blocked_kind, wanted->blocked_value);
	if (wanted->runnable_value)
		level_refuse(at, cfg_runnable_kind, wanted->runnable_value);
	wanted->tid = 0;
}

/* Is this the interrupt that on_switch or on_waking sent? Then a level is taken. */
static __always_inline bool begin_again(struct place *at, struct cpu_state **state, struct scratch **scratch, __u32 *kind,
					bool loop_form)
{
	__u32 cpu = bpf_get_smp_processor_id(), tid = (__u32)bpf_get_current_pid_tgid();
	struct wanted_stack *wanted = bpf_map_lookup_elem(&wanted_stacks, &cpu);
	struct wanted_waker *waker = cfg_wakers ? bpf_map_lookup_elem(&wanted_wakers, &cpu) : NULL;

	if (wanted && (!wanted->tid || wanted->tid != tid))
		wanted = NULL;
	if (!wanted && (!waker || !waker->count || waker->tid != tid))
		return false;
	if (!level_take(at)) {
		refuse(at, wanted, waker);
		return false;
	}
	if (!find_state(at, state, scratch)) {
		level_give(at);
		return false;
	}
	if (!wanted) {
		take_wakes(waker, *state, &(*scratch)->more);
		*kind = cfg_waker_kind;
		return true;
	}
	account(*state, wanted, KERNEL_LOSS_MAX);
	*kind = fill_more(*scratch, wanted, loop_form);
	wanted->tid = 0;
	return true;
}

SEC("raw_tp/" RUNS_AGAIN)
int on_again(void *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;
	__u32 kind;

	if (!begin_again(&at, &state, &scratch, &kind, true))
		return 0;
	take_by_loop(ctx, state, scratch, &at, kind);
	level_give(&at);
	return 0;
}

/* The same for kernels without bpf_loop(). */
SEC("raw_tp/" RUNS_AGAIN)
int on_again_tail(void *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;
	__u32 kind;

	if (!begin_again(&at, &state, &scratch, &kind, false))
		return 0;
	take_by_tail_calls(ctx, state, scratch, &at, kind);
	level_give(&at);
	return 0;
}

SEC("raw_tp/" RUNS_AGAIN)
int again_walk_tail(void *ctx)
{
	walk_by_tail_calls(ctx);
	return 0;
}

SEC("raw_tp/" RUNS_AGAIN)
int again_send_tail(void *ctx)
{
	send_by_tail_call();
	return 0;
}

#include "bpf/asleep.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
