/* SPDX-License-Identifier: Apache-2.0 */
/* Mangled names, in a style that the first byte chooses: what comes out is bounded, and UTF-8 where the name was ASCII. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "symbols/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_EMPTY;
	bool is_ascii = true, is_changed;

	if (!size)
		return 0;
	symbols_set_demangling((enum demangle_style)(data[0] % 3), data[0] & 4);
	data++;
	size--;
	for (size_t i = 0; i < size; i++)
		is_ascii &= data[i] < 0x80;
	symbols_demangle((const char *)data, size, &out);
	is_changed = out.len != size || (size && memcmp(out.data, data, size) != 0);
	if (is_changed && out.len > (data[-1] % 3 == DEMANGLE_SHORT ? DEMANGLE_SHORT_BYTES : 64 << 10))
		abort();
	if (is_ascii && !utf8_is_valid(out.data, out.len))
		abort();
	buf_fini(&out);
	return 0;
}
