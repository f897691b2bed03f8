/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stripped file with V8 in it, made in memory: constants for debuggers in .dynsym, V8's own tables of its builtins, their
 * code, the lengths of bytecodes. Builtin number i has i % 90 + 7 bytes of code. Part 0 of the file is loaded at 0, the
 * code at MADE_V8_CODE_PART, behind MADE_V8_BEFORE bytes of other code.
 */
#ifndef HEARTH_TESTS_MADE_V8_H
#define HEARTH_TESTS_MADE_V8_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/elf_head.h"

enum {
	MADE_V8_BUILTINS = 700,
	MADE_V8_ENTRY = 5, /* these builtins have the names of V8's */
	MADE_V8_PROLOGUE = 6,
	MADE_V8_HANDLERS = 600,
	MADE_V8_CODE_PART = 0x200000,
	MADE_V8_BEFORE = 96,
	MADE_V8_CODE = MADE_V8_CODE_PART + MADE_V8_BEFORE,
	MADE_V8_BYTECODES = 198,
};

struct made_v8_symbol {
	const char *name;
	int32_t value;
};

struct made_v8 {
	const struct made_v8_symbol *symbols; /* of .dynsym; v8dbg_SmiTag stands in front of them */
	size_t symbol_cnt;
	uint32_t stride; /* of the places: 12, 16, 28, 32 */
	bool is_fixed;	 /* pointers stand in the table itself; else in relocations */
	bool has_empty;	 /* each tenth builtin has an empty entry in the table of names */
	bool has_before; /* what stands in front of that table looks like an entry of it */
	/* Spoils the file: */
	uint32_t names_less;	/* so many names are missing, at the end */
	uint32_t bad_place;	/* the place of this builtin, if not 0, is one byte longer than there is room */
	uint32_t bad_padding;	/* there is other code behind this builtin, if not 0 */
	bool has_symtab;	/* .dynsym is called .symtab */
	bool has_no_constants;	/* v8dbg_SmiTag is missing */
	bool has_other_lengths; /* two tables of lengths differ */
};

static inline uint32_t made_v8_size(uint32_t i)
{
	return i % 90 + 7;
}

/* Where the code of builtin @i begins, behind the first one's. */
static inline uint32_t made_v8_start(uint32_t i)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < i; k++)
		at = (at + made_v8_size(k)) / 32 * 32 + 32;
	return at;
}

static void made_v8_name(uint32_t i, char name[static 40])
{
	if (i == MADE_V8_ENTRY)
		snprintf(name, 40, "InterpreterEntryTrampoline");
	else if (i == MADE_V8_PROLOGUE)
		snprintf(name, 40, "BaselineOutOfLinePrologue");
	else if (i == MADE_V8_HANDLERS)
		snprintf(name, 40, "WideHandler");
	else
		snprintf(name, 40, i > MADE_V8_HANDLERS ? "Builtin%uHandler" : "Builtin_%u", i);
}

static inline bool made_v8_is_empty(const struct made_v8 *m, uint32_t i)
{
	return m->has_empty && i % 10 == 8;
}

static inline void made_v8_u32(struct buf *b, uint32_t value)
{
	buf_append(b, &value, sizeof(value));
}

static inline void made_v8_u64(struct buf *b, uint64_t value)
{
	buf_append(b, &value, sizeof(value));
}

static inline void made_v8_align(struct buf *b, size_t step)
{
	while (b->len % step)
		buf_putc(b, 1); /* no place begins so */
}

/* The table of names, in front of whose first one stands what is none; @relocations is appended to. */
static void made_v8_names(const struct made_v8 *m, struct buf *file, struct buf *relocations)
{
	uint64_t addr[MADE_V8_BUILTINS];

	buf_puts(file, "text");
	buf_putc(file, 0);
	for (uint32_t i = 0; i < MADE_V8_BUILTINS; i++) {
		char name[40];

		made_v8_name(i, name);
		addr[i] = file->len;
		buf_append(file, name, strlen(name) + 1);
	}
	made_v8_align(file, 8);
	for (int i = 0; i < 3; i++)
		made_v8_u64(file, !m->has_before ? UINT64_MAX : i ? 0 : addr[0]);
	for (uint32_t i = 0; i < MADE_V8_BUILTINS - m->names_less; i++) {
		Elf64_Rela rela = { file->len, ELF64_R_INFO(0, R_X86_64_RELATIVE), (int64_t)addr[i] };
		const bool is_empty = made_v8_is_empty(m, i);

		if (!m->is_fixed && !is_empty)
			buf_append(relocations, &rela, sizeof(rela));
		made_v8_u64(file, m->is_fixed && !is_empty ? addr[i] : 0);
		made_v8_u64(file, is_empty ? 0 : i % 8);
		made_v8_u64(file, is_empty ? 0 : i);
	}
	for (int i = 0; i < 3; i++)
		made_v8_u64(file, UINT64_MAX);
}

static void made_v8_places(const struct made_v8 *m, struct buf *file)
{
	for (int i = 0; i < 6; i++)
		made_v8_u32(file, 0x12345678); /* hashes */
	for (uint32_t i = 0; i < MADE_V8_BUILTINS; i++) {
		made_v8_u32(file, made_v8_start(i));
		made_v8_u32(file,
			    m->bad_place && i == m->bad_place ? made_v8_start(i + 1) - made_v8_start(i) : made_v8_size(i));
		for (uint32_t k = 8; k < m->stride; k += 4)
			made_v8_u32(file, i * 4);
	}
	for (int i = 0; i < 32; i++)
		made_v8_u32(file, 0x12345679);
}

