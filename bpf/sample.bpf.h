/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes a sample of the thread that runs: its kernel stack, its user stack by the walk of bpf/walk.bpf.h, the chains of its
 * runtimes; and sends the record. A program of each kind of samples calls this, in a form with bpf_loop() (kernel 5.17) or
 * one with tail calls (5.10). A program that is not on a perf event has cfg_tracepoint set: it always interrupts the
 * kernel, and nothing but bpf_get_stack() looks at the context. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_SAMPLE_H
#define HEARTH_BPF_SAMPLE_H

#include <stdbool.h>

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/pids.bpf.h"
#include "bpf/levels.bpf.h"
#include "bpf/send.bpf.h"
#include "bpf/walk.bpf.h"
#include "bpf/context/noted_spans.bpf.h"

enum { MAX_INSN_BYTES = 15 };

/* Fills scratch->regs (identity and registers). Returns the walk's end when there is nothing to walk, END_MAX otherwise. */
static __always_inline __u32 prepare_user(struct bpf_perf_event_data *ctx, struct scratch *scratch, struct task_struct *task)
{
	__u64 *regs = scratch->regs.regs;
	__u32 flags, in_execve = 0;
	bool is_64bit;
	void *mm;

	if (cfg_task_btf) {
		flags = task->flags;
		mm = task->mm;
		if (bpf_core_field_exists(task->in_execve))
			in_execve = BPF_CORE_READ_BITFIELD(task, in_execve);
		scratch->regs.start_boottime_ns = task->group_leader->start_boottime;
		scratch->regs.exec_id = task->self_exec_id;
	} else {
		flags = BPF_CORE_READ(task, flags);
		mm = BPF_CORE_READ(task, mm);
		if (bpf_core_field_exists(task->in_execve))
			in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
		scratch->regs.start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
		scratch->regs.exec_id = BPF_CORE_READ(task, self_exec_id);
	}
	if (flags & (TASK_KTHREAD | TASK_IO_WORKER))
		return END_NONE;
	if (!mm || flags & TASK_EXITING)
		return END_EXITING;
	if (!cfg_tracepoint && cpu_in_user(ctx)) {
		is_64bit = cpu_sample_regs(ctx, regs);
	} else {
		if (in_execve)
			return END_EXEC;
		is_64bit = cpu_entry_regs(task, cfg_task_btf, regs);
	}
	return is_64bit ? END_MAX : END_COMPAT;
}

/* The address space that the process table gives this task; 0 when the table does not know the task. */
static __always_inline __u32 find_asid(__u32 pid, const struct scratch *scratch, struct walk *walk)
{
	volatile struct proc_value *p = bpf_map_lookup_elem(&procs, &pid);
	__u32 seq, asid;

	if (!p)
		return 0;
	seq = p->seq_tail;
	barrier();
	asid = p->asid;
	walk->runtimes = p->runtimes;
	if (p->start_boottime_ns != scratch->regs.start_boottime_ns || p->exec_id != scratch->regs.exec_id)
		return 0;
	barrier();
	if (p->pid != pid || p->seq_head != seq || bpf_map_lookup_elem(&procs, &pid) != p) {
		walk->torn++;
		return 0;
	}
	return asid;
}

/*
 * Finds the runtimes of a process that the process table does not have: those of its parent, whose memory it has if it was
 * forked and runs the same program since (its first stack began at the same address), else those that its program file is
 * known for. What it finds is a guess, as the programs that collect chains look at the types of what they find.
 */
static __always_inline void guess_runtimes(struct walk *walk, struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct program_key key = { .inode = BPF_CORE_READ(mm, exe_file, f_inode, i_ino),
				   .dev = BPF_CORE_READ(mm, exe_file, f_inode, i_sb, s_dev) };
	__u32 pid = cfg_pid_ns ? told_pid(BPF_CORE_READ(parent, group_leader, thread_pid)) : BPF_CORE_READ(parent, tgid);
	const struct program_value *program;
	const struct proc_value *p = bpf_map_lookup_elem(&procs, &pid);

	if (p && p->runtimes && p->start_boottime_ns == BPF_CORE_READ(parent, group_leader, start_boottime) &&
	    BPF_CORE_READ(parent, mm, start_stack) == BPF_CORE_READ(mm, start_stack)) {
		walk->runtimes = p->runtimes;
		walk->chain_asid = p->asid;
		return;
	}
	program = bpf_map_lookup_elem(&program_files, &key);
	if (!program)
		return;
	walk->runtimes = program->runtimes;
	walk->chain_asid = CHAIN_OF_PROGRAM(program->file);
	walk->chain_bias = BPF_CORE_READ(mm, start_code) - program->text_vaddr;
}

