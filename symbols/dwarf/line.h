/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line number programs, DWARF 2 to 5 (DWARF 5, section 6.2): the table of files in a program's header, and its rows. Texts
 * are borrowed from the sections; the tables are owned and used again for the next program. No logging; hostile bytes end a
 * program early.
 */
#ifndef HEARTH_SYMBOLS_DWARF_LINE_H
#define HEARTH_SYMBOLS_DWARF_LINE_H

#include "base/buf.h"
#include "symbols/code/names.h"
#include "symbols/dwarf/info.h"

struct dwarf_line_text;
struct dwarf_line_file;

struct dwarf_lines {
	struct code_names *names; /* borrowed, as the two below */
	const struct dwarf_info *info;
	const struct dwarf_unit *unit;
	uint64_t off;		     /* of the program whose header is loaded; UINT64_MAX: none */
	struct dwarf_cursor program; /* the instructions */
	uint16_t version;
	uint8_t offset_bytes, min_instruction, opcode_base, line_range;
	int8_t line_base;
	const uint8_t *operand_cnts; /* of the standard opcodes 1 .. opcode_base - 1 */
	struct dwarf_line_text *dirs;
	size_t dir_cnt, dir_cap;
	struct dwarf_line_file *files;
	size_t file_cnt, file_cap;
	const char *comp_dir;
	size_t comp_dir_len;
	struct buf path;
};

void dwarf_lines_init(struct dwarf_lines *l, struct code_names *names);
void dwarf_lines_fini(struct dwarf_lines *l);

/* Loads the header of @unit's program. 0, -ENODATA (the unit has none), -EBADMSG, -ENOMEM; when not 0 no file is known. */
int dwarf_lines_open(struct dwarf_lines *l, const struct dwarf_info *info, const struct dwarf_unit *unit);

/* The file that the program's rows and the unit's entries call @index, in the struct code_names; CODE_NONE: there is none.
 */
uint32_t dwarf_lines_file(struct dwarf_lines *l, uint64_t index);

/* Runs the program: gives the struct code_names the rows that somebody asks for, of sequences that start within
 * [@code_start,
 * @code_end). 0 or -EBADMSG. */
int dwarf_lines_run(struct dwarf_lines *l, uint64_t code_start, uint64_t code_end);

#endif
