/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names out of .symtab. The debug file's is asked first: one that was left in the program may be part of it only. */
#include <elf.h>
#include <errno.h>

#include "symbols/sources/symbol_table.h"

int source_symtab(const struct symbol_files *files, struct code_names *names)
{
	int error;

	code_names_begin(names, CODE_SOURCE_SYMTAB);
	error = symbol_table_add(&files->debug, SHT_SYMTAB, names);
	return error == -ENODATA ? symbol_table_add(&files->program, SHT_SYMTAB, names) : error;
}
