/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The on-CPU sampler: a perf_event program that walks the kernel and the user stack of whatever runs and sends one sample
 * record. The kernel holds a cache of unwind rows; where it has no entry the sample leaves with the frames walked so far,
 * the registers at the sample and a copy of the stack, and user space walks it again and fills the cache.
 *
 * On a tracepoint the same program is loaded with that type. There it returns 1: all perf events of a tracepoint share its
 * programs, and one that returns 0 hides the event from everybody (perf_trace_run_bpf_submit, kernel/events/core.c). Ours
 * stays disabled, so nothing else comes of it.
 *
 * Two forms of the same walk: on_sample (bpf_loop, kernel 5.17) and on_sample_tail + walk_tail (tail calls, 5.10). A program
 * has the scratch and the cpu_state of its level to itself (bpf/levels.bpf.h).
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

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!level_take(&at)) {
		level_refuse(&at, cfg_kind, 0);
		return cfg_tracepoint;
	}
	if (find_state(&at, &state, &scratch) && wanted(state))
		take_by_loop(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return cfg_tracepoint;
}

/* The same for kernels without bpf_loop(). */
SEC("perf_event")
int on_sample_tail(struct bpf_perf_event_data *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!level_take(&at)) {
		level_refuse(&at, cfg_kind, 0);
		return cfg_tracepoint;
	}
	if (find_state(&at, &state, &scratch) && wanted(state))
		take_by_tail_calls(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return cfg_tracepoint;
}

SEC("perf_event")
int walk_tail(struct bpf_perf_event_data *ctx)
{
	walk_by_tail_calls(ctx);
	return cfg_tracepoint;
}

SEC("perf_event")
int send_tail(struct bpf_perf_event_data *ctx)
{
	send_by_tail_call();
	return cfg_tracepoint;
}

/* Children of filtered processes are followed (raw arguments: the new task, its clone flags). */
SEC("raw_tp/task_newtask")
int on_new_task(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 slot = bpf_get_smp_processor_id() * cfg_levels;
	struct cpu_state *state;
	__u64 child, since;

	if (ctx->args[1] & CLONE_THREAD_FLAG || !is_chosen_pid(bpf_get_current_pid_tgid(), told_ids(current_task())))
		return 0;
	child = (__u32)BPF_CORE_READ(task, tgid);
	since = BPF_CORE_READ(task, start_boottime);
	if (bpf_map_update_elem(&filter_pids, &child, &since, BPF_ANY)) {
		state = bpf_map_lookup_elem(&cpu_states, &slot);
		if (state)
			count(state, COUNTER_NOT_FOLLOWED);
	}
	return 0;
}

/* A followed process is forgotten when its last thread is gone (raw argument: the task), or a storm of children would fill
 * the table. Its pid may be another process's by now; the start time tells them apart. */
SEC("raw_tp/sched_process_free")
int on_free_task(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u64 pid = (__u32)BPF_CORE_READ(task, pid);
	__u64 *since = bpf_map_lookup_elem(&filter_pids, &pid);

	if (since && *since && *since == BPF_CORE_READ(task, start_boottime) && pid == (__u32)BPF_CORE_READ(task, tgid))
		bpf_map_delete_elem(&filter_pids, &pid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
