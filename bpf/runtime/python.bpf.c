/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython's frames, 3.6 to 3.15. Offsets are the state's (agent/runtime/file/python_layout.c), measured or read from the
 * target's own table. The frames' place is the address of the instruction minus that of the code object, or f_lasti (until
 * 3.10).
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/python_state.h"

/* What tells one code object from another: its numbers and pointers, and the content of its name. */
struct checked {
	__u64 code[PYTHON_CHECKED_BYTES / 8];
	__u64 name[PYTHON_CHECKED_NAME_BYTES / 8];
};

static __always_inline __u32 checksum(const struct checked *checked)
{
	const __u64 *words = checked->code;
	__u64 sum = 0;

#pragma GCC unroll 19
	for (int i = 0; i < (int)(sizeof(*checked) / 8); i++)
		if (i != PYTHON_CHECKED_BYTES / 8) /* the name's reference count */
			sum = mix(sum, words[i]);
	return sum >> 32;
}

/* The checksum of the code object at @code. 0, or 1: it cannot be read. */
static __always_inline int check_code(const struct chain *c, __u64 code, __u32 *ret)
{
	struct checked checked;

	if (bpf_probe_read_user(checked.code, sizeof(checked.code), (void *)(code + chain_offset(c, PYTHON_CODE_CHECKED))))
		return 1;
	if (bpf_probe_read_user(checked.name, sizeof(checked.name), (void *)checked.code[PYTHON_CHECKED_NAME]))
		return 1;
	*ret = checksum(&checked);
	return 0;
}

/* Adds the text object at @addr as part @part: its characters, as they are stored. */
static __always_inline __u32 text_part(struct chain *c, __u32 part, __u32 at, __u64 addr)
{
	struct object_record *o = &c->work->object;
	__u64 head[3]; /* length, hash, state */
	__u32 state, offset;
	__u64 bytes;

	if (!addr || bpf_probe_read_user(head, sizeof(head), (void *)(addr + chain_offset(c, PYTHON_TEXT_LENGTH)))) {
		o->is_cut |= 1 << part;
		count(c->cpu, COUNTER_OBJECT_UNREADABLE);
		return at;
	}
	state = (__u32)head[2] >> (chain_offset(c, PYTHON_TEXT_SHIFT) & 31); /* kind, compact, ascii */
	bytes = head[0] * (state & 7);
	offset = chain_offset(c, state >> 4 & 1 ? PYTHON_ASCII_DATA : PYTHON_TEXT_DATA);
	if (!(state >> 3 & 1)) /* not compact: an old style that no code object has */
		bytes = 0;
	o->part_state[part] = state & 7;
	return object_part(c, part, at, addr + offset, bytes, 1023);
}

/* Is @type that of code objects? Where its address is not known its name says so. */
static __always_inline bool is_code(const struct chain *c, __u64 type)
{
	__u64 name;
	char text[5];

	if (c->work->state.type)
		return type == c->work->state.type;
	return !read_word(type + chain_offset(c, PYTHON_OBJECT_TYPE) + PYTHON_TYPE_NAME, &name) &&
	       !bpf_probe_read_user(text, sizeof(text), (void *)name) && text[0] == 'c' && text[1] == 'o' &&
	       text[2] == 'd' && text[3] == 'e' && !text[4];
}

