/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of the names of a file's code: one .c file each, tried in the order of the table in symbols/sources/sources.c;
 * what an earlier one names, a later one does not name again. Each fills a struct code_names. Leaf modules: they return
 * errors and never log; what they read is other people's bytes.
 */
#ifndef HEARTH_SYMBOLS_CODE_SOURCE_H
#define HEARTH_SYMBOLS_CODE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "symbols/code/names.h"

/* An ELF file that is mapped whole. */
struct symbol_image {
	const void *data; /* NULL: there is none */
	size_t len_bytes;
};

/* Opens the files that a program names itself: those beside its objects which hold its DWARF (-gsplit-dwarf, .dwo). */
struct symbol_opener {
	/* Maps the file that was called @name where the compiler ran, in the folder @dir ("": unknown). A hostile program
	 * chooses both. 0 or -errno. */
	int (*open)(void *arg, const char *dir, const char *name, struct symbol_image *ret);
	void (*close)(void *arg, struct symbol_image *image);
	void *arg;
};

/* The files from which the names of one program are read. */
struct symbol_files {
	struct symbol_image program; /* the file that runs */
	struct symbol_image debug;   /* its separate debug file, where it has one that is believed */
	struct symbol_image common;  /* the file into which dwz moved what several debug files share (.gnu_debugaltlink) */
	struct symbol_image package; /* the .dwp file: all the .dwo files of the program in one */
	const struct symbol_opener *split; /* for .dwo files that are in no package; NULL: they are not read */
	bool with_ranges;		   /* also where functions begin and end that nothing names: CODE_SOURCE_UNWIND */
};

/*
 * Adds what the source knows. 0; -ENODATA: the files have nothing for it; -EBADMSG: broken, and what was sound before the
 * break has been added; -ENOMEM.
 */
typedef int (*symbol_source_fn)(const struct symbol_files *files, struct code_names *names);

int source_go(const struct symbol_files *files, struct code_names *names);
int source_dwarf(const struct symbol_files *files, struct code_names *names);
int source_symtab(const struct symbol_files *files, struct code_names *names);
int source_debugdata(const struct symbol_files *files, struct code_names *names);
int source_dynsym(const struct symbol_files *files, struct code_names *names);
int source_plt(const struct symbol_files *files, struct code_names *names);
int source_v8(const struct symbol_files *files, struct code_names *names);
int source_unwind(const struct symbol_files *files, struct code_names *names);

/* The outcome of reading the sources. */
struct symbol_sources_result {
	enum code_source best; /* the first that had any name */
	bool is_broken;	       /* one of them was */
};

/* All of them, in their order; then code_names_finish. 0 also when nothing names anything. -ENOMEM, -E2BIG. */
int symbol_sources_read(const struct symbol_files *files, struct code_names *names, struct symbol_sources_result *ret);

/* The same without DWARF: names of functions, soon. */
int symbol_sources_read_quick(const struct symbol_files *files, struct code_names *names, struct symbol_sources_result *ret);

#endif
