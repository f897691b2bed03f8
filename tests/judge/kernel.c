/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side on the host: bpf/walk.bpf.h and bpf/send.bpf.h compiled as they are, over caches in plain memory. The
 * sampler's functions that fill the kernel's maps stand here and fill those.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/sampler.h"
#include "base/map.h"
#include "tests/judge/judge.h"

/* What <bpf/bpf_helpers.h> and its like would declare. */
#define SEC(name)
#define __uint(name, val)	     int(*name)[val]
#define __type(name, val)	     __typeof__(val) *name
#define __array(name, val)	     __typeof__(val) *name[]
#define __noinline		     __attribute__((noinline))
#define bpf_core_field_exists(field) true
#define READ_1(from, a)		     ((from)->a)
#define READ_4(from, a, b, c, d)     ((from)->a->b->c->d)
#define FIFTH(a, b, c, d, e, ...)    e
#define BPF_CORE_READ(from, ...)     FIFTH(__VA_ARGS__, READ_4, , , READ_1, )(from, __VA_ARGS__)
#define bpf_loop(n, fn, arg, flags)  host_loop(n, (long (*)(uint32_t, void *))(fn), arg)
#define bpf_find_vma(task, addr, fn, arg, flags) \
	(fn)((struct task_struct *)(task), &(struct vm_area_struct){ .vm_end = kernel.thread->area_end }, arg)

struct task_struct;

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_probe_read_user(void *dst, uint32_t len, const void *addr);
static long bpf_probe_read_kernel(void *dst, uint32_t len, const void *addr);
static struct task_struct *bpf_get_current_task_btf(void);
static struct task_struct *bpf_get_current_task(void);
static uint64_t bpf_ringbuf_query(void *ring, uint64_t flags);
static long bpf_ringbuf_output(void *ring, void *data, uint64_t bytes, uint64_t flags);
static long host_loop(uint32_t count, long (*fn)(uint32_t, void *), void *arg);

/* What runs on behalf of whom. */
static struct {
	const struct kernel_thread *thread;
	struct memory *memory;
} kernel;

/* bpf/arch_x86_64.h has these for BPF alone. */
static inline __u64 cpu_thread_pointer(struct task_struct *task, bool has_btf)
{
	(void)task, (void)has_btf;
	return kernel.thread->fs_base;
}

static inline __u64 cpu_go_g(struct task_struct *task, bool has_btf, const __u64 *regs, __u32 nth)
{
	__u64 g;

	(void)task, (void)has_btf, (void)regs;
	return bpf_probe_read_user(&g, sizeof(g), (const void *)(uintptr_t)(kernel.thread->fs_base - 8 - 8ull * nth)) ? 0
														      : g;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#pragma GCC diagnostic ignored "-Wunknown-attributes"
#else
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif
#include "bpf/unwind.h"
#define const /* what user space sets before it loads them, a test sets as it goes */
#include "bpf/maps.bpf.h"
#undef const
#include "bpf/walk.bpf.h"
#include "bpf/send.bpf.h"
#pragma GCC diagnostic pop

/* What the maps hold. */
static struct {
	struct map mappings, blocks;
	struct first_level_entry first_level[FIRST_LEVEL_ENTRIES];
	struct scratch scratch;
	struct cpu_state cpu;
	struct task_struct task;
	uint64_t ring_bytes;	     /* that wait in the ring */
	uint64_t ring_size;	     /* of which half is left to samples; 0: there is no end to it */
	uint32_t lookups;	     /* of mappings and blocks */
	struct chain_state *threads; /* of the process's runtime that makes code; NULL: it has none */
	void (*on_record)(void *arg, const struct record *record);
	void *arg;
} held;

/* Keys of the maps below: asids and file numbers stay small here. */
static uint64_t hash_mapping(uint32_t asid, uint32_t shift, uint64_t piece)
{
	return (uint64_t)asid << 36 | (uint64_t)(shift == MAPPING_PAGE_SHIFT) << 35 |
	       (uint64_t)(shift == MAPPING_HUGE_SHIFT) << 34 | piece;
}

static uint64_t hash_block(uint32_t file, uint32_t block, uint32_t part)
{
	return (uint64_t)file << 36 | (uint64_t)block << 4 | part;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == (void *)&first_level)
		return &held.first_level[*(const uint32_t *)key];
	if (map == (void *)&mappings) {
		const struct mapping_key *k = key;

		held.lookups++;
		return map_get(&held.mappings, hash_mapping(k->asid, k->shift, k->piece));
	}
	if (map == (void *)&unwind_blocks) {
		const struct block_key *k = key;

		held.lookups++;
		return map_get(&held.blocks, hash_block(k->file, k->block, k->part));
	}
	if (map == (void *)&rings)
		return &rings; /* any address will do */
	if (map == (void *)&chain_states)
		return ((const struct chain_key *)key)->runtime == CHAIN_OF_BEAM ? held.threads : NULL;
	abort();
}

