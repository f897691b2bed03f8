/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every reader of other people's formats on arbitrary bytes: the one that recognises them and all others too. What is
 * accepted must be sound: it goes through the OTLP encoder and decoder, and into pprof and back. What is refused must have a
 * reason. Seeds are written into the corpus folder at start, so that none lie in git.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/otlp_read.h"
#include "proto/pprof.h"
#include "proto/read.h"
#include "tests/unit/proto/random_profiles.h"
#include "proto/timeline.h"

#define REQUIRE(condition)                                                              \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

enum { MAX_BYTES = 1 << 22, SMALL_BYTES = 1 << 14 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_seed(const char *folder, const char *name, const struct buf *data)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[4096];

	snprintf(path, sizeof(path), "%s/seed-%s", folder, name);
	f = fopen(path, "wb");
	if (f)
		fwrite(data->data, 1, data->len, f);
}

/* A random profile in every format that is read. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;
	struct profiles *p = folder ? random_profiles(7) : NULL;
	struct timeline *t = NULL;
	struct pprof *pp = pprof_new();
	struct buf out = BUF_EMPTY;

	if (p && !timeline_new(p, &t) && !timeline_write_speedscope(t, "x", &out))
		write_seed(folder, "speedscope", &out);
	buf_reset(&out);
	if (t && !timeline_write_perf_script(t, &out))
		write_seed(folder, "perf-script", &out);
	buf_reset(&out);
	if (p && pp && !pprof_add(pp, p) && !pprof_write(pp, &out))
		write_seed(folder, "pprof", &out);
	buf_reset(&out);
	if (p && !otlp_encode(p, NULL, &out) && !otlp_encode(p, NULL, &out))
		write_seed(folder, "otlp", &out);
	buf_reset(&out);
	if (p && !otlp_json_encode(p, &out))
		write_seed(folder, "json", &out);
	buf_reset(&out);
	buf_puts(&out, "sh;main;f_[k];libc.so.6+0x12 2.5\nsh;g_[i];h 3\n");
	if (p)
		write_seed(folder, "folded", &out);
	buf_fini(&out);
	pprof_free(pp);
	timeline_free(t);
	profiles_put(p);
	return 0;
}

static void check_accepted(const struct profiles *p)
{
	struct buf out = BUF_EMPTY;
	struct otlp_error error = { "" };
	struct profiles *again = NULL;
	struct pprof *pp;

	REQUIRE(otlp_encode(p, NULL, &out) == 0);
	/* Samples without anything are taken for an older release's. */
	if (otlp_decode(out.data, out.len, false, &again, &error) == 0) {
		REQUIRE(again->sample_events == p->sample_events);
		profiles_put(again);
	}
	buf_reset(&out);
	pp = pprof_new();
	REQUIRE(pp && pprof_add(pp, p) == 0 && pprof_write(pp, &out) == 0);
	pprof_free(pp);
	/* With more columns than pprof has, or none, there is nothing to read back. */
	again = NULL;
	if (pprof_fits(out.data, out.len) && pprof_read(out.data, out.len, &again, &error) == 0)
		profiles_put(again);
	buf_fini(&out);
}

static void try_reader(int (*read)(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error),
		       const uint8_t *data, size_t size)
{
	struct otlp_error error = { "" };
	struct profiles *p = NULL;
	int err = read(data, size, &p, &error);

	REQUIRE(err == 0 || (err == -EBADMSG && error.message[0]));
	if (!err)
		check_accepted(p);
	profiles_put(p);
}

static void try_otlp(const uint8_t *data, size_t size)
{
	struct buf copy = BUF_EMPTY;
	struct otlp_error error = { "" };
	struct profiles *p = NULL;
	size_t read_bytes = 0;
	int err;

	buf_append(&copy, data, size);
	err = otlp_read(&copy, MAX_BYTES, &p, &read_bytes, &error);
	REQUIRE(err == 0 || err == -E2BIG || (err == -EBADMSG && error.message[0]));
	REQUIRE(err || read_bytes <= size);
	if (!err && size < SMALL_BYTES)
		check_accepted(p);
	profiles_put(p);
	buf_fini(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* no byte behind the end can be read unseen */

	if (!size) {
		free(copy);
		return 0;
	}
	memcpy(copy, data, size);
	read_format_of(copy, size);
	try_reader(pprof_read, copy, size);
	try_reader(folded_read, copy, size);
	try_reader(perf_script_read, copy, size);
	if (copy[0] == '{')
		try_reader(speedscope_read, copy, size);
	try_otlp(copy, size);
	free(copy);
	return 0;
}
