/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of functions, out of their entries: an entry says its own name or refers to the one that does, often in another
 * unit or in the common file. Answers are kept by the entry referred to, so that each is read once. No logging.
 */
#ifndef HEARTH_SYMBOLS_DWARF_REFERENCES_H
#define HEARTH_SYMBOLS_DWARF_REFERENCES_H

#include "base/buf.h"
#include "base/map.h"
#include "symbols/code/names.h"
#include "symbols/dwarf/info.h"

struct dwarf_names {
	struct code_names *names; /* borrowed, as the two below */
	struct dwarf_info *info;
	struct dwarf_info *common; /* what dwz moved away, or NULL */
	struct map functions;	   /* offset of an entry -> function + 1; CODE_NONE is kept too */
	struct map scopes;	   /* struct dwarf_unit * -> struct scopes *, owned */
	size_t scope_cnt;	   /* of all of them */
	struct buf text;
};

void dwarf_names_init(struct dwarf_names *n, struct code_names *names, struct dwarf_info *info, struct dwarf_info *common);
void dwarf_names_fini(struct dwarf_names *n);

/*
 * The function that @die, an entry of @unit in n->info, is or is an instance of; CODE_NONE: it has no name. The linkage name
 * if there is one, for C++ and Rust mangled; else the name, with the namespaces and classes around it unless the function
 * can be seen from outside its file: what C++ shows there without a mangled name is called as in C.
 */
uint32_t dwarf_names_function(struct dwarf_names *n, struct dwarf_unit *unit, const struct dwarf_die *die);

#endif
