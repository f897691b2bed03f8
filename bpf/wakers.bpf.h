/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who ends a sleep. sched_waking runs in the thread that does, under locks and with interrupts off, which is no place for a
 * walk. So a waker's stack is taken as that of a thread that comes back is (bpf/offcpu.bpf.c): an interrupt to the own CPU
 * arrives as soon as the locks are given back, still within the system call that woke, and finds the waker with the
 * registers and the stack with which it made that call. Several threads woken before it arrives share the stack.
 *
 * An interrupt that wakes would be over by then, and the thread that it interrupted has nothing to do with it. Of it the
 * kernel stack alone is taken, on the spot.
 *
 * All of this runs with interrupts off. BPF programs only; included after the helpers, by bpf/offcpu.bpf.c alone.
 */
#ifndef HEARTH_BPF_WAKERS_H
#define HEARTH_BPF_WAKERS_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/pids.bpf.h"

const volatile __u32 cfg_waker_kind = 0; /* of the samples of wakers; with cfg_wakers */

enum { IRQ_FRAMES = 63 };

/* Where interrupts come in (agent/kernel/kernel_ranges.h). */
const volatile __u64 cfg_irq_start = 0, cfg_irq_end = 0, cfg_irq_too_start = 0, cfg_irq_too_end = 0;

/* The waker of each CPU whose stack is wanted. */
struct wanted_waker {
	struct wake wakes[MAX_WAKES];
	__u64 tokens_ns; /* as of struct wanted_stack */
	__u32 count;	 /* 0: none is wanted */
	__u32 tid;	 /* in the first namespace */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU where wakers are wanted */
	__type(key, __u32);
	__type(value, struct wanted_waker);
} wanted_wakers SEC(".maps");

struct irq_record {
	struct sample_record sample;
	__u64 value_section, value;
	__u64 wakes_section;
	struct wake wake;
	__u64 kernel_section, kernel[IRQ_FRAMES]; /* as many as there are */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU where wakers are wanted */
	__type(key, __u32);
	__type(value, struct irq_record);
} irq_records SEC(".maps");

/* Counts one sample of a waker as taken and lost. */
static __always_inline void lose_wake(struct cpu_state *state, __u64 value, enum kernel_loss loss)
{
	take(state, cfg_waker_kind, value);
	lose(state, loss, cfg_waker_kind, value);
}

/* The waker has gone on before its stack was read, or none is free to read it. */
static __always_inline void give_up_waker(__u32 cpu, struct wanted_waker *wanted, enum kernel_loss loss)
{
	struct cpu_state *state = own_state(cpu);

	for (__u32 i = 0; i < MAX_WAKES; i++)
		if (state && i < wanted->count)
			lose_wake(state, wanted->wakes[i].value, loss);
	wanted->count = 0;
}

static __always_inline bool is_irq(__u64 addr)
{
	return addr - cfg_irq_start < cfg_irq_end - cfg_irq_start ||
	       addr - cfg_irq_too_start < cfg_irq_too_end - cfg_irq_too_start;
}

/*
 * Does an interrupt wake, be it in what it defers to its end? Then @r has its kernel stack, of so many bytes, down to where
 * it came in. Sending packets to the own machine also defers what wakes, but that is the thread's own doing.
 */
static __always_inline __u64 find_irq(void *ctx, struct irq_record *r)
{
	long bytes = bpf_get_stack(ctx, r->kernel, sizeof(r->kernel), 0);

	for (__u32 i = 0; i < IRQ_FRAMES; i++) {
		if ((long)(i * 8) >= bytes)
			return 0;
		if (is_irq(r->kernel[i] - 1))
			return i * 8 + 8;
	}
	return 0;
}

