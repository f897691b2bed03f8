/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of LuaJIT 2.1. No variable leads to the state that runs, but the native stack does: the virtual machine's frame has
 * the state's address in a fixed place, and the state has the address of its innermost such frame. So a word on the stack
 * whose state leads back to where it stands is surely one of a frame that is in use, and the first one from the stack
 * pointer up is the innermost. The frame is also the marker of the segments that it runs. Behind the outermost frame of a
 * coroutine stands the one of the state that resumed it.
 *
 * Each coroutine has its frames on its stack of values, callers below, with links of several kinds. A frame's place is the
 * address behind the instruction that runs. While the virtual machine runs, its registers have base and place; compiled
 * code (a trace) has noted in which frame it began: it is told as that function, without a line, and runs in the virtual
 * machine's own frame.
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/luajit_state.h"

/* DWARF's numbers of the registers that the virtual machine keeps base and pc in (vm_x64.dasc: BASE, PC). */
enum { REG_BASE = 1, REG_PLACE = 3 };

enum {
	SCAN_WORDS = 4,		/* a step */
	SCAN_BYTES = 16 << 10,	/* of the stack, in which the virtual machine must have a frame */
	PARENT_BYTES = 1024,	/* behind the outermost frame of a coroutine */
	STACK_BYTES = 64 << 20, /* a native stack is not larger */
	VALUES_BYTES = 1 << 30, /* nor a stack of values */
	LINK_BYTES = 32,	/* what is read before base: how it continues, its function, link */
};

enum luajit_phase { PHASE_SEARCH, PHASE_PARENT, PHASE_FRAMES };

/* chain_work.own; chain_work.frame is base, chain_work.segment the place on the native stack that is looked at, then the
 * virtual machine's frame */
enum luajit_work {
	LUAJIT_AT_PHASE,
	LUAJIT_AT_END,	  /* of what is looked at */
	LUAJIT_AT_PLACE,  /* of the next frame; 0: not known */
	LUAJIT_AT_LEAF,	  /* not 0: the next frame is the innermost one */
	LUAJIT_AT_PSEUDO, /* not 0: the next frame is the same call again, with other arguments, or has its result */
	LUAJIT_AT_GLOBAL,
	LUAJIT_AT_STACK, /* the stack of values ... */
	LUAJIT_AT_BYTES, /* ... and how long it is */
	LUAJIT_AT_SELF,	 /* the state that was read last */
	LUAJIT_AT_CHECK,
	LUAJIT_AT_PUT,
	LUAJIT_AT_STATE,		   /* the state, from here on */
	LUAJIT_AT_WORDS = LUAJIT_AT_STATE, /* and whatever is read */
};

static __always_inline __u64 *own(struct chain *c, enum luajit_work which)
{
	return &c->work->own[which];
}

static __always_inline bool is_in_vm(const struct chain *c, __u64 pc)
{
	const struct chain_state *s = &c->work->state;

	return pc - s->data[LUAJIT_VM] < s->data[LUAJIT_VM_END] - s->data[LUAJIT_VM];
}

static __always_inline bool is_value_at(struct chain *c, __u64 at)
{
	return !(at & 7) && at - *own(c, LUAJIT_AT_STACK) < *own(c, LUAJIT_AT_BYTES);
}

/* --- the native stack --- */

/* Begins to look at the native stack from @from to @end. */
static __always_inline void look_at(struct chain *c, enum luajit_phase phase, __u64 from, __u64 end)
{
	*own(c, LUAJIT_AT_PHASE) = phase;
	*own(c, LUAJIT_AT_END) = end;
	c->work->segment = from;
	c->work->window_len = 0;
}

/* Does the state @word have its innermost frame at @at? Then it was read. */
static __always_inline bool leads_back(struct chain *c, __u64 word, __u64 at)
{
	__u64 *state = own(c, LUAJIT_AT_STATE);

	*own(c, LUAJIT_AT_SELF) = word;
	return is_address(word) && word - at >= STACK_BYTES &&
	       !bpf_probe_read_user(state, LUAJIT_STATE_BYTES, (void *)word) && (state[1] >> 8 & 255) == LUAJIT_TAG_THREAD &&
	       (state[LUAJIT_STATE_FRAME] & ~(__u64)LUAJIT_FRAME_FLAGS) == at;
}

