/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends a finished walk to the ring: the sample record, and before it the stack in chunk records if user space must walk the
 * sample again. Only BPF programs include this, after the helpers.
 */
#ifndef HEARTH_BPF_SEND_H
#define HEARTH_BPF_SEND_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"
#include "bpf/program.bpf.h"
#include "bpf/stacks.bpf.h"

/* The argument of the callbacks. The copy's own state is in scratch->copy, where the verifier does not follow its values. */
struct chunk_loop {
	struct cpu_state *state;
	struct scratch *scratch;
};

enum {
	END_CHUNKS = 16,	      /* chunks at most of each end of a long stack, sent before the chunks between */
	FAIR_CHUNKS = 2 * END_CHUNKS, /* chunks of a sample; more are sent while half of their room is free, or few deep
					 stacks would take it all */
};

/* Sends the page of stack at copy.addr, as far as the stack goes. Returns 1 at the stack's end (or of the ring's
 * room). */
static __always_inline int send_chunk(struct cpu_state *state, struct scratch *scratch)
{
	struct stack_copy *copy = &scratch->copy;
	struct stack_chunk *chunk = &scratch->chunk;
	__u32 cpu = scratch->sample.hdr.cpu, index = cpu & (cfg_rings - 1);
	__u64 len = STACK_CHUNK_BYTES - (copy->addr & (STACK_CHUNK_BYTES - 1));
	void *ring = bpf_map_lookup_elem(&rings, &index);
	__u64 room, left = copy->end - copy->addr;

	if (!ring || copy->addr >= copy->end)
		return 1;
	len = least(len, left & ~0ull >> 1); /* of a stack without an end that is known the top bit is set */
	/* the rest is for samples; a half, or a quarter from FAIR_CHUNKS on, without a branch: verifiers follow each */
	room = bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) >> (1 + ((FAIR_CHUNKS - 1 - (__u64)copy->cnt) >> 63));
	copy->tries++;
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > room) {
		count(state, COUNTER_CHUNK_RING);
		scratch->sample.flags |= SAMPLE_LIMITED;
		return 1;
	}
	len = masked(len, 2 * STACK_CHUNK_BYTES - 1);
	if (len > STACK_CHUNK_BYTES || bpf_probe_read_user(chunk->data, len, (void *)copy->addr)) {
		if (copy->end == ~0ull && copy->addr >= copy->sp)
			return 1;  /* as far as we know the stack ends here */
		copy->addr += len; /* a page that no frame has touched yet */
		return 0;
	}
	chunk->hdr.kind = RECORD_STACK_CHUNK;
	chunk->hdr.level = scratch->walk.level;
	chunk->hdr.version = RECORD_VERSION;
	chunk->hdr.size = CHUNK_HEAD_BYTES + len;
	chunk->hdr.time_ns = scratch->sample.hdr.time_ns;
	chunk->hdr.cpu = cpu;
	chunk->hdr.seq = state->seq;
	chunk->addr = copy->addr;
	chunk->len = len;
	chunk->pid = scratch->sample.pid;
	if (bpf_ringbuf_output(ring, chunk, CHUNK_HEAD_BYTES + len, BPF_RB_NO_WAKEUP)) {
		count(state, COUNTER_CHUNK_RING);
		scratch->sample.flags |= SAMPLE_LIMITED;
		return 1;
	}
	state->seq++;
	copy->addr += len;
	copy->cnt++;
	return 0;
}

static long chunk_callback(__u32 index, struct chunk_loop *loop)
{
	if (!loop->state || !loop->scratch)
		return 1;
	return send_chunk(loop->state, loop->scratch);
}

static long area_callback(struct task_struct *task, struct vm_area_struct *area, struct chunk_loop *loop)
{
	if (loop->scratch)
		loop->scratch->copy.end = area->vm_end;
	return 0;
}

/* May this sample carry its stack? Each chunk takes cfg_chunk_cost_ns from a budget that time refills. */
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

/* Notes that the bytes from @start on were sent. */
static __always_inline void note_copied(struct stack_copy *copy, __u64 start)
{
	__u32 at = copy->copies;

	if (at >= MAX_COPIES)
		return;
	at = masked(at, COPIES_ROOM - 1);
	copy->done[at].start = start;
	copy->done[at].end = copy->addr;
	copy->copies = at + 1;
}