/* Copies the code object at @code, unless it was sent before, and tells its checksum. 1: no code object is there. */
static __always_inline int tell_code(struct chain *c, __u64 code, __u64 witness, __u32 *check)
{
	struct believed *believed = believed_at(c, c->work->frame);
	const __u8 *head = c->work->data;
	struct sent_object *sent;
	__u64 line_table, bytes = 0;
	__u32 at;

	*check = believed->check;
	if (is_believed(c, believed, code, witness))
		return 0;
	sent = find_sent(c, code);
	if (!sent)
		return 1;
	*check = sent->check;
	if (is_sent_now(c, sent, code, witness)) {
		believe(c, believed, sent, code, witness, 0);
		return 0;
	}
	if (check_code(c, code, check))
		return 1;
	if (is_sent(c, sent, code, witness, *check) || !has_object_tokens(c))
		return 0;
	object_begin(c, code);
	at = object_part(c, PYTHON_PART_HEAD, 0, code, PYTHON_CODE_BYTES, 255);
	if (!at || !is_code(c, word_at(head, chain_offset(c, PYTHON_OBJECT_TYPE))))
		return 1;
	at = text_part(c, PYTHON_PART_NAME, at, *(__u64 *)(head + masked(chain_offset(c, PYTHON_CODE_NAME), 0xf8)));
	at = text_part(c, PYTHON_PART_FILE, at, *(__u64 *)(head + masked(chain_offset(c, PYTHON_CODE_FILE), 0xf8)));
	line_table = *(__u64 *)(head + masked(chain_offset(c, PYTHON_CODE_LINES), 0xf8));
	line_table += chain_offset(c, PYTHON_BYTES_LENGTH);
	if (!read_word(line_table, &bytes))
		at = object_part(c, PYTHON_PART_LINES, at, line_table + PYTHON_BYTES_DATA, bytes, 4095);
	else
		c->work->object.is_cut |= 1 << PYTHON_PART_LINES;
	object_send(c, sent, witness, RUNTIME_PYTHON, *check, at);
	return 0;
}

/* chain_work.own */
enum {
	OWN_THREAD,    /* the state whose frames are read */
	OWN_FIRST,     /* of the thread's states the one whose frames come behind these; 0: none */
	OWN_CANDIDATE, /* the state of the main interpreter that is looked at next, where the others of this thread are
			  sought */
	OWN_LOOKED_AT, /* how many were */
};

/* Finds the first frame of the state @thread. 0, or 1: it cannot be read. */
static __always_inline int first_of_state(struct chain *c, __u64 thread)
{
	struct chain_work *w = c->work;
	__u64 at = thread + chain_offset(c, PYTHON_THREAD_FRAME);

	w->own[OWN_THREAD] = thread;
	w->segment = 0;
	if (w->state.style == PYTHON_CFRAME_EACH || w->state.style == PYTHON_CFRAME_ENTRY) {
		if (read_word(thread + chain_offset(c, PYTHON_THREAD_CFRAME), &w->segment))
			return 1;
	}
	if (w->state.style == PYTHON_CFRAME_ENTRY || w->state.style == PYTHON_CFRAME_SHIM) {
		if (read_word(thread + chain_offset(c, PYTHON_THREAD_CFRAME), &at))
			return 1;
		at += chain_offset(c, PYTHON_CFRAME_FRAME);
	}
	return read_word(at, &w->frame);
}

/* Is @thread a state of the thread that runs here? */
static __always_inline bool is_own(const struct chain *c, __u64 thread)
{
	__u64 id;

	return !read_word(thread + chain_offset(c, PYTHON_THREAD_ID), &id) &&
	       c->scratch->walk.thread_pointer - id < PYTHON_ID_BYTES;
}