static void made_v8_lengths(struct buf *file, uint8_t last)
{
	static const uint8_t first[3][11] = { { 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6 },
					      { 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9 },
					      { 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15 } };

	for (uint32_t scale = 0; scale < 3; scale++) {
		buf_append(file, first[scale], sizeof(first[scale]));
		for (uint32_t i = sizeof(first[0]); i < MADE_V8_BYTECODES - 1; i++)
			buf_putc(file, (char)(2 + i % 4 + (i % 3) * ((1u << scale) - 1)));
		buf_putc(file, (char)last);
	}
	buf_putc(file, 0);
}

static void made_v8_code(const struct made_v8 *m, struct buf *file)
{
	const size_t start = file->len + MADE_V8_BEFORE;

	while (file->len < start)
		buf_putc(file, (char)0xcc);
	for (uint32_t i = 0; i < MADE_V8_BUILTINS; i++) {
		for (uint32_t k = 1; k < made_v8_size(i); k++)
			buf_putc(file, (char)0xf8); /* clc: no padding */
		buf_putc(file, (char)0xc3);	    /* ret */
		buf_putc(file, (char)(m->bad_padding && i == m->bad_padding ? 0x90 : 0xcc));
		while (file->len - start < made_v8_start(i + 1))
			buf_putc(file, (char)0xcc);
	}
}

/* Makes the file. */
static void made_v8(const struct made_v8 *m, struct buf *file)
{
	enum { SECTIONS = 4, PARTS = 3, SYMBOLS = 1, NAMES, SECTION_NAMES };
	static const char section_names[] = "\0.dynsym\0.dynstr\0.symtab";
	struct buf relocations = BUF_EMPTY, symbols = BUF_EMPTY, names = BUF_EMPTY;
	Elf64_Shdr sections[SECTIONS] = { { 0 } };
	Elf64_Phdr parts[PARTS] = { { .p_type = PT_LOAD, .p_flags = PF_R },
				    { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = MADE_V8_CODE_PART },
				    { .p_type = PT_DYNAMIC } };
	Elf64_Ehdr ehdr = { ELF_HEAD(EM_X86_64), .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phnum = PARTS,	 .e_shoff = sizeof(Elf64_Ehdr) + sizeof(parts),
			    .e_shnum = SECTIONS, .e_shstrndx = SECTION_NAMES };
	const size_t head = sizeof(ehdr) + sizeof(parts) + sizeof(sections);
	Elf64_Dyn dynamic[3] = { { .d_tag = DT_RELA }, { .d_tag = DT_RELASZ }, { .d_tag = DT_NULL } };

	buf_reset(file);
	while (file->len < head)
		buf_putc(file, 0);
	buf_putc(&names, 0);
	for (size_t i = 0; i <= m->symbol_cnt; i++) {
		const struct made_v8_symbol first = { "v8dbg_SmiTag", 0 }, *s = i ? &m->symbols[i - 1] : &first;
		Elf64_Sym sym = { .st_name = (uint32_t)names.len,
				  .st_shndx = 1,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
				  .st_value = file->len,
				  .st_size = 4 };

		if (!i && m->has_no_constants)
			continue;
		buf_append(&symbols, &sym, sizeof(sym));
		buf_append(&names, s->name, strlen(s->name) + 1);
		made_v8_u32(file, (uint32_t)s->value);
	}
	made_v8_names(m, file, &relocations);
	made_v8_lengths(file, 7);
	made_v8_lengths(file, m->has_other_lengths ? 8 : 7);
	made_v8_align(file, 8);
	made_v8_places(m, file);
	made_v8_align(file, 8);
	dynamic[0].d_un.d_ptr = file->len;
	dynamic[1].d_un.d_val = relocations.len;
	buf_append(file, relocations.data, relocations.len);
	parts[2].p_offset = parts[2].p_vaddr = file->len;
	parts[2].p_filesz = sizeof(dynamic);
	buf_append(file, dynamic, sizeof(dynamic));
	parts[0].p_filesz = file->len;
	made_v8_align(file, 4096);
	parts[1].p_offset = file->len;
	made_v8_code(m, file);
	parts[1].p_filesz = file->len - parts[1].p_offset;
	sections[SYMBOLS] = (Elf64_Shdr){ .sh_name = m->has_symtab ? 17 : 1,
					  .sh_type = m->has_symtab ? SHT_SYMTAB : SHT_DYNSYM,
					  .sh_link = NAMES,
					  .sh_entsize = sizeof(Elf64_Sym),
					  .sh_offset = file->len,
					  .sh_size = symbols.len };
	buf_append(file, symbols.data, symbols.len);
	sections[NAMES] = (Elf64_Shdr){ .sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = file->len, .sh_size = names.len };
	buf_append(file, names.data, names.len);
	sections[SECTION_NAMES] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
						.sh_offset = file->len,
						.sh_size = sizeof(section_names) };
	buf_append(file, section_names, sizeof(section_names));
	if (!file->failed) {
		memcpy(file->data, &ehdr, sizeof(ehdr));
		memcpy(file->data + sizeof(ehdr), parts, sizeof(parts));
		memcpy(file->data + sizeof(ehdr) + sizeof(parts), sections, sizeof(sections));
	}
	buf_fini(&relocations);
	buf_fini(&symbols);
	buf_fini(&names);
}

#endif
