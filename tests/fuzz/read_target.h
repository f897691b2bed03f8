/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of other people's formats on arbitrary bytes. An accepted file must be sound: it goes through the OTLP
 * encoder and decoder, and into pprof and back. A refused one must have a reason. A target is a file that names its
 * reader and a writer for the seed, which goes into the corpus folder at start, so that none lie in git.
 */
#ifndef HEARTH_TESTS_READ_TARGET_H
#define HEARTH_TESTS_READ_TARGET_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/formats/otlp_capture.h"
#include "proto/formats/pprof.h"
#include "proto/formats/formats.h"
#include "proto/sums/timeline.h"
#include "tests/fuzz/require.h"
#include "tests/unit/proto/random_profiles.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's own: a random profile @p in the format; and what reads it, with errors as in proto/formats/formats.h. */
static void write_seed(const struct profiles *p, struct buf *out);
static int read_input(const uint8_t *data, size_t size, struct profiles **ret, struct otlp_error *error);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;

	for (uint64_t seed = 1; folder && seed < 4; seed++) {
		struct profiles *p = random_profiles(seed);
		struct buf out = BUF_EMPTY;
		AUTO_FCLOSE FILE *f = NULL;
		char path[4096];

		REQUIRE(p);
		write_seed(p, &out);
		snprintf(path, sizeof(path), "%s/seed-%u", folder, (unsigned)seed);
		f = fopen(path, "wb");
		if (f)
			fwrite(out.data, 1, out.len, f);
		buf_fini(&out);
		profiles_put(p);
	}
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* no byte behind the end can be read unseen */
	struct otlp_error error = { "" };
	struct profiles *p = NULL;
	int err;

	memcpy(copy, data, size);
	if (size) {
		format_by_content(copy, size);
		err = read_input(copy, size, &p, &error);
		REQUIRE(err == 0 || err == -E2BIG || (err == -EBADMSG && error.message[0]));
		if (!err)
			check_accepted(p);
		profiles_put(p);
	}
	free(copy);
	return 0;
}

#endif
