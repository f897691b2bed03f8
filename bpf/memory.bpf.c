/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory where it is first touched. A page that a program asks for costs nothing until the program touches it: the CPU
 * faults, and the kernel finds a page. Each such fault is an interval of bytes for the draw of bpf/draw.h, so each stack's
 * sum has the right mean; a stack is taken only of those that are chosen.
 *
 *   on_fault         a fault of the thread itself
 *   on_kernel_fault  one of the kernel on the thread's behalf, as when it reads a file into new memory
 *   on_growth        the kernel has counted pages for the process: was the last fault one of a huge page?
 *
 * The first two run before the kernel has looked for a page, so they do not know its size. A huge page can come only where
 * the 2 MB around the address have no page table yet, which is seldom, or a huge page is to be copied. Then the place is
 * noted for the thread, and on_growth, which runs when the page is mapped, looks whether that was a huge one, and adds the
 * rest of it.
 *
 * This is an object of its own, which shares maps and options with the sampler's (bpf/sampler.bpf.c). The samples have no
 * kernel frames: they would be the fault's own.
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
#include "bpf/draw.h"
#include "bpf/pages.bpf.h"

const volatile __u64 cfg_mean_bytes = 512 << 10; /* see bpf/draw.h */
const volatile bool cfg_huge_pages = true;	 /* the kernel may give huge pages */

/* arch/x86/include/asm/trap_pf.h: the page is there, but may not be used so; the access was a write. */
enum { FAULT_PRESENT = 1, FAULT_WRITE = 2 };

enum { SMALL_PAGE_BYTES = 4096, NOTED_FAULTS = 4096 /* a power of two */ };

/* What each CPU keeps: its draw; and the last 2 MB that were found to have a page table, as most faults are in the same as
 * the one before. That is forgotten when the process's pages are counted and there was no fault: then some go. */
struct fault_cpu {
	struct draw draw;
	__u64 mm, region; /* 0: none */
	__u64 has_faulted;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU */
	__type(key, __u32);
	__type(value, struct fault_cpu);
} fault_cpus SEC(".maps");

/* A fault where a huge page may come, by thread; a place may be another thread's. */
struct noted_fault {
	__u64 addr;
	__u32 tid; /* 0: none */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NOTED_FAULTS);
	__type(key, __u32);
	__type(value, struct noted_fault);
} noted_faults SEC(".maps");

static __always_inline __u32 draw_random(void)
{
	return bpf_get_prandom_u32();
}

static __always_inline struct mm_struct *memory_of(struct task_struct *task)
{
	return cfg_task_btf ? task->mm : BPF_CORE_READ(task, mm);
}

/* Will the kernel look for a page? Not where it only tries to read, as other programs of ours do (the fault then ends
 * there). A write to a page that is there makes a copy of it. A helper that reads counts as one that only tries, itself
 * (mm/maccess.c). */
static __always_inline bool may_take_memory(struct task_struct *task, __u64 addr, __u64 code)
{
	int tries = cfg_task_btf ? task->pagefault_disabled : BPF_CORE_READ(task, pagefault_disabled) - 1;

	return !tries && addr >> 56 == 0 && (!(code & FAULT_PRESENT) || code & FAULT_WRITE);
}

static __always_inline struct noted_fault *note_of(__u32 tid)
{
	__u32 key = tid & (NOTED_FAULTS - 1);

	return bpf_map_lookup_elem(&noted_faults, &key);
}

static __always_inline struct fault_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&fault_cpus, &cpu);
}

/* Notes the fault at @addr if a huge page may come of it: the 2 MB around have no page table, or are such a page already, of
 * which a write makes a copy. */
static __always_inline void note_fault(struct fault_cpu *cpu, struct mm_struct *mm, __u64 addr)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 region = addr / PAGE_TABLE_BYTES, entry;
	struct noted_fault *note;
	enum page_state state;

	cpu->has_faulted = 1;
	if (cpu->mm == (__u64)mm && cpu->region == region)
		return;
	state = page_state_of(mm, addr, &entry);
	note = note_of(tid);
	if (!note)
		return;
	if (state == PAGE_STATE_NO_TABLE || state == PAGE_STATE_HUGE) {
		note->addr = addr;
		note->tid = tid;
		return;
	}
	if (note->tid == tid)
		note->tid = 0;
	cpu->mm = (__u64)mm;
	cpu->region = region;
}

/* Pages that only were made inaccessible, to see who uses them (NUMA), are there already. */
static __always_inline bool is_new(struct mm_struct *mm, __u64 addr)
{
	__u64 entry;

	if (page_state_of(mm, addr, &entry) != PAGE_STATE_TABLE)
		return true;
	return entry & ENTRY_PRESENT || !(entry & ENTRY_NO_ACCESS);
}