/* Sends the kernel stack of the interrupt that woke. */
static __always_inline void tell_irq(struct irq_record *r, struct cpu_state *state, const struct wake *wake, __u64 bytes,
				     __u32 cpu)
{
	__u32 index = cpu & (cfg_rings - 1);
	void *ring = bpf_map_lookup_elem(&rings, &index);
	struct sample_record *sample;
	__u64 size;

	if (!ring)
		return;
	sample = &r->sample;
	sample->hdr.kind = RECORD_SAMPLE;
	sample->hdr.level = MAX_LEVELS - 1;
	sample->hdr.version = RECORD_VERSION;
	sample->hdr.time_ns = wake->woken_ns;
	sample->hdr.cpu = cpu;
	sample->flags = SAMPLE_IRQ;
	sample->kind = cfg_waker_kind;
	sample->end = END_NONE;
	r->value_section = SECTION(SECTION_VALUE, sizeof(r->value));
	r->value = wake->value;
	r->wakes_section = SECTION(SECTION_WAKES, sizeof(r->wake));
	r->wake = *wake;
	r->kernel_section = SECTION(SECTION_KERNEL, bytes);
	size = offsetof(struct irq_record, kernel_section) + (bytes ? bytes + 8 : 0);
	sample->hdr.size = size;
	if (size > sizeof(*r) || bpf_ringbuf_output(ring, r, size, BPF_RB_NO_WAKEUP))
		lose_wake(state, wake->value, KERNEL_LOSS_RING);
	else
		take(state, cfg_waker_kind, wake->value);
}

/* The sleep of @task ends now, and was chosen: asks for the stack of who ended it. */
static __always_inline void ask_waker(void *ctx, struct task_struct *task, __u64 woken_ns, __u64 value)
{
	__u32 cpu = bpf_get_smp_processor_id(), tid = (__u32)bpf_get_current_pid_tgid(), at;
	struct wake wake = { .woken_ns = woken_ns, .value = value, .tid = task->pid };
	struct wanted_waker *wanted = bpf_map_lookup_elem(&wanted_wakers, &cpu);
	struct irq_record *r = bpf_map_lookup_elem(&irq_records, &cpu);
	struct cpu_state *state = own_state(cpu);
	__u64 irq_bytes;
	__u8 byte = 0;

	if (!wanted || !state || !r)
		return;
	if (!has_tokens(&wanted->tokens_ns, woken_ns)) {
		lose_wake(state, value, KERNEL_LOSS_LIMIT);
		return;
	}
	if (cfg_pid_ns)
		wake.tid = told_pid(task->thread_pid);
	irq_bytes = find_irq(ctx, r);
	if (irq_bytes) {
		tell_irq(r, state, &wake, irq_bytes, cpu);
		return;
	}
	if (wanted->count && wanted->tid != tid)
		give_up_waker(cpu, wanted, KERNEL_LOSS_LATE);
	at = wanted->count;
	if (at >= MAX_WAKES) {
		lose_wake(state, value, KERNEL_LOSS_LATE);
		return;
	}
	wanted->wakes[at & (MAX_WAKES - 1)] = wake;
	wanted->tid = tid;
	wanted->count = at + 1;
	if (!at && bpf_perf_event_output(ctx, &self_interrupts, BPF_F_CURRENT_CPU, &byte, sizeof(byte)))
		give_up_waker(cpu, wanted, KERNEL_LOSS_LATE);
}

/* The waker is here whose stack is wanted: its wakes go into @more, and count as taken. */
static __always_inline void take_wakes(struct wanted_waker *wanted, struct cpu_state *state, struct sample_more *more)
{
	__builtin_memset(more, 0, sizeof(*more));
	for (__u32 i = 0; i < MAX_WAKES; i++) {
		if (i >= wanted->count)
			break;
		more->wakes[i] = wanted->wakes[i];
		more->value += wanted->wakes[i].value;
		take(state, cfg_waker_kind, wanted->wakes[i].value);
	}
	more->wake_cnt = wanted->count;
	more->wait.syscall = -1;
	wanted->count = 0;
}

#endif
