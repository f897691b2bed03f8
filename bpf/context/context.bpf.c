/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The work that a thread says it does, read while it stands still: the span and the attributes of its context record (OTEP
 * 4947), or the labels of its goroutine (runtime/pprof). They become sections of the sample (SECTION_LINK, SECTION_CONTEXT,
 * SECTION_LABELS) before its chains. This is an object of its own, which is loaded when the first process that has such is
 * met, and shares the sampler's maps; others pay one test. It calls the programs of chains, or the walk, and never ends the
 * sample.
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
#include "bpf/levels.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/runtime/thread.bpf.h"

/* A string of Go's, and a label. */
struct go_string {
	__u64 data, len;
};

struct go_label {
	struct go_string key, value;
};

/*
 * Go's maps until 1.23 (runtime/map.go): struct hmap { count, flags, B, ..., buckets at 16, ... }, 2^B buckets. A bucket of
 * map[string]string: a byte for each of its elements, which is less than 5 where there is none; keys; values; the address of
 * the next.
 */
enum {
	GO_BUCKET_ELEMENTS = 8,
	GO_BUCKET_KEYS = 8,
	GO_BUCKET_VALUES = GO_BUCKET_KEYS + 16 * GO_BUCKET_ELEMENTS,
	GO_BUCKET_NEXT = GO_BUCKET_VALUES + 16 * GO_BUCKET_ELEMENTS,
	GO_BUCKET_BYTES = GO_BUCKET_NEXT + 8,
	GO_LEAST_TOP = 5,
	MAX_BUCKETS = 8, /* that are looked at: 16 labels have four at most, and hardly ever more than one behind each */
};

/* Where the threads of a process have the variable that points to their records. */
enum record_place {
	PLACE_UNKNOWN,
	PLACE_THREAD, /* at *(tp + offset) */
	PLACE_BLOCK,  /* at offset in the thread's block of a module (the DTV) */
};

enum {
	NEAR_ATTRIBUTES = 13 * 8, /* bytes of attributes that are read with a record's head: a read is the dear part */
	PAGE_BYTES = 4096,
};

/* Work in the making; in map memory the verifier does not follow its values, so loops converge. */
struct context_work {
	struct chain_state state;
	__u32 state_asid; /* it is this address space's; 0: nobody's ... */
	__u32 place;	  /* ... and enum record_place, which stays what it is once it is known */
	__u64 module, offset;
	__u32 at;    /* index in scratch->words of the next word */
	__u32 count; /* of labels */
	__u32 is_cut;
	__u32 is_unreadable;
	__u64 bucket_at, bucket_next;
	union {
		__u8 bytes[MAX_GO_LABELS_OFFSET + 8]; /* a part of a goroutine's g, a bucket of a map */
		__u64 words[(MAX_GO_LABELS_OFFSET + 8) / 8];
	};
	struct go_label labels[MAX_LABELS + 1];
	__u32 pad; /* so that attributes stand at a multiple of 8 */
	__u8 head[CONTEXT_HEAD_BYTES];
	__u64 attributes[NEAR_ATTRIBUTES / 8];
};

_Static_assert(sizeof(((struct context_work *)0)->head) % 8 == 4, "the attributes follow the head");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU and level */
	__type(key, __u32);
	__type(value, struct context_work);
} context_works SEC(".maps");

struct context {
	struct cpu_state *cpu;
	struct scratch *scratch;
	struct context_work *work;
};

/* Takes the process's state. 0, or 1: there is none. */
static __always_inline int take_state(struct context *c)
{
	if (!c->work->state_asid || c->work->state_asid != c->scratch->walk.chain_asid)
		c->work->place = PLACE_UNKNOWN;
	return take_state_of(&c->scratch->walk, CONTEXT_ID, &c->work->state, &c->work->state_asid);
}

/* Adds a section of @words words, whose content begins at work->at + 1. */
static __always_inline void close_section(struct context *c, enum section_type type, __u64 bytes)
{
	struct walk *walk = &c->scratch->walk;
	__u32 words = 1 + ((__u32)masked(bytes, 8191) + 7) / 8;

	c->scratch->words[word_index(walk->user_at - 1)] = SECTION(type, bytes);
	walk->user_at += words;
	walk->context_cnt += words;
}

