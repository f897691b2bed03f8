/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of events: the form in which the store keeps samples. A block holds events of some series, sorted by series, stack
 * and time, so that events of one stack stand together as a run: the runs alone, which are small, answer a flame graph, and
 * are the roll-up that a store would otherwise keep beside its events.
 *
 * A block is several parts, each a blob of its own with columns (backend/store/column.h), and a question inflates only those
 * it needs:
 *   head    the series: number, how many runs, events, cells and minutes it has, its period
 *   stacks  the runs: stack, how many events, what they weigh
 *   cells   each series' sets of labels, and its minutes, with events and weight of each
 *   cpus    of each event
 *   labels  of each event, as the place among its series' cells
 *   weights of each event; empty when all are 1
 *   times   of each event: how many periods after the block's start, and what is left, as the difference from what is usual
 *           on its cpu (timers tick evenly, so this is small)
 *   links   of each event (trace and span); empty when there is none
 *
 * Numbers of series, stacks, sets and links are the store's. Not shared between threads.
 */
#ifndef HEARTH_BACKEND_STORE_BLOCK_H
#define HEARTH_BACKEND_STORE_BLOCK_H

#include <stdbool.h>

#include "backend/store/column.h"
#include "base/clock.h"

enum block_part {
	BLOCK_HEAD,
	BLOCK_STACKS,
	BLOCK_CELLS,
	BLOCK_CPUS,
	BLOCK_LABELS,
	BLOCK_WEIGHTS,
	BLOCK_TIMES,
	BLOCK_LINKS,
	BLOCK_PARTS,
};

struct event {
	uint64_t time_ns; /* Unix */
	int64_t weight;
	uint32_t series;
	uint32_t stack;	 /* node */
	uint32_t labels; /* set without the cpu; 0: none */
	uint32_t cpu;	 /* its number + 1; 0: not said */
	uint32_t link;	 /* 0: none */
	uint32_t period; /* ns of the series, 0: none; at most BLOCK_MAX_PERIOD */
};

enum { BLOCK_LOOK_AHEAD = 64 };

#define BLOCK_MAX_PERIOD 2000000000u /* longer ones are taken for none: they are no timer's */

/* By series, stack, time, cpu, labels. */
void events_sort(struct event *events, size_t count);

/* Packs @count sorted events, 1 to COLUMN_MAX_VALUES, into @parts (appended to). 0 or -ENOMEM. */
int block_pack(struct column_codec *c, const struct event *events, size_t count, struct buf parts[BLOCK_PARTS]);

/* The sum of events of a series that share a stack, a set of labels or a minute. */
struct block_sum {
	uint32_t series, key;
	uint32_t events;
	int64_t weight;
};

struct block_sums {
	const struct block_sum *items;
	size_t count;
};

/* Packs a roll-up: a block of head, stacks and cells alone, of any number of events. The sums have the same series, and in
 * each the same events; sorted by series and key. 0 or -ENOMEM. */
int block_pack_sums(struct column_codec *c, uint64_t from_ns, const struct block_sums *stacks, const struct block_sums *sets,
		    const struct block_sums *minutes, struct buf parts[BLOCK_PARTS]);

/* A block being read. Arrays are the block's own until the next head is read; those of a part stand once it was read. The
 * starts have one entry more than there are series. */
struct block {
	struct column_codec *codec;
	uint64_t from_ns;
	uint32_t series_count, run_count, event_count, cell_count, minute_count;
	bool has_weights;
	uint32_t parts_read; /* bit of each enum block_part */
	/* head */
	uint32_t *series, *period;
	uint32_t *run_start, *event_start, *cell_start, *minute_start;
	/* stacks */
	uint32_t *run_stack, *run_events;
	int64_t *run_weight;
	/* cells */
	uint32_t *cell_set, *cell_events, *minute; /* minute: of the Unix epoch */
	uint32_t *minute_events;
	int64_t *cell_weight, *minute_weight;
	/* of each event */
	uint32_t *cpu, *label, *link; /* label: place among all the block's cells */
	int64_t *weight;	      /* NULL: 1 each */
	uint64_t *time_ns;
	uint8_t *run_begins; /* block_find_runs(): 1 where a run begins, else 0; 0 for BLOCK_LOOK_AHEAD events that follow */
	/* private: memory of the arrays, one block after the other */
	struct block_chunk *chunks;
	bool want_of_memory;
};

/* Once the part of weights was read. */
static inline int64_t block_weight(const struct block *b, uint32_t event)
{
	return b->weight ? b->weight[event] : 1;
}

void block_init(struct block *b, struct column_codec *codec);
void block_fini(struct block *b);

/* Bytes of memory held, without the codec's. */
size_t block_memory_bytes(const struct block *b);

/* Begins the next block with its head. 0, -EBADMSG or -ENOMEM. */
int block_read_head(struct block *b, const void *data, size_t len);

/* Reads @part, once (a second call does nothing). Parts that it needs must have been read before: times need cpus. */
int block_read(struct block *b, enum block_part part, const void *data, size_t len);

/* Fills in run_begins, once the part of stacks was read. Runs are mostly of few events, so a loop over the events of each
 * would end where no processor foresees it. 0 or -ENOMEM. */
int block_find_runs(struct block *b);

#endif
