/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perl's frames. Each stack of contexts (PERL_SI) has an array of them: blocks, loops, subs, evals; callback after callback
 * links a new stack to the one before. A frame's place is its line: of the innermost the current statement's, of the others
 * that of the statement that the context inside noted. A native frame of the loop (Perl_runops_standard) begins with a sub
 * or eval without an operator to return to, the block of a sort, an eval that must catch errors itself (docatch()), or the
 * main program; it gets a marker.
 */
#include "bpf/runtime/chain.bpf.h"
#include "bpf/runtime/perl_state.h"

/* chain_work.own; chain_work.segment is the address of the array of contexts */
enum perl_work {
	PERL_AT_THREAD,	   /* the interpreter */
	PERL_AT_COP,	   /* the statement of the next frame */
	PERL_AT_INDEX,	   /* of the context; below 0: the stack has no more */
	PERL_AT_SUB_INDEX, /* of the innermost complete sub or eval */
	PERL_AT_PREVIOUS,  /* the stack outside */
	PERL_AT_STACK_TYPE,
	PERL_AT_IS_EMPTY, /* this stack has no context */
	PERL_AT_MARKER,	  /* index of the last marker; 0: none */
	PERL_AT_CATCHER,  /* index of the marker of an eval that seems to catch errors itself; 0: none */
	PERL_AT_CATCHER_ENV,
	PERL_AT_CATCHER_OUTSIDE, /* the JMPENV outside its own */
	PERL_AT_BEHIND,		 /* the context before began a loop */
	PERL_AT_NO_MAIN,	 /* an eval was begun while nothing ran */
	PERL_AT_YOUNG, /* index of the innermost frame, where its sub has not come to a statement of its own; 0: none */
	PERL_AT_YOUNG_CV,
	PERL_AT_FRAMES,
};

static __always_inline __u64 *own(struct chain *c, enum perl_work which)
{
	return &c->work->own[which];
}

/* --- objects --- */

/* Reads the text at @addr into work->data. Returns its bytes without the zero, or 0. */
static __always_inline __u32 read_text(struct chain *c, __u32 at, __u64 addr)
{
	long len = bpf_probe_read_user_str(c->work->data + masked(at, OBJECT_DATA_BYTES - 1), PERL_FILE_BYTES, (void *)addr);

	return len > 1 ? masked(len - 1, PERL_FILE_BYTES - 1) : 0;
}

/* Adds the key (HEK) at @addr as part @part. */
static __always_inline __u32 key_part(struct chain *c, __u32 part, __u32 at, __u64 addr)
{
	__u32 bytes;

	if (!addr || bpf_probe_read_user(&bytes, sizeof(bytes), (void *)(addr + PERL_KEY_BYTES))) {
		c->work->object.is_cut |= 1 << part;
		return at;
	}
	return object_part(c, part, at, addr + PERL_KEY_TEXT, (__u64)bytes + 2, 511);
}

/* The name (HEK) of a package's stash; 0: none. */
static __always_inline __u64 stash_name(__u64 stash)
{
	__u64 body, names[4];

	if (!stash || read_word(stash, &body) || bpf_probe_read_user(names, sizeof(names), (void *)(body + PERL_STASH_NAME)))
		return 0;
	if (names[3] >> 32 && read_word(names[0], &names[0])) /* it has several: the first */
		return 0;
	return names[0];
}

/* Name and stash of the glob @glob, or of the one that it stands for. 0, or 1: it is none. */
static __always_inline int read_glob(__u64 glob, __u64 *name, __u64 *stash)
{
	__u64 head[3], other;

	if (bpf_probe_read_user(head, sizeof(head), (void *)glob) || (head[1] >> 32 & 255) != PERL_TYPE_GLOB)
		return 1;
	if (!read_word(head[2] + PERL_GLOB_EFFECTIVE, &other) && other && other != glob) {
		__u64 effective;

		if (!read_word(other, &effective))
			head[0] = effective;
	}
	return read_word(head[0] + PERL_GLOB_NAME, name) || read_word(head[0] + PERL_GLOB_STASH, stash);
}

