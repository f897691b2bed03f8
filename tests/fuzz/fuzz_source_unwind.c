/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges out of hostile .eh_frame sections. A range that is found lies where it says, and an index of it says the same. */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "symbols/code/source.h"
#include "symbols/index/index.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTION_ADDR = 0x1000 };

static void wrap(struct buf *file, const uint8_t *data, size_t size)
{
	static const char section_names[] = "\0.eh_frame";
	enum { NONE, NAMES, FRAMES, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[NAMES] = { .sh_type = SHT_STRTAB, .sh_offset = start + size, .sh_size = sizeof(section_names) },
		[FRAMES] = { .sh_name = 1,
			     .sh_type = SHT_PROGBITS,
			     .sh_flags = SHF_ALLOC,
			     .sh_addr = SECTION_ADDR,
			     .sh_offset = start,
			     .sh_size = size },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, data, size);
	buf_append(file, section_names, sizeof(section_names));
}

static void compare(const struct code_names *c)
{
	const struct symbol_index_head head = { .build_id = "ab", .has_ranges = true };
	struct buf bytes = BUF_EMPTY;
	struct symbol_index *x;

	if (symbol_index_write(c, &head, &bytes) || symbol_index_open(bytes.data, bytes.len, &x))
		abort();
	if (symbol_index_sizes(x).functions)
		abort();
	for (uint64_t addr = 0; addr < 2 * SECTION_ADDR; addr += 7) {
		struct code_answer a, b;

		if (!code_names_find(c, addr, &a) || !symbol_index_find(x, addr, &b) || a.start != b.start ||
		    a.size_bytes != b.size_bytes || a.frame_count || b.frame_count ||
		    (a.size_bytes && (addr < a.start || addr - a.start >= a.size_bytes)))
			abort();
	}
	symbol_index_close(x);
	buf_fini(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_names *c = code_names_new(NULL, 0);
	struct buf file = BUF_EMPTY;
	struct symbol_files files;

	if (!c)
		return 0;
	wrap(&file, data, size);
	files = (struct symbol_files){ .program = { file.data, file.len }, .with_ranges = true };
	source_unwind(&files, c);
	if (!code_names_finish(c))
		compare(c);
	code_names_free(c);
	buf_fini(&file);
	return 0;
}
