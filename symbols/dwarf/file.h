/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug sections of a 64-bit little-endian ELF file that is mapped whole, compressed ones unpacked. Nothing of the file
 * is trusted. A leaf module; who opens a file closes it; the image is borrowed.
 */
#ifndef HEARTH_SYMBOLS_DWARF_FILE_H
#define HEARTH_SYMBOLS_DWARF_FILE_H

#include "symbols/dwarf/bytes.h"
#include "symbols/code/source.h"

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_LINE,
	DWARF_CU_INDEX, /* of a package of split units */
	DWARF_SECTION_MAX,
};

/* The limit of all unpacked sections of a file together: a real one's compressed debug sections stay far below it. */
#define DWARF_MAX_UNPACKED_BYTES (1ull << 30)

struct dwarf_file {
	struct dwarf_bytes sections[DWARF_SECTION_MAX]; /* empty: there is none */
	void *unpacked[DWARF_SECTION_MAX];		/* owned mappings */
	size_t unpacked_bytes[DWARF_SECTION_MAX];
	uint64_t unpacked_sum;	       /* also of those given up again */
	uint64_t code_start, code_end; /* all executable sections lie in between; empty when there is none */
	bool is_broken;		       /* a section was left out: it lies outside the file, or cannot be unpacked */
};

/*
 * Finds .debug_info and its like, or with @is_split .debug_info.dwo and its like. 0; -ENODATA: no ELF file for us, or no
 * such sections; -EBADMSG: its headers are broken; -ENOMEM. When not 0 there is nothing to close.
 */
int dwarf_file_open(struct dwarf_file *f, const struct symbol_image *image, bool is_split);
void dwarf_file_close(struct dwarf_file *f);

/* Has the file the section @which? Without unpacking anything. */
bool dwarf_file_has(const struct symbol_image *image, enum dwarf_section which);

#endif
