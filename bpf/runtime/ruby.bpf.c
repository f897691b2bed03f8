/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ruby's frames, 2.5 to 4.0: an array of control frames in each stack of the VM (of a thread or fiber), callers above.
 * Methods that are written in C have frames, too. A frame's place is the number of the instruction that runs. A frame with
 * the flag FINISH is the outermost one of a call of the loop, rb_vm_exec(), which keeps a tag for jumps on the native stack;
 * other C code has tags, too, but those that lead back into the loop are one for each such call. Both are told
 * (CHAIN_LOOP), as a frame is pushed before its tag, and gone before it. A JIT's code pushes the same frames.
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/ruby_state.h"
#include "bpf/runtime/ruby_values.bpf.h"

/* Registers that the loop keeps its frame and its instruction in (vm_exec.c: DECL_SC_REG); gcc on x86-64 alone. */
enum { REG_INSTRUCTION = 14, REG_FRAME = 15 };

enum { RUBY_LEVELS = 8 /* blocks in blocks, up to the method */, RUBY_TAG_CNT = 256, TORN_STACK_BYTES = 1 << 28 };

/* chain_work.own; chain_work.frame is the control frame, chain_work.segment the tag */
enum ruby_work {
	RUBY_AT_STACK,	/* the VM's stack ... */
	RUBY_AT_END,	/* ... and its end, behind the outermost frame */
	RUBY_AT_GUARD,	/* what glibc mixes into addresses that setjmp() notes */
	RUBY_AT_TAGS,	/* how many tags may still be looked at; 0: frames are read */
	RUBY_AT_TOP,	/* the innermost control frame */
	RUBY_AT_METHOD, /* of the frame that is read: the word of its method or scope */
	RUBY_AT_FLAGS,	/* and its flags */
	RUBY_AT_CHECK,	/* what tell_iseq() and tell_method() found */
	RUBY_AT_PUT,	/* bytes of the object in the making: in here the verifier does not follow them */
	/* the iseq that is looked at: its body, of that the beginning and the location, and whose method it is */
	RUBY_AT_BODY,
	RUBY_AT_HEAD,
	RUBY_AT_LOCATION = RUBY_AT_HEAD + RUBY_BODY_HEAD_BYTES / 8, /* path, base label, label, first line */
	RUBY_AT_OWNER = RUBY_AT_LOCATION + RUBY_BODY_LOCATION_BYTES / 8,
	RUBY_AT_WORDS, /* whatever is read */
};

static __always_inline __u64 *own(struct chain *c, enum ruby_work which)
{
	return &c->work->own[which];
}

/* --- memory --- */

/* The words at ep, with those before it. Of frames that are neighbours the values are, too: callers below, read through the
 * second window; what was moved to the heap is read alone. 0, or 1: they cannot be read. */
static __always_inline int read_env(struct chain *c, __u64 ep, __u64 words[RUBY_ENV_BYTES / 8])
{
	struct chain_work *w = c->work;
	__u64 addr = ep - RUBY_ENV_BELOW, off = addr - w->side_at, len;
	const __u8 *bytes;

	if (ep - *own(c, RUBY_AT_STACK) >= *own(c, RUBY_AT_END) - *own(c, RUBY_AT_STACK))
		return bpf_probe_read_user(words, RUBY_ENV_BYTES, (void *)addr) != 0;
	if (off >= CHAIN_WINDOW_BYTES || off + RUBY_ENV_BYTES > w->side_len) {
		off = masked(addr, CHAIN_WINDOW_BYTES - 1);
		len = off + RUBY_ENV_BYTES;
		w->side_len = 0;
		if (bpf_probe_read_user(w->side, len, (void *)(addr - off)))
			return 1;
		w->side_at = addr - off;
		w->side_len = len;
	}
	bytes = w->side + masked(off, CHAIN_WINDOW_BYTES - 1);
	__builtin_memcpy(words, bytes, RUBY_ENV_BYTES);
	return 0;
}

/* --- names --- */