/*
 * Since 6.11 the code to which functions return on x86-64 saves three registers and makes a system call, then takes two of
 * them off again and returns (arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry); before, and elsewhere, it is one
 * trap. How many bytes it has on the stack @at bytes from its begin, up to the call; and how many stand before the return
 * address, behind it.
 */
static __always_inline __u64 pushed_at(__u64 at)
{
	return !CPU_HAS_URETPROBE_CALL ? 0 : at < 2 ? at * 8 : at == 2 ? 16 : 24;
}

static __always_inline __u64 popped_at(__u64 at)
{
	return at < URETPROBE_CALL_END + 2 ? 16 : at < URETPROBE_CALL_END + 3 ? 8 : 0;
}

/*
 * A thread may stand in the page that the kernel has for probes, at @page: on the copy of a probed instruction, or where
 * functions with a probe at their end return to. Its first frame is where it would be without them.
 */
static __always_inline void leave_page(struct walk *walk, struct scratch *scratch, struct uprobe_task *probed, __u64 page)
{
	struct return_instance *call = (void *)walk->returns;
	__u64 pc = walk->state.pc, copy = BPF_CORE_READ(probed, xol_vaddr);

	if (pc < page || pc - page >= PROBES_PAGE_BYTES)
		return;
	if (BPF_CORE_READ(probed, active_uprobe) && pc >= copy && pc - copy <= MAX_INSN_BYTES) {
		walk->state.pc = BPF_CORE_READ(probed, vaddr) + (pc - copy);
	} else if (call && BPF_CORE_READ(call, stack) + PUSHED_BY_CALL - walk->state.sp == pushed_at(pc - page)) {
		walk->state.pc = BPF_CORE_READ(call, orig_ret_vaddr);
		walk->state.sp = BPF_CORE_READ(call, stack) + PUSHED_BY_CALL;
	} else if (CPU_HAS_URETPROBE_CALL && pc - page >= URETPROBE_CALL_END) {
		/* the call is off the list, and the kernel has put its return address in place of the first word */
		walk->state.sp += popped_at(pc - page);
		bpf_probe_read_user(&walk->state.pc, 8, (void *)walk->state.sp);
		walk->state.sp += 8;
	}
	scratch->regs.regs[REG_PC] = walk->state.pc;
	scratch->regs.regs[REG_SP] = walk->state.sp;
}

/* Finds the calls whose return addresses were taken for probes at their end. */
static __always_inline void find_returns(struct walk *walk, struct scratch *scratch, struct task_struct *task)
{
	struct uprobe_task *probed;
	struct mm_struct *mm = NULL;
	__u64 page;

	if (!bpf_core_field_exists(task->utask) || !bpf_core_field_exists(mm->uprobes_state) ||
	    !bpf_core_type_exists(struct xol_area) || !bpf_core_type_exists(struct return_instance))
		return;
	probed = cfg_task_btf ? task->utask : BPF_CORE_READ(task, utask);
	if (!probed)
		return;
	page = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	walk->returns = (__u64)BPF_CORE_READ(probed, return_instances);
	walk->next_return = walk->returns;
	walk->trampoline = page;
	if (page)
		leave_page(walk, scratch, probed, page);
}

/* Finds what belongs to the place that was taken. */
static __always_inline bool find_state(const struct place *at, struct cpu_state **state, struct scratch **scratch)
{
	*state = bpf_map_lookup_elem(&cpu_states, &at->slot);
	*scratch = bpf_map_lookup_elem(&scratches, &at->slot);
	return *state && *scratch;
}

/* The same, for a sample of cfg_kind that stands for @value bytes, and is counted; @addr: of the page that they are in, or
 * 0. */
static __always_inline bool begin_bytes(const struct place *at, struct cpu_state **state, struct scratch **scratch,
					__u64 addr, __u64 value)
{
	if (!find_state(at, state, scratch))
		return false;
	(*state)->taken[cfg_kind & (MAX_KINDS - 1)]++;
	(*state)->taken_value[cfg_kind & (MAX_KINDS - 1)] += value;
	(*scratch)->more.value = value;
	(*scratch)->more.second_value = 0;
	(*scratch)->more.page_addr = addr;
	return true;
}

