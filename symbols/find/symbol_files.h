/* SPDX-License-Identifier: Apache-2.0 */
/* A file with all that its names are read from, found and opened in this process: for commands and the backend. */
#ifndef HEARTH_SYMBOLS_FIND_SYMBOL_FILES_H
#define HEARTH_SYMBOLS_FIND_SYMBOL_FILES_H

#include "symbols/code/source.h"

struct debuginfod;

/*
 * Maps the ELF file @fd, known as @path, with its debug file, dwz's file and .dwp, as far as they are below the folder @root
 * (NULL: "/"; @path then is one below it) and fit; .dwo files are opened there as they are needed. A debug file that is
 * nowhere is asked for at @servers (NULL: nowhere) and waited for. symbol_files_close gives all back. 0; -ENOEXEC: not a
 * file with anything in it; -errno.
 */
int symbol_files_open(int fd, const char *path, const char *root, struct debuginfod *servers, struct symbol_files *ret);
void symbol_files_close(struct symbol_files *files);

#endif
