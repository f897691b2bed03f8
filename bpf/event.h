/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data that the kernel half and user space share: records in the ring buffers, keys and values of the maps, counters.
 * All fields have a fixed width; there are no functions. bpf/ includes this after its own u8..u64, agent/ through
 * <linux/types.h> names.
 */
#ifndef HEARTH_BPF_EVENT_H
#define HEARTH_BPF_EVENT_H

#include <linux/types.h>

#include "bpf/arch.h"
#include "bpf/context/thread_context.h"
#include "bpf/wait_event.h"

enum {
	RECORD_VERSION = 2,
	MAX_RECORD_BYTES = 40 << 10, /* of one record */
	MAX_KERNEL_FRAMES = 127,     /* kernel.perf_event_max_stack's default */
	MAX_USER_FRAMES = 1024,
	MAX_CHAIN_WORDS = 2048, /* two for each frame, marker and head of all chains of a sample */
	MAX_CHAINS = 16,	/* runtimes whose frames are linked in the heap */
	STACK_CHUNK_BYTES = 4096,
	RED_ZONE_BYTES = 128, /* bytes below rsp (x86-64 psABI): rules look there for values just popped */
	MAX_STACK_CHUNKS = 2048,
	CODE_BLOCK_BYTES = 1024,    /* code that one unwind block describes; a row's start has 10 bits */
	BLOCK_ROWS = 32,	    /* a power of two: the search inside is unrolled */
	MAX_BLOCK_PARTS = 32,	    /* 1,024 rows: one each byte of code */
	FIRST_LEVEL_ENTRIES = 4096, /* entries of one CPU's slice, a power of two */
	COMM_BYTES = 16,
	MAX_KINDS = 16,		  /* kinds of samples in a session; a power of two */
	MAX_CAPTURE_WORDS = 2048, /* of all frames of a sample, heads included; a power of two */
	CAPTURE_WORDS = 4,	  /* of one frame, without its head */
	CAPTURE_CLASSES = 16,	  /* a power of two */
	POOL_LEVELS = 2,	  /* programs that may be preempted on a CPU (bpf/levels.bpf.h); a power of two */
	/* Programs that may interrupt each other on a CPU: in a thread, in an interrupt, in an NMI; and those of the pool.
	 * User space uses the last one for what it is told of sleeping threads. */
	MAX_LEVELS = 5 + POOL_LEVELS,
	PROBES_PAGE_BYTES = 4096, /* of the page that the kernel has for probes in a process */
	MAX_PROBED_CALLS = 64,	  /* calls with a probe at their end that a thread is in: kernel's MAX_URETPROBE_DEPTH */
	MAX_ENVIRONMENT_BYTES = 16 << 10, /* of a program, that go with its first sample; a power of two */
	MAX_WAKES = 4,			  /* threads that one waker has woken; a power of two */
	FILTER_UIDS = 16,
	FILTER_CGROUPS = 16,
};

/* --- records --- */

enum record_kind { RECORD_SAMPLE = 1, RECORD_STACK_CHUNK = 2, RECORD_OBJECT = 3 };

struct record {
	__u8 kind;     /* enum record_kind */
	__u8 level;    /* of the program on its CPU, below MAX_LEVELS */
	__u16 version; /* RECORD_VERSION */
	__u32 size;    /* bytes, this header included */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 cpu;
	__u32 seq; /* counts the records of this CPU and level; a gap shows a lost one */
};

/* A user frame whose pc is exact (the leaf, an interrupted frame below a signal handler) has this bit; the others are return
 * addresses. User addresses never use it. */
#define FRAME_EXACT (1ull << 63)

