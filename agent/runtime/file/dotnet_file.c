/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .NET's runtime, by the table of its variables for debuggers, which it exports from .NET 6 on; in older ones it is among
 * the symbols of the file's own. Which release it is stands in a text that all of its files have: "@(#)Version 9.0.124.61010
 * @Commit: ..."; .NET
 * Core 3.0 and 3.1 write 4.700, older ones 4.6.
 */
#include <string.h>

#include "agent/runtime/file/dotnet_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

/* Reads "major.minor" as major << 16 | minor << 8; 0: it is none. */
static uint32_t parse_version(const char *text, const char *end)
{
	enum { CORE_3_MAJOR = 4, CORE_3_MINOR = 700 };
	uint32_t part[2] = { 0 }, i = 0;

	for (; text < end && i < 2; text++) {
		if (*text == '.')
			i++;
		else if (*text >= '0' && *text <= '9' && part[i] < 100)
			part[i] = part[i] * 10 + (uint32_t)(*text - '0');
		else
			return 0;
	}
	if (i == 2 && part[0] == CORE_3_MAJOR)
		return part[1] == CORE_3_MINOR ? 3 << 16 : 0;
	return i == 2 && part[0] < 256 && part[1] < 256 ? part[0] << 16 | part[1] << 8 : 0;
}

static uint32_t read_version(const struct elf_image *im)
{
	static const char mark[] = "@(#)Version ";
	const char *bytes, *at, *end;
	Elf64_Shdr section;
	size_t len;

	if (!elf_image_find(im, ".data", &section))
		return 0;
	bytes = (const char *)elf_image_bytes(im, &section, &len);
	end = bytes ? bytes + len : NULL;
	at = bytes ? memmem(bytes, len, mark, sizeof(mark) - 1) : NULL;
	return at ? parse_version(at + sizeof(mark) - 1, end) : 0;
}

/* Finds the table. Until .NET 5 it is not exported, but what starts the runtime is. */
static bool find_variables(const struct elf_image *im, struct runtime_symbol *ret, uint32_t *way)
{
	*way = RUNTIME_WAY_DYNSYM;
	if (!runtime_file_symbol(im, "g_dacTable", ret))
		return true;
	*way = RUNTIME_WAY_SYMTAB;
	return !runtime_file_symbol(im, "coreclr_initialize", ret) && !runtime_file_own_symbol(im, "g_dacTable", ret);
}

bool dotnet_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	enum { CORE_3 = 3 };
	struct runtime_symbol symbol;
	uint32_t way, version;

	if (!find_variables(im, &symbol, &way))
		return false;
	version = read_version(im);
	if (way == RUNTIME_WAY_SYMTAB &&
	    version >> 16 < CORE_3) /* .NET Core 1 and 2 have other numbers, and all else is other, too */
		return false;
	ret->version = ret->code.version = version;
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = way;
	ret->code.id = CODE_DOTNET;
	ret->code.fact[DOTNET_FACT_VARIABLES] = symbol.addr;
	return true;
}
