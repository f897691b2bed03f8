/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of .gnu_debugdata ("minidebuginfo", Fedora and its kin): an ELF file, packed by xz, whose .symtab has the
 * functions that .dynsym has not. Packed bytes may stand for any number of others, so both the memory of the unpacker and
 * what it gives are bounded.
 */
#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/symbol_table.h"

enum {
	MAX_UNPACKER_BYTES = 80 << 20, /* xz -9 needs 65 MB */
	MAX_BYTES = 128 << 20,	       /* libxul's, among the largest there are, is a quarter of it */
	FIRST_BYTES = 1 << 20,
};

static void stream_end(lzma_stream *s)
{
	lzma_end(s);
}

static int grow(uint8_t **data, size_t *cap, lzma_stream *s)
{
	size_t more = *cap ? *cap * 2 : FIRST_BYTES;
	uint8_t *grown = more <= MAX_BYTES ? realloc(*data, more) : NULL;

	if (!grown)
		return more <= MAX_BYTES ? -ENOMEM : -EBADMSG;
	s->next_out = grown + *cap;
	s->avail_out = more - *cap;
	*data = grown;
	*cap = more;
	return 0;
}

/* Unpacks @packed to *@ret, the caller's to free. 0, -EBADMSG, -ENOMEM. */
static int unpack(const uint8_t *packed, size_t packed_len, uint8_t **ret, size_t *len_ret)
{
	AUTO(stream_end) lzma_stream s = LZMA_STREAM_INIT;
	AUTO_FREE uint8_t *data = NULL;
	lzma_ret status = lzma_stream_decoder(&s, MAX_UNPACKER_BYTES, 0);
	size_t cap = 0;

	s.next_in = packed;
	s.avail_in = packed_len;
	while (status == LZMA_OK) {
		int error = s.avail_out ? 0 : grow(&data, &cap, &s);

		if (error)
			return error;
		status = lzma_code(&s, LZMA_FINISH);
	}
	if (status != LZMA_STREAM_END)
		return status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
	*len_ret = cap - s.avail_out;
	*ret = MOVE(data);
	return 0;
}

/* A whole symbol table leaves nothing for the small one to add. */
static bool has_symtab(const struct symbol_image *image)
{
	struct elf_image im;
	Elf64_Shdr sh;

	return !elf_image_open(image->data, image->len_bytes, &im) && elf_image_find(&im, ".symtab", &sh) &&
	       sh.sh_type == SHT_SYMTAB;
}

int source_debugdata(const struct symbol_files *files, struct code_names *names)
{
	AUTO_FREE uint8_t *data = NULL;
	struct symbol_image inner = { 0 };
	const uint8_t *packed;
	struct elf_image im;
	Elf64_Shdr sh;
	size_t len;
	int error;

	if (elf_image_open(files->program.data, files->program.len_bytes, &im) ||
	    !elf_image_find(&im, ".gnu_debugdata", &sh) || has_symtab(&files->program) || has_symtab(&files->debug))
		return -ENODATA;
	packed = elf_image_bytes(&im, &sh, &len);
	error = packed ? unpack(packed, len, &data, &inner.len_bytes) : -EBADMSG;
	if (error)
		return error;
	inner.data = data;
	code_names_begin(names, CODE_SOURCE_SYMTAB);
	error = symbol_table_add(&inner, SHT_SYMTAB, names);
	return error == -ENODATA ? -EBADMSG : error;
}