/* --- the thread's record --- */

/* Finds the place of the variable. 0, or 1: it has none yet. */
static __always_inline int find_place(struct context *c)
{
	enum { MOST_MODULES = 4095 }; /* a descriptor that is not bound yet leads to a relocation, which begins with more */
	const struct thread_locator *l = &c->work->state.thread;
	__u64 word = 0, pair[2];

	if (l->place == THREAD_TLS_DESC || l->place == THREAD_TLS_SLOT) {
		if (read_word(l->addr + (l->place == THREAD_TLS_DESC ? 8 : 0), &word) || !word)
			return 1;
	}
	if (l->place == THREAD_TLS || l->place == THREAD_TLS_SLOT || (word && (__s64)word == (__s32)word)) {
		c->work->place = PLACE_THREAD;
		c->work->offset = word;
		return 0;
	}
	if (bpf_probe_read_user(pair, sizeof(pair), (void *)(word ? word : l->addr)) || !pair[0] || pair[0] > MOST_MODULES)
		return 1;
	c->work->place = PLACE_BLOCK;
	c->work->module = pair[0];
	c->work->offset = pair[1];
	return 0;
}

/* The address of the record of the current thread. 0; 1: it has none. */
static __always_inline int find_record(struct context *c, __u64 *ret)
{
	const struct context_work *w = c->work;
	__u64 tp = c->scratch->walk.thread_pointer, at;

	if (w->place == PLACE_UNKNOWN && find_place(c))
		return 1;
	if (w->place == PLACE_THREAD)
		at = tp + w->offset;
	else if (find_in_block(tp, w->state.thread.libc, w->module, w->offset, &at))
		return 1;
	return read_word(at + w->state.thread.offset, ret) || !*ret;
}

/* Adds the record's attributes, @bytes, of which those that stand near its head were read with it if @has_near. */
static __always_inline void add_attributes(struct context *c, __u64 record, __u32 bytes, bool has_near)
{
	__u64 at = c->scratch->walk.user_at, *words = c->scratch->words;

	if (bytes > MAX_CONTEXT_BYTES) {
		bytes = MAX_CONTEXT_BYTES;
		c->work->is_cut = 1;
	}
	if (has_near && bytes <= NEAR_ATTRIBUTES) {
		__builtin_memcpy(&words[word_index(at)], c->work->attributes, NEAR_ATTRIBUTES);
	} else {
		bytes = masked(bytes, 1023);
		if (bpf_probe_read_user(&words[word_index(at)], bytes, (void *)(record + CONTEXT_HEAD_BYTES))) {
			c->work->is_unreadable = 1;
			return;
		}
	}
	if (bytes & 7) /* what is behind them is nobody's business */
		words[word_index(at + bytes / 8)] &= ~(~0ull << (bytes & 7) * 8);
	close_section(c, SECTION_CONTEXT, bytes);
}

/* OTEP 4947: trace 16, span 8, valid 1, flags 1, bytes of attributes 2, attributes. */
static __always_inline void read_record(struct context *c)
{
	__u64 record, at, *words = c->scratch->words;
	bool has_near;
	__u32 bytes;

	if (find_record(c, &record))
		return;
	has_near = (record & (PAGE_BYTES - 1)) <= PAGE_BYTES - CONTEXT_HEAD_BYTES - NEAR_ATTRIBUTES;
	if (bpf_probe_read_user(c->work->head, has_near ? CONTEXT_HEAD_BYTES + NEAR_ATTRIBUTES : CONTEXT_HEAD_BYTES,
				(void *)record)) {
		c->work->is_unreadable = 1;
		return;
	}
	if (c->work->head[24] != 1)
		return;
	at = c->scratch->walk.user_at - c->scratch->walk.context_cnt; /* in place of a span that another program noted */
	__builtin_memcpy(&words[word_index(at)], c->work->head, 24);
	words[word_index(at + 3)] = c->work->head[25];
	if (!c->scratch->walk.context_cnt)
		close_section(c, SECTION_LINK, sizeof(struct span_info));
	bytes = c->work->head[26] | c->work->head[27] << 8;
	if (bytes)
		add_attributes(c, record, bytes, has_near);
}

