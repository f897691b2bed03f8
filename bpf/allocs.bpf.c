/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocations of a process, at the functions of its allocator. Each is an interval of bytes for the draw of bpf/draw.h, and
 * a stack is taken only of those that are chosen: what is paid for all others is the trap. The cookie says which argument is
 * the size.
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

#include "bpf/alloc_size.h"
#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/pids.bpf.h"
#include "bpf/filter.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/pool.bpf.h"
#include "bpf/draw.h"

const volatile __u64 cfg_mean_bytes = 512 << 10; /* see bpf/draw.h */

/* The draw of each CPU. A thread that loses the CPU in the middle may undo what another has taken off: no more than a call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU */
	__type(key, __u32);
	__type(value, struct draw);
} alloc_draws SEC(".maps");

static __always_inline __u32 draw_random(void)
{
	return bpf_get_prandom_u32();
}

static __always_inline __u64 size_of_call(struct pt_regs *ctx)
{
	__u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	switch (bpf_get_attach_cookie(ctx)) {
	case ALLOC_SIZE_FIRST:
		return first;
	case ALLOC_SIZE_THIRD:
		return PT_REGS_PARM3(ctx);
	case ALLOC_SIZE_PRODUCT:
		return first * second;
	case ALLOC_SIZE_GROWN:
		return first ? second : 0;
	default:
		return second;
	}
}

/* What the call counts for; 0: it is no sample. More than the address space has is refused by the allocator. */
static __always_inline __u64 value_of_call(struct pt_regs *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 *on = bpf_map_lookup_elem(&tracepoint_cpus, &cpu);
	struct draw *draw = bpf_map_lookup_elem(&alloc_draws, &cpu);
	__u64 size = size_of_call(ctx), value;

	if (!on || !*on || !draw || !size || size >> CPU_USER_BITS)
		return 0;
	value = draw_interval(draw, size, cfg_mean_bytes);
	return value && passes(bpf_get_current_pid_tgid()) ? value : 0;
}

SEC("kprobe")
int on_alloc(struct pt_regs *ctx)
{
	__u64 value = value_of_call(ctx);
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!value)
		return 0;
	if (!(cfg_preempted ? pool_take(&at) : level_take(&at))) {
		level_refuse(&at, cfg_kind, value);
		return 0;
	}
	if (begin_bytes(&at, &state, &scratch, 0, value))
		take_by_loop((void *)ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

/* The same for kernels without bpf_loop(), on which no program is preempted. */
SEC("kprobe")
int on_alloc_tail(struct pt_regs *ctx)
{
	__u64 value = value_of_call(ctx);
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!value)
		return 0;
	if (!level_take(&at)) {
		level_refuse(&at, cfg_kind, value);
		return 0;
	}
	if (begin_bytes(&at, &state, &scratch, 0, value))
		take_by_tail_calls((void *)ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

SEC("kprobe")
int alloc_walk_tail(struct pt_regs *ctx)
{
	walk_by_tail_calls((void *)ctx);
	return 0;
}

SEC("kprobe")
int alloc_send_tail(struct pt_regs *ctx)
{
	send_by_tail_call();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
