/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about runtimes out of hostile ELF files. Where the input does not begin as a file does, its parts become the
 * sections of one that is sound: symbols, their names, the hash table, and bytes at the addresses from 0 on. One without
 * symbols is a program that was stripped, whose code and data are all those bytes.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "tests/fuzz/require.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file of @data, divided by its first three bytes, in eighths of a kilobyte, symbols, names and hash table; the rest is
 * loaded. */
static void wrap(struct buf *file, const uint8_t *data, size_t size)
{
	static const char section_names[] = "\0.dynsym\0.dynstr\0.gnu.hash\0.PyRuntime\0.text\0.rodata";
	enum { SYMBOLS = 1, NAMES, HASH, STRINGS, RUNTIME, TEXT, RODATA, SECTIONS };
	size_t at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + SECTIONS * sizeof(Elf64_Shdr) + sizeof(section_names),
	       parts[3];
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64), .e_phoff = sizeof(Elf64_Ehdr),
		.e_phnum = 1,	     .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		.e_shnum = SECTIONS, .e_shstrndx = STRINGS,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[SYMBOLS] = { .sh_name = 1, .sh_type = SHT_DYNSYM },
		[NAMES] = { .sh_name = 9, .sh_type = SHT_STRTAB },
		[HASH] = { .sh_name = 17, .sh_type = SHT_GNU_HASH },
		[STRINGS] = { .sh_type = SHT_STRTAB,
			      .sh_offset = at - sizeof(section_names),
			      .sh_size = sizeof(section_names) },
	};
	Elf64_Phdr ph = { .p_type = PT_LOAD };
	size_t rest = size - 3;

	for (int i = 0; i < 3; i++) {
		parts[i] = data[i] * (size_t)(i == 0 ? sizeof(Elf64_Sym) : 8);
		if (parts[i] > rest)
			parts[i] = rest;
		rest -= parts[i];
		sections[SYMBOLS + i].sh_offset = at;
		sections[SYMBOLS + i].sh_size = parts[i];
		at += parts[i];
	}
	if (!parts[2])
		sections[HASH].sh_name = 0; /* a file without one */
	ph.p_offset = at;
	ph.p_filesz = ph.p_memsz = rest;
	for (int i = RUNTIME; !parts[0] && i <= RODATA; i++)
		sections[i] = (Elf64_Shdr){ .sh_name = i == RUNTIME ? 27
						       : i == TEXT  ? 38
								    : 44,
					    .sh_type = SHT_PROGBITS,
					    .sh_offset = at,
					    .sh_size = rest };
	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, &ph, sizeof(ph));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, section_names, sizeof(section_names));
	buf_append(file, data + 3, size - 3);
}

static void read_file(const uint8_t *bytes, size_t len)
{
	static const uint64_t addrs[] = { 0, 8, 4095, 1ull << 47, UINT64_MAX - 7, UINT64_MAX };
	struct runtime_file found;
	struct runtime_symbol symbol;
	struct elf_image im;

	if (elf_image_open(bytes, len, &im))
		return;
	memset(&found, 0xff, sizeof(found));
	runtime_file_read(&im, &found);
	REQUIRE(runtime_file_is_sound(&found));
	REQUIRE(found.kind || (!found.version && !found.state.type && !found.state.thread.addr));
	REQUIRE(!found.state.asid && !found.state.seq_head && !found.state.seq_tail);
	(void)runtime_file_symbol(&im, "a", &symbol);
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		const uint8_t *at = runtime_file_bytes(&im, addrs[i], 8);

		REQUIRE(!at || (at >= bytes && (size_t)(at - bytes) <= len - 8));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = BUF_EMPTY;
	AUTO_FREE uint8_t *copy = NULL;

	if (size < 3)
		return 0;
	if (data[0] == 0x7f) /* as a real file starts */
		buf_append(&file, data, size);
	else
		wrap(&file, data, size);
	copy = malloc(file.len); /* no byte behind the end can be read unseen */
	REQUIRE(copy && !file.failed);
	memcpy(copy, file.data, file.len);
	read_file(copy, file.len);
	buf_fini(&file);
	return 0;
}
