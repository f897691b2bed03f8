/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with DWARF for tests, built by the compilers that are there; and files mapped whole. */
#ifndef HEARTH_TESTS_DWARF_PROGRAM_H
#define HEARTH_TESTS_DWARF_PROGRAM_H

#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/sources/symbol_image.h"

static char dwarf_folder[] = "/tmp/hearth-dwarf-XXXXXX";

/* Runs a shell command in the folder, with $D the folder of the sources. Its exit status. */
__attribute__((format(printf, 1, 2))) static inline int dwarf_run(const char *format, ...)
{
	char command[1024];
	int len = snprintf(command, sizeof(command), "D=$PWD/" TEST_DATA "/unit/symbols; cd %s && ", dwarf_folder);
	va_list args;

	va_start(args, format);
	vsnprintf(command + len, sizeof(command) - (size_t)len, format, args);
	va_end(args);
	return system(command);
}

static inline bool dwarf_have(const char *tool)
{
	return dwarf_run("command -v %s >/dev/null", tool) == 0;
}

static inline struct symbol_image dwarf_map(const char *name)
{
	struct symbol_image image = { 0 };
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dwarf_folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || symbol_image_map(fd, &image)) {
		perror(path);
		exit(1);
	}
	close(fd);
	return image;
}

/* Where the section @name of @image lies. */
static inline Elf64_Shdr dwarf_section_header(const struct symbol_image *image, const char *name)
{
	const uint8_t *data = image->data;
	const Elf64_Ehdr *e = image->data;
	const Elf64_Shdr *s = (const void *)(data + e->e_shoff);

	for (int i = 1; i < e->e_shnum; i++)
		if (strcmp((const char *)data + s[e->e_shstrndx].sh_offset + s[i].sh_name, name) == 0)
			return s[i];
	return (Elf64_Shdr){ 0 };
}

static inline int dwarf_make_folder(void **state)
{
	(void)state;
	return mkdtemp(dwarf_folder) ? 0 : 1;
}

static inline int dwarf_remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dwarf_folder);
	return system(command);
}

#endif
