/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a file under all of their names, where code_names keeps one name of each address. For who looks for a
 * function by its name. */
#ifndef HEARTH_SYMBOLS_SOURCES_FUNCTIONS_H
#define HEARTH_SYMBOLS_SOURCES_FUNCTIONS_H

#include "symbols/sources/symbol_table.h"

/* Calls @fn with those of .symtab (the debug file's, else the program's), of .gnu_debugdata, of .dynsym and of Go's table;
 * the same may come several times. 0; -EBADMSG: a table is broken, and its functions before the break came; -ENOMEM. */
int functions_each(const struct symbol_files *files, void (*fn)(void *arg, const struct function_symbol *symbol), void *arg);

/* Is the code at ELF address @addr Go's? */
bool functions_is_go(const struct symbol_files *files, uint64_t addr);

/* Those of .gnu_debugdata alone (symbols/sources/debugdata.c). Errors as symbol_source_fn. */
int debugdata_each(const struct symbol_files *files, void (*fn)(void *arg, const struct function_symbol *symbol), void *arg);

#endif
