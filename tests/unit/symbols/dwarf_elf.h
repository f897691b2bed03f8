/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files made by hand around sections of DWARF, with code from DWARF_ELF_CODE on; for tests and the fuzzer. */
#ifndef HEARTH_TESTS_DWARF_ELF_H
#define HEARTH_TESTS_DWARF_ELF_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/elf_head.h"

enum { DWARF_ELF_CODE = 0x1000, DWARF_ELF_CODE_BYTES = 0x1000, DWARF_ELF_MAX = 16 };

struct dwarf_elf_section {
	const char *name;
	const void *data;
	size_t len;
	uint64_t flags;
};

static inline void dwarf_elf_build(struct buf *file, const struct dwarf_elf_section *sections, size_t count)
{
	Elf64_Shdr headers[DWARF_ELF_MAX + 3] = {
		[1] = { .sh_type = SHT_NOBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = DWARF_ELF_CODE,
			.sh_size = DWARF_ELF_CODE_BYTES },
	};
	Elf64_Ehdr e = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = (uint16_t)(count + 3),
		.e_shstrndx = 2,
	};
	uint64_t off = sizeof(e) + (count + 3) * sizeof(Elf64_Shdr);
	struct buf names = BUF_EMPTY;

	buf_putc(&names, 0);
	for (size_t i = 0; i < count; i++) {
		headers[3 + i] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					       .sh_name = (uint32_t)names.len,
					       .sh_flags = sections[i].flags,
					       .sh_offset = off,
					       .sh_size = sections[i].len };
		off += sections[i].len;
		buf_append(&names, sections[i].name, strlen(sections[i].name) + 1);
	}
	headers[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = off, .sh_size = names.len };
	buf_append(file, &e, sizeof(e));
	buf_append(file, headers, (count + 3) * sizeof(Elf64_Shdr));
	for (size_t i = 0; i < count; i++)
		buf_append(file, sections[i].data, sections[i].len);
	buf_append(file, names.data, names.len);
	buf_fini(&names);
}

#endif