/* Adds the @bytes at @addr as part @part. */
static __always_inline void put_part(struct chain *c, __u32 part, __u64 addr, __u64 bytes, const __u64 max)
{
	*own(c, RUBY_AT_PUT) = object_part(c, part, *own(c, RUBY_AT_PUT), addr, bytes, max);
}

/* Adds the string @value as part @part. */
static __always_inline void text_part(struct chain *c, __u32 part, __u64 value, const __u64 max)
{
	__u64 text, len;

	if (find_text(c, value, &text, &len)) {
		c->work->object.is_cut |= 1 << part;
		count(c->cpu, COUNTER_OBJECT_UNREADABLE);
		return;
	}
	put_part(c, part, text, len, max);
}

/* Adds the name of @class, or of the class that the singleton class @class is of; nothing, where that has none. */
static __always_inline void class_part(struct chain *c, __u64 class)
{
	__u64 flags, text, len;

	if (!is_class(class, &flags))
		return;
	if (flags >> masked(chain_offset(c, RUBY_SINGLETON_BIT), 31) & 1 && (flags & RUBY_TYPE_MASK) == RUBY_TYPE_CLASS) {
		class = find_attached(c, class);
		if (!is_class(class, &flags))
			return;
		c->work->object.part_state[RUBY_PART_NAME] |= RUBY_IS_SINGLETON;
	}
	if (!find_text(c, find_path(c, class), &text, &len))
		put_part(c, RUBY_PART_CLASS, text, len, RUBY_NAME_BYTES);
}

/* --- objects --- */

/* The method that runs, of the frame that was read; 0: none, code of a class or file. */
static __always_inline __u64 find_method(struct chain *c)
{
	__u64 words[2], at = *own(c, RUBY_AT_METHOD);

	if (!is_value(at) || bpf_probe_read_user(words, sizeof(words), (void *)at))
		return 0;
	if (is_internal(words[0], RUBY_INTERNAL_SVAR)) {
		at = words[1];
		if (!is_value(at) || read_word(at, words))
			return 0;
	}
	return is_internal(words[0], RUBY_INTERNAL_METHOD) ? at : 0;
}

/* The class of the method that runs. */
static __always_inline __u64 find_owner(struct chain *c)
{
	__u64 method = find_method(c), owner;

	return method && !read_word(method + RUBY_METHOD_OWNER, &owner) ? owner : 0;
}

/* Reads the iseq at @addr. 0, or 1: there is none. */
static __always_inline int read_iseq(struct chain *c, __u64 addr)
{
	__u64 *words = own(c, RUBY_AT_WORDS), body;

	if (bpf_probe_read_user(words, 24, (void *)addr) || !is_internal(words[0], RUBY_INTERNAL_ISEQ))
		return 1;
	body = words[2];
	*own(c, RUBY_AT_BODY) = body;
	*own(c, RUBY_AT_OWNER) = find_owner(c);
	return bpf_probe_read_user(own(c, RUBY_AT_HEAD), RUBY_BODY_HEAD_BYTES, (void *)body) ||
	       bpf_probe_read_user(own(c, RUBY_AT_LOCATION), RUBY_BODY_LOCATION_BYTES, (void *)(body + RUBY_BODY_LOCATION));
}

/*
 * What tells the iseq that was read from others that have been, or will be, in the same memory: its parts, whose method it
 * is, and the last of its label's text, which differ first. A text of the program's own, such as <main>, is the same as long
 * as its address is, and may not be in memory: a forked child has only those pages of files that it touched. 0, or 1: the
 * label is none.
 */