/* Sends what scratch->copy names, at most @chunks pages. A function apart, as the verifier would follow the turns of each
 * call otherwise: half of the time that it took for all. */
__noinline int copy_alone(struct cpu_state *state, struct scratch *scratch, __u32 chunks)
{
	struct chunk_loop loop = { state, scratch };
	__u64 start;

	if (!state || !scratch)
		return 0;
	start = scratch->copy.addr;
	bpf_loop(chunks, chunk_callback, &loop, 0);
	note_copied(&scratch->copy, start);
	return 0;
}

/* Sends the bytes between @start and @end, at most @chunks pages. @sp is the stack's; the stack may end there when @end is
 * ~0. */
static __always_inline void copy_range(struct chunk_loop *loop, __u64 sp, __u64 start, __u64 end, __u32 chunks,
				       bool loop_form)
{
	struct stack_copy *copy = &loop->scratch->copy;

	copy->sp = sp;
	copy->addr = start;
	copy->end = end;
	copy->tries = 0;
	if (loop_form) {
		copy_alone(loop->state, loop->scratch, chunks);
		return;
	}
	for (int i = 0; i < 64; i++)
		if (send_chunk(loop->state, loop->scratch))
			break;
	note_copied(copy, start);
}

/* Sends the stack that @sp is on, from the red zone up, at most @chunks pages. */
static __always_inline void copy_stack(struct chunk_loop *loop, __u64 sp, __u64 end, __u32 chunks, bool loop_form)
{
	copy_range(loop, sp, sp - RED_ZONE_BYTES, end, chunks, loop_form);
	if (loop->scratch->copy.tries >= chunks)
		loop->scratch->sample.flags |= SAMPLE_CUT;
}

/*
 * Sends a stack whose end is known. A stack that is so long mostly has one large frame not far from its root. The walk may
 * get past that frame with both ends of the stack, so they are sent first, while there is room in the ring.
 */
static __always_inline void copy_whole_stack(struct chunk_loop *loop, __u64 sp, __u64 end)
{
	__u32 ends = cfg_stack_chunks / 2 < END_CHUNKS ? cfg_stack_chunks / 2 : END_CHUNKS;
	__u64 near = (sp & -STACK_CHUNK_BYTES) + ends * STACK_CHUNK_BYTES,
	      far = (end & -STACK_CHUNK_BYTES) - ends * STACK_CHUNK_BYTES;

	if (near >= far) {
		copy_stack(loop, sp, end, cfg_stack_chunks, true);
		return;
	}
	copy_range(loop, sp, sp - RED_ZONE_BYTES, near, ends + 1, true);
	copy_range(loop, sp, far, end, ends + 1, true);
	copy_range(loop, sp, near, far, cfg_stack_chunks - 2 * ends, true);
	if (loop->scratch->copy.addr < far)
		loop->scratch->sample.flags |= SAMPLE_CUT;
}

static __always_inline bool is_copied(const struct stack_copy *copy, __u64 addr)
{
	for (int i = 0; i < MAX_COPIES; i++)
		if (addr - copy->done[i].start < copy->done[i].end - copy->done[i].start)
			return true;
	return false;
}

enum { OTHER_STACK_CHUNKS = 16 }; /* how far a stack is copied whose size is not known */

/* Sends a further stack of the thread, unless there is none (@addr is 0) or it was sent already. @end: 0 when not known. */
static __always_inline void copy_other_stack(struct chunk_loop *loop, __u64 addr, __u64 end, bool loop_form)
{
	if (addr && !is_copied(&loop->scratch->copy, addr))
		copy_stack(loop, addr, end ? end : ~0ull, end ? cfg_stack_chunks : OTHER_STACK_CHUNKS, loop_form);
}

