/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF file of an entry. LLVM registers a copy of the relocatable file that it loaded, in which it put the sections'
 * addresses into their headers and left all else as it was: so contents are to be taken from where they were loaded, or to
 * be relocated here. Others make files with addresses, which need neither.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/gdb_jit/gdb_jit.h"
#include "base/cleanup.h"

/* --- sections --- */

int gdb_jit_sections_read(struct code_memory *m, uint64_t addr, uint64_t bytes, struct gdb_jit_sections *ret)
{
	static const uint8_t ident[] = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB };
	Elf64_Ehdr *head = &ret->head;
	uint64_t all_bytes;
	int error;

	*ret = (struct gdb_jit_sections){ 0 };
	error = bytes < sizeof(*head) ? -EBADMSG : code_read(m, addr, head, sizeof(*head));
	if (error)
		return error;
	all_bytes = head->e_shnum * sizeof(*ret->all);
	if (memcmp(head->e_ident, ident, sizeof(ident)) != 0 || head->e_machine != CPU_ELF_MACHINE ||
	    head->e_shentsize != sizeof(*ret->all) || head->e_shnum > GDB_JIT_MAX_SECTIONS || head->e_shoff > bytes ||
	    all_bytes > bytes - head->e_shoff)
		return -EBADMSG;
	ret->all = malloc(all_bytes + 1);
	if (!ret->all)
		return -ENOMEM;
	error = code_read(m, addr + head->e_shoff, ret->all, all_bytes);
	if (error)
		gdb_jit_sections_free(ret);
	else
		ret->count = head->e_shnum;
	return error;
}

void gdb_jit_sections_free(struct gdb_jit_sections *s)
{
	free(s->all);
	*s = (struct gdb_jit_sections){ 0 };
}

bool gdb_jit_is_code(const Elf64_Shdr *sh)
{
	return sh->sh_flags & SHF_ALLOC && sh->sh_flags & SHF_EXECINSTR && sh->sh_addr && sh->sh_size &&
	       sh->sh_addr >> CPU_USER_BITS == 0 && sh->sh_size <= (1ull << CPU_USER_BITS) - sh->sh_addr;
}

/* Does section @sh have contents inside of the @bytes of its file? */
static bool is_inside(const Elf64_Shdr *sh, uint64_t bytes)
{
	return sh->sh_type != SHT_NOBITS && sh->sh_type != SHT_NULL && sh->sh_offset <= bytes &&
	       sh->sh_size <= bytes - sh->sh_offset;
}

/* --- the whole file --- */

struct image {
	uint8_t *data; /* borrowed */
	uint64_t bytes;
	const struct gdb_jit_sections *sections;
};

/* The section @number; NULL: there is none with contents. */
static const Elf64_Shdr *section(const struct image *im, uint32_t number)
{
	return number < im->sections->count && is_inside(&im->sections->all[number], im->bytes) ? &im->sections->all[number]
												: NULL;
}

static bool is_called(const struct image *im, const Elf64_Shdr *sh, const char *start)
{
	const Elf64_Shdr *names = section(im, im->sections->head.e_shstrndx);
	size_t len = strlen(start);

	return names && sh->sh_name < names->sh_size && names->sh_size - sh->sh_name > len &&
	       memcmp(im->data + names->sh_offset + sh->sh_name, start, len) == 0;
}

/* The value of the symbol that @r refers to. False: it has none here. */
static bool value_of(const struct image *im, const Elf64_Shdr *symbols, const Elf64_Rela *r, uint64_t *ret)
{
	uint64_t i = ELF64_R_SYM(r->r_info);
	Elf64_Sym sym;

	if (i >= symbols->sh_size / sizeof(sym))
		return false;
	memcpy(&sym, im->data + symbols->sh_offset + i * sizeof(sym), sizeof(sym));
	if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= im->sections->count)
		return false;
	*ret = sym.st_value + im->sections->all[sym.st_shndx].sh_addr;
	return true;
}

/* The bytes that a relocation of @type puts, where it is one of a word; else 0. */
static uint32_t width_of(uint32_t type)
{
#ifdef __x86_64__
	return type == R_X86_64_64 ? 8 : type == R_X86_64_32 || type == R_X86_64_32S ? 4 : 0;
#else
	return type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
#endif
}

