/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one stack of the native frames and the chains of runtimes (SECTION_CHAIN). The frames of a segment stand for one
 * native frame of the interpreter's loop, and take its place: the one whose part of the stack, [sp, CFA), holds the
 * segment's marker. All other native frames stay. The same for the kernel's walks and for late ones. No state.
 */
#ifndef HEARTH_AGENT_SAMPLES_MERGE_H
#define HEARTH_AGENT_SAMPLES_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/processes.h"
#include "agent/samples/record.h"

enum { MAX_MERGED_FRAMES = MAX_USER_FRAMES + MAX_CHAIN_WORDS / 2 };

/* A frame of a script among user frames: the object's id, and the place in its function. User addresses do not begin with
 * this byte. */
#define FRAME_SCRIPT		   (1ull << 62)
#define FRAME_OF_SCRIPT(id, place) (FRAME_SCRIPT | (uint64_t)(id) << 32 | (uint32_t)(place))
#define FRAME_IS_SCRIPT(frame)	   ((frame) >> 56 == FRAME_SCRIPT >> 56)
#define FRAME_OBJECT(frame)	   ((uint32_t)((frame) >> 32) & (OBJECT_IDS - 1))
#define FRAME_PLACE(frame)	   ((uint32_t)(frame))

/* How the frames of a script in a stack came out: CHAIN_ENDS, ... */
enum script_end {
	SCRIPT_MISFIT = CHAIN_END_MAX, /* ... or part of them has no place among the native frames */
	SCRIPT_END_MAX,
};

/* The same of a runtime, in one number; 0: the stack has no script. */
#define SCRIPT_OUTCOME(runtime, end)	(1 + (uint32_t)(runtime)*SCRIPT_END_MAX + (uint32_t)(end))
#define SCRIPT_OUTCOME_RUNTIME(outcome) (((outcome)-1) / SCRIPT_END_MAX)
#define SCRIPT_OUTCOME_END(outcome)	(((outcome)-1) % SCRIPT_END_MAX)

struct merged {
	uint64_t frames[MAX_MERGED_FRAMES]; /* innermost first: user addresses with FRAME_EXACT, and frames of scripts */
	uint32_t count;
	uint32_t outcome; /* SCRIPT_OUTCOME of the chain that came out worst */
	uint32_t lock;	  /* enum chain_lock */
};

/* What the chains of one runtime came to. */
struct chain_counts {
	uint64_t frames;	    /* of scripts */
	uint64_t unknown_objects;   /* of these, whose objects are not known (id 0) */
	uint64_t unplaced_segments; /* for which no native frame was found */
	uint64_t malformed_objects; /* copies of objects that made no sense, or for which there was no memory */
	uint64_t ends[CHAIN_END_MAX];
};

/* Merges the chains of @s into the @count native frames @user, whose stack pointers are @sps (UINT64_MAX: not known). Adds
 * to the @counts of each runtime. */
void merge_chains(const struct process *p, const struct pending_sample *s, const uint64_t *user, const uint64_t *sps,
		  uint32_t count, struct chain_counts counts[static RUNTIME_ID_MAX], struct merged *ret);

#endif
