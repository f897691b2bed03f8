/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF: the program holds a skeleton of each unit, with addresses and lines; the entries are in a .dwo file, or with
 * those of all other units in a .dwp file (DWARF 5, section 7.3; before it GNU's extension of version 4). No logging.
 */
#ifndef HEARTH_SYMBOLS_DWARF_SPLIT_H
#define HEARTH_SYMBOLS_DWARF_SPLIT_H

#include "symbols/dwarf/info.h"

/* The limit of sections of .dwo files read for one program, in case it names the same file again and again. */
#define DWARF_SPLIT_MAX_BYTES (8ull << 30)

/* The files; one unit at a time. */
struct dwarf_split {
	const struct symbol_files *files; /* borrowed */
	struct dwarf_file package;	  /* all of it; empty while it has not been asked for */
	bool is_package_tried;
	struct dwarf_file file; /* the unit's own */
	struct symbol_image image;
	struct dwarf_bytes sections[DWARF_SECTION_MAX]; /* the unit's parts */
	struct dwarf_info info;
	uint64_t read_bytes; /* of files, so far */
};

void dwarf_split_init(struct dwarf_split *s, const struct symbol_files *files);
void dwarf_split_fini(struct dwarf_split *s);

/* Is @unit, which has been read, a skeleton? */
bool dwarf_is_skeleton(const struct dwarf_unit *unit);

/*
 * Opens what belongs to the skeleton @unit of @info, whose own entry is @die. The unit in *@ret is of s->info and has been
 * read; both stay until dwarf_split_close_unit, which is to be called also after an error. 0; -ENOENT: it cannot be found;
 * -EBADMSG; -ENOMEM.
 */
int dwarf_split_open_unit(struct dwarf_split *s, const struct dwarf_info *info, const struct dwarf_unit *unit,
			  const struct dwarf_die *die, struct dwarf_unit **ret);
void dwarf_split_close_unit(struct dwarf_split *s);

#endif