/* Does what @rela, relocations of a debug section, say. */
static void relocate(const struct image *im, const Elf64_Shdr *rela)
{
	const Elf64_Shdr *target = section(im, rela->sh_info), *symbols = section(im, rela->sh_link);

	if (!target || !symbols || symbols->sh_type != SHT_SYMTAB || !is_called(im, target, ".debug_") ||
	    target->sh_flags & SHF_COMPRESSED)
		return;
	for (uint64_t i = 0; i < rela->sh_size / sizeof(Elf64_Rela); i++) {
		uint64_t value;
		uint32_t width;
		Elf64_Rela r;

		memcpy(&r, im->data + rela->sh_offset + i * sizeof(r), sizeof(r));
		width = width_of(ELF64_R_TYPE(r.r_info));
		if (!width || r.r_offset > target->sh_size || target->sh_size - r.r_offset < width ||
		    !value_of(im, symbols, &r, &value))
			continue;
		value += (uint64_t)r.r_addend;
		memcpy(im->data + target->sh_offset + r.r_offset, &value, width);
	}
}

static void complete(const struct image *im, struct code_memory *m)
{
	for (uint32_t i = 0; i < im->sections->count; i++) {
		const Elf64_Shdr *sh = section(im, i);

		if (sh && sh->sh_addr && sh->sh_flags & SHF_ALLOC && is_called(im, sh, ".eh_frame"))
			(void)code_read(m, sh->sh_addr, im->data + sh->sh_offset, sh->sh_size);
		else if (sh && sh->sh_type == SHT_RELA && im->sections->head.e_type == ET_REL)
			relocate(im, sh);
	}
}

uint8_t *gdb_jit_image_read(struct code_memory *m, uint64_t addr, uint64_t bytes)
{
	AUTO(gdb_jit_sections_free) struct gdb_jit_sections sections = { 0 };
	uint8_t *data;

	if (bytes > GDB_JIT_MAX_IMAGE_BYTES || gdb_jit_sections_read(m, addr, bytes, &sections))
		return NULL;
	data = malloc(bytes);
	if (!data || code_read(m, addr, data, bytes) || memcmp(data, &sections.head, sizeof(sections.head)) != 0) {
		free(data);
		return NULL;
	}
	complete(&(struct image){ data, bytes, &sections }, m);
	return data;
}

/* --- functions --- */

struct lookup {
	const struct gdb_jit_code *code;
	uint32_t section; /* the code's number */
	uint64_t base;	  /* of the values of symbols */
	uint64_t pc, names, names_bytes;
	uint64_t name_start; /* where the function begins whose name was found; 0: none yet */
	struct gdb_jit_piece *ret;
};

/* @addr is a border. */
static void note_border(const struct lookup *l, uint64_t addr)
{
	if (addr <= l->pc && addr > l->ret->start)
		l->ret->start = addr;
	else if (addr > l->pc && addr < l->ret->end)
		l->ret->end = addr;
}

static void look_at_symbol(struct lookup *l, const Elf64_Sym *sym)
{
	uint64_t start = l->base + sym->st_value, end = start + sym->st_size;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx != l->section || end < start)
		return;
	note_border(l, start);
	note_border(l, end);
	if (start > l->pc || (sym->st_size && end <= l->pc) || start < l->name_start || !sym->st_name ||
	    sym->st_name >= l->names_bytes)
		return;
	l->name_start = start;
	l->ret->name = l->names + sym->st_name;
}

static int look_at_symbols(struct lookup *l, struct code_memory *m, const Elf64_Shdr *symbols)
{
	uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
	AUTO_FREE Elf64_Sym *all = malloc(symbols->sh_size + 1);
	int error = all ? code_read(m, l->code->image + symbols->sh_offset, all, symbols->sh_size) : -ENOMEM;

	for (uint64_t i = 0; !error && i < count; i++)
		look_at_symbol(l, &all[i]);
	return error;
}

int gdb_jit_piece_find(struct code_memory *m, const struct gdb_jit_code *code, uint64_t pc, struct gdb_jit_piece *ret)
{
	AUTO(gdb_jit_sections_free) struct gdb_jit_sections s = { 0 };
	struct lookup l = { .code = code, .pc = pc, .ret = ret };
	int error = gdb_jit_sections_read(m, code->image, code->bytes, &s);

	if (error)
		return error;
	*ret = (struct gdb_jit_piece){ code->start, code->end, 0 };
	l.section = (uint32_t)((code->header - code->image - s.head.e_shoff) / sizeof(*s.all));
	l.base = s.head.e_type == ET_REL ? code->start : 0;
	for (uint32_t i = 0; !error && i < s.count; i++) {
		const Elf64_Shdr *sh = &s.all[i];

		if (sh->sh_type != SHT_SYMTAB || !is_inside(sh, code->bytes) || sh->sh_link >= s.count ||
		    !is_inside(&s.all[sh->sh_link], code->bytes))
			continue;
		l.names = code->image + s.all[sh->sh_link].sh_offset;
		l.names_bytes = s.all[sh->sh_link].sh_size;
		error = look_at_symbols(&l, m, sh);
	}
	return error;
}
