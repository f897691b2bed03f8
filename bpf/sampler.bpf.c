/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The on-CPU sampler: a perf_event program that walks the kernel and the user stack of whatever runs and sends one sample
 * record. The kernel holds a cache of unwind rows; where it has no entry the sample leaves with the frames walked so far, the
 * registers at the sample and a copy of the stack, and user space walks it again and fills the cache.
 *
 * Two forms of the same walk: on_sample (bpf_loop, kernel 5.17) and on_sample_tail + walk_tail (tail calls, 5.10). One program
 * a CPU runs at a time, so scratch and cpu_state belong to it alone.
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

#define barrier() asm volatile("" ::: "memory")

/*
 * The seldom taken paths are global functions in the bpf_loop form: the verifier checks each once, alone. Before 5.12 those take
 * no pointers, so the tail-call form has them inlined; @loop_form is a constant in every inlined copy.
 */
struct unwind_memory {
	struct walk *walk;
	struct scratch *scratch;
	bool loop_form;
};

/* Moves the window to @addr, up to the end of its page. */
static __always_inline int move_window(struct walk *walk, struct scratch *scratch, __u64 addr)
{
	__u32 len = sizeof(scratch->window) - (addr & (sizeof(scratch->window) - 1));

	walk->window_len = 0;
	if (len > sizeof(scratch->window) || bpf_probe_read_user(scratch->window, len, (void *)addr))
		return 1;
	walk->window = addr;
	walk->window_len = len;
	return 0;
}

__noinline int move_window_alone(struct walk *walk, struct scratch *scratch, __u64 addr)
{
	if (!walk || !scratch)
		return 1;
	return move_window(walk, scratch, addr);
}

/* One word of the user stack, through the window: copying a page costs hardly more than copying a word. */
static __always_inline int unwind_read(struct unwind_memory *memory, __u64 addr, __u64 *value)
{
	struct walk *walk = memory->walk;
	struct scratch *scratch = memory->scratch;
	__u64 off = addr - walk->window;

	if (off > sizeof(scratch->window) - 8 || off + 8 > walk->window_len) {
		if ((addr & (sizeof(scratch->window) - 1)) > sizeof(scratch->window) - 8)
			return bpf_probe_read_user(value, 8, (void *)addr) != 0;
		if (memory->loop_form ? move_window_alone(walk, scratch, addr) : move_window(walk, scratch, addr))
			return 1;
		off = 0;
	}
	*value = *(__u64 *)(scratch->window + (off & (sizeof(scratch->window) - 1)));
	return 0;
}

static __always_inline void count(struct cpu_state *cpu, enum bpf_counter which)
{
	cpu->counters[which]++;
}

/* The mapping of @pc among the pieces of one size into the walk. 0, or a miss. */
static __always_inline int find_piece(struct walk *walk, __u64 pc, __u32 shift)
{
	struct mapping_key key = { .asid = walk->asid, .shift = shift, .piece = pc >> shift };
	volatile struct mapping_value *m = bpf_map_lookup_elem(&mappings, &key);
	__u64 start, end, bias;
	__u32 seq, file, kind;

	if (!m)
		return 1;
	seq = m->seq_tail;
	barrier();
	start = m->start;
	end = m->end;
	bias = m->bias;
	file = m->file;
	kind = m->kind;
	barrier();
	if (m->piece != key.piece || m->shift != shift || m->asid != key.asid || m->seq_head != seq ||
	    bpf_map_lookup_elem(&mappings, &key) != m) {
		walk->torn++;
		return 1;
	}
	if (pc < start || pc >= end)
		return 1;
	walk->start = start;
	walk->end = end;
	walk->bias = bias;
	walk->file = file;
	walk->kind = kind;
	return 0;
}

/* The row of ELF address @va of the walk's file. 0, or a miss. */
static __always_inline int find_row(struct walk *walk, __u64 va, __u64 *row)
{
	struct block_key key = { .file = walk->file, .block = va / CODE_BLOCK_BYTES };
	__u32 offset = va % CODE_BLOCK_BYTES, seq;
	volatile struct unwind_block *b;

	for (int part = 0; part < MAX_BLOCK_PARTS; part++) {
		key.part = part;
		b = bpf_map_lookup_elem(&unwind_blocks, &key);
		if (!b)
			return 1;
		seq = b->seq_tail;
		barrier();
		if (offset >= b->end)
			continue;
		*row = unwind_search((const __u64 *)b->rows, b->row_cnt, offset);
		barrier();
		if (b->block != key.block || b->file != key.file || b->part != part || b->seq_head != seq ||
		    bpf_map_lookup_elem(&unwind_blocks, &key) != b) {
			walk->torn++;
			return 1;
		}
		return 0;
	}
	return 1;
}

