/* SPDX-License-Identifier: Apache-2.0 */
/* PCRE2, which compiles regular expressions to machine code: a library with that compiler exports its way in. */
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

bool pcre_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	static const char *const compilers[] = { "pcre2_jit_compile_8", "pcre2_jit_compile_16", "pcre2_jit_compile_32" };
	struct runtime_symbol symbol;
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_LEN(compilers) && !is_found; i++)
		is_found = !runtime_file_symbol(im, compilers[i], &symbol);
	if (!is_found)
		return false;
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = RUNTIME_WAY_DYNSYM;
	ret->code.id = CODE_PCRE;
	return true;
}