/* --- labels of goroutines --- */

/* Reads from the g of a goroutine at @g its word for its m, and all up to its labels. 0, or 1: it cannot be read. */
static __always_inline int read_goroutine(struct context *c, __u64 g)
{
	__u32 bytes = masked(c->work->state.offset[CONTEXT_GO_LABELS], 511) + 8 - GO_G_M;

	return bpf_probe_read_user(c->work->bytes, masked(bytes, 511), (void *)(g + GO_G_M)) != 0;
}

/*
 * The labels of the goroutine that the thread runs, or that waits for a system call of the thread; 0: there are none. The g
 * of the thread is that goroutine's unless the runtime works on a stack of its own, whose g has no number.
 */
static __always_inline __u64 find_labels(struct context *c)
{
	__u64 g, m, curg;
	__u32 labels = c->work->state.offset[CONTEXT_GO_LABELS], id = c->work->state.offset[CONTEXT_GO_ID];

	if (labels < GO_G_M || labels > MAX_GO_LABELS_OFFSET || id < GO_G_M || id > labels)
		return 0;
	g = cpu_go_g(current_task(), cfg_task_btf, c->scratch->regs.regs, c->work->state.offset[CONTEXT_GO_PLACE]);
	if (!g || read_goroutine(c, g))
		return 0;
	if (!*(__u64 *)(c->work->bytes + masked(id - GO_G_M, 504))) {
		m = c->work->words[0];
		curg = m ? read_user_word(m + c->work->state.offset[CONTEXT_GO_CURG]) : 0;
		if (!curg || read_goroutine(c, curg) || c->work->words[0] != m)
			return 0;
	}
	return *(__u64 *)(c->work->bytes + masked(labels - GO_G_M, 504));
}

/* Reads the list at @labels, a slice: address, length, room. */
static __always_inline void read_list(struct context *c, __u64 labels)
{
	__u64 slice[2];
	__u32 bytes;

	if (bpf_probe_read_user(slice, sizeof(slice), (void *)labels)) {
		c->work->is_unreadable = 1;
		return;
	}
	if (slice[1] > MAX_LABELS) {
		slice[1] = MAX_LABELS;
		c->work->is_cut = 1;
	}
	bytes = masked(slice[1], 31) * sizeof(struct go_label);
	if (!bytes)
		return;
	if (bytes > sizeof(c->work->labels) || bpf_probe_read_user(c->work->labels, bytes, (void *)slice[0]))
		c->work->is_unreadable = 1;
	else
		c->work->count = slice[1];
}

/* Takes the elements of the bucket in work->bytes. */
static __always_inline void take_bucket(struct context *c)
{
	for (__u32 i = 0; i < GO_BUCKET_ELEMENTS; i++) {
		__u64 n = masked(c->work->count, MAX_LABELS - 1);

		barrier();
		if (c->work->bytes[i] < GO_LEAST_TOP)
			continue;
		if (c->work->count >= MAX_LABELS) {
			c->work->is_cut = 1;
			continue;
		}
		c->work->labels[n].key = *(struct go_string *)(c->work->bytes + GO_BUCKET_KEYS + 16 * i);
		c->work->labels[n].value = *(struct go_string *)(c->work->bytes + GO_BUCKET_VALUES + 16 * i);
		c->work->count++;
	}
}

