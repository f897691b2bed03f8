/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel half and user space share: records in the ring buffers, keys and values of the maps, counters. Data only,
 * fixed-width fields, no functions. Included by bpf/ after its own u8..u64, and by agent/ through <linux/types.h> names.
 */
#ifndef HEARTH_BPF_EVENT_H
#define HEARTH_BPF_EVENT_H

#include <linux/types.h>

#include "bpf/arch.h"

enum {
	RECORD_VERSION = 1,
	MAX_KERNEL_FRAMES = 127, /* kernel.perf_event_max_stack's default */
	MAX_USER_FRAMES = 1024,
	STACK_CHUNK_BYTES = 4096,
	RED_ZONE_BYTES = 128, /* below rsp, the x86-64 psABI's: epilogues have just popped what rules still look for there */
	MAX_STACK_CHUNKS = 2048,
	CODE_BLOCK_BYTES = 1024,    /* code that one unwind block describes; a row's start has 10 bits */
	BLOCK_ROWS = 32,	    /* a power of two: the search inside is unrolled */
	MAX_BLOCK_PARTS = 32,	    /* 1,024 rows: one each byte of code */
	FIRST_LEVEL_ENTRIES = 4096, /* of one CPU's slice, a power of two */
	COMM_BYTES = 16,
	FILTER_UIDS = 16,
	FILTER_CGROUPS = 16,
};

/* --- records --- */

enum record_kind { RECORD_SAMPLE = 1, RECORD_STACK_CHUNK = 2 };

struct record {
	__u16 kind;    /* enum record_kind */
	__u16 version; /* RECORD_VERSION */
	__u32 size;    /* bytes, this header included */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 cpu;
	__u32 seq; /* counts the records of this CPU; a gap shows a lost one */
};

/* A user frame whose pc is exact (the leaf, an interrupted frame below a signal handler) has this bit; the others are return
 * addresses. User addresses never use it. */
#define FRAME_EXACT (1ull << 63)

/* How a user walk ended. X(name, text, whether there was a user stack to walk). The last four are misses: user space walks
 * again. */
#define WALK_ENDS(X)                                                                                  \
	X(NONE, "no user part", 0)	 /* kernel thread, io worker */                               \
	X(ROOT, "root", 1)		 /* reached the outermost frame */                            \
	X(DEPTH, "depth", 1)		 /* MAX_USER_FRAMES */                                        \
	X(NO_RULE, "no rule", 1)	 /* code that no table covers */                              \
	X(NO_MAPPING, "no mapping", 1)	 /* pc outside executable memory */                           \
	X(BAD_MEMORY, "unreadable", 1)	 /* stack memory not readable */                              \
	X(NO_PROGRESS, "no progress", 1) /* the stack pointer fell again and again */                 \
	X(EXEC, "exec", 0)		 /* inside execve: registers of the old image */              \
	X(EXITING, "exiting", 0)	 /* no address space any more */                              \
	X(COMPAT, "32-bit", 1)		 /* not supported */                                          \
	X(STALE, "stale mapping", 1)	 /* a row of a mapping since replaced (user space decides) */ \
	X(COPY_LIMIT, "copy limit", 1)	 /* the stack copy ended first (user space decides) */        \
	X(MISS_PROC, "unknown process", 1)                                                            \
	X(MISS_MAPPING, "unknown mapping", 1)                                                         \
	X(MISS_BLOCK, "unknown code", 1)                                                              \
	X(USER_RULE, "exotic rule", 1) /* a rule only user space evaluates */

#define X(name, text, has_stack) END_##name,
enum walk_end { WALK_ENDS(X) END_MAX };
#undef X

enum sample_flags {
	SAMPLE_HAS_REGS = 1 << 0, /* struct sample_regs follows the frames */
	SAMPLE_LIMITED = 1 << 1,  /* chunks were withheld by the rate limit, or the ring was full */
	SAMPLE_CUT = 1 << 2,	  /* a stack may be longer than what was copied of it */
};

/* Followed by: __u64 kernel[kernel_cnt], __u64 user[user_cnt] (innermost first), struct sample_regs. Its stack chunks are
 * the chunk_cnt records of the same CPU directly before it: seq - chunk_cnt .. seq - 1; the stack it runs on first, then
 * those it came from, each by rising address; pages that could not be read are left out. */
struct sample_record {
	struct record hdr;
	__u32 pid; /* thread group, initial pid namespace */
	__u32 tid;
	__u32 asid; /* what the user part was walked under; 0: process unknown */
	__u16 kernel_cnt;
	__u16 user_cnt;
	__u8 end;   /* enum walk_end */
	__u8 flags; /* enum sample_flags */
	__u16 chunk_cnt;
	__u32 own_pid; /* of the thread group, in its own pid namespace; 0: that is the initial one */
	char comm[COMM_BYTES];
};

