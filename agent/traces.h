/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one report interval: stacks stored once, events as small records. A stack's frames are resolved to (file,
 * ELF address) when it is first seen, while the process's mappings are those of the sample's moment.
 */
#ifndef HEARTH_AGENT_TRACES_H
#define HEARTH_AGENT_TRACES_H

#include <stdint.h>

#include "agent/processes.h"
#include "bpf/event.h"

enum frame_kind { FRAME_KERNEL, FRAME_NATIVE, FRAME_ANONYMOUS };

/* What a frame is: interned by its bytes. */
struct trace_frame {
	struct file *file;	 /* FRAME_NATIVE: held until traces_reset */
	struct process *process; /* FRAME_ANONYMOUS: whose code it is; held by the events of its stacks */
	uint64_t addr;		 /* ELF address (NATIVE) or plain address; of return addresses already minus 1 */
	uint64_t kernel_code;	 /* FRAME_KERNEL: see kernel_names_code() */
	uint32_t kind;
	uint32_t pad;
};

struct trace {
	uint32_t first_frame; /* index into the list of frame ids */
	uint32_t frame_cnt;   /* innermost first, kernel frames before user frames */
	uint32_t kernel_cnt;
	enum walk_end end;
	bool has_anonymous; /* a frame of FRAME_ANONYMOUS */
};

struct trace_event {
	struct process *process; /* a reference */
	uint64_t time_ns;	 /* CLOCK_MONOTONIC */
	uint32_t trace;
	uint32_t tid;
	uint32_t cpu;
	char comm[COMM_BYTES];
};

struct kernel_names;
struct traces;

/* @kernel (borrowed, may be NULL) knows what code the kernel made. */
int traces_new(const struct kernel_names *kernel, struct traces **ret);
void traces_free(struct traces *t);

/* One sample: kernel frames as sampled, user frames with FRAME_EXACT. 0 or -ENOMEM (the sample is lost then). */
int traces_add(struct traces *t, struct process *process, const struct sample_record *sample, const uint64_t *kernel,
	       uint32_t kernel_cnt, const uint64_t *user, uint32_t user_cnt, enum walk_end end);

/* The innermost user frame of the sample added last; NULL: it has none. */
const struct trace_frame *traces_last_user_frame(const struct traces *t);

uint32_t traces_event_count(const struct traces *t);
const struct trace_event *traces_events(const struct traces *t);
uint32_t traces_count(const struct traces *t);
/* Has the sample that was added last a frame of FRAME_ANONYMOUS? */
bool traces_last_has_anonymous(const struct traces *t);
const struct trace *traces_get(const struct traces *t, uint32_t trace);
const uint32_t *traces_frame_ids(const struct traces *t, const struct trace *trace);
uint32_t traces_frame_count(const struct traces *t);
const struct trace_frame *traces_frame(const struct traces *t, uint32_t frame);

/* Bytes of memory held. */
size_t traces_memory_bytes(const struct traces *t);

/* Starts the next interval empty, and without the room of one that was much busier. */
void traces_reset(struct traces *t);

#endif
