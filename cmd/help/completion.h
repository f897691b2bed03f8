/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of command lines in shells, written from the command and option tables. */
#ifndef HEARTH_CMD_HELP_COMPLETION_H
#define HEARTH_CMD_HELP_COMPLETION_H

struct buf;

/* The script for @shell ("bash", "zsh" or "fish"), appended to @out. */
void completion_write(const char *shell, struct buf *out);

#endif