/* How a user walk ended. X(name, text, whether there was a user stack). The last four are misses: user space walks again. */
#define WALK_ENDS(X)                                                                                                  \
	X(NONE, "no user part", 0)	 /* kernel thread, io worker */                                               \
	X(ROOT, "root", 1)		 /* reached the outermost frame */                                            \
	X(DEPTH, "depth", 1)		 /* MAX_USER_FRAMES, or MAX_WALKED_FRAMES */                                  \
	X(NO_RULE, "no rule", 1)	 /* code that no table covers */                                              \
	X(NO_MAPPING, "no mapping", 1)	 /* pc outside executable memory */                                           \
	X(BAD_MEMORY, "unreadable", 1)	 /* stack memory not readable */                                              \
	X(NO_PROGRESS, "no progress", 1) /* the stack pointer fell again and again */                                 \
	X(EXEC, "exec", 0)		 /* inside execve: registers of the old image */                              \
	X(EXITING, "exiting", 0)	 /* no address space any more */                                              \
	X(COMPAT, "32-bit", 1)		 /* not supported */                                                          \
	X(STALE, "stale mapping", 1)	 /* the row is of a mapping that was replaced since (user space decides) */   \
	X(COPY_LIMIT, "copy limit", 1)	 /* the stack copy ended first (user space decides) */                        \
	X(OUTSIDE, "not in /proc", 1)	 /* a process of another pid namespace: SAMPLE_OUTSIDE */                     \
	X(BUDGET, "too many stacks", 1)	 /* its process had more different ones than are kept (user space decides) */ \
	X(UPROBE, "uretprobe", 1)	 /* a return address that a uretprobe took, and nobody knows the true one */  \
	X(MISS_PROC, "unknown process", 1)                                                                            \
	X(MISS_MAPPING, "unknown mapping", 1)                                                                         \
	X(MISS_BLOCK, "unknown code", 1)                                                                              \
	X(USER_RULE, "exotic rule", 1) /* a rule only user space evaluates */

#define X(name, text, has_stack) END_##name,
enum walk_end { WALK_ENDS(X) END_MAX };
#undef X

enum sample_flags {
	SAMPLE_LIMITED = 1 << 1, /* chunks were withheld by the rate limit, or the ring was full */
	SAMPLE_CUT = 1 << 2,	 /* a stack may be longer than the part that was copied */
	SAMPLE_OUTSIDE = 1 << 3, /* the task has no pid in the namespace whose pids are told: pid and tid are 0 */
	SAMPLE_ASLEEP = 1 << 4,	 /* told of a thread while it sleeps: its stack is still in its memory */
	SAMPLE_IRQ = 1 << 5,	 /* of SECTION_WAKES: an interrupt woke, whatever thread it interrupted; no pid */
};

/*
 * Sections follow up to the record's end. The stack chunks of a sample are the chunk_cnt records of the same CPU and level
 * directly before it: seq - chunk_cnt .. seq - 1; first the stack it runs on, then the stacks it came from, each by rising
 * address; pages that could not be read are left out.
 */
struct sample_record {
	struct record hdr; /* size: MAX_RECORD_BYTES at most. Frames without room are left out, and the end says so */
	__u32 pid;	   /* thread group, in the pid namespace of cfg_pid_ns */
	__u32 tid;
	__u32 asid; /* address space under which the user part was walked; 0: process unknown */
	__u8 end;   /* enum walk_end */
	__u8 flags; /* enum sample_flags */
	__u16 kind; /* the place of the sample's kind in the session's list of kinds */
	__u16 chunk_cnt;
	__u16 pad;
	__u32 own_pid; /* thread group in its own pid namespace; 0: that is pid's namespace */
	char comm[COMM_BYTES];
};

/*
 * A section: one word (SECTION) that says its type and how many bytes of content follow; they are padded to whole words.
 * Sections come in any order, at most one of each type. User space passes over types that it does not know. Numbers are
 * never used again.
 */
enum section_type {
	SECTION_KERNEL = 1, /* __u64 frames of the kernel, innermost first; 1 to MAX_KERNEL_FRAMES */
	SECTION_USER = 2,   /* __u64 user frames, innermost first, with FRAME_EXACT; 1 to MAX_USER_FRAMES */
	SECTION_REGS = 3,   /* struct sample_regs: user space must walk again */
	SECTION_VALUE = 4,  /* one __u64: the sample's weight in the unit of its kind; without this section 1 */
	/* __u64 sp of the first user frame, then for each user frame __u32 how far its sp is above that (SP_FAR: further
	 * than that tells). Only with SECTION_CHAIN */
	SECTION_STACK_POINTERS = 5,
	SECTION_CHAIN = 6, /* __u64 words: pairs, see enum chain_word */
	/* __u64 words of user frames by which a runtime names them: for each such frame CAPTURE_HEAD, then its words. */
	SECTION_CAPTURES = 7,
	SECTION_LABELS = 8, /* words of labels that the thread works under: for each LABEL_HEAD, key and value */
	SECTION_LINK = 9,   /* struct span_info: the span that the thread works on */
	SECTION_MORE = 10,  /* pairs of __u64: kind and value of further samples with the same stack */
	SECTION_WAIT = 11,  /* struct wait_info */
	SECTION_PROBE = 12, /* struct probe_info, up to the last of its arguments */
	/* Pairs of __u64, for user space to walk again: the address to which functions with a probe at their end return, and
	 * 0; then of each such call, innermost first, sp as it began, and the address to which it returns. */
	SECTION_RETURNS = 13,
	SECTION_CONTEXT = 14, /* bytes: attributes of the thread's context (OTEP 4947), as it has them */
	SECTION_WAKES = 15,   /* struct wake, MAX_WAKES at most: the stack is of the thread that ended these waits */
	SECTION_TARGET = 16,  /* struct wait_target */
	SECTION_PAGE = 17,    /* one __u64: an address in memory that was touched */
	/* With END_MISS_PROC alone: */
	SECTION_CGROUP = 18,	  /* one __u64: id of the control group of version 2 */
	SECTION_ENVIRONMENT = 19, /* bytes: all of the program's, if they are in memory and have room */
};

