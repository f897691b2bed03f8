/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the stacks that a thread has besides the one it runs on, so that a sample that user space must walk carries all of
 * them: the stack that a signal interrupted, the goroutine's behind calls that Go makes on a system stack, and the Erlang
 * process's behind those that its code makes on a scheduler's. The data of a runtime is believed only where its pointers
 * agree with each other. Only BPF programs include this, after the helpers.
 */
#ifndef HEARTH_BPF_STACKS_H
#define HEARTH_BPF_STACKS_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"

static __always_inline __u64 read_user_word(__u64 addr)
{
	__u64 value;

	return bpf_probe_read_user(&value, sizeof(value), (void *)addr) ? 0 : value;
}

/*
 * Go, src/runtime/runtime2.go. struct g: stack { lo, hi }, ..., m at 48, sched at 56 { sp, pc, g, ctxt, [ret,] lr, bp }.
 * struct m: g0, ..., curg. Until 1.25 sched has ret.
 */
enum {
	GO_G_STACK_HI = 8,
	GO_G_M = 48,
	GO_G_SCHED_SP = 56,
	GO_G_SCHED_PC = 64,
	GO_G_SCHED_LR = 88,
	GO_G_SCHED_BP = 96,
	GO_M_CURG = 0xb8,
	GO_RET_BYTES = 8,
};

/* Does @m have its own goroutine at @off from the place in Go 1.26? Then scratch->go says where that goroutine goes on. */
static __always_inline bool find_curg(struct scratch *scratch, __u64 g, __u64 m, __u64 off)
{
	struct go_thread *go = &scratch->go;
	__u64 curg = read_user_word(m + GO_M_CURG + off);

	if (!curg || read_user_word(curg + GO_G_M) != m)
		return false;
	go->sched.sp = read_user_word(curg + GO_G_SCHED_SP);
	go->sched.fp = read_user_word(curg + GO_G_SCHED_BP + off);
	if (CPU_HAS_LR)
		go->sched.lr = read_user_word(curg + GO_G_SCHED_LR + off);
	if (go->sched.sp)
		go->sched.pc = read_user_word(curg + GO_G_SCHED_PC);
	go->curg_lo = read_user_word(curg);
	go->sched.stack_hi = read_user_word(curg + GO_G_STACK_HI);
	go->is_away = curg != g;
	return true;
}

/* Is there a g at the @nth place? Then scratch->go has the facts that it leads to. */
static __always_inline bool find_go_at(struct scratch *scratch, __u32 nth)
{
	struct go_thread *go = &scratch->go;
	__u64 g, g0, m;

	g = cpu_go_g(current_task(), cfg_task_btf, scratch->regs.regs, nth);
	m = g ? read_user_word(g + GO_G_M) : 0;
	g0 = m ? read_user_word(m) : 0;
	if (!g0 || read_user_word(g0 + GO_G_M) != m)
		return false;
	if (!find_curg(scratch, g, m, 0))
		find_curg(scratch, g, m, GO_RET_BYTES);
	go->g0_sp = read_user_word(g0 + GO_G_SCHED_SP);
	go->g0_hi = read_user_word(g0 + GO_G_STACK_HI);
	go->stack_lo = read_user_word(g);
	go->stack_hi = read_user_word(g + GO_G_STACK_HI);
	return true;
}

/* The value of the current thread's key @key; 0: it has none. nptl/descr.h, musl's pthread_impl.h: see THREAD_KEY. */
static __always_inline __u64 key_value(__u64 values, __u32 libc, __u32 key)
{
	enum { BLOCK_KEYS = 32, PAIR_BYTES = 16 };

	if (key >= 1024)
		return 0;
	if (libc == THREAD_MUSL)
		return read_user_word(read_user_word(values) + 8ull * key);
	if (key < BLOCK_KEYS) /* the first block stands before the blocks' addresses */
		return read_user_word(values - BLOCK_KEYS * PAIR_BYTES + PAIR_BYTES * key + 8);
	return read_user_word(read_user_word(values + key / BLOCK_KEYS * 8) + PAIR_BYTES * (key % BLOCK_KEYS) + 8);
}

enum { BEAM_PUSHED_BYTES = 2048 }; /* that Erlang's code may push before it tells the process of its stack pointer */

/*
 * Is the current thread a scheduler of Erlang that runs a process? Then scratch->go has this process's stack in place of a
 * goroutine's. What was rewritten meanwhile belongs to a process that is gone, and leads nowhere.
 */
