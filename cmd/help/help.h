/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual, written from the command and option tables. */
#ifndef HEARTH_CMD_HELP_HELP_H
#define HEARTH_CMD_HELP_HELP_H

struct buf;
struct cmd;

/* The help of @cmd; the overview of all commands when NULL. Appends to @out. */
void help_write(const struct cmd *cmd, struct buf *out);

/* The same on standard output; returns the exit status. */
int help_print(const struct cmd *cmd);

/* The manual page in man(7) macros. */
void help_write_man(struct buf *out);

#endif
