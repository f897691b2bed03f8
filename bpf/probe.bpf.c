/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes: programs at functions of programs and of the kernel, by which each call is an event. A sample is taken as at a
 * tracepoint (bpf/sample.bpf.h), and says at which probe.
 *
 *   on_probe       a kprobe's or uprobe's, at a function's begin, within it, or as it returns
 *   on_function    a trampoline's (fentry), at the begin of a function of the kernel
 *   on_return      the same as it returns (fexit)
 *
 * This is an object of its own, which shares maps and options with the sampler's (bpf/sampler.bpf.c). It is loaded once for
 * functions of user space, where a program may be preempted in the middle (bpf/levels.bpf.h), and once for those of the
 * kernel; for a trampoline once for each function. Where the kernel does not tell a program which probe it runs for, it is
 * loaded once for each probe.
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

const volatile bool cfg_cookies = true; /* bpf_get_attach_cookie (5.15) tells the probe ... */
const volatile __u32 cfg_probe = 0;	/* ... else it is this one */

/* Takes a level of the pool, in one instruction that nothing comes between. False: none is free. */
static __always_inline bool pool_take(struct place *at)
{
	struct level_state *state;

	at->cpu = bpf_get_smp_processor_id();
	state = bpf_map_lookup_elem(&levels, &at->cpu);
	if (!state)
		return false;
	for (__u32 i = 0; i < POOL_LEVELS; i++) {
		if (i >= cfg_pool_levels || __sync_val_compare_and_swap(&state->owners[i], 0, bpf_get_current_pid_tgid()))
			continue;
		at->level = cfg_levels - cfg_pool_levels + i;
		at->slot = at->cpu * cfg_levels + at->level;
		return true;
	}
	return false;
}

/* Is this event a sample? Then it is begun, at the level @at that was taken. */
static __always_inline bool begin_probe(void *ctx, const struct place *at, struct cpu_state **state,
					struct scratch **scratch)
{
	*state = bpf_map_lookup_elem(&cpu_states, &at->slot);
	*scratch = bpf_map_lookup_elem(&scratches, &at->slot);
	if (!*state || !*scratch || !wanted(*state))
		return false;
	(*scratch)->probe.probe = cfg_cookies ? (__u32)bpf_get_attach_cookie(ctx) : cfg_probe;
	return true;
}

/* Counts an event that no level was free for; whether it would have been a sample cannot be known where only some are. */
static __always_inline void refuse_probe(const struct place *at)
{
	__u32 *on = bpf_map_lookup_elem(&tracepoint_cpus, &at->cpu);

	if (on && *on && passes(bpf_get_current_pid_tgid()))
		level_refuse(at, cfg_kind, 0);
}

static __always_inline int take_probe(void *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!(cfg_preempted ? pool_take(&at) : level_take(&at))) {
		refuse_probe(&at);
		return 0;
	}
	if (begin_probe(ctx, &at, &state, &scratch))
		take_by_loop(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

/* The same for kernels without bpf_loop(), on which no program is preempted. */
static __always_inline int take_probe_tail(void *ctx)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!level_take(&at)) {
		refuse_probe(&at);
		return 0;
	}
	if (begin_probe(ctx, &at, &state, &scratch))
		take_by_tail_calls(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

SEC("kprobe")
int on_probe(struct pt_regs *ctx)
{
	return take_probe(ctx);
}

SEC("kprobe")
int on_probe_tail(struct pt_regs *ctx)
{
	return take_probe_tail(ctx);
}

SEC("kprobe")
int probe_walk_tail(struct pt_regs *ctx)
{
	walk_by_tail_calls((void *)ctx);
	return 0;
}

SEC("fentry")
int on_function(__u64 *ctx)
{
	return take_probe(ctx);
}

SEC("fentry")
int on_function_tail(__u64 *ctx)
{
	return take_probe_tail(ctx);
}

SEC("fentry")
int function_walk_tail(__u64 *ctx)
{
	walk_by_tail_calls((void *)ctx);
	return 0;
}

SEC("fexit")
int on_return(__u64 *ctx)
{
	return take_probe(ctx);
}

SEC("fexit")
int on_return_tail(__u64 *ctx)
{
	return take_probe_tail(ctx);
}

SEC("fexit")
int return_walk_tail(__u64 *ctx)
{
	walk_by_tail_calls((void *)ctx);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