/* Could a frame of the virtual machine stand at @at, by the frame that it says is outside? */
static __always_inline bool may_be_frame(__u64 at, __u64 previous)
{
	previous &= ~(__u64)LUAJIT_FRAME_FLAGS;
	return !previous || previous - at - 1 < STACK_BYTES;
}

/* --- which frame is the innermost --- */

/* Is a frame's function before @base? */
static __always_inline bool is_base(struct chain *c, __u64 base)
{
	__u64 value;

	return is_value_at(c, base) && base - *own(c, LUAJIT_AT_STACK) >= 16 && !read_word(base - 16, &value) &&
	       value >> LUAJIT_VALUE_SHIFT == LUAJIT_VALUE_FUNCTION;
}

/* The base of the trace that runs, or that has called the function which does; 0: none does. */
static __always_inline __u64 find_trace(struct chain *c)
{
	__u64 words[2], global = *own(c, LUAJIT_AT_GLOBAL);

	if (!chain_offset(c, LUAJIT_CURRENT) ||
	    bpf_probe_read_user(words, sizeof(words), (void *)(global + chain_offset(c, LUAJIT_CURRENT))) ||
	    words[0] != *own(c, LUAJIT_AT_SELF) || !is_base(c, words[1]))
		return 0;
	c->scratch->walk.vm.has_made_code = 1;
	return words[1];
}

/* Is @link, found before @base, one of a frame? Of a call by a script its caller's instructions must be there. */
static __always_inline bool is_link(struct chain *c, __u64 base, __u64 link)
{
	__u64 caller, value, code;
	__u32 insn, count;

	if ((link & LUAJIT_LINK_MASK) != LUAJIT_LINK_SCRIPT) {
		caller = base - (link & ~(__u64)LUAJIT_LINK_KIND_MASK);
		return caller < base && is_value_at(c, caller) && caller - *own(c, LUAJIT_AT_STACK) >= 16 &&
		       !read_word(caller - 16, &value) && (value >> LUAJIT_VALUE_SHIFT | 14) == LUAJIT_VALUE_ANY;
	}
	if (link < 4096 || link >> LUAJIT_VALUE_SHIFT || bpf_probe_read_user(&insn, sizeof(insn), (void *)(link - 4)))
		return false;
	caller = base - 16 - 8 * (__u64)(insn >> 8 & 255);
	if (!is_base(c, caller) || read_word(caller - 16, &value) ||
	    read_word((value & LUAJIT_VALUE_ADDRESS) + LUAJIT_FUNCTION_CODE, &code) ||
	    bpf_probe_read_user(&count, sizeof(count), (void *)(code - LUAJIT_PROTO_BYTES + LUAJIT_PROTO_COUNT)))
		return false;
	return link - code <= (__u64)count * 4;
}

/*
 * Finds the base in the virtual machine's registers. Where a call is in the making its link is not yet there; then the
 * innermost frame is the caller's, as it is where a result stands in the place of the function that returns. 0, or 1: they
 * have none.
 */
static __always_inline int find_register_base(struct chain *c)
{
	const __u64 *regs = c->scratch->regs.regs;
	__u64 base = regs[REG_BASE], link, place = regs[REG_PLACE];
	__u32 insn;

	if (!is_value_at(c, base) || base - *own(c, LUAJIT_AT_STACK) < 16 || read_word(base - 8, &link))
		return 1;
	c->work->frame = base;
	*own(c, LUAJIT_AT_PSEUDO) = !is_base(c, base);
	barrier();
	if (is_link(c, base, link))
		return 0;
	barrier();
	if (*own(c, LUAJIT_AT_PSEUDO) || !is_link(c, base, place) ||
	    bpf_probe_read_user(&insn, sizeof(insn), (void *)(place - 4)))
		return 1;
	c->work->frame = base - 16 - 8 * (__u64)(insn >> 8 & 255);
	return 0;
}

