/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>

#include "symbols/sources/functions.h"
#include "symbols/sources/gopclntab.h"

static int go_each(const struct symbol_files *files, void (*fn)(void *arg, const struct function_symbol *symbol), void *arg)
{
	struct gopclntab table;
	struct gopclntab_function f;
	int error = gopclntab_open(files->program.data, files->program.len_bytes, &table);

	for (uint32_t i = 0; !error && i < table.function_count; i++) {
		error = gopclntab_function(&table, i, &f);
		if (!error && f.name_len)
			fn(arg, &(struct function_symbol){
					.name = f.name, .len = f.name_len, .addr = f.entry, .size_bytes = f.end - f.entry });
	}
	return error;
}

bool functions_is_go(const struct symbol_files *files, uint64_t addr)
{
	struct gopclntab table;
	uint32_t index;

	return !gopclntab_open(files->program.data, files->program.len_bytes, &table) &&
	       !gopclntab_find(&table, addr, &index);
}

int functions_each(const struct symbol_files *files, void (*fn)(void *arg, const struct function_symbol *symbol), void *arg)
{
	int errors[5] = { symbol_table_each(&files->debug, SHT_SYMTAB, fn, arg) }, result = 0;

	errors[1] = errors[0] == -ENODATA ? symbol_table_each(&files->program, SHT_SYMTAB, fn, arg) : 0;
	errors[2] = debugdata_each(files, fn, arg);
	errors[3] = symbol_table_each(&files->program, SHT_DYNSYM, fn, arg);
	errors[4] = go_each(files, fn, arg);
	for (int i = 0; i < 5; i++)
		if (errors[i] == -ENOMEM || (errors[i] == -EBADMSG && result != -ENOMEM))
			result = errors[i];
	return result;
}
