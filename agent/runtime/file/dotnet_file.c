/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .NET's runtime, by the table of its variables that it exports for debuggers. Which release it is stands in a text that all
 * of its files have: "@(#)Version 9.0.124.61010 @Commit: ...".
 */
#include <string.h>

#include "agent/runtime/file/dotnet_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

/* Reads "major.minor" as major << 16 | minor << 8; 0: it is none. */
static uint32_t parse_version(const char *text, const char *end)
{
	uint32_t part[2] = { 0 }, i = 0;

	for (; text < end && i < 2; text++) {
		if (*text == '.')
			i++;
		else if (*text >= '0' && *text <= '9' && part[i] < 100)
			part[i] = part[i] * 10 + (uint32_t)(*text - '0');
		else
			return 0;
	}
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

bool dotnet_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol symbol;

	if (runtime_file_symbol(im, "g_dacTable", &symbol))
		return false;
	ret->version = ret->code.version = read_version(im);
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = RUNTIME_WAY_DYNSYM;
	ret->code.id = CODE_DOTNET;
	ret->code.fact[DOTNET_FACT_VARIABLES] = symbol.addr;
	return true;
}