static __always_inline int check_iseq(struct chain *c, __u32 *ret)
{
	enum { WORDS = 4 };
	__u64 sum = 0, at, len, bytes, flags, *text = own(c, RUBY_AT_WORDS);

	if (find_text(c, *own(c, RUBY_AT_LOCATION + 2), &at, &len) || read_word(*own(c, RUBY_AT_LOCATION + 2), &flags))
		return 1;
#pragma GCC unroll 8
	for (int i = RUBY_AT_BODY; i <= RUBY_AT_OWNER; i++)
		sum = mix(sum, *own(c, i));
#pragma GCC unroll 4
	for (int i = 0; i < WORDS; i++)
		text[i] = 0;
	bytes = masked(len < WORDS * 8 - 1 ? len : WORDS * 8 - 1, WORDS * 8 - 1);
	if (flags & RUBY_TEXT_STATIC)
		text[0] = at;
	else if (bpf_probe_read_user(text, bytes, (void *)(at + len - bytes)))
		return 1;
	sum = mix(sum, len);
#pragma GCC unroll 4
	for (int i = 0; i < WORDS; i++)
		sum = mix(sum, text[i]);
	*ret = sum >> 32;
	return 0;
}

/* Adds the table of lines of the iseq that was read. */
static __always_inline void lines_part(struct chain *c)
{
	struct object_record *o = &c->work->object;
	__u64 body = *own(c, RUBY_AT_BODY), at, cnt, bytes = RUBY_INDEX_BYTES;
	__u32 words = *own(c, RUBY_AT_HEAD) >> 32;

	o->part_state[RUBY_PART_LINES] = words;
	if (read_word(body + chain_offset(c, RUBY_LINES_COUNT), &cnt))
		return;
	*own(c, RUBY_AT_WORDS) = 0;
	if (chain_offset(c, RUBY_LINES_INDEX) && (__u32)cnt > 1) { /* else there is none */
		if (words > RUBY_INDEX_WORDS)
			bytes += (__u64)((words - RUBY_INDEX_WORDS + RUBY_INDEX_BLOCK_WORDS - 1) / RUBY_INDEX_BLOCK_WORDS) *
				 RUBY_INDEX_BLOCK_BYTES;
		if (read_word(body + chain_offset(c, RUBY_LINES_INDEX), &at))
			return;
		put_part(c, RUBY_PART_LINES, at, bytes, RUBY_INDEX_MAX);
		*own(c, RUBY_AT_WORDS) = o->part_bytes[RUBY_PART_LINES];
		o->part_bytes[RUBY_PART_LINES] = 0;
		if (!*own(c, RUBY_AT_WORDS))
			return;
	}
	if (read_word(body + chain_offset(c, RUBY_LINES), &at))
		return;
	put_part(c, RUBY_PART_LINES, at, (__u64)(__u32)cnt * chain_offset(c, RUBY_LINE_BYTES), RUBY_LINES_MAX);
	o->part_bytes[RUBY_PART_LINES] += *own(c, RUBY_AT_WORDS);
}

/* Sends the object that was made. A text that was not in memory may be in a while. */
static __always_inline void send(struct chain *c, struct sent_object *sent, __u64 witness)
{
	__u32 cut = c->work->object.is_cut;

	object_send(c, sent, witness, RUNTIME_RUBY, *own(c, RUBY_AT_CHECK), *own(c, RUBY_AT_PUT));
	if (cut & (1 << RUBY_PART_NAME | 1 << RUBY_PART_CLASS) && sent->addr == c->work->object.addr)
		send_again(c, sent);
}

/* The label of the iseq that was read, a string. That of an eval is what it is in, but since Prism <compiled>: then the
 * method that it is in, as Ruby's own backtraces have it. */
static __always_inline __u64 find_label(struct chain *c)
{
	__u64 label = *own(c, RUBY_AT_LOCATION + 2), at, len;
	char first = 0;

	if ((__u32)*own(c, RUBY_AT_HEAD) != RUBY_ISEQ_EVAL || find_text(c, label, &at, &len) ||
	    bpf_probe_read_user(&first, 1, (void *)at) || first != '<')
		return label;
	return *own(c, RUBY_AT_LOCATION + 1);
}

