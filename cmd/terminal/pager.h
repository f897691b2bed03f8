/* SPDX-License-Identifier: Apache-2.0 */
/* Shows long texts on a terminal. */
#ifndef HEARTH_CMD_TERMINAL_PAGER_H
#define HEARTH_CMD_TERMINAL_PAGER_H

#include <stdbool.h>

struct buf;

/* Writes @text to standard output, through $HEARTH_PAGER, $PAGER or less when that is a terminal and the text is longer than
 * it, unless @direct. The exit status; what went wrong is logged. */
int pager_write(const struct buf *text, bool direct);

#endif
