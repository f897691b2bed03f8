/* SPDX-License-Identifier: Apache-2.0 */
/* Every offset and count of the file is looked at when it is used: the file is anybody's. The ELF specification (System V
 * ABI, chapter 4) has the structures, also that section 0 holds the counts that do not fit into the header. */
#include <errno.h>
#include <string.h>

#include "symbols/elf_image.h"

/* @len bytes at file offset @off; NULL when they are not all there. */
static const uint8_t *file_bytes(const struct elf_image *im, uint64_t off, uint64_t len)
{
	return off <= im->len_bytes && len <= im->len_bytes - off ? im->data + off : NULL;
}

static bool read_section(const struct elf_image *im, uint32_t i, Elf64_Shdr *ret)
{
	uint64_t off = (uint64_t)i * sizeof(*ret);
	const uint8_t *p = im->ehdr.e_shoff <= UINT64_MAX - off ? file_bytes(im, im->ehdr.e_shoff + off, sizeof(*ret))
								: NULL;

	if (p)
		memcpy(ret, p, sizeof(*ret));
	return p;
}

static void count_sections(struct elf_image *im)
{
	Elf64_Shdr first;
	uint64_t most;

	if (!im->ehdr.e_shoff || im->ehdr.e_shentsize != sizeof(Elf64_Shdr) || !read_section(im, 0, &first))
		return;
	most = (im->len_bytes - im->ehdr.e_shoff) / sizeof(Elf64_Shdr);
	im->section_count = im->ehdr.e_shnum;
	if (!im->section_count)
		im->section_count = first.sh_size < most ? (uint32_t)first.sh_size : 0;
	if (im->section_count > most)
		im->section_count = (uint32_t)most;
	im->name_section = im->ehdr.e_shstrndx == SHN_XINDEX ? first.sh_link : im->ehdr.e_shstrndx;
}

int elf_image_open(const void *data, size_t len_bytes, struct elf_image *ret)
{
	*ret = (struct elf_image){ .data = data, .len_bytes = len_bytes };
	if (!data || len_bytes < sizeof(ret->ehdr))
		return -ENOEXEC;
	memcpy(&ret->ehdr, data, sizeof(ret->ehdr));
	if (memcmp(ret->ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ret->ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ret->ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	count_sections(ret);
	return 0;
}

bool elf_image_section(const struct elf_image *im, uint32_t i, Elf64_Shdr *ret)
{
	return i < im->section_count && read_section(im, i, ret);
}

const uint8_t *elf_image_bytes(const struct elf_image *im, const Elf64_Shdr *section, size_t *len_ret)
{
	const uint8_t *p = section->sh_type == SHT_NOBITS ? NULL : file_bytes(im, section->sh_offset, section->sh_size);

	*len_ret = p ? section->sh_size : 0;
	return p;
}

bool elf_image_header(const struct elf_image *im, uint32_t i, Elf64_Phdr *ret)
{
	uint64_t off = (uint64_t)i * sizeof(*ret);
	const uint8_t *p;

	if (i >= im->ehdr.e_phnum || im->ehdr.e_phentsize != sizeof(*ret) || im->ehdr.e_phoff > UINT64_MAX - off)
		return false;
	p = file_bytes(im, im->ehdr.e_phoff + off, sizeof(*ret));
	if (p)
		memcpy(ret, p, sizeof(*ret));
	return p;
}

const uint8_t *elf_image_loaded(const struct elf_image *im, uint64_t addr, uint64_t len)
{
	Elf64_Phdr ph;

	for (uint32_t i = 0; elf_image_header(im, i, &ph); i++) {
		uint64_t off = addr - ph.p_vaddr;

		if (ph.p_type != PT_LOAD || addr < ph.p_vaddr || off > ph.p_filesz || ph.p_filesz - off < len)
			continue;
		return ph.p_offset <= UINT64_MAX - off ? file_bytes(im, ph.p_offset + off, len) : NULL;
	}
	return NULL;
}

bool elf_image_is_called(const struct elf_image *im, const Elf64_Shdr *section, const char *name)
{
	size_t len = strlen(name) + 1, names_len;
	const uint8_t *names;
	Elf64_Shdr strings;

	if (!elf_image_section(im, im->name_section, &strings))
		return false;
	names = elf_image_bytes(im, &strings, &names_len);
	return names && section->sh_name < names_len && len <= names_len - section->sh_name &&
	       !memcmp(names + section->sh_name, name, len);
}

bool elf_image_find(const struct elf_image *im, const char *name, Elf64_Shdr *ret)
{
	for (uint32_t i = 1; elf_image_section(im, i, ret); i++)
		if (elf_image_is_called(im, ret, name))
			return true;
	return false;
}
