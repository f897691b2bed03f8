/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PHP's frames, 7.4 to 8.5, without threads (NTS): a list of zend_execute_data that begins in executor_globals. Offsets are
 * the state's (agent/runtime/file/php_file.c). Functions of C are frames, too. A frame's place is its line. Each function is
 * looked at in each sample, as a process without a cache of scripts puts the functions of other requests into the same
 * memory; those that are in opcache's are believed for a second.
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/php_state.h"

/* Registers that execute_ex() keeps its frame and its opcode in (Zend/zend_execute.c: ZEND_VM_FP_GLOBAL_REG,
 * ZEND_VM_IP_GLOBAL_REG). */
enum { REG_FRAME = CPU_HAS_LR ? 27 : 14, REG_OPLINE = CPU_HAS_LR ? 28 : 15 };

/*
 * chain_work.own. The address of executor_globals.current_execute_data; the name of the last function's file, and its sum;
 * and values that differ by the way they came about: read back from memory they do not, and the verifier follows what comes
 * behind once.
 */
enum { OWN_CURRENT, OWN_FILE, OWN_FILE_SUM, OWN_SUM, OWN_CLASS, OWN_LINE, OWN_CALL, OWN_NEXT };

/* Puts @value into own[@which], from where it is read again. */
static __always_inline void keep(struct chain *c, __u32 which, __u64 value)
{
	c->work->own[which] = value;
	barrier();
}

/* How a string's record begins: its hash and its length. 0; 1: no string is there. */
static __always_inline int read_string(__u64 addr, __u64 *hash, __u64 *bytes)
{
	__u64 head[PHP_STRING_HEAD / 8];

	if (!addr || addr & 7 || bpf_probe_read_user(head, sizeof(head), (void *)addr) ||
	    (head[0] >> 32 & PHP_TYPE_MASK) != PHP_TYPE_STRING)
		return 1;
	*hash = head[1];
	*bytes = head[2];
	return 0;
}

/* Takes what tells the string at @addr from others into the sum own[@which]: its length and PHP's hash, or, where it made
 * none, the last 63 bytes. 0; 1: no string is there. */
static __always_inline int check_string(struct chain *c, __u32 which, __u64 addr)
{
	__u64 words[PHP_HASHED_BYTES / 8 + 1] = { 0 }, hash, len, bytes, sum;

	if (read_string(addr, &hash, &len))
		return 1;
	sum = mix(mix(c->work->own[which], hash), len);
	bytes = masked(len < PHP_HASHED_BYTES ? len : PHP_HASHED_BYTES, PHP_HASHED_BYTES);
	if (!hash && !bpf_probe_read_user(words, bytes, (void *)(addr + PHP_STRING_HEAD + len - bytes))) {
#pragma GCC unroll 8
		for (int i = 0; i < (int)(sizeof(words) / 8); i++)
			sum = mix(sum, words[i]);
	}
	keep(c, which, sum);
	return 0;
}

/* The same of a file's name: functions that call each other are in the same file, as a rule. */
static __always_inline int check_file(struct chain *c, __u64 addr)
{
	if (c->work->own[OWN_FILE] == addr)
		return 0;
	keep(c, OWN_FILE_SUM, 0);
	keep(c, OWN_FILE, addr);
	return check_string(c, OWN_FILE_SUM, addr);
}

/* Adds the string at @addr, if there is one, as part @part. */
static __always_inline __u32 string_part(struct chain *c, __u32 part, __u32 at, __u64 addr)
{
	__u64 hash, bytes;

	if (!addr)
		return at;
	if (read_string(addr, &hash, &bytes)) {
		c->work->object.is_cut |= 1 << part;
		count(c->cpu, COUNTER_OBJECT_UNREADABLE);
		return at;
	}
	c->work->object.part_state[part] = 1;
	return object_part(c, part, at, addr + PHP_STRING_HEAD, bytes, 1023);
}

/* A word of the function that frame_step() has read. */
static __always_inline __u64 head_word(const struct chain *c, __u32 offset)
{
	return *(const __u64 *)(c->work->data + masked(offset, 0xf8));
}

/* Half a word of it. */
static __always_inline __u32 head_half(const struct chain *c, __u32 offset)
{
	return *(const __u32 *)(c->work->data + masked(offset, 0xfc));
}

