/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names out of .gnu_debugdata ("minidebuginfo", Fedora and its kin): an ELF file, packed by xz, whose .symtab has the
 * functions that .dynsym has not. The unpacked size is bounded.
 */
#include <elf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/xz.h"
#include "symbols/elf_image.h"
#include "symbols/sources/functions.h"
#include "symbols/sources/symbol_table.h"

enum { MAX_BYTES = 128 << 20 }; /* libxul's, among the largest there are, is a quarter of it */

/* A whole symbol table leaves nothing for the small one to add. */
static bool has_symtab(const struct symbol_image *image)
{
	struct elf_image im;
	Elf64_Shdr sh;

	return !elf_image_open(image->data, image->len_bytes, &im) && elf_image_find(&im, ".symtab", &sh) &&
	       sh.sh_type == SHT_SYMTAB;
}

/* Unpacks the small file into @data. 0; -ENODATA: there is none, or a whole table makes it needless; -EBADMSG; -ENOMEM. */
static int unpack(const struct symbol_files *files, struct buf *data)
{
	const uint8_t *packed;
	struct elf_image im;
	Elf64_Shdr sh;
	size_t len;
	int error;

	if (elf_image_open(files->program.data, files->program.len_bytes, &im) ||
	    !elf_image_find(&im, ".gnu_debugdata", &sh) || has_symtab(&files->program) || has_symtab(&files->debug))
		return -ENODATA;
	packed = elf_image_bytes(&im, &sh, &len);
	error = packed ? xz_unpack(packed, len, MAX_BYTES, data) : -EBADMSG;
	return error == -E2BIG ? -EBADMSG : error;
}

int source_debugdata(const struct symbol_files *files, struct code_names *names)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct symbol_image inner = { 0 };
	int error = unpack(files, &data);

	if (error)
		return error;
	inner.data = data.data;
	inner.len_bytes = data.len;
	code_names_begin(names, CODE_SOURCE_SYMTAB);
	error = symbol_table_add(&inner, SHT_SYMTAB, names);
	return error == -ENODATA ? -EBADMSG : error;
}

int debugdata_each(const struct symbol_files *files, void (*fn)(void *arg, const struct function_symbol *symbol), void *arg)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	int error = unpack(files, &data);

	if (error)
		return error;
	return symbol_table_each(&(struct symbol_image){ data.data, data.len }, SHT_SYMTAB, fn, arg);
}
