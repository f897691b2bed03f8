/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names out of .dynsym: the file's exports, which stripping leaves. */
#include <elf.h>

#include "symbols/sources/symbol_table.h"

int source_dynsym(const struct symbol_files *files, struct code_names *names)
{
	code_names_begin(names, CODE_SOURCE_DYNSYM);
	return symbol_table_add(&files->program, SHT_DYNSYM, names);
}
