/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rules out of hostile files: by the first byte, the input is a list of expression operations, or the .eh_frame or
 * .debug_frame (plain or compressed) of a file that is otherwise sound. Rows must keep their promises (sorted, inside the
 * range) whatever the tables say.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/dwarf_expr.h"
#include "agent/rows/row_builder.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libdw takes register numbers up to 2^27 at their word and makes room for them; here it is told that there is little. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=24";
}

enum { CODE_ADDR = 0x1000, CODE_BYTES = 36 };

static int read_hash(void *arg, uint64_t addr, void *dst, size_t len)
{
	uint64_t word = addr * 0x9e3779b97f4a7c15ull;

	(void)arg;
	if (len > sizeof(word))
		abort();
	memcpy(dst, &word, len);
	return addr % 7 == 0;
}

static const struct row_regs regs = {
	.value = { 1, 2, 3, 4, 5, 6, 0x7000, 0x7100, 8, 9, 10, 11, 12, 13, 14, 15, CODE_ADDR },
	.known = 0x1fff8,
};

/* Four bytes an operation: atom, two operands, place. */
static void run_expression(const uint8_t *data, size_t size)
{
	struct dwarf_expr_frame frame = { .regs = &regs, .read = read_hash, .cfa = 0x7200, .has_cfa = true };
	Dwarf_Op ops[256];
	uint64_t value;
	bool is_value;
	size_t count = size / 4 < ARRAY_LEN(ops) ? size / 4 : ARRAY_LEN(ops);

	for (size_t i = 0; i < count; i++, data += 4)
		ops[i] = (Dwarf_Op){ .atom = data[0],
				     .number = (Dwarf_Word)(int8_t)data[1],
				     .number2 = (Dwarf_Word)(int8_t)data[2],
				     .offset = data[3] };
	dwarf_expr_eval(&frame, ops, count, &value, &is_value);
}

/* The kinds of input, low bits of its first byte. */
enum { IS_EXPRESSION = 1, IS_DEBUG_FRAME = 2, IS_COMPRESSED = 4, IS_SEARCHED = 8, TABLE_SHIFT = 4 };

static void wrap(struct buf *file, uint8_t kind, const uint8_t *data, size_t size)
{
	static const char names[] = "\0.eh_frame\0.shstrtab\0.debug_frame";
	enum { EH_FRAME_NAME = 1, SHSTRTAB_NAME = 11, DEBUG_FRAME_NAME = 21 };
	enum { FRAMES = 1, STRINGS, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64), .e_entry = CODE_ADDR + 16, .e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS, .e_shstrndx = STRINGS,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[FRAMES] = { .sh_name = kind & IS_DEBUG_FRAME ? DEBUG_FRAME_NAME : EH_FRAME_NAME,
			     .sh_type = SHT_PROGBITS,
			     .sh_flags = !(kind & IS_DEBUG_FRAME) ? SHF_ALLOC
					 : kind & IS_COMPRESSED	  ? SHF_COMPRESSED
								  : 0,
			     .sh_addr = 0x4000,
			     .sh_offset = start + sizeof(names),
			     .sh_size = size },
		[STRINGS] = { .sh_name = SHSTRTAB_NAME,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = start,
			      .sh_size = sizeof(names) },
	};

	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, names, sizeof(names));
	buf_append(file, data, size);
}

/* A file without sections: .eh_frame behind .eh_frame_hdr, whose table are the last bytes of the input. */
static void wrap_searched(struct buf *file, uint8_t kind, const uint8_t *data, size_t size)
{
	uint32_t entries = kind >> TABLE_SHIFT;
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr segment;
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t count;
	} start = {
		.ehdr = { ELF_HEAD(EM_X86_64), .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 1 },
		.version = 1,
		.frame_encoding = 0x1b, /* relative to itself, 4 bytes */
		.count_encoding = 3,
		.table_encoding = 0x3b, /* relative to the header, 4 bytes */
	};
	size_t table;

	while (entries * 8 > size)
		entries--;
	table = entries * 8;
	start.segment = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				      .p_flags = PF_R,
				      .p_offset = sizeof(start) - 12,
				      .p_vaddr = CODE_ADDR,
				      .p_filesz = 12 + table };
	start.count = entries;
	start.frame = (int32_t)(8 + table);
	buf_append(file, &start, sizeof(start));
	buf_append(file, data + size - table, table);
	buf_append(file, data, size - table);
}

static void run_frames(uint8_t kind, const uint8_t *data, size_t size)
{
	struct buf file = BUF_EMPTY;
	struct row_source *src;
	struct row rows[CODE_BYTES];
	struct row_regs out;
	size_t count;

	if (kind & IS_SEARCHED)
		wrap_searched(&file, kind, data, size);
	else
		wrap(&file, kind, data, size);
	if (row_source_new_memory(file.data, file.len, &src) == 0) {
		if (rows_build(src, CODE_ADDR, CODE_ADDR + CODE_BYTES, rows, ARRAY_LEN(rows), &count))
			abort();
		for (size_t i = 0; i < count; i++) {
			uint64_t before = i ? rows[i - 1].end : CODE_ADDR;

			if (rows[i].start < before || rows[i].end <= rows[i].start || rows[i].end > CODE_ADDR + CODE_BYTES ||
			    rows[i].cfa > ROW_CFA_EXPR || rows[i].cfa_reg >= USER_REGS)
				abort();
			row_eval(src, rows[i].start, &regs, read_hash, NULL, &out);
			row_apply(&rows[i], &regs, read_hash, NULL, &out);
		}
		row_source_free(src);
	}
	buf_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] & IS_EXPRESSION)
		run_expression(data + 1, size - 1);
	else
		run_frames(data[0], data + 1, size - 1);
	return 0;
}
