/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable run of bytes or text. Growing can only fail for want of memory; the failure sticks in @failed, later appends
 * do nothing, and the caller checks once at the end. Not shared between threads.
 */
#ifndef HEARTH_BASE_BUF_H
#define HEARTH_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data; /* owned; NULL while empty */
	size_t len;
	size_t cap;
	bool failed; /* an append found no memory; the content is incomplete */
};

#define BUF_EMPTY ((struct buf){ 0 })

void buf_fini(struct buf *b);

/* What buf_reserve() does when it has to. */
int buf_grow(struct buf *b, size_t more);

/* Makes room for @more further bytes. 0 or -ENOMEM (also left in @failed). */
static inline int buf_reserve(struct buf *b, size_t more)
{
	return !b->failed && more <= b->cap - b->len ? 0 : buf_grow(b, more);
}

static inline void buf_putc(struct buf *b, char c)
{
	if (!buf_reserve(b, 1))
		b->data[b->len++] = (uint8_t)c;
}

void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Empties it but keeps the memory, and clears @failed. */
void buf_reset(struct buf *b);

/* Hands the bytes on: the caller frees them; @len_ret may be NULL. Leaves @b empty. NULL when empty or failed. */
uint8_t *buf_take(struct buf *b, size_t *len_ret);

/* A terminating NUL behind the content (not counted in len) and the text itself; "" when empty or failed. */
const char *buf_text(struct buf *b);

#endif
