/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * These filters decide which samples are taken, before anything is walked. Filters of different kinds must all let a sample
 * pass; one matching value of a kind is enough (processes and threads are one kind). A filter that is off is a constant that
 * the verifier removes. Only BPF programs include this, after the helpers.
 */
#ifndef HEARTH_BPF_FILTER_H
#define HEARTH_BPF_FILTER_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/pids.bpf.h"

enum { V1_DEPTH = 16 }; /* groups within each other that are looked at */

/* Did user space give the process of @pid_tgid (pids of the first namespace), or was it followed since? */
static __always_inline bool is_chosen_pid(__u64 pid_tgid, __u64 ids)
{
	__u64 followed = pid_tgid >> 32, given = ids >> 32 | FILTER_PID_TOLD;

	if (bpf_map_lookup_elem(&filter_pids, &followed))
		return true;
	return cfg_pid_ns && bpf_map_lookup_elem(&filter_pids, &given);
}

static __always_inline bool is_chosen_task(struct task_struct *task, __u64 pid_tgid)
{
	__u64 ids;
	__u32 tid;

	if (!cfg_filter_pids && !cfg_filter_tids)
		return true;
	ids = told_ids(task);
	tid = (__u32)ids;
	if (cfg_filter_pids && is_chosen_pid(pid_tgid, ids))
		return true;
	return cfg_filter_tids && bpf_map_lookup_elem(&filter_tids, &tid);
}

static __always_inline bool comm_matches(const char *comm)
{
	__u64 states = cfg_comm.start;

	for (int i = 0; i < COMM_BYTES - 1 && comm[i]; i++)
		states = (states & cfg_comm.accepts[(__u8)comm[i]]) << 1 | (states & cfg_comm.stays);
	return states & cfg_comm.end;
}

/* Is the name of the thread, or that of its process, wanted? */
static __always_inline bool is_chosen_comm(struct task_struct *task)
{
	char comm[COMM_BYTES] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	if (comm_matches(comm))
		return true;
	if (cfg_task_btf)
		bpf_probe_read_kernel(comm, sizeof(comm), task->group_leader->comm);
	else
		BPF_CORE_READ_INTO(&comm, task, group_leader, comm);
	return comm_matches(comm);
}

static __always_inline bool is_chosen_uid(void)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();

	for (__u32 i = 0; i < FILTER_UIDS; i++)
		if (i < cfg_uid_cnt && cfg_uids[i] == uid)
			return true;
	return false;
}

/*
 * Is the task in that group of version 1, or in one below it? The kernel's own helper knows version 2 only.
 */
static __always_inline bool is_under_v1(struct task_struct *task, __u32 index)
{
	const struct v1_group *group = bpf_map_lookup_elem(&filter_v1_groups, &index);
	struct cgroup_subsys_state *css = NULL;
	struct css_set *set;
	struct cgroup *cgroup;

	if (!group || !group->id)
		return false;
	set = BPF_CORE_READ(task, cgroups);
	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)set + bpf_core_field_offset(set->subsys) + (__u64)group->controller * sizeof(css));
	for (int depth = 0; depth < V1_DEPTH && css; depth++) {
		cgroup = BPF_CORE_READ(css, cgroup);
		if (BPF_CORE_READ(cgroup, kn, id) == group->id)
			return true;
		css = BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
}

static __always_inline bool is_chosen_cgroup(struct task_struct *task)
{
	for (__u32 i = 0; i < FILTER_CGROUPS; i++)
		if (i < cfg_cgroup_cnt && (bpf_current_task_under_cgroup(&filter_cgroups, i) == 1 || is_under_v1(task, i)))
			return true;
	return false;
}

static __always_inline bool is_old_enough(struct task_struct *task)
{
	__u64 start = cfg_task_btf ? task->group_leader->start_boottime : BPF_CORE_READ(task, group_leader, start_boottime);

	return bpf_ktime_get_boot_ns() - start >= cfg_min_age_ns;
}

static __always_inline bool passes(__u64 pid_tgid)
{
	struct task_struct *task = current_task();

	if (!is_chosen_task(task, pid_tgid))
		return false;
	if (cfg_no_kernel && (cfg_task_btf ? task->flags : BPF_CORE_READ(task, flags)) & TASK_KTHREAD)
		return false;
	if (cfg_min_age_ns && !is_old_enough(task))
		return false;
	if (cfg_uid_cnt && !is_chosen_uid())
		return false;
	if (cfg_filter_comm && !is_chosen_comm(task))
		return false;
	return !cfg_cgroup_cnt || is_chosen_cgroup(task);
}

/* Is a tracepoint's event on a CPU that is sampled, and is it this event's turn? Only events that pass the filters take
 * turns. */
static __always_inline bool is_turn(struct cpu_state *state, __u64 pid_tgid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 *on = bpf_map_lookup_elem(&tracepoint_cpus, &cpu);

	if (!on || !*on)
		return false;
	return cfg_every <= 1 || (passes(pid_tgid) && ++state->events % cfg_every == 0);
}

/* Counts the entry and says whether it is a sample to take. */
static __always_inline bool wanted(struct cpu_state *state)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	if (cfg_tracepoint && !is_turn(state, pid_tgid))
		return false;
	count(state, COUNTER_ENTRIES);
	if (!cfg_idle && !(pid_tgid >> 32)) {
		count(state, COUNTER_IDLE);
		return false;
	}
	if (!passes(pid_tgid)) {
		count(state, COUNTER_FILTERED);
		return false;
	}
	state->taken[cfg_kind & (MAX_KINDS - 1)]++;
	return true;
}

#endif