/* Finds base and place of the innermost frame of the state that runs, whose frame is at @at. */
static __always_inline void find_leaf(struct chain *c, __u64 at)
{
	struct vm_frame *vm = &c->scratch->walk.vm;
	__u64 base = find_trace(c);

	/* Traces run in that frame. The virtual machine itself moves the stack pointer where it calls functions of its own,
	 * or comes from a trace. For neither the file has rules. */
	vm->sp = at;
	vm->start = c->work->state.data[LUAJIT_VM];
	vm->end = c->work->state.data[LUAJIT_VM_END];
	*own(c, LUAJIT_AT_LEAF) = !base;
	if (base) {
		c->work->frame = base;
		*own(c, LUAJIT_AT_PLACE) = 0;
	} else if (is_in_vm(c, c->scratch->regs.regs[REG_PC])) {
		base = c->work->frame;
		if (find_register_base(c)) {
			c->work->frame = base;
			*own(c, LUAJIT_AT_PSEUDO) = 0;
		}
	}
}

/* Goes to the innermost frame of the state that was read, whose innermost frame on the native stack is at @at. 1, with the
 * end set: it makes no sense. */
static __always_inline int enter_state(struct chain *c, __u64 at)
{
	const __u64 *state = own(c, LUAJIT_AT_STATE);
	__u64 stack = state[LUAJIT_STATE_STACK], bytes = state[LUAJIT_STATE_STACK_END] - stack;
	bool is_first = *own(c, LUAJIT_AT_PHASE) == PHASE_SEARCH;

	c->work->end = CHAIN_END_TORN;
	if (!is_address(stack) || bytes > VALUES_BYTES ||
	    (!is_first && state[LUAJIT_STATE_GLOBAL] != *own(c, LUAJIT_AT_GLOBAL)))
		return 1;
	*own(c, LUAJIT_AT_GLOBAL) = state[LUAJIT_STATE_GLOBAL];
	*own(c, LUAJIT_AT_STACK) = stack;
	*own(c, LUAJIT_AT_BYTES) = bytes + 8 * 64; /* behind its end is some room */
	*own(c, LUAJIT_AT_PSEUDO) = 0;
	*own(c, LUAJIT_AT_PHASE) = PHASE_FRAMES;
	c->work->frame = state[LUAJIT_STATE_BASE];
	c->work->segment = at;
	if (read_word(at + LUAJIT_FRAME_PC, own(c, LUAJIT_AT_PLACE)))
		*own(c, LUAJIT_AT_PLACE) = 0;
	if (is_first)
		find_leaf(c, at);
	return 0;
}

/* Looks at some words of the native stack. 1, with the end set: nothing is there. */
static __always_inline int search_step(struct chain *c)
{
	bool is_parent = *own(c, LUAJIT_AT_PHASE) == PHASE_PARENT;
	__u64 at = c->work->segment;
	const __u64 *words;

	c->work->end = is_parent ? CHAIN_END_ROOT : CHAIN_END_NO_THREAD;
	words = (const __u64 *)chain_read_up(c, at, SCAN_WORDS * 8 + LUAJIT_FRAME_PREVIOUS + 8, at + CHAIN_WINDOW_BYTES);
	if (!words) /* the stack ends within the page behind this one */
		words = (const __u64 *)chain_read_up(
			c, at, SCAN_WORDS * 8 + LUAJIT_FRAME_PREVIOUS + 8,
			((at + SCAN_WORDS * 8 + LUAJIT_FRAME_PREVIOUS + 7) | (CHAIN_WINDOW_BYTES - 1)) + 1);
	if (!words)
		return 1;
	for (int i = 0; i < SCAN_WORDS; i++) {
		barrier();
		if (may_be_frame(at + i * 8, words[i + LUAJIT_FRAME_PREVIOUS / 8]) &&
		    leads_back(c, words[i + LUAJIT_FRAME_STATE / 8], at + i * 8))
			return enter_state(c, at + i * 8);
	}
	c->work->segment = at + SCAN_WORDS * 8;
	return c->work->segment >= *own(c, LUAJIT_AT_END);
}

/* --- functions --- */

static __always_inline __u64 proto_word(struct chain *c, __u32 offset)
{
	return *(const __u64 *)((const __u8 *)own(c, LUAJIT_AT_WORDS) + offset);
}

static __always_inline __u32 proto_half(struct chain *c, __u32 offset)
{
	return *(const __u32 *)((const __u8 *)own(c, LUAJIT_AT_WORDS) + offset);
}