/*
 * Looks at the CV at @cv. 0, or 1: no sub is there. The check mixes its pointers with the number of the place where it was
 * compiled, which no two places have.
 */
static __always_inline int read_sub(__u64 cv, __u64 *body, __u32 *check)
{
	__u64 head[2], sum = 0;
	__u32 type;

	if (bpf_probe_read_user(head, sizeof(head), (void *)cv))
		return 1;
	type = head[1] >> 32 & 255;
	if ((type != PERL_TYPE_CODE && type != PERL_TYPE_FORMAT) ||
	    bpf_probe_read_user(body, PERL_CODE_BYTES, (void *)(head[0] + PERL_CODE_STASH)))
		return 1;
#pragma GCC unroll 5
	for (int i = 0; i < 5; i++)
		sum = mix(sum, body[i]);
	*check = mix(sum, (__u32)body[7]) >> 32;
	return 0;
}

/* Copies what the sub at @cv, which is at @line, is called, unless it was sent before, and tells its check. @sent is its
 * entry. 1: no sub is there. */
static __always_inline int tell_sub(struct chain *c, struct sent_object *sent, __u64 cv, __u32 line, __u32 *check)
{
	__u64 body[PERL_CODE_BYTES / 8], name = 0,
					 stash = 0; /* stash, start, root, gv, file, padlist, outside, number and flags */
	__u32 at, bytes;

	if (read_sub(cv, body, check))
		return 1;
	if (is_sent(c, sent, cv, line, *check) || !has_object_tokens(c))
		return 0;
	if (body[7] >> 32 & PERL_CODE_NAMED) {
		stash = body[0];
		name = body[3];
	} else if (body[3] && read_glob(body[3], &name, &stash)) {
		return 1;
	}
	object_begin(c, cv);
	at = key_part(c, PERL_PART_NAME, 0, name);
	at = key_part(c, PERL_PART_PACKAGE, at, stash_name(stash));
	bytes = read_text(c, at, body[4]);
	c->work->object.part_bytes[PERL_PART_FILE] = bytes;
	object_send(c, sent, line, RUNTIME_PERL, *check, at + bytes);
	return 0;
}

/* Sends an object whose file's name, of @bytes, stands in work->data. */
static __always_inline void send_file(struct chain *c, __u64 addr, __u32 bytes)
{
	struct sent_object *sent = find_sent(c, addr);

	if (!sent || is_sent(c, sent, addr, 0, 0) || !has_object_tokens(c))
		return;
	object_begin(c, addr);
	c->work->object.part_bytes[PERL_PART_FILE] = bytes;
	object_send(c, sent, 0, RUNTIME_PERL, 0, bytes);
}

/* The object of code of the kind @frame in the file whose name is at @file; its address is a hash of the name. */
static __always_inline __u64 tell_eval(struct chain *c, enum perl_frame frame, __u64 file)
{
	__u32 bytes = read_text(c, 0, file);
	__u64 sum = bytes, addr;

#pragma GCC unroll 32
	for (__u32 i = 0; i < PERL_FILE_BYTES / 8; i++) {
		__u64 word = *(const __u64 *)(c->work->data + i * 8);

		if (i * 8 >= bytes)
			break;
		if (bytes - i * 8 < 8)
			word &= (1ull << (bytes - i * 8) * 8) - 1;
		sum = mix(sum, word);
	}
	addr = PERL_OBJECT(frame, sum ^ sum >> 20);
	send_file(c, addr, bytes);
	return addr;
}

/* The object of the main program. */
static __always_inline __u64 tell_main(struct chain *c)
{
	__u64 thread = *own(c, PERL_AT_THREAD), addr = PERL_OBJECT(PERL_FRAME_MAIN, thread), file;

	if (!read_word(thread + chain_offset(c, PERL_FILE), &file))
		send_file(c, addr, read_text(c, 0, file));
	return addr;
}

/* --- frames --- */

