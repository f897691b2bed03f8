/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections and segments of a 64-bit little-endian ELF file that is mapped whole: just enough of ELF for readers of the
 * tables. Nothing is copied; whatever it hands out lies inside the file. Leaf module, no state of its own.
 */
#ifndef HEARTH_SYMBOLS_ELF_IMAGE_H
#define HEARTH_SYMBOLS_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
	const uint8_t *data; /* borrowed */
	size_t len_bytes;
	Elf64_Ehdr ehdr;
	uint32_t section_count;
	uint32_t name_section; /* whose bytes are the names of the sections */
};

/* 0; -ENOEXEC: no such file. One without sections, or with a broken table of them, has none. */
int elf_image_open(const void *data, size_t len_bytes, struct elf_image *ret);

/* Section number @i; false: there is none. */
bool elf_image_section(const struct elf_image *im, uint32_t i, Elf64_Shdr *ret);

/* The first section called @name; false: there is none. */
bool elf_image_find(const struct elf_image *im, const char *name, Elf64_Shdr *ret);

/* The bytes of a section in the file; NULL when there are none, or not all are inside the file. */
const uint8_t *elf_image_bytes(const struct elf_image *im, const Elf64_Shdr *section, size_t *len_ret);

/* Program header number @i; false: there is none. */
bool elf_image_header(const struct elf_image *im, uint32_t i, Elf64_Phdr *ret);

/* The @len bytes that the file has for virtual address @addr; NULL: it has not all of them. */
const uint8_t *elf_image_loaded(const struct elf_image *im, uint64_t addr, uint64_t len);

/* Is @section called @name? */
bool elf_image_is_called(const struct elf_image *im, const Elf64_Shdr *section, const char *name);

#endif
