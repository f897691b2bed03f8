/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps, and the options user space sets between open and load. Sizes given here are defaults that agent/kernel/sampler.c
 * may change before loading. The sampler only looks up in hash maps; user space alone fills them (the fork tracepoint adds
 * to filter_pids). Look-ups in plain arrays are inlined by the verifier, so everything hot is a plain array indexed by CPU.
 */
#ifndef HEARTH_BPF_MAPS_H
#define HEARTH_BPF_MAPS_H

#include "bpf/deep.h"
#include "bpf/event.h"
#include "bpf/unwind_state.h"

const volatile __u32 cfg_rings = 1;	 /* ring buffers, a power of two; CPU c writes to ring c mod this */
const volatile __u32 cfg_wake_bytes = 0; /* the reader is woken when a ring holds more than this */
const volatile __u32 cfg_stack_chunks = 64;
const volatile __u64 cfg_chunk_cost_ns = 0;  /* token bucket: time one chunk costs ... */
const volatile __u64 cfg_chunk_burst_ns = 0; /* ... and how much may be saved up */
const volatile __u64 cfg_code_mask =
	~0ull;				/* the bits of a return address that are not a pointer authentication signature */
const volatile __u32 cfg_kind = 0;	/* kind of the samples: a place in the session's list */
const volatile bool cfg_values = false; /* samples have struct sample_more */
const volatile bool cfg_pages = false;	/* ... and of it the page, not the wait */
const volatile bool cfg_wakers = false; /* those of who ends waits, too */
const volatile bool cfg_probes = false; /* samples have struct probe_info */
const volatile __u32 cfg_skipped_frames = 0; /* kernel frames of ours, on top of those that are told */
const volatile bool cfg_tracepoint = false;  /* loaded as a program on a tracepoint; its context is not a perf event's */
const volatile __u64 cfg_every = 1;	     /* each so-many-th event of a tracepoint on a CPU is a sample */
const volatile __u32 cfg_pid_ns = 0;	     /* inode number of the pid namespace whose pids are told; 0: the first one */
const volatile bool cfg_filter_pids = false;
const volatile bool cfg_filter_tids = false;
const volatile bool cfg_filter_comm = false;
const volatile bool cfg_idle = false;	   /* samples of idle CPUs too */
const volatile bool cfg_no_kernel = false; /* no kernel frames, no kernel threads */
const volatile __u32 cfg_uid_cnt = 0;	   /* how many of cfg_uids are used; 0: all users */
const volatile __u32 cfg_uids[FILTER_UIDS];
const volatile __u32 cfg_cgroup_cnt = 0;       /* groups in filter_cgroups and filter_v1_groups; 0: all pass */
const volatile __u64 cfg_min_age_ns = 0;       /* name of a process */
const volatile struct comm_automaton cfg_comm; /* the patterns that names must match */
const volatile bool cfg_find_vma = true;       /* bpf_find_vma (5.17) is there */
const volatile bool cfg_task_btf = true;       /* bpf_get_current_task_btf (5.11) and bpf_task_pt_regs (5.15) are there */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct proc_value);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct chain_key);
	__type(value, struct chain_state);
} chain_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 128);
	__type(key, struct program_key);
	__type(value, struct program_value);
} program_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROGRAM_MAX);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mapping_key);
	__type(value, struct mapping_value);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct block_key);
	__type(value, struct unwind_block);
} unwind_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FIRST_LEVEL_ENTRIES); /* a slice for each CPU and level */
	__type(key, __u32);
	__type(value, struct first_level_entry);
} first_level SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CAPTURE_CLASSES);
	__type(key, __u32);
	__type(value, struct capture_class);
} capture_classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU and level */
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpu_states SEC(".maps");

/* The record in the making, the walk (in map memory the verifier does not follow its values, so loops converge) and the
 * window on the user stack. */
enum { SCRATCH_WORDS = 4096 };
_Static_assert(sizeof(struct sample_record) + SCRATCH_WORDS * 8 <= MAX_RECORD_BYTES, "a record has room for all of it");