/* Reads the map that is at @labels. */
static __always_inline void read_map(struct context *c, __u64 labels)
{
	__u64 map = read_user_word(labels), head[3];
	__u32 shift;

	if (!map)
		return;
	if (bpf_probe_read_user(head, sizeof(head), (void *)map)) {
		c->work->is_unreadable = 1;
		return;
	}
	shift = head[1] >> 8 & 255;
	if (!head[0] || !head[2])
		return;
	c->work->bucket_at = head[2];
	c->work->bucket_next = 0;
	for (__u32 i = 0; i < MAX_BUCKETS; i++) {
		__u64 at = c->work->bucket_next;

		barrier();
		if (!at) {
			if (c->work->bucket_at - head[2] >= (__u64)GO_BUCKET_BYTES << (shift & 7))
				break;
			at = c->work->bucket_at;
			c->work->bucket_at = at + GO_BUCKET_BYTES;
		}
		if (bpf_probe_read_user(c->work->bytes, GO_BUCKET_BYTES, (void *)at)) {
			c->work->is_unreadable = 1;
			break;
		}
		c->work->bucket_next = *(__u64 *)(c->work->bytes + GO_BUCKET_NEXT);
		take_bucket(c);
	}
	if (c->work->count < head[0]) /* there are more buckets than we look at, or some have not moved yet */
		c->work->is_cut = 1;
}

/* Copies a string to the words at work->at, of which @most bytes. 0, or 1: it cannot be read. */
static __always_inline int put_string(struct context *c, const struct go_string *s, __u32 most, __u32 *bytes_ret)
{
	__u64 len = s->len, at = c->work->at;
	__u32 bytes;

	if (len > most) {
		len = most;
		c->work->is_cut = 1;
	}
	bytes = masked(len, 255);
	*bytes_ret = bytes;
	c->scratch->words[word_index(at + bytes / 8)] = 0;
	if (bytes && bpf_probe_read_user(&c->scratch->words[word_index(at)], bytes, (void *)s->data))
		return 1;
	c->work->at = at + (bytes + 7) / 8;
	return 0;
}

static __always_inline void put_label(struct context *c, const struct go_label *label)
{
	__u32 head = c->work->at, key, value;

	c->work->at = head + 1;
	if (put_string(c, &label->key, LABEL_KEY_BYTES, &key) || put_string(c, &label->value, LABEL_VALUE_BYTES, &value)) {
		c->work->at = head;
		c->work->is_unreadable = 1;
		return;
	}
	c->scratch->words[word_index(head)] = LABEL_HEAD(key, value);
}

static __always_inline void read_labels(struct context *c)
{
	__u64 labels = find_labels(c);

	c->work->count = 0;
	if (!labels)
		return;
	if (c->work->state.style == CONTEXT_GO_LIST)
		read_list(c, labels);
	else
		read_map(c, labels);
	c->work->at = c->scratch->walk.user_at;
	for (__u32 i = 0; i < MAX_LABELS; i++) {
		barrier();
		if (i >= c->work->count)
			break;
		put_label(c, &c->work->labels[i]);
	}
	if (c->work->at > c->scratch->walk.user_at)
		close_section(c, SECTION_LABELS, (c->work->at - c->scratch->walk.user_at) * 8);
}

/* --- the programs --- */

static __always_inline void read_context(void *ctx)
{
	struct context c;
	struct place at;

	level_find(&at);
	c.cpu = bpf_map_lookup_elem(&cpu_states, &at.slot);
	c.scratch = bpf_map_lookup_elem(&scratches, &at.slot);
	c.work = bpf_map_lookup_elem(&context_works, &at.slot);
	if (!c.cpu || !c.scratch || !c.work)
		return;
	c.scratch->walk.tail_calls++;
	c.scratch->walk.runtimes &= ~(1u << CONTEXT_ID);
	c.work->is_cut = 0;
	c.work->is_unreadable = 0;
	if (!take_state(&c)) {
		if (c.work->state.style == CONTEXT_RECORD)
			read_record(&c);
		else
			read_labels(&c);
		if (c.work->is_cut)
			count(c.cpu, COUNTER_LABELS_CUT);
		if (c.work->is_unreadable)
			count(c.cpu, COUNTER_CONTEXT_UNREADABLE);
	}
	collect_next(ctx, c.scratch);
}

SEC("perf_event")
int chain_context(struct bpf_perf_event_data *ctx)
{
	read_context(ctx);
	return 0;
}

/* The same for the form with tail calls. */
SEC("perf_event")
int chain_context_tail(struct bpf_perf_event_data *ctx)
{
	read_context(ctx);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
