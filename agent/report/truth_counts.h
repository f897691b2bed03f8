/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells in the metrics how true the stacks are, by executable and by module: how their walks ended, and how many of their
 * frames have no name. A module's stacks are those whose walk ended in the module.
 *
 * The labels are bounded: the worst TRUTH_SHOWN executables and modules have series of their own (most truncated stacks,
 * then most unnamed frames), the others are summed under the label TRUTH_OTHER. No series ever falls: a series that loses
 * its place ends, and its count goes on in TRUTH_OTHER. So the sum over the labels is exact. Agent's thread.
 */
#ifndef HEARTH_AGENT_REPORT_TRUTH_COUNTS_H
#define HEARTH_AGENT_REPORT_TRUTH_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/samples/traces.h"
#include "proto/profiles.h"

enum { TRUTH_SHOWN = 20 };

#define TRUTH_OTHER "[other]"

struct metrics;
struct truth_counts;

int truth_counts_new(struct metrics *metrics, struct truth_counts **ret);
void truth_counts_free(struct truth_counts *c);

/* Bytes of memory held, without the series. */
size_t truth_counts_memory_bytes(const struct truth_counts *c);

/* The caller's facts about each frame of the traces. */
struct truth_frame {
	uint32_t module; /* truth_counts_module() of this interval */
	bool is_named;
};

/* The counts that a stack adds to its subjects; filled and used by truth_counts_add. */
struct truth_stack {
	uint32_t events;
	uint32_t frames, unnamed; /* user frames */
};

/* The number of the module called @name, good until the next truth_counts_add. */
uint32_t truth_counts_module(struct truth_counts *c, struct str name);

/* Adds the stacks of @t. @frames is parallel to its frames, @stacks to its stacks, and zeroed. */
void truth_counts_add(struct truth_counts *c, const struct traces *t, const struct truth_frame *frames,
		      struct truth_stack *stacks);

#endif