static __always_inline bool find_beam(struct scratch *scratch)
{
	struct chain_key key = { .asid = scratch->walk.asid, .runtime = CHAIN_OF_BEAM };
	const struct chain_state *s = bpf_map_lookup_elem(&chain_states, &key);
	struct go_thread *go = &scratch->go;
	__u64 values, process, sp, low, high, fp = scratch->regs.regs[REG_FP];

	if (!s || s->thread.place != THREAD_KEY)
		return false;
	values = cpu_thread_pointer(current_task(), cfg_task_btf) + (__s64)s->thread.offset;
	process = key_value(values, s->thread.libc, (__u32)read_user_word(s->thread.addr));
	process = process ? read_user_word(process + s->offset[BEAM_PROCESS]) : 0;
	if (!process)
		return false;
	sp = read_user_word(process + s->offset[BEAM_STACK_POINTER]);
	low = read_user_word(process + s->offset[BEAM_HEAP]);
	high = read_user_word(process + s->offset[BEAM_STACK_END]);
	if (!low || !sp || high < low)
		return false;
	if (sp < low || sp > high) { /* collected: in the new heap, of which the process is told when the old one is freed */
		high = sp + (high - low); /* it was in the old one, too */
		low = sp;
	}
	go->sched.pc = go->sched.sp = sp;
	go->stack_lo = go->curg_lo = low;
	go->stack_hi = go->sched.stack_hi = high;
	go->is_away = !(scratch->regs.regs[REG_SP] >= low && scratch->regs.regs[REG_SP] < high);
	go->pushed_bytes = sp - low < BEAM_PUSHED_BYTES ? sp - low : BEAM_PUSHED_BYTES;
	if (fp >= low && fp < sp) /* the stack pointer, where C was called */
		go->pushed_bytes = sp - fp;
	return true;
}

static __always_inline bool find_go(struct scratch *scratch)
{
	__builtin_memset(&scratch->go, 0, sizeof(scratch->go));
	return find_beam(scratch) || find_go_at(scratch, 0);
}

static long find_go_callback(__u32 index, void *context)
{
	struct scratch *scratch = *(struct scratch **)context;

	return find_go_at(scratch, index + 1);
}

/* A global function, so that the verifier checks it once, alone. */
__noinline int find_go_alone(struct scratch *scratch)
{
	struct {
		struct scratch *scratch;
	} loop = { scratch };

	if (scratch && !find_go(scratch))
		bpf_loop(GO_G_PLACES - 1, find_go_callback, &loop, 0);
	return 0;
}

static __always_inline bool is_on_go_stack(const struct go_thread *go, __u64 addr)
{
	return addr >= go->stack_lo && addr < go->stack_hi;
}

static __always_inline bool is_on_curg_stack(const struct go_thread *go, __u64 addr)
{
	return addr >= go->curg_lo && addr < go->sched.stack_hi;
}

/*
 * Go's calls into the vDSO leave the goroutine's stack without a note, but keep the chain of frame pointers. The chain
 * begins at @fp; the thread is, or was interrupted, at @sp. Returns where the chain comes back to that stack; 0: nowhere.
 */
static __always_inline __u64 find_go_frame(const struct go_thread *go, __u64 sp, __u64 fp)
{
	if (!go->sched.stack_hi || is_on_curg_stack(go, sp))
		return 0;
	for (int i = 0; i < 4 && fp; i++) {
		if (is_on_curg_stack(go, fp))
			return fp;
		fp = read_user_word(fp);
	}
	return 0;
}

/* One place where the signal frame's uc_stack may be, from the top of the window down. */
static long scan_callback(__u32 index, void *context)
{
	struct scratch *scratch = *(struct scratch **)context;
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 off = scratch->copy.scan_bytes - 32 - 16 * index;

	if (off > sizeof(scratch->chunk.data) - 32)
		return 1;
	if (*(__u64 *)(scratch->chunk.data + off) != task->sas_ss_sp ||
	    *(__u64 *)(scratch->chunk.data + off + 16) != task->sas_ss_size)
		return 0;
	scratch->copy.fp = read_user_word(scratch->copy.addr + off - SIGNAL_STACK + SIGNAL_FP);
	scratch->copy.addr = read_user_word(scratch->copy.addr + off - SIGNAL_STACK + SIGNAL_SP);
	scratch->copy.scan_bytes = 0;
	return 1;
}

/*
 * Finds the stack that a signal left for the alternate one. copy.addr becomes the sp in the signal frame at the top of the
 * alternate stack, else 0; copy.fp the frame pointer beside it. The size of the signal frame depends on the CPU's vector
 * registers; uc_stack in the frame says which alternate stack it is on.
 */
static __always_inline void find_interrupted(struct scratch *scratch, __u64 sp)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct stack_copy *copy = &scratch->copy;
	__u64 top = (task->sas_ss_sp + task->sas_ss_size) & ~15ull;
	__u64 low = task->sas_ss_sp, len;
	struct {
		struct scratch *scratch;
	} loop = { scratch };

	if (sp < low || sp >= top) {
		copy->addr = 0;
		return;
	}
	for (int page = 0; page < 4; page++) {
		len = top - low < sizeof(scratch->chunk.data) ? top - low : sizeof(scratch->chunk.data);
		copy->addr = top - len;
		copy->scan_bytes = len;
		if (len < 32 || len > sizeof(scratch->chunk.data) ||
		    bpf_probe_read_user(scratch->chunk.data, len, (void *)copy->addr))
			break;
		bpf_loop(sizeof(scratch->chunk.data) / 16, scan_callback, &loop, 0);
		if (!copy->scan_bytes)
			return;
		top -= len - 32;
	}
	copy->addr = 0;
}

#endif
