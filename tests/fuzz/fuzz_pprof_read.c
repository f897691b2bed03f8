/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of pprof on arbitrary bytes. */
#include "tests/fuzz/read_target.h"

static void write_seed(const struct profiles *p, struct buf *out)
{
	struct pprof *pp = pprof_new();

	REQUIRE(pp && pprof_add(pp, p) == 0 && pprof_write(pp, out) == 0);
	pprof_free(pp);
}

static int read_input(const uint8_t *data, size_t size, struct profiles **ret, struct otlp_error *error)
{
	return pprof_read(data, size, ret, error);
}
