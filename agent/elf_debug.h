/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's separate debug file, from the reader's side of the ELF service: what the file says about it, and whether one that
 * was brought is that one. Leaf module: returns errors, never logs.
 */
#ifndef HEARTH_AGENT_ELF_DEBUG_H
#define HEARTH_AGENT_ELF_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/elf_service.h"

struct elf_debug {
	uint32_t wanted;		/* bits of enum elf_need that were not answered yet; 0: go on with what there is */
	char build_id[65];		/* of the file, hex, "" when it has none */
	char link[ELF_NEED_NAME_BYTES]; /* name in .gnu_debuglink, "" when there is none */
	uint32_t link_crc;
	void *map; /* the debug file, once it is believed; NULL: none */
	size_t map_bytes;
};

/* What the ELF file @fd says. A file that has the section .debug_@tables itself, or names no other file, wants nothing.
 * Never fails. */
void elf_debug_read(struct elf_debug *d, int fd, const char *tables);

/* The next question for the agent; false: there is none. */
bool elf_debug_next(const struct elf_debug *d, struct elf_needed *ret);

/*
 * The answer to @need: an open file (borrowed), or -1 when there is none. 0: it is the one, or there is none; -ENOENT: it is
 * another file, or nobody asked; -ENOMEM or what mapping said.
 */
int elf_debug_take(struct elf_debug *d, enum elf_need need, int fd);

/* Gives the mapping back. */
void elf_debug_drop(struct elf_debug *d);

#endif
