/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late unwinding: the walk of a sample that missed a cache, from frame 0, over the registers and the stack it carried; it
 * fills the kernel's caches with the entries that the walk needed, so that the next such stack is walked in the kernel.
 */
#ifndef HEARTH_AGENT_WALK_LATE_WALK_H
#define HEARTH_AGENT_WALK_LATE_WALK_H

#include <stdint.h>

#include "agent/samples/reorder.h"
#include "agent/process/processes.h"

struct code_spaces;
struct late;
struct metrics;
struct sampler;

struct late_result {
	uint64_t frames[MAX_USER_FRAMES];     /* innermost first, with FRAME_EXACT */
	uint64_t sps[MAX_USER_FRAMES];	      /* their stack pointers; UINT64_MAX: not known */
	uint64_t captures[MAX_CAPTURE_WORDS]; /* as of SECTION_CAPTURES */
	uint32_t capture_cnt;
	uint32_t count;
	enum walk_end end;
	bool is_unfinished; /* a file is still being read: walk it again later */
};

/* @code may be NULL: generated code is walked by frame pointers. All but @ret are borrowed. 0 or -ENOMEM. */
int late_new(struct processes *processes, struct files *files, struct code_spaces *code, struct sampler *sampler,
	     struct metrics *metrics, struct late **ret);
void late_free(struct late *l);

/* Walks @sample (with regs) in @process. The result is valid until the next call. */
const struct late_result *late_walk(struct late *l, struct process *process, const struct pending_sample *sample);

#endif
