/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of Lua, 5.1 to 5.5 (not LuaJIT): each coroutine (lua_State) has a list of calls. No variable leads to the one that
 * runs. The native stack does: functions of Lua have its address in registers or frames while they run. A state runs on this
 * thread, or has resumed the one that runs, if errors in it jump to a place on this very stack (errorJmp); the lower that
 * place is the further inside the state runs. So a word that is found on the stack is never believed: its type, that place,
 * and the main state of its global state, which must lead back, are looked at. Behind the outermost call of a coroutine the
 * state that resumed it is found where its own outermost jump is.
 *
 * A frame's place is the address behind the instruction that runs. A call with a flag of its own began a call of the loop,
 * luaV_execute(). Functions of C have no frames here: they are on the native stack.
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/lua_state.h"

enum {
	SCAN_WORDS = 4,			      /* a step */
	SCAN_BYTES = 16 << 10,		      /* of the stack, in which the loop must have a frame */
	FRAME_BYTES = 512,		      /* behind the place where the loop goes on: its frame */
	PARENT_BYTES = 1024,		      /* behind the outermost jump of a coroutine: the frames that have resumed it */
	STACK_BYTES = 64 << 20,		      /* a native stack is not larger */
	PC_REGS = 1 << 3 | 1 << 6 | 15 << 12, /* DWARF's numbers: rbx, rbp, r12 to r15 */
};

enum lua_phase {
	PHASE_LOOP, /* looks for a frame of the loop on the stack */
	PHASE_REGS, /* for the state that runs in registers */
	PHASE_MORE_REGS,
	PHASE_STATE,  /* and on the stack */
	PHASE_FRAMES, /* goes through its calls */
	PHASE_JUMPS,  /* through its jumps, to the outermost */
	PHASE_PARENT, /* looks for the state that resumed it */
};

/* chain_work.own; chain_work.frame is the call, chain_work.segment the place on the stack that is looked at */
enum lua_work {
	LUA_AT_PHASE,
	LUA_AT_END,    /* of what is looked at */
	LUA_AT_FOUND,  /* the state that was found ... */
	LUA_AT_JUMP,   /* ... and where errors in it jump to */
	LUA_AT_BELOW,  /* jumps are above this */
	LUA_AT_STATE,  /* the state whose calls are read */
	LUA_AT_STACK,  /* its values ... */
	LUA_AT_VALUES, /* ... and how many bytes they have */
	LUA_AT_TOP,    /* its innermost call, of the state that runs; 0: another one's, or none is looked at */
	LUA_AT_INNER,  /* LUA_CALLS_ARRAY: the call inside the one that is read is of a script */
	/* of the call that is read, from where the verifier does not follow how they came about: */
	LUA_AT_CLOSURE, /* its function; 0: none of a script */
	LUA_AT_PROTO,
	LUA_AT_PC,     /* where it runs */
	LUA_AT_BEFORE, /* the call inside began a loop */
	LUA_AT_BEGINS, /* it began a loop itself */
	LUA_AT_CHECK,  /* of the function that was told */
	LUA_AT_PUT,    /* bytes of the object in the making */
	LUA_AT_TEXT,   /* where a text has its characters ... */
	LUA_AT_LENGTH, /* ... and how many */
	LUA_AT_WORDS,  /* whatever is read */
};

static __always_inline __u64 *own(struct chain *c, enum lua_work which)
{
	return &c->work->own[which];
}

static __always_inline bool is_on_stack(const struct chain *c, __u64 addr)
{
	return addr - stack_pointer(c) < STACK_BYTES;
}

static __always_inline bool is_in_loop(const struct chain *c, __u64 pc)
{
	const struct chain_state *s = &c->work->state;

	return pc - s->data[LUA_LOOP] < s->data[LUA_LOOP_END] - s->data[LUA_LOOP];
}

/* --- states --- */

static __always_inline bool is_thread(__u64 at)
{
	__u64 head;

	return is_address(at) && !read_word(at + LUA_TAG, &head) && (__u8)head == LUA_TAG_THREAD;
}

/* Finds the main state of @global. 0, or not 0: that cannot be read. */
static __always_inline int find_main(struct chain *c, __u64 global, __u64 *main)
{
	__u64 at = global + chain_offset(c, LUA_MAIN);

	*main = at;
	return chain_offset(c, LUA_MAIN_INSIDE) ? 0 : read_word(at, main);
}

