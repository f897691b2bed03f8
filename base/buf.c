/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growable buffer. Invariant: len <= cap, and data is NULL exactly while cap is 0. Capacity doubles, so appending n
 * bytes one by one costs O(n). A failed buffer keeps its memory until buf_reset or buf_fini.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_CAP_BYTES = 64 };

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = BUF_EMPTY;
}

int buf_grow(struct buf *b, size_t more)
{
	size_t need, cap;
	uint8_t *data;

	if (b->failed)
		return -ENOMEM;
	if (__builtin_add_overflow(b->len, more, &need) || __builtin_mul_overflow(b->cap, 2, &cap))
		goto fail;
	if (cap < need)
		cap = need;
	if (cap < MIN_CAP_BYTES)
		cap = MIN_CAP_BYTES;
	data = realloc(b->data, cap);
	if (!data)
		goto fail;
	b->data = data;
	b->cap = cap;
	return 0;
fail:
	b->failed = true;
	return -ENOMEM;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
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
		if (buf_reserve(b, (size_t)n + 1))
			return;
		va_start(ap, fmt);
		vsnprintf((char *)b->data + b->len, b->cap - b->len, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
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
	if (!b->len || buf_reserve(b, 1))
		return "";
	b->data[b->len] = '\0';
	return (const char *)b->data;
}
