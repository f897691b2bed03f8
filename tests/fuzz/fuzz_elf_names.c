/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and ids out of hostile ELF files. The first byte chooses: the rest is the file itself, or it becomes the symbol
 * table and the strings of a file that is otherwise sound, so that the search does not have to invent the headers first.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbols.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file with code at 0x1000..0x1fff whose symbols and strings are @data, divided after the first @symbols_len bytes. */
static void wrap(struct buf *file, const uint8_t *data, size_t size, size_t symbols_len)
{
	enum { CODE = 1, SYMBOLS, STRINGS, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[CODE] = { .sh_type = SHT_NOBITS,
			   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			   .sh_addr = 0x1000,
			   .sh_size = 0x1000 },
		[SYMBOLS] = { .sh_type = SHT_SYMTAB,
			      .sh_offset = start,
			      .sh_size = symbols_len,
			      .sh_link = STRINGS,
			      .sh_entsize = sizeof(Elf64_Sym) },
		[STRINGS] = { .sh_type = SHT_STRTAB, .sh_offset = start + symbols_len, .sh_size = size - symbols_len },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_query queries[] = { { .addr = 0 },      { .addr = 0x1fff }, { .addr = 0x1000 },
					  { .addr = 0x1234 }, { .addr = 0x1080 }, { .addr = UINT64_MAX } };
	AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct buf names = BUF_EMPTY, file = BUF_EMPTY;
	struct build_ids ids;

	if (fd < 0 || size < 1)
		return 0;
	if (data[0] == 0x7f) /* as a real file starts */
		buf_append(&file, data, size);
	else
		wrap(&file, data + 1, size - 1,
		     (size_t)data[0] * sizeof(Elf64_Sym) < size - 1 ? data[0] * sizeof(Elf64_Sym) : 0);
	if (write(fd, file.data, file.len) == (ssize_t)file.len) {
		if (symbols_resolve_elf(fd, queries, ARRAY_LEN(queries), &names) == 0) {
			for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
				const struct symbol_query *q = &queries[i];

				if (q->name_len && (q->sym_addr > q->addr || (size_t)q->name_off + q->name_len > names.len ||
						    (size_t)q->raw_off + q->raw_len > names.len))
					abort();
			}
		}
		build_ids_read(fd, &ids);
	}
	buf_fini(&names);
	buf_fini(&file);
	return 0;
}
