/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that V8 is built with, its builtins, among them the code of bytecodes. V8 keeps two tables of them for
 * itself, which survive stripping: their names (Builtins' metadata), and where each one's code is (the embedded blob's
 * descriptions). Node 16 to 26, x86-64. No state.
 */
#ifndef HEARTH_SYMBOLS_SOURCES_V8_BUILTINS_H
#define HEARTH_SYMBOLS_SOURCES_V8_BUILTINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image;

#define V8_BUILTIN_PREFIX "Builtins_" /* of the symbols that files with .symtab have for them */

enum { V8_BUILTINS_MAX = 8192, V8_BUILTIN_NAME_MAX = 200 };

struct v8_builtins {
	uint64_t *names; /* ELF address of each one's name, 0: not told; owned */
	const uint8_t
		*places; /* borrowed from the image: descriptions of @stride bytes, which begin with offset and length */
	uint32_t count, stride;
	uint64_t code; /* ELF address of the first one's code */
};

struct v8_builtin {
	const char *name; /* without the prefix, a NUL behind it; lives as long as the image. "": not told */
	uint64_t addr, size_bytes;
};

/* Finds the tables of @im, which must outlive @ret. 0; -ENODATA: it has none, or has .symtab, which tells the same;
 * -ENOMEM. */
int v8_builtins_open(const struct elf_image *im, struct v8_builtins *ret);
void v8_builtins_close(struct v8_builtins *b);

/* Number @i, in the order of addresses; the code of bytecodes comes last. False: there is none. */
bool v8_builtins_get(const struct elf_image *im, const struct v8_builtins *b, uint32_t i, struct v8_builtin *ret);

#endif
