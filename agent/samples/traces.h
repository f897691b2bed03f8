/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one report interval: stacks stored once, events as small records. A stack's frames are resolved to (file,
 * ELF address) when it is first seen, while the process's mappings are those of the sample's moment.
 */
#ifndef HEARTH_AGENT_SAMPLES_TRACES_H
#define HEARTH_AGENT_SAMPLES_TRACES_H

#include <stdint.h>

#include "agent/process/processes.h"
#include "agent/samples/frame_kind.h"
#include "agent/samples/record.h"
#include "agent/samples/wakers.h"
#include "bpf/event.h"

/* The identity of a frame, interned by its bytes. */
struct trace_frame {
	struct file *file;	 /* NAMER_FILE: held until traces_reset; else NULL */
	struct process *process; /* NAMER_RUNTIME: whose code it is; held by the events of its stacks */
	struct object *object;	 /* NAMER_OBJECT: held until traces_reset; NULL: it is not known */
	uint64_t addr; /* ELF address (NATIVE), place in the function (SCRIPTED), or plain address; of return addresses
			* already minus 1 */
	uint64_t kernel_code; /* NAMER_KERNEL: see kernel_names_code() */
	uint32_t kind;	      /* enum frame_kind */
	uint32_t pad;
};

struct trace {
	uint32_t first_frame; /* index into the list of frame ids */
	uint32_t frame_cnt;   /* innermost first, kernel frames before user frames */
	uint32_t kernel_cnt;
	enum walk_end end;
	bool asks_runtimes; /* a frame of NAMER_RUNTIME */
	bool has_script;    /* a frame of NAMER_OBJECT */
	bool is_logical;    /* calls that were inlined have frames of their own, behind that of the function they are in */
};

struct trace_event {
	struct process *process; /* a reference */
	uint64_t time_ns;	 /* CLOCK_MONOTONIC */
	uint64_t value;		 /* its weight in the unit of its kind */
	uint32_t kind;		 /* in the session's list of kinds */
	uint32_t trace;
	uint32_t tid;
	uint32_t cpu;
	uint32_t script;	     /* SCRIPT_OUTCOME; 0: the stack has no script */
	uint32_t lock;		     /* enum chain_lock */
	uint32_t wait;		     /* 1 + enum wait_state; 0: the thread was on a CPU */
	uint32_t probe;		     /* 1 + its place in the session's list; 0: it is of no probe */
	uint32_t target;	     /* 1 + number of what it waited for, of traces_target(); 0: not known */
	uint32_t waker;		     /* 1 + number of who ended the wait, in traces_wakers(); 0: it is of none */
	uint32_t first_arg, arg_cnt; /* of traces_args(): the probe's arguments */
	uint32_t context;	     /* 1 + number of its work (traces_context); 0: nothing is known */
	int32_t syscall;	     /* of a wait: the system call that the thread was in; -1: in none */
	char comm[COMM_BYTES];
};

/* The work that a thread said it did. Pointers are valid until traces_reset(). */
struct trace_context {
	const struct process *process; /* of @bytes; not to be looked into where there are none. Held by its events */
	struct span_info span;	       /* all 0: not told */
	const uint64_t *labels;	       /* words of SECTION_LABELS */
	const uint8_t *bytes;	       /* of SECTION_CONTEXT */
	uint32_t label_words, byte_cnt;
};

struct kernel_names;
struct objects;
struct traces;

/* @kernel (borrowed, may be NULL) knows what code the kernel made. */
int traces_new(const struct kernel_names *kernel, struct traces **ret);
/* @objects (borrowed) has the functions of frames of scripts; before, none has such frames. */
void traces_of_objects(struct traces *t, const struct objects *objects);
/* The stacks of one process that are new take at most about so many bytes until traces_reset(); then they are cut, and end
 * so (END_BUDGET). There is no such limit before. */
void traces_limit(struct traces *t, size_t bytes);
void traces_free(struct traces *t);

/* Adds one sample: its kernel frames, and the user frames (with FRAME_EXACT; merged, MAX_MERGED_FRAMES at most) and end of
 * the walk that counts. 0 or -ENOMEM (the sample is lost then). */
int traces_add(struct traces *t, struct process *process, const struct pending_sample *sample, const uint64_t *user,
	       uint32_t user_cnt, enum walk_end end);

/* Notes the SCRIPT_OUTCOME and the enum chain_lock of the sample added last. */
void traces_note_script(struct traces *t, uint32_t outcome, uint32_t lock);

/* Adds a sample of another kind that came with the one added last: the same stack, another value. -ENOMEM. */
int traces_add_more(struct traces *t, uint32_t kind, uint64_t value);

/* Adds a sample of how often the wait happened that was added last. -ENOMEM. */
int traces_add_contentions(struct traces *t, uint32_t kind, uint64_t count);

/* Adds one sample of a waker, as traces_add() does: it becomes an event when the sample of a wait is added that it ended. */
int traces_add_waker(struct traces *t, struct process *process, const struct pending_sample *sample, const uint64_t *user,
		     uint32_t user_cnt, enum walk_end end);

/* Adds a sample of who ended the wait of @sample, which was added last, if that is known, and there is memory. */
void traces_join_waker(struct traces *t, const struct pending_sample *sample);

/* The innermost user frame of the sample added last; NULL: it has none. */
const struct trace_frame *traces_last_user_frame(const struct traces *t);

/* How the walk of the sample added last ended, as it is kept. */
enum walk_end traces_last_end(const struct traces *t);

uint32_t traces_event_count(const struct traces *t);
const struct trace_event *traces_events(const struct traces *t);
/* How many kinds of work threads said they did, and each. */
uint32_t traces_context_count(const struct traces *t);
void traces_context(const struct traces *t, uint32_t context, struct trace_context *ret);
const struct wakers *traces_wakers(const struct traces *t);
/* The name of what an event waited for. */
const char *traces_target(const struct traces *t, uint32_t number);
/* Values of arguments of probes, to which events point. */
const uint64_t *traces_args(const struct traces *t);
uint32_t traces_count(const struct traces *t);
/* Has the sample that was added last a frame of NAMER_RUNTIME? */
bool traces_last_asks_runtimes(const struct traces *t);
const struct trace *traces_get(const struct traces *t, uint32_t trace);
const uint32_t *traces_frame_ids(const struct traces *t, const struct trace *trace);
uint32_t traces_frame_count(const struct traces *t);
const struct trace_frame *traces_frame(const struct traces *t, uint32_t frame);

/* The properties of the kind of @frame. */
static inline const struct frame_kind_info *trace_frame_kind(const struct trace_frame *frame)
{
	return &frame_kinds[frame->kind];
}

/* Bytes of memory held. */
size_t traces_memory_bytes(const struct traces *t);

/* Starts the next interval empty, and without the room of one that was much busier. */
void traces_reset(struct traces *t);

#endif
