/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request bodies. Invariant: the budget's used_bytes is the sum of the capacities of all living bodies, those being inflated
 * included, so no number of clients makes it pass its limit. A body grows, and is charged, as its bytes come: were
 * announced lengths charged, a few empty promises would lock everybody out. Loop's thread only.
 */
#include "backend/body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	FIRST_BLOCK_BYTES = 64 << 10,	 /* a body of unknown length */
	TRUSTED_BLOCK_BYTES = 256 << 10, /* allocated at once when the client announces as much */
	GZIP_MIN_BYTES = 18,		 /* header and trailer */
	DEFLATE_MAX_RATIO = 1032,	 /* by the format: 258 bytes from two bits */
	GZIP_WINDOW_BITS = 15 + 16,	 /* largest window, gzip framing only */
};

void body_init(struct body *b, struct body_budget *budget)
{
	*b = (struct body){ .budget = budget };
}

void body_fini(struct body *b)
{
	free(b->data);
	if (b->budget)
		b->budget->used_bytes -= b->cap;
	body_init(b, b->budget);
}

/* Grows to exactly @cap bytes. */
static int resize(struct body *b, size_t cap)
{
	if (cap - b->cap > b->budget->limit_bytes - b->budget->used_bytes)
		return -ENOBUFS;

	uint8_t *data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->budget->used_bytes += cap - b->cap;
	b->data = data;
	b->cap = cap;
	return 0;
}

int body_expect(struct body *b, uint64_t announced_bytes, size_t max_bytes)
{
	if (announced_bytes > max_bytes)
		return -EFBIG;
	size_t first = announced_bytes < TRUSTED_BLOCK_BYTES ? announced_bytes : TRUSTED_BLOCK_BYTES;
	return first > b->cap ? resize(b, first) : 0;
}

int body_append(struct body *b, const void *data, size_t len, size_t max_bytes)
{
	if (b->len > max_bytes || len > max_bytes - b->len)
		return -EFBIG;

	size_t need = b->len + len;
	if (need > b->cap) {
		size_t cap = b->cap < FIRST_BLOCK_BYTES / 2 ? FIRST_BLOCK_BYTES : b->cap * 2;
		if (cap > max_bytes)
			cap = max_bytes;
		int ret = resize(b, cap > need ? cap : need);
		if (ret)
			return ret;
	}
	memcpy(b->data + b->len, data, len);
	b->len = need;
	return 0;
}

/* The content's length modulo 2^32, as the last four bytes say. */
static uint32_t gzip_content_len(const struct body *b)
{
	const uint8_t *p = b->data + b->len - 4;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Inflates one member into a block of just the length it claims; whatever does not fit it exactly is wrong. */
static int inflate_into(const struct body *in, struct body *out)
{
	uint8_t nothing; /* zlib wants an address even for no room */
	z_stream z = {
		.next_in = in->data,
		.avail_in = (uInt)in->len,
		.next_out = out->data ? out->data : &nothing,
		.avail_out = (uInt)out->cap,
	};
	if (inflateInit2(&z, GZIP_WINDOW_BITS) != Z_OK)
		return -ENOMEM;
	int zret = inflate(&z, Z_FINISH);
	out->len = out->cap - z.avail_out;
	size_t left = z.avail_in;
	inflateEnd(&z);

	if (zret == Z_MEM_ERROR)
		return -ENOMEM;
	return zret == Z_STREAM_END && left == 0 && out->len == out->cap ? 0 : -EBADMSG;
}

int body_gunzip(struct body *b, size_t max_bytes)
{
	if (b->len < GZIP_MIN_BYTES || b->len > UINT32_MAX)
		return -EBADMSG;

	/* The trailer's claim bounds the work before any is done: a bomb costs nothing, and a claim that deflate cannot keep
	 * is a lie. */
	uint32_t content_len = gzip_content_len(b);
	if (content_len / DEFLATE_MAX_RATIO > b->len)
		return -EBADMSG;
	if (content_len > max_bytes)
		return -EFBIG;

	struct body out;
	body_init(&out, b->budget);
	int ret = content_len ? resize(&out, content_len) : 0;
	if (!ret)
		ret = inflate_into(b, &out);
	if (ret) {
		body_fini(&out);
		return ret;
	}
	body_fini(b);
	*b = out;
	return 0;
}

uint8_t *body_take(struct body *b, size_t *len_ret)
{
	uint8_t *data = b->data ? b->data : malloc(1);
	if (!data)
		return NULL;
	/* A body of unknown length may have grown to twice its size; the model keeps the block for long. */
	if (b->cap - b->len > b->len / 4) {
		uint8_t *exact = realloc(data, b->len ? b->len : 1);
		data = exact ? exact : data;
	}
	*len_ret = b->len;
	b->data = NULL;
	body_fini(b);
	return data;
}
