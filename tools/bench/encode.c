/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast requests are made: reads the messages of a capture, then encodes them time and again, without and with gzip.
 * Prints million samples a CPU second, twice. encode FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "proto/otlp/otlp.h"

enum { GZIP_LEVEL = 6, SECONDS = 2 }; /* the exporter's level */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int read_file(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "r");
	char piece[65536];

	if (!f)
		return -1;
	for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		buf_append(out, piece, n);
	return fclose(f) || out->failed ? -1 : 0;
}

static double rate(const struct profiles *p, bool pack)
{
	double start = cpu_s(), used;
	uint64_t samples = 0;

	do {
		AUTO(buf_fini) struct buf message = BUF_EMPTY, packed = BUF_EMPTY;

		if (otlp_encode(p, NULL, &message) || (pack && gzip_pack(message.data, message.len, GZIP_LEVEL, &packed)))
			return 0;
		samples += p->sample_events;
		used = cpu_s() - start;
	} while (used < SECONDS);
	return (double)samples / used / 1e6;
}

int main(int argc, char **argv)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	struct profiles *p;
	struct otlp_error err;

	if (argc != 2 || read_file(argv[1], &file) || otlp_decode(file.data, file.len, false, &p, &err)) {
		fprintf(stderr, "encode: cannot read %s\n", argc == 2 ? argv[1] : "a capture: name one");
		return 1;
	}
	printf("%.3f %.3f\n", rate(p, false), rate(p, true));
	profiles_put(p);
	return 0;
}