/* The innermost frame of a virtual machine whose own code, and the code that it makes, have no rules that are true
 * everywhere. */
struct vm_frame {
	__u64 sp;	     /* where its stack pointer is, but for a while; 0: there is none */
	__u64 start, end;    /* its code */
	__u64 has_made_code; /* not 0: code that it made runs in this frame */
};

struct walk {
	struct unwind_state state;
	__u64 row;	  /* the result of find_rule */
	__u64 start, end; /* the range that the mapping below covers; empty at first */
	__u64 bias;
	__u64 window; /* user address of scratch->chunk.data[0] */
	__u32 window_len;
	__u32 file;
	__u32 kind; /* enum mapping_kind */
	__u32 asid;
	__u32 cpu, level;
	__u32 slot; /* of this CPU and level; see bpf/levels.bpf.h */
	__u32 kernel_cnt;
	__u32 user_at; /* index in scratch->words of the first user frame, behind its section's head */
	__u32 user_cnt;
	__u64 first_sp;	      /* sp of the first user frame */
	__u32 chain_cnt;      /* words of SECTION_CHAIN, which stands before the user frames' */
	__u32 runtimes;	      /* chains still to be collected (proc_value.runtimes) */
	__u64 thread_pointer; /* of a sample with chains */
	__u64 chain_bias;     /* added to the addresses of chain states */
	__u32 chain_asid;     /* under which these stand */
	__u32 tail_calls;     /* in the form with tail calls: programs that were called */
	__u32 context_cnt;    /* words of the sections of the context, which stand before those of chains */
	struct vm_frame vm;
	__u32 ring;
	__u32 torn;
	__u64 trampoline;	 /* where functions with a probe at their end return to; 0: nowhere */
	__u64 returns;		 /* kernel's address of the innermost return_instance ... */
	__u64 next_return;	 /* ... and of the one that the walk has come to */
	__u32 capture_cnt;	 /* words in scratch->captures */
	__u32 memo_at, memo_put; /* where in scratch->memo the last walk's next frame stands, and where this one's goes */
	struct deep deep;
};

/* A frame of a walk: the address its row was looked up for, its sp, the row. */
struct memo_frame {
	__u64 addr;
	__u64 sp;
	__u64 row;
};

/* State of copying a sample's stacks into chunk records. */
enum { MAX_COPIES = 6, COPIES_ROOM = 8 /* a power of two, for a masked index */ };

struct stack_copy {
	__u64 sp;	  /* of the stack */
	__u64 addr;	  /* the next page */
	__u64 fp;	  /* where a signal interrupted the thread */
	__u64 end;	  /* end of the stack's memory area; ~0: not known */
	__u64 first_end;  /* the same of the stack that the sample runs on */
	__u32 cnt;	  /* chunks sent */
	__u32 tries;	  /* pages of one stack that were looked at */
	__u32 copies;	  /* stacks that were copied, and their addresses */
	__u32 scan_bytes; /* place in the window in the search for a signal frame; addr and fp have the result */
	struct {
		__u64 start, end;
	} done[COPIES_ROOM];
};

/* Facts that Go's runtime has about the thread (bpf/stacks.bpf.h); all 0 in other programs. */
struct go_thread {
	__u64 stack_lo, stack_hi; /* the stack it says it is on */
	__u64 g0_sp, g0_hi;	  /* the thread's system stack, from where it was left */
	__u64 curg_lo;		  /* the stack of the thread's goroutine, up to sched.stack_hi */
	__u64 pushed_bytes;	  /* that may stand below sched.sp: Erlang's, whose process is told of its sp now and then */
	bool is_away;		  /* the goroutine's stack is another one ... */
	struct unwind_sched sched; /* ... and it goes on there */
};

/* The value of the sample and the rest of what only samples with cfg_values have. */
struct sample_more {
	__u64 value;
	__u64 second_value; /* the same stack is a sample of another kind, too; 0: it is not */
	struct wait_info wait;
	__u64 page_addr; /* of samples with cfg_pages */
	__u32 second_kind;
	__u32 wake_cnt; /* not 0: the sample is of a waker */
	struct wake wakes[MAX_WAKES];
	struct wait_target target;
};