/* Does @main, the main state of @global, lead back to that? */
static __always_inline bool is_main(struct chain *c, __u64 main, __u64 global)
{
	__u64 back;

	return is_thread(main) && !read_word(main + chain_offset(c, LUA_GLOBAL), &back) && back == global;
}

/* Is @word the address of a state that is at work on this stack? Then it is noted, unless one further inside was found. */
static __always_inline void consider(struct chain *c, __u64 word)
{
	__u64 jump, global, main, found = *own(c, LUA_AT_FOUND);

	if (!is_address(word) || is_on_stack(c, word) || word == found || word == *own(c, LUA_AT_STATE) || !is_thread(word))
		return;
	if (read_word(word + chain_offset(c, LUA_JUMP), &jump) || !is_on_stack(c, jump) || jump <= *own(c, LUA_AT_BELOW) ||
	    jump & 7 || (found && jump >= *own(c, LUA_AT_JUMP)))
		return;
	if (read_word(word + chain_offset(c, LUA_GLOBAL), &global) || !is_address(global) || find_main(c, global, &main) ||
	    !is_main(c, main, global))
		return;
	*own(c, LUA_AT_FOUND) = word;
	*own(c, LUA_AT_JUMP) = jump;
}

/* The registers that a function of Lua may keep its state in (DWARF's numbers: rbx, rbp, rdi; r12 to r15). */
static __always_inline void take_registers(struct chain *c, bool is_first)
{
	const __u64 *regs = c->scratch->regs.regs;
	__u64 *words = own(c, LUA_AT_WORDS);

	words[0] = regs[is_first ? 3 : 12];
	words[1] = regs[is_first ? 6 : 13];
	words[2] = regs[is_first ? 5 : 14];
	words[3] = regs[is_first ? 3 : 15];
}

/* Goes to the innermost call of the state that was found. 1, with the end set: it makes no sense. */
static __always_inline int enter_state(struct chain *c)
{
	__u64 state = *own(c, LUA_AT_FOUND), call, stack, end;

	c->work->end = CHAIN_END_BAD_MEMORY;
	if (read_word(state + chain_offset(c, LUA_CALL), &call) || read_word(state + chain_offset(c, LUA_STACK), &stack) ||
	    read_word(state + chain_offset(c, LUA_STACK_END), &end))
		return 1;
	c->work->end = CHAIN_END_TORN;
	if (!is_address(call) || !is_address(stack) || end - stack > 1u << 30)
		return 1;
	*own(c, LUA_AT_TOP) = *own(c, LUA_AT_STATE) ? 0 : call;
	*own(c, LUA_AT_STATE) = state;
	*own(c, LUA_AT_STACK) = stack;
	*own(c, LUA_AT_VALUES) = end - stack;
	*own(c, LUA_AT_INNER) = 0;
	*own(c, LUA_AT_PHASE) = PHASE_FRAMES;
	c->work->frame = call;
	c->work->window_len = 0;
	return 0;
}

/* --- the stack --- */

/* The SCAN_WORDS that are looked at; NULL: they cannot be read. */
static __always_inline const __u64 *read_stack(struct chain *c)
{
	__u64 at = c->work->segment;

	return (const __u64 *)chain_read_up(c, at, SCAN_WORDS * 8, (at | (CHAIN_WINDOW_BYTES - 1)) + 1);
}

/* Begins to look at the stack from @from to @end. */
static __always_inline void look_at(struct chain *c, enum lua_phase phase, __u64 from, __u64 end)
{
	*own(c, LUA_AT_PHASE) = phase;
	*own(c, LUA_AT_END) = end;
	c->work->segment = from & ~(SCAN_WORDS * 8 - 1ull);
}

/* Looks for a place where the loop goes on. Threads that run no Lua end here. */
static __always_inline int loop_step(struct chain *c)
{
	const __u64 *words = read_stack(c);
	bool is_found = false;

	c->work->end = CHAIN_END_NO_THREAD;
	if (!words)
		return 1;
#pragma GCC unroll 4
	for (int i = 0; i < SCAN_WORDS; i++)
		is_found |= is_in_loop(c, words[i]);
	c->work->segment += SCAN_WORDS * 8;
	if (!is_found)
		return c->work->segment >= *own(c, LUA_AT_END);
	*own(c, LUA_AT_END) = c->work->segment + FRAME_BYTES;
	*own(c, LUA_AT_PHASE) = PHASE_REGS;
	return 0;
}