static __always_inline void send_iseq(struct chain *c, struct sent_object *sent, __u64 addr)
{
	struct object_record *o = &c->work->object;
	__u64 path = *own(c, RUBY_AT_LOCATION), flags, text, len;

	object_begin(c, addr);
	*own(c, RUBY_AT_PUT) = 0;
	text_part(c, RUBY_PART_NAME, find_label(c), RUBY_NAME_BYTES);
	o->part_state[RUBY_PART_NAME] = find_text(c, *own(c, RUBY_AT_LOCATION + 1), &text, &len) ? 0 : len;
	class_part(c, *own(c, RUBY_AT_OWNER));
	if (is_value(path) && !read_word(path, &flags) && (flags & RUBY_TYPE_MASK) == RUBY_TYPE_ARRAY)
		(void)read_element(path, 0, &path, 8);
	text_part(c, RUBY_PART_FILE, path, RUBY_FILE_BYTES);
	o->part_state[RUBY_PART_CLASS] = *own(c, RUBY_AT_HEAD + 1) / 8;
	o->part_state[RUBY_PART_FILE] = *own(c, RUBY_AT_LOCATION + 3) >> masked(chain_offset(c, RUBY_LINE_SHIFT), 1);
	lines_part(c);
	send(c, sent, *own(c, RUBY_AT_METHOD));
}

/* Copies the iseq at @addr, unless it was sent before; AT_CHECK is set. 1: there is none. */
static __always_inline int tell_iseq(struct chain *c, __u64 addr)
{
	struct believed *believed = believed_at(c, c->work->frame);
	__u64 witness = *own(c, RUBY_AT_METHOD);
	struct sent_object *sent;
	__u32 check;

	*own(c, RUBY_AT_CHECK) = believed->check;
	if (is_believed(c, believed, addr, witness))
		return 0;
	sent = find_sent(c, addr);
	if (!sent)
		return 1;
	*own(c, RUBY_AT_CHECK) = sent->check;
	if (is_sent_now(c, sent, addr, witness)) {
		believe(c, believed, sent, addr, witness, 0);
		return 0;
	}
	if (read_iseq(c, addr) || check_iseq(c, &check))
		return 1;
	*own(c, RUBY_AT_CHECK) = check;
	if (is_sent(c, sent, addr, witness, check) || !has_object_tokens(c))
		return 0;
	send_iseq(c, sent, addr);
	return 0;
}

/* Copies what the method at @addr, which is written in C, is called, unless it was sent before; AT_CHECK is set. 1: there is
 * none. */
static __always_inline int tell_method(struct chain *c, __u64 addr)
{
	struct sent_object *sent = find_sent(c, addr);
	__u64 *words = own(c, RUBY_AT_WORDS), id;
	__u32 check;

	if (!sent)
		return 1;
	*own(c, RUBY_AT_CHECK) = sent->check;
	if (is_sent_now(c, sent, addr, addr))
		return 0;
	if (bpf_probe_read_user(words, RUBY_METHOD_BYTES, (void *)addr) || !is_internal(words[0], RUBY_INTERNAL_METHOD))
		return 1;
	if (read_word(words[2] + RUBY_DEFINITION_ID, &id))
		return 1;
	check = mix(mix(mix(words[2], id), words[3]), words[4]) >> 32;
	*own(c, RUBY_AT_CHECK) = check;
	if (is_sent(c, sent, addr, addr, check) || !has_object_tokens(c))
		return 0;
	object_begin(c, addr);
	*own(c, RUBY_AT_PUT) = 0;
	text_part(c, RUBY_PART_NAME, find_name(c, id), RUBY_NAME_BYTES);
	c->work->object.part_state[RUBY_PART_NAME] = *own(c, RUBY_AT_PUT);
	class_part(c, words[4]);
	send(c, sent, addr);
	return 0;
}

/* --- tags --- */

/* Does the address that setjmp(), or the compiler's own, noted lead into the loop? */
static __always_inline bool leads_into_loop(struct chain *c, __u64 pc)
{
	__u64 start = c->work->state.type, bytes = chain_offset(c, RUBY_LOOP_BYTES);
	__u64 plain = (pc >> 17 | pc << 47) ^ *own(c, RUBY_AT_GUARD); /* glibc, sysdeps/x86_64: PTR_DEMANGLE */

	return pc - start < bytes || plain - start < bytes;
}