#define SP_FAR 0xffffffffu

/* @frame: the user frame's place in SECTION_USER; @class: as its row names it; @count: of words that follow. */
#define CAPTURE_HEAD(frame, class, count) ((__u64)(frame) | (__u64)(class) << 16 | (__u64)(count) << 32)
#define CAPTURE_FRAME_OF(head)		  ((__u16)(head))
#define CAPTURE_CLASS_OF(head)		  ((__u16)((head) >> 16))
#define CAPTURE_COUNT_OF(head)		  ((__u32)((head) >> 32))

#define SECTION(type, bytes)   ((__u64)(type) | (__u64)(bytes) << 32)
#define SECTION_TYPE(section)  ((__u16)(section))
#define SECTION_BYTES(section) ((__u32)((section) >> 32))

enum { PROBE_ARGS = 4, PROBE_NO_REGISTER = 0xffff };

/* The probe that a sample of a probe was taken at. */
struct probe_info {
	__u32 probe;		/* its place in the session's list */
	__u32 arg_cnt;		/* of these: */
	__u64 args[PROBE_ARGS]; /* values of arguments, as the probe wants them */
};

/* The place where the goroutine goes on while its thread is on another stack, as Go's scheduler noted it; or the stack of
 * the Erlang process that the thread runs; or, with a stack_hi of 0, the frame of a virtual machine: its code from pc to fp,
 * its stack pointer, and lr, which is not 0 where code that it made runs in that frame. */
struct unwind_sched {
	__u64 pc; /* 0: there is none */
	__u64 sp;
	__u64 fp;
	__u64 lr;	/* CPU_HAS_LR */
	__u64 stack_hi; /* the end of its stack */
};

/* Where a virtual machine, or code that runs in its frame, has its stack pointer below that, it is at most so far. */
enum { VM_FRAME_BELOW_BYTES = 4096 };

struct sample_regs {
	__u64 start_boottime_ns; /* of the thread group's leader */
	__u64 exec_id;		 /* task_struct.self_exec_id */
	__u64 regs[USER_REGS];	 /* registers at the sample, in DWARF order */
	__u64 stop_sp, stop_fp;	 /* registers of the last user frame, where the walk missed; sp 0: not known */
	struct unwind_sched sched;
};

/*
 * Frames that a runtime has linked in its heap, as pairs of words: CHAIN_WORD(kind, value) and a second word. One chain for
 * each runtime of the process, each begun by its head.
 */
enum chain_word {
	CHAIN_HEAD = 1, /* value: enum runtime_id; second: CHAIN_OUTCOME */
	CHAIN_FRAME,	/* value: address of the function's object (code object); second: CHAIN_PLACE */
	/* A segment ends: the frames since the last marker were run by one native frame of the interpreter's loop. Value: an
	 * address that lies in that native frame; 0: the runtime has none. Second: 0. */
	CHAIN_MARKER,
	/* Value: an address that lies in a native frame of the loop, innermost first; before the chain's frames. Its
	 * segments, whose markers have no addresses, are paired with these from the root. Second: 0. */
	CHAIN_LOOP,
	/* Value: an address that lies in the native frame which began, or went on with, the coroutine that the frames since
	 * the last such word, or the head, are of. Segments of it that waited while it slept have no native frame. Second:
	 * 0. */
	CHAIN_COROUTINE,
};