static __always_inline __u32 head_type(const struct chain *c)
{
	return (__u8)head_half(c, PHP_FUNCTION_TYPE);
}

/* Reads the head of the function at @addr to where objects are made. 0; 1 with the end set: no function is there. */
static __always_inline int read_head(struct chain *c, __u64 addr)
{
	struct chain_work *w = c->work;
	__u32 type;

	w->end = CHAIN_END_TORN;
	if (addr & 7)
		return 1;
	w->end = CHAIN_END_BAD_MEMORY;
	if (bpf_probe_read_user(w->data, PHP_HEAD_BYTES, (void *)addr)) {
		__builtin_memset(w->data, 0, PHP_HEAD_BYTES);
		if (bpf_probe_read_user(w->data, PHP_HEAD_INTERNAL_BYTES, (void *)addr))
			return 1;
	}
	w->end = CHAIN_END_TORN;
	type = head_type(c);
	return type != PHP_INTERNAL_FUNCTION && type != PHP_USER_FUNCTION && type != PHP_EVAL_CODE;
}

/* What tells the function whose head was read from others that have been, or will be, in the same memory: its class and the
 * texts of its name and its file. 0, or 1: the texts are none. */
static __always_inline int check_function(struct chain *c, __u32 *ret)
{
	__u64 name = head_word(c, PHP_FUNCTION_NAME);

	keep(c, OWN_SUM, mix(c->work->own[OWN_CLASS], head_type(c)));
	if (name && check_string(c, OWN_SUM, name))
		return 1;
	if (head_type(c) != PHP_INTERNAL_FUNCTION) {
		if (check_file(c, head_word(c, chain_offset(c, PHP_FUNCTION_FILE))))
			return 1;
		keep(c, OWN_SUM,
		     mix(mix(c->work->own[OWN_SUM], c->work->own[OWN_FILE_SUM]),
			 head_half(c, chain_offset(c, PHP_FUNCTION_LINE))));
	}
	*ret = c->work->own[OWN_SUM] >> 32;
	return 0;
}

/* Is @opline one of the function's whose head was read? */
static __always_inline bool is_opline(const struct chain *c, __u64 opline)
{
	__u64 off = opline - head_word(c, chain_offset(c, PHP_FUNCTION_OPCODES));
	__u32 last = head_half(c, chain_offset(c, PHP_FUNCTION_LAST));

	return off < (__u64)last * PHP_OP_BYTES && !(off % PHP_OP_BYTES);
}

/* May the frame that stands at @opline of the function whose head was read be believed to do so still? It is in opcache's
 * memory, where nothing takes its place; the innermost one's registers are looked at each time. */
static __always_inline bool may_be_believed(const struct chain *c, __u64 opline)
{
	return head_type(c) == PHP_USER_FUNCTION && head_half(c, PHP_FUNCTION_FLAGS) & PHP_IS_IMMUTABLE &&
	       c->work->at != c->work->head + 1 && is_opline(c, opline);
}

/* Sends the function whose head was read, and which the frame at @at stands at @opline of, under the address @key, unless it
 * was sent before. */
static __always_inline void tell_function(struct chain *c, __u64 key, __u32 check, __u64 at, __u64 opline)
{
	struct sent_object *sent = find_sent(c, key);
	__u64 class = c->work->own[OWN_CLASS], class_name = 0;
	__u32 put = PHP_HEAD_BYTES;

	if (!sent)
		return;
	if (is_sent(c, sent, key, 0, check)) {
		if (may_be_believed(c, opline))
			believe(c, believed_at(c, at), sent, key, opline, c->work->own[OWN_LINE]);
		return;
	}
	if (!has_object_tokens(c))
		return;
	object_begin(c, key);
	c->work->object.part_bytes[PHP_PART_HEAD] = PHP_HEAD_BYTES;
	if (class && read_word(class + PHP_CLASS_NAME, &class_name))
		class_name = 0;
	put = string_part(c, PHP_PART_NAME, put, head_word(c, PHP_FUNCTION_NAME));
	put = string_part(c, PHP_PART_CLASS, put, class_name);
	if (head_type(c) != PHP_INTERNAL_FUNCTION)
		put = string_part(c, PHP_PART_FILE, put, head_word(c, chain_offset(c, PHP_FUNCTION_FILE)));
	object_send(c, sent, 0, RUNTIME_PHP, check, put);
}

