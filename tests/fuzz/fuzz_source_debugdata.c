/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minidebuginfo out of hostile files. The first byte chooses: the rest is the section's packed bytes, or is packed first,
 * so that the search need not invent checksums to reach what stands behind the unpacker.
 */
#include <elf.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "symbols/code/source.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void wrap(struct buf *file, const uint8_t *data, size_t size)
{
	static const char section_names[] = "\0.gnu_debugdata";
	enum { NONE, NAMES, PACKED, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[NAMES] = { .sh_type = SHT_STRTAB, .sh_offset = start + size, .sh_size = sizeof(section_names) },
		[PACKED] = { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = start, .sh_size = size },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, data, size);
	buf_append(file, section_names, sizeof(section_names));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t packed[128 << 10];
	struct code_names *c = code_names_new(NULL, 0);
	struct buf file = BUF_EMPTY;
	struct symbol_files files;
	size_t len = 0;

	if (!c || size < 1) {
		code_names_free(c);
		return 0;
	}
	if (data[0] & 1)
		wrap(&file, data + 1, size - 1);
	else if (!lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, data + 1, size - 1, packed, &len, sizeof(packed)))
		wrap(&file, packed, len);
	files = (struct symbol_files){ .program = { file.data, file.len } };
	source_debugdata(&files, c);
	code_names_finish(c);
	code_names_free(c);
	buf_fini(&file);
	return 0;
}
