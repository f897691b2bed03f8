/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of names are called where users see them: metrics, attributes, reports. */
#include "symbols/code_names.h"

const char *code_source_name(enum code_source source)
{
	static const char *const names[CODE_SOURCE_MAX] = {
		[CODE_SOURCE_NONE] = "none",	 [CODE_SOURCE_GO] = "go",	  [CODE_SOURCE_DWARF] = "dwarf",
		[CODE_SOURCE_SYMTAB] = "symtab", [CODE_SOURCE_DYNSYM] = "dynsym", [CODE_SOURCE_PLT] = "plt",
	};

	return source < CODE_SOURCE_MAX ? names[source] : "unknown";
}