/* Takes the next words into account. 1: they cannot be read. */
static __always_inline int take_words(struct chain *c)
{
	const __u64 *words;

	if (*own(c, LUA_AT_PHASE) <= PHASE_MORE_REGS) {
		take_registers(c, *own(c, LUA_AT_PHASE) == PHASE_REGS);
		return 0;
	}
	words = read_stack(c);
	if (!words)
		return 1;
	__builtin_memcpy(own(c, LUA_AT_WORDS), words, SCAN_WORDS * 8);
	c->work->segment += SCAN_WORDS * 8;
	return 0;
}

/*
 * Looks for a state. 1, with the end set: there is none, of the thread or, where a coroutine was read, of another one. Those
 * further inside have a jump below the one that was found, and their address is nearer, too; registers of the loop are
 * enough.
 */
static __always_inline int state_step(struct chain *c)
{
	c->work->end = *own(c, LUA_AT_PHASE) == PHASE_PARENT ? CHAIN_END_ROOT : CHAIN_END_NO_THREAD;
	if (take_words(c))
		return 1;
	for (int i = 0; i < SCAN_WORDS; i++) {
		barrier();
		consider(c, own(c, LUA_AT_WORDS)[i]);
	}
	if (*own(c, LUA_AT_PHASE) == PHASE_REGS) {
		*own(c, LUA_AT_PHASE) = PHASE_MORE_REGS;
		return 0;
	}
	if (*own(c, LUA_AT_PHASE) == PHASE_MORE_REGS) {
		if (*own(c, LUA_AT_FOUND) && is_in_loop(c, c->scratch->regs.regs[REG_PC]))
			return enter_state(c);
		look_at(c, PHASE_STATE, stack_pointer(c), *own(c, LUA_AT_END));
		return 0;
	}
	if (*own(c, LUA_AT_FOUND) && c->work->segment > *own(c, LUA_AT_JUMP))
		return enter_state(c);
	return c->work->segment >= *own(c, LUA_AT_END) && !*own(c, LUA_AT_FOUND);
}

/* Goes to the jump outside. */
static __always_inline int jump_step(struct chain *c)
{
	__u64 jump = *own(c, LUA_AT_JUMP), previous, global, main;

	c->work->end = CHAIN_END_BAD_MEMORY;
	if (read_word(jump, &previous))
		return 1;
	c->work->end = CHAIN_END_TORN;
	if (previous && (previous <= jump || !is_on_stack(c, previous)))
		return 1;
	*own(c, LUA_AT_JUMP) = previous;
	if (previous)
		return 0;
	c->work->end = CHAIN_END_ROOT;
	if (read_word(*own(c, LUA_AT_STATE) + chain_offset(c, LUA_GLOBAL), &global) || find_main(c, global, &main) ||
	    main == *own(c, LUA_AT_STATE))
		return 1;
	c->work->end = CHAIN_END_DEPTH;
	if (chain_add(c, CHAIN_WORD(CHAIN_COROUTINE, jump), 0))
		return 1;
	*own(c, LUA_AT_FOUND) = 0;
	*own(c, LUA_AT_BELOW) = jump;
	c->work->window_len = 0;
	look_at(c, PHASE_PARENT, jump, jump + PARENT_BYTES);
	return 0;
}

/* --- functions --- */

/* A word of the Proto that was read, at the state's offset @which. */
static __always_inline __u64 proto_word(struct chain *c, enum lua_offset which)
{
	const __u8 *words = (const __u8 *)own(c, LUA_AT_WORDS);

	return *(const __u64 *)(words + masked(chain_offset(c, which), LUA_PROTO_BYTES - 8));
}

static __always_inline __u32 proto_half(struct chain *c, enum lua_offset which)
{
	const __u8 *words = (const __u8 *)own(c, LUA_AT_WORDS);

	return *(const __u32 *)(words + masked(chain_offset(c, which), LUA_PROTO_BYTES - 4));
}

/* Reads the Proto at @at. 0, or 1: there is none. */
static __always_inline int read_proto(struct chain *c, __u64 at)
{
	const __u8 *words = (const __u8 *)own(c, LUA_AT_WORDS);

	return !is_address(at) || bpf_probe_read_user(own(c, LUA_AT_WORDS), LUA_PROTO_BYTES, (void *)at) ||
	       words[LUA_TAG] != chain_offset(c, LUA_PROTO_TYPE);
}

