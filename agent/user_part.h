/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user part of a sample's stack: the kernel's walk where it stands, a late walk where it does not, and that of a thread
 * that still sleeps. Agent's thread.
 */
#ifndef HEARTH_AGENT_USER_PART_H
#define HEARTH_AGENT_USER_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/samples/walk_ends.h"

struct intake;
struct pending_sample;
struct process;

/* Frames live as long as the sample, or until the next walk. */
struct user_part {
	const uint64_t *frames, *sps; /* sps: NULL, where the record has them */
	const uint64_t *captures;
	uint32_t count, capture_cnt;
	enum walk_end end;
};

/* Finds the user part of @s, a sample of @p, by a walk if the kernel's does not stand. Returns whether the sample must wait
 * for a file; it comes again, then. */
bool user_part_find(struct intake *in, struct process *p, const struct pending_sample *s, struct user_part *part);

#endif
