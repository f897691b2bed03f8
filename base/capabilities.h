/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities that hearth's processes keep as root, by the table base/capabilities.def. A thread's own: to be called before
 * others start. */
#ifndef HEARTH_BASE_CAPABILITIES_H
#define HEARTH_BASE_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who keeps a capability. */
enum {
	CAPABILITY_AGENT = 1 << 0,
	CAPABILITY_EVENTS = 1 << 1,
	CAPABILITY_FILES = 1 << 2,
	CAPABILITY_OPENER = 1 << 3,
	CAPABILITY_KEEPER = 1 << 4,
	CAPABILITY_NOBODY = 0,
};

/* Who misses it. */
enum {
	CAPABILITY_NEEDED = 1 << 0,
	CAPABILITY_WANTED = 1 << 1,
	CAPABILITY_ROOTS = 1 << 2,
	CAPABILITY_BY_ADMIN = 1 << 3,
	CAPABILITY_SPARE = 0,
};

struct capability {
	const char *name; /* "CAP_BPF" */
	uint8_t number;	  /* as in linux/capability.h */
	uint8_t kept, need;
};

/* The table; @count_ret: its length. */
const struct capability *capabilities(size_t *count_ret);

/* Sets of capabilities have the bit 1 << NUMBER of each. */

/* Those that this process may use. */
uint64_t capabilities_effective(void);

/* Those of @have that processes of the kinds @kept keep; SYS_ADMIN too, where it stands for one that is missing. */
uint64_t capabilities_of(unsigned kept, uint64_t have);

/* Gives up, for good, all but those of @set that this process has. Programs that it runs later get none. 0 or -errno. */
int capabilities_keep(uint64_t set);

#endif
