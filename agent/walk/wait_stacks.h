/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of threads that were off their CPUs. One that has come back was interrupted before it did anything, so its kernel
 * stack has the frames of that interrupt on top. One that is still asleep has its stack in its memory, where it is read
 * from; a stack that was found so is kept as long as the thread sleeps on. Agent's thread.
 */
#ifndef HEARTH_AGENT_WALK_WAIT_STACKS_H
#define HEARTH_AGENT_WALK_WAIT_STACKS_H

#include <stdbool.h>

#include "agent/samples/reorder.h"

struct metrics;
struct wait_stacks;

int wait_stacks_new(struct metrics *metrics, struct wait_stacks **ret);
void wait_stacks_free(struct wait_stacks *w);
size_t wait_stacks_memory_bytes(const struct wait_stacks *w);

/*
 * Takes off @s, of a wait or of a waker, what is not to be told as it stands. Of a wait: the frames of the interrupt on its
 * kernel stack, and the scheduler's, which the kernel does not tell of threads asleep either, so the innermost frame is
 * where the thread waits. Of a waker: the frames of the interrupt that came for it.
 */
void wait_stacks_mend(struct pending_sample *s);

/* The user part of a stack, as a walk found it. */
struct wait_stack {
	uint64_t since_ns; /* the thread is off its CPU since then */
	uint32_t asid;
	uint32_t turn; /* of wait_stacks_begin(), in which it was last found */
	enum walk_end end;
	uint32_t count;
	uint64_t frames[];
};

/* Threads asleep are told from now on: forgets those that were not told since the last time. */
void wait_stacks_begin(struct wait_stacks *w);

/* The stack of the thread of @s, which sleeps, if it was kept in the address space @asid; else NULL. */
const struct wait_stack *wait_stacks_find(struct wait_stacks *w, const struct pending_sample *s, uint32_t asid);
void wait_stacks_keep(struct wait_stacks *w, const struct pending_sample *s, uint32_t asid, const uint64_t *frames,
		      uint32_t count, enum walk_end end);

/*
 * A copy of the sample @from, of a thread that sleeps, with its stack as memory: a few pages of it, or with @more as many as
 * a stack is ever copied.
 */
struct asleep_sample {
	struct pending_sample sample;
	struct sample_record record;
	struct stack_area area;
};

/* Returns false where the thread does not sleep any more, so that what was read may be of something later. @ret is valid
 * until the next call. */
bool wait_stacks_read(struct wait_stacks *w, const struct pending_sample *from, bool more, struct asleep_sample *ret);

#endif
