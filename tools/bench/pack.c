/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares ways of packing on bodies of requests, each a file as it was before: bytes an event, CPU time an event in us, and
 * MB of memory that packing the largest one took, where the library tells. pack EVENTS FILE...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/pack/gzip.h"
#include "base/pack/zstd.h"

enum { LONG_WINDOW_LOG = 27, SECONDS = 2, MAX_BYTES = 1 << 30 };

enum way { GZIP, ZSTD_LEAN, ZSTD, ZSTD_LONG };

static const char *const names[] = { "gzip", "zstd, the exporter's", "zstd", "zstd --long" };

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int pack_level(const struct buf *in, int level, bool is_long, struct buf *out, size_t *memory)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t n = 0;

	if (c && !buf_reserve(out, ZSTD_compressBound(in->len))) {
		ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
		if (is_long) {
			ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
			ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, LONG_WINDOW_LOG);
		}
		n = ZSTD_compress2(c, out->data, buf_room(out), in->data, in->len);
		if (ZSTD_sizeof_CCtx(c) > *memory)
			*memory = ZSTD_sizeof_CCtx(c);
	}
	ZSTD_freeCCtx(c);
	out->len = n;
	return n && !ZSTD_isError(n) ? 0 : -ENOMEM;
}

static int pack(enum way way, int level, const struct buf *in, struct buf *out, size_t *memory)
{
	if (way == GZIP)
		return gzip_pack(in->data, in->len, level, out);
	if (way == ZSTD_LEAN)
		return zstd_pack_lean(in->data, in->len, out);
	return pack_level(in, level, way == ZSTD_LONG, out, memory);
}

static int try(enum way way, int level, const struct buf *bodies, size_t count, double events)
{
	double start = cpu_s(), used;
	size_t bytes, memory = 0;
	unsigned turns = 0;

	do {
		bytes = 0;
		for (size_t i = 0; i < count; i++) {
			AUTO(buf_fini) struct buf out = BUF_EMPTY;
			int err = pack(way, level, &bodies[i], &out, &memory);

			if (err)
				return err;
			bytes += out.len;
		}
		turns++;
		used = cpu_s() - start;
	} while (used < SECONDS);
	printf("%-20s %2d  %6.1f bytes  %6.2f us  %5.1f MB\n", names[way], level, (double)bytes / events,
	       used * 1e6 / turns / events, (double)memory / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		enum way way;
		int level;
	} rows[] = {
		{ GZIP, 6 },	   { GZIP, 10 },     { ZSTD_LEAN, 0 },	{ ZSTD, 3 },	  { ZSTD_LONG, 3 },
		{ ZSTD, 6 },	   { ZSTD_LONG, 6 }, { ZSTD, 9 },	{ ZSTD_LONG, 9 }, { ZSTD, 12 },
		{ ZSTD_LONG, 12 }, { ZSTD, 18 },     { ZSTD_LONG, 18 },
	};
	size_t count = argc > 2 ? (size_t)argc - 2 : 0;
	struct buf *bodies = calloc(count + 1, sizeof(*bodies));
	double events = argc > 2 ? strtod(argv[1], NULL) : 0;
	int err = bodies && events > 0 ? 0 : -EINVAL;

	for (size_t i = 0; i < count && !err; i++)
		err = io_read_file(argv[2 + i], MAX_BYTES, &bodies[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows) && !err; i++)
		err = try(rows[i].way, rows[i].level, bodies, count, events);
	for (size_t i = 0; bodies && i < count; i++)
		buf_fini(&bodies[i]);
	free(bodies);
	if (err)
		fprintf(stderr, "pack EVENTS FILE...: it cannot read or pack them\n");
	return err ? 1 : 0;
}
