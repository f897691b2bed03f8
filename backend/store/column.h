/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of numbers as the store keeps them, and parts: runs of columns with a checksum behind them.
 *
 * A column of n numbers is cut into planes: the lowest byte of every number, then the next one, and so on up to the widest
 * number. Each plane is compressed for itself, because bytes of one place have one distribution: a column with noise in its
 * low bits and order in its high ones costs its noise. Layout: u8 planes, then for each plane u8 how (enum plane_how) and:
 * the one byte they all are; n bytes; or a varint length and that many bytes of a zstd frame (magicless, one segment).
 *
 * n stands elsewhere in the part. The bytes read may be anything: every length is checked, nothing beyond n numbers is
 * written.
 */
#ifndef HEARTH_BACKEND_STORE_COLUMN_H
#define HEARTH_BACKEND_STORE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { COLUMN_MAX_VALUES = 1 << 20 }; /* more are not read: bounds what a damaged block can ask for */

/* Compression's memory. One a thread. */
struct column_codec;

struct column_codec *column_codec_new(int level); /* zstd's; NULL when out of memory */
void column_codec_free(struct column_codec *c);
size_t column_codec_memory_bytes(const struct column_codec *c);
void column_codec_set_level(struct column_codec *c, int level);

/* The rest of a part that is being read. @failed sticks: numbers read after a failure are 0. */
struct column_bytes {
	const uint8_t *data, *end;
	int failed; /* 0, -EBADMSG, -ENOMEM */
};

/* Append to @out; out of memory shows in @out->failed. */
void column_put(struct column_codec *c, struct buf *out, const uint64_t *values, size_t n);
void column_put_u32(struct column_codec *c, struct buf *out, const uint32_t *values, size_t n);

void column_get(struct column_codec *c, struct column_bytes *in, uint64_t *values, size_t n);
void column_get_u32(struct column_codec *c, struct column_bytes *in, uint32_t *values, size_t n); /* wider is -EBADMSG */
uint64_t column_get_varint(struct column_bytes *in);

/* The checksum (XXH3, 32 bits of it, little endian) of what stands in @out from @start on. */
void column_seal(struct buf *out, size_t start);

/* Checks it and sets @in on what is before it. 0 or -EBADMSG. */
int column_open(const void *data, size_t len, struct column_bytes *in);

/* Small numbers of either sign as small numbers. */
static inline uint64_t column_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t column_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

#endif
