/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts that the programs of bpf/runtime/ share: each collects the frames that one runtime has linked in its heap, while
 * the thread stands still, and writes them as words of SECTION_CHAIN before the walk adds the user frames. Objects of
 * functions that this CPU has not sent of late go into the ring first, so their names outlive the process. A program takes
 * the place of collect_chains() (bpf/sampler.bpf.c), calls the next runtime's, and never ends the sample. Each is an object
 * of its own, loaded when its runtime is first met, that shares the sampler's maps. Without subprograms, which older kernels
 * do not mix with tail calls.
 */
#ifndef HEARTH_BPF_RUNTIME_CHAIN_H
#define HEARTH_BPF_RUNTIME_CHAIN_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/levels.bpf.h"
#include "bpf/runtime/thread.bpf.h"

enum {
	CHAIN_WINDOW_BYTES = 4096,
	CHAIN_NEIGHBOUR_BYTES = 128, /* a frame may run over the window's end by this */
	CHAIN_OWN_WORDS = 40,
	SENT_SETS_SHIFT = 9,
	SENT_SETS = 1 << SENT_SETS_SHIFT, /* a slice for each CPU and level */
	SENT_WAYS = 4,
	BELIEVED_SHIFT = 10,
	BELIEVED = 1 << BELIEVED_SHIFT,	 /* the places of 64 KB of frames */
	TICK_SHIFT = 20,		 /* times of objects are in ticks of 2^20 ns */
	OBJECT_BYTES_A_SECOND = 4 << 20, /* of one CPU; twice that may be saved up */
	OBJECT_BURST_SECONDS = 2,
};
#define TICKS(seconds) ((__u32)((seconds)*1000000000ull >> TICK_SHIFT))
/* An old object that was looked at so lately is believed to be the same. */
#define RECHECK_TICKS TICKS(1)
/* User space may have lost an object: it is sent again after so long, 69 s. */
enum { RESEND_SHIFT = 16 };
/* An object that is younger is looked at for each frame: what programs make and drop is young. */
#define OLD_TICKS TICKS(10)

/* An object that was sent. Only its own CPU and level write a slice. */
struct sent_object {
	__u64 addr;
	__u32 pid;
	__u32 check;   /* checksum over the content that differs from object to object */
	__u32 witness; /* of a word of the frame that is another one with another object at this address, as a rule */
	__u32 since;   /* it was first seen then, in ticks, which wrap around */
	__u32 checked; /* it was looked at last then ... */
	__u32 sample;  /* ... for this sample */
};