/* Has the function whose head was read the flag whose bit is the state's offset @bit? */
static __always_inline bool has_flag(const struct chain *c, enum php_offset bit)
{
	return head_half(c, PHP_FUNCTION_FLAGS) >> masked(chain_offset(c, bit), 31) & 1;
}

/* The address by which a function is known: copies of a closure have the same opcodes. */
static __always_inline __u64 function_key(const struct chain *c, __u64 func)
{
	if (head_type(c) == PHP_INTERNAL_FUNCTION || !has_flag(c, PHP_CLOSURE_BIT) || has_flag(c, PHP_FAKE_CLOSURE_BIT))
		return func;
	return head_word(c, chain_offset(c, PHP_FUNCTION_OPCODES));
}

/* The line of @opline; 0: not known. */
static __always_inline __u32 line_of(struct chain *c, __u64 opline)
{
	__u64 word, thread = c->work->own[OWN_CURRENT];

	if (is_opline(c, opline))
		return read_word(opline + PHP_OP_LINE, &word) ? 0 : word;
	/* While an exception makes its way the frame stands on an opcode of executor_globals. */
	if (opline - thread > 4096 || read_word(opline + PHP_OP_LINE, &word) ||
	    (word >> 32 & 255) != PHP_OP_HANDLE_EXCEPTION ||
	    read_word(thread + chain_offset(c, PHP_THREAD_BEFORE_EXCEPTION), &opline) || !is_opline(c, opline))
		return 0;
	return read_word(opline + PHP_OP_LINE, &word) ? 0 : word;
}

/*
 * Adds the frame at @at, whose function's head was read. The frame on top notes its opcode only now and then: its registers
 * know better while they have not been used for something else. 1 with the end set when the chain ends.
 */
static __always_inline int add_function(struct chain *c, __u64 at, __u64 func, __u64 opline)
{
	struct chain_work *w = c->work;
	const __u64 *regs = c->scratch->regs.regs;
	bool is_internal = head_type(c) == PHP_INTERNAL_FUNCTION;
	__u64 key;
	__u32 check;

	if (is_internal && !head_word(c, PHP_FUNCTION_NAME)) /* of a new object without a constructor, or below a fiber */
		return 0;
	if (!is_internal && has_flag(c, PHP_TRAMPOLINE_BIT))
		return 0;
	key = function_key(c, func);
	keep(c, OWN_CLASS,
	     key == func ? head_word(c, PHP_FUNCTION_CLASS) : 0); /* copies of a closure may belong to several */
	w->end = CHAIN_END_TORN;
	if (check_function(c, &check))
		return 1;
	keep(c, OWN_LINE, 0);
	if (!is_internal) {
		if (w->at == w->head + 1 && regs[REG_FRAME] == at && is_opline(c, regs[REG_OPLINE]))
			opline = regs[REG_OPLINE];
		keep(c, OWN_LINE, line_of(c, opline));
	}
	tell_function(c, key, check, at, opline);
	w->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, key), CHAIN_PLACE(w->own[OWN_LINE], check));
}

/* The first frame. Without threads PHP runs in the process's first one. */
static __always_inline int first_frame(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 memory, offset;

	w->segment = 0;
	w->own[OWN_FILE] = 0;
	w->own[OWN_CURRENT] = w->state.thread.addr;
	if (!w->state.global)
		return c->scratch->sample.pid != c->scratch->sample.tid || find_thread(c, &w->frame);
	if (find_thread(c, &memory) || read_word(w->state.global, &offset))
		return 1;
	w->own[OWN_CURRENT] = memory + offset + chain_offset(c, PHP_THREAD_CURRENT);
	return read_word(w->own[OWN_CURRENT], &w->frame);
}

/* chain_work.segment: the generator whose frame came last, and in its low bits: */
enum { BELOW_FIBER = 1 /* the native frames of what follows are on another stack */ };

/*
 * A frame without a function, at w->frame. That of a generator that delegates (yield from) stands for all generators from
 * the one that runs, which came last, down to the one that was asked. Finds the next of these: its frame; 0: there are no
 * more.
 */