enum {
	FUTEX_CALL = 0x7f, /* uapi/linux/futex.h: without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
	FUTEX_CALL_WAIT = 0,
	FUTEX_CALL_WAIT_BITSET = 9,
};

/*
 * Is the thread in a system call that waits for what the lock at @lock has in it? (With musl a thread waits for a word of
 * its own stack.)
 */
static __always_inline bool waits_for(__u64 lock)
{
	__u64 args[2];
	__u32 call;

	if (cpu_entry_syscall(current_task(), cfg_task_btf) < 0)
		return false;
	cpu_entry_args(current_task(), cfg_task_btf, args);
	call = args[1] & FUTEX_CALL;
	return args[0] - lock < PYTHON_GIL_BYTES && (call == FUTEX_CALL_WAIT || call == FUTEX_CALL_WAIT_BITSET);
}

/*
 * Has the thread, whose state is @thread, the lock? It alone can get it or let go of it for itself, so that is exact. One
 * that uses its CPU in the functions that take the lock, outside of a system call, counts as one that has released it.
 */
static __always_inline __u32 find_lock(const struct chain *c, __u64 thread)
{
	const struct chain_state *s = &c->work->state;
	__u64 at = s->global + s->lock;
	struct {
		__u64 interval, holder;
		__u32 is_locked, pad;
	} lock;

	if (!s->lock || !s->global)
		return CHAIN_LOCK_UNKNOWN;
	if (s->style >= PYTHON_CFRAME_SHIM &&
	    (read_word(thread + chain_offset(c, PYTHON_THREAD_INTERPRETER), &at) || read_word(at + s->lock, &at)))
		return CHAIN_LOCK_UNKNOWN;
	if (bpf_probe_read_user(&lock, sizeof(lock), (void *)at) || !lock.holder || lock.is_locked > 1)
		return CHAIN_LOCK_UNKNOWN; /* it is not made yet, or the build is another one */
	if (lock.is_locked && (lock.holder == thread || is_own(c, lock.holder)))
		return CHAIN_LOCK_HELD;
	if (s->thread.libc == THREAD_MUSL)
		return CHAIN_LOCK_UNKNOWN;
	return waits_for(at) ? CHAIN_LOCK_WAITING : CHAIN_LOCK_RELEASED;
}

/* Finds the first frame. 0, or 1: there is none. */
static __always_inline int first_frame(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 thread = 0, current;

	w->own[OWN_FIRST] = w->own[OWN_CANDIDATE] = w->own[OWN_LOOKED_AT] = 0;
	if (find_thread(c, &thread))
		thread = 0;
	if (w->state.style <= PYTHON_CFRAME_ENTRY && w->state.global &&
	    !read_word(w->state.global + chain_offset(c, PYTHON_RUNTIME_CURRENT), &current) && current != thread &&
	    current && is_own(c, current)) {
		w->own[OWN_FIRST] = thread;
		thread = current;
	}
	if (!thread)
		return 1;
	w->lock = find_lock(c, thread);
	return first_of_state(c, thread);
}

/*
 * Goes on where the frames of a state end: with another state of this thread. 0; 1: there is none. One call looks at one
 * candidate.
 */
static __always_inline int next_state(struct chain *c)
{
	struct chain_work *w = c->work;
	__u64 at = w->own[OWN_FIRST];

	if (at) {
		w->own[OWN_FIRST] = 0;
		return first_of_state(c, at);
	}
	if (w->state.style < PYTHON_CFRAME_SHIM || !w->state.global || w->own[OWN_LOOKED_AT] >= PYTHON_MAX_THREADS)
		return 1;
	at = w->own[OWN_CANDIDATE];
	if (!w->own[OWN_LOOKED_AT]) {
		if (read_word(w->own[OWN_THREAD] + chain_offset(c, PYTHON_THREAD_INTERPRETER), &at) ||
		    at - w->state.global < PYTHON_MAIN_BYTES || /* as nearly always */
		    read_word(w->state.global + chain_offset(c, PYTHON_RUNTIME_MAIN), &at) ||
		    read_word(at + chain_offset(c, PYTHON_INTERPRETER_THREADS), &at))
			return 1;
	}
	w->own[OWN_LOOKED_AT]++;
	if (!at || read_word(at + chain_offset(c, PYTHON_THREAD_NEXT), &w->own[OWN_CANDIDATE]))
		return 1;
	if (!is_own(c, at))
		return !w->own[OWN_CANDIDATE];
	w->own[OWN_LOOKED_AT] = PYTHON_MAX_THREADS;
	return first_of_state(c, at);
}

/* A segment ends at a frame. 1: there is no room. */
static __always_inline int end_segment(struct chain *c, __u64 marker)
{
	struct chain_work *w = c->work;

	if (w->state.style == PYTHON_CFRAME_EACH || w->state.style == PYTHON_CFRAME_ENTRY) {
		marker = w->segment;
		if (!marker || read_word(marker + chain_offset(c, PYTHON_CFRAME_PREVIOUS), &w->segment))
			w->segment = 0;
	}
	return chain_add(c, CHAIN_WORD(CHAIN_MARKER, marker), 0);
}

/*
 * Where the instructions that frame @bytes runs are, as an address in the code object's own copy of them: builds without the
 * lock give each thread one. 0, or 1: they cannot be read.
 */
static __always_inline int find_copy(const struct chain *c, const __u8 *bytes, __u64 code, __u64 *at)
{
	__u64 copies, copy;
	__u32 index;

	if (!chain_offset(c, PYTHON_CODE_COPIES))
		return 0;
	index = word_at(bytes, chain_offset(c, PYTHON_FRAME_COPY));
	if (!index) /* the object's own */
		return 0;
	if (index > PYTHON_MAX_COPIES || read_word(code + chain_offset(c, PYTHON_CODE_COPIES), &copies) ||
	    read_word(copies + 8 + (__u64)index * 8, &copy)) /* behind their number */
		return 1;
	*at += code + chain_offset(c, PYTHON_CODE_BYTECODE) - copy;
	return 0;
}

/* A frame that runs code: @ends says whether it is its segment's last. 1, with the end set, when the chain ends. */
static __always_inline int add_frame(struct chain *c, __u64 code, __u64 at, __u64 witness, __u32 ends)
{
	__u32 check;

	c->work->end = CHAIN_END_TORN;
	if (ends > 1 || tell_code(c, code, witness, &check))
		return 1;
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, code), CHAIN_PLACE(at, check)) || (ends && end_segment(c, 0));
}

