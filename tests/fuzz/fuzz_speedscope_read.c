/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of speedscope's files on arbitrary bytes. */
#include "tests/fuzz/read_target.h"

static void write_seed(const struct profiles *p, struct buf *out)
{
	struct timeline *t = NULL;

	REQUIRE(timeline_new(p, &t) == 0);
	REQUIRE(timeline_write_speedscope(t, "x", out) == 0);
	timeline_free(t);
}

static int read_input(const uint8_t *data, size_t size, struct profiles **ret, struct otlp_error *error)
{
	return speedscope_read(data, size, ret, error);
}
