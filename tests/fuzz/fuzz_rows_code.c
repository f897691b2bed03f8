/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary code in a file of one segment, with and without a symbol for all of it: rows must be sorted and inside the
 * range, whatever the instructions do. libFuzzer's time limit sees to it that they are found soon.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/row_builder.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE_ADDR = 0x20000, BLOCK = 256, MAX_CODE = 70000 };

static void wrap(struct buf *file, const uint8_t *code, size_t len, bool has_symbol)
{
	enum { SYMBOLS = 1, STRINGS, SECTIONS };
	static const char names[] = "\0f";
	Elf64_Sym symbols[2] = {
		[1] = { .st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = CODE_ADDR, .st_size = len }
	};
	size_t headers = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + SECTIONS * sizeof(Elf64_Shdr);
	size_t names_at = headers + sizeof(symbols), code_at = names_at + sizeof(names);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64), .e_phoff = sizeof(Elf64_Ehdr), .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		.e_phnum = 1,	     .e_shnum = SECTIONS,
	};
	Elf64_Phdr segment = { .p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = code_at,
			       .p_vaddr = CODE_ADDR,
			       .p_filesz = len,
			       .p_memsz = len };
	Elf64_Shdr sections[SECTIONS] = {
		[SYMBOLS] = { .sh_type = has_symbol ? SHT_SYMTAB : SHT_PROGBITS,
			      .sh_offset = headers,
			      .sh_size = sizeof(symbols),
			      .sh_link = STRINGS,
			      .sh_entsize = sizeof(Elf64_Sym) },
		[STRINGS] = { .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof(names) },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, &segment, sizeof(segment));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, symbols, sizeof(symbols));
	buf_append(file, names, sizeof(names));
	buf_append(file, code, len);
}

static void check_rows(const struct row *rows, size_t count, uint64_t start)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t before = i ? rows[i - 1].end : start;

		if (rows[i].start < before || rows[i].end <= rows[i].start || rows[i].end > start + BLOCK ||
		    !rows[i].is_guess || rows[i].cfa == ROW_CFA_NONE || rows[i].cfa >= ROW_CFA_EXPR ||
		    rows[i].cfa_reg >= USER_REGS)
			abort();
	}
}

/* The first byte: 1 for a symbol, and how many times the code is repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = BUF_EMPTY, code = BUF_EMPTY;
	struct row_image image = { 0 };
	void *state;

	if (size < 2 || elf_version(EV_CURRENT) == EV_NONE)
		return 0;
	for (unsigned int i = 0; i <= data[0] >> 1 && code.len + size < MAX_CODE; i++)
		buf_append(&code, data + 1, size - 1);
	wrap(&file, code.data, code.len, data[0] & 1);
	image.data = file.data;
	image.len = file.len;
	image.elf = elf_memory((char *)file.data, file.len);
	if (image.elf && rows_code.open(&image, &state) == 0) {
		for (uint64_t at = CODE_ADDR; at < CODE_ADDR + code.len; at += BLOCK) {
			struct row rows[BLOCK];
			size_t count;

			if (rows_code.build(state, at, at + BLOCK, rows, BLOCK, &count))
				abort();
			check_rows(rows, count, at);
			rows_code_has_call_before(&image, at);
		}
		rows_code.close(state);
	}
	elf_end(image.elf);
	buf_fini(&file);
	buf_fini(&code);
	return 0;
}
