/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder over .debug_frame, of the file or else of its separate debug file: code built without .eh_frame but with debug
 * information, Go's programs, assembly. The section is copied into a little ELF file of its own, which libdw then opens:
 * over the whole file it would decompress every debug section, and write into an image that is only for reading. One thread.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/cfi.h"
#include "base/cleanup.h"

enum {
	MAX_SECTION_BYTES = 256 << 20, /* as it stands in the file and when decompressed; the largest seen are 20 MB */
	NAMES_BYTES = 32,
	GNU_HEADER_BYTES = 12, /* .zdebug_frame: "ZLIB", the size as a big-endian word */
	FDE_ADDRESSES_BYTES = 16,
};

struct debug_frame {
	void *file; /* the little file; owned */
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *cfi; /* the dwarf's */
};

struct section {
	const char *name;
	const uint8_t *data;
	GElf_Shdr head;
};

/* --- the section --- */

/* The section of the file of @len bytes at @file. */
static int find_section(Elf *elf, const uint8_t *file, size_t len, struct section *ret)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return -ENODATA;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &ret->head) || ret->head.sh_type == SHT_NOBITS)
			continue;
		ret->name = elf_strptr(elf, names, ret->head.sh_name);
		if (!ret->name || (strcmp(ret->name, ".debug_frame") != 0 && strcmp(ret->name, ".zdebug_frame") != 0))
			continue;
		if (ret->head.sh_offset > len || ret->head.sh_size > len - ret->head.sh_offset)
			return -ENODATA;
		ret->data = file + ret->head.sh_offset;
		return 0;
	}
	return -ENODATA;
}

/* The size when decompressed, of any kind of section; SIZE_MAX for one too short to say. */
static uint64_t whole_size(const struct section *section)
{
	uint64_t len = section->head.sh_size, be_size;
	Elf64_Chdr head;

	if (section->head.sh_flags & SHF_COMPRESSED) {
		if (len < sizeof(head))
			return SIZE_MAX;
		memcpy(&head, section->data, sizeof(head));
		return head.ch_size;
	}
	if (section->name[1] != 'z')
		return len;
	if (len < GNU_HEADER_BYTES)
		return SIZE_MAX;
	memcpy(&be_size, section->data + 4, sizeof(be_size));
	return be64toh(be_size);
}

/* A file with nothing but @section. NULL: no memory. */
static void *wrap_section(const struct section *section, size_t *len_ret)
{
	enum { FRAMES = 1, NAMES, SECTIONS };
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr sections[SECTIONS];
		char names[NAMES_BYTES];
	} start = { .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_EXEC,
			      .e_machine = CPU_ELF_MACHINE,
			      .e_version = EV_CURRENT,
			      .e_shoff = sizeof(Elf64_Ehdr),
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = SECTIONS,
			      .e_shstrndx = NAMES } };
	uint8_t *file;

	snprintf(start.names, sizeof(start.names), "%c%s", 0, section->name);
	start.sections[FRAMES] = (Elf64_Shdr){ .sh_name = 1,
					       .sh_type = SHT_PROGBITS,
					       .sh_flags = section->head.sh_flags & SHF_COMPRESSED,
					       .sh_offset = sizeof(start),
					       .sh_size = section->head.sh_size,
					       .sh_addralign = 8 };
	start.sections[NAMES] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
					      .sh_offset = sizeof(start) - sizeof(start.names),
					      .sh_size = sizeof(start.names) };
	*len_ret = sizeof(start) + section->head.sh_size;
	file = malloc(*len_ret);
	if (!file)
		return NULL;
	memcpy(file, &start, sizeof(start));
	memcpy(file + sizeof(start), section->data, section->head.sh_size);
	return file;
}

/*
 * Functions that the linker has left out still have their rules, at address 0: they would lie over the first code of a
 * shared object. Such an entry's length is set to 0, which libdw skips. The bytes are ours.
 */
static void drop_dead_entries(Elf *elf)
{
	static const uint8_t none[8];
	Elf_Data *data = elf_rawdata(elf_getscn(elf, 1), NULL);
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Dwarf_CFI_Entry entry;

	if (!data || !data->d_buf)
		return;
	for (Dwarf_Off off = 0, next = 0;; off = next) {
		int r = dwarf_next_cfi(ident, data, false, off, &next, &entry);

		if (r > 0 || next <= off)
			return;
		if (r < 0 || dwarf_cfi_cie_p(&entry) || entry.fde.end - entry.fde.start < FDE_ADDRESSES_BYTES)
			continue;
		if (memcmp(entry.fde.start, none, sizeof(none)) == 0)
			memset((uint8_t *)data->d_buf + (entry.fde.start - (uint8_t *)data->d_buf) + sizeof(none), 0,
			       sizeof(none));
	}
}

/* --- the builder --- */

static void debug_frame_close(void *state)
{
	struct debug_frame *d = state;

	dwarf_end(d->dwarf);
	elf_end(d->elf);
	free(d->file);
	free(d);
}

static int debug_frame_open(const struct row_image *image, void **ret)
{
	struct section section;
	struct debug_frame *d;
	size_t len;

	if (find_section(image->elf, image->data, image->len, &section) &&
	    find_section(image->debug_elf, image->debug, image->debug_len, &section))
		return -ENODATA;
	if (section.head.sh_size > MAX_SECTION_BYTES || whole_size(&section) > MAX_SECTION_BYTES)
		return -ENODATA;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->file = wrap_section(&section, &len);
	if (!d->file) {
		free(d);
		return -ENOMEM;
	}
	d->elf = elf_memory(d->file, len);
	d->dwarf = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	if (d->dwarf) {
		drop_dead_entries(d->elf);
		d->cfi = dwarf_getcfi(d->dwarf);
	}
	if (!d->cfi) {
		debug_frame_close(d);
		return -ENODATA;
	}
	*ret = d;
	return 0;
}

static int debug_frame_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	static const struct cfi_starts none;
	struct debug_frame *d = state;

	return rows_cfi_build(d->cfi, &none, start, end, rows, max, count_ret);
}

static int debug_frame_eval(void *state, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
			    struct row_regs *out)
{
	struct debug_frame *d = state;

	return rows_cfi_eval(d->cfi, addr, in, read, arg, out);
}

const struct row_builder rows_debug_frame = {
	.name = ".debug_frame",
	.open = debug_frame_open,
	.build = debug_frame_build,
	.eval = debug_frame_eval,
	.close = debug_frame_close,
};