/* A word that a captured pointer led to, @beside the frame's first captured word. Objects move, so it is believed for a
 * while only. */
enum { FOLLOWED_SLOTS = 64, FOLLOWED_NS = 250000000 };
struct followed {
	__u64 at, beside, word, time_ns;
	__u32 asid, pad;
};

struct scratch {
	struct sample_record sample;
	__u64 words[SCRATCH_WORDS]; /* directly behind: the sections */
	struct sample_regs regs;    /* also room that a masked index may run into */
	struct walk walk;
	struct stack_copy copy;
	struct go_thread go;
	struct stack_chunk chunk; /* its data: the window on the user stack, then each page that is sent */
	__u64 captures[MAX_CAPTURE_WORDS + 1 + CAPTURE_WORDS]; /* those of the sample */
	__u32 sps[MAX_USER_FRAMES]; /* of a sample with chains: how far each user frame's sp is above the first's; SP_FAR */
	struct memo_frame memo[2 * MAX_USER_FRAMES]; /* the last walk here and the present one, in turns */
	__u32 memo_put;				     /* which half was written last */
	__u32 memo_asid;			     /* the address space under which it was walked */
	struct followed followed[FOLLOWED_SLOTS];
	struct sample_more more;
	struct probe_info probe; /* of samples with cfg_probes */
	__u32 word_cnt;		 /* see merged() of bpf/send.bpf.h */
};

static __always_inline struct task_struct *current_task(void)
{
	return cfg_task_btf ? (void *)bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

/* @at within @mask (2^n - 1), in a way that the compiler cannot take apart and the verifier believes. */
static __always_inline __u64 masked(__u64 at, const __u64 mask)
{
#ifdef __bpf__
	asm volatile("%0 &= %1" : "+r"(at) : "i"(mask));
	return at;
#else
	return at & mask; /* in tests */
#endif
}

/* The smaller one of @a and @b, which differ by less than 2^63, without a branch, which verifiers would follow both ways. */
static __always_inline __u64 least(__u64 a, __u64 b)
{
	__u64 over = a - b, is_less = (__u64)((__s64)over >> 63); /* all bits, or none */

#ifdef __bpf__
	asm volatile("" : "+r"(is_less)); /* the compiler would make it a branch */
#endif
	return a - (over & ~is_less);
}

static __always_inline __u64 word_index(__u64 at)
{
	return masked(at, SCRATCH_WORDS - 1);
}

static __always_inline __u64 memo_index(__u64 at)
{
	return masked(at, 2 * MAX_USER_FRAMES - 1);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU and level */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384); /* preallocated: before 6.1 programs on perf events may use no other; 1 when it is off */
	__type(key, __u64);	    /* thread group; FILTER_PID_TOLD */
	__type(value, __u64);	    /* start_boottime of a child that was followed here; 0: entered by user space */
} filter_pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* thread */
	__type(value, __u8);
} filter_tids SEC(".maps");

/* The CPUs that are sampled, for a tracepoint, which knows no CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU when it is on */
	__type(key, __u32);
	__type(value, __u32);
} tracepoint_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, FILTER_CGROUPS);
	__type(key, __u32);
	__type(value, __u32);
} filter_cgroups SEC(".maps");

/* The same indexes as filter_cgroups: a group of version 1 stands where there is none of version 2. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILTER_CGROUPS);
	__type(key, __u32);
	__type(value, struct v1_group);
} filter_v1_groups SEC(".maps");

/* The kind that the rings are of; user space makes those that are used. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/*
 * A ring for each group of CPUs: no lock is on the path of all of them. The table is empty when it is made: the kernel waits
 * for a grace period, 10 to 20 ms, at each update of such a table.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 64);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

static __always_inline void count(struct cpu_state *cpu, enum bpf_counter which)
{
	cpu->counters[which]++;
}

#endif
