/* SPDX-License-Identifier: Apache-2.0 */
/* The body of one request while it comes in: a block of memory, claimed from the budget before it is filled. Loop's thread.
 */
#ifndef HEARTH_BACKEND_INGEST_BODY_H
#define HEARTH_BACKEND_INGEST_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "backend/ingest/budget.h"

struct body {
	struct claim claim;
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
};

/* @granted is the claim's: after a body_room() that has to wait. */
void body_init(struct body *b, struct budget *budget, void (*granted)(struct claim *claim));
void body_fini(struct body *b);

/* Has room for @cap bytes in all. 0; -EINPROGRESS: granted() will come, then call it again; -ENOMEM. A body that may need
 * room a second time, or will be decompressed, is opened first: claim_open(). */
int body_room(struct body *b, size_t cap);

/* The next room to ask for when a body of unknown length is full: at most @max_bytes, and b->cap when that is reached. */
size_t body_next_cap(const struct body *b, size_t max_bytes);

/* Takes what there is room for and says how much that is. */
size_t body_append(struct body *b, const void *data, size_t len);

/* The struct body of its claim, for granted(). */
static inline struct body *body_of_claim(struct claim *claim)
{
	return (struct body *)((char *)claim - offsetof(struct body, claim));
}

#endif
