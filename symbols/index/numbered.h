/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small entries that are numbered by how often they are used, for the writer of an index: first each gets a number of its
 * own and its uses are counted, then all are numbered anew, the most used first. Running out of memory sticks in @failed.
 */
#ifndef HEARTH_SYMBOLS_INDEX_NUMBERED_H
#define HEARTH_SYMBOLS_INDEX_NUMBERED_H

#include <stdbool.h>
#include <stdint.h>

struct numbered_entry {
	uint32_t key[3];
	uint32_t uses;
};

struct numbered {
	struct numbered_entry *entries; /* in the order in which they came */
	uint32_t *slots;		/* of the hash table: numbers + 1 */
	uint32_t count, slot_count;	/* a power of two, or 0 */
	uint32_t *final;		/* by number; NULL before numbered_finish */
	bool failed;
};

/* The number of the entry with this key, which is added if it is new. CODE_NONE when @failed. */
uint32_t numbered_add(struct numbered *n, uint32_t a, uint32_t b, uint32_t c);

/* Counts a use of @number. Returns the final number (before numbered_finish: @number itself) + 1; 0 when @failed. */
uint32_t numbered_use(struct numbered *n, uint32_t number);

/* Finds the final numbers. 0 or -ENOMEM. */
int numbered_finish(struct numbered *n);

/* The entries in the order of their final numbers; the caller frees them. NULL without memory. */
struct numbered_entry *numbered_in_order(const struct numbered *n);

void numbered_fini(struct numbered *n);

#endif
