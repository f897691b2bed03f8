/* SPDX-License-Identifier: Apache-2.0 */
/* The key of the file that a mapping is of. */
#ifndef HEARTH_AGENT_PROC_FILE_KEY_H
#define HEARTH_AGENT_PROC_FILE_KEY_H

#include <stdbool.h>
#include <stdint.h>

struct file_key {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	uint64_t generation;
	bool has_generation; /* absent from /proc/PID/maps */
};

#endif