#define CHAIN_WORD(kind, value) ((__u64)(kind) << 56 | ((value) & ~(255ull << 56)))
#define CHAIN_KIND(word)	((__u32)((word) >> 56))
#define CHAIN_VALUE(word)	((word) & ~(255ull << 56))

/* The place in a function, as the runtime has it, and the check of its object: memory of an object that is gone may hold
 * another. */
#define CHAIN_PLACE(place, check) ((__u64)(check) << 32 | (__u32)(place))
#define CHAIN_CHECK(word)	  ((__u32)((word) >> 32))

/*
 * How a chain ended. X(name, text). ROOT: with the outermost frame. NO_THREAD: the thread runs no script. DEPTH:
 * MAX_CHAIN_WORDS. TORN: the words make no sense, as the interpreter was in the middle of a change.
 */
#define CHAIN_ENDS(X)                   \
	X(ROOT, "root")                 \
	X(NO_THREAD, "no thread state") \
	X(DEPTH, "depth")               \
	X(BAD_MEMORY, "unreadable")     \
	X(TORN, "torn")

#define X(name, text) CHAIN_END_##name,
enum chain_end { CHAIN_ENDS(X) CHAIN_END_MAX };
#undef X

/* The lock that lets one thread of an interpreter run at a time. HELD: by the thread. WAITING: it sleeps until it gets it.
 * RELEASED: neither. UNKNOWN: the runtime has no such lock, or its state is not known. */
enum chain_lock { CHAIN_LOCK_UNKNOWN, CHAIN_LOCK_HELD, CHAIN_LOCK_WAITING, CHAIN_LOCK_RELEASED, CHAIN_LOCK_MAX };

/* enum chain_end and enum chain_lock in one word. */
#define CHAIN_OUTCOME(end, lock) ((__u64)(end) | (__u64)(lock) << 32)
#define CHAIN_END_OF(outcome)	 ((__u32)(outcome))
#define CHAIN_LOCK_OF(outcome)	 ((__u32)((outcome) >> 32))

/* The runtimes with chains. */
enum runtime_id { RUNTIME_PYTHON, RUNTIME_PHP, RUNTIME_PERL, RUNTIME_RUBY, RUNTIME_LUA, RUNTIME_LUAJIT, RUNTIME_ID_MAX };

/* In place of a runtime's number: the process says what its threads work on (bpf/context/). */
enum { CONTEXT_ID = MAX_CHAINS - 1 };

/* Places in the table of programs for tail calls: first those that collect chains, by runtime (bpf/runtime/), and the one
 * that reads the context, at CONTEXT_ID. */
enum { PROGRAM_WALK = MAX_CHAINS, PROGRAM_SEND, PROGRAM_MAX };

/*
 * A function's object, copied before the first sample that has it in a chain: parts of part_bytes[] each, one behind the
 * other. The runtime says what each is.
 */
enum { OBJECT_PARTS = 4, OBJECT_DATA_BYTES = 8192 };

struct object_record {
	struct record hdr;
	__u64 addr;
	__u32 pid;
	__u32 asid;
	__u32 runtime;			/* enum runtime_id */
	__u32 check;			/* of the object's content; CHAIN_PLACE */
	__u16 part_bytes[OBJECT_PARTS]; /* 0: could not be read, or is empty */
	__u32 part_state[OBJECT_PARTS]; /* the runtime's word on the part, such as how its text is encoded */
	__u8 is_cut;			/* bit i: part i is longer, or could not be read */
	__u8 pad[7];
};

struct stack_chunk {
	struct record hdr; /* size: up to the last valid byte of data */
	__u64 addr;	   /* user address of data[0] */
	__u32 len;	   /* bytes of data that are valid */
	__u32 pid;	   /* the sample's */
	__u8 data[STACK_CHUNK_BYTES];
};

enum { CHUNK_HEAD_BYTES = 40 }; /* of a stack_chunk, before its data */

/* --- maps --- */

/*
 * Values of the caches may be rewritten for another key while a program looks at them (elements of preallocated maps are
 * reused at once). So each value carries its own key and the same unique sequence number at both ends. The reader takes
 * tail, body and head, looks the key up again, and treats any difference as a miss.
 */

