/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heaps of Go programs, by the samples that they take themselves (agent/runtime/code/go_heap.h): what was allocated
 * since the last report, and what is in use, by stack. Nothing is changed in the programs; a process's list is read at each
 * report. Numbers are scaled as Go's own profiles are, and what is in use is that of the last garbage collection, as theirs.
 * Agent's thread.
 */
#ifndef HEARTH_AGENT_HEAP_HEAPS_H
#define HEARTH_AGENT_HEAP_HEAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/feed.h"

struct heaps;
struct metrics;

/* The place in the session of the first of the kinds of heaps; the others follow in this order. */
enum heap_kind { HEAP_ALLOC_OBJECTS, HEAP_ALLOC_SPACE, HEAP_INUSE_OBJECTS, HEAP_INUSE_SPACE, HEAP_KINDS };

/* @in is borrowed. @only_sampled: only processes that had a sample, or are chosen by pid, as there are filters. @at_end:
 * what is in use is told once of each program, when it ends or sampling does. 0 or -ENOMEM. */
int heaps_new(struct intake *in, uint32_t first_kind, bool only_sampled, bool at_end, struct metrics *metrics,
	      struct heaps **ret);
/* To be called before processes are freed. Accepts NULL. */
void heaps_free(struct heaps *h);

/* Reads all heaps; adds what was allocated since the last time, and what is in use now, as samples. */
enum heaps_moment {
	HEAPS_BEGIN, /* sampling begins: nothing is added, as it was allocated before */
	HEAPS_GO_ON,
	HEAPS_END, /* sampling ends */
};
void heaps_read(struct heaps *h, enum heaps_moment moment);

#endif
