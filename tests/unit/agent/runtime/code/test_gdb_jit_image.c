/* SPDX-License-Identifier: Apache-2.0 */
/* Files that programs register for debuggers: the copy that is read of one has relocated debug sections, the tables of
 * frames that were loaded, and nothing beyond its bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "agent/cpu/cpu.h"
#include "tests/unit/agent/runtime/code/fake_gdb_jit.h"

enum {
	FILE_AT = 0x1000,
	FILE_BYTES = 0x800,
	DEBUG = 0x400, /* offsets in the file */
	DEBUG_BYTES = 0x40,
	RELOCATIONS = 0x480,
	SYMBOLS = 0x700,
	NAMES = 0x780,
	LOADED = 0x4000, /* frames in memory */
	TEXT = 0x8000,
#ifdef __x86_64__
	WORD = R_X86_64_64,
	HALF = R_X86_64_32,
	OTHER = R_X86_64_PC32,
#else
	WORD = R_AARCH64_ABS64,
	HALF = R_AARCH64_ABS32,
	OTHER = R_AARCH64_PREL32,
#endif
};

enum { S_NONE, S_TEXT, S_DEBUG, S_RELA, S_SYMTAB, S_NAMES, S_FRAMES, S_COUNT };

static struct fake fake;
static Elf64_Shdr *sections;
static Elf64_Ehdr *head;
static Elf64_Rela *relocations;
static struct code_memory memory;

static int make(void **state)
{
	static const char names[] = "\0.text\0.debug_info\0.rela\0.symtab\0.eh_frame";
	uint8_t *file = fake.bytes + FILE_AT;
	Elf64_Sym *symbols = (Elf64_Sym *)(void *)(file + SYMBOLS);

	(void)state;
	memset(&fake, 0, sizeof(fake));
	head = (Elf64_Ehdr *)(void *)file;
	*head = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_REL,
			      .e_machine = CPU_ELF_MACHINE,
			      .e_version = EV_CURRENT,
			      .e_shoff = 64,
			      .e_ehsize = 64,
			      .e_shentsize = 64,
			      .e_shnum = S_COUNT,
			      .e_shstrndx = S_NAMES };
	sections = (Elf64_Shdr *)(void *)(file + 64);
	sections[S_TEXT] = (Elf64_Shdr){
		1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FAKE_BASE + TEXT, 0x3c0, 16, 0, 0, 16, 0
	};
	sections[S_DEBUG] = (Elf64_Shdr){ 7, SHT_PROGBITS, 0, 0, DEBUG, DEBUG_BYTES, 0, 0, 8, 0 };
	sections[S_RELA] = (Elf64_Shdr){ 19, SHT_RELA, 0, 0, RELOCATIONS, 0, S_SYMTAB, S_DEBUG, 8, sizeof(Elf64_Rela) };
	sections[S_SYMTAB] = (Elf64_Shdr){ 25, SHT_SYMTAB,	0, 0, SYMBOLS, 3 * sizeof(*symbols), S_NAMES, 1,
					   8,  sizeof(*symbols) };
	sections[S_NAMES] = (Elf64_Shdr){ 0, SHT_STRTAB, 0, 0, NAMES, sizeof(names), 0, 0, 1, 0 };
	sections[S_FRAMES] = (Elf64_Shdr){ 33, SHT_PROGBITS, SHF_ALLOC, FAKE_BASE + LOADED, 0x3e0, 16, 0, 0, 8, 0 };
	memset(file + DEBUG, 0x11, DEBUG_BYTES);
	memset(file + 0x3e0, 0x22, 16);
	memset(fake.bytes + LOADED, 0x33, 16);
	memcpy(file + NAMES, names, sizeof(names));
	symbols[1] = (Elf64_Sym){ .st_value = 0x10, .st_shndx = S_TEXT };
	symbols[2] = (Elf64_Sym){ .st_value = 0x10, .st_shndx = S_COUNT };
	relocations = (Elf64_Rela *)(void *)(file + RELOCATIONS);
	memory = (struct code_memory){ .read = fake_read,
				       .arg = &fake,
				       .reads_left = CODE_MAX_READS,
				       .bytes_left = CODE_MAX_BYTES,
				       .end_ns = UINT64_MAX };
	return 0;
}

static void add(uint64_t off, uint32_t symbol, uint32_t type, int64_t addend)
{
	*relocations++ = (Elf64_Rela){ off, ELF64_R_INFO((uint64_t)symbol, type), addend };
	sections[S_RELA].sh_size += sizeof(*relocations);
}