/* A word on the native stack, whose outer frames are in use; of its last page only what is asked for. */
static __always_inline int read_stack(struct chain *c, __u64 addr, __u64 *ret)
{
	const __u8 *bytes = chain_read_up(c, addr, 8, (addr | (CHAIN_WINDOW_BYTES - 1)) + 1);

	if (!bytes)
		return read_word(addr, ret);
	*ret = *(const __u64 *)bytes;
	return 0;
}

/* Looks at a tag. 1, with the end set: it cannot be read. */
static __always_inline int tag_step(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 at = w->segment, pc, previous;

	w->end = CHAIN_END_BAD_MEMORY;
	if (read_stack(c, at + chain_offset(c, RUBY_TAG_PC), &pc) ||
	    read_stack(c, at + chain_offset(c, RUBY_TAG_PREVIOUS), &previous))
		return 1;
	w->end = CHAIN_END_DEPTH;
	if (leads_into_loop(c, pc) && chain_add(c, CHAIN_WORD(CHAIN_LOOP, at), 0))
		return 1;
	w->segment = previous;
	*own(c, RUBY_AT_TAGS) -= 1;
	if (previous && previous > at && !(previous & 7))
		return 0;
	*own(c, RUBY_AT_TAGS) = 0;
	w->window_len = 0;
	return 0;
}

/* --- frames --- */

/*
 * Is @ec of the thread that runs? Until 2.7 one variable has the state of the thread that holds the lock: then the stack
 * pointer must lie in the native stack that the state is of.
 */
static __always_inline bool is_own(struct chain *c, __u64 ec)
{
	__u64 words[3], sp = c->scratch->regs.regs[REG_SP]; /* start, which is the upper end; end; size */
	__u32 offset = chain_offset(c, RUBY_STACK_START);

	if (!offset)
		return true;
	return !bpf_probe_read_user(words, sizeof(words), (void *)(ec + offset)) && words[0] + 4096 - sp < words[2] + 8192;
}

/* Finds the first frame and the first tag. 0, or 1: there is none. */
static __always_inline int first_frame(struct chain *c)
{
	__u64 ec, words[RUBY_THREAD_BYTES / 8];
	struct chain_work *w = c->work;

	if (find_thread(c, &ec) || !is_own(c, ec))
		return 1;
	w->end = CHAIN_END_BAD_MEMORY;
	if (bpf_probe_read_user(words, sizeof(words), (void *)ec))
		return 1;
	w->end = CHAIN_END_NO_THREAD;
	if (!words[0] || !words[2]) /* a thread or fiber without a stack, about to begin or to end */
		return 1;
	w->end = CHAIN_END_TORN;
	if (words[1] > TORN_STACK_BYTES / 8 || words[2] & 7 || words[2] < words[0] || words[2] > words[0] + words[1] * 8)
		return 1;
	*own(c, RUBY_AT_STACK) = words[0];
	*own(c, RUBY_AT_END) = words[0] + words[1] * 8;
	*own(c, RUBY_AT_TOP) = words[2];
	*own(c, RUBY_AT_TAGS) = words[3] && !(words[3] & 7) ? RUBY_TAG_CNT : 0;
	*own(c, RUBY_AT_GUARD) = 0;
	/* glibc's tcbhead_t.pointer_guard (sysdeps/x86_64/nptl/tls.h) */
	if (!CPU_HAS_LR && read_word(c->scratch->walk.thread_pointer + 0x30, own(c, RUBY_AT_GUARD)))
		*own(c, RUBY_AT_GUARD) = 0;
	w->frame = words[2];
	w->segment = words[3];
	return 0;
}

/* Notes the flags of the frame whose ep is @ep, and which method it is in: that of the outermost block's frame, or of a
 * block that is a method itself. 0, or 1: it cannot be read. */
