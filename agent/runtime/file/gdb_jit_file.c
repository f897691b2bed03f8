/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or library that tells debuggers of the code it makes: LLVM, and compilers after its manner. GDB looks for the
 * variable among all of a file's symbols, and so does this. To be asked last, as other runtimes have the interface too.
 */
#include "agent/runtime/file/gdb_jit_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

bool gdb_jit_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	static const char variable[] = "__jit_debug_descriptor";
	struct runtime_symbol symbol;
	bool is_exported = !runtime_file_symbol(im, variable, &symbol);

	if (!is_exported && runtime_file_own_symbol(im, variable, &symbol))
		return false;
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = is_exported ? RUNTIME_WAY_DYNSYM : RUNTIME_WAY_SYMTAB;
	ret->code.id = CODE_GDB_JIT;
	ret->code.fact[GDB_JIT_FACT_DESCRIPTOR] = symbol.addr;
	return true;
}
