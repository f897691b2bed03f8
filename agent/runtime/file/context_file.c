/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file whose threads say what they work on: it has the variable of OTEP 4947, otel_thread_ctx_v1, of which each thread has
 * its own, or it is a Go program that sets labels (go_labels.c). A library's variable is found by the relocation that its
 * code reaches it by; that of a program stands at a fixed distance from the thread pointer.
 */
#include <elf.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

#define VARIABLE "otel_thread_ctx_v1"

/* A table of dynamic symbols. */
struct symbols {
	const uint8_t *bytes;
	size_t count;
};

static bool get_symbol(const struct symbols *s, uint64_t i, Elf64_Sym *ret)
{
	if (i >= s->count)
		return false;
	memcpy(ret, s->bytes + i * sizeof(*ret), sizeof(*ret));
	return true;
}

/* The relocations (elf.h) by which code reaches such a variable, and the place of a thread's state that each leads to. */
static const struct {
	uint16_t machine;
	uint32_t type;
	uint16_t place;
} ways[] = {
	{ EM_X86_64, R_X86_64_TLSDESC, THREAD_TLS_DESC },	{ EM_X86_64, R_X86_64_DTPMOD64, THREAD_TLS_INDEX },
	{ EM_X86_64, R_X86_64_TPOFF64, THREAD_TLS_SLOT },	{ EM_AARCH64, R_AARCH64_TLSDESC, THREAD_TLS_DESC },
	{ EM_AARCH64, R_AARCH64_TLS_DTPMOD, THREAD_TLS_INDEX }, { EM_AARCH64, R_AARCH64_TLS_TPREL, THREAD_TLS_SLOT },
};

/* Is @rela one of them, to the variable at @value of the file's block of TLS? */
static bool leads_to(const struct elf_image *im, const struct symbols *s, const Elf64_Rela *rela, uint64_t value,
		     struct thread_locator *ret)
{
	uint64_t target = (uint64_t)rela->r_addend;
	Elf64_Sym symbol;

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		if (ways[i].machine != im->ehdr.e_machine || ways[i].type != ELF64_R_TYPE(rela->r_info))
			continue;
		if (ELF64_R_SYM(rela->r_info)) {
			if (!get_symbol(s, ELF64_R_SYM(rela->r_info), &symbol) || ELF64_ST_TYPE(symbol.st_info) != STT_TLS ||
			    symbol.st_shndx == SHN_UNDEF)
				return false;
			target += symbol.st_value;
		} else if (ways[i].place == THREAD_TLS_INDEX) {
			return false; /* the word behind the module's number tells which variable it is, without a relocation
				       */
		}
		if (target != value)
			return false;
		*ret = (struct thread_locator){ .place = ways[i].place, .addr = rela->r_offset };
		return true;
	}
	return false;
}

static bool find_relocation(const struct elf_image *im, const struct symbols *s, uint64_t value, struct thread_locator *ret)
{
	static const char *const tables[] = { ".rela.plt", ".rela.dyn" };

	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		const uint8_t *bytes;
		Elf64_Shdr section;
		Elf64_Rela rela;
		size_t len;

		if (!elf_image_find(im, tables[t], &section))
			continue;
		bytes = elf_image_bytes(im, &section, &len);
		for (size_t at = 0; bytes && at + sizeof(rela) <= len; at += sizeof(rela)) {
			memcpy(&rela, bytes + at, sizeof(rela));
			if (leads_to(im, s, &rela, value, ret))
				return true;
		}
	}
	return false;
}

/* The first program header of @type. */
static bool find_header(const struct elf_image *im, uint32_t type, Elf64_Phdr *ret)
{
	for (uint32_t i = 0; i < im->ehdr.e_phnum && im->ehdr.e_phentsize == sizeof(*ret); i++) {
		uint64_t at = im->ehdr.e_phoff + (uint64_t)i * sizeof(*ret);

		if (at > im->len_bytes || im->len_bytes - at < sizeof(*ret))
			return false;
		memcpy(ret, im->data + at, sizeof(*ret));
		if (ret->p_type == type)
			return true;
	}
	return false;
}

/* The variable at @value of a program's block, which stands directly below the thread pointer on x86-64, and behind two
 * words at it on arm64 (ELF Handling For Thread-Local Storage, variants II and I). */
static bool find_static(const struct elf_image *im, uint64_t value, struct thread_locator *ret)
{
	Elf64_Phdr tls, interpreter;
	uint64_t align, offset;

	if (!find_header(im, PT_TLS, &tls) || (im->ehdr.e_type != ET_EXEC && !find_header(im, PT_INTERP, &interpreter)))
		return false;
	align = tls.p_align ? tls.p_align : 1;
	if (align > 4096 || align & (align - 1) || tls.p_memsz > INT32_MAX / 2 || value > tls.p_memsz)
		return false;
	if (im->ehdr.e_machine == EM_AARCH64)
		offset = ((2 * sizeof(uint64_t) + align - 1) & -align) + value;
	else
		offset = value - ((tls.p_memsz + align - 1) & -align);
	*ret = (struct thread_locator){ .place = THREAD_TLS, .offset = (int32_t)offset };
	return true;
}

static bool find_variable(const struct elf_image *im, struct thread_locator *ret)
{
	struct runtime_symbol variable;
	struct symbols s;
	Elf64_Shdr section;
	size_t len;

	if (runtime_file_symbol(im, VARIABLE, &variable) || !elf_image_find(im, ".dynsym", &section))
		return false;
	s.bytes = elf_image_bytes(im, &section, &len);
	s.count = s.bytes ? len / sizeof(Elf64_Sym) : 0;
	return find_relocation(im, &s, variable.addr, ret) || find_static(im, variable.addr, ret);
}

void context_file_read(const struct elf_image *im, struct chain_state *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (find_variable(im, &ret->thread))
		ret->style = CONTEXT_RECORD;
	else if (!go_labels_read(im, ret))
		return;
	ret->runtime = CONTEXT_ID;
}