static __always_inline int read_flags(struct chain *c, __u64 ep)
{
	__u64 words[RUBY_ENV_BYTES / 8];

	if (read_env(c, ep, words))
		return 1;
	*own(c, RUBY_AT_FLAGS) = words[2];
	for (int i = 0; i < RUBY_LEVELS && !(words[2] & (RUBY_ENV_LOCAL | RUBY_FRAME_BMETHOD)); i++) {
		barrier(); /* see CHAIN_PROGRAMS */
		if (read_env(c, words[1] & ~3ull, words))
			return 1;
	}
	*own(c, RUBY_AT_METHOD) = words[2] & (RUBY_ENV_LOCAL | RUBY_FRAME_BMETHOD) ? words[0] : 0;
	return 0;
}

/* The place of the frame at @at, whose next instruction is @pc: the word before that (vm_backtrace.c, calc_pos()). The
 * innermost one notes it only now and then: while it is in the loop, or in C that has not used these registers, it is the
 * loop's own. */
static __always_inline __u32 place_of(struct chain *c, __u64 at, __u64 iseq, __u64 pc)
{
	const __u64 *regs = c->scratch->regs.regs;
	__u64 body, head[2];

	if (!CPU_HAS_LR && at == *own(c, RUBY_AT_TOP) && regs[REG_FRAME] == at && regs[REG_INSTRUCTION] != pc &&
	    !read_word(iseq + RUBY_ISEQ_BODY, &body) && !bpf_probe_read_user(head, sizeof(head), (void *)body) &&
	    regs[REG_INSTRUCTION] - head[1] <= (head[0] >> 32) * 8)
		pc = regs[REG_INSTRUCTION];
	return pc / 8 - 1;
}

/* Adds the frame at @at, if it is one of a script or of a method written in C. 1, with the end set, when the chain ends. */
static __always_inline int add_frame(struct chain *c, __u64 at, __u64 pc, __u64 iseq)
{
	__u64 flags = *own(c, RUBY_AT_FLAGS), method = *own(c, RUBY_AT_METHOD);
	struct chain_work *w = c->work;
	__u32 place = 0;

	w->end = CHAIN_END_TORN;
	if (iseq && pc) {
		if (iseq & 7 || tell_iseq(c, iseq))
			return 1;
		place = place_of(c, at, iseq, pc);
	} else if (!iseq && (flags & RUBY_FRAME_MASK) == RUBY_FRAME_CFUNC) {
		iseq = method;
		if (!is_value(iseq) || tell_method(c, iseq))
			return 1;
	} else {
		return 0; /* a block of C code, or the frame that each stack begins with */
	}
	w->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, iseq), CHAIN_PLACE(place, *own(c, RUBY_AT_CHECK)));
}

/* Looks at a tag, or reads a frame, and goes to the next. Returns 1, with the end set, when the chain ends. */
static __always_inline int frame_step(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 at = w->frame, next = at + chain_offset(c, RUBY_FRAME_BYTES), pc, iseq, ep;
	const __u8 *bytes;

	if (*own(c, RUBY_AT_TAGS))
		return tag_step(c);
	w->end = CHAIN_END_ROOT;
	if (next >= *own(c, RUBY_AT_END)) /* the outermost one stands for nothing */
		return 1;
	w->end = CHAIN_END_BAD_MEMORY;
	bytes = chain_read_up(c, at, RUBY_FRAME_MIN, *own(c, RUBY_AT_END));
	if (!bytes)
		return 1;
	pc = *(const __u64 *)(bytes + RUBY_FRAME_PC);
	iseq = *(const __u64 *)(bytes + RUBY_FRAME_ISEQ);
	ep = *(const __u64 *)(bytes + RUBY_FRAME_EP);
	w->end = CHAIN_END_TORN;
	if (!is_value(ep))
		return 1;
	w->end = CHAIN_END_BAD_MEMORY;
	if (read_flags(c, ep) || add_frame(c, at, pc, iseq))
		return 1;
	w->end = CHAIN_END_DEPTH;
	if (*own(c, RUBY_AT_FLAGS) & RUBY_FRAME_FINISH && chain_add(c, CHAIN_WORD(CHAIN_MARKER, 0), 0))
		return 1;
	w->frame = next;
	return 0;
}

CHAIN_PROGRAMS(ruby, RUNTIME_RUBY, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
