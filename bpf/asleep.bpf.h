/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that are still asleep: tell_asleep, a walk over all threads, which user space reads. Included by
 * bpf/offcpu.bpf.c alone, behind struct wait and what it is made of.
 */
#ifndef HEARTH_BPF_ASLEEP_H
#define HEARTH_BPF_ASLEEP_H

/* What tell_asleep is to do; user space sets it before it reads. */
bool begins = false; /* threads have no struct wait yet, or an old one */
/* What tell_asleep has told, of cfg_blocked_kind. */
__u64 asleep_taken = 0, asleep_value = 0;

/* The record of a thread that is asleep. Only one thread of user space reads, so there is one. */
struct asleep_record {
	struct sample_record sample;
	__u64 value_section, value;
	__u64 wait_section;
	struct wait_info wait;
	__u64 target_section;
	struct wait_target target;
	__u64 regs_section;
	struct sample_regs regs;
	__u64 kernel_section, kernel[MAX_KERNEL_FRAMES]; /* as many as there are */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct asleep_record);
} asleep_records SEC(".maps");

static __always_inline bool task_passes(struct task_struct *task)
{
	__u64 pid = task->tgid;
	__u32 tid = task->pid;

	if (cfg_no_kernel && task->flags & TASK_KTHREAD)
		return false;
	if (!cfg_filter_pids && !cfg_filter_tids)
		return true;
	if (cfg_filter_pids && is_chosen_pid(pid << 32, pid << 32))
		return true;
	return cfg_filter_tids && bpf_map_lookup_elem(&filter_tids, &tid);
}

/*
 * Gives @task a struct wait, by which it sleeps since now if it does. Filters by what only the thread itself can be asked
 * for (user, control group, name, age) let nothing pass here: such threads are followed from when they next run, and so are
 * those that run, or wait for a CPU.
 */
static __always_inline void begin_thread(struct task_struct *task)
{
	struct wait *w = make_wait(task);
	__u32 state;

	if (!w) {
		waits_refused++;
		return;
	}
	w->since_ns = 0;
	draw_begin(&w->sleeps, cfg_mean_ns);
	draw_begin(&w->queues, cfg_mean_ns);
	state = state_of(task);
	if (!state || state & STATE_DEAD || is_idle_kernel_thread(task, state) || !task_passes(task) || cfg_uid_cnt ||
	    cfg_cgroup_cnt || cfg_filter_comm || cfg_min_age_ns)
		return;
	w->state = wait_state_of(state);
	w->woken_ns = 0;
	w->value = 0;
	w->told_ns = bpf_ktime_get_ns();
	w->since_ns = w->told_ns;
}

/* Fills @r but for the frames. */
static __always_inline void describe_asleep(struct asleep_record *r, struct task_struct *task, const struct wait *w,
					    __u64 now_ns)
{
	struct sample_record *sample = &r->sample;
	bool is_user = task->mm && !(task->flags & (TASK_KTHREAD | TASK_IO_WORKER));
	__u64 ids = cfg_pid_ns ? told_ids(task) : (__u64)task->tgid << 32 | (__u32)task->pid;

	sample->hdr.kind = RECORD_SAMPLE;
	sample->hdr.level = MAX_LEVELS - 1;
	sample->hdr.version = RECORD_VERSION;
	sample->hdr.time_ns = now_ns;
	sample->pid = ids >> 32;
	sample->tid = (__u32)ids;
	sample->flags = SAMPLE_ASLEEP;
	sample->kind = cfg_blocked_kind;
	sample->own_pid = find_own_pid(task);
	bpf_probe_read_kernel(sample->comm, sizeof(sample->comm), task->comm);
	r->value_section = SECTION(SECTION_VALUE, sizeof(r->value));
	r->value = now_ns - w->told_ns;
	r->wait_section = SECTION(SECTION_WAIT, sizeof(r->wait));
	r->wait.since_ns = w->since_ns;
	r->wait.woken_ns = 0;
	r->wait.state = w->state;
	r->wait.syscall = is_user ? cpu_entry_syscall(task, cfg_task_btf) : -1;
	r->target_section = SECTION(SECTION_TARGET, sizeof(r->target));
	find_target(task, r->wait.syscall, false, &r->target);
	r->regs_section = SECTION(SECTION_REGS, sizeof(r->regs));
	r->regs.start_boottime_ns = task->group_leader->start_boottime;
	r->regs.exec_id = task->self_exec_id;
	sample->end = END_NONE;
	if (is_user)
		sample->end = cpu_entry_regs(task, cfg_task_btf, r->regs.regs) ? END_USER_RULE : END_COMPAT;
	if (cfg_pid_ns && !sample->pid) {
		sample->own_pid = 0;
		sample->flags |= SAMPLE_OUTSIDE;
		sample->end = is_user ? END_OUTSIDE : END_NONE;
	}
}

static __always_inline void tell_thread(struct bpf_iter__task *ctx, struct task_struct *task)
{
	struct wait *w = wait_of(task);
	struct asleep_record *r;
	__u64 told_ns, now_ns, size;
	__u32 zero = 0;
	long bytes;

	r = bpf_map_lookup_elem(&asleep_records, &zero);
	if (!w || !r || !w->since_ns || w->woken_ns)
		return;
	told_ns = w->told_ns;
	now_ns = bpf_ktime_get_ns();
	if (now_ns - told_ns < cfg_mean_ns || told_ns > now_ns) /* drawn for when it ends, or told the next time */
		return;
	describe_asleep(r, task, w, now_ns);
	bytes = bpf_get_task_stack(task, r->kernel, sizeof(r->kernel), 0);
	bytes = bytes > 0 ? bytes & (128 * 8 - 8) : 0;
	r->kernel_section = SECTION(SECTION_KERNEL, bytes);
	size = offsetof(struct asleep_record, kernel_section) + (bytes ? bytes + 8 : 0);
	r->sample.hdr.size = size;
	if (!w->since_ns || w->woken_ns || w->told_ns != told_ns)
		return; /* it has just been woken */
	w->told_ns = now_ns;
	if (size > sizeof(*r) || bpf_seq_write(ctx->meta->seq, r, size)) {
		w->told_ns = told_ns; /* there was no room: this thread comes again */
		return;
	}
	asleep_taken++;
	asleep_value += now_ns - told_ns;
}

SEC("iter/task")
int tell_asleep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	if (begins)
		begin_thread(task);
	else
		tell_thread(ctx, task);
	return 0;
}

#endif
