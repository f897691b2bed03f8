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
#include "bpf/probe_args.h"
#include "bpf/pids.bpf.h"
#include "bpf/filter.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/pool.bpf.h"

const volatile bool cfg_cookies = true;	   /* bpf_get_attach_cookie (5.15) tells the probe ... */
const volatile bool cfg_arguments = false; /* some probes want arguments */
const volatile __u32 cfg_probe = 0;	   /* ... else it is this one */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each probe */
	__type(key, __u32);
	__type(value, struct probe_args);
} probe_arguments SEC(".maps");

/* The value of an argument; 0 where its memory cannot be read. @ctx: struct pt_regs. */
static __always_inline __u64 read_argument(void *ctx, const struct probe_arg *arg)
{
	__u32 bytes = (arg->bytes < 0 ? -arg->bytes : arg->bytes) & 15, shift = 64 - 8 * bytes;
	__u64 value = arg->value, word = 0;

	if (arg->kind != PROBE_ARG_CONSTANT) {
		bpf_probe_read_kernel(&word, sizeof(word), ctx + (arg->reg & 511));
		value += word;
	}
	if (arg->kind == PROBE_ARG_MEMORY) {
		word = 0;
		if (arg->index != PROBE_NO_REGISTER)
			bpf_probe_read_kernel(&word, sizeof(word), ctx + (arg->index & 511));
		value += word << (arg->scale & 3);
		word = 0;
		if (bytes <= sizeof(word))
			bpf_probe_read_user(&word, bytes, (void *)value);
		value = word;
	}
	value <<= shift & 63;
	return arg->bytes < 0 ? (__u64)((__s64)value >> (shift & 63)) : value >> (shift & 63);
}

static __always_inline void read_arguments(void *ctx, struct probe_info *probe)
{
	__u32 key = probe->probe;
	const struct probe_args *args = bpf_map_lookup_elem(&probe_arguments, &key);

	probe->arg_cnt = args ? args->count : 0;
	if (!args)
		return;
#pragma clang loop unroll(full) /* 6.1 takes no loop whose end falls through to its begin */
	for (__u32 i = 0; i < PROBE_ARGS; i++)
		if (i < args->count)
			probe->args[i] = read_argument(ctx, &args->list[i]);
}

/* Is this event a sample? Then it is begun, at the level @at that was taken. */
static __always_inline bool begin_probe(void *ctx, const struct place *at, struct cpu_state **state,
					struct scratch **scratch)
{
	if (!find_state(at, state, scratch) || !wanted(*state))
		return false;
	(*scratch)->probe.probe = cfg_cookies ? (__u32)bpf_get_attach_cookie(ctx) : cfg_probe;
	(*scratch)->probe.arg_cnt = 0;
	if (cfg_arguments)
		read_arguments(ctx, &(*scratch)->probe);
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

SEC("kprobe")
int probe_send_tail(struct pt_regs *ctx)
{
	send_by_tail_call();
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

SEC("fentry")
int function_send_tail(__u64 *ctx)
{
	send_by_tail_call();
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

SEC("fexit")
int return_send_tail(__u64 *ctx)
{
	send_by_tail_call();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