/* Notes where the text @value has its characters, and how many; 0: there is none. */
static __always_inline void find_text(struct chain *c, __u64 value)
{
	__u64 head = 0, len = 0, at = value + LUA_TEXT, offset = chain_offset(c, LUA_TEXT_SHORT);
	bool is_short;

	if (is_address(value))
		(void)read_word(value + LUA_TAG, &head);
	is_short = offset && (__u8)head == LUA_TAG_TEXT_SHORT;
	if ((head & 15) == LUA_TAG_TEXT_SHORT)
		(void)read_word(value + (is_short ? offset : chain_offset(c, LUA_TEXT_LONG)), &len);
	if (len && !is_short && chain_offset(c, LUA_TEXT_FAR) &&
	    (read_word(value + chain_offset(c, LUA_TEXT_FAR), &at) || !is_address(at)))
		len = 0;
	*own(c, LUA_AT_TEXT) = at;
	*own(c, LUA_AT_LENGTH) = is_short ? (__u8)len : len;
	barrier();
}

/*
 * What tells the function that was read from others that have been, or will be, in the same memory: where its parts are, its
 * lines, the beginning of the text that it is from, and some of its instructions' lines.
 */
static __always_inline void check_proto(struct chain *c)
{
	enum { TEXT_WORDS = 8, LINE_BYTES = 16 };
	__u64 sum = 0, bytes, len = *own(c, LUA_AT_LENGTH), lines = proto_word(c, LUA_LINES),
	      text[TEXT_WORDS + 2 * LINE_BYTES / 8] = { 0 };

	sum = mix(mix(mix(sum, proto_word(c, LUA_CODE)), proto_word(c, LUA_SOURCE)), lines);
	sum = mix(mix(mix(sum, proto_half(c, LUA_CODE_COUNT)), proto_word(c, LUA_LINE)), len);
	len = len < TEXT_WORDS * 8 - 1 ? len : TEXT_WORDS * 8 - 1;
	(void)bpf_probe_read_user(text, masked(len, TEXT_WORDS * 8 - 1), (void *)*own(c, LUA_AT_TEXT));
	bytes = (__u64)proto_half(c, LUA_LINES_COUNT) * (chain_offset(c, LUA_MARKS) ? 1 : 4);
	bytes = bytes < LINE_BYTES ? bytes : LINE_BYTES;
	(void)bpf_probe_read_user(text + TEXT_WORDS, masked(bytes, 2 * LINE_BYTES - 1), (void *)lines);
#pragma GCC unroll 10
	for (int i = 0; i < TEXT_WORDS + LINE_BYTES / 8; i++)
		sum = mix(sum, text[i]);
	*own(c, LUA_AT_CHECK) = sum >> 32;
	barrier();
}

static __always_inline void put_part(struct chain *c, __u32 part, __u64 addr, __u64 bytes, const __u64 max)
{
	*own(c, LUA_AT_PUT) = object_part(c, part, *own(c, LUA_AT_PUT), addr, bytes, max);
}

/* Adds the table of lines, as much of it as there is room for. */
static __always_inline void put_lines(struct chain *c)
{
	bool is_marked = chain_offset(c, LUA_MARKS);
	__u64 at = proto_word(c, LUA_LINES), bytes = proto_half(c, LUA_LINES_COUNT);
	__u64 most = is_marked ? LUA_MORE_BESIDE_MARKS : LUA_MORE_BYTES;

	if (!is_marked)
		bytes *= 4;
	put_part(c, LUA_PART_LINES, at, bytes < LUA_LINES_BYTES ? bytes : LUA_LINES_BYTES, LUA_LINES_MAX);
	bytes = bytes > LUA_LINES_BYTES ? bytes - LUA_LINES_BYTES : 0;
	put_part(c, LUA_PART_MORE, at + LUA_LINES_BYTES, bytes < most ? bytes : most, LUA_LINES_MAX);
	if (is_marked)
		put_part(c, LUA_PART_MARKS, proto_word(c, LUA_MARKS), (__u64)proto_half(c, LUA_MARKS_COUNT) * 8,
			 LUA_MARKS_MAX);
}