/* The row of @pc from mapping and block into walk->row. Returns 0, or the end reason of a miss. */
static __always_inline int find_rule(struct walk *walk, __u64 pc)
{
	walk->row = 0;
	if ((pc < walk->start || pc >= walk->end) && find_piece(walk, pc, MAPPING_BIG_SHIFT) &&
	    find_piece(walk, pc, MAPPING_PAGE_SHIFT))
		return END_MISS_MAPPING;
	if (walk->kind == MAPPING_FP)
		walk->row = ROW(0, RULE_FP, 0, -2, 0);
	else if (walk->kind != MAPPING_ROWS)
		return END_NO_MAPPING;
	else if (find_row(walk, pc - walk->bias, &walk->row))
		return END_MISS_BLOCK;
	return 0;
}

__noinline int find_rule_alone(struct walk *walk, __u64 pc)
{
	if (!walk)
		return END_MISS_MAPPING;
	return find_rule(walk, pc);
}

/* The finished row of @pc, out of this CPU's first level where it stands there. Returns 0, or the end reason of a miss. */
static __always_inline __u32 find_first(struct walk *walk, __u64 pc, __u64 *row, bool loop_form)
{
	__u64 tag = (__u64)walk->asid << 35 | pc >> 12;
	__u32 index = (pc + (tag * 0x9E3779B97F4A7C15ull >> 52)) & (FIRST_LEVEL_ENTRIES - 1);
	struct first_level_entry *first;
	__u32 end;

	index += walk->cpu * FIRST_LEVEL_ENTRIES;
	first = bpf_map_lookup_elem(&first_level, &index);
	if (first && first->tag == tag) {
		*row = first->row;
		return 0;
	}
	end = loop_form ? find_rule_alone(walk, pc) : find_rule(walk, pc);
	if (end)
		return end;
	*row = walk->row;
	if (first) {
		first->tag = 0;
		barrier();
		first->row = *row;
		barrier();
		first->tag = tag;
	}
	return 0;
}

/* An index into scratch->words that the verifier believes. */
static __always_inline __u64 word_index(__u64 at)
{
	asm volatile("%0 &= %1" : "+r"(at) : "i"(SCRATCH_WORDS - 1));
	return at;
}

/* Walks one frame: records it, then steps to its caller. Returns 1 when the walk is over. */
static __always_inline int walk_frame(struct walk *walk, struct scratch *scratch, bool loop_form)
{
	struct unwind_memory memory = { walk, scratch, loop_form };
	__u64 pc = walk->state.pc, row = 0;
	__u32 end;

	if (walk->user_cnt >= MAX_USER_FRAMES)
		return unwind_stop(&walk->state, END_DEPTH);
	scratch->words[word_index(walk->kernel_cnt + walk->user_cnt)] = walk->state.exact ? pc | FRAME_EXACT : pc;
	walk->user_cnt++;
	if (pc >> 47)
		return unwind_stop(&walk->state, END_NO_MAPPING);
	end = find_first(walk, pc - !walk->state.exact, &row, loop_form);
	if (end)
		return unwind_stop(&walk->state, end);
	return unwind_step(&walk->state, row, &memory);
}

struct loop_context {
	struct scratch *scratch;
};

static long walk_callback(__u32 index, struct loop_context *loop)
{
	if (!loop->scratch)
		return 1;
	return walk_frame(&loop->scratch->walk, loop->scratch, true) ? 1 : 0;
}

/* --- the sample's user part --- */

#define REGS_FROM(ctx, out, AX, DX, CX, BX, SI, DI, BP, SP, IP) \
	do {                                                    \
		(out)[0] = (ctx)->AX;                           \
		(out)[1] = (ctx)->DX;                           \
		(out)[2] = (ctx)->CX;                           \
		(out)[3] = (ctx)->BX;                           \
		(out)[4] = (ctx)->SI;                           \
		(out)[5] = (ctx)->DI;                           \
		(out)[6] = (ctx)->BP;                           \
		(out)[7] = (ctx)->SP;                           \
		(out)[8] = (ctx)->r8;                           \
		(out)[9] = (ctx)->r9;                           \
		(out)[10] = (ctx)->r10;                         \
		(out)[11] = (ctx)->r11;                         \
		(out)[12] = (ctx)->r12;                         \
		(out)[13] = (ctx)->r13;                         \
		(out)[14] = (ctx)->r14;                         \
		(out)[15] = (ctx)->r15;                         \
		(out)[16] = (ctx)->IP;                          \
	} while (0)

