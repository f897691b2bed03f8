/* SPDX-License-Identifier: Apache-2.0 */
/* The planes of columns. Reading trusts nothing: see the header. */
#include "backend/store/column.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_f_zstd1_magicless, in zstd's library since 1.4 */
#include <zstd.h>

#include "base/cleanup.h"
#include "base/varint.h"
#include "base/vec.h"

enum plane_how { PLANE_ONE_BYTE, PLANE_BYTES, PLANE_ZSTD };

enum { CHECK_BYTES = 4 };

struct column_codec {
	ZSTD_CCtx *compress;
	ZSTD_DCtx *decompress;
	uint8_t *plane; /* COLUMN_MAX_VALUES bytes at most, grown as needed */
	size_t plane_size;
	uint8_t *packed;
	size_t packed_size;
};

struct column_codec *column_codec_new(int level)
{
	struct column_codec *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->compress = ZSTD_createCCtx();
	c->decompress = ZSTD_createDCtx();
	if (!c->compress || !c->decompress ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->compress, ZSTD_c_format, ZSTD_f_zstd1_magicless)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->compress, ZSTD_c_contentSizeFlag, 1)) ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(c->decompress, ZSTD_d_format, ZSTD_f_zstd1_magicless))) {
		column_codec_free(c);
		return NULL;
	}
	column_codec_set_level(c, level);
	return c;
}

void column_codec_free(struct column_codec *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->compress);
	ZSTD_freeDCtx(c->decompress);
	free(c->plane);
	free(c->packed);
	free(c);
}

size_t column_codec_memory_bytes(const struct column_codec *c)
{
	return sizeof(*c) + ZSTD_sizeof_CCtx(c->compress) + ZSTD_sizeof_DCtx(c->decompress) + c->plane_size + c->packed_size;
}

void column_codec_set_level(struct column_codec *c, int level)
{
	ZSTD_CCtx_setParameter(c->compress, ZSTD_c_compressionLevel, level);
}

/* --- writing --- */

/* Appends the plane of @n bytes that stands in c->plane. */
static void put_plane(struct column_codec *c, struct buf *out, size_t n)
{
	size_t packed;

	if (!memcmp(c->plane, c->plane + 1, n - 1)) {
		buf_putc(out, PLANE_ONE_BYTE);
		buf_putc(out, (char)c->plane[0]);
		return;
	}
	if (vec_reserve(&c->packed, &c->packed_size, ZSTD_compressBound(n))) {
		out->failed = true;
		return;
	}
	packed = ZSTD_compress2(c->compress, c->packed, c->packed_size, c->plane, n);
	if (ZSTD_isError(packed) || packed + 2 >= n) {
		buf_putc(out, PLANE_BYTES);
		buf_append(out, c->plane, n);
		return;
	}
	buf_putc(out, PLANE_ZSTD);
	varint_append(out, packed);
	buf_append(out, c->packed, packed);
}

static uint8_t bytes_of(uint64_t any)
{
	return any ? (uint8_t)(8 - __builtin_clzll(any) / 8) : 0;
}

/* For both widths; inlined, so that each has loops of its own. */
static inline __attribute__((always_inline)) void put_planes(struct column_codec *c, struct buf *out, const void *values,
							     size_t n, bool is_wide)
{
	const uint64_t *wide = values;
	const uint32_t *narrow = values;
	uint64_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= is_wide ? wide[i] : narrow[i];
	buf_putc(out, (char)bytes_of(any));
	if (any && vec_reserve(&c->plane, &c->plane_size, n)) {
		out->failed = true;
		return;
	}
	for (unsigned k = 0; k < bytes_of(any); k++) {
		for (size_t i = 0; i < n; i++)
			c->plane[i] = (uint8_t)((is_wide ? wide[i] : narrow[i]) >> 8 * k);
		put_plane(c, out, n);
	}
}

void column_put(struct column_codec *c, struct buf *out, const uint64_t *values, size_t n)
{
	put_planes(c, out, values, n, true);
}

void column_put_u32(struct column_codec *c, struct buf *out, const uint32_t *values, size_t n)
{
	put_planes(c, out, values, n, false);
}

void column_seal(struct buf *out, size_t start)
{
	uint32_t check;

	if (out->failed)
		return;
	check = htole32((uint32_t)XXH3_64bits(out->len > start ? out->data + start : NULL, out->len - start));
	buf_append(out, &check, CHECK_BYTES);
}