/* Sends the thread's other stacks; one that a signal has interrupted is looked for with bpf_loop() alone. */
static __always_inline void send_other_stacks(struct cpu_state *state, struct scratch *scratch, bool loop_form)
{
	struct chunk_loop loop = { state, scratch };
	struct go_thread *go = &scratch->go;
	__u64 sp = scratch->walk.state.sp, end = scratch->copy.first_end, interrupted = 0;

	if (loop_form) {
		find_interrupted(scratch, scratch->regs.regs[REG_SP]);
		interrupted = scratch->copy.addr;
	}
	if (interrupted) {
		copy_other_stack(&loop, interrupted, 0, loop_form);
		copy_other_stack(&loop, find_go_frame(go, interrupted, scratch->copy.fp), go->sched.stack_hi, loop_form);
	}
	if (go->is_away && go->sched.sp < go->sched.stack_hi)
		copy_other_stack(&loop, go->sched.sp - go->pushed_bytes, go->sched.stack_hi, loop_form);
	if (go->g0_sp < go->g0_hi)
		copy_other_stack(&loop, go->g0_sp, 0, loop_form);
	copy_other_stack(&loop, find_go_frame(go, scratch->regs.regs[REG_SP], scratch->regs.regs[REG_FP]),
			 go->sched.stack_hi, loop_form);
	/* Adds where the walk was when it missed: user space goes on there if it gets no further from the sample's sp. */
	copy_other_stack(&loop, sp, sp > scratch->regs.regs[REG_SP] && sp < end && end != ~0ull ? end : 0, loop_form);
}

__noinline int send_other_stacks_alone(struct cpu_state *state, struct scratch *scratch)
{
	if (state && scratch)
		send_other_stacks(state, scratch, true);
	return 0;
}

/* arch/x86/mm/mmap.c, arch/arm64: mm/util.c: at least this many bytes below a program's first stack nothing else is mapped,
 * unless somebody asks for that very place. */
enum { FIRST_STACK_BYTES = 128 << 20 };

enum { ENTRY_BYTES = 64 }; /* what code that begins a program or a thread may look at above its stack's last frame */

/*
 * The end of another stack, in the memory area that ends at @end. C libraries put the data that the thread pointer points to
 * at the top of a thread's stack. Behind that there may be any memory that was mapped with the same rights.
 */
static __always_inline __u64 thread_stack_end(__u64 sp, __u64 end)
{
	__u64 tp = cpu_thread_pointer(current_task(), cfg_task_btf), top = tp + ENTRY_BYTES;

	return tp > sp && top < end ? top : end;
}

/* The end of the program's first stack when @sp is on it, else 0. Behind the end are arguments and environment. */
static __always_inline __u64 first_stack_end(__u64 sp)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = cfg_task_btf ? task->mm : BPF_CORE_READ(task, mm);
	__u64 start = mm ? BPF_CORE_READ(mm, start_stack) : 0;

	return sp <= start && start - sp < FIRST_STACK_BYTES ? start + ENTRY_BYTES : 0;
}

/*
 * Copies the stack from the sample's sp up, as far as it can be read, then the others. Without the end of the stack's memory
 * area the copy goes on into whatever is mapped behind a thread's stack. That is accepted when busy locks make bpf_find_vma
 * fail, as happens when two recordings run. A goroutine's stack is a small part of the heap.
 */