/* Objects whose addresses have the same hash: two lines of a CPU's cache. */
struct sent_set {
	struct sent_object way[SENT_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* begins at a page */
	__uint(max_entries, SENT_SETS);
	__type(key, __u32);
	__type(value, struct sent_set);
} sent_objects SEC(".maps");

/*
 * What the frame at one address was last found to be: frames are neighbours, so that their entries are, which costs less
 * than the objects' own, all over the table, where caches are cold. Of old objects alone.
 */
struct believed {
	__u64 object;
	__u64 with; /* another word of the frame, which says that it is still the same */
	__u32 pid;
	__u32 check;
	__u32 line;
	__u32 until; /* the object is looked at again then, in ticks */
};

/* The chain in the making. In map memory the verifier does not follow its values, so loops converge. */
struct chain_work {
	struct chain_state state;
	__u32 state_asid; /* it is this address space's; 0: nobody's ... */
	__u32 state_key;  /* ... and its threads' key; NO_KEY: not known */
	__u64 window_at;  /* user address of window[0] */
	__u32 window_len;
	__u32 at;	  /* index in scratch->words of the next word */
	__u32 head;	  /* index of this chain's second word */
	__u32 left;	  /* words that may still follow */
	__u32 sent_first; /* index of this slot's slice */
	__u32 sent_way;	  /* where find_sent() found the object */
	__u32 now;	  /* the sample's time in ticks */
	__u32 sample;	  /* counts them */
	__u32 end;	  /* enum chain_end */
	__u64 frame;	  /* the runtime's own: where its walk is */
	__u64 segment;
	__u64 own[CHAIN_OWN_WORDS]; /* and more of it */
	__u8 window[CHAIN_WINDOW_BYTES + CHAIN_NEIGHBOUR_BYTES];
	__u64 side_at; /* a second window, for what frames keep elsewhere */
	__u32 side_len;
	__u32 lock; /* enum chain_lock */
	__u8 side[CHAIN_WINDOW_BYTES + CHAIN_NEIGHBOUR_BYTES];
	struct object_record object;
	__u8 data[OBJECT_DATA_BYTES]; /* directly behind */
	__u8 room[OBJECT_DATA_BYTES]; /* that a masked index may run into */
	struct believed believed[BELIEVED];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU and level */
	__type(key, __u32);
	__type(value, struct chain_work);
} chain_works SEC(".maps");

struct chain {
	struct scratch *scratch;
	struct chain_work *work;
	struct cpu_state *cpu;
};

/* May an object of a process be at @word? */
static __always_inline bool is_address(__u64 word)
{
	return word >= 4096 && !(word & 7) && !(word >> 47);
}

/* Where the thread's native stack is, which its chain is searched on. */
static __always_inline __u64 stack_pointer(const struct chain *c)
{
	return c->scratch->regs.regs[REG_SP];
}

enum { MAX_KEYS = 1024 /* PTHREAD_KEYS_MAX */, NO_KEY = MAX_KEYS };

/*
 * The key under which threads have their states. A process makes it once, so the sample before on this CPU may know it:
 * each page that is read costs a look at page tables. 0, or 1: it has none yet.
 */
static __always_inline int read_key(struct chain *c, __u32 *ret)
{
	struct chain_work *w = c->work;

	*ret = w->state_key;
	if (*ret >= MAX_KEYS && (bpf_probe_read_user(ret, sizeof(*ret), (void *)w->state.thread.addr) || *ret >= MAX_KEYS))
		return 1;
	w->state_key = w->state_asid ? *ret : NO_KEY;
	return 0;
}

/* The address of the value of the threads' key; @values as THREAD_KEY has it. 0; 1: it has no place. */
static __always_inline int find_key(struct chain *c, __u64 values, __u64 *ret)
{
	bool is_glibc = c->work->state.thread.libc == THREAD_GLIBC;
	__u64 at = values - sizeof(__u64) * 2 * 32; /* nptl/descr.h: the first block stands before the blocks' addresses */
	__u32 key;

	if (read_key(c, &key))
		return 1;
	if (is_glibc)
		values += key / 32 * 8; /* blocks of 32 keys, {seq, data} each */
	if ((!is_glibc || key >= 32) && (read_word(values, &at) || !at))
		return 1;
	*ret = is_glibc ? at + key % 32 * 16 + 8 : at + (__u64)key * 8;
	return 0;
}

/* The address of the thread state of the current thread. 0; 1: it cannot be read, or the thread has none. */
static __always_inline int find_thread(struct chain *c, __u64 *ret)
{
	const struct thread_locator *l = &c->work->state.thread;
	__u64 tp = c->scratch->walk.thread_pointer, index = l->addr, at = 0;
	__s64 offset = l->offset;

	if (l->place == THREAD_TLS) {
		at = tp;
	} else if (l->place == THREAD_TLS_SLOT || l->place == THREAD_TLS_DESC) {
		if (read_word(index + (l->place == THREAD_TLS_DESC ? 8 : 0), &index))
			return 1;
		if (l->place == THREAD_TLS_SLOT || (__s64)index == (__s32)index)
			at = tp + index;
	} else if (l->place == THREAD_KEY) {
		if (find_key(c, tp + offset, &at))
			return 1;
		offset = 0;
	} else if (l->place == THREAD_GLOBAL) {
		at = index;
		offset = 0;
	}
	if (!at && find_tls(tp, l->libc, index, &at))
		return 1;
	if (!read_word(at + offset, ret) && *ret)
		return 0;
	c->work->state_key = NO_KEY; /* a process may do away with it */
	return 1;
}

/* Takes the state of the runtime @id in the sample's address space. 0, or 1: there is none. */
static __always_inline int take_state(struct chain *c, __u32 id)
{
	if (c->work->state_asid != c->scratch->walk.chain_asid)
		c->work->state_key = NO_KEY;
	return take_state_of(&c->scratch->walk, id, &c->work->state, &c->work->state_asid);
}

/* Fills @c. 0, or 1 where there is no such CPU. */
static __always_inline int chain_open(struct chain *c)
{
	struct place at;

	level_find(&at);
	c->cpu = bpf_map_lookup_elem(&cpu_states, &at.slot);
	c->scratch = bpf_map_lookup_elem(&scratches, &at.slot);
	c->work = bpf_map_lookup_elem(&chain_works, &at.slot);
	return !c->cpu || !c->scratch || !c->work;
}

/* Begins the chain of runtime @id. 0, or 1: there is nothing to collect. */
static __always_inline int chain_begin(struct chain *c, __u32 id)
{
	struct walk *walk;

	walk = &c->scratch->walk;
	walk->runtimes &= ~(1u << id);
	if (take_state(c, id))
		return 1;
	/* The first chain leaves a word for the section's head. */
	c->work->at = walk->chain_cnt ? walk->user_at - 1 : walk->user_at;
	c->work->left = MAX_CHAIN_WORDS - walk->chain_cnt - walk->context_cnt;
	c->work->window_len = 0;
	c->work->window_at = 0;
	c->work->side_len = 0;
	c->work->side_at = 0;
	c->work->end = CHAIN_END_NO_THREAD;
	c->work->lock = CHAIN_LOCK_UNKNOWN;
	c->work->sent_first = walk->slot * SENT_SETS;
	c->work->now = c->scratch->sample.hdr.time_ns >> TICK_SHIFT;
	c->work->sample++;
	if (c->work->left < 4)
		return 1;
	c->scratch->words[word_index(c->work->at)] = CHAIN_WORD(CHAIN_HEAD, id);
	c->work->head = c->work->at + 1;
	c->work->at += 2;
	c->work->left -= 2;
	return 0;
}

/* Closes it: work->end is set. */
static __always_inline void chain_close(struct chain *c)
{
	struct walk *walk = &c->scratch->walk;

	c->scratch->words[word_index(c->work->head)] = CHAIN_OUTCOME(c->work->end, c->work->lock);
	walk->chain_cnt = MAX_CHAIN_WORDS - walk->context_cnt - c->work->left;
	walk->user_at = c->work->at + 1;
}

/* Adds a pair of words. 1: there is no room left for it and a marker. */
static __always_inline int chain_add(struct chain *c, __u64 word, __u64 second)
{
	if (c->work->left < 4)
		return 1;
	c->scratch->words[word_index(c->work->at)] = word;
	c->scratch->words[word_index(c->work->at + 1)] = second;
	c->work->at += 2;
	c->work->left -= 2;
	return 0;
}

/*
 * The @bytes (CHAIN_NEIGHBOUR_BYTES at most) at @addr, through the window: the frames of a thread are neighbours, callers
 * below. NULL: they cannot be read.
 */
static __always_inline const __u8 *chain_read(struct chain *c, __u64 addr, __u32 bytes)
{
	__u64 off = addr - c->work->window_at, len;

	if (off >= CHAIN_WINDOW_BYTES || off + bytes > c->work->window_len) {
		off = masked(addr, CHAIN_WINDOW_BYTES - 1);
		len = off + masked(bytes, CHAIN_NEIGHBOUR_BYTES - 1);
		c->work->window_len = 0;
		if (bpf_probe_read_user(c->work->window, len, (void *)(addr - off)))
			return NULL;
		c->work->window_at = addr - off;
		c->work->window_len = len;
	}
	return c->work->window + masked(off, CHAIN_WINDOW_BYTES - 1);
}

/* The @bytes at @addr of what lies between it and @end, through the window: callers above. NULL: they cannot be read. */
static __always_inline const __u8 *chain_read_up(struct chain *c, __u64 addr, __u32 bytes, __u64 end)
{
	struct chain_work *w = c->work;
	__u64 off = addr - w->window_at, len;

	if (off >= CHAIN_WINDOW_BYTES || off + bytes > w->window_len) {
		off = 0;
		len = end - addr;
		if (len > CHAIN_WINDOW_BYTES)
			len = CHAIN_WINDOW_BYTES;
		w->window_len = 0;
		if (len < bytes || bpf_probe_read_user(w->window,
						       masked(len, 2 * CHAIN_WINDOW_BYTES - 1) > CHAIN_WINDOW_BYTES
							       ? CHAIN_WINDOW_BYTES
							       : masked(len, 2 * CHAIN_WINDOW_BYTES - 1),
						       (void *)addr))
			return NULL;
		w->window_at = addr;
		w->window_len = len;
	}
	return w->window + masked(off, CHAIN_WINDOW_BYTES - 1);
}

static __always_inline __u16 chain_offset(const struct chain *c, __u32 which)
{
	return c->work->state.offset[which];
}

/* A word of what chain_read() returned, at the state's offset @which. */
static __always_inline __u64 word_at(const __u8 *bytes, __u64 offset)
{
	return *(const __u64 *)(bytes + masked(offset, CHAIN_NEIGHBOUR_BYTES - 8));
}

#include "bpf/runtime/objects.bpf.h"

/* --- the programs --- */

enum {
	CHAIN_STEPS = 8,       /* frames a turn of bpf_loop() */
	CHAIN_TAIL_STEPS = 64, /* frames a program in the tail-call form, which calls itself for more */
	/* After so many calls (of MAX_TAIL_CALLS) no program calls itself: each runtime's first, the walk, without which
	 * there is no sample, and what sends it have the rest. */
	CHAIN_TAIL_CALLS = 24,
};
_Static_assert(CHAIN_TAIL_CALLS + RUNTIME_ID_MAX + 2 <= 32, "the walk is called after all chains, and what sends");

/*
 * The barriers make the compiler enter its loops at their head: until 6.1 the verifier refuses a loop that ends without a
 * jump, as one may that begins in the middle.
 * Makes the programs of runtime @id: chain_NAME for the bpf_loop form and chain_NAME_tail for the other. @first (struct
 * chain *) finds the first frame: 0, or 1 when there is none. @step adds a frame and finds the next: 0, or 1 with work->end
 * set.
 */
#define CHAIN_PROGRAMS(name, id, first, step)                                                     \
	static long name##_steps(__u32 index, struct chain *c)                                    \
	{                                                                                         \
		if (!c->scratch || !c->work || !c->cpu)                                           \
			return 1;                                                                 \
		for (int i = 0; i < CHAIN_STEPS; i++) {                                           \
			barrier();                                                                \
			if (step(c))                                                              \
				return 1;                                                         \
		}                                                                                 \
		return 0;                                                                         \
	}                                                                                         \
                                                                                                  \
	SEC("perf_event") int chain_##name(struct bpf_perf_event_data *ctx)                       \
	{                                                                                         \
		struct chain c;                                                                   \
                                                                                                  \
		if (chain_open(&c))                                                               \
			return 0;                                                                 \
		if (!chain_begin(&c, id)) {                                                       \
			if (!first(&c))                                                           \
				bpf_loop(MAX_CHAIN_WORDS / 2 / CHAIN_STEPS, name##_steps, &c, 0); \
			chain_close(&c);                                                          \
		}                                                                                 \
		collect_next(ctx, c.scratch);                                                     \
		return 0;                                                                         \
	}                                                                                         \
                                                                                                  \
	SEC("perf_event") int chain_##name##_tail(struct bpf_perf_event_data *ctx)                \
	{                                                                                         \
		struct chain c;                                                                   \
                                                                                                  \
		if (chain_open(&c))                                                               \
			return 0;                                                                 \
		c.scratch->walk.tail_calls++;                                                     \
		if (c.scratch->walk.runtimes >> (id)&1) { /* else it has called itself */         \
			if (chain_begin(&c, id)) {                                                \
				collect_next(ctx, c.scratch);                                     \
				return 0;                                                         \
			}                                                                         \
			if (first(&c)) {                                                          \
				chain_close(&c);                                                  \
				collect_next(ctx, c.scratch);                                     \
				return 0;                                                         \
			}                                                                         \
		}                                                                                 \
		for (int i = 0; i < CHAIN_TAIL_STEPS; i++) {                                      \
			barrier();                                                                \
			if (step(&c)) {                                                           \
				chain_close(&c);                                                  \
				collect_next(ctx, c.scratch);                                     \
				return 0;                                                         \
			}                                                                         \
		}                                                                                 \
		if (c.scratch->walk.tail_calls < CHAIN_TAIL_CALLS)                                \
			bpf_tail_call(ctx, &programs, id);                                        \
		chain_close(&c);                                                                  \
		collect_next(ctx, c.scratch);                                                     \
		return 0;                                                                         \
	}

#endif
