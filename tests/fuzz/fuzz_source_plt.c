/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PLT stubs out of hostile files. The first byte chooses: the rest is the file itself, or it becomes the stubs, relocations,
 * symbols and strings of a file that is otherwise sound. The second chooses the CPU, the next three how it is divided.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "symbols/code/source.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE_ADDR = 0x1000, HEAD = 4 };

static void wrap(struct buf *file, const uint8_t *data, size_t size)
{
	static const char section_names[] = "\0.plt";
	enum { NONE, NAMES, STUBS, RELOCATIONS, SYMBOLS, STRINGS, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr), body = size - HEAD;
	size_t stubs = body * data[1] / 256 & ~7ul, relocations = (body - stubs) * data[2] / 256,
	       symbols = (body - stubs - relocations) * data[3] / 256;
	Elf64_Ehdr ehdr = {
		ELF_HEAD(data[0] & 1 ? EM_AARCH64 : EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[NAMES] = { .sh_type = SHT_STRTAB, .sh_offset = start + body, .sh_size = sizeof(section_names) },
		[STUBS] = { .sh_name = 1,
			    .sh_type = SHT_PROGBITS,
			    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			    .sh_addr = CODE_ADDR },
		[RELOCATIONS] = { .sh_type = SHT_RELA, .sh_flags = SHF_ALLOC },
		[SYMBOLS] = { .sh_type = SHT_DYNSYM, .sh_link = STRINGS },
		[STRINGS] = { .sh_type = SHT_STRTAB },
	};
	const size_t sizes[] = { stubs, relocations, symbols, body - stubs - relocations - symbols };

	for (size_t i = 0; i < 4; start += sizes[i++]) {
		sections[STUBS + i].sh_offset = start;
		sections[STUBS + i].sh_size = sizes[i];
	}
	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, data + HEAD, body);
	buf_append(file, section_names, sizeof(section_names));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_names *c = code_names_new(NULL, 0);
	struct buf file = BUF_EMPTY;
	struct symbol_files files;

	if (!c || size < 1 + HEAD) {
		code_names_free(c);
		return 0;
	}
	if (data[0] == 0x7f)
		buf_append(&file, data, size);
	else
		wrap(&file, data + 1, size - 1);
	files = (struct symbol_files){ .program = { file.data, file.len } };
	source_plt(&files, c);
	code_names_finish(c);
	for (uint64_t addr = CODE_ADDR; addr < CODE_ADDR + 256; addr += 4) {
		struct code_answer answer;

		if (code_names_find(c, addr, &answer) == 0 && (answer.start > addr || addr - answer.start >= 24))
			abort();
	}
	code_names_free(c);
	buf_fini(&file);
	return 0;
}