static __always_inline void send_stacks(struct cpu_state *state, struct scratch *scratch, bool loop_form)
{
	struct sample_record *sample = &scratch->sample;
	struct chunk_loop loop = { state, scratch };
	struct stack_copy *copy = &scratch->copy;
	struct go_thread *go = &scratch->go;
	__u64 sp = scratch->regs.regs[REG_SP];

	count(state, COUNTER_MISSES);
	scratch->regs.stop_sp = scratch->walk.state.lost_sp ? 0 : scratch->walk.state.sp;
	scratch->regs.stop_fp = scratch->walk.state.fp;
	if (loop_form)
		find_go_alone(scratch);
	else
		find_go(scratch);
	scratch->regs.sched = go->sched;
	if (scratch->walk.vm.sp && !go->sched.pc)
		scratch->regs.sched = (struct unwind_sched){
			.pc = scratch->walk.vm.start,
			.sp = scratch->walk.vm.sp,
			.fp = scratch->walk.vm.end,
			.lr = scratch->walk.vm.has_made_code,
		};
	if (!take_chunk_tokens(state, sample->hdr.time_ns)) {
		sample->flags |= SAMPLE_LIMITED;
		return;
	}
	__builtin_memset(copy, 0, sizeof(*copy));
	copy->end = first_stack_end(sp);
	if (!copy->end) {
		copy->end = ~0ull; /* area_callback knows better */
		if (loop_form && cfg_find_vma)
			bpf_find_vma((void *)bpf_get_current_task_btf(), sp, area_callback, &loop, 0);
		copy->end = thread_stack_end(sp, copy->end);
	}
	/* A thread that C made says of its stack's end where Go's part of it ends: the frames above are near. */
	if (is_on_go_stack(go, sp) && go->stack_hi < copy->end) {
		__u64 end = ((go->stack_hi - 1) | (STACK_CHUNK_BYTES - 1)) + 1;

		copy->end = end < copy->end ? end : copy->end;
	}
	copy->first_end = copy->end;
	if (loop_form && copy->end != ~0ull)
		copy_whole_stack(&loop, sp, copy->end);
	else
		copy_stack(&loop, sp, copy->end, cfg_stack_chunks, loop_form);
	if (loop_form)
		send_other_stacks_alone(state, scratch);
	else
		send_other_stacks(state, scratch, false);
	state->chunk_tokens_ns += copy->cnt * cfg_chunk_cost_ns;
	sample->chunk_cnt = copy->cnt;
}

/* A function apart, as the verifier would look at it once for each way that leads here otherwise. */
__noinline int send_stacks_alone(struct cpu_state *state, struct scratch *scratch)
{
	if (state && scratch)
		send_stacks(state, scratch, true);
	return 0;
}

static __always_inline bool end_is_miss(__u32 end)
{
	return end >= END_MISS_PROC && end <= END_USER_RULE;
}

/*
 * A thread that has just begun stands behind the system call that made it, which returned 0, and nobody has touched the page
 * its stack pointer points to. Only user space, which knows the code, can tell that from a stack that cannot be read.
 */
static __always_inline bool may_be_new_thread(const struct walk *walk, const struct scratch *scratch)
{
	return walk->state.end == END_BAD_MEMORY && walk->user_cnt == 1 && !scratch->regs.regs[0];
}

/* @words, of which verifiers know nothing any more: the ways that led here are one for them from here on. */
static __always_inline __u32 merged(struct scratch *scratch, __u32 words)
{
	*(volatile __u32 *)&scratch->word_cnt = words;
	return *(volatile __u32 *)&scratch->word_cnt;
}

/* Puts the sections' heads before the frames, which are in place already. Returns how many words the sections have. */
static __always_inline __u32 close_frames(struct walk *walk, struct scratch *scratch)
{
	if (walk->kernel_cnt)
		scratch->words[0] = SECTION(SECTION_KERNEL, walk->kernel_cnt * 8);
	if (!walk->user_cnt)
		return walk->user_at - 1;
	scratch->words[word_index(walk->user_at - 1)] = SECTION(SECTION_USER, walk->user_cnt * 8);
	return walk->user_at + walk->user_cnt;
}

/* Puts the head of the chains before them, and the stack pointers of the user frames behind @words. Returns how many words
 * the sections have then. */
static __always_inline __u32 close_chain(struct walk *walk, struct scratch *scratch, __u32 words)
{
	__u32 bytes = masked(walk->user_cnt * sizeof(scratch->sps[0]), 2 * sizeof(scratch->sps) - 1);
	__u64 at = masked(words + 2, SCRATCH_WORDS - 1);

	if (!walk->chain_cnt)
		return words;
	scratch->words[word_index(walk->user_at - 2 - walk->chain_cnt)] = SECTION(SECTION_CHAIN, walk->chain_cnt * 8);
	if (!bytes || bytes > sizeof(scratch->sps))
		return words;
	scratch->words[word_index(words)] = SECTION(SECTION_STACK_POINTERS, sizeof(walk->first_sp) + bytes);
	scratch->words[word_index(words + 1)] = walk->first_sp;
	if (bpf_probe_read_kernel(&scratch->words[at], bytes, scratch->sps))
		return words;
	return words + 2 + (walk->user_cnt + 1) / 2;
}

