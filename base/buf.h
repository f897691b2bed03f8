/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable run of bytes or text. Growing only fails when memory is out; the failure sticks in @failed, later appends do
 * nothing, and the caller checks once at the end. A buffer with a file does not grow but hands pieces to the file. Not
 * shared between threads.
 */
#ifndef HEARTH_BASE_BUF_H
#define HEARTH_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file on disk that takes a buffer's content piece by piece. */
struct buf_file {
	int fd;		     /* borrowed */
	uint64_t bytes;	     /* that were written */
	uint64_t most_bytes; /* that may be */
	int error;	     /* the first, as buf_flush() returns it; it makes buffers fail */
};

struct buf {
	uint8_t *data; /* owned; NULL while empty */
	size_t len;
	size_t cap;
	bool failed; /* an append found no memory, or no room in the file; the content is incomplete */
	/* Borrowed; NULL: all stays in memory. Else an append may take what stood there away, so only writers that never
	 * look back may be given the buffer. */
	struct buf_file *file;
};

#define BUF_EMPTY ((struct buf){ 0 })

void buf_fini(struct buf *b);

/* The slow path of buf_reserve(), for a buffer without room. */
int buf_grow(struct buf *b, size_t more);

/* Makes room for @more further bytes, and for a NUL behind them. 0 or -ENOMEM (also left in @failed). */
static inline int buf_reserve(struct buf *b, size_t more)
{
	return !b->failed && more < b->cap - b->len ? 0 : buf_grow(b, more);
}

/* How many bytes fit in without more memory. */
static inline size_t buf_room(const struct buf *b)
{
	return b->cap ? b->cap - b->len - 1 : 0;
}

static inline void buf_putc(struct buf *b, char c)
{
	if (!buf_reserve(b, 1))
		b->data[b->len++] = (uint8_t)c;
}

void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The characters that RFC 3986 allows in any part of a URL, beside letters and digits. */
#define URL_PLAIN "-._~"

/* Percent-encodes: ASCII letters and digits and the characters of @plain stay as they are, each other byte becomes %XX. */
void buf_percent(struct buf *b, const char *data, size_t len, const char *plain);

/* Empties the buffer but keeps the memory, and clears @failed. */
void buf_reset(struct buf *b);

/* Gives back the memory that growing took in advance; the content and the room for a NUL stay. */
void buf_fit(struct buf *b);

/* Writes the content to the buffer's file, and empties the buffer. 0; -ENOMEM: memory was out, or that is more than the file
 * may have; another -errno of writing. An error stays. */
int buf_flush(struct buf *b);

/* Hands the bytes on: the caller frees them; @len_ret may be NULL. Leaves @b empty. NULL when empty or failed. */
uint8_t *buf_take(struct buf *b, size_t *len_ret);

/* Puts a NUL behind the content (not counted in len) and returns the text; "" when empty or failed. It needs no memory, and
 * @len bytes can be read from it even then; a failed buffer loses its content. */
const char *buf_text(struct buf *b);

#endif
