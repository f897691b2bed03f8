/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of OTLP in every framing on arbitrary bytes. */
#include "tests/fuzz/read_target.h"

static void write_seed(const struct profiles *p, struct buf *out)
{
	struct buf message = BUF_EMPTY;

	REQUIRE(otlp_encode(p, NULL, &message) == 0);
	if (random_below(2))
		buf_append(out, "\0\0", 2);
	if (out->len) {
		buf_putc(out, (char)(message.len >> 8));
		buf_putc(out, (char)message.len);
	}
	buf_append(out, message.data, message.len);
	buf_append(out, message.data, out->len > message.len ? 0 : message.len);
	buf_fini(&message);
}

static int read_input(const uint8_t *data, size_t size, struct profiles **ret, struct otlp_error *error)
{
	struct buf copy = BUF_EMPTY;
	size_t read_bytes = 0;
	int err;

	buf_append(&copy, data, size);
	err = otlp_read(&copy, 1 << 22, ret, &read_bytes, error);
	REQUIRE(err || read_bytes <= size);
	buf_fini(&copy);
	return err;
}