/* Puts the captured words behind @words. Returns how many words the sections have then. */
static __always_inline __u32 close_captures(struct cpu_state *state, struct walk *walk, struct scratch *scratch, __u32 words)
{
	__u32 bytes = masked(walk->capture_cnt * 8, 2 * 8 * MAX_CAPTURE_WORDS - 1);
	__u64 at = masked(words + 1, SCRATCH_WORDS - 1);

	if (!walk->capture_cnt)
		return words;
	if (!bytes || bytes > 8 * MAX_CAPTURE_WORDS ||
	    at > SCRATCH_WORDS - MAX_CAPTURE_WORDS - 2 - sizeof(scratch->regs) / 8 ||
	    bpf_probe_read_kernel(&scratch->words[at], bytes, scratch->captures)) {
		count(state, COUNTER_CAPTURES);
		return words;
	}
	scratch->words[word_index(words)] = SECTION(SECTION_CAPTURES, bytes);
	return words + 1 + bytes / 8;
}

/* Puts the waits that a waker has ended, or the wait that the sample is of, behind @words, with what it was for. Without
 * branches: each would double what the verifier has to look at behind it. */
static __always_inline __u32 close_wait(struct scratch *scratch, __u32 words)
{
	const struct sample_more *more = &scratch->more;
	__u32 wakes = masked(more->wake_cnt, 2 * MAX_WAKES - 1),
	      is_waker = cfg_wakers ? (wakes + MAX_WAKES - 1) / MAX_WAKES : 0,
	      has_target = (masked(more->target.kind, 127) + 127) >> 7;

	scratch->words[word_index(words)] = SECTION(SECTION_WAKES, (__u64)wakes * sizeof(struct wake));
	__builtin_memcpy(&scratch->words[word_index(words + 1)], more->wakes, sizeof(more->wakes));
	words += is_waker * (1 + wakes * (__u32)sizeof(struct wake) / 8);
	scratch->words[word_index(words)] = SECTION(SECTION_WAIT, sizeof(more->wait));
	__builtin_memcpy(&scratch->words[word_index(words + 1)], &more->wait, sizeof(more->wait));
	words += (1 - is_waker) * (1 + (__u32)sizeof(more->wait) / 8);
	scratch->words[word_index(words)] = SECTION(SECTION_TARGET, sizeof(more->target));
	__builtin_memcpy(&scratch->words[word_index(words + 1)], &more->target, sizeof(more->target));
	return words + has_target * (1 + (__u32)sizeof(more->target) / 8);
}

/* Puts the value of the sample, and what else only samples with values have, behind @words. */
static __always_inline __u32 close_more(struct scratch *scratch, __u32 words)
{
	const struct sample_more *more = &scratch->more;

	scratch->words[word_index(words++)] = SECTION(SECTION_VALUE, 8);
	scratch->words[word_index(words++)] = more->value;
	if (cfg_pages) {
		scratch->words[word_index(words++)] = SECTION(SECTION_PAGE, 8);
		scratch->words[word_index(words++)] = more->page_addr;
		return words;
	}
	words = close_wait(scratch, words);
	if (!more->second_value)
		return words;
	scratch->words[word_index(words++)] = SECTION(SECTION_MORE, 16);
	scratch->words[word_index(words++)] = more->second_kind;
	scratch->words[word_index(words++)] = more->second_value;
	return words;
}

/* Puts the return addresses that were taken for probes behind @words. */
static __always_inline __u32 close_returns(struct scratch *scratch, __u32 words)
{
	struct walk *walk = &scratch->walk;
	struct return_instance *call = (void *)walk->returns;
	__u32 head = words, count = 1;

	if (!walk->trampoline)
		return words;
	scratch->words[word_index(words + 1)] = walk->trampoline;
	scratch->words[word_index(words + 2)] = 0;
	words += 3;
	for (int i = 0; i < MAX_PROBED_CALLS && call; i++) {
		scratch->words[word_index(words++)] = BPF_CORE_READ(call, stack);
		scratch->words[word_index(words++)] = BPF_CORE_READ(call, orig_ret_vaddr);
		call = BPF_CORE_READ(call, next);
		count++;
	}
	scratch->words[word_index(head)] = SECTION(SECTION_RETURNS, count * 16);
	return words;
}