static long bpf_probe_read_kernel(void *dst, uint32_t len, const void *addr)
{
	memcpy(dst, addr, len);
	return 0;
}

static long bpf_probe_read_user(void *dst, uint32_t len, const void *addr)
{
	return memory_read(kernel.memory, (uintptr_t)addr, dst, len);
}

static struct task_struct *bpf_get_current_task_btf(void)
{
	static struct mm_struct mm;

	mm.start_stack = kernel.thread->start_stack;
	held.task.mm = &mm;
	return &held.task;
}

static struct task_struct *bpf_get_current_task(void)
{
	return bpf_get_current_task_btf();
}

static uint64_t bpf_ringbuf_query(void *ring, uint64_t flags)
{
	(void)ring;
	return flags == BPF_RB_AVAIL_DATA ? held.ring_bytes : held.ring_size ? held.ring_size : UINT64_MAX;
}

/* Only chunks are counted, each as a whole one: samples have room of their own. */
static long bpf_ringbuf_output(void *ring, void *data, uint64_t bytes, uint64_t flags)
{
	(void)ring, (void)flags;
	if (bytes != ((const struct record *)data)->size)
		abort();
	if (((const struct record *)data)->kind == RECORD_STACK_CHUNK)
		held.ring_bytes += sizeof(struct stack_chunk);
	held.on_record(held.arg, data);
	return 0;
}

static long host_loop(uint32_t count, long (*fn)(uint32_t, void *), void *arg)
{
	uint32_t i = 0;

	while (i < count && !fn(i, arg))
		i++;
	return i;
}

static int put(struct map *map, uint64_t key, const void *value, size_t bytes)
{
	void *slot = map_get(map, key);

	if (!slot) {
		slot = malloc(bytes);
		if (!slot || map_put(map, key, slot))
			abort();
	}
	memcpy(slot, value, bytes);
	return 0;
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	(void)s, (void)key, (void)value;
	return 0;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	(void)s, (void)state;
	return 0;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	(void)s;
	return put(&held.mappings, hash_mapping(value->asid, value->shift, value->piece), value, sizeof(*value));
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	(void)s, (void)file, (void)block;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	(void)s, (void)number, (void)what;
	return 0;
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	(void)s;
	return put(&held.blocks, hash_block(block->file, block->block, block->part), block, sizeof(*block));
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	(void)s, (void)value;
	return 0; /* the walk below is told its asid */
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

static void clear(struct map *map)
{
	size_t pos = 0;
	void *value;

	while (map_next(map, &pos, NULL, &value))
		free(value);
	map_fini(map);
	*map = MAP_EMPTY;
}

void kernel_reset(void)
{
	clear(&held.mappings);
	clear(&held.blocks);
	memset(held.first_level, 0, sizeof(held.first_level));
	memset(&held.scratch, 0, sizeof(held.scratch));
}

void kernel_sample(struct memory *m, const struct kernel_thread *thread, bool is_miss,
		   void (*on_record)(void *arg, const struct record *record), void *arg)
{
	struct scratch *s = &held.scratch;

	kernel.memory = m;
	kernel.thread = thread;
	held.on_record = on_record;
	held.arg = arg;
	held.task.sas_ss_sp = thread->alternate_sp;
	held.task.sas_ss_size = thread->alternate_bytes;
	memset(&s->walk, 0, sizeof(s->walk));
	memset(&s->sample, 0, sizeof(s->sample));
	memcpy(s->regs.regs, thread->regs, sizeof(s->regs.regs));
	s->sample.hdr.time_ns = thread->time_ns ? thread->time_ns : 1;
	held.ring_bytes = 0; /* they were read */
	s->walk.asid = thread->asid;
	s->walk.user_at = 1; /* there are no kernel frames */
	s->walk.state.pc = thread->regs[REG_PC];
	s->walk.state.sp = thread->regs[REG_SP];
	s->walk.state.fp = thread->regs[REG_FP];
	s->walk.state.exact = 1;
	s->walk.state.end = END_DEPTH;
	memo_begin(&s->walk, s);
	for (uint32_t i = 0; i < MAX_WALKED_FRAMES; i++)
		if (walk_frame(&s->walk, s, !thread->by_tail_calls))
			break;
	memo_end(&s->walk, s);
	if (is_miss)
		s->walk.state.end = END_USER_RULE;
	finish_sample(&held.cpu, s, !thread->by_tail_calls);
}