/* Registers with which a thread that is in the kernel left user space. Returns the code segment, 0 when there are none. */
static __always_inline __u64 kernel_entry_regs(struct task_struct *task, __u64 *out)
{
	struct pt_regs___kernel *regs;

	if (cfg_task_btf) {
		regs = (void *)bpf_task_pt_regs((void *)task);
		REGS_FROM(regs, out, ax, dx, cx, bx, si, di, bp, sp, ip);
		return regs->cs;
	}
	regs = BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs___kernel);
	__builtin_memset(out, 0, USER_REGS * sizeof(*out)); /* of the others nothing depends on a caller-saved one */
	out[16] = BPF_CORE_READ(regs, ip);
	out[7] = BPF_CORE_READ(regs, sp);
	out[6] = BPF_CORE_READ(regs, bp);
	out[3] = BPF_CORE_READ(regs, bx);
	out[12] = BPF_CORE_READ(regs, r12);
	out[13] = BPF_CORE_READ(regs, r13);
	out[14] = BPF_CORE_READ(regs, r14);
	out[15] = BPF_CORE_READ(regs, r15);
	return BPF_CORE_READ(regs, cs) & 0xffff;
}

/* Fills scratch->regs (identity and registers). Returns the walk's end when there is nothing to walk, END_MAX otherwise. */
static __always_inline __u32 prepare_user(struct bpf_perf_event_data *ctx, struct scratch *scratch, struct task_struct *task)
{
	__u64 *regs = scratch->regs.regs, cs;
	__u32 flags, in_execve = 0;
	void *mm;

	if (cfg_task_btf) {
		flags = task->flags;
		mm = task->mm;
		if (bpf_core_field_exists(task->in_execve))
			in_execve = BPF_CORE_READ_BITFIELD(task, in_execve);
		scratch->regs.start_boottime_ns = task->group_leader->start_boottime;
		scratch->regs.exec_id = task->self_exec_id;
	} else {
		flags = BPF_CORE_READ(task, flags);
		mm = BPF_CORE_READ(task, mm);
		if (bpf_core_field_exists(task->in_execve))
			in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
		scratch->regs.start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
		scratch->regs.exec_id = BPF_CORE_READ(task, self_exec_id);
	}
	if (flags & (TASK_KTHREAD | TASK_IO_WORKER))
		return END_NONE;
	if (!mm || flags & TASK_EXITING)
		return END_EXITING;
	if ((ctx->regs.cs & 3) == 3) {
		REGS_FROM(&ctx->regs, regs, rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, rip);
		cs = ctx->regs.cs;
	} else {
		if (in_execve)
			return END_EXEC;
		cs = kernel_entry_regs(task, regs);
	}
	return cs == USER_CS_64 ? END_MAX : END_COMPAT;
}

/* The address space the process table gives this task; 0 when it does not know it. */
static __always_inline __u32 find_asid(__u32 pid, const struct scratch *scratch, struct walk *walk)
{
	volatile struct proc_value *p = bpf_map_lookup_elem(&procs, &pid);
	__u32 seq, asid;

	if (!p)
		return 0;
	seq = p->seq_tail;
	barrier();
	asid = p->asid;
	if (p->start_boottime_ns != scratch->regs.start_boottime_ns || p->exec_id != scratch->regs.exec_id)
		return 0;
	barrier();
	if (p->pid != pid || p->seq_head != seq || bpf_map_lookup_elem(&procs, &pid) != p) {
		walk->torn++;
		return 0;
	}
	return asid;
}

/* Kernel frames, identity, and the walk's first state. Returns true when there is a user stack to walk. */
static __always_inline bool begin_sample(struct bpf_perf_event_data *ctx, struct scratch *scratch, __u32 cpu)
{
	struct walk *walk = &scratch->walk;
	struct sample_record *sample = &scratch->sample;
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct task_struct *task;
	long bytes = 0;

	task = cfg_task_btf ? (void *)bpf_get_current_task_btf() : (void *)bpf_get_current_task();
	sample->hdr.time_ns = bpf_ktime_get_ns();
	sample->pid = pid_tgid >> 32;
	sample->tid = (__u32)pid_tgid;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if ((ctx->regs.cs & 3) != 3)
		bytes = bpf_get_stack(ctx, scratch->words, MAX_KERNEL_FRAMES * 8, 0);

	__builtin_memset(walk, 0, sizeof(*walk));
	walk->cpu = cpu;
	walk->kernel_cnt = bytes > 0 ? ((__u32)bytes / 8) & 127 : 0;
	walk->state.exact = 1;
	walk->state.end = prepare_user(ctx, scratch, task);
	if (walk->state.end != END_MAX)
		return false;
	walk->state.pc = scratch->regs.regs[16];
	walk->state.sp = scratch->regs.regs[7];
	walk->state.fp = scratch->regs.regs[6];
	walk->asid = find_asid(sample->pid, scratch, walk);
	if (!walk->asid) {
		scratch->words[word_index(walk->kernel_cnt)] = walk->state.pc | FRAME_EXACT;
		walk->user_cnt = 1;
		walk->state.end = END_MISS_PROC;
		return false;
	}
	walk->state.end = END_DEPTH;
	return true;
}