/* The @bytes at @off of the debug section, of the copy; those that nobody changed are 0x11. */
static uint64_t word_at(uint64_t off, size_t bytes)
{
	uint8_t *copy = gdb_jit_image_read(&memory, FAKE_BASE + FILE_AT, FILE_BYTES);
	uint64_t value = 0;

	assert_non_null(copy);
	memcpy(&value, copy + DEBUG + off, bytes);
	free(copy);
	return value;
}

static void debug_sections_are_relocated(void **state)
{
	const uint64_t value = FAKE_BASE + TEXT + 0x10, same = 0x1111111111111111;

	(void)state;
	add(0, 1, WORD, 5);
	add(DEBUG_BYTES - 8, 1, WORD, -1); /* as far as may be */
	add(8, 1, HALF, 1);
	add(DEBUG_BYTES - 12, 1, HALF, 2);
	add(16, 1, OTHER, 0);
	add(24, 2, WORD, 0); /* of no section */
	add(32, 3, WORD, 0); /* of no symbol */
	add(40, 0, WORD, 0); /* is not defined */
	add(DEBUG_BYTES, 1, WORD, 0);
	add(UINT64_MAX - 3, 1, WORD, 0);
	assert_true(word_at(0, 8) == value + 5);
	assert_true(word_at(DEBUG_BYTES - 8, 8) == value - 1);
	assert_true(word_at(8, 8) == ((value + 1) & UINT32_MAX) + 0x1111111100000000);
	assert_true(word_at(DEBUG_BYTES - 12, 4) == ((value + 2) & UINT32_MAX));
	for (uint64_t off = 16; off < 48; off += 8)
		assert_true(word_at(off, 8) == same);
	add(DEBUG_BYTES - 7, 1, WORD, 0); /* a byte too far */
	assert_true(word_at(DEBUG_BYTES - 8, 8) == value - 1);
}

static void other_sections_are_not(void **state)
{
	static const enum {
		FINE,
		EXECUTABLE,
		NO_TARGET,
		NO_SYMBOLS,
		NO_SYMTAB,
		COMPRESSED,
		NAMELESS,
		OTHER_NAME
	} cases[] = { FINE, EXECUTABLE, NO_TARGET, NO_SYMBOLS, NO_SYMTAB, COMPRESSED, NAMELESS, OTHER_NAME };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(state);
		add(0, 1, WORD, 0);
		head->e_type = cases[i] == EXECUTABLE ? ET_DYN : ET_REL;
		sections[S_RELA].sh_info = cases[i] == NO_TARGET ? S_COUNT : S_DEBUG;
		sections[S_RELA].sh_link = cases[i] == NO_SYMBOLS ? S_COUNT : S_SYMTAB;
		sections[S_SYMTAB].sh_type = cases[i] == NO_SYMTAB ? SHT_PROGBITS : SHT_SYMTAB;
		sections[S_DEBUG].sh_flags = cases[i] == COMPRESSED ? SHF_COMPRESSED : 0;
		head->e_shstrndx = cases[i] == NAMELESS ? 0 : S_NAMES;
		sections[S_DEBUG].sh_name = cases[i] == OTHER_NAME ? 25 : 7;
		assert_int_equal(word_at(0, 8) == 0x1111111111111111, cases[i] != FINE);
	}
}

