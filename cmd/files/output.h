/* SPDX-License-Identifier: Apache-2.0 */
/* Writes data to standard output. */
#ifndef HEARTH_CMD_FILES_OUTPUT_H
#define HEARTH_CMD_FILES_OUTPUT_H

#include <stdint.h>

struct buf;

/* Columns and rows of the terminal that standard output is; 0 where it is none or does not know. */
struct output_size {
	uint32_t columns, rows;
};
struct output_size output_size(void);

/*
 * Writes all of @text to standard output and returns the exit status. A reader that went away (`hearth report f | head`) is
 * the end of the job, not a failure; anything else is logged.
 */
int output_write(const struct buf *text);

#endif
