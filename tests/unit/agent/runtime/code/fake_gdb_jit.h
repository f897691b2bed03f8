/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that registered two files for debuggers, as LLVM does: relocatable, with the addresses of their
 * sections in the headers, and with tables of frames that only the loaded copies have right. For tests and the fuzzer.
 */
#ifndef HEARTH_TESTS_FAKE_GDB_JIT_H
#define HEARTH_TESTS_FAKE_GDB_JIT_H

#include <dwarf.h>
#include <string.h>

#include "agent/runtime/code/gdb_jit/gdb_jit.h"
#include "agent/runtime/file/gdb_jit_facts.h"
#include "base/cleanup.h"

#define FAKE_BASE 0x7f0000000000ull
enum {
	FAKE_BYTES = 1 << 16,
	FAKE_DESCRIPTOR = 0x10,
	FAKE_ENTRY = 0x100, /* of file 0, 0x40 bytes each */
	FAKE_FILE = 0x1000, /* of file 0, 0x1000 bytes each */
	FAKE_FILE_BYTES = 0x400,
	FAKE_CODE = 0x8000, /* of file 0, 0x100 bytes each, and a gap as long behind */
	FAKE_CODE_BYTES = 0x100,
	FAKE_FRAMES = 0xa000,
	FAKE_FILES = 2,
	FAKE_NAMES = 0x300, /* in a file */
	FAKE_NAME_BYTES = 32,
};

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used;
	struct code_facts facts;
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

static inline uint64_t fake_entry(int i)
{
	return FAKE_BASE + FAKE_ENTRY + 0x40ul * (uint64_t)i;
}

static inline uint64_t fake_code(int i)
{
	return FAKE_BASE + FAKE_CODE + 2ul * FAKE_CODE_BYTES * (uint64_t)i;
}

static inline void fake_copy(struct fake *f, uint64_t addr, const void *from, size_t bytes)
{
	memcpy(f->bytes + (addr - FAKE_BASE), from, bytes);
}

/* Links the first @count entries, the last one first, as each is registered in front of the others. */
static inline void fake_link(struct fake *f, int count)
{
	uint64_t head[3] = { 1, 0, count ? fake_entry(count - 1) : 0 };

	fake_copy(f, FAKE_BASE + FAKE_DESCRIPTOR, head, sizeof(head));
	for (int i = 0; i < count; i++) {
		struct gdb_jit_entry e = { i ? fake_entry(i - 1) : 0, i + 1 < count ? fake_entry(i + 1) : 0,
					   FAKE_BASE + FAKE_FILE + 0x1000ul * (uint64_t)i, FAKE_FILE_BYTES };

		fake_copy(f, fake_entry(i), &e, sizeof(e));
	}
}

/* A CIE and an FDE for code that pushes rbx in its first byte; @distance: from the FDE's word for its start to that. */
static inline size_t fake_frames(uint8_t *to, int32_t distance)
{
	static const uint8_t cie[] = { 20,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       1,
				       'z',
				       'R',
				       0,
				       1,
				       0x78,
				       16,
				       1,
				       DW_EH_PE_pcrel | DW_EH_PE_sdata4,
				       DW_CFA_def_cfa,
				       7,
				       8,
				       DW_CFA_offset | 16,
				       1,
				       0,
				       0 };
	static const uint8_t fde[] = { 20,
				       0,
				       0,
				       0,
				       28,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       1,
				       0,
				       0,
				       0,
				       DW_CFA_advance_loc | 1,
				       DW_CFA_def_cfa_offset,
				       16,
				       DW_CFA_offset | 3,
				       2,
				       0,
				       0 };

	memcpy(to, cie, sizeof(cie));
	memcpy(to + sizeof(cie), fde, sizeof(fde));
	memcpy(to + sizeof(cie) + 8, &distance, sizeof(distance));
	memset(to + sizeof(cie) + sizeof(fde), 0, 4); /* the end */
	return sizeof(cie) + sizeof(fde) + 4;
}

/* Makes file @i, whose one function, which covers half of the code, is called @name. */
static inline void fake_file(struct fake *f, int i, const char *name)
{
	static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab";
	const uint64_t addr = FAKE_BASE + FAKE_FILE + 0x1000ul * (uint64_t)i, code = fake_code(i),
		       frames = FAKE_BASE + FAKE_FRAMES + 0x100ul * (uint64_t)i;
	uint8_t *file = f->bytes + (addr - FAKE_BASE);
	size_t frame_bytes = fake_frames(file + 0x240, 0);
	const Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
				  .e_type = ET_REL,
				  .e_machine = CPU_ELF_MACHINE,
				  .e_version = EV_CURRENT,
				  .e_shoff = 64,
				  .e_ehsize = 64,
				  .e_shentsize = 64,
				  .e_shnum = 5,
				  .e_shstrndx = 4 };
	const Elf64_Shdr sections[] = {
		{ 0 },
		{ 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, 0x1c0, 16, 0, 0, 16, 0 },
		{ 7, SHT_PROGBITS, SHF_ALLOC, frames, 0x240, frame_bytes, 0, 0, 8, 0 },
		{ 17, SHT_SYMTAB, 0, 0, 0x2c0, 2 * sizeof(Elf64_Sym), 4, 1, 8, sizeof(Elf64_Sym) },
		{ 25, SHT_STRTAB, 0, 0, FAKE_NAMES, sizeof(names) + FAKE_NAME_BYTES, 0, 0, 1, 0 },
	};
	const Elf64_Sym symbol = { sizeof(names), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, FAKE_CODE_BYTES / 2 };

	memcpy(file, &head, sizeof(head));
	memcpy(file + 64, sections, sizeof(sections));
	((Elf64_Shdr *)(void *)(file + 64))[1].sh_size = FAKE_CODE_BYTES;
	memcpy(file + 0x2c0 + sizeof(symbol), &symbol, sizeof(symbol));
	memcpy(file + FAKE_NAMES, names, sizeof(names));
	strncpy((char *)file + FAKE_NAMES + sizeof(names), name, FAKE_NAME_BYTES - 1);
	fake_frames(f->bytes + (frames - FAKE_BASE), (int32_t)(code - (frames + 24 + 8)));
	memcpy(f->bytes + (frames - FAKE_BASE) + 24 + 12, &(uint32_t){ FAKE_CODE_BYTES / 2 }, 4);
	memset(f->bytes + (code - FAKE_BASE), 0x90 + i, FAKE_CODE_BYTES);
}

static inline void fake_make(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	fake_file(f, 0, "first");
	fake_file(f, 1, "_ZN4shop4sellB2v1B8c8tJTIeFEi");
	fake_link(f, FAKE_FILES);
	f->facts.id = CODE_GDB_JIT;
	f->facts.fact[GDB_JIT_FACT_DESCRIPTOR] = FAKE_DESCRIPTOR;
}

#endif