/* Copies the function @proto, unless it was sent before; AT_CHECK is set. 1: there is none. */
static __always_inline int tell_proto(struct chain *c, __u64 proto, __u64 witness)
{
	struct sent_object *sent = find_sent(c, proto);
	struct object_record *o = &c->work->object;

	if (!sent)
		return 1;
	*own(c, LUA_AT_CHECK) = sent->check;
	if (is_sent_now(c, sent, proto, witness))
		return 0;
	if (read_proto(c, proto))
		return 1;
	find_text(c, proto_word(c, LUA_SOURCE));
	check_proto(c);
	if (is_sent(c, sent, proto, witness, *own(c, LUA_AT_CHECK)) || !has_object_tokens(c))
		return 0;
	object_begin(c, proto);
	*own(c, LUA_AT_PUT) = 0;
	put_part(c, LUA_PART_SOURCE, *own(c, LUA_AT_TEXT), *own(c, LUA_AT_LENGTH), LUA_SOURCE_BYTES);
	o->part_state[LUA_HAS_LINE] = proto_half(c, LUA_LINE);
	o->part_state[LUA_HAS_COUNT] = proto_half(c, LUA_CODE_COUNT);
	o->part_state[LUA_HAS_CODE] = (__u32)proto_word(c, LUA_CODE);
	put_lines(c);
	object_send(c, sent, witness, RUNTIME_LUA, *own(c, LUA_AT_CHECK), *own(c, LUA_AT_PUT));
	return 0;
}

/* --- frames --- */

/*
 * Where the innermost call, of the function @proto, runs. The loop keeps that in a register, and notes it in memory only now
 * and then (5.1, 5.4, 5.5): while the thread is in the loop, or in C that has not used these registers, the one that has an
 * address in the function's code has it. Where it runs nowhere in @proto the call is in the making, and is none yet.
 */
static __always_inline void find_pc(struct chain *c, __u64 proto)
{
	const __u64 *regs = c->scratch->regs.regs;
	__u64 code, bytes;
	__u32 count;

	if (read_word(proto + chain_offset(c, LUA_CODE), &code) ||
	    bpf_probe_read_user(&count, sizeof(count), (void *)(proto + chain_offset(c, LUA_CODE_COUNT))))
		return;
	bytes = (__u64)count * 4;
#pragma GCC unroll 16
	for (int i = 3; i < 16; i++) {
		if (PC_REGS >> i & 1 && (regs[i] - code - 4 | (regs[i] & 3) << 62) <= bytes && chain_offset(c, LUA_HAS_PC))
			*own(c, LUA_AT_PC) = regs[i];
	}
	barrier();
	if (*own(c, LUA_AT_PC) - code > bytes)
		*own(c, LUA_AT_CLOSURE) = 0;
}

/* Adds the call that was read. 1, with the end set, when the chain ends. */
static __always_inline int add_frame(struct chain *c)
{
	__u64 closure = *own(c, LUA_AT_CLOSURE), proto = *own(c, LUA_AT_PROTO);

	if (!closure)
		return 0;
	c->work->end = CHAIN_END_TORN;
	if (!is_address(proto) || tell_proto(c, proto, closure))
		return 1;
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, proto), CHAIN_PLACE(*own(c, LUA_AT_PC), *own(c, LUA_AT_CHECK)));
}

/* Notes the closure that the value at @at is, if it is a script's, and its function. 1: it is no closure at all. */
static __always_inline int take_closure(struct chain *c, __u64 at)
{
	bool is_array = c->work->state.style == LUA_CALLS_ARRAY;
	__u64 closure, head;

	if (at - *own(c, LUA_AT_STACK) >= *own(c, LUA_AT_VALUES) || read_word(at, &closure) || !is_address(closure) ||
	    read_word(closure + LUA_TAG, &head) || (__u8)head != LUA_TAG_CLOSURE ||
	    read_word(closure + chain_offset(c, LUA_CLOSURE_PROTO), own(c, LUA_AT_PROTO)))
		return 1;
	*own(c, LUA_AT_CLOSURE) = is_array && head >> 16 & 255 ? 0 : closure;
	return 0;
}

/* The 16 bits at @offset of the call that was read: they are all in one word of 32. */
static __always_inline __u16 half_at(const __u8 *bytes, __u64 offset)
{
	return *(const __u32 *)(bytes + masked(offset, CHAIN_NEIGHBOUR_BYTES - 4)) >> (offset & 3) * 8;
}

/* Reads the call at @at, and goes to its caller's. 1: it makes no sense. */
static __always_inline int take_linked(struct chain *c, __u64 at)
{
	const __u8 *bytes = chain_read(c, at, LUA_CALL_BYTES);
	__u64 previous;
	__u16 status;

	if (!bytes)
		return 1;
	previous = *(const __u64 *)(bytes + LUA_CALL_PREVIOUS);
	c->work->frame = previous;
	if (!previous) /* the one that each state begins with */
		return 0;
	status = half_at(bytes, chain_offset(c, LUA_CALL_STATUS));
	if ((status & chain_offset(c, LUA_STATUS_C)) != chain_offset(c, LUA_STATUS_SCRIPT))
		return 0;
	*own(c, LUA_AT_PC) = word_at(bytes, chain_offset(c, LUA_CALL_PC));
	*own(c, LUA_AT_BEGINS) = (status & chain_offset(c, LUA_STATUS_LOOP)) == chain_offset(c, LUA_STATUS_BEGINS);
	return take_closure(c, word_at(bytes, chain_offset(c, LUA_CALL_FUNCTION)));
}

