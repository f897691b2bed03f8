/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place where samples and side-band records wait for each other: both carry CLOCK_MONOTONIC, and are let out in the
 * order of their times once everything older must have been read. Puts the stack chunks of a sample together.
 */
#ifndef HEARTH_AGENT_SAMPLES_REORDER_H
#define HEARTH_AGENT_SAMPLES_REORDER_H

#include <stdint.h>

#include "agent/samples/record.h"
#include "agent/kernel/side_band.h"
#include "bpf/event.h"

/* A run of copied stack without a gap. A stack has several where pages in it were never touched, and where the thread went
 * from one stack to another. */
struct stack_area {
	uint64_t addr;
	uint64_t bytes;
	const uint8_t *data;
};

/* The area that holds the @bytes at @addr, or NULL. */
const struct stack_area *stack_area_find(const struct stack_area *areas, uint32_t area_cnt, uint64_t addr, uint32_t bytes);

/* The area that holds the 8 bytes at @addr, else the next one above; NULL: there is none. */
const struct stack_area *stack_area_from(const struct stack_area *areas, uint32_t area_cnt, uint64_t addr);

struct pending;

/* Bytes of memory by process, about: pids that are equal modulo its size share a sum. */
struct process_bytes {
	size_t sums[1024];
};

static inline size_t *process_bytes(struct process_bytes *b, uint32_t pid)
{
	return &b->sums[pid % (sizeof(b->sums) / sizeof(*b->sums))];
}

/* @cpus: how many CPUs there may be. */
int pending_new(uint32_t cpus, struct pending **ret);
void pending_free(struct pending *p);

/* Adds a record of a ring (copied). 0; -ENOMEM when a sample was lost by it; -EBADMSG when the record makes no sense. */
int pending_add(struct pending *p, const struct record *record);

/* Adds a side-band record (owned from here on, also on -ENOMEM). */
int pending_add_side_band(struct pending *p, struct side_band_record *record);

struct pending_ops {
	void (*object)(void *arg, const struct object_record *object);
	/* True: not now; it and everything behind it stay. */
	bool (*sample)(void *arg, const struct pending_sample *sample);
	void (*side_band)(void *arg, const struct side_band_record *record);
};

/* Hands out everything older than @before_ns in the order of time, side band before samples of the same instant,
 * else as they came. */
void pending_release(struct pending *p, uint64_t before_ns, const struct pending_ops *ops, void *arg);

uint32_t pending_samples(const struct pending *p);
/* Bytes of memory held: samples with their copied stacks, and records. */
size_t pending_memory_bytes(const struct pending *p);

bool pending_is_empty(const struct pending *p);

/* Sections of samples that were passed over, as nobody knows their types. */
uint64_t pending_unknown_sections(const struct pending *p);

/* The memory that samples and chunks take; of all processes, and of one (and of others, seldom: see struct process_bytes).
 */
size_t pending_bytes(const struct pending *p);
size_t pending_bytes_of(const struct pending *p, uint32_t pid);

#endif