/* --- sending --- */

struct chunk_loop {
	struct cpu_state *state;
	__u64 addr;
	__u64 end; /* of the stack's memory area, where it is known */
	__u64 time_ns;
	__u32 cpu;
	__u32 cnt;
};

/* Sends the page of stack at loop->addr. Returns 1 at the end of the stack (or of the ring). */
static __always_inline int send_chunk(struct chunk_loop *loop)
{
	__u32 index = loop->cpu & (cfg_rings - 1), len = STACK_CHUNK_BYTES - (loop->addr & (STACK_CHUNK_BYTES - 1));
	struct cpu_state *state = loop->state;
	struct stack_chunk *chunk;
	void *ring = bpf_map_lookup_elem(&rings, &index);

	if (!ring || !state)
		return 1;
	if (loop->addr >= loop->end)
		return 1;
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_chunk_room_bytes) {
		count(state, COUNTER_CHUNK_RING);
		return 1;
	}
	chunk = bpf_ringbuf_reserve(ring, sizeof(*chunk), 0);
	if (!chunk) {
		count(state, COUNTER_CHUNK_RING);
		return 1;
	}
	if (len > STACK_CHUNK_BYTES || bpf_probe_read_user(chunk->data, len, (void *)loop->addr)) {
		bpf_ringbuf_discard(chunk, BPF_RB_NO_WAKEUP);
		return 1;
	}
	chunk->hdr.kind = RECORD_STACK_CHUNK;
	chunk->hdr.version = RECORD_VERSION;
	chunk->hdr.size = sizeof(*chunk);
	chunk->hdr.time_ns = loop->time_ns;
	chunk->hdr.cpu = loop->cpu;
	chunk->hdr.seq = state->seq++;
	chunk->addr = loop->addr;
	chunk->len = len;
	chunk->pad = 0;
	bpf_ringbuf_submit(chunk, BPF_RB_NO_WAKEUP);
	loop->addr += len;
	loop->cnt++;
	return 0;
}

static long chunk_callback(__u32 index, struct chunk_loop *loop)
{
	return send_chunk(loop) ? 1 : 0;
}

static long area_callback(struct task_struct *task, struct vm_area_struct *area, struct chunk_loop *loop)
{
	loop->end = area->vm_end;
	return 0;
}

/* May this sample carry its stack? Each chunk costs cfg_chunk_cost_ns of a budget that time refills. */
static __always_inline bool take_chunk_tokens(struct cpu_state *state, __u64 now_ns)
{
	__u64 floor = now_ns - cfg_chunk_burst_ns;

	if (state->chunk_tokens_ns < floor)
		state->chunk_tokens_ns = floor;
	if (state->chunk_tokens_ns > now_ns) {
		count(state, COUNTER_CHUNK_LIMIT);
		return false;
	}
	return true;
}

/* Copies the stack from the sample's sp up, in whole pages, as far as it can be read. */
static __always_inline void send_stack(struct cpu_state *state, struct scratch *scratch, bool loop_form)
{
	struct sample_record *sample = &scratch->sample;
	struct chunk_loop loop = {
		.state = state,
		.addr = scratch->regs.regs[7],
		.end = ~0ull,
		.time_ns = sample->hdr.time_ns,
		.cpu = sample->hdr.cpu,
	};

	sample->flags |= SAMPLE_HAS_REGS;
	count(state, COUNTER_MISSES);
	if (!take_chunk_tokens(state, sample->hdr.time_ns)) {
		sample->flags |= SAMPLE_LIMITED;
		return;
	}
	/* Without it the copy goes on into whatever is mapped behind a thread's stack. Busy locks make it fail: then so be it. */
	if (cfg_find_vma)
		bpf_find_vma((void *)bpf_get_current_task_btf(), loop.addr, area_callback, &loop, 0);
	if (loop_form) {
		bpf_loop(cfg_stack_chunks, chunk_callback, &loop, 0);
	} else {
		for (int i = 0; i < 64; i++)
			if (send_chunk(&loop))
				break;
	}
	state->chunk_tokens_ns += loop.cnt * cfg_chunk_cost_ns;
	sample->chunk_cnt = loop.cnt;
	if (loop.cnt >= cfg_stack_chunks)
		sample->flags |= SAMPLE_CUT;
}