/*
 * The same where calls stand in an array (5.1). A call began a loop if it was made by C, or by an operator that is no call,
 * in the loop's own way to C and back.
 */
static __always_inline int take_of_array(struct chain *c, __u64 at)
{
	__u64 state = *own(c, LUA_AT_STATE), first;
	const __u8 *bytes;
	__u32 insn = 0;

	if (read_word(state + chain_offset(c, LUA_FIRST_CALL), &first) || at < first)
		return 1;
	bytes = chain_read(c, at, LUA_CALL_ARRAY_BYTES);
	if (!bytes)
		return 1;
	c->work->frame = at == first ? 0 : at - LUA_CALL_ARRAY_BYTES;
	*own(c, LUA_AT_PC) = word_at(bytes, chain_offset(c, LUA_CALL_PC));
	if (at != first && take_closure(c, word_at(bytes, chain_offset(c, LUA_CALL_FUNCTION))))
		return 1;
	if (at == *own(c, LUA_AT_TOP) && read_word(state + chain_offset(c, LUA_CURRENT_PC), own(c, LUA_AT_PC)))
		return 1;
	if (*own(c, LUA_AT_CLOSURE) && *own(c, LUA_AT_INNER) &&
	    bpf_probe_read_user(&insn, sizeof(insn), (void *)(*own(c, LUA_AT_PC) - 4)))
		return 1;
	insn &= LUA_OP_MASK;
	*own(c, LUA_AT_BEFORE) = *own(c, LUA_AT_INNER) && insn != LUA_OP_CALL && insn != LUA_OP_TAILCALL;
	*own(c, LUA_AT_INNER) = *own(c, LUA_AT_CLOSURE);
	return 0;
}

/* Ends a segment: the frames before were run by one call of the loop. */
static __always_inline int add_marker(struct chain *c)
{
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_MARKER, 0), 0);
}

/* Adds a call, and goes to its caller's. The innermost one may be in the making. 1, with the end set, when the chain ends.
 */
static __always_inline int call_step(struct chain *c)
{
	__u64 at = c->work->frame;

	*own(c, LUA_AT_CLOSURE) = *own(c, LUA_AT_BEFORE) = *own(c, LUA_AT_BEGINS) = 0;
	c->work->end = CHAIN_END_TORN;
	if ((c->work->state.style == LUA_CALLS_ARRAY ? take_of_array(c, at) : take_linked(c, at)) &&
	    (at != *own(c, LUA_AT_TOP) || !is_address(c->work->frame)))
		return 1;
	barrier();
	if (at == *own(c, LUA_AT_TOP) && *own(c, LUA_AT_CLOSURE))
		find_pc(c, *own(c, LUA_AT_PROTO));
	barrier();
	if (!c->work->frame)
		*own(c, LUA_AT_PHASE) = PHASE_JUMPS;
	if (*own(c, LUA_AT_BEFORE) && add_marker(c))
		return 1;
	barrier();
	if (add_frame(c))
		return 1;
	barrier();
	return *own(c, LUA_AT_CLOSURE) && *own(c, LUA_AT_BEGINS) && add_marker(c);
}

static __always_inline int first_frame(struct chain *c)
{
	__builtin_memset(c->work->own, 0, sizeof(c->work->own));
	if (is_in_loop(c, c->scratch->regs.regs[REG_PC]))
		look_at(c, PHASE_REGS, stack_pointer(c), stack_pointer(c) + FRAME_BYTES);
	else
		look_at(c, PHASE_LOOP, stack_pointer(c), stack_pointer(c) + SCAN_BYTES);
	return 0;
}

/* Looks further on the stack, or adds a call. Returns 1, with the end set, when the chain ends. */
static __always_inline int frame_step(struct chain *c)
{
	enum lua_phase phase = *own(c, LUA_AT_PHASE);

	if (phase == PHASE_FRAMES)
		return call_step(c);
	if (phase == PHASE_LOOP)
		return loop_step(c);
	return phase == PHASE_JUMPS ? jump_step(c) : state_step(c);
}

CHAIN_PROGRAMS(lua, RUNTIME_LUA, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