/* Reads the GCproto at @at. 0, or 1: there is none. */
static __always_inline int read_proto(struct chain *c, __u64 at)
{
	return bpf_probe_read_user(own(c, LUAJIT_AT_WORDS), LUAJIT_PROTO_BYTES, (void *)at) ||
	       (proto_word(c, 8) >> 8 & 255) != LUAJIT_TAG_PROTO;
}

/* Where the chunk's name has its characters, and how many. 0, or 1: there is none. */
static __always_inline int find_chunk(struct chain *c, __u64 *at, __u32 *len)
{
	__u64 text = proto_word(c, LUAJIT_PROTO_CHUNK), head;

	if (!is_address(text) || read_word(text + 8, &head) || (head >> 8 & 255) != LUAJIT_TAG_TEXT)
		return 1;
	*at = text + LUAJIT_TEXT;
	return bpf_probe_read_user(len, sizeof(*len), (void *)(text + chain_offset(c, LUAJIT_TEXT_BYTES))) != 0;
}

/* How many bytes the lines of the function that was read have (lj_debug.c). */
static __always_inline __u64 lines_bytes(struct chain *c)
{
	__u32 lines = proto_half(c, LUAJIT_PROTO_LINE + 4);
	__u64 count = proto_half(c, LUAJIT_PROTO_COUNT);

	return (count ? count - 1 : 0) << (lines < 256 ? 0 : lines < 65536 ? 1 : 2);
}

/* What tells the function that was read from others that have been, or will be, in the same memory. */
static __always_inline __u32 check_proto(struct chain *c)
{
	enum { TEXT_WORDS = 8, LINE_WORDS = 2 };
	__u64 sum = 0, at, lines = proto_word(c, LUAJIT_PROTO_LINES), text[TEXT_WORDS] = { 0 };
	__u32 len;

	sum = mix(mix(mix(sum, proto_word(c, LUAJIT_PROTO_CHUNK)), lines), proto_word(c, LUAJIT_PROTO_LINE));
	sum = mix(sum, proto_half(c, LUAJIT_PROTO_COUNT));
	if (!find_chunk(c, &at, &len)) {
		sum = mix(sum, len);
		(void)bpf_probe_read_user(text, masked(len < sizeof(text) - 1 ? len : sizeof(text) - 1, sizeof(text) - 1),
					  (void *)at);
#pragma GCC unroll 8
		for (int i = 0; i < TEXT_WORDS; i++)
			sum = mix(sum, text[i]);
	}
	text[0] = text[1] = 0;
	if (lines && lines_bytes(c) >= LINE_WORDS * 8)
		(void)bpf_probe_read_user(text, LINE_WORDS * 8, (void *)lines);
	return mix(mix(sum, text[0]), text[1]) >> 32;
}

static __always_inline void put_part(struct chain *c, __u32 part, __u64 addr, __u64 bytes, const __u64 max)
{
	*own(c, LUAJIT_AT_PUT) = object_part(c, part, *own(c, LUAJIT_AT_PUT), addr, bytes, max);
}

/* Adds the table of lines, as much of it as there is room for; none where it was stripped. */
static __always_inline void put_lines(struct chain *c)
{
	__u64 at = proto_word(c, LUAJIT_PROTO_LINES), bytes = at ? lines_bytes(c) : 0;

	put_part(c, LUAJIT_PART_LINES, at, bytes < LUAJIT_LINES_BYTES ? bytes : LUAJIT_LINES_BYTES, LUAJIT_LINES_MAX);
	bytes = bytes > LUAJIT_LINES_BYTES ? bytes - LUAJIT_LINES_BYTES : 0;
	put_part(c, LUAJIT_PART_MORE, at + LUAJIT_LINES_BYTES, bytes < LUAJIT_MORE_BYTES ? bytes : LUAJIT_MORE_BYTES,
		 LUAJIT_LINES_MAX);
}