/* Where the goroutine goes on whose thread is on another stack now, as Go's scheduler noted it. */
struct unwind_sched {
	__u64 pc; /* 0: there is none */
	__u64 sp;
	__u64 fp;
	__u64 lr;	/* CPU_HAS_LR */
	__u64 stack_hi; /* the end of its stack */
};

struct sample_regs {
	__u64 start_boottime_ns; /* of the thread group's leader */
	__u64 exec_id;		 /* task_struct.self_exec_id */
	__u64 regs[USER_REGS];	 /* at the sample, DWARF order */
	__u64 stop_sp, stop_fp;	 /* of the last user frame, where the walk missed; sp 0: not known */
	struct unwind_sched sched;
};

struct stack_chunk {
	struct record hdr;
	__u64 addr; /* of data[0] */
	__u32 len;  /* bytes of data that are valid */
	__u32 pad;
	__u8 data[STACK_CHUNK_BYTES];
};

/* --- maps --- */

/*
 * Values of the caches may be rewritten for another key while a program looks at them (elements of preallocated maps are
 * reused at once). So each carries its own key and the same unique sequence number at both ends: the reader takes tail,
 * body, head, looks the key up again, and takes any difference for a miss.
 */

/* procs: tgid -> */
struct proc_value {
	__u32 seq_head;
	__u32 pid;
	__u64 start_boottime_ns;
	__u64 exec_id;
	__u32 asid; /* address space id, from 1, below 2^28, never reused */
	__u32 seq_tail;
};

enum mapping_kind {
	MAPPING_ROWS = 1, /* unwind_blocks describe the file */
	MAPPING_FP,	  /* frame pointers, each return address checked to be code */
	MAPPING_NOT_CODE, /* user space looked: nothing executable there */
};

/*
 * mappings: piece of address space -> the executable mapping in it. A piece is 64 MB or 1 MB where possible, so that a young
 * process needs few entries; where several mappings share one, it belongs to the largest, and the others are entered in
 * smaller ones, at last page by page.
 */
enum { MAPPING_HUGE_SHIFT = 26, MAPPING_BIG_SHIFT = 20, MAPPING_PAGE_SHIFT = 12 };

struct mapping_key {
	__u32 asid;
	__u32 shift; /* one of the three above */
	__u64 piece; /* address >> shift */
};

struct mapping_value {
	__u32 seq_head;
	__u32 asid;
	__u64 piece;
	__u64 start, end; /* what of the piece the mapping covers */
	__u64 bias;	  /* address - bias = ELF virtual address */
	__u32 file;
	__u16 kind; /* enum mapping_kind */
	__u16 shift;
	__u32 pad;
	__u32 seq_tail;
};

/*
 * One row, 8 bytes: valid from its start to the next row's.
 *
 *   63            32 31       16 15        14 13  12 11   8 7     0
 *  | offset (s32)   | fp (s16)  | start, 9-8 | base | rule | start |
 *
 * offset: CFA = base + offset. For ROW_DEREF two s16: CFA = *(base + low) + high. For ROW_PLT the constant compared with pc
 * & 15. fp: caller's frame pointer stands at CFA + 8 * fp; 0: unchanged; ROW_FP_AT_FP: at fp itself (where gcc realigned the
 * stack). The return address stands at CFA - 8. What stands in the upper half on arm64: bpf/arch_arm64.h.
 */
enum unwind_rule {
	RULE_NONE,   /* no table covers this code */
	RULE_CFA,    /* CFA = base + offset */
	RULE_DEREF,  /* CFA = *(base + off) + off2: realigned stacks */
	RULE_PLT,    /* CFA = sp + 8 + ((pc & 15) >= offset ? 8 : 0) */
	RULE_SIGNAL, /* rt_sigreturn: everything stands in the ucontext at sp */
	RULE_ROOT,   /* outermost frame */
	RULE_FP,     /* CFA = fp + 16, and the return address must be code */
	RULE_USER,   /* only user space can evaluate it */
	RULE_SCHED,  /* Go went over to a system stack: struct unwind_sched knows the goroutine's */
};
enum unwind_base { BASE_SP, BASE_FP };
enum root_base {
	ROOT_OF_ALL,
	ROOT_OF_RETURNS
};				      /* of RULE_ROOT: code that runs here has a caller, what returns here has none */
enum sched_base {		      /* of RULE_SCHED */
		  SCHED_RESUMES,      /* the caller is what the scheduler noted */
		  SCHED_RETURNS,      /* CFA = the sp it noted + offset */
		  SCHED_RETURNS_DEPTH /* CFA = stack_hi - *(sp + offset) and the return address's place: calls of C may be
					 nested, and only the last is noted */
};
enum { ROW_FP_AT_FP = -32768 };