/* The name of a file that has the glob @glob; 0: there is none. */
static __always_inline __u64 file_of_glob(__u64 glob)
{
	__u64 body, name;

	if (!glob || read_word(glob, &body) || read_word(body + PERL_GLOB_NAME, &name) || !name)
		return 0;
	return name + PERL_KEY_TEXT + 2; /* behind "_<" */
}

/* Line and file of the statement @cop. 0, or 1: it cannot be read. */
static __always_inline int read_cop(struct chain *c, __u64 cop, __u32 *line, __u64 *file)
{
	__u64 words[3]; /* cop_seq or flags and cop_line, cop_stashoff, cop_file */

	if (bpf_probe_read_user(words, sizeof(words), (void *)(cop + PERL_COP_LINE - 4)))
		return 1;
	*line = words[0] >> 32;
	*file = chain_offset(c, PERL_GLOBALS) ? file_of_glob(words[2]) : words[2];
	return 0;
}

/*
 * The line of the statement @cop of the sub @cv, and that one's check; its object is sent, unless it was. Both stay as they
 * are while they live, so what the context at @at was found to be is believed as functions' objects are. 0; 1 with the end
 * set.
 */
static __always_inline int look_up(struct chain *c, __u64 at, __u64 cop, __u64 cv, __u32 *line, __u32 *check)
{
	struct believed *believed = believed_at(c, at);
	struct sent_object *sent;
	__u64 file;

	*line = believed->line;
	*check = believed->check;
	if (is_believed(c, believed, cv, cop))
		return 0;
	c->work->end = CHAIN_END_BAD_MEMORY;
	if (read_cop(c, cop, line, &file))
		return 1;
	c->work->end = CHAIN_END_TORN;
	sent = find_sent(c, cv);
	if (!sent)
		return 1;
	*check = sent->check;
	if (is_sent_now(c, sent, cv, *line)) {
		believe(c, believed, sent, cv, cop, *line);
		return 0;
	}
	return tell_sub(c, sent, cv, *line, check);
}

/*
 * The innermost sub, where the statement is its caller's still (or again), gets the line of its first one. @addr is the next
 * frame's object: where that is the same sub, the statement may well be of both.
 */
static __always_inline void correct_young(struct chain *c, __u64 addr)
{
	__u64 at = *own(c, PERL_AT_YOUNG), cv = *own(c, PERL_AT_YOUNG_CV), body, start, type, file, *place;
	__u32 line;

	if (!at)
		return;
	*own(c, PERL_AT_YOUNG) = 0;
	if (addr == cv)
		return;
	if (read_word(cv, &body) || read_word(body + PERL_CODE_START, &start) || read_word(start + PERL_OP_TYPE, &type) ||
	    (type & 511) != chain_offset(c, PERL_OP_NEXTSTATE) || read_cop(c, start, &line, &file))
		line = 0;
	place = &c->scratch->words[word_index(at + 1)];
	*place = CHAIN_PLACE(line, CHAIN_CHECK(*place));
}

static __always_inline int add_frame(struct chain *c, __u64 addr, __u32 line, __u32 check)
{
	correct_young(c, addr);
	*own(c, PERL_AT_FRAMES) += 1;
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_FRAME, addr), CHAIN_PLACE(line, check));
}

/* A loop began with the frames before. */
static __always_inline int add_marker(struct chain *c)
{
	*own(c, PERL_AT_MARKER) = c->work->at;
	c->work->end = CHAIN_END_DEPTH;
	return chain_add(c, CHAIN_WORD(CHAIN_MARKER, 0), 0);
}

/* Makes the marker at @at one that says nothing. */
static __always_inline void drop_marker(struct chain *c, __u64 at)
{
	c->scratch->words[word_index(at)] = 0;
}