/* Copies the function @proto, unless it was sent before; AT_CHECK is set. 1: there is none. */
static __always_inline int tell_proto(struct chain *c, __u64 proto, __u64 witness)
{
	struct sent_object *sent = find_sent(c, proto);
	struct object_record *o = &c->work->object;
	__u32 check, len;
	__u64 at;

	if (!sent)
		return 1;
	*own(c, LUAJIT_AT_CHECK) = sent->check;
	if (is_sent_now(c, sent, proto, witness))
		return 0;
	if (read_proto(c, proto))
		return 1;
	check = check_proto(c);
	*own(c, LUAJIT_AT_CHECK) = check;
	if (is_sent(c, sent, proto, witness, check) || !has_object_tokens(c))
		return 0;
	object_begin(c, proto);
	*own(c, LUAJIT_AT_PUT) = 0;
	if (!find_chunk(c, &at, &len))
		put_part(c, LUAJIT_PART_CHUNK, at, len, LUAJIT_CHUNK_BYTES);
	o->part_state[LUAJIT_HAS_LINE] = proto_half(c, LUAJIT_PROTO_LINE);
	o->part_state[LUAJIT_HAS_COUNT] = proto_half(c, LUAJIT_PROTO_COUNT);
	o->part_state[LUAJIT_HAS_LINES] = proto_half(c, LUAJIT_PROTO_LINE + 4);
	o->part_state[LUAJIT_HAS_CODE] = (__u32)(proto + LUAJIT_PROTO_BYTES);
	put_lines(c);
	object_send(c, sent, witness, RUNTIME_LUAJIT, check, *own(c, LUAJIT_AT_PUT));
	return 0;
}

/* --- frames --- */

/* The place of the innermost frame: the virtual machine's register, else what it noted in its frame. */
static __always_inline __u64 find_place(struct chain *c, __u64 proto)
{
	__u64 place = c->scratch->regs.regs[REG_PLACE], code = proto + LUAJIT_PROTO_BYTES;
	__u32 count;

	if (bpf_probe_read_user(&count, sizeof(count), (void *)(proto + LUAJIT_PROTO_COUNT)))
		return 0;
	if (is_in_vm(c, c->scratch->regs.regs[REG_PC]) && place - code <= (__u64)count * 4)
		return place;
	place = *own(c, LUAJIT_AT_PLACE);
	return place - code <= (__u64)count * 4 ? place : 0;
}

/* Adds the frame of the function at @function, if it is a script's. 1, with the end set, when the chain ends. */
static __always_inline int add_frame(struct chain *c, __u64 function)
{
	__u64 head[2], proto, place = *own(c, LUAJIT_AT_PLACE);

	c->work->end = CHAIN_END_TORN;
	if (!is_address(function) || read_word(function + 8, &head[0]) || (head[0] >> 8 & 255) != LUAJIT_TAG_FUNCTION)
		return 1;
	if (head[0] >> 16 & 255) /* of C, or a part of the virtual machine */
		return 0;
	if (read_word(function + LUAJIT_FUNCTION_CODE, &proto))
		return 1;
	proto -= LUAJIT_PROTO_BYTES;
	if (!is_address(proto) || tell_proto(c, proto, function))
		return 1;
	if (*own(c, LUAJIT_AT_LEAF))
		place = find_place(c, proto);
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, proto), CHAIN_PLACE(place, *own(c, LUAJIT_AT_CHECK)));
}

/* Passes frames on the native stack of protected calls of C that have no frame on the stack of values above @base. */
static __always_inline void pass_empty(struct chain *c, __u64 base)
{
	for (int i = 0; i < 4; i++) {
		__u64 at = c->work->segment, previous;
		__s32 results;

		barrier();
		if (bpf_probe_read_user(&results, sizeof(results), (void *)(at + LUAJIT_FRAME_RESULTS)) || results >= 0 ||
		    base - 8 - *own(c, LUAJIT_AT_STACK) >= (__u64) - (__s64)results ||
		    read_word(at + LUAJIT_FRAME_PREVIOUS, &previous) || previous <= at)
			return;
		c->work->segment = previous & ~(__u64)LUAJIT_FRAME_FLAGS;
	}
}

/* Ends the segment of the virtual machine's frame, and goes to the frame outside. 1, with the end set, when the chain ends.
 */
