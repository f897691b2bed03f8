/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack walk in the kernel. It takes rows from this CPU's first level, else from mapping and block, and reads words
 * of the stack through a window. The step itself is bpf/unwind.h. Only BPF programs include this, after the helpers.
 */
#ifndef HEARTH_BPF_WALK_H
#define HEARTH_BPF_WALK_H

#include "bpf/maps.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/unwind.h"

#define barrier() asm volatile("" ::: "memory")

/*
 * Seldom taken paths are global functions in the bpf_loop form: the verifier checks each once, alone. Before 5.12 global
 * functions take no pointers, so the tail-call form inlines them; @loop_form is a constant in every inlined copy.
 */
struct unwind_memory {
	struct walk *walk;
	struct scratch *scratch;
	bool loop_form;
};

/* Moves the window to @addr, up to the end of its page. */
static __always_inline int move_window(struct walk *walk, struct scratch *scratch, __u64 addr)
{
	__u32 len = sizeof(scratch->chunk.data) - (addr & (sizeof(scratch->chunk.data) - 1));

	walk->window_len = 0;
	if (len > sizeof(scratch->chunk.data) || bpf_probe_read_user(scratch->chunk.data, len, (void *)addr))
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

/* Reads one word of the user stack through the window: copying a page takes hardly longer than copying a word. */
static __always_inline int unwind_read(struct unwind_memory *memory, __u64 addr, __u64 *value)
{
	struct walk *walk = memory->walk;
	struct scratch *scratch = memory->scratch;
	__u64 off = addr - walk->window;

	if (off > sizeof(scratch->chunk.data) - 8 || off + 8 > walk->window_len) {
		if ((addr & (sizeof(scratch->chunk.data) - 1)) > sizeof(scratch->chunk.data) - 8)
			return bpf_probe_read_user(value, 8, (void *)addr) != 0;
		if (memory->loop_form ? move_window_alone(walk, scratch, addr) : move_window(walk, scratch, addr))
			return 1;
		off = 0;
	}
	*value = *(__u64 *)(scratch->chunk.data + (off & (sizeof(scratch->chunk.data) - 1)));
	return 0;
}

static __always_inline int unwind_read_sched(struct unwind_memory *memory, struct unwind_sched *sched)
{
	struct walk *walk = memory->walk;

	if (walk->vm.has_made_code && walk->kind == MAPPING_FP) {
		*sched = (struct unwind_sched){ .pc = walk->vm.start + 1, .sp = walk->vm.sp, .fp = walk->state.fp };
		return 0;
	}
	if (memory->loop_form)
		find_go_alone(memory->scratch);
	*sched = memory->scratch->go.sched;
	return !sched->pc;
}

/* The return address in place of the trampoline's, of the frame that ends at @cfa; the trampoline's if there is none. Frames
 * that a longjmp() left are passed over. */
static __always_inline __u64 put_back(struct walk *walk, __u64 cfa)
{
	for (int i = 0; i < MAX_PROBED_CALLS; i++) {
		struct return_instance *call = (void *)walk->next_return;
		__u64 end = call ? BPF_CORE_READ(call, stack) + PUSHED_BY_CALL : 0;

		if (!end || end > cfa)
			break;
		if (end == cfa)
			return BPF_CORE_READ(call, orig_ret_vaddr);
		walk->next_return = (__u64)BPF_CORE_READ(call, next);
	}
	return walk->trampoline;
}

__noinline __u64 put_back_alone(struct walk *walk, __u64 cfa)
{
	return walk ? put_back(walk, cfa) : 0;
}

/* The tail-call form leaves it to user space. */
static __always_inline __u64 unwind_put_back(struct unwind_memory *memory, __u64 pc, __u64 cfa)
{
	if (!memory->loop_form || !pc || pc != memory->walk->trampoline)
		return pc;
	return put_back_alone(memory->walk, cfa);
}

static __always_inline __u64 unwind_code_mask(void)
{
	return CPU_HAS_LR ? cfg_code_mask : ~0ull;
}

/* Puts the mapping of @pc, found among the pieces of one size, into the walk. 0, or a miss. */
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

/* Finds the row of ELF address @va of the walk's file. 0, or a miss. */
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

/* Code of no file that runs in the frame of the virtual machine that made it: it has none of its own. */
#define ROW_IN_VM_FRAME ROW(0, RULE_SCHED, SCHED_RESUMES, 0, 0)

static __always_inline bool is_near_vm(const struct walk *walk)
{
	return walk->vm.sp - walk->state.sp - 1 < VM_FRAME_BELOW_BYTES;
}

/* Puts the row of @pc, found by mapping and block, into walk->row. Returns 0, or the end reason of a miss. */
static __always_inline int find_rule(struct walk *walk, __u64 pc)
{
	walk->row = 0;
	if ((pc < walk->start || pc >= walk->end) && find_piece(walk, pc, MAPPING_HUGE_SHIFT) &&
	    find_piece(walk, pc, MAPPING_BIG_SHIFT) && find_piece(walk, pc, MAPPING_PAGE_SHIFT))
		return END_MISS_MAPPING;
	if (walk->kind == MAPPING_FP)
		walk->row = walk->vm.has_made_code && is_near_vm(walk) ? ROW_IN_VM_FRAME : ROW_FRAME_POINTER;
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

/* Is @row the same for each walk? User space may put a better one than RULE_USER into the blocks. */
static __always_inline bool is_kept(__u64 row)
{
	return ROW_RULE(row) != RULE_USER && row != ROW_IN_VM_FRAME;
}

/* Gets the finished row of @pc, out of this CPU's first level if it is there. Returns 0, or the end reason of a miss. */
static __always_inline __u32 find_first(struct walk *walk, __u64 pc, __u64 *row, bool loop_form)
{
	__u64 tag = (__u64)walk->asid << (CPU_USER_BITS - 12) | pc >> 12;
	__u32 index = (pc + (tag * 0x9E3779B97F4A7C15ull >> 52)) & (FIRST_LEVEL_ENTRIES - 1);
	struct first_level_entry *first;
	__u32 end;

	index += walk->slot * FIRST_LEVEL_ENTRIES;
	first = bpf_map_lookup_elem(&first_level, &index);
	if (first && first->tag == tag) {
		*row = first->row;
		return 0;
	}
	end = loop_form ? find_rule_alone(walk, pc) : find_rule(walk, pc);
	if (end)
		return end;
	*row = walk->row;
	if (first && is_kept(*row)) {
		first->tag = 0;
		barrier();
		first->row = *row;
		barrier();
		first->tag = tag;
	}
	return 0;
}

/*
 * The memo: the rows that the last walk on this CPU looked up. Most frames of a thread's next stack are in it, in the same
 * order. Such a frame takes one comparison in memory that is read from end to end; the first level takes a cache line for
 * each frame. A row belongs to (asid, address), as in the first level, so a memo of the same address space is as good. The
 * half that is read ends with an entry that nothing equals.
 */
static __always_inline void memo_begin(struct walk *walk, struct scratch *scratch)
{
	struct memo_frame *first = &scratch->memo[memo_index(scratch->memo_put)];

	if (scratch->memo_asid != walk->asid) {
		first->addr = ~0ull;
		first->sp = ~0ull;
	}
	walk->memo_at = scratch->memo_put;
	scratch->memo_put ^= MAX_USER_FRAMES;
	walk->memo_put = scratch->memo_put;
	scratch->memo_asid = walk->asid;
}

static __always_inline void memo_end(struct walk *walk, struct scratch *scratch)
{
	struct memo_frame *last = &scratch->memo[memo_index(walk->memo_put)];

	last->addr = ~0ull;
	last->sp = ~0ull;
}

/* Frames that only the last walk had are passed over, two for each frame of this walk. */
static __always_inline bool memo_recall(struct walk *walk, struct scratch *scratch, __u64 addr, __u64 *row)
{
	struct memo_frame *f = &scratch->memo[memo_index(walk->memo_at)];

	if (f->sp < walk->state.sp) {
		f = &scratch->memo[memo_index(++walk->memo_at)];
		if (f->sp < walk->state.sp)
			f = &scratch->memo[memo_index(++walk->memo_at)];
	}
	if (f->addr != addr)
		return false;
	*row = f->row;
	walk->memo_at++;
	return true;
}

static __always_inline void memo_keep(struct walk *walk, struct scratch *scratch, __u64 addr, __u64 row)
{
	struct memo_frame *f = &scratch->memo[memo_index(walk->memo_put++)];

	f->addr = addr;
	f->sp = walk->state.sp;
	f->row = row;
}

/* Gets the row of @addr, out of the memo if it is there, and puts it into the memo. 0, or the end reason of a miss. */
static __always_inline __u32 find_again(struct walk *walk, struct scratch *scratch, __u64 addr, __u64 *row, bool loop_form)
{
	__u32 end;

	if (!loop_form) /* its programs are near the verifier's limits */
		return find_first(walk, addr, row, false);
	if (!memo_recall(walk, scratch, addr, row)) {
		end = find_first(walk, addr, row, true);
		if (end)
			return end;
	}
	if (is_kept(*row))
		memo_keep(walk, scratch, addr, *row);
	return 0;
}

/* Notes the sp of the frame that is walked next, of a sample with chains. */
static __always_inline void note_sp(struct walk *walk, struct scratch *scratch)
{
	__u64 above;

	if (!walk->user_cnt)
		walk->first_sp = walk->state.sp;
	above = walk->state.sp - walk->first_sp;
	scratch->sps[masked(walk->user_cnt, MAX_USER_FRAMES - 1)] = above < SP_FAR ? above : SP_FAR;
}

/* Reads the word at @addr, unless that was read of late for such a frame. It stays as it was where that cannot be read. */
static __always_inline void follow_pointer(struct walk *walk, struct scratch *scratch, __u64 addr, __u64 beside, __u64 *word)
{
	struct followed *f = &scratch->followed[masked(addr * 0x9E3779B97F4A7C15ull >> 58, FOLLOWED_SLOTS - 1)];
	__u64 now_ns = scratch->sample.hdr.time_ns;

	if (f->at != addr || f->beside != beside || f->asid != walk->asid || now_ns - f->time_ns > FOLLOWED_NS) {
		f->at = 0;
		if (bpf_probe_read_user(&f->word, sizeof(f->word), (void *)addr))
			return;
		f->at = addr;
		f->beside = beside;
		f->asid = walk->asid;
		f->time_ns = now_ns;
	}
	*word = f->word;
}

/* Copies the words by which the runtime names the frame. */
static __always_inline int capture(struct walk *walk, struct scratch *scratch, __u32 class, bool loop_form)
{
	struct unwind_memory memory = { walk, scratch, loop_form };
	__u64 at = masked(walk->capture_cnt, MAX_CAPTURE_WORDS - 1);
	const struct capture_class *c;
	bool is_leaf = walk->user_cnt == 1;

	class &= CAPTURE_CLASSES - 1;
	c = bpf_map_lookup_elem(&capture_classes, &class);
	if (!c || walk->capture_cnt + 1 + CAPTURE_WORDS > MAX_CAPTURE_WORDS)
		return 0;
	scratch->captures[at] = CAPTURE_HEAD(walk->user_cnt - 1, class, c->count);
	for (__u32 i = 0; i < CAPTURE_WORDS; i++) {
		__u32 reg = (__u16)c->words[i].reg;
		__u64 value = 0;

		if (i < c->count && is_leaf && reg < USER_REGS)
			value = scratch->regs.regs[masked(reg, 31)];
		else if (i < c->count)
			(void)unwind_read(&memory, walk->state.fp + (__s64)c->words[i].offset, &value);
		if (i < c->count && c->words[i].follow && value)
			follow_pointer(walk, scratch, value + (__s64)c->words[i].follow, scratch->captures[at + 1], &value);
		scratch->captures[at + 1 + i] = value;
	}
	walk->capture_cnt += 1 + (c->count & 7);
	return 0;
}

__noinline int capture_alone(struct walk *walk, struct scratch *scratch, __u32 class)
{
	if (!walk || !scratch)
		return 0;
	return capture(walk, scratch, class, true);
}

/* Is the frame at @pc passed over? */
static __always_inline bool is_folded(struct walk *walk, __u64 pc)
{
	__u32 dropped;

	if (!deep_folds(&walk->deep, pc, walk->state.exact, walk->user_cnt, &dropped))
		return false;
	walk->user_cnt -= dropped;
	walk->memo_put -= dropped; /* one entry each, as their row is kept */
	return true;
}

/* Need frames of @row no place in a deep stack? */
static __always_inline bool may_fold(const struct walk *walk, __u64 row)
{
	__u32 rule = ROW_RULE(row);

	return !walk->chain_cnt && !walk->state.exact &&
	       (rule == RULE_CFA || rule == RULE_DEREF || rule == RULE_FP || (rule == RULE_FRAME && !ROW_FP(row)));
}

/* Puts the frame at @pc into the sample, and its row into *@row. Returns 1 when the walk is over. */
static __always_inline int put_frame(struct walk *walk, struct scratch *scratch, __u64 pc, __u64 *row, bool loop_form)
{
	__u32 end;

	if (walk->user_cnt >= MAX_USER_FRAMES)
		return unwind_stop(&walk->state, END_DEPTH);
	if (is_near_vm(walk) && pc - walk->vm.start < walk->vm.end - walk->vm.start)
		walk->state.sp = walk->vm.sp;
	scratch->words[word_index(walk->user_at + walk->user_cnt)] = walk->state.exact ? pc | FRAME_EXACT : pc;
	walk->user_cnt++;
	if (walk->trampoline && pc - walk->trampoline < PROBES_PAGE_BYTES)
		return unwind_stop(&walk->state, loop_form ? END_UPROBE : END_USER_RULE);
	if (pc >> CPU_USER_BITS) {
		if (!CPU_HAS_VSYSCALL || pc >> 12 != VSYSCALL_PAGE)
			return unwind_stop(&walk->state, END_NO_MAPPING);
		*row = ROW_VSYSCALL;
	} else {
		end = find_again(walk, scratch, pc - !walk->state.exact, row, loop_form);
		if (end)
			return unwind_stop(&walk->state, end);
	}
	if (*row == ROW_IN_VM_FRAME)
		walk->user_cnt--;
	/* Nobody called a signal's trampoline: the return address is its own address, not one behind a call. */
	if (ROW_RULE(*row) == RULE_SIGNAL)
		scratch->words[word_index(walk->user_at + walk->user_cnt - 1)] = pc | FRAME_EXACT;
	if (ROW_RULE(*row) == RULE_FRAME && ROW_FP(*row)) {
		if (loop_form)
			capture_alone(walk, scratch, ROW_FP(*row));
		else
			capture(walk, scratch, ROW_FP(*row), false);
	}
	if (loop_form)
		deep_note(&walk->deep, pc, *row, may_fold(walk, *row), walk->user_cnt);
	return 0;
}

/* Walks one frame: records it, then steps to its caller. Returns 1 when the walk is over. */
static __always_inline int walk_frame(struct walk *walk, struct scratch *scratch, bool loop_form)
{
	struct unwind_memory memory = { walk, scratch, loop_form };
	__u64 pc = walk->state.pc, row = loop_form ? walk->deep.row : 0;

	if (!(loop_form && is_folded(walk, pc)) && put_frame(walk, scratch, pc, &row, loop_form))
		return 1;
	return unwind_step(&walk->state, row, &memory);
}

#endif
