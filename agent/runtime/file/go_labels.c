/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program that gives its goroutines labels (runtime/pprof), 1.18 and newer: it has the runtime's function that sets
 * them, which is linked where a program may call it and never inlined. The place of labels in g is another one in nearly
 * each version; that function's code tells it, in stripped programs too:
 *   go tool objdump -s runtime_setProfLabel PROGRAM
 * Labels are a map until 1.23, a list since (runtime/pprof/label.go). A gobuf, of which m and g have one, lost a word in
 * 1.25; g got one more in front of its number in 1.23 (runtime2.go).
 */
#include <stdio.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"
#include "symbols/sources/gopclntab.h"

#define SETTER "runtime/pprof.runtime_setProfLabel"

enum {
	LEAST_OFFSET = 256, /* in g, of anything that comes after its stack, scheduling and times */
	GO_CURG_UNTIL_1_24 = 0xc0,
	GO_CURG = 0xb8,
	GO_ID = 152, /* goid in g */
	GO_ID_1_23 = 160,
	BUILD_INFO_HEAD = 32,  /* debug/buildinfo: magic, size of a pointer, flags */
	BUILD_INFO_INLINE = 2, /* of its flags, the byte at 15: the version stands there itself, since 1.18 */
	MOST_VERSION = 64,
};

/* The second number of the version that built the program; 0: not known. */
static unsigned find_minor(const struct elf_image *im)
{
	static const char magic[] = "\xff Go buildinf:";
	unsigned major, minor;
	const uint8_t *bytes;
	Elf64_Shdr section;
	char text[MOST_VERSION];
	size_t len;

	if (!elf_image_find(im, ".go.buildinfo", &section))
		return 0;
	bytes = elf_image_bytes(im, &section, &len);
	if (!bytes || len <= BUILD_INFO_HEAD + 1 || memcmp(bytes, magic, sizeof(magic) - 1) != 0 ||
	    !(bytes[15] & BUILD_INFO_INLINE))
		return 0;
	bytes += BUILD_INFO_HEAD;
	len -= BUILD_INFO_HEAD;
	if (bytes[0] >= sizeof(text) || bytes[0] >= len)
		return 0;
	memcpy(text, bytes + 1, bytes[0]);
	text[bytes[0]] = '\0';
	if (sscanf(text, "go%u.%u", &major, &minor) != 2 && sscanf(text, "devel go%u.%u", &major, &minor) != 2)
		return 0;
	return major == 1 ? minor : 0;
}

/* The setter's code. False: the program has none. */
static bool find_setter(const struct elf_image *im, const uint8_t **code_ret, size_t *len_ret)
{
	struct gopclntab_function fn;
	struct gopclntab table;

	if (gopclntab_open(im->data, im->len_bytes, &table) || table.names >= table.len ||
	    !memmem(table.data + table.names, table.len - table.names, SETTER, sizeof(SETTER)))
		return false;
	for (uint32_t i = 0; i < table.function_count; i++) {
		if (gopclntab_function(&table, i, &fn) || fn.name_len != sizeof(SETTER) - 1 ||
		    memcmp(fn.name, SETTER, fn.name_len) != 0)
			continue;
		*len_ret = fn.end - fn.entry;
		*code_ret = *len_ret < 4096 ? gopclntab_code(&table, fn.entry, *len_ret) : NULL;
		return *code_ret;
	}
	return false;
}

/* The offset of a load, a store or an address by r14, in which Go has g, or by a copy of it: a 32-bit distance. */
static uint32_t offset_x86_64(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 7 <= len; i++) {
		bool is_access = code[i + 1] == 0x89 || code[i + 1] == 0x8b || code[i + 1] == 0x8d;
		uint32_t offset;

		/* REX.W; mod 2; no SIB byte follows */
		if ((code[i] & 0xf8) != 0x48 || !is_access || code[i + 2] >> 6 != 2 || (code[i + 2] & 7) == 4)
			continue;
		memcpy(&offset, &code[i + 3], sizeof(offset));
		if (offset >= LEAST_OFFSET && offset <= MAX_GO_LABELS_OFFSET && offset % 8 == 0)
			return offset;
	}
	return 0;
}

/* The same by x28: ldr and str of a word with an unsigned offset, add of a constant. */
static uint32_t offset_arm64(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t insn, offset = 0;

		memcpy(&insn, &code[i], sizeof(insn));
		if ((insn & 0xff800000) == 0xf9000000)
			offset = (insn >> 10 & 0xfff) * 8;
		else if ((insn & 0xffc00000) == 0x91000000)
			offset = insn >> 10 & 0xfff;
		if (offset >= LEAST_OFFSET && offset <= MAX_GO_LABELS_OFFSET && offset % 8 == 0)
			return offset;
	}
	return 0;
}

/* Which word below the thread pointer has g: the first, but for programs that C code's variables of the thread stand in
 * front of it (runtime.tlsg). */
static uint16_t find_place(const struct elf_image *im)
{
	struct runtime_symbol tlsg;
	Elf64_Shdr block;
	uint64_t end = 0, start = UINT64_MAX, align = 8;

	if (im->ehdr.e_machine != EM_X86_64 || runtime_file_own_symbol(im, "runtime.tlsg", &tlsg))
		return 0;
	for (uint32_t i = 0; elf_image_section(im, i, &block); i++) {
		if (!(block.sh_flags & SHF_TLS))
			continue;
		start = block.sh_addr < start ? block.sh_addr : start;
		end = block.sh_addr + block.sh_size > end ? block.sh_addr + block.sh_size : end;
		align = block.sh_addralign > align ? block.sh_addralign : align;
	}
	if (end <= start || align > 4096 || align & (align - 1))
		return 0;
	end = (end - start + align - 1) & -align;
	return end > tlsg.addr && end - tlsg.addr <= 8ull * GO_G_PLACES ? (uint16_t)((end - tlsg.addr) / 8 - 1) : 0;
}

bool go_labels_read(const struct elf_image *im, struct chain_state *ret)
{
	unsigned minor = find_minor(im);
	const uint8_t *code;
	uint32_t offset;
	size_t len;

	if (minor < 18 || !find_setter(im, &code, &len))
		return false;
	offset = im->ehdr.e_machine == EM_X86_64 ? offset_x86_64(code, len) : offset_arm64(code, len);
	if (!offset)
		return false;
	ret->style = minor < 24 ? CONTEXT_GO_MAP : CONTEXT_GO_LIST;
	ret->offset[CONTEXT_GO_PLACE] = find_place(im);
	ret->offset[CONTEXT_GO_CURG] = minor < 25 ? GO_CURG_UNTIL_1_24 : GO_CURG;
	ret->offset[CONTEXT_GO_ID] = minor == 23 || minor == 24 ? GO_ID_1_23 : GO_ID;
	ret->offset[CONTEXT_GO_LABELS] = (uint16_t)offset;
	return true;
}
