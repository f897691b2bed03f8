/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pids as user space has them. They are pids of the namespace that its /proc shows, which is the first one unless hearth
 * runs in a container. bpf_get_ns_current_pid_tgid() knows only tasks directly in a namespace, not those of namespaces
 * within it, so the numbers are looked up here. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_PIDS_H
#define HEARTH_BPF_PIDS_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"

static __always_inline struct upid *pid_number(struct pid *ids, __u32 level)
{
	/* at most MAX_PID_LEVEL, as callers know, and the verifier of 6.1 does not in each of them */
	return (void *)ids + bpf_core_field_offset(ids->numbers) +
	       masked(level, 2 * MAX_PID_LEVEL - 1) * bpf_core_type_size(struct upid);
}

static __always_inline struct pid *pids_of(struct task_struct *task)
{
	return cfg_task_btf ? task->thread_pid : BPF_CORE_READ(task, thread_pid);
}

/* The number of @ids in the namespace cfg_pid_ns; 0 where it has no number there. */
static __always_inline __u32 told_pid(struct pid *ids)
{
	__u32 deepest = ids ? BPF_CORE_READ(ids, level) : 0;

	for (__u32 level = 1; level < MAX_PID_LEVEL && level <= deepest; level++) {
		struct upid *number = pid_number(ids, level);

		if (BPF_CORE_READ(number, ns, ns.inum) == cfg_pid_ns)
			return BPF_CORE_READ(number, nr);
	}
	return 0;
}

/* The pids of @task, which is the current one, in the form of bpf_get_current_pid_tgid(). */
static __always_inline __u64 told_ids(struct task_struct *task)
{
	struct pid *leader;

	if (!cfg_pid_ns)
		return bpf_get_current_pid_tgid();
	leader = cfg_task_btf ? task->group_leader->thread_pid : BPF_CORE_READ(task, group_leader, thread_pid);
	return (__u64)told_pid(leader) << 32 | told_pid(pids_of(task));
}

/* The pid that a process has in a namespace within that one; 0: it is in no such namespace. */
static __always_inline __u32 find_own_pid(struct task_struct *task)
{
	struct pid *ids = cfg_task_btf ? task->group_leader->thread_pid : BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = ids ? (cfg_task_btf ? ids->level : BPF_CORE_READ(ids, level)) : 0;
	struct upid *number;

	if (!level || level > MAX_PID_LEVEL)
		return 0;
	number = pid_number(ids, level);
	if (cfg_pid_ns && BPF_CORE_READ(number, ns, ns.inum) == cfg_pid_ns)
		return 0;
	return BPF_CORE_READ(number, nr);
}

#endif