/* A sub or format. 1, with the end set, when the chain ends. */
static __always_inline int add_sub(struct chain *c, const __u8 *bytes)
{
	__u64 cv = word_at(bytes, PERL_CONTEXT_CV), caller = word_at(bytes, PERL_CONTEXT_COP), cop = *own(c, PERL_AT_COP);
	__u64 returns = word_at(bytes, PERL_CONTEXT_RETURN);
	struct chain_work *w = c->work;
	__u64 at = w->at;
	__u32 line, check;

	if ((*bytes & PERL_KIND_MASK) == PERL_SUB && *bytes & PERL_SUB_FAKE)
		return !returns && add_marker(c);
	*own(c, PERL_AT_COP) = caller;
	if (cv) { /* else it is about to end */
		if (look_up(c, w->segment + (__s64)*own(c, PERL_AT_INDEX) * PERL_CONTEXT_BYTES, cop, cv, &line, &check) ||
		    add_frame(c, cv, line, check))
			return 1;
		if (cop == caller && *own(c, PERL_AT_FRAMES) == 1) {
			*own(c, PERL_AT_YOUNG) = at;
			*own(c, PERL_AT_YOUNG_CV) = cv;
		}
	}
	return !returns && add_marker(c);
}

/*
 * Errors in an eval go to the innermost JMPENV. Where that is of C code that must not be jumped over (je_mustcatch), the
 * eval makes one of its own and runs a loop. Others inside have the same JMPENV: the outermost of these is it. C code that
 * catches errors has begun a JMPENV, too, but then the loop has begun with its sub; see check_catcher().
 */
static __always_inline int find_catcher(struct chain *c, __u64 env)
{
	__u64 start = *own(c, PERL_AT_THREAD) + chain_offset(c, PERL_START_ENV), outside;
	__u8 catches;

	if (env == start)
		*own(c, PERL_AT_NO_MAIN) = 1;
	if (read_word(env, &outside) || !outside || outside == start ||
	    bpf_probe_read_user(&catches, 1, (void *)(outside + chain_offset(c, PERL_ENV_CATCHES))) || !catches)
		return 0;
	if (*own(c, PERL_AT_CATCHER) && *own(c, PERL_AT_CATCHER_ENV) == env)
		drop_marker(c, *own(c, PERL_AT_CATCHER));
	*own(c, PERL_AT_CATCHER) = c->work->at;
	*own(c, PERL_AT_CATCHER_ENV) = env;
	*own(c, PERL_AT_CATCHER_OUTSIDE) = outside;
	return add_marker(c);
}

/* Behind the beginning of a loop: C code that catches errors has put an eval there, whose JMPENV is the one outside its own.
 */
static __always_inline void check_catcher(struct chain *c, const __u8 *bytes)
{
	if (!*own(c, PERL_AT_BEHIND))
		return;
	if ((*bytes & PERL_KIND_MASK) == PERL_EVAL && *bytes & PERL_EVAL_BLOCK && !word_at(bytes, PERL_CONTEXT_RETURN) &&
	    *own(c, PERL_AT_CATCHER) && *own(c, PERL_AT_CATCHER_OUTSIDE) == word_at(bytes, PERL_CONTEXT_ENV))
		drop_marker(c, *own(c, PERL_AT_CATCHER));
	*own(c, PERL_AT_CATCHER) = 0;
	*own(c, PERL_AT_BEHIND) = 0;
}

static __always_inline int add_eval(struct chain *c, const __u8 *bytes)
{
	__u64 caller = word_at(bytes, PERL_CONTEXT_COP), returns = word_at(bytes, PERL_CONTEXT_RETURN);
	__u64 env = word_at(bytes, PERL_CONTEXT_ENV), cop = *own(c, PERL_AT_COP), file;
	__u32 op = *(const __u16 *)(bytes + PERL_CONTEXT_WORD) >> 7, line;
	enum perl_frame frame = PERL_FRAME_BLOCK;
	bool is_block = *bytes & PERL_EVAL_BLOCK;

	if (!is_block)
		frame = op == chain_offset(c, PERL_OP_REQUIRE) || op == chain_offset(c, PERL_OP_DOFILE) ? PERL_FRAME_FILE
													: PERL_FRAME_TEXT;
	*own(c, PERL_AT_COP) = caller;
	c->work->end = CHAIN_END_BAD_MEMORY;
	/* A text or file that has not come to a statement of its own, or is at its end, has no name yet. */
	if ((is_block || cop != caller) &&
	    (read_cop(c, cop, &line, &file) || add_frame(c, tell_eval(c, frame, file), line, 0)))
		return 1;
	if (!is_block && !returns)
		return add_marker(c);
	return find_catcher(c, env);
}

