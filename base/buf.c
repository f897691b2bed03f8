/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growable buffer. Invariant: data is NULL and len is 0 while cap is 0, else len < cap, so that there is room for a NUL.
 * Capacity doubles, so appending n bytes one by one costs O(n). A failed buffer keeps its memory until buf_reset or
 * buf_fini. With a file it is emptied before it would have to hold more than a piece.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"

enum { MIN_CAP_BYTES = 64, PIECE_BYTES = 256 << 10 };

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = BUF_EMPTY;
}

int buf_grow(struct buf *b, size_t more)
{
	size_t need;

	if (b->file && (b->len >= PIECE_BYTES || more >= PIECE_BYTES - b->len))
		buf_flush(b);
	if (!b->failed && (__builtin_add_overflow(b->len, more, &need) || need == SIZE_MAX ||
			   vec_reserve(&b->data, &b->cap, need < MIN_CAP_BYTES ? MIN_CAP_BYTES : need + 1)))
		b->failed = true;
	return b->failed ? -ENOMEM : 0;
}

static int write_to_file(struct buf_file *f, const void *data, size_t len)
{
	if (!f->error && len > f->most_bytes - f->bytes)
		f->error = -ENOMEM;
	if (!f->error)
		f->error = io_write_all(f->fd, data, len);
	f->bytes += f->error ? 0 : len;
	return f->error;
}

int buf_flush(struct buf *b)
{
	if (b->failed && !b->file->error)
		b->file->error = -ENOMEM;
	b->failed = write_to_file(b->file, b->data, b->len);
	b->len = 0;
	return b->file->error;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (len >= PIECE_BYTES && b->file) {
		b->failed = buf_flush(b) || write_to_file(b->file, data, len); /* without a copy */
		return;
	}
	if (!len || buf_reserve(b, len))
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	/* The first try usually fits; it also tells the length when it does not. */
	if (buf_reserve(b, MIN_CAP_BYTES))
		return;
	va_start(ap, fmt);
	n = vsnprintf((char *)b->data + b->len, b->cap - b->len, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	if ((size_t)n >= b->cap - b->len) {
		if (buf_reserve(b, (size_t)n))
			return;
		va_start(ap, fmt);
		vsnprintf((char *)b->data + b->len, b->cap - b->len, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

void buf_percent(struct buf *b, const char *data, size_t len, const char *plain)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i], low = c | 0x20;

		if ((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || (c && strchr(plain, c)))
			buf_putc(b, (char)c);
		else
			buf_printf(b, "%%%02X", c);
	}
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_fit(struct buf *b)
{
	uint8_t *fitted = b->cap ? realloc(b->data, b->len + 1) : NULL;

	if (!fitted)
		return;
	b->data = fitted;
	b->cap = b->len + 1;
}

uint8_t *buf_take(struct buf *b, size_t *len_ret)
{
	uint8_t *data = b->data;
	size_t len = b->len;

	if (b->failed || !len) {
		buf_fini(b);
		data = NULL;
		len = 0;
	}
	*b = BUF_EMPTY;
	if (len_ret)
		*len_ret = len;
	return data;
}

const char *buf_text(struct buf *b)
{
	if (!b->len)
		return "";
	b->data[b->failed ? 0 : b->len] = '\0';
	return (const char *)b->data;
}