/* procs: tgid -> */
struct proc_value {
	__u32 seq_head;
	__u32 pid;
	__u64 start_boottime_ns;
	__u64 exec_id;
	__u32 asid;	/* address space id, from 1, below 2^28, never reused */
	__u32 runtimes; /* bit i: chain_states has the state of enum runtime_id i for this asid */
	__u32 pad;
	__u32 seq_tail;
};

/* The way from a thread to its thread state. */
enum thread_place {
	THREAD_TLS,	  /* *(tp + offset): static TLS */
	THREAD_TLS_SLOT,  /* *(tp + *addr + offset): static TLS whose offset the loader wrote at addr */
	THREAD_TLS_INDEX, /* *(the block of module *addr + *(addr + 8) + offset): the argument of __tls_get_addr is at addr
			   */
	THREAD_TLS_DESC,  /* a TLS descriptor is at addr: *(addr + 8) is an offset as above, or the address of that argument
			   */
	THREAD_KEY,    /* pthread_getspecific(*(u32 *)addr); the values are at tp + offset: glibc's blocks of 32 keys, or the
			  address of musl's array */
	THREAD_GLOBAL, /* *addr */
	THREAD_STACK,  /* it is on the native stack: the runtime's own program finds it */
};

/* The C library, by which the way to a key's value or to a block of TLS goes. */
enum thread_libc { THREAD_GLIBC, THREAD_MUSL };

struct thread_locator {
	__u16 place; /* enum thread_place */
	__u16 libc;  /* enum thread_libc */
	__s32 offset;
	__u64 addr;
};

/* chain_states: how a runtime looks in an address space. */
struct chain_key {
	__u32 asid;
	__u32 runtime;
};

/* The key's runtime where a thread of one whose code has a reader (agent/runtime/code/) tells more than its stack. */
#define CHAIN_OF_CODE(code) (MAX_CHAINS + (code))

/* chain_state's offset of BEAM, whose threads have a scheduler: where this has its process, and where that has the stack
 * pointer of Erlang's stack, the start of the memory that the stack is in, and its end. 0: not known. */
enum beam_thread { BEAM_PROCESS, BEAM_STACK_POINTER, BEAM_HEAP, BEAM_STACK_END, BEAM_THREAD_MAX };
enum { CHAIN_OF_BEAM = MAX_CHAINS + 2 /* CODE_BEAM */ };

/* In place of an asid: the runtime as any process has it that runs program file number @file, all at bias 0. */
#define CHAIN_OF_PROGRAM(file) ((__u32)(file) | 1u << 31)

/* programs: program file -> its runtimes, for processes that the kernel does not know yet. */
struct program_key {
	__u64 inode;
	__u32 dev; /* major << 20 | minor */
	__u32 pad;
};

struct program_value {
	__u64 text_vaddr; /* ELF address of its first executable segment */
	__u32 file;
	__u32 runtimes; /* bit i: chain_states has that of CHAIN_OF_PROGRAM(file) */
};

enum { CHAIN_OFFSETS = 32, CHAIN_DATA = 2 };

struct chain_state {
	__u32 seq_head;
	__u32 asid;
	__u32 runtime;
	__u32 style; /* the runtime's own: how its frames are linked */
	struct thread_locator thread;
	__u64 type;		     /* address that every object of a function has as its type; 0: not known */
	__u64 data[CHAIN_DATA];	     /* further addresses, the runtime's own; 0: not known */
	__u16 offset[CHAIN_OFFSETS]; /* the runtime's own */
	/* Of CHAIN_OF_PROGRAM, where the runtime is in a library: ELF addresses of the program's word for debuggers
	 * (DT_DEBUG), by which the linker's list of libraries is found, and of the library's dynamic section, by which it is
	 * told. */
	__u64 debug, dynamic;
	__u64 global; /* address of the runtime's own global variable; 0: not needed */
	__u32 lock;   /* the runtime's own: the way to its lock (enum chain_lock); 0: there is none, or it is not known */
	__u32 seq_tail;
};

enum mapping_kind {
	MAPPING_ROWS = 1, /* unwind_blocks describe the file's code */
	MAPPING_FP,	  /* frame pointers, each return address checked to be code */
	MAPPING_NOT_CODE, /* user space found nothing executable there */
};

/* filter_pids: a followed process stands under its pid in the first namespace. A process that user space gives stands under
 * its pid in cfg_pid_ns with this bit, if that is another namespace. */
#define FILTER_PID_TOLD (1ull << 32)

