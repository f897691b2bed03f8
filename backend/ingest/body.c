/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies. Invariant: cap <= the bytes claimed, and no byte is written before it was claimed. If the length is announced the
 * block has just that length; else it doubles.
 */
#include "backend/ingest/body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK_BYTES = 64 << 10 };

void body_init(struct body *b, struct budget *budget, void (*granted)(struct claim *claim))
{
	*b = (struct body){ 0 };
	claim_init(&b->claim, budget, granted);
}

void body_fini(struct body *b)
{
	claim_fini(&b->claim);
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
}

int body_room(struct body *b, size_t cap)
{
	uint8_t *data;

	if (cap <= b->cap)
		return 0;
	if (cap > b->claim.bytes && !claim_more(&b->claim, cap - b->claim.bytes))
		return -EINPROGRESS;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

size_t body_next_cap(const struct body *b, size_t max_bytes)
{
	size_t cap = b->cap < FIRST_BLOCK_BYTES / 2 ? FIRST_BLOCK_BYTES : b->cap * 2;

	return cap < max_bytes ? cap : max_bytes;
}

size_t body_append(struct body *b, const void *data, size_t len)
{
	size_t room = b->cap - b->len;

	if (len > room)
		len = room;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return len;
}
