/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of folded stacks on arbitrary bytes. */
#include "tests/fuzz/read_target.h"

static void write_seed(const struct profiles *p, struct buf *out)
{
	(void)p;
	buf_puts(out, "sh;main;f_[k];libc.so.6+0x12 2.5\nsh;g_[i];h 3\n# comment\n\na b;c 1\r\n");
}

static int read_input(const uint8_t *data, size_t size, struct profiles **ret, struct otlp_error *error)
{
	return folded_read(data, size, ret, error);
}
