/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* x86-64; see bpf/arch.h. A call pushes the return address, so it always stands at CFA - 8. */
#ifndef HEARTH_BPF_ARCH_X86_64_H
#define HEARTH_BPF_ARCH_X86_64_H

/* DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, and rip. */
enum { REG_FP = 6, REG_SP = 7, REG_PC = 16, REG_RA = REG_PC, USER_REGS = 17 };
enum { CPU_HAS_LR = 0, CPU_USER_BITS = 47 };
enum { PUSHED_BY_CALL = 8 };				      /* bytes */
enum { CPU_HAS_URETPROBE_CALL = 1, URETPROBE_CALL_END = 13 }; /* bytes; see bpf/sample.bpf.h */

/* The ucontext of rt_sigframe: gregs start at 40, 8 bytes each (arch/x86/include/uapi/asm/sigcontext.h). */
enum {
	SIGNAL_STACK = 16, /* uc_stack */
	SIGNAL_REGS = 40,
	SIGNAL_FP = SIGNAL_REGS + 10 * 8,
	SIGNAL_SP = SIGNAL_REGS + 15 * 8,
	SIGNAL_PC = SIGNAL_REGS + 16 * 8,
	SIGNAL_LR = 0
};

#define ROW_CFA(row)	  ((__s64)ROW_OFFSET(row))
#define ROW_RA(row)	  (-8)
#define ROW_RA_IN_LR(row) 0
#define ROW_FRAME_POINTER ROW(0, RULE_FP, 0, -2, 0)

/* The page where old programs call time() and the like. No list of mappings has it; its code is one frame that saves
 * nothing. arch/x86/include/uapi/asm/vsyscall.h */
enum { CPU_HAS_VSYSCALL = 1 };
#define VSYSCALL_PAGE 0xffffffffff600ull /* address >> 12 */
#define ROW_VSYSCALL  ROW(0, RULE_CFA, BASE_SP, 0, 8)

enum { GO_G_PLACES = 32 }; /* where cpu_go_g() looks */

#ifdef __bpf__
#include "bpf/kernel.h"

/* The registers as the kernel stored them; the header's struct pt_regs has user space's names. */
struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
	unsigned short cs;
} __attribute__((preserve_access_index));

/* arch/x86/include/asm/page_64_types.h: THREAD_SIZE without KASAN. Only for kernels before 5.15, without FRED's padding. */
enum { KERNEL_STACK_BYTES = 16384 };

enum { USER_CS_64 = 0x33 }; /* arch/x86/include/asm/segment.h: __USER_CS */

#define REGS_FROM(ctx, out, AX, DX, CX, BX, SI, DI, BP, SP, IP) \
	do {                                                    \
		(out)[0] = (ctx)->AX;                           \
		(out)[1] = (ctx)->DX;                           \
		(out)[2] = (ctx)->CX;                           \
		(out)[3] = (ctx)->BX;                           \
		(out)[4] = (ctx)->SI;                           \
		(out)[5] = (ctx)->DI;                           \
		(out)[6] = (ctx)->BP;                           \
		(out)[7] = (ctx)->SP;                           \
		(out)[8] = (ctx)->r8;                           \
		(out)[9] = (ctx)->r9;                           \
		(out)[10] = (ctx)->r10;                         \
		(out)[11] = (ctx)->r11;                         \
		(out)[12] = (ctx)->r12;                         \
		(out)[13] = (ctx)->r13;                         \
		(out)[14] = (ctx)->r14;                         \
		(out)[15] = (ctx)->r15;                         \
		(out)[16] = (ctx)->IP;                          \
	} while (0)

static __always_inline bool cpu_in_user(struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) == 3;
}

static __always_inline bool cpu_sample_regs(struct bpf_perf_event_data *ctx, __u64 *out)
{
	REGS_FROM(&ctx->regs, out, rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, rip);
	return ctx->regs.cs == USER_CS_64;
}

static __always_inline __u64 cpu_thread_pointer(struct task_struct *task, bool has_btf)
{
	return has_btf ? task->thread.fsbase : BPF_CORE_READ(task, thread.fsbase);
}

/*
 * The place below the thread pointer where a thread that runs Go code notes its g. @nth counts the possible places from 0:
 * nearly all programs use the first; a static program has the C library's variables of the thread before it. 0: there is no
 * such place.
 */
static __always_inline __u64 cpu_go_g(struct task_struct *task, bool has_btf, const __u64 *regs, __u32 nth)
{
	__u64 tls = cpu_thread_pointer(task, has_btf), g;

	return !tls || bpf_probe_read_user(&g, sizeof(g), (void *)(tls - 8 - 8 * (__u64)nth)) ? 0 : g;
}

/* @has_btf: bpf_task_pt_regs is there. */
static __always_inline bool cpu_entry_regs(struct task_struct *task, bool has_btf, __u64 *out)
{
	struct pt_regs___kernel *regs;

	if (has_btf) {
		regs = (void *)bpf_task_pt_regs((void *)task);
		REGS_FROM(regs, out, ax, dx, cx, bx, si, di, bp, sp, ip);
		return regs->cs == USER_CS_64;
	}
	regs = BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs___kernel);
	__builtin_memset(out, 0, USER_REGS * sizeof(*out)); /* nothing depends on the other caller-saved registers */
	out[REG_PC] = BPF_CORE_READ(regs, ip);
	out[REG_SP] = BPF_CORE_READ(regs, sp);
	out[REG_FP] = BPF_CORE_READ(regs, bp);
	out[3] = BPF_CORE_READ(regs, bx);
	out[12] = BPF_CORE_READ(regs, r12);
	out[13] = BPF_CORE_READ(regs, r13);
	out[14] = BPF_CORE_READ(regs, r14);
	out[15] = BPF_CORE_READ(regs, r15);
	return (BPF_CORE_READ(regs, cs) & 0xffff) == USER_CS_64;
}

/* arch/x86/entry: what is no system call leaves -1 there. */
static __always_inline __s32 cpu_entry_syscall(struct task_struct *task, bool has_btf)
{
	struct pt_regs___kernel *regs;

	if (has_btf) {
		regs = (void *)bpf_task_pt_regs((void *)task);
		return (__s32)regs->orig_ax;
	}
	regs = BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs___kernel);
	return (__s32)BPF_CORE_READ(regs, orig_ax);
}

/* The first two arguments of the system call that @task is in. */
static __always_inline void cpu_entry_args(struct task_struct *task, bool has_btf, __u64 out[2])
{
	struct pt_regs___kernel *regs;

	if (has_btf) {
		regs = (void *)bpf_task_pt_regs((void *)task);
		out[0] = regs->di;
		out[1] = regs->si;
		return;
	}
	regs = BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs___kernel);
	out[0] = BPF_CORE_READ(regs, di);
	out[1] = BPF_CORE_READ(regs, si);
}

#define RUNS_AGAIN "irq_work_entry"
#endif

#endif
