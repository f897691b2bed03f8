/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file with one section of notes, for tests of their reader. */
#ifndef HEARTH_TESTS_NOTES_FILE_H
#define HEARTH_TESTS_NOTES_FILE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/elf_head.h"

/* Appends to @file a file whose .note.stapsdt is the @len @notes, and whose .stapsdt.base is at @base (0: there is none). */
static inline void notes_file(struct buf *file, const void *notes, size_t len, uint64_t base)
{
	static const char names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base";
	enum { NONE, NAMES, NOTES, BASE, SECTIONS };
	size_t at = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[NAMES] = { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names) },
		[NOTES] = { .sh_name = 11, .sh_type = SHT_NOTE, .sh_offset = at + sizeof(names), .sh_size = len },
		[BASE] = { .sh_name = base ? 25 : 0, .sh_type = SHT_NOBITS, .sh_addr = base },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, names, sizeof(names));
	buf_append(file, notes, len);
}

/* Appends a note. */
static inline void notes_add(struct buf *notes, uint64_t addr, uint64_t base, uint64_t semaphore, const char *texts,
			     size_t texts_len)
{
	const Elf64_Nhdr head = { .n_namesz = 8, .n_descsz = (Elf64_Word)(24 + texts_len), .n_type = 3 };
	const uint64_t addresses[] = { addr, base, semaphore };

	buf_append(notes, &head, sizeof(head));
	buf_append(notes, "stapsdt", 8);
	buf_append(notes, addresses, sizeof(addresses));
	buf_append(notes, texts, texts_len);
	while (notes->len % 4)
		buf_putc(notes, '\0');
}

#endif