#define ROW_START(row)	    ((__u32)(__u8)(row) | ((__u32)((row) >> 6) & 0x300))
#define ROW_BODY(row)	    ((row) & ~0xc0ffull) /* all but the start */
#define ROW_RULE(row)	    ((__u32)((row) >> 8) & 15)
#define ROW_BASE(row)	    ((__u32)((row) >> 12) & 3)
#define ROW_FP(row)	    ((__s16)((row) >> 16))
#define ROW_OFFSET(row)	    ((__s32)((row) >> 32))
#define ROW_OFF1(row)	    ((__s16)((row) >> 32))
#define ROW_OFF2(row)	    ((__s16)((row) >> 48))
#define ROW_PAIR(low, high) ((__u32)(__u16)(low) | (__u32)(__u16)(high) << 16) /* as offset */
#define ROW(start, rule, base, fp, offset)                                                               \
	((__u64)(__u8)(start) | (__u64)((start)&0x300) << 6 | (__u64)(rule) << 8 | (__u64)(base) << 12 | \
	 (__u64)(__u16)(fp) << 16 | (__u64)(__u32)(offset) << 32)

/* unwind_blocks: a kilobyte of a file's code -> rows. Code too dense for one block goes on in parts 1, 2, ... */
struct block_key {
	__u32 file;
	__u32 block; /* ELF virtual address / CODE_BLOCK_BYTES */
	__u32 part;
};

struct unwind_block {
	__u32 seq_head;
	__u32 file;
	__u32 block;
	__u16 part;
	__u16 end;		/* offsets from here on stand in the next part; CODE_BLOCK_BYTES: none */
	__u64 rows[BLOCK_ROWS]; /* sorted; the first starts where the part does */
	__u32 row_cnt;
	__u32 seq_tail;
};

/*
 * first_level: one slice a CPU (and one for programs in task context), direct mapped. The index and the tag together are
 * exactly (pc, asid): tag = asid << 35 | pc >> 12 (36 where user addresses have
 * 48 bits) and index = (pc + mix(tag)) mod 4096. Only its own CPU writes a slice.
 */
struct first_level_entry {
	__u64 tag; /* 0: empty */
	__u64 row;
};

/*
 * Which names of threads are wanted: shell patterns as one automaton, a bit a state. A state stands before an item of a
 * pattern (a character, '?' or a set); the last of each pattern is where it is matched. Reading c, the states go from s to
 * (s & accepts[c]) << 1 | (s & stays).
 */
struct comm_automaton {
	__u64 accepts[256]; /* states whose item takes this character */
	__u64 stays;	    /* states behind a '*' */
	__u64 start, end;   /* where patterns begin, and where they are matched */
};

/* --- counters, one set a CPU. X(name, is a lost sample, text) --- */
#define BPF_COUNTERS(X)                                                             \
	X(ENTRIES, 0, "times the sampling program ran")                             \
	X(IDLE, 0, "of these on an idle CPU")                                       \
	X(FILTERED, 0, "of these outside the filters")                              \
	X(TAKEN, 0, "samples taken")                                                \
	X(LOST_RING, 1, "samples lost because the ring buffer was full")            \
	X(CHUNK_RING, 0, "stack copies cut short because the ring buffer was full") \
	X(CHUNK_LIMIT, 0, "stack copies withheld by the rate limit")                \
	X(TORN, 0, "cache entries that changed under the walk")                     \
	X(MISSES, 0, "samples walked by user space because a cache had no entry")   \
	X(NOT_FOLLOWED, 0, "children not followed because the table of chosen processes was full")

#define X(name, lost, text) COUNTER_##name,
enum bpf_counter { BPF_COUNTERS(X) COUNTER_MAX };
#undef X

/* A control group of version 1. */
struct v1_group {
	__u64 id;	  /* its inode number, which is unique in its tree; 0: not one of version 1 */
	__u32 controller; /* of its tree, as enum cgroup_subsys_id of the running kernel has it */
	__u32 pad;
};

struct cpu_state {
	__u64 counters[COUNTER_MAX];
	__u64 chunk_tokens_ns; /* token bucket: time already paid for */
	__u64 events;	       /* of a tracepoint, that passed the filters */
	__u32 seq;
	__u32 pad;
};

#define HEARTH_SIZE_IS(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has a fixed size")
HEARTH_SIZE_IS(struct record, 24);
HEARTH_SIZE_IS(struct sample_record, 64);
HEARTH_SIZE_IS(struct sample_regs, 72 + 8 * USER_REGS);
HEARTH_SIZE_IS(struct stack_chunk, 24 + 16 + 4096);
HEARTH_SIZE_IS(struct proc_value, 32);
HEARTH_SIZE_IS(struct mapping_key, 16);
HEARTH_SIZE_IS(struct mapping_value, 56);
HEARTH_SIZE_IS(struct block_key, 12);
HEARTH_SIZE_IS(struct unwind_block, 16 + 8 * 32 + 8);
HEARTH_SIZE_IS(struct first_level_entry, 16);

#endif
