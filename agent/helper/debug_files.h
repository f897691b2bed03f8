/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds separate debug files and opens them: the agent's side of ELF_OP_GIVE. Nothing is read here. A file is looked for
 * below the root of the process that mapped its program, which may be a hostile container's, then below ours.
 */
#ifndef HEARTH_AGENT_HELPER_DEBUG_FILES_H
#define HEARTH_AGENT_HELPER_DEBUG_FILES_H

#include <stdint.h>

#include "agent/helper/elf_service.h"

enum { DEBUG_FILE_PLACES = 9 }; /* places of all needs together */

/* The program whose debug file is wanted. */
struct debug_place {
	const char *path; /* as the process sees the file */
	uint32_t pid;	  /* a process that maps it */
	int fd;		  /* the file itself */
};

/*
 * Opens a file that may be the debug file, at place number @index of those of @need->kind. Returns a descriptor for reading,
 * the caller's to close; -ERANGE: there are no more places; another -errno: no file there.
 */
int debug_file_open(const struct debug_place *place, const struct debug_need *need, unsigned index);

#endif
