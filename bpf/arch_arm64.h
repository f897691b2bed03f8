/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * arm64; see bpf/arch.h. A call leaves the return address in x30 (lr), where it stays until the function saves it, so lr
 * says something in the innermost frame and in one that a signal interrupted, nowhere else. Pointer authentication may have
 * signed lr: the signature stands in the bits above the address. The packed row has, in place of the 32-bit offset:
 *
 *   63        48 47        32
 *  | ra (s16)   | cfa (s16)  |    CFA = base + 8 * cfa; the return address stands at CFA + 8 * ra; 0: it is in lr
 */
#ifndef HEARTH_BPF_ARCH_ARM64_H
#define HEARTH_BPF_ARCH_ARM64_H

/* DWARF for the Arm 64-bit Architecture, 4.1: x0..x30, sp, pc. */
enum { REG_FP = 29, REG_RA = 30, REG_SP = 31, REG_PC = 32, USER_REGS = 33 };
enum { CPU_HAS_LR = 1, CPU_USER_BITS = 48 };
enum { PUSHED_BY_CALL = 0 }; /* bytes */
enum { CPU_HAS_URETPROBE_CALL = 0, URETPROBE_CALL_END = 0 };

/* struct rt_sigframe: siginfo of 128 bytes, then the ucontext, whose sigcontext stands at 176: fault_address, regs[31], sp,
 * pc, pstate (arch/arm64/kernel/signal.c, arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h). */
enum {
	SIGNAL_STACK = 128 + 16, /* uc_stack */
	SIGNAL_REGS = 128 + 176 + 8,
	SIGNAL_FP = SIGNAL_REGS + REG_FP * 8,
	SIGNAL_LR = SIGNAL_REGS + REG_RA * 8,
	SIGNAL_SP = SIGNAL_REGS + REG_SP * 8,
	SIGNAL_PC = SIGNAL_REGS + REG_PC * 8,
};

#define ROW_CFA(row)	  (8ll * ROW_OFF1(row))
#define ROW_RA(row)	  (8ll * ROW_OFF2(row))
#define ROW_RA_IN_LR(row) (ROW_OFF2(row) == 0)
#define ROW_FRAME_POINTER ROW(0, RULE_FP, 0, -2, ROW_PAIR(2, -1))

enum { CPU_HAS_VSYSCALL = 0 };
#define VSYSCALL_PAGE 0ull
#define ROW_VSYSCALL  0ull

enum { GO_G_PLACES = 1 }; /* where cpu_go_g() looks */

#ifdef __bpf__
#include "bpf/kernel.h"

/* arch/arm64/include/uapi/asm/ptrace.h: PSR_MODE_MASK without the bit for 32-bit programs, and that bit alone */
enum { PSTATE_EL = 0xf, PSTATE_32 = 0x10 };

static __always_inline bool cpu_in_user(struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.pstate & PSTATE_EL) == 0;
}

static __always_inline bool cpu_sample_regs(struct bpf_perf_event_data *ctx, __u64 *out)
{
#pragma unroll
	for (int i = 0; i < 31; i++)
		out[i] = ctx->regs.regs[i];
	out[REG_SP] = ctx->regs.sp;
	out[REG_PC] = ctx->regs.pc;
	return !(ctx->regs.pstate & PSTATE_32);
}

/* The kernel's struct pt_regs begins with a struct user_pt_regs. @has_btf: bpf_task_pt_regs is there, and here it must be.
 */
static __always_inline bool cpu_entry_regs(struct task_struct *task, bool has_btf, __u64 *out)
{
	struct user_pt_regs *regs = (void *)bpf_task_pt_regs((void *)task);
	__u64 pstate = PSTATE_32;

	bpf_probe_read_kernel(out, USER_REGS * sizeof(*out), regs);
	bpf_probe_read_kernel(&pstate, sizeof(pstate), &regs->pstate);
	return !(pstate & PSTATE_32);
}

struct pt_regs___kernel {
	unsigned long long regs[31];
	unsigned long long orig_x0; /* the first argument: x0 may have the result */
	int syscallno;		    /* NO_SYSCALL, -1, without one: arch/arm64/include/asm/ptrace.h */
} __attribute__((preserve_access_index));

static __always_inline __s32 cpu_entry_syscall(struct task_struct *task, bool has_btf)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)task);
	__s32 number = -1;

	bpf_probe_read_kernel(&number, sizeof(number), &regs->syscallno);
	return number;
}

/* The first two arguments of the system call that @task is in. */
static __always_inline void cpu_entry_args(struct task_struct *task, bool has_btf, __u64 out[2])
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)task);

	bpf_probe_read_kernel(&out[0], sizeof(out[0]), &regs->orig_x0);
	bpf_probe_read_kernel(&out[1], sizeof(out[1]), &regs->regs[1]);
}

#define RUNS_AGAIN "ipi_entry"

/* The value from when the thread last left the processor, or was made. */
static __always_inline __u64 cpu_thread_pointer(struct task_struct *task, bool has_btf)
{
	return has_btf ? task->thread.uw.tp_value : BPF_CORE_READ(task, thread.uw.tp_value);
}

/* Go code has its g in x28. */
static __always_inline __u64 cpu_go_g(struct task_struct *task, bool has_btf, const __u64 *regs, __u32 nth)
{
	return regs[28];
}
#endif

#endif
