/* SPDX-License-Identifier: Apache-2.0 */
/* Data on standard output. */
#ifndef HEARTH_CMD_OUTPUT_H
#define HEARTH_CMD_OUTPUT_H

struct buf;

/*
 * Writes all of @text to standard output and returns the exit status. A reader that went away (`hearth report f | head`) is
 * the end of the job, not a failure; anything else is logged.
 */
int output_write(const struct buf *text);

#endif
