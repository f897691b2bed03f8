/* SPDX-License-Identifier: Apache-2.0 */
/* The build ids of the kernel and its modules, as sysfs has them. No state. */
#ifndef HEARTH_AGENT_KERNEL_BUILD_ID_H
#define HEARTH_AGENT_KERNEL_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUILD_ID_CHARS = 41 }; /* 20 bytes in hex, and the NUL */

/* That of @module, "" for the kernel itself, in hex. False: sysfs has none. */
bool kernel_build_id(const char *module, char out[static BUILD_ID_CHARS]);

/* The GNU build id among the notes (elf(5)) at @notes. */
bool build_id_of_notes(const uint8_t *notes, size_t len, char out[static BUILD_ID_CHARS]);

#endif