/* --- reading --- */

int column_open(const void *data, size_t len, struct column_bytes *in)
{
	uint32_t check;

	*in = (struct column_bytes){ .failed = -EBADMSG };
	if (!data || len < CHECK_BYTES)
		return -EBADMSG;
	len -= CHECK_BYTES;
	memcpy(&check, (const uint8_t *)data + len, CHECK_BYTES);
	if (le32toh(check) != (uint32_t)XXH3_64bits(data, len))
		return -EBADMSG;
	*in = (struct column_bytes){ .data = data, .end = (const uint8_t *)data + len };
	return 0;
}

static uint8_t get_byte(struct column_bytes *in)
{
	if (in->failed || in->data == in->end) {
		in->failed = in->failed ? in->failed : -EBADMSG;
		return 0;
	}
	return *in->data++;
}

uint64_t column_get_varint(struct column_bytes *in)
{
	uint64_t v = 0;
	const uint8_t *end = in->failed ? NULL : varint_read(in->data, in->end, &v);

	if (end)
		in->data = end;
	else if (!in->failed)
		in->failed = -EBADMSG;
	return v;
}

static const uint8_t *get_bytes(struct column_bytes *in, uint64_t n)
{
	const uint8_t *at = in->data;

	if (in->failed || n > (uint64_t)(in->end - in->data)) {
		in->failed = in->failed ? in->failed : -EBADMSG;
		return NULL;
	}
	in->data += n;
	return at;
}

/* A plane of @n bytes; NULL when @in failed. */
static const uint8_t *get_plane(struct column_codec *c, struct column_bytes *in, size_t n)
{
	uint8_t how = get_byte(in);
	const uint8_t *packed;
	uint64_t len;

	if (how == PLANE_BYTES)
		return get_bytes(in, n);
	if (how > PLANE_ZSTD || vec_reserve(&c->plane, &c->plane_size, n)) {
		in->failed = how > PLANE_ZSTD ? -EBADMSG : -ENOMEM;
		return NULL;
	}
	if (how == PLANE_ONE_BYTE) {
		memset(c->plane, get_byte(in), n);
		return in->failed ? NULL : c->plane;
	}
	len = column_get_varint(in);
	packed = get_bytes(in, len);
	if (!packed)
		return NULL;
	if (ZSTD_decompressDCtx(c->decompress, c->plane, n, packed, len) != n) {
		in->failed = -EBADMSG;
		return NULL;
	}
	return c->plane;
}

static unsigned get_planes(struct column_bytes *in, size_t n, unsigned most)
{
	unsigned planes = get_byte(in);

	if (!in->failed && (planes > most || n > COLUMN_MAX_VALUES))
		in->failed = -EBADMSG;
	return in->failed ? 0 : planes;
}

/* For both widths, as put_planes(). The values of a piece are so many that a compiler makes vectors of them. */
static inline __attribute__((always_inline)) void get_values(struct column_codec *c, struct column_bytes *in,
							     void *restrict values, size_t n, bool is_wide)
{
	enum { PIECE = 16 };
	const unsigned planes = get_planes(in, n, is_wide ? 8 : 4);
	uint64_t *restrict wide = values;
	uint32_t *restrict narrow = values;

	memset(values, 0, n * (is_wide ? sizeof(*wide) : sizeof(*narrow)));
	for (unsigned k = 0; k < planes && n; k++) {
		const uint8_t *restrict plane = get_plane(c, in, n);
		size_t i = 0;

		if (!plane)
			return;
		for (; i + PIECE <= n; i += PIECE) {
			for (size_t j = i; j < i + PIECE; j++) {
				if (is_wide)
					wide[j] |= (uint64_t)plane[j] << 8 * k;
				else
					narrow[j] |= (uint32_t)plane[j] << 8 * k;
			}
		}
		for (; i < n; i++) {
			if (is_wide)
				wide[i] |= (uint64_t)plane[i] << 8 * k;
			else
				narrow[i] |= (uint32_t)plane[i] << 8 * k;
		}
	}
}

void column_get(struct column_codec *c, struct column_bytes *in, uint64_t *values, size_t n)
{
	get_values(c, in, values, n, true);
}

void column_get_u32(struct column_codec *c, struct column_bytes *in, uint32_t *values, size_t n)
{
	get_values(c, in, values, n, false);
}