__noinline __u32 close_returns_alone(struct scratch *scratch, __u32 words)
{
	return scratch ? close_returns(scratch, words) : words;
}

/* Puts the probe's place behind @words. */
static __always_inline __u32 close_probe(struct scratch *scratch, __u32 words)
{
	__u64 count = masked(scratch->probe.arg_cnt, 7);

	scratch->words[word_index(words++)] = SECTION(SECTION_PROBE, 8 + count * 8);
	scratch->words[word_index(words++)] = scratch->probe.probe | count << 32;
	for (int i = 0; i < PROBE_ARGS; i++)
		scratch->words[word_index(words + i)] = scratch->probe.args[i];
	return words + count;
}

static __always_inline void lose(struct cpu_state *state, enum kernel_loss loss, __u32 kind, __u64 value)
{
	state->lost[loss][kind & (MAX_KINDS - 1)]++;
	state->lost_value[loss][kind & (MAX_KINDS - 1)] += value;
}

static __always_inline void lose_sample(struct cpu_state *state, struct scratch *scratch, enum kernel_loss loss)
{
	lose(state, loss, scratch->sample.kind, cfg_values ? scratch->more.value : 0);
	if (cfg_values && scratch->more.second_value)
		lose(state, loss, scratch->more.second_kind, scratch->more.second_value);
	if (cfg_wakers && scratch->more.wake_cnt > 1)
		state->lost[loss][scratch->sample.kind & (MAX_KINDS - 1)] += scratch->more.wake_cnt - 1;
}

/* Closes the record and hands it to the ring. */
static __always_inline void finish_sample(struct cpu_state *state, struct scratch *scratch, bool loop_form)
{
	struct walk *walk = &scratch->walk;
	struct sample_record *sample = &scratch->sample;
	__u32 end = may_be_new_thread(walk, scratch) ? END_USER_RULE : walk->state.end, words, index = walk->ring, size;
	bool miss = end_is_miss(end);
	void *ring;

	sample->hdr.kind = RECORD_SAMPLE;
	sample->hdr.level = walk->level;
	sample->hdr.version = RECORD_VERSION;
	sample->hdr.cpu = walk->cpu;
	sample->asid = walk->asid;
	sample->end = end;
	sample->chunk_cnt = 0;
	state->counters[COUNTER_TORN] += walk->torn;
	state->counters[COUNTER_FOLDED] += walk->deep.folded;
	if (miss) { /* first, as verifiers would follow it for each number of words */
		if (loop_form)
			send_stacks_alone(state, scratch);
		else
			send_stacks(state, scratch, false);
	}
	words = close_frames(walk, scratch);
	words = merged(scratch, close_chain(walk, scratch, words));
	if (cfg_values)
		words = merged(scratch, close_more(scratch, words));
	if (cfg_probes)
		words = close_probe(scratch, words);
	words = merged(scratch, close_captures(state, walk, scratch, words));
	if (miss) {
		scratch->words[word_index(words++)] = SECTION(SECTION_REGS, sizeof(scratch->regs));
		__builtin_memcpy(&scratch->words[word_index(words)], &scratch->regs, sizeof(scratch->regs));
		words += sizeof(scratch->regs) / 8;
		words = loop_form ? close_returns_alone(scratch, words) : close_returns(scratch, words);
		if (end == END_MISS_PROC)
			words = loop_form ? close_program_alone(state, scratch, words)
					  : close_program(state, scratch, words);
	}
	size = sizeof(*sample) + word_index(words) * 8;
	sample->hdr.size = size;
	sample->hdr.seq = state->seq++;
	ring = bpf_map_lookup_elem(&rings, &index);
	if (!ring)
		return;
	if (bpf_ringbuf_output(ring, sample, size,
			       miss || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_wake_bytes ? BPF_RB_FORCE_WAKEUP
												   : BPF_RB_NO_WAKEUP)) {
		lose_sample(state, scratch, KERNEL_LOSS_RING);
		state->told_program = 0;
	}
}

#endif
