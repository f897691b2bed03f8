/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies: collected in one block each, inflated in one go, every byte charged to a budget all connections share. */
#ifndef HEARTH_BACKEND_BODY_H
#define HEARTH_BACKEND_BODY_H

#include <stddef.h>
#include <stdint.h>

struct body_budget {
	size_t limit_bytes;
	size_t used_bytes;
};

struct body {
	struct body_budget *budget;
	uint8_t *data; /* owned */
	size_t len;
	size_t cap; /* charged to the budget */
};

void body_init(struct body *b, struct body_budget *budget);
void body_fini(struct body *b);

/*
 * Makes room for what the client announced (0: unknown), as far as a first block goes. Appends. Neither lets the body grow
 * beyond
 * @max_bytes. 0; -EFBIG: beyond @max_bytes; -ENOBUFS: the budget is used up; -ENOMEM.
 */
int body_expect(struct body *b, uint64_t announced_bytes, size_t max_bytes);
int body_append(struct body *b, const void *data, size_t len, size_t max_bytes);

/* Replaces a gzip body (one member, nothing behind it) by its content. As above, and -EBADMSG: not gzip, cut, corrupt or
 * followed by something else. On failure the body is as it was. */
int body_gunzip(struct body *b, size_t max_bytes);

/* Hands the block on, also when it is empty: the caller frees it. NULL for want of memory. Its charge ends. */
uint8_t *body_take(struct body *b, size_t *len_ret);

#endif