static __always_inline __u64 next_delegate(struct chain *c, __u64 asked)
{
	struct chain_work *w = c->work;
	__u64 generator = w->segment & ~7ull, children, next, frame;

	if (!generator || generator == asked || asked + chain_offset(c, PHP_GENERATOR_PLACEHOLDER) != w->frame)
		return 0;
	if (read_word(generator + chain_offset(c, PHP_GENERATOR_CHILDREN), &children) ||
	    read_word(generator + chain_offset(c, PHP_GENERATOR_CHILD), &next))
		return 0;
	if ((__u32)children != 1) /* asked through several: only the last of these is told */
		next = asked;
	if (next & 7 || !next || read_word(next + chain_offset(c, PHP_GENERATOR_FRAME), &frame))
		return 0;
	w->segment = next | (w->segment & BELOW_FIBER);
	return frame;
}

/* Ends the segment, where the script's frame with the call word @call was the first of its loop. 1 with the end set: there
 * is no room. */
static __always_inline int end_segment(struct chain *c, __u32 call)
{
	c->work->end = CHAIN_END_DEPTH;
	/* No native frame of this stack has address 1. */
	return call & PHP_CALL_TOP && chain_add(c, CHAIN_WORD(CHAIN_MARKER, c->work->segment & BELOW_FIBER), 0);
}

/* Goes on behind a frame whose function's head was read. 1 with the end set: there is no room. */
static __always_inline int end_function(struct chain *c, __u32 call)
{
	if (head_type(c) != PHP_INTERNAL_FUNCTION)
		return end_segment(c, call);
	if (!call && !head_word(c, PHP_FUNCTION_NAME))
		c->work->segment |= BELOW_FIBER;
	return 0;
}

/* Adds the frame at w->frame as what it is believed to be. 1 with the end set: there is no room. */
static __always_inline int add_believed(struct chain *c, const struct believed *b, __u32 call, __u64 next)
{
	c->work->end = CHAIN_END_DEPTH;
	c->work->frame = next;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, b->object), CHAIN_PLACE(b->line, b->check)) || end_segment(c, call);
}

/* Reads a frame and goes to the next. Returns 1, with the end set, when the chain ends. */
static __always_inline int frame_step(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 at = w->frame, next, func, delegate;
	struct believed *believed;
	const __u8 *bytes;
	__u32 call;

	w->end = CHAIN_END_ROOT;
	if (!at)
		return 1;
	w->end = CHAIN_END_TORN;
	if (at & 7)
		return 1;
	w->end = CHAIN_END_BAD_MEMORY;
	bytes = chain_read(c, at, PHP_FRAME_BYTES);
	if (!bytes)
		return 1;
	next = word_at(bytes, PHP_FRAME_PREVIOUS);
	func = word_at(bytes, PHP_FRAME_FUNCTION);
	call = word_at(bytes, PHP_FRAME_CALL);
	if (!func) {
		delegate = (call & PHP_TYPE_MASK) == PHP_TYPE_OBJECT ? next_delegate(c, word_at(bytes, PHP_FRAME_THIS)) : 0;
		if (!delegate) {
			w->frame = next;
			w->end = CHAIN_END_DEPTH;
			return 0;
		}
		next = at; /* which knows the delegates that remain */
		at = delegate;
		bytes = at & 7 ? NULL : chain_read(c, at, PHP_FRAME_BYTES);
		if (!bytes)
			return 1;
		func = word_at(bytes, PHP_FRAME_FUNCTION);
		call = 0; /* it runs in no loop of its own */
	} else if (call & PHP_CALL_GENERATOR) {
		w->segment = (word_at(bytes, PHP_FRAME_RESULT) & ~7ull) | (w->segment & BELOW_FIBER);
	}
	believed = believed_at(c, at);
	if (w->at != w->head + 1 && is_believed(c, believed, func, word_at(bytes, PHP_FRAME_OPLINE)))
		return add_believed(c, believed, call, next);
	keep(c, OWN_CALL, call);
	keep(c, OWN_NEXT, next);
	if (read_head(c, func) || add_function(c, at, func, word_at(bytes, PHP_FRAME_OPLINE)) ||
	    end_function(c, w->own[OWN_CALL]))
		return 1;
	w->frame = w->own[OWN_NEXT];
	return 0;
}

CHAIN_PROGRAMS(php, RUNTIME_PHP, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