/* Is this CPU sampled, and the thread one that was asked for? */
static __always_inline bool is_wanted(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 *on = bpf_map_lookup_elem(&tracepoint_cpus, &cpu);

	return on && *on && passes(bpf_get_current_pid_tgid());
}

/* Begins a sample of @value bytes at @addr, at a level that it takes. */
static __always_inline bool begin_touch(struct place *at, struct cpu_state **state, struct scratch **scratch, __u64 addr,
					__u64 value)
{
	if (!level_take(at)) {
		level_refuse(at, cfg_kind, value);
		return false;
	}
	if (begin_bytes(at, state, scratch, addr, value))
		return true;
	level_give(at);
	return false;
}

/* The value of the fault with a tracepoint's arguments @args: address, registers, error code; 0: it is no sample. */
static __always_inline __u64 value_of_fault(const __u64 *args)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = memory_of(task);
	struct fault_cpu *cpu = this_cpu();
	__u64 addr = args[0], value;

	if (!cpu || !mm || !may_take_memory(task, addr, args[2]))
		return 0;
	if (cfg_huge_pages)
		note_fault(cpu, mm, addr);
	value = draw_interval(&cpu->draw, SMALL_PAGE_BYTES, cfg_mean_bytes);
	return value && is_wanted() && is_new(mm, addr) ? value : 0;
}

/* The value of the rest of a huge page, if the thread's last fault was one of such a page and it is there now. */
static __always_inline __u64 value_of_growth(const __u64 *args, __u64 *addr)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct noted_fault *note = note_of(tid);
	struct fault_cpu *cpu = this_cpu();
	struct mm_struct *mm;
	enum page_state state;
	__u64 entry, value;

	if (!note || !cpu)
		return 0;
	if (!cpu->has_faulted)
		cpu->mm = 0;
	cpu->has_faulted = 0;
	if (note->tid != tid || !tid)
		return 0;
	mm = memory_of(current_task());
	if (!mm || (__u64)mm != args[0])
		return 0;
	*addr = note->addr;
	state = page_state_of(mm, note->addr, &entry);
	if (state == PAGE_STATE_NO_TABLE)
		return 0; /* counted was something else */
	note->tid = 0;
	value = state == PAGE_STATE_HUGE ? draw_interval(&cpu->draw, PAGE_TABLE_BYTES - SMALL_PAGE_BYTES, cfg_mean_bytes)
					 : 0;
	return value && is_wanted() ? value : 0;
}

static __always_inline int take(void *ctx, __u64 addr, __u64 value)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!value || !begin_touch(&at, &state, &scratch, addr, value))
		return 0;
	take_by_loop(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

/* The same for kernels without bpf_loop(). */
static __always_inline int take_tail(void *ctx, __u64 addr, __u64 value)
{
	struct cpu_state *state;
	struct scratch *scratch;
	struct place at;

	if (!value || !begin_touch(&at, &state, &scratch, addr, value))
		return 0;
	take_by_tail_calls(ctx, state, scratch, &at, cfg_kind);
	level_give(&at);
	return 0;
}

SEC("raw_tp/page_fault_user")
int on_fault(__u64 *args)
{
	return take(args, args[0], value_of_fault(args));
}

SEC("raw_tp/page_fault_user")
int on_fault_tail(__u64 *args)
{
	return take_tail(args, args[0], value_of_fault(args));
}

SEC("raw_tp/page_fault_kernel")
int on_kernel_fault(__u64 *args)
{
	return take(args, args[0], value_of_fault(args));
}

SEC("raw_tp/page_fault_kernel")
int on_kernel_fault_tail(__u64 *args)
{
	return take_tail(args, args[0], value_of_fault(args));
}

/* Arguments: the memory of a process, what of it grew or shrank. */
SEC("raw_tp/rss_stat")
int on_growth(__u64 *args)
{
	__u64 addr = 0, value = value_of_growth(args, &addr);

	return take(args, addr, value);
}

SEC("raw_tp/rss_stat")
int on_growth_tail(__u64 *args)
{
	__u64 addr = 0, value = value_of_growth(args, &addr);

	return take_tail(args, addr, value);
}

SEC("raw_tp/page_fault_user")
int memory_walk_tail(__u64 *args)
{
	walk_by_tail_calls((void *)args);
	return 0;
}

SEC("raw_tp/page_fault_user")
int memory_send_tail(__u64 *args)
{
	send_by_tail_call();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