/*
 * A context that is not yet, or no longer, that of a sub. Where a sub is about to end, the statement is still its own, and
 * its caller's is the one that the context noted.
 */
static __always_inline void pass_unfinished(struct chain *c, const __u8 *bytes)
{
	__u64 op, type;

	if (read_word(*own(c, PERL_AT_THREAD) + chain_offset(c, PERL_OP), &op) || read_word(op + PERL_OP_TYPE, &type))
		return;
	type = (type & 511) - chain_offset(c, PERL_OP_ENTERSUB);
	if (type == 1 || type == 2 || type + chain_offset(c, PERL_OP_ENTERSUB) == chain_offset(c, PERL_OP_RETURN))
		*own(c, PERL_AT_COP) = word_at(bytes, PERL_CONTEXT_COP);
}

/* Adds what the context of a sub or eval stands for, and finds the next such one. 1, with the end set, when the chain ends.
 */
static __always_inline int visit(struct chain *c, const __u8 *bytes)
{
	__s64 index = *own(c, PERL_AT_INDEX), outside = *(const __s32 *)(bytes + PERL_CONTEXT_SUB_INDEX);
	__u64 marker = *own(c, PERL_AT_MARKER);
	__u32 kind = *bytes & PERL_KIND_MASK;
	int ends;

	check_catcher(c, bytes);
	c->work->end = CHAIN_END_TORN;
	if (kind < PERL_SUB || kind > PERL_EVAL || outside >= index || outside < -1)
		return 1;
	*own(c, PERL_AT_SUB_INDEX) = outside;
	ends = kind == PERL_EVAL ? add_eval(c, bytes) : add_sub(c, bytes);
	if (kind != PERL_EVAL && *own(c, PERL_AT_MARKER) != marker)
		*own(c, PERL_AT_BEHIND) = 1;
	return ends;
}

/* --- stacks of contexts --- */

/* Goes to the innermost context of the stack @si. 1, with the end set: it cannot be read. */
static __always_inline int enter_stack(struct chain *c, __u64 si)
{
	__u64 words[PERL_SI_BYTES / 8];
	__s32 index, max, subs;

	c->work->end = CHAIN_END_BAD_MEMORY;
	if (!si || bpf_probe_read_user(words, sizeof(words), (void *)si))
		return 1;
	index = words[PERL_SI_INDEX / 8];
	max = words[PERL_SI_INDEX / 8] >> 32;
	subs = words[PERL_SI_SUB_INDEX / 8];
	c->work->end = CHAIN_END_TORN;
	if (index < -1 || index > max || max > 1 << 24 || subs < -1 || subs > index)
		return 1;
	*own(c, PERL_AT_INDEX) = (__s64)index;
	*own(c, PERL_AT_SUB_INDEX) = (__s64)subs;
	*own(c, PERL_AT_STACK_TYPE) = words[PERL_SI_TYPE / 8] >> 32;
	*own(c, PERL_AT_PREVIOUS) = words[PERL_SI_PREVIOUS / 8];
	*own(c, PERL_AT_IS_EMPTY) = index < 0;
	c->work->segment = words[PERL_SI_CONTEXTS / 8];
	return 0;
}

/*
 * The chain's end. The main program has a loop of its own while the interpreter is in that phase. Before, behind and in
 * other threads the outermost loop was begun by C code: its segment takes the frames that are left.
 */