/* Collects kernel frames, identity, and the walk's first state. Returns true when there is a user stack. */
static __always_inline bool begin_sample(struct bpf_perf_event_data *ctx, struct scratch *scratch, const struct place *at,
					 __u32 kind)
{
	struct walk *walk = &scratch->walk;
	struct sample_record *sample = &scratch->sample;
	struct task_struct *task = current_task();
	__u64 ids = told_ids(task);
	long bytes = 0;

	sample->hdr.time_ns = bpf_ktime_get_ns();
	sample->pid = ids >> 32;
	sample->tid = (__u32)ids;
	sample->own_pid = find_own_pid(task);
	sample->flags = 0;
	sample->kind = kind;
	if (cfg_pid_ns && !sample->pid && bpf_get_current_pid_tgid() >> 32) {
		sample->own_pid = 0;
		sample->flags = SAMPLE_OUTSIDE;
	}
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if (!cfg_no_kernel && (cfg_tracepoint || !cpu_in_user(ctx)))
		bytes = bpf_get_stack(ctx, &scratch->words[1], MAX_KERNEL_FRAMES * 8, cfg_skipped_frames);

	__builtin_memset(walk, 0, sizeof(*walk));
	walk->cpu = at->cpu;
	walk->level = at->level;
	walk->slot = at->slot;
	walk->ring = at->cpu & (cfg_rings - 1);
	walk->kernel_cnt = bytes > 0 ? ((__u32)bytes / 8) & 127 : 0;
	walk->user_at = walk->kernel_cnt ? walk->kernel_cnt + 2 : 1;
	walk->state.exact = 1;
	walk->state.end = prepare_user(ctx, scratch, task);
	if (walk->state.end == END_MAX && sample->flags & SAMPLE_OUTSIDE)
		walk->state.end = END_OUTSIDE; /* user space could not tell what is mapped there */
	if (walk->state.end != END_MAX)
		return false;
	add_noted_span(scratch);
	walk->state.pc = scratch->regs.regs[REG_PC];
	walk->state.sp = scratch->regs.regs[REG_SP];
	walk->state.fp = scratch->regs.regs[REG_FP];
	if (CPU_HAS_LR)
		walk->state.lr = scratch->regs.regs[REG_RA];
	find_returns(walk, scratch, task);
	walk->asid = find_asid(sample->pid, scratch, walk);
	walk->chain_asid = walk->asid;
	if (!walk->asid) {
		walk->runtimes = 0;
		guess_runtimes(walk, task);
	}
	if (walk->runtimes)
		walk->thread_pointer = cpu_thread_pointer(task, cfg_task_btf);
	walk->state.end = walk->asid ? END_DEPTH : END_MISS_PROC;
	return true;
}

/* The one frame that is known of a process that the process table does not have. */
static __always_inline void put_only_frame(struct walk *walk, struct scratch *scratch)
{
	scratch->words[word_index(walk->user_at)] = walk->state.pc | FRAME_EXACT;
	note_sp(walk, scratch);
	walk->user_cnt = 1;
}

struct loop_context {
	struct scratch *scratch;
};

static long walk_callback(__u32 index, struct loop_context *loop)
{
	if (!loop->scratch)
		return 1;
	return walk_frame(&loop->scratch->walk, loop->scratch, true) ? 1 : 0;
}

/* The same for a sample with chains. */
static long walk_noting_sps(__u32 index, struct loop_context *loop)
{
	if (!loop->scratch)
		return 1;
	note_sp(&loop->scratch->walk, loop->scratch);
	return walk_frame(&loop->scratch->walk, loop->scratch, true) ? 1 : 0;
}

/*
 * Calls the program that reads the context, and those that collect chains. Each calls the next one; the last returns here,
 * as it took the place of this function alone. Those that are not loaded are passed over. Not a global function, which would
 * have one kind of context alone.
 */
static __attribute__((noinline)) int collect_chains(void *ctx, __u32 runtimes)
{
	if (runtimes >> CONTEXT_ID & 1)
		bpf_tail_call(ctx, &programs, CONTEXT_ID);
	for (__u32 i = 0; i < RUNTIME_ID_MAX; i++)
		if (runtimes >> i & 1)
			bpf_tail_call(ctx, &programs, i);
	return 0;
}