static __always_inline bool end_is_miss(__u32 end)
{
	return end >= END_MISS_PROC && end <= END_USER_RULE;
}

/* Closes the record and hands it to the ring. */
static __always_inline void finish_sample(struct cpu_state *state, struct scratch *scratch, bool loop_form)
{
	struct walk *walk = &scratch->walk;
	struct sample_record *sample = &scratch->sample;
	__u32 words, index = walk->cpu & (cfg_rings - 1), size, end = walk->state.end;
	bool miss = end_is_miss(end);
	void *ring;

	sample->hdr.kind = RECORD_SAMPLE;
	sample->hdr.version = RECORD_VERSION;
	sample->hdr.cpu = walk->cpu;
	sample->asid = walk->asid;
	sample->kernel_cnt = walk->kernel_cnt;
	sample->user_cnt = walk->user_cnt;
	sample->end = end;
	sample->flags = 0;
	sample->chunk_cnt = 0;
	sample->pad = 0;
	state->counters[COUNTER_TORN] += walk->torn;
	words = walk->kernel_cnt + walk->user_cnt;
	if (miss) {
		send_stack(state, scratch, loop_form);
		__builtin_memcpy(&scratch->words[word_index(words)], &scratch->regs, sizeof(scratch->regs));
		words += sizeof(scratch->regs) / 8;
	}
	size = sizeof(*sample) + word_index(words) * 8;
	sample->hdr.size = size;
	sample->hdr.seq = state->seq++;
	ring = bpf_map_lookup_elem(&rings, &index);
	if (!ring)
		return;
	if (bpf_ringbuf_output(ring, sample, size,
			       miss || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_wake_bytes ? BPF_RB_FORCE_WAKEUP :
												      BPF_RB_NO_WAKEUP))
		count(state, COUNTER_LOST_RING);
}

/* Counts the entry and says whether it is a sample to take. */
static __always_inline bool wanted(struct cpu_state *state)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	count(state, COUNTER_ENTRIES);
	if (!pid) {
		count(state, COUNTER_IDLE);
		return false;
	}
	if (cfg_filter_pids && !bpf_map_lookup_elem(&filter_pids, &pid)) {
		count(state, COUNTER_FILTERED);
		return false;
	}
	count(state, COUNTER_TAKEN);
	return true;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = bpf_map_lookup_elem(&cpu_states, &cpu);
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &cpu);
	struct loop_context loop = { scratch };

	if (!state || !scratch || !wanted(state))
		return 0;
	if (begin_sample(ctx, scratch, cpu))
		bpf_loop(MAX_USER_FRAMES + 1, walk_callback, &loop, 0);
	finish_sample(state, scratch, true);
	return 0;
}

/* --- the same walk for kernels without bpf_loop --- */

enum { TAIL_FRAMES = 8 }; /* frames a program walks; 33 programs make a walk of 264 */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tail_programs SEC(".maps");

static __always_inline void walk_some(struct bpf_perf_event_data *ctx, struct scratch *scratch)
{
	struct walk *walk = &scratch->walk;

	for (int i = 0; i < TAIL_FRAMES; i++)
		if (walk_frame(walk, scratch, false))
			return;
	bpf_tail_call(ctx, &tail_programs, 0);
	walk->state.end = END_DEPTH;
}

SEC("perf_event")
int on_sample_tail(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = bpf_map_lookup_elem(&cpu_states, &cpu);
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &cpu);

	if (!state || !scratch || !wanted(state))
		return 0;
	if (begin_sample(ctx, scratch, cpu))
		walk_some(ctx, scratch);
	finish_sample(state, scratch, false);
	return 0;
}

SEC("perf_event")
int walk_tail(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *state = bpf_map_lookup_elem(&cpu_states, &cpu);
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &cpu);

	if (!state || !scratch)
		return 0;
	walk_some(ctx, scratch);
	finish_sample(state, scratch, false);
	return 0;
}

/* Children of filtered processes are followed (raw arguments: the new task, its clone flags). */
SEC("raw_tp/task_newtask")
int on_new_task(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 parent = bpf_get_current_pid_tgid() >> 32, child;
	struct task_struct *task = (void *)ctx->args[0];
	__u8 one = 1;

	if (ctx->args[1] & CLONE_THREAD_FLAG || !bpf_map_lookup_elem(&filter_pids, &parent))
		return 0;
	child = BPF_CORE_READ(task, tgid);
	bpf_map_update_elem(&filter_pids, &child, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