static __always_inline void add_main(struct chain *c)
{
	__u64 thread = *own(c, PERL_AT_THREAD), main_thread, phase, env, file, marker = *own(c, PERL_AT_MARKER);
	bool is_main, runs;
	__u32 line;

	c->work->end = CHAIN_END_BAD_MEMORY;
	main_thread = thread;
	if ((!chain_offset(c, PERL_GLOBALS) && read_word(c->work->state.type, &main_thread)) ||
	    read_word(thread + chain_offset(c, PERL_PHASE), &phase) ||
	    read_word(thread + chain_offset(c, PERL_TOP_ENV), &env))
		return;
	is_main = thread == main_thread && env != thread + chain_offset(c, PERL_START_ENV) && !*own(c, PERL_AT_NO_MAIN);
	runs = is_main && (__u32)phase == PERL_PHASE_RUNS;
	if (runs || marker) {
		if (!runs)
			drop_marker(c, marker);
		if (is_main && (read_cop(c, *own(c, PERL_AT_COP), &line, &file) || add_frame(c, tell_main(c), line, 0)))
			return;
		if (add_marker(c))
			return;
	}
	c->work->end = CHAIN_END_ROOT;
}

/* Goes to the stack outside. 1, with the end set, when the chain ends. */
static __always_inline int leave_stack(struct chain *c)
{
	__u64 previous = *own(c, PERL_AT_PREVIOUS);
	__u8 bottom;

	if (!previous) {
		add_main(c);
		return 1;
	}
	if (*own(c, PERL_AT_STACK_TYPE) == PERL_SI_SORT && !*own(c, PERL_AT_IS_EMPTY)) {
		c->work->end = CHAIN_END_BAD_MEMORY;
		if (bpf_probe_read_user(&bottom, 1, (void *)c->work->segment))
			return 1;
		if ((bottom & PERL_KIND_MASK) == PERL_NULL && add_marker(c)) /* else it has a sub */
			return 1;
	}
	*own(c, PERL_AT_CATCHER) = *own(c, PERL_AT_BEHIND) = 0;
	return enter_stack(c, previous);
}

/* Finds the first context. 0, or 1: there is none. */
static __always_inline int first_frame(struct chain *c)
{
	__u64 thread, si;

	if (!chain_offset(c, PERL_GLOBALS)) {
		if (find_thread(c, &thread))
			return 1;
	} else {
		if (c->scratch->sample.pid != c->scratch->sample.tid) /* it is the first thread that runs Perl */
			return 1;
		thread = c->work->state.thread.addr;
	}
	__builtin_memset(c->work->own, 0, sizeof(c->work->own));
	*own(c, PERL_AT_THREAD) = thread;
	c->work->end = CHAIN_END_BAD_MEMORY;
	if (read_word(thread + chain_offset(c, PERL_COP), own(c, PERL_AT_COP)) ||
	    read_word(thread + chain_offset(c, PERL_STACK), &si))
		return 1;
	return enter_stack(c, si);
}

/*
 * Looks at a context and goes to the next one of a sub or eval. The innermost of all may be of a block, or a sub's that is
 * not among the subs. Returns 1, with the end set, when the chain ends.
 */
static __always_inline int frame_step(struct chain *c)
{
	__s64 index = *own(c, PERL_AT_INDEX);
	const __u8 *bytes;

	if (index < 0)
		return leave_stack(c);
	c->work->end = CHAIN_END_BAD_MEMORY;
	bytes = chain_read(c, c->work->segment + index * PERL_CONTEXT_BYTES, PERL_CONTEXT_BYTES);
	if (!bytes)
		return 1;
	if (index == (__s64)*own(c, PERL_AT_SUB_INDEX)) {
		if (visit(c, bytes))
			return 1;
	} else if ((*bytes & PERL_KIND_MASK) == PERL_SUB) {
		pass_unfinished(c, bytes);
	}
	c->work->end = CHAIN_END_DEPTH;
	*own(c, PERL_AT_INDEX) = *own(c, PERL_AT_SUB_INDEX);
	return 0;
}

CHAIN_PROGRAMS(perl, RUNTIME_PERL, first_frame, frame_step)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