static void frames_are_those_that_were_loaded(void **state)
{
	static const struct {
		uint64_t flags, addr;
		uint32_t name;
		uint8_t wanted;
	} cases[] = {
		{ SHF_ALLOC, FAKE_BASE + LOADED, 33, 0x33 },
		{ 0, FAKE_BASE + LOADED, 33, 0x22 },
		{ SHF_ALLOC, 0, 33, 0x22 },
		{ SHF_ALLOC, FAKE_BASE + LOADED, 1, 0x22 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t *copy;

		make(state);
		sections[S_FRAMES].sh_flags = cases[i].flags;
		sections[S_FRAMES].sh_addr = cases[i].addr;
		sections[S_FRAMES].sh_name = cases[i].name;
		copy = gdb_jit_image_read(&memory, FAKE_BASE + FILE_AT, FILE_BYTES);
		assert_non_null(copy);
		for (int k = 0; k < 16; k++)
			assert_int_equal(copy[0x3e0 + k], cases[i].wanted);
		free(copy);
	}
}

static void nothing_but_a_file_is_read(void **state)
{
	static const struct {
		uint64_t addr, bytes;
	} cases[] = { { FAKE_BASE + FAKE_BYTES - 64, FILE_BYTES },
		      { FAKE_BASE + FILE_AT + 1, FILE_BYTES },
		      { FAKE_BASE + FILE_AT, GDB_JIT_MAX_IMAGE_BYTES + 1ull },
		      { FAKE_BASE + FILE_AT, 63 },
		      { FAKE_BASE + FILE_AT, FAKE_BYTES } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_null(gdb_jit_image_read(&memory, cases[i].addr, cases[i].bytes));
	for (uint32_t reads = 0; reads < 3; reads++) {
		memory.reads_left = reads;
		assert_null(gdb_jit_image_read(&memory, FAKE_BASE + FILE_AT, FILE_BYTES));
	}
}

static int sections_error(uint64_t bytes)
{
	struct gdb_jit_sections s;
	int error = gdb_jit_sections_read(&memory, FAKE_BASE + FILE_AT, bytes, &s);

	if (!error)
		assert_int_equal(s.count, head->e_shnum);
	else
		assert_true(!s.all && !s.count);
	gdb_jit_sections_free(&s);
	return error;
}

static void heads_are_of_this_machine(void **state)
{
	static const enum {
		FINE,
		IDENT,
		MACHINE,
		ENTRY,
		MANY,
		MOST,
		BEHIND,
		TOO_LONG,
		WHOLE
	} cases[] = { FINE, IDENT, MACHINE, ENTRY, MANY, MOST, BEHIND, TOO_LONG, WHOLE };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(state);
		head->e_ident[5] ^= cases[i] == IDENT;
		head->e_machine ^= cases[i] == MACHINE;
		head->e_shentsize -= cases[i] == ENTRY;
		head->e_shnum = cases[i] == MANY   ? GDB_JIT_MAX_SECTIONS + 1
				: cases[i] == MOST ? GDB_JIT_MAX_SECTIONS
						   : S_COUNT;
		head->e_shoff = cases[i] == BEHIND     ? 1 << 14
				: cases[i] == TOO_LONG ? FILE_BYTES - 64 * S_COUNT + 1
				: cases[i] == WHOLE    ? FILE_BYTES - 64 * S_COUNT
						       : 64;
		assert_int_equal(sections_error(cases[i] == MOST || cases[i] == MANY ? 1 << 20 : FILE_BYTES),
				 cases[i] == FINE || cases[i] == WHOLE ? 0
				 : cases[i] == MOST		       ? -EFAULT /* may be so many, but is not there */
								       : -EBADMSG);
	}
	make(state);
	assert_int_equal(sections_error(63), -EBADMSG);
	memory.reads_left = 1;
	assert_int_equal(sections_error(FILE_BYTES), -EDQUOT);
}

static void code_is_below_the_kernel(void **state)
{
	const uint64_t top = 1ull << CPU_USER_BITS, both = SHF_ALLOC | SHF_EXECINSTR;
	const struct {
		uint64_t flags, addr, size;
		bool is_code;
	} cases[] = {
		{ both, 0x1000, 1, true },     { SHF_ALLOC, 0x1000, 1, false }, { SHF_EXECINSTR, 0x1000, 1, false },
		{ both, 0, 1, false },	       { both, 0x1000, 0, false },	{ both, top - 16, 16, true },
		{ both, top - 16, 17, false }, { both, top, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const Elf64_Shdr sh = { .sh_flags = cases[i].flags, .sh_addr = cases[i].addr, .sh_size = cases[i].size };

		assert_int_equal(gdb_jit_is_code(&sh), cases[i].is_code);
	}
}

/* --- functions of the file's symbols --- */

enum { CODE_BYTES = 0x100 };

/* The piece of the code that @pc, from its begin, is in, as "START END NAME" with offsets; of the symbols @symbols. */
static void piece_is(const Elf64_Sym *symbols, size_t count, uint64_t pc, const char *wanted)
{
	static const char names[] = "\0.text\0.symtab\0one\0two"; /* "one" at 15, "two" at 19 */
	const uint64_t start = FAKE_BASE + TEXT, file = FAKE_BASE + FILE_AT;
	const struct gdb_jit_code code = { .image = file,
					   .bytes = FILE_BYTES,
					   .header = file + 64 + S_TEXT * sizeof(Elf64_Shdr),
					   .start = start,
					   .end = start + CODE_BYTES };
	struct gdb_jit_piece piece;
	char text[64];

	memcpy(fake.bytes + FILE_AT + NAMES, names, sizeof(names));
	sections[S_NAMES].sh_size = sizeof(names);
	memcpy(fake.bytes + FILE_AT + SYMBOLS, symbols, count * sizeof(*symbols));
	sections[S_SYMTAB].sh_size = count * sizeof(*symbols);
	assert_int_equal(gdb_jit_piece_find(&memory, &code, start + pc, &piece), 0);
	snprintf(text, sizeof(text), "%x %x %s", (unsigned)(piece.start - start), (unsigned)(piece.end - start),
		 piece.name ? (const char *)fake_at(&fake, piece.name) : "-");
	if (strcmp(text, wanted) != 0)
		fail_msg("at %x: %s, not %s", (unsigned)pc, text, wanted);
}

#define FUNCTION(name, value, size)                                               \
	{                                                                         \
		name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, S_TEXT, value, size \
	}

/* A function is the piece between its begin and its end; one without a size ends where the next begins. */
static void pieces_are_between_borders(void **state)
{
	const Elf64_Sym symbols[] = { FUNCTION(15, 0x10, 0x20), FUNCTION(19, 0x40, 0), FUNCTION(15, 0x80, 0x80) };
	static const struct {
		uint64_t pc;
		const char *wanted;
	} cases[] = {
		{ 0, "0 10 -" },       { 0xf, "0 10 -" },      { 0x10, "10 30 one" },
		{ 0x2f, "10 30 one" }, { 0x30, "30 40 -" },    { 0x40, "40 80 two" },
		{ 0x7f, "40 80 two" }, { 0x80, "80 100 one" }, { 0xff, "80 100 one" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(state);
		piece_is(symbols, ARRAY_LEN(symbols), cases[i].pc, cases[i].wanted);
	}
}

/* Symbols of other kinds, of other sections and of no name tell nothing; the innermost of nested functions counts. */
static void pieces_are_of_functions(void **state)
{
	static const struct {
		Elf64_Sym symbols[2];
		const char *wanted; /* at 0x20 */
	} cases[] = {
		{ { FUNCTION(15, 0x10, 0x30), FUNCTION(19, 0x18, 0x10) }, "18 28 two" },
		{ { FUNCTION(19, 0x18, 0x10), FUNCTION(15, 0x10, 0x30) }, "18 28 two" },
		{ { FUNCTION(15, 0x10, 0x30), FUNCTION(19, 0x18, 0x8) }, "20 40 one" },
		{ { FUNCTION(15, 0x10, 0x30), FUNCTION(0, 0x10, 0x30) }, "10 40 one" },
		{ { FUNCTION(15, 0x10, 0x30), FUNCTION(23, 0x10, 0x30) }, "10 40 one" }, /* behind the names */
		{ { FUNCTION(15, 0x10, 0x30), FUNCTION(19, 0x18, UINT64_MAX) }, "10 40 one" },
		{ { FUNCTION(15, 0x10, 0x30), { 19, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, S_TEXT, 0x18, 0x10 } },
		  "10 40 one" },
		{ { FUNCTION(15, 0x10, 0x30), { 19, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, S_DEBUG, 0x18, 0x10 } },
		  "10 40 one" },
		{ { FUNCTION(15, 0x21, 0x30), FUNCTION(19, 0, 0x20) }, "20 21 -" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(state);
		piece_is(cases[i].symbols, 2, 0x20, cases[i].wanted);
	}
}

/* Values are addresses in what is linked, and offsets in what is not; without symbols all is one piece. */
static void pieces_of_every_kind_of_file(void **state)
{
	Elf64_Sym symbol = FUNCTION(15, FAKE_BASE + TEXT + 0x10, 0x20);

	make(state);
	head->e_type = ET_DYN;
	piece_is(&symbol, 1, 0x18, "10 30 one");
	symbol.st_value = 0x10;
	make(state);
	piece_is(&symbol, 1, 0x18, "10 30 one");
	make(state);
	piece_is(&symbol, 0, 0x18, "0 100 -");
	make(state);
	sections[S_SYMTAB].sh_type = SHT_PROGBITS;
	piece_is(&symbol, 1, 0x18, "0 100 -");
	make(state);
	sections[S_SYMTAB].sh_link = S_COUNT;
	piece_is(&symbol, 1, 0x18, "0 100 -");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(debug_sections_are_relocated, make),
		cmocka_unit_test_setup(other_sections_are_not, make),
		cmocka_unit_test_setup(frames_are_those_that_were_loaded, make),
		cmocka_unit_test_setup(nothing_but_a_file_is_read, make),
		cmocka_unit_test_setup(heads_are_of_this_machine, make),
		cmocka_unit_test_setup(code_is_below_the_kernel, make),
		cmocka_unit_test(pieces_are_between_borders),
		cmocka_unit_test(pieces_are_of_functions),
		cmocka_unit_test(pieces_of_every_kind_of_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