/*
 * mappings: piece of address space -> the executable mapping in it. A piece is 64 MB or 1 MB where possible, so that a young
 * process needs few entries. A piece that several mappings share belongs to the largest of them; the others are entered in
 * smaller pieces, at last page by page.
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
	__u64 start, end; /* the part of the piece that the mapping covers */
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
 * stack). The return address stands at CFA - 8. bpf/arch_arm64.h describes the upper half on arm64.
 */
enum unwind_rule {
	RULE_NONE,   /* no table covers this code */
	RULE_CFA,    /* CFA = base + offset */
	RULE_DEREF,  /* CFA = *(base + off) + off2: realigned stacks */
	RULE_PLT,    /* CFA = sp + 8 + ((pc & 15) >= offset ? 8 : 0) */
	RULE_SIGNAL, /* rt_sigreturn: the ucontext at sp has all registers */
	RULE_ROOT,   /* outermost frame */
	RULE_FP,     /* CFA = fp + 16, and the return address must be code */
	RULE_USER,   /* only user space can evaluate it */
	RULE_SCHED,  /* Go or Erlang changed to a system stack: struct unwind_sched has the goroutine's, the process's */
	RULE_FRAME, /* a frame of a runtime, whose frame pointer it keeps as C does: the return address stands at fp + 8, the
		       caller's fp at fp; CFA by enum frame_base. fp is the class of its captures; 0: none */
};
enum unwind_base { BASE_SP, BASE_FP };
enum root_base {
	ROOT_OF_ALL,
	ROOT_OF_RETURNS
};				 /* with RULE_ROOT: code that runs here has a caller, a frame that returns here has none */
enum sched_base {		 /* of RULE_SCHED */
		  SCHED_RESUMES, /* the caller is what the scheduler noted */
		  SCHED_RETURNS, /* CFA = the sp it noted + offset */
		  SCHED_RETURNS_DEPTH /* CFA = stack_hi - *(sp + offset) and the return address's place: calls of C may be
					 nested, and only the last is noted */
};
enum frame_base {	       /* of RULE_FRAME */
		  FRAME_DEREF, /* CFA = *(fp + off) + off2 */
		  FRAME_PLAIN  /* CFA = fp + off */
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

/* capture_classes: the words of a frame that go with the sample. */
struct capture_class {
	__u32 count; /* CAPTURE_WORDS at most */
	struct {
		__s16 offset; /* from fp */
		__s16 reg;    /* DWARF's number of the register that has the word in the frame where the thread stands; -1 */
		__s16 follow; /* not 0: the word so far behind where that word points goes, if it can be read */
	} words[CAPTURE_WORDS];
};

/* unwind_blocks: a kilobyte of a file's code -> rows. Code that is too dense for one block continues in parts 1, 2, ... */
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
 * first_level: one slice for each CPU and level, direct mapped. The index and the tag together are
 * exactly (pc, asid): tag = asid << 35 | pc >> 12 (36 where user addresses have
 * 48 bits) and index = (pc + mix(tag)) mod 4096. Only its own CPU and level
 * write a slice.
 */
struct first_level_entry {
	__u64 tag; /* 0: empty */
	__u64 row;
};

/*
 * The names of threads that are wanted: shell patterns as one automaton, with a bit for each state. A state stands before an
 * item of a pattern (a character, '?' or a set); in the last state of a pattern the name has matched. Reading c, the states
 * go from s to (s & accepts[c]) << 1 | (s & stays).
 */
struct comm_automaton {
	__u64 accepts[256]; /* states whose item takes this character */
	__u64 stays;	    /* states behind a '*' */
	__u64 start, end;   /* where patterns begin, and where they are matched */
};

/* --- counters of all kinds together, one set for each CPU and level. X(name, text) --- */
#define BPF_COUNTERS(X)                                                                         \
	X(ENTRIES, "times the sampling program ran")                                            \
	X(IDLE, "of these on an idle CPU")                                                      \
	X(FILTERED, "of these outside the filters")                                             \
	X(CHUNK_RING, "stack copies cut short because the ring buffer was full")                \
	X(CHUNK_LIMIT, "stack copies withheld by the rate limit")                               \
	X(TORN, "cache entries that changed under the walk")                                    \
	X(MISSES, "samples walked by user space because a cache had no entry")                  \
	X(NOT_FOLLOWED, "children not followed because the table of chosen processes was full") \
	X(OBJECTS, "objects of functions sent")                                                 \
	X(OBJECT_RING, "objects of functions not sent because the ring buffer was full")        \
	X(OBJECT_LIMIT, "objects of functions withheld by the rate limit")                      \
	X(OBJECT_UNREADABLE, "objects of functions that could not be read")                     \
	X(CAPTURES, "samples whose captured words had no room")                                 \
	X(LABELS_CUT, "samples with labels that were left out, or cut short")                   \
	X(CONTEXT_UNREADABLE, "samples whose labels or context could not be read")              \
	X(FOLDED, "frames of deep recursion passed over by the kernel's walks")

#define X(name, text) COUNTER_##name,
enum bpf_counter { BPF_COUNTERS(X) COUNTER_MAX };
#undef X

/* Places of the kernel half where a sample that was taken may be lost. X(name, text) */
#define KERNEL_LOSSES(X)                                                            \
	X(RING, "ring full")                                                        \
	X(LEVEL, "no free level") /* within as many programs as there are levels */ \
	X(LATE, "thread went on") /* before its stack was read */                   \
	X(LIMIT, "rate limit")

#define X(name, text) KERNEL_LOSS_##name,
enum kernel_loss { KERNEL_LOSSES(X) KERNEL_LOSS_MAX };
#undef X

/* A control group of version 1. */
struct v1_group {
	__u64 id;	  /* its inode number, which is unique in its tree; 0: not one of version 1 */
	__u32 controller; /* controller of its tree, a value of the running kernel's enum cgroup_subsys_id */
	__u32 pad;
};

struct cpu_state {
	__u64 counters[COUNTER_MAX];
	__u64 taken[MAX_KINDS]; /* samples, by kind; and their values, where the kind has any */
	__u64 taken_value[MAX_KINDS];
	__u64 lost[KERNEL_LOSS_MAX][MAX_KINDS]; /* of these; but for KERNEL_LOSS_LEVEL, which struct level_state has */
	__u64 lost_value[KERNEL_LOSS_MAX][MAX_KINDS];
	__u64 chunk_tokens_ns; /* token bucket: the time up to which it was spent */
	__u64 events;	       /* events of a tracepoint that passed the filters */
	__u64 object_tokens;   /* token bucket of object records: the time up to which it was spent */
	__u64 told_program;    /* whose environment this CPU sent last (bpf/program.bpf.h) */
	__u32 seq;
	__u32 pad;
};

/* The levels of a CPU (bpf/levels.bpf.h). */
struct level_state {
	__u32 taken; /* levels that programs have taken */
	__u32 pad;
	__u64 refused[MAX_KINDS], refused_value[MAX_KINDS]; /* KERNEL_LOSS_LEVEL */
	__u64 owners[POOL_LEVELS];			    /* of the levels of the pool: pid_tgid; 0: free */
};

#define HEARTH_SIZE_IS(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has a fixed size")
HEARTH_SIZE_IS(struct record, 24);
HEARTH_SIZE_IS(struct sample_record, 64);
HEARTH_SIZE_IS(struct wait_info, 24);
HEARTH_SIZE_IS(struct wake, 24);
HEARTH_SIZE_IS(struct wait_target, 32 + TARGET_NAME_BYTES);
HEARTH_SIZE_IS(struct probe_info, 8 + 8 * PROBE_ARGS);
HEARTH_SIZE_IS(struct sample_regs, 72 + 8 * USER_REGS);
HEARTH_SIZE_IS(struct stack_chunk, CHUNK_HEAD_BYTES + 4096);
HEARTH_SIZE_IS(struct object_record, 80);
HEARTH_SIZE_IS(struct proc_value, 40);
HEARTH_SIZE_IS(struct chain_state, 32 + 8 + 8 * CHAIN_DATA + 2 * CHAIN_OFFSETS + 24 + 8);
HEARTH_SIZE_IS(struct mapping_key, 16);
HEARTH_SIZE_IS(struct mapping_value, 56);
HEARTH_SIZE_IS(struct block_key, 12);
HEARTH_SIZE_IS(struct capture_class, 4 + 6 * CAPTURE_WORDS);
HEARTH_SIZE_IS(struct unwind_block, 16 + 8 * 32 + 8);
HEARTH_SIZE_IS(struct first_level_entry, 16);

#endif