static __always_inline int leave_vm(struct chain *c)
{
	__u64 at = c->work->segment, previous;

	c->work->end = CHAIN_END_DEPTH;
	if (chain_add(c, CHAIN_WORD(CHAIN_MARKER, at), 0))
		return 1;
	c->work->end = CHAIN_END_BAD_MEMORY;
	if (read_word(at + LUAJIT_FRAME_PREVIOUS, &previous))
		return 1;
	c->work->end = CHAIN_END_TORN;
	previous &= ~(__u64)LUAJIT_FRAME_FLAGS;
	if (previous && (previous <= at || previous - at > STACK_BYTES))
		return 1;
	*own(c, LUAJIT_AT_PLACE) = 0;
	if (!previous) /* of the coroutine, whose stack of values must end here, too */
		return 0;
	c->work->segment = previous;
	if (read_word(previous + LUAJIT_FRAME_PC, own(c, LUAJIT_AT_PLACE)))
		return 1;
	return 0;
}

/* Goes from the frame at base, whose link is @words[3], to its caller's. 1, with the end set, when the chain ends. */
static __always_inline int follow_link(struct chain *c, const __u64 *words)
{
	__u64 base = c->work->frame, link = words[3], down;
	__u32 insn;

	*own(c, LUAJIT_AT_PSEUDO) = 0;
	if ((link & LUAJIT_LINK_MASK) == LUAJIT_LINK_SCRIPT) {
		c->work->end = CHAIN_END_BAD_MEMORY;
		if (bpf_probe_read_user(&insn, sizeof(insn), (void *)(link - 4)))
			return 1;
		*own(c, LUAJIT_AT_PLACE) = link;
		down = 16 + 8 * (__u64)(insn >> 8 & 255); /* lj_bc.h: the operand A */
	} else {
		down = link & ~(__u64)LUAJIT_LINK_KIND_MASK;
		*own(c, LUAJIT_AT_PLACE) = 0;
		if ((link & LUAJIT_LINK_KIND_MASK) == LUAJIT_LINK_VARARG)
			*own(c, LUAJIT_AT_PSEUDO) = 1;
		else if ((link & LUAJIT_LINK_KIND_MASK) == LUAJIT_LINK_CONTINUES)
			*own(c, LUAJIT_AT_PLACE) = words[1];
		else if ((link & LUAJIT_LINK_MASK) == LUAJIT_LINK_C && leave_vm(c))
			return 1;
	}
	c->work->end = CHAIN_END_TORN;
	if (!down || down > base - *own(c, LUAJIT_AT_STACK))
		return 1;
	c->work->frame = base - down;
	return 0;
}

/* Adds the frame at base, if it is of a script, and goes to its caller's. */
static __always_inline int values_step(struct chain *c)
{
	__u64 base = c->work->frame, words[LINK_BYTES / 8], end;
	const __u8 *bytes;

	c->work->end = CHAIN_END_TORN;
	if (!is_value_at(c, base))
		return 1;
	if (base - *own(c, LUAJIT_AT_STACK) <= 16) { /* the frame that each stack begins with */
		end = c->work->segment + LUAJIT_FRAME_BYTES;
		look_at(c, PHASE_PARENT, end, end + PARENT_BYTES);
		return 0;
	}
	c->work->end = CHAIN_END_BAD_MEMORY;
	bytes = chain_read(c, base - LINK_BYTES, LINK_BYTES);
	if (!bytes)
		return 1;
	__builtin_memcpy(words, bytes, sizeof(words));
	pass_empty(c, base);
	c->work->end = CHAIN_END_TORN;
	if (!*own(c, LUAJIT_AT_PSEUDO) && words[2] >> LUAJIT_VALUE_SHIFT != LUAJIT_VALUE_THREAD &&
	    (words[2] >> LUAJIT_VALUE_SHIFT != LUAJIT_VALUE_FUNCTION || add_frame(c, words[2] & LUAJIT_VALUE_ADDRESS)))
		return 1;
	*own(c, LUAJIT_AT_LEAF) = 0;
	return follow_link(c, words);
}

static __always_inline int first_frame(struct chain *c)
{
	__builtin_memset(c->work->own, 0, sizeof(c->work->own));
	look_at(c, PHASE_SEARCH, stack_pointer(c) & ~7ull, stack_pointer(c) + SCAN_BYTES);
	return 0;
}

/* Looks further on the stack, or adds a frame. Returns 1, with the end set, when the chain ends. */
static __always_inline int frame_step(struct chain *c)
{
	return *own(c, LUAJIT_AT_PHASE) == PHASE_FRAMES ? values_step(c) : search_step(c);
}

CHAIN_PROGRAMS(luajit, RUNTIME_LUAJIT, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
