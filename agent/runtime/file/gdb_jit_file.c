/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or library that tells debuggers of the code it makes: LLVM, and compilers after its manner. GDB looks for the
 * variable among all of a file's symbols, and so does this. To be asked last, as other runtimes have the interface too.
 *
 * A program that is linked statically and stripped has no symbols. QEMU's emulators of single programs are delivered so; the
 * name that they give to code in the files that they register tells them, and the variable is looked for in the process's
 * data.
 */
#include <string.h>

#include "agent/runtime/file/gdb_jit_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

enum { MAX_TEXTS_BYTES = 16 << 20 };

/* Is @im QEMU without symbols? Then fills @ret. */
static bool read_qemu(const struct elf_image *im, struct runtime_file *ret)
{
	static const char code_name[] = "code_gen_buffer"; /* accel/tcg, tcg/tcg.c: struct ElfImage */
	Elf64_Shdr texts, data, unused;
	size_t bytes;
	const uint8_t *text;

	if (elf_image_find(im, ".interp", &unused) || elf_image_find(im, ".symtab", &unused) ||
	    elf_image_find(im, ".gopclntab", &unused) || !elf_image_find(im, ".rodata", &texts) ||
	    !elf_image_find(im, ".data", &data) || data.sh_size > GDB_JIT_MAX_DATA_BYTES || texts.sh_size > MAX_TEXTS_BYTES)
		return false;
	text = elf_image_bytes(im, &texts, &bytes);
	if (!text || !memmem(text, bytes, code_name, sizeof(code_name)))
		return false;
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = RUNTIME_WAY_CONTENT;
	ret->code.id = CODE_GDB_JIT;
	ret->code.fact[GDB_JIT_FACT_DATA] = data.sh_addr;
	ret->code.fact[GDB_JIT_FACT_DATA_BYTES] = data.sh_size;
	return true;
}

bool gdb_jit_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	static const char variable[] = "__jit_debug_descriptor";
	struct runtime_symbol symbol;
	bool is_exported = !runtime_file_symbol(im, variable, &symbol);

	if (!is_exported && runtime_file_own_symbol(im, variable, &symbol))
		return read_qemu(im, ret);
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = is_exported ? RUNTIME_WAY_DYNSYM : RUNTIME_WAY_SYMTAB;
	ret->code.id = CODE_GDB_JIT;
	ret->code.fact[GDB_JIT_FACT_DESCRIPTOR] = symbol.addr;
	return true;
}
