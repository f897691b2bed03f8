/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth symbols resolve`: addresses of a file as llvm-symbolizer answers them. */
#ifndef HEARTH_CMD_RESOLVE_H
#define HEARTH_CMD_RESOLVE_H

#include <stddef.h>

struct config;
struct symbol_cache;

/* Opens the 64-bit ELF file @path for reading. A descriptor, or -errno; -ENOEXEC: it is something else. */
int resolve_open_elf(const char *path);

struct symbol_files;

/* symbol_files_open for the file @fd, with the servers that the environment names. */
int resolve_open_symbol_files(int fd, const char *path, struct symbol_files *ret);

/*
 * Answers the @count addresses in @words about the ELF file @path on standard output; without any, or for the one word "-",
 * each line of standard input, at once. @cache: where its index may be (NULL: nowhere). Exit status; logs what went wrong.
 */
int resolve(const struct config *config, struct symbol_cache *cache, const char *path, char *const *words, size_t count);

#endif
