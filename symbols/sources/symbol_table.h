/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's symbol table as a source of names: what .symtab, .dynsym and the table in .gnu_debugdata have in common. */
#ifndef HEARTH_SYMBOLS_SOURCES_SYMBOL_TABLE_H
#define HEARTH_SYMBOLS_SOURCES_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/code/source.h"

/*
 * Adds the functions of the first table of @type (SHT_SYMTAB, SHT_DYNSYM) in @image to @names, after code_names_begin. An
 * address is named by the symbol whose size covers it; of several, by the one that starts nearest. A symbol of size 0 names
 * what follows it up to the next symbol or the end of its section, where no size covers it and nothing with a size starts at
 * its address. At one address the first of these wins: global before weak before local, functions before symbols without a
 * type, then the longer size, the shorter name, the first in the alphabet. Versions (foo@@V1) are cut off. Data, marks of
 * the assembler ($x) and of annobin (hidden, local, without type and size) are no functions. Errors as symbol_source_fn.
 */
int symbol_table_add(const struct symbol_image *image, uint32_t type, struct code_names *names);

/* A function by one of its names. */
struct function_symbol {
	const char *name; /* @len bytes, without a NUL behind them */
	size_t len;
	uint64_t addr, size_bytes; /* 0: the size is not known */
	bool is_indirect;	   /* it is not called itself: it chooses one of several when the program starts */
};

/* Calls @fn with each function of that table, under each of its names, in the file's order. Errors as symbol_source_fn. */
int symbol_table_each(const struct symbol_image *image, uint32_t type,
		      void (*fn)(void *arg, const struct function_symbol *symbol), void *arg);

#endif
