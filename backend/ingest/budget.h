/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that bodies of requests may take together, of both protocols: claimed before it is used, first come first
 * served, and waited for without holding up anybody who could go on. Loop's thread only. The rules are in budget.c.
 */
#ifndef HEARTH_BACKEND_INGEST_BUDGET_H
#define HEARTH_BACKEND_INGEST_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct claim;
struct metric;

struct claim_list {
	struct claim *first, **end;
};

struct budget {
	struct loop *loop;    /* borrowed */
	size_t limit_bytes;   /* at least twice @largest_bytes */
	size_t largest_bytes; /* of a body, before and after decompression */
	size_t used_bytes;    /* held by all claims */
	size_t growing_bytes; /* held by open claims but the privileged one */
	struct claim *privileged;
	struct claim_list settling; /* wait for nothing to be overdrawn */
	struct claim_list growing;  /* wait for more than they hold */
	struct claim_list waiting;  /* hold nothing yet */
	struct loop_work work;
	bool posted;
	struct metric *used_metric;  /* gauges kept up here; may be NULL */
	struct metric *waits_metric; /* counts claims that had to wait */
};

/* One request's part. Zeroed memory that claim_init() has seen is an empty claim. */
struct claim {
	struct budget *budget;
	void (*granted)(struct claim *claim);
	size_t bytes;		 /* held */
	size_t wanted;		 /* waited for, 0: nothing */
	bool is_open;		 /* may ask for more after the first time */
	struct claim_list *list; /* the list that it waits in, or NULL */
	struct claim *next, **link;
};

/* @limit_bytes is raised to twice @largest_bytes. */
void budget_init(struct budget *b, struct loop *loop, size_t limit_bytes, size_t largest_bytes);

/* @granted is called on the loop, never from within a function of this file. Set again by whoever takes a claim over. */
void claim_init(struct claim *c, struct budget *b, void (*granted)(struct claim *claim));

/*
 * Asks for @bytes more. True: they are granted. False: granted() will say so later; nothing else may be asked until then. A
 * claim that may ask a second time must be opened before the first time: claim_open(). All that one claim asks for comes to
 * at most largest_bytes before decompression and as much again for it. 0 bytes are asked for to wait until nothing is
 * overdrawn.
 */
bool claim_more(struct claim *c, size_t bytes);

/* Opens @c: more may be asked for after the first time. */
void claim_open(struct claim *c);

/* Closes @c: nothing more will be asked for. */
void claim_close(struct claim *c);

/* Sets the bytes held to @bytes: less than was granted, or more if it cannot be avoided (later claims wait). Ends waiting.
 */
void claim_set(struct claim *c, size_t bytes);

/* Gives everything back, and ends waiting. May be called again. */
void claim_fini(struct claim *c);

/* Moves what @from holds to @to, which holds nothing; neither may be waiting. */
void claim_move(struct claim *to, struct claim *from);

static inline bool budget_has_waiters(const struct budget *b)
{
	return b->growing.first || b->waiting.first;
}

/* Whether more is held than there is: see claim_set(). */
static inline bool budget_is_overdrawn(const struct budget *b)
{
	return b->used_bytes > b->limit_bytes;
}

#endif
