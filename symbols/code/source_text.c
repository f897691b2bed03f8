/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the sources as users see them: in metrics, attributes, reports. */
#include "base/text/hex.h"
#include "symbols/code/names.h"

const char *code_source_name(enum code_source source)
{
	static const char *const names[CODE_SOURCE_MAX] = {
		[CODE_SOURCE_NONE] = "none",	 [CODE_SOURCE_GO] = "go",	  [CODE_SOURCE_DWARF] = "dwarf",
		[CODE_SOURCE_SYMTAB] = "symtab", [CODE_SOURCE_DYNSYM] = "dynsym", [CODE_SOURCE_PLT] = "plt",
		[CODE_SOURCE_V8] = "v8",	 [CODE_SOURCE_UNWIND] = "unwind",
	};

	return source < CODE_SOURCE_MAX ? names[source] : "unknown";
}

uint64_t code_range_bytes(const char *name, size_t len)
{
	uint64_t value = 0;

	if (len < 2 || len > 9 || name[0] != '+')
		return 0;
	for (size_t i = 1; i < len; i++) {
		int digit = hex_digit(name[i]);

		if (digit < 0)
			return 0;
		value = value << 4 | (unsigned)digit;
	}
	return value;
}