/* Reads a frame and goes to the next. Returns 1, with the end set, when the chain ends. */
static __always_inline int frame_step(struct chain *c)
{
	struct chain_work *w = c->work;
	__u32 owner, ends = 1;
	const __u8 *bytes;
	__u64 code, at, witness;

	w->end = CHAIN_END_ROOT;
	if (!w->frame)
		return next_state(c);
	w->end = CHAIN_END_BAD_MEMORY;
	bytes = chain_read(c, w->frame, chain_offset(c, PYTHON_FRAME_BYTES));
	if (!bytes)
		return 1;
	code = word_at(bytes, chain_offset(c, PYTHON_FRAME_CODE)) & ~7ull; /* 3.14: the low bits are tags */
	at = word_at(bytes, chain_offset(c, PYTHON_FRAME_PLACE));
	owner = bytes[masked(chain_offset(c, PYTHON_FRAME_OWNER), CHAIN_NEIGHBOUR_BYTES - 1)];
	witness = word_at(bytes, chain_offset(c, PYTHON_FRAME_WITNESS));
	w->end = CHAIN_END_TORN;
	if (w->state.style >= PYTHON_CFRAME_ENTRY) {
		at -= code;
		if (owner > PYTHON_OWNER_MAX)
			return 1;
		ends = w->state.style == PYTHON_CFRAME_ENTRY
			       ? bytes[masked(chain_offset(c, PYTHON_FRAME_ENTRY), CHAIN_NEIGHBOUR_BYTES - 1)]
			       : 0;
	}
	if (w->state.style >= PYTHON_CFRAME_SHIM && owner >= PYTHON_OWNER_SHIM) {
		w->end = CHAIN_END_DEPTH;
		if (end_segment(c, w->frame))
			return 1;
	} else if (find_copy(c, bytes, code, &at) || add_frame(c, code, at, witness, ends)) {
		return 1;
	}
	w->frame = word_at(bytes, chain_offset(c, PYTHON_FRAME_PREVIOUS));
	return 0;
}

CHAIN_PROGRAMS(python, RUNTIME_PYTHON, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