/* Takes the sample and sends it, in the form with bpf_loop(). */
static __always_inline void take_by_loop(struct bpf_perf_event_data *ctx, struct cpu_state *state, struct scratch *scratch,
					 const struct place *at, __u32 kind)
{
	struct loop_context loop = { scratch };

	if (begin_sample(ctx, scratch, at, kind)) {
		if (scratch->walk.runtimes)
			collect_chains(ctx, scratch->walk.runtimes);
		if (scratch->walk.asid) {
			memo_begin(&scratch->walk, scratch);
			if (scratch->walk.chain_cnt) {
				bpf_loop(MAX_WALKED_FRAMES, walk_noting_sps, &loop, 0);
				barrier(); /* the kernel inlines a call with one callback alone */
			} else {
				bpf_loop(MAX_WALKED_FRAMES, walk_callback, &loop, 0);
			}
			memo_end(&scratch->walk, scratch);
		} else {
			put_only_frame(&scratch->walk, scratch);
		}
	}
	finish_sample(state, scratch, true);
}

/* --- the same walk for kernels without bpf_loop --- */

/* Frames that a program walks, as far as verifiers follow it, and calls of a sample (MAX_TAIL_CALL_CNT, which was 32 until
 * 5.16). User space walks what is left of deeper stacks. */
enum { TAIL_FRAMES = 16, MAX_TAIL_CALLS = 32 };

static __always_inline void walk_some(struct bpf_perf_event_data *ctx, struct scratch *scratch)
{
	struct walk *walk = &scratch->walk;

	if (!walk->asid) {
		put_only_frame(walk, scratch);
		return;
	}
	for (int i = 0; i < TAIL_FRAMES; i++) {
		if (walk->chain_cnt)
			note_sp(walk, scratch);
		if (walk_frame(walk, scratch, false))
			return;
	}
	if (++walk->tail_calls < MAX_TAIL_CALLS - 1) /* the last one sends */
		bpf_tail_call(ctx, &programs, PROGRAM_WALK);
	walk->state.end = walk->user_cnt < MAX_USER_FRAMES ? END_USER_RULE
							   : END_DEPTH; /* user space has no limit of calls */
}

/* Goes on with the program PROGRAM_SEND. Returns if that was refused. */
static __always_inline void call_send(struct bpf_perf_event_data *ctx, struct cpu_state *state, struct scratch *scratch)
{
	bpf_tail_call(ctx, &programs, PROGRAM_SEND);
	lose_sample(state, scratch, KERNEL_LOSS_LIMIT); /* a call is kept for it, so this does not happen */
}

/* Begins the sample in the form with tail calls, which other programs go on with. Returns if that was refused. */
static __always_inline void take_by_tail_calls(struct bpf_perf_event_data *ctx, struct cpu_state *state,
					       struct scratch *scratch, const struct place *at, __u32 kind)
{
	if (begin_sample(ctx, scratch, at, kind)) {
		find_go(scratch); /* done before it is known to be needed: the steps have no room for it */
		if (scratch->walk.runtimes >> CONTEXT_ID & 1)
			bpf_tail_call(ctx, &programs, CONTEXT_ID); /* goes on with those of chains */
		for (__u32 i = 0; i < RUNTIME_ID_MAX; i++)
			if (scratch->walk.runtimes >> i & 1)
				bpf_tail_call(ctx, &programs, i); /* goes on with PROGRAM_WALK */
		bpf_tail_call(ctx, &programs, PROGRAM_WALK);
		scratch->walk.state.end = END_USER_RULE;
	}
	call_send(ctx, state, scratch);
}

/* The program PROGRAM_WALK: walks some frames and calls itself for more, or the one that sends the sample. */
static __always_inline void walk_by_tail_calls(struct bpf_perf_event_data *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	level_find(&at);
	if (find_state(&at, &state, &scratch)) {
		walk_some(ctx, scratch);
		call_send(ctx, state, scratch);
	}
	level_give(&at);
}

/* The program PROGRAM_SEND. It is one apart, as verifiers would follow it for each way in which a walk may end. */
static __always_inline void send_by_tail_call(void)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	level_find(&at);
	if (find_state(&at, &state, &scratch))
		finish_sample(state, scratch, false);
	level_give(&at);
}

#endif
