/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where separate debug files are, and how they are opened: the agent's side of ELF_OP_GIVE. Nothing is read here. A file is
 * looked for below the root of the process that mapped its program, which may be a hostile container's, then below ours.
 */
#ifndef HEARTH_AGENT_DEBUG_FILES_H
#define HEARTH_AGENT_DEBUG_FILES_H

#include <stdint.h>

#include "agent/elf_service.h"

enum { DEBUG_FILE_PLACES = 9 }; /* of all needs together */

/* Whose debug file it is. */
struct debug_place {
	const char *path; /* as the process sees the file */
	uint32_t pid;	  /* one that maps it */
	int fd;		  /* the file itself */
};

/*
 * Opens what may be the debug file, in place number @index of those of @need->kind. A descriptor for reading, the caller's
 * to close; -ERANGE: there are no more places; another -errno: nothing to be had there.
 */
int debug_file_open(const struct debug_place *place, const struct debug_need *need, unsigned index);

#endif
